"""The services for programs: HTTP with JSON, on FastAPI. Knows tokens, keys and codes; what is done stands in the services."""
