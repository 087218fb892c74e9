"""The Guest's side of sums by bin under RLWE: encrypts a node's rows in blocks, decrypts the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from backend.crypto.interface import IntArray, check_length
from backend.crypto.rlwe.bin_sums import pieces
from backend.crypto.rlwe.coefficients import best_block, blocks, groups, sum_positions
from backend.crypto.rlwe.ring import ring
from backend.crypto.rlwe.scheme import RlweKeySide
from backend.crypto.rlwe.sum_parameters import features_a_reply
from backend.crypto.workers import Workers
from backend.errors import ParameterError

Payload = tuple[tuple[str, str | int | bytes], ...]
PARALLEL_MIN = 16  # ciphertexts of a node from which on worker processes encrypt


class RlweSumKey:
    """The Guest's side.

    Parameters
    ----------
    side : RlweKeySide
        Of a set that holds the training's sums.
    workers : Workers, optional
        Who encrypts; default this process alone.
    """

    scheme = "rlwe"

    def __init__(self, side: RlweKeySide, workers: Workers | None = None) -> None:
        self._side = side
        self._workers = workers or Workers()
        self.parameters = side.parameters
        self._ring = ring(side.parameters.name)
        self._payload = tuple(side.worker_payload().items())
        self.bits = side.bits
        self.limit = side.limit

    def __repr__(self) -> str:
        return f"RlweSumKey({self.parameters.name})"

    def offer(self) -> bytes:
        """As of :class:`RlweKeySide`."""
        return self._side.offer()

    @property
    def number_bits(self) -> int:
        """Bits that a sum of numbers holds at most."""
        return (2 * self.limit + 1).bit_length()

    def flags_a_number(self, rows: int) -> int:
        """How many sums of so many 0/1 fit one number: its digits to the base rows + 1."""
        digits = 1
        while (rows + 1) ** (digits + 1) <= self.limit:
            digits += 1
        return digits

    def block(self, rows: int, hosts: Sequence[Sequence[int]], numbers: int) -> int:
        """Rows of a block that cost least: see :func:`backend.crypto.rlwe.coefficients.best_block`."""
        return best_block(rows, hosts, numbers, self.bits)

    def encrypt(self, values: IntArray, block: int) -> Iterator[bytes]:
        """Encrypt ``(numbers, rows)`` integers: yield pieces of whole blocks, each block's numbers one after the other.

        Raises ParameterError if their sums could overflow.
        """
        largest = int(np.abs(values).sum(axis=1).max(initial=0))
        if largest > self.limit:
            raise ParameterError("sums_exceed_rlwe_key", largest=largest, limit=self.limit)
        numbers, rows = values.shape
        cut = blocks(rows, block)
        parts = []
        for piece in pieces(len(cut), self._ring, numbers):
            parts.append([values[:, cut[i]] for i in piece])
        if not self._workers.parallel or len(cut) * numbers < PARALLEL_MIN:
            yield from (_encrypted(self._payload, part) for part in parts)
            return
        jobs = self._workers.jobs
        tasks = (
            (self._payload, part[i : i + -(-len(part) // jobs)]) for part in parts for i in _starts(len(part), jobs)
        )
        encrypted_parts = self._workers.map(_encrypted, tasks)
        for part in parts:
            yield b"".join(next(encrypted_parts) for _ in _starts(len(part), jobs))

    def decrypt(self, blob: bytes, rows: int, counts: Sequence[int], block: int, numbers: int) -> IntArray:
        """``(numbers, bins)`` sums of a node, from -limit to limit.

        Parameters
        ----------
        rows : int
            That were sent.
        counts : sequence of int
            Bins of each feature.

        Raises
        ------
        SecurityError
            The reply is none.
        """
        width = self._ring.full_width
        cut = groups(counts, block, self.bits, features_a_reply(self.parameters, rows))
        check_length(blob, len(cut) * numbers, width)
        sums = np.empty((numbers, sum(counts)), dtype=np.int64)
        for i, group in enumerate(cut):
            at = sum_positions(group, block)
            for p in range(numbers):
                start = (i * numbers + p) * width
                sums[p, group.start : group.stop] = self._side.decrypt_coefficients(blob[start : start + width], at)
        return sums


def _starts(count: int, jobs: int) -> range:
    return range(0, count, -(-count // jobs))


def _encrypted(payload: Payload, part: Sequence[IntArray]) -> bytes:
    return _side(payload).encrypt_coefficients([number for block in part for number in block])


@lru_cache(maxsize=4)
def _side(payload: Payload) -> RlweKeySide:
    return RlweKeySide.from_worker_payload(dict(payload))
