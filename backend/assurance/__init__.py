"""What may be claimed about a model: importance, direction, compliance. Reads the Guest's half only."""
