"""Splits, leaves, trees and ensembles; their growth; candidate leaves. Knows nothing of ciphers."""
