"""One script per claim: each measures, and prints its results as Markdown, or as JSON with ``--json``."""
