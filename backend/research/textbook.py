"""Textbook Paillier on this machine: the time in which `phe` encrypts one number."""

from __future__ import annotations

import time
from functools import lru_cache
from statistics import median

import phe

from backend.crypto.paillier.key_certificate import split

REPEATS = 5


@lru_cache(maxsize=8)
def encrypt_seconds(public: bytes) -> float:
    """Median processor seconds of one encryption by `phe` under a key as it is offered (n and its certificate), one thread."""
    key = phe.PaillierPublicKey(int.from_bytes(split(public)[0], "big"))
    seconds = []
    for number in range(REPEATS):
        began = time.thread_time()
        key.raw_encrypt(number)
        seconds.append(time.thread_time() - began)
    return median(seconds)
