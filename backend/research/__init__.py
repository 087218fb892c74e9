"""What compares and teaches, and is no part of scoring a person: other protocols, other ciphers, attacks. A real Host has none of it."""
