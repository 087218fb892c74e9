"""Other people's ciphers, where they are installed: `phe` (python-paillier) and SecretFlow's HEU (package sf-heu). One thread each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import phe

from backend.crypto.paillier.keys import PaillierSecretKey
from bench.timing import seconds_of

TEXTBOOK_NUMBERS = 8  # encrypted by phe each time; it is linear, and slow
PEERS = {"phe": "`phe`", "heu-zpaillier": "HEU ZPaillier", "heu-elgamal": "HEU EC-ElGamal"}


@dataclass
class Peer:
    """A cipher that encrypts numbers one by one; a sample is a ciphertext a leaf.

    Attributes
    ----------
    name, key : str
        One of :data:`PEERS`, and its key in words.
    encrypt_numbers : callable
        ``(n,)`` integers → ciphertexts.
    add : callable
        Ciphertexts, and indices of those to add up → the sum's ciphertext.
    decrypt_number : callable
        A ciphertext → its integer.
    bytes_per_number : callable
        Of a ciphertext as the library writes it.
    numbers_each_time : int
        Numbers encrypted each time it is measured; 0 = all of a sample.
    """

    name: str
    key: str
    encrypt_numbers: Callable[[np.ndarray], Any]
    add: Callable[[Any, list[int]], Any]
    decrypt_number: Callable[[Any], int]
    bytes_per_number: Callable[[], float]
    numbers_each_time: int = 0
    peer = True
    states = ("cold",)
    _ciphertexts: Any = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """Its name in a table."""
        return PEERS[self.name]

    def encrypt(self, state: str, values: np.ndarray) -> float:
        """Seconds a number; nothing is precomputed."""
        few = self._few(values)
        return seconds_of(self.encrypt_numbers, few) / len(few)

    def masked_sum(self, values: np.ndarray, kept: np.ndarray) -> tuple[float, float]:
        """Seconds to add up the kept ciphertexts of one sample, and to decrypt the sum."""
        few = self._few(values)
        if self._ciphertexts is None:
            self._ciphertexts = self.encrypt_numbers(few)
        indices = (np.flatnonzero(kept) % len(few)).tolist()
        began = time.perf_counter()
        total = self.add(self._ciphertexts, indices)
        added = time.perf_counter()
        decrypted = self.decrypt_number(total)
        done = time.perf_counter()
        if decrypted != int(few[indices].sum()):
            raise ArithmeticError(f"{self.name} decrypts {decrypted}; the sum is {few[indices].sum()}.")
        return added - began, done - added

    def refresh(self, repeats: int) -> dict[str, float]:
        """Seconds to make a fresh zero."""
        zero = np.zeros(1, np.int64)
        return {"made_seconds": median(seconds_of(self.encrypt_numbers, zero) for _ in range(repeats))}

    def _few(self, values: np.ndarray) -> np.ndarray:
        return values[: self.numbers_each_time or len(values)]


def phe_peer(secret: PaillierSecretKey) -> Peer:
    """python-paillier, which uses gmpy2 where it is installed, as here."""
    bits = secret.public.bits
    public = phe.PaillierPublicKey(int(secret.public.n))
    private = phe.PaillierPrivateKey(public, int(secret.p), int(secret.q))
    return Peer(
        "phe",
        f"{bits:,} bits",
        encrypt_numbers=lambda values: [public.encrypt(value) for value in values.tolist()],
        add=lambda ciphertexts, indices: sum((ciphertexts[i] for i in indices[1:]), ciphertexts[indices[0]]),
        decrypt_number=lambda total: int(private.decrypt(total)),
        # of the number modulo n² alone; its exponent and class come on top
        bytes_per_number=lambda: bits / 4,
        numbers_each_time=TEXTBOOK_NUMBERS,
    )


def heu_peer(name: str, key: str, schema: str, bits: int) -> Peer:
    """HEU's vector interface; its pool of threads gets the cores that this thread has when it is first used."""
    from heu import numpy as vectors  # noqa: PLC0415 (an optional package)
    from heu import phe as scalars  # noqa: PLC0415

    with stdout_on_stderr():
        kit = vectors.setup(getattr(scalars.SchemaType, schema), bits)
        encryptor = kit.encryptor()
        evaluator = kit.evaluator()
        decryptor = kit.decryptor()

        def encrypt(values: np.ndarray) -> Any:
            return encryptor.encrypt(kit.array(values, kit.integer_encoder(1)))

        encrypt(np.arange(4))
    return Peer(
        name,
        key,
        encrypt,
        add=evaluator.select_sum,
        decrypt_number=lambda total: int(str(decryptor.decrypt(total))),
        bytes_per_number=lambda: len(encrypt(np.arange(64)).serialize()) / 64,
    )


def installed_peers(secret: PaillierSecretKey, names: tuple[str, ...]) -> list[Peer]:
    """Those of `names` that are installed, with keys of the same size; of fixed size where the cipher has one."""
    bits = secret.public.bits
    peers = [phe_peer(secret)] if "phe" in names else []
    if find_spec("heu") is not None:
        if "heu-zpaillier" in names:
            peers.append(heu_peer("heu-zpaillier", f"{bits:,} bits", "ZPaillier", bits))
        if "heu-elgamal" in names:
            peers.append(heu_peer("heu-elgamal", "ed25519", "ElGamal", 256))
    return peers


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """HEU's C++ writes a log line to standard output, where our JSON goes."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
