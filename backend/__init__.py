"""Glassleaf's backend: the parties, their protocols and the one door that pages and the command line use."""
