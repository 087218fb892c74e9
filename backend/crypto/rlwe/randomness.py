"""Random bytes for RLWE: AES-256 in counter mode under a key that the system draws. The system's own take ten times as long."""

from __future__ import annotations

import os
from collections.abc import Callable

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

SEED_BYTES = 32


def stream_of(seed: bytes) -> Callable[[int], bytes]:
    """What gives the next so many bytes of a seed's stream."""
    update = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update
    return lambda count: update(bytes(count))


def random_bytes(count: int) -> bytes:
    """`count` bytes under a key of their own, drawn each time: nothing is kept that two processes could share."""
    return stream_of(os.urandom(SEED_BYTES))(count)
