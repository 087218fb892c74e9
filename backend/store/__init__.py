"""Stored data of each party: its own partial models and records about them, and the Guest's key. One database a party."""
