"""Fed-EINI: one encrypted score in one round, and what is added to it: dither, canaries, permuted values."""
