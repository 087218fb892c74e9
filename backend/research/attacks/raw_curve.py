"""T3: what ids blinded by multiplication on raw X25519 still show. Plays the other party of an alignment; knows the possible ids.

A hash taken as the u of a point lies on the curve or on its twist, and so do all its multiples, whatever the secret scalar: a bit of
the id shows. And a point of order 8, sent in place of a blinded id, returns the scalar modulo 8 unless its lowest bits were cleared
(up to the sign; 0 and 4 look alike). Elements of ristretto255 have one prime order.
"""

from __future__ import annotations

import hashlib
import secrets

import gmpy2
import numpy as np
from gmpy2 import mpz

from backend.crypto.ristretto import multiply, random_scalars
from backend.errors import SecurityError
from backend.protocols.alignment.dh import blind
from backend.research.attacks.keys import matches
from backend.research.attacks.result import AttackOutcome, count

P = mpz(2) ** 255 - 19
A = 486662  # v² = u³ + A·u² + u (RFC 7748 §4.1)
A24 = 121665  # (A - 2) / 4
ORDER_8 = mpz(325606250916557431795983626356110631294008115727848805560023387167927233504)  # u of such a point
SCALARS = 32


def run(seed: int, pairs: int = 128) -> AttackOutcome:
    """Guess which of two ids was blinded, `pairs` times; of the two, one lies on the curve and one on its twist."""
    draw = np.random.default_rng(seed)
    names = [f"customer {i}".encode() for i in range(4 * pairs + 64)]
    on, off = ([data for data in names if on_curve(hash_to_u(data)) == side] for side in (True, False))
    first = draw.random(pairs) < 0.5
    blinded = [(on if a else off)[i] for i, a in enumerate(first)]

    def raw() -> tuple[int, int]:
        return matches([on_curve(ladder(_clamped(), hash_to_u(data))) for data in blinded], first)

    def shipped() -> tuple[int, int]:
        elements = []
        for data, scalar in zip(blinded, random_scalars(pairs), strict=True):
            elements.append(blind(data, scalar))
        return matches([on_curve(mpz.from_bytes(element, "little") % P) for element in elements], first)

    rates = {"small_order": _residues_read() / SCALARS, "identity_accepted": float(_identity_accepted())}
    return AttackOutcome(count(raw), count(shipped), chance=0.5, setting={"pairs": pairs}, rates=rates)


def hash_to_u(data: bytes) -> mpz:
    """An id's hash, taken as a u-coordinate."""
    return mpz.from_bytes(hashlib.sha256(data).digest(), "little") % P


def on_curve(u: mpz) -> bool:
    """Whether u³ + A·u² + u is a square: else u belongs to a point of the twist."""
    return bool(gmpy2.legendre(u * (u * u + A * u + 1) % P, P) == 1)


def _clamped() -> int:
    """A secret scalar of RFC 7748 §5: a multiple of 8 with bit 254 set."""
    return secrets.randbits(254) & ~7 | 1 << 254


def ladder(scalar: int, u: mpz) -> mpz:
    """Return the u-coordinate of a multiple, by the Montgomery ladder of RFC 7748 §5; the formula is the same on curve and twist."""
    x2 = mpz(1)
    z2 = mpz(0)
    x3 = u
    z3 = mpz(1)
    for bit in f"{scalar:b}":
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
        plus = x2 + z2
        minus = x2 - z2
        plus_squared = plus * plus
        minus_squared = minus * minus
        cb = minus * (x3 + z3) % P
        da = plus * (x3 - z3) % P
        x3 = (cb + da) ** 2 % P
        z3 = u * (cb - da) ** 2 % P
        difference = plus_squared - minus_squared
        x2 = plus_squared * minus_squared % P
        z2 = difference * (plus_squared + A24 * difference) % P
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * gmpy2.powmod(z2, P - 2, P) % P


def _residues_read() -> int:
    """Unclamped scalars whose residue modulo 8 shows in a multiple of a point of order 8."""
    residue = {ladder(i, ORDER_8): i % 4 for i in (1, 2, 3, 4)}
    scalars = [secrets.randbits(252) | 1 << 252 for _ in range(SCALARS)]
    return sum(residue[ladder(k, ORDER_8)] == min(k % 8, -k % 8) % 4 for k in scalars)


def _identity_accepted() -> bool:
    """Whether our group accepts its one element of small order."""
    try:
        multiply(random_scalars(1)[0], bytes(32))
    except SecurityError:
        return False
    return True
