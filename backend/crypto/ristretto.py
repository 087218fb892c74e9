"""The group ristretto255 (RFC 9496): hash into it, multiply in it, refuse what is no element of it. Knows no party and no id.

libsodium computes, through `rbcl`. An element and a scalar are 32 bytes each; a vector of elements travels end to end.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

import rbcl

from backend.crypto.interface import check_length
from backend.crypto.workers import cores
from backend.errors import SecurityError
from backend.jobs import work

ELEMENT = 32  # bytes, RFC 9496 §4.3
UNIFORM = 64  # bytes that are mapped to an element, RFC 9496 §4.3.4
BLOCK = 128  # bytes of a SHA-512 block
SHARE = 64  # items that a thread works on in a row: a few ms

T = TypeVar("T")
R = TypeVar("R")
_times = rbcl._sodium.crypto_scalarmult_ristretto255  # product, scalar, element; not 0 if the element is refused

with suppress(OSError):  # on import rbcl unpacks libsodium into a temporary file, loads it, and leaves it lying there
    Path(rbcl._sodium._name).unlink()


def random_scalars(n: int) -> list[bytes]:
    """`n` uniform scalars: 512 random bits each, reduced modulo the group's order (RFC 9496 §4.4)."""
    return [rbcl.crypto_core_ristretto255_scalar_reduce(os.urandom(UNIFORM)) for _ in range(n)]


def invert(scalars: Sequence[bytes]) -> list[bytes]:
    """Return the inverse of every scalar, for the price of one inversion and three products each (Montgomery)."""
    if not scalars:
        return []
    times = rbcl.crypto_core_ristretto255_scalar_mul
    products = [scalars[0]]
    for scalar in scalars[1:]:
        products.append(times(products[-1], scalar))
    remaining_inverse = rbcl.crypto_core_ristretto255_scalar_invert(products[-1])
    inverses = []
    for previous_product, scalar in zip(reversed(products[:-1]), reversed(scalars[1:]), strict=True):
        inverses.append(times(remaining_inverse, previous_product))
        remaining_inverse = times(remaining_inverse, scalar)
    return [remaining_inverse, *reversed(inverses)]


def expand(data: bytes, domain: bytes) -> bytes:
    """64 uniform bytes from `data`: expand_message_xmd with SHA-512 (RFC 9380 §5.3.1)."""
    suffix = domain + len(domain).to_bytes(1)
    first = hashlib.sha512(bytes(BLOCK) + data + UNIFORM.to_bytes(2) + b"\x00" + suffix).digest()
    return hashlib.sha512(first + b"\x01" + suffix).digest()


def hash_to_group(data: bytes, domain: bytes) -> bytes:
    """An element whose logarithm nobody knows (RFC 9497 §4.1: expand_message_xmd, then the map of RFC 9496 §4.3.4)."""
    return from_uniform(expand(data, domain))


def from_uniform(uniform: bytes) -> bytes:
    """64 uniform bytes → element."""
    element: bytes = rbcl.crypto_core_ristretto255_from_hash(uniform)
    return element


def multiply(scalar: bytes, element: bytes) -> bytes:
    """Multiple of an element, in constant time.

    Raises SecurityError if `element` is no canonical encoding of a group element, or is the identity; or the scalar is 0.
    """
    work.check()
    return _multiply([(scalar, element)])[0]


def multiply_each(scalars: Sequence[bytes], elements: Sequence[bytes]) -> list[bytes]:
    """One multiple a pair, as :func:`multiply`, in this thread."""
    return _multiply(list(zip(scalars, elements, strict=True)))


def over_threads(function: Callable[[Sequence[T]], Iterable[R]], items: Sequence[T]) -> list[R]:
    """`function` of shares of the items, end to end, on a thread a core: libsodium computes with the interpreter's lock released.

    Work may be stopped before it begins.
    """
    work.check()
    shares = [items[start : start + SHARE] for start in range(0, len(items), SHARE)]
    return list(chain.from_iterable(map(function, shares) if len(shares) < 2 else _threads().map(function, shares)))


def _multiply(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    # rbcl's own function allocates and checks a buffer a call, with the lock held: a third of the time of five threads
    product = ctypes.create_string_buffer(ELEMENT)
    products = []
    for scalar, element in pairs:
        if len(scalar) != ELEMENT or len(element) != ELEMENT or _times(product, scalar, element):
            raise SecurityError("not_a_group_element")
        products.append(product.raw)
    return products


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), "ristretto")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # threads stay with the process that started them


def multiply_base(scalar: bytes) -> bytes:
    """Multiple of the generator; the scalar must not be 0."""
    product: bytes = rbcl.crypto_scalarmult_ristretto255_base(scalar)
    return product


def add(left: bytes, right: bytes) -> bytes:
    """Return the sum of two elements; libsodium checks neither, so both must have been checked."""
    total: bytes = rbcl.crypto_core_ristretto255_add(left, right)
    return total


def subtract(left: bytes, right: bytes) -> bytes:
    """Return the difference of two elements; both must have been checked."""
    difference: bytes = rbcl.crypto_core_ristretto255_sub(left, right)
    return difference


def split(blob: bytes, n: int, size: int = ELEMENT) -> list[bytes]:
    """A vector of `n` items of `size` bytes; raises SecurityError if the length is wrong, before any item is read."""
    check_length(blob, n, size)
    return [blob[start : start + size] for start in range(0, n * size, size)]
