"""Products of many powers with small signed exponents: a weighted sum of Paillier plaintexts. Knows no key and no plaintext."""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

WINDOWS = range(1, 9)  # bits of a digit; longer ones do not pay for the few thousand factors that come here


def weighted_product(bases: Sequence[mpz], exponents: Sequence[int], modulus: mpz) -> mpz:
    """∏ base^exponent modulo `modulus`: digit by digit, the bases of one digit's value multiplied in one bucket (Pippenger 1976).

    Parameters
    ----------
    bases : sequence of mpz, ``(n,)``
        Units modulo `modulus`.
    exponents : sequence of int, ``(n,)``
        Signed. How long it takes depends on them a little: zero digits cost nothing.
    """
    positive = [(base, e) for base, e in zip(bases, exponents, strict=True) if e > 0]
    negative = [(base, -e) for base, e in zip(bases, exponents, strict=True) if e < 0]
    product = _product(positive, modulus)
    if negative:
        return product * gmpy2.invert(_product(negative, modulus), modulus) % modulus
    return product


def _product(powers: Sequence[tuple[mpz, int]], modulus: mpz) -> mpz:
    bits = max((e.bit_length() for _, e in powers), default=0)
    window = min(WINDOWS, key=lambda w: -(-bits // w) * (len(powers) + (2 << w)))
    product = mpz(1)
    for shift in reversed(range(0, bits, window)):
        product = gmpy2.powmod(product, 1 << window, modulus)
        buckets: dict[int, mpz] = {}
        for base, e in powers:
            digit = e >> shift & ((1 << window) - 1)
            if digit:
                if digit in buckets:
                    buckets[digit] = buckets[digit] * base % modulus
                else:
                    buckets[digit] = base
        product = product * _raised(buckets, modulus) % modulus
    return product


def _raised(buckets: dict[int, mpz], modulus: mpz) -> mpz:
    """∏ bucket^digit with two multiplications a digit: products of products, from the highest digit down."""
    above = mpz(1)
    product = mpz(1)
    for digit in range(max(buckets, default=0), 0, -1):
        if digit in buckets:
            above = above * buckets[digit] % modulus
        product = product * above % modulus
    return product
