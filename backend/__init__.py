"""Glassleaf's backend: the parties, their protocols and the services that pages and the command line use."""

__version__ = "0.2.0"
