"""A light group in place of ristretto255, for what is aligned around it: nothing there depends on how hard logarithms are to find.

An element is its own logarithm: 32 bytes, a number from 1 to the order less 1. Sums, multiples and inverses are those of ristretto255,
and what is no element, the identity or a multiple by 0 is refused as there. It hides nothing.
Alignments around a test's subject mask the ids of a message at once: an element is a hash, a multiple is the hash with a scalar's bits
turned, which commutes and is undone by itself.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
import rbcl

from backend.crypto import ristretto
from backend.crypto.ristretto import ELEMENT, split
from backend.errors import SecurityError
from backend.jobs import work
from backend.protocols.alignment import dh

ORDER = 2**252 + 27742317777372353535851937790883648493  # RFC 9496 §4


def number(element: bytes) -> int:
    return int.from_bytes(element, "little")


def element(number: int) -> bytes:
    return (number % ORDER).to_bytes(ELEMENT, "little")


def multiples(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    products = []
    for scalar, one in pairs:
        if len(scalar) != ELEMENT or len(one) != ELEMENT or not 0 < number(one) < ORDER or not number(scalar) % ORDER:
            raise SecurityError("32 bytes came that are no element of ristretto255's light stand-in; refused.")
        products.append(element(number(scalar) * number(one)))
    return products


def below(some: bytes) -> bytes:
    """32 bytes as a number under 2**252, which is an element, also with others turned into it."""
    return some[:-1] + bytes([some[-1] & 0x0F])


def turned(scalars: Sequence[bytes], elements: Sequence[bytes]) -> list[bytes]:
    masks, bits = (np.frombuffer(b"".join(items), dtype=np.uint8) for items in (scalars, elements))
    return split((masks ^ bits).tobytes(), len(elements))


def at_once(function: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
    work.check()
    return list(function(items)) if items else []


@contextmanager
def light_group() -> Iterator[None]:
    """Alignments of this process compute in the light group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ristretto, "_multiply", multiples)
        patch.setattr(rbcl, "crypto_core_ristretto255_from_hash", lambda uniform: element(number(uniform)))
        patch.setattr(rbcl, "crypto_scalarmult_ristretto255_base", lambda scalar: element(number(scalar)))
        patch.setattr(rbcl, "crypto_core_ristretto255_add", lambda one, other: element(number(one) + number(other)))
        patch.setattr(rbcl, "crypto_core_ristretto255_sub", lambda one, other: element(number(one) - number(other)))
        patch.setattr(dh, "random_scalars", lambda n: [below(os.urandom(ELEMENT))] * n)
        patch.setattr(dh, "hash_to_group", lambda data, domain: below(sha256(data).digest()))
        patch.setattr(dh, "multiply_each", turned)
        patch.setattr(dh, "invert", lambda scalars: scalars)
        patch.setattr(dh, "over_threads", at_once)
        yield
