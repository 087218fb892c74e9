"""All parties in one process: Hosts as threads that only bytes reach, and models and tables of synthetic people."""
