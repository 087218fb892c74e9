"""Paillier: keys and their proof, obfuscators made in advance, encryption, homomorphic sums and weighted products."""
