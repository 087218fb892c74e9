"""What survives a restart: each party's own partial models and records about them, and the Guest's key. One database a party."""
