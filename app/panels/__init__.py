"""Drawing functions: a result in, widgets out."""
