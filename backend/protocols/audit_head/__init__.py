"""The head of the Guest's audit log, kept by every Host."""
