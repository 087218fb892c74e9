"""RLWE: thousands of numbers in one ciphertext (BGV in SEAL through TenSEAL), secure against quantum attackers. The Guest's side.

The Guest's ciphertexts are symmetric and cross as a seed and c0 (:mod:`backend.crypto.rlwe.fresh`), a Host's as SEAL saves them, filled up
with zeros to a length both sides work out. The layout is :mod:`backend.crypto.rlwe.layout`'s.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import IntArray, WorkerPayload, check_length
from backend.crypto.rlwe import seal
from backend.crypto.rlwe.fresh import SymmetricEncryption
from backend.crypto.rlwe.layout import blocks_of, cuts
from backend.crypto.rlwe.parameters import RlweParameters
from backend.crypto.rlwe.ring import read, ring, written
from backend.crypto.rlwe.zeros import zeros_under
from backend.errors import ParameterError, SecurityError

PARALLEL_MIN = 512  # ciphertexts from which on worker processes encrypt: about a second of work


@dataclass(frozen=True)
class RlweSecretKey:
    """A key pair as SEAL saves it.

    Attributes
    ----------
    secret : bytes
        Ternary polynomial; never shown in `repr`.
    public : bytes
        (-(a·s + t·e), a), a as its seed.
    """

    parameters: RlweParameters
    secret: bytes = field(repr=False)
    public: bytes = field(repr=False)

    @classmethod
    def generate(cls, parameters: RlweParameters) -> RlweSecretKey:
        """Draw a new key."""
        context = ring(parameters.name).context
        secret = seal.KeyGenerator(context).secret_key()
        public = seal.Encryptor(context, secret).encrypt_zero_symmetric(context.key_parms_id())
        return cls(parameters, written(secret), written(public))

    def to_numbers(self) -> dict[str, str]:
        """Text for the Guest's own key file."""
        halves = {"secret": self.secret, "public": self.public}
        return {"parameters": self.parameters.name} | {name: b64encode(blob).decode() for name, blob in halves.items()}

    @classmethod
    def from_numbers(cls, numbers: dict[str, str]) -> RlweSecretKey:
        """Inverse of :meth:`to_numbers`; raises SecurityError if the text is no usable key pair."""
        try:
            parameters = ring(numbers["parameters"]).parameters
            key = cls(parameters, *(b64decode(numbers[name], validate=True) for name in ("secret", "public")))
            side = RlweKeySide(key)
            zero = zeros_under(side.offer()).make()
        except (KeyError, Base64Error, SecurityError) as error:
            raise SecurityError("key_file_damaged") from error
        if not side.noise_budget(zero):
            raise SecurityError("key_file_of_two_keys")
        return key


class RlweKeySide:
    """The Guest's side: symmetric encryption, so that half of each ciphertext is a seed."""

    scheme = "rlwe"

    def __init__(self, key: RlweSecretKey) -> None:
        self._key = key
        self._ring = ring(key.parameters.name)
        self.parameters = key.parameters
        self.bits = key.parameters.degree
        self.limit = key.parameters.limit
        self.room = key.parameters.plain_modulus
        self.reply_width = self._ring.reply_width
        self.full_width = self._ring.full_width
        secret = seal.SecretKey()
        read(secret, self._ring.context, key.secret)
        self._encryption = SymmetricEncryption(self._ring, key.secret)
        self._decryptor = seal.Decryptor(self._ring.context, secret)

    def __repr__(self) -> str:
        return f"RlweKeySide({self._key.parameters.name})"

    def offer(self) -> bytes:
        """Name of the parameter set, a line feed, public key."""
        return self._key.parameters.name.encode() + b"\n" + self._key.public

    @cached_property
    def seed(self) -> bytes:
        """Seed of the owner's reproducible draws; as secret as the key."""
        return sha256(b"seed" + self._key.secret).digest()

    def worker_payload(self) -> WorkerPayload:
        """The key pair, for the party's own workers."""
        key = self._key
        return {"scheme": self.scheme, "parameters": key.parameters.name, "secret": key.secret, "public": key.public}

    @classmethod
    def from_worker_payload(cls, payload: WorkerPayload) -> RlweKeySide:
        """The same side in another process."""
        secret = payload["secret"]
        public = payload["public"]
        if not isinstance(secret, bytes) or not isinstance(public, bytes):
            raise SecurityError("worker_key_of_other_cipher")
        return cls(RlweSecretKey(ring(str(payload["parameters"])).parameters, secret, public))

    def rows_per_message(self, m: int) -> int:
        """N, so that an intermediate Host can fold; a quarter under a key for one Host: as fast, with fewer slots empty at the end."""
        parameters = self._key.parameters
        if parameters.noise(2, 1) <= parameters.noise_allowed:
            return self.bits
        return self.bits // 4

    def pieces(self, n: int, m: int) -> list[range]:
        """Whole ciphertexts, at most :data:`PIECE_BYTES` at a time."""
        blocks = blocks_of(self._ring, n)
        return [
            range(cut.start * blocks, min(cut.stop * blocks, m))
            for cut in cuts(-(-m // blocks), self._ring.seeded_width)
        ]

    def should_parallelise(self, n: int, m: int) -> bool:
        """From :data:`PARALLEL_MIN` ciphertexts on."""
        return -(-n * m // self.bits) >= PARALLEL_MIN

    def encrypt(self, values: IntArray) -> bytes:
        """``(n, k)`` integers → ``⌈k/G⌉`` ciphertexts; raises ParameterError if a number is beyond the limit, or n beyond N."""
        n, k = values.shape
        blocks = blocks_of(self._ring, n)
        largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        if largest > self.limit:
            raise ParameterError("number_exceeds_rlwe_key", largest=largest, limit=self.limit)
        signed = values.T.astype(np.int64, order="C")
        return self._encryption.encrypt(
            [self._ring.encode(signed[start : start + blocks].ravel()) for start in range(0, k, blocks)]
        )

    def decrypt(self, blob: bytes, n: int) -> list[int]:
        """``n`` sums: the blocks of the one ciphertext that comes back, added up."""
        blocks = blocks_of(self._ring, n)
        t = self._key.parameters.plain_modulus
        check_length(blob, 1, self._ring.reply_width)
        plain = seal.Plaintext()
        self._decryptor.decrypt(self._ring.ciphertext(blob, self._ring.last), plain)
        slots = np.array(self._ring.encoder.decode_int64(plain), dtype=np.int64)
        sums = slots[: blocks * n].reshape(blocks, n).sum(axis=0)
        centred: IntArray = (sums + self.limit) % t - self.limit
        return [int(v) for v in centred]

    def encrypt_coefficients(self, polynomials: Sequence[IntArray]) -> bytes:
        """Ciphertexts whose first coefficients are up to N numbers mod t each, from -limit to limit."""
        return self._encryption.encrypt(polynomials)

    def decrypt_coefficients(self, blob: bytes, at: NDArray[np.intp]) -> list[int]:
        """Return some coefficients of a reply that is still at all primes, from -limit to limit.

        Raises SecurityError if the reply is not a ciphertext of this key's set and level.
        """
        plain = seal.Plaintext()
        t = self._key.parameters.plain_modulus
        self._decryptor.decrypt(self._ring.ciphertext(blob, self._ring.first), plain)
        count = plain.coeff_count()
        numbers = [int(plain[i]) if i < count else 0 for i in at.tolist()]
        return [number if number <= self.limit else number - t for number in numbers]

    def noise_budget(self, ciphertext: Any) -> int:
        """Bits that the noise may still grow before decryption fails."""
        return int(self._decryptor.invariant_noise_budget(ciphertext))
