"""Where a Host's randomness comes from, as one port. Handlers draw from nothing else; a test gives its own of a known distribution."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from backend.protocols.scoring.dither import dithers
from backend.protocols.terms.records import Flags
from backend.protocols.transport.packing import from_bitmap
from backend.trees.ensemble import Layout

T = TypeVar("T")


class Noise(Protocol):
    """What a handler may draw.

    Attributes
    ----------
    width : float
        Of the dither on a logit; 0 = nothing is added to scores.
    """

    width: float

    def dithers(self, structure: str, layout: Layout, people: Sequence[str], has_record: Flags, half: int) -> list[int]:
        """Return the dither of each person's score: uniform from -half to half, the same in every question about the person."""

    def secret(self, purpose: str) -> bytes:
        """Return 32 bytes that only this Host knows, the same for the same purpose over restarts."""

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in a uniform random order."""

    def choice(self, items: Sequence[T]) -> T:
        """Return one item, each with the same chance."""

    def flags(self, *shape: int) -> Flags:
        """Return uniform random bits."""

    def below(self, limit: int) -> int:
        """Return a uniform random integer from 0 to `limit` - 1."""

    def salt(self) -> str:
        """Return 16 random bytes in hexadecimal."""


class HostNoise:
    """The operating system's randomness, and the Host's long-term secret.

    Parameters
    ----------
    secret : callable
        Purpose → 32 bytes that are stored at the Host.
    """

    def __init__(self, width: float, secret: Callable[[str], bytes]) -> None:
        self.width = width
        self.secret = secret
        self._random = secrets.SystemRandom()

    def dithers(self, structure: str, layout: Layout, people: Sequence[str], has_record: Flags, half: int) -> list[int]:
        """Return the dither of each person's score."""
        of_structure = hmac.digest(self.secret("dither"), structure.encode(), "sha256").hex()
        return dithers(of_structure, layout, people, has_record, half)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in a uniform random order."""
        order = list(items)
        self._random.shuffle(order)
        return order

    def choice(self, items: Sequence[T]) -> T:
        """Return one item, each with the same chance."""
        return self._random.choice(items)

    def flags(self, *shape: int) -> Flags:
        """Return uniform random bits."""
        count = int(np.prod(shape))
        return from_bitmap(secrets.token_bytes((count + 7) // 8), count).reshape(shape)

    def below(self, limit: int) -> int:
        """Return a uniform random integer from 0 to `limit` - 1."""
        return secrets.randbelow(limit)

    def salt(self) -> str:
        """Return 16 random bytes in hexadecimal."""
        return secrets.token_hex(16)
