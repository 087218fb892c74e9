"""What the Guest shows an auditor of a request: the numbers in its ciphertexts and their randomness. Nothing of a Host is in it.

A Paillier ciphertext opens in one way only: c = (1 + n)^m·r^n mod n² for exactly one m modulo n and one r modulo n, since n shares no
factor with φ(n), which every key's certificate proves. So the Guest can neither deny nor embellish what it sent, and need not remember it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.errors import SecurityError


@dataclass(frozen=True)
class Opening:
    """One person's decision vector, opened; an auditor sees leaf weights and which of them the Guest's values leave open.

    Attributes
    ----------
    numbers, roots : tuple of int
        ``(m,)`` each: plaintext and r of every entry.
    """

    numbers: tuple[int, ...] = field(repr=False)
    roots: tuple[int, ...] = field(repr=False)


def open_vector(key: PaillierKeySide, vector: bytes) -> Opening:
    """Open one person's entries; raises SecurityError if they are no ciphertexts under this key."""
    if len(vector) % key.public.width:
        raise SecurityError("logged_row_unreadable")
    opened = key.open(key.public.load(vector, len(vector) // key.public.width))
    return Opening(tuple(m for m, _ in opened), tuple(int(r) for _, r in opened))
