"""The services for programs: HTTP with JSON, on FastAPI. Knows tokens, keys and codes; the work is done in the services."""
