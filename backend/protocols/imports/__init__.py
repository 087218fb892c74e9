"""An imported model reaches a Host: with thresholds, so that its operator decides about it as an import."""
