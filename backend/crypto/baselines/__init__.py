"""Ciphers that are measured against and never used: the textbook Paillier of `phe`, and RIAC, which is broken."""
