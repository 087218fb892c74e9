"""A proof that gcd(n, φ(n)) = 1, so that refreshing hides: made by the Guest once per key, checked by a Host once per offer.

Goldberg, Reyzin, Sagga and Baldimtsi, "Efficient Noninteractive Certification of RSA Moduli and Beyond" (ASIACRYPT 2019, ePrint 2018/057),
the certificate for Paillier moduli. If a prime p divided both n and φ(n), at most one in p units modulo n would be an n-th power. A Host
has seen that n has no factor below 2^16; eight units hashed from n itself, so that nobody chose them, then all have an n-th root with a
probability of at most 2^-128. The roots disclose nothing about the factors: a simulator that programs the hash makes them without.
"""

from __future__ import annotations

from hashlib import shake_256

import gmpy2
from gmpy2 import mpz

from backend.crypto.paillier.keys import PaillierSecretKey, byte_width, from_blob, to_blob
from backend.errors import SecurityError

FACTORS_BELOW = 16  # bits: a Host has excluded smaller factors of n (PaillierPublicKey.from_bytes)
SOUNDNESS = 128  # bits: a key of the wrong form passes with probability 2^-128
ROOTS = SOUNDNESS // FACTORS_BELOW
SPARE_BYTES = 16  # hashed beyond n's size before it is reduced: 2^-128 from uniform
_DOMAIN = b"Glassleaf key certificate 1"


def certify(p: mpz, q: mpz) -> bytes:
    """n-th roots of the :data:`ROOTS` challenges of n = p·q, each as wide as n.

    Raises SecurityError if n has a factor in common with φ(n).
    """
    key = PaillierSecretKey(p, q)
    n = p * q
    if p == q or gmpy2.gcd(n, (p - 1) * (q - 1)) != 1:
        raise SecurityError("modulus_unprovable")
    return to_blob(map(key.nth_root, challenges(n)), byte_width(n))


def check(n: mpz, certificate: bytes) -> None:
    """Refuse a key whose certificate does not hold; small factors of n have to be excluded before.

    Raises SecurityError if it is missing, or a root is wrong.
    """
    width = byte_width(n)
    if len(certificate) != ROOTS * width:
        raise SecurityError("certificate_of_other_length", got=len(certificate), asked=ROOTS * width, roots=ROOTS)
    for challenge, root in zip(challenges(n), from_blob(certificate, width), strict=True):
        if gmpy2.gcd(challenge, n) != 1 or not 0 < root < n or gmpy2.powmod(root, n, n) != challenge:
            raise SecurityError("certificate_wrong")


def challenges(n: mpz) -> list[mpz]:
    """:data:`ROOTS` numbers below n that follow from n alone."""
    size = byte_width(n)
    head = _DOMAIN + int(n).to_bytes(size, "big")
    digests = (shake_256(head + i.to_bytes(2, "big")).digest(size + SPARE_BYTES) for i in range(ROOTS))
    return [mpz.from_bytes(digest, "big") % n for digest in digests]


def split(offer: bytes) -> tuple[bytes, bytes]:
    """An offered key → n, big-endian, and its certificate; a bare n has an empty one."""
    if len(offer) % (ROOTS + 1) == 0:
        width = len(offer) // (ROOTS + 1)
    else:
        width = len(offer)
    return offer[:width], offer[width:]
