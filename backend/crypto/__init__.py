"""Linearly homomorphic ciphers behind one vector interface, fixed-point numbers and obfuscator pools. Knows nothing of trees."""
