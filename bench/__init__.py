"""One script per claim: each measures, prints what it found, and prints it as JSON with ``--json``."""
