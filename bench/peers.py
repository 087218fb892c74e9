"""Other people's ciphers, where they are installed: `phe` (python-paillier) and SecretFlow's HEU (package sf-heu). One thread each."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import phe

from backend.crypto.paillier.keys import PaillierSecretKey
from bench.timing import took

TEXTBOOK_NUMBERS = 8  # encrypted by phe each time; it is linear, and slow
PEERS = {"phe": "`phe`", "heu-zpaillier": "HEU ZPaillier", "heu-elgamal": "HEU EC-ElGamal"}


class Peer(ABC):
    """A cipher that encrypts numbers one by one; a sample is a ciphertext a leaf.

    Attributes
    ----------
    at_a_time : int
        Numbers encrypted each time it is measured; 0 = all of a sample.
    """

    peer = True
    ways = ("cold",)
    at_a_time = 0
    name: str
    key: str
    _ciphertexts: Any = None

    @property
    def label(self) -> str:
        """Its name in a table."""
        return PEERS[self.name]

    def encrypt(self, how: str, values: np.ndarray) -> float:
        """Seconds a number; nothing is made in advance."""
        few = values[: self.at_a_time or len(values)]
        return took(self.encrypted, few) / len(few)

    @abstractmethod
    def encrypted(self, values: np.ndarray) -> Any:
        """Ciphertexts of some integers."""

    def masked_sum(self, values: np.ndarray, kept: np.ndarray) -> tuple[float, float]:
        """Seconds to add up the kept ciphertexts of one sample, and to decrypt the sum."""
        few = values[: self.at_a_time or len(values)]
        if self._ciphertexts is None:
            self._ciphertexts = self.encrypted(few)
        places = (np.flatnonzero(kept) % len(few)).tolist()
        began = time.perf_counter()
        total = self.summed(self._ciphertexts, places)
        summed = time.perf_counter()
        found = self.decrypted(total)
        done = time.perf_counter()
        if found != int(few[places].sum()):
            raise ArithmeticError(f"{self.name} decrypts {found}; the sum is {few[places].sum()}.")
        return summed - began, done - summed

    @abstractmethod
    def summed(self, ciphertexts: Any, places: list[int]) -> Any:
        """The sum of the ciphertexts at `places`."""

    @abstractmethod
    def decrypted(self, total: Any) -> int:
        """The integer behind a sum."""

    def refresh(self, repeats: int) -> dict[str, float]:
        """Seconds to make a fresh zero."""
        return {"made_seconds": median(took(self.encrypted, np.zeros(1, np.int64)) for _ in range(repeats))}

    @abstractmethod
    def bytes_per_number(self) -> float:
        """Of a ciphertext as the library writes it."""


class Phe(Peer):
    """python-paillier, which uses gmpy2 where it is installed, as here."""

    name = "phe"
    at_a_time = TEXTBOOK_NUMBERS

    def __init__(self, secret: PaillierSecretKey) -> None:
        bits = secret.public.bits
        self.key = f"{bits:,} bits"
        self._public = phe.PaillierPublicKey(int(secret.public.n))
        self._secret = phe.PaillierPrivateKey(self._public, int(secret.p), int(secret.q))
        self._width = bits // 4

    def encrypted(self, values: np.ndarray) -> list[phe.EncryptedNumber]:
        """By its own `encrypt`."""
        return [self._public.encrypt(v) for v in values.tolist()]

    def summed(self, ciphertexts: list[phe.EncryptedNumber], places: list[int]) -> phe.EncryptedNumber:
        """By its own `+`."""
        return sum((ciphertexts[i] for i in places[1:]), ciphertexts[places[0]])

    def decrypted(self, total: phe.EncryptedNumber) -> int:
        """By its own `decrypt`."""
        return int(self._secret.decrypt(total))

    def bytes_per_number(self) -> float:
        """Of the number alone; its exponent and class come on top."""
        return float(self._width)


class Heu(Peer):
    """HEU's vector interface; its pool of threads gets the cores that this thread has when it is first used."""

    def __init__(self, name: str, key: str, schema: str, bits: int) -> None:
        from heu import numpy as vectors  # noqa: PLC0415 (an optional package)
        from heu import phe as scalars  # noqa: PLC0415

        self.name, self.key = name, key
        with stdout_on_stderr():
            kit = vectors.setup(getattr(scalars.SchemaType, schema), bits)
            self._array = lambda values: kit.array(values, kit.integer_encoder(1))
            self._encrypt = kit.encryptor().encrypt
            self._sum, self._decrypt = kit.evaluator().select_sum, kit.decryptor().decrypt
            self._encrypt(self._array(np.arange(4)))

    def encrypted(self, values: np.ndarray) -> Any:
        """All at once."""
        return self._encrypt(self._array(values))

    def summed(self, ciphertexts: Any, places: list[int]) -> Any:
        """By its own choice-and-sum."""
        return self._sum(ciphertexts, places)

    def decrypted(self, total: Any) -> int:
        """Of a whole number at scale 1."""
        return int(str(self._decrypt(total)))

    def bytes_per_number(self) -> float:
        """As HEU writes an array."""
        return len(self.encrypted(np.arange(64)).serialize()) / 64


def peers_present(secret: PaillierSecretKey, names: tuple[str, ...]) -> list[Peer]:
    """Those of `names` that are installed, with keys of the same size; of fixed size where the cipher has one."""
    bits = secret.public.bits
    found: list[Peer] = [Phe(secret)] if "phe" in names else []
    if find_spec("heu") is not None:
        if "heu-zpaillier" in names:
            found.append(Heu("heu-zpaillier", f"{bits:,} bits", "ZPaillier", bits))
        if "heu-elgamal" in names:
            found.append(Heu("heu-elgamal", "ed25519", "ElGamal", 256))
    return found


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """HEU's C++ writes a log line to standard output, where our JSON goes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
