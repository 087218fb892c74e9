"""Products of ciphertexts by bin, i.e. encrypted sums for training, on several processes and with few multiplications.

The most frequent bin of a feature is not multiplied up: it is the product of all rows, computed once per node for all features, divided
by the other bins. Several sums then share one ciphertext by shifting (Horner).
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from backend.crypto.interface import BinIndex
from backend.crypto.paillier.keys import byte_width, from_blob, to_blob
from backend.crypto.workers import Workers

PARALLEL_MIN = 4000  # products per request; for fewer, other processes cost more than they save


class BinProducts:
    """Multiplies in this process or, with `workers`, on several; they read the ciphertexts from a file, written once per tree.

    On a cluster they are handed those of their node.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        self._shared: tuple[list[mpz], Path] | None = None
        self._delete: Callable[[], object] = list  # no file yet
        self.workers = workers or Workers()

    def packed_sums(
        self,
        modulus: mpz,
        ciphertexts: list[mpz],
        nodes: Sequence[tuple[NDArray[np.intp], BinIndex]],
        slots: int,
        slot_bits: int,
    ) -> list[list[mpz]]:
        """Return the sums of all bins of all features by node, `slots` per ciphertext, lowest slot first; not yet refreshed."""
        jobs = self.workers.jobs
        if not self.workers.parallel or sum(len(rows) * len(bins) for rows, bins in nodes) < PARALLEL_MIN:
            return [_pack(modulus, _sums(modulus, ciphertexts, rows, bins), slots, slot_bits) for rows, bins in nodes]
        width = byte_width(modulus)
        tasks = (
            (source, width, int(modulus), blob_or_file, [(index.astype(np.int32), count) for index, count in part])
            for rows, bins in nodes
            for source, blob_or_file in [self._source(ciphertexts, rows, width)]
            for part in _evenly(bins, jobs)
        )
        sums_of_parts = self.workers.map(_sums_task, tasks)
        sums = [b"".join(next(sums_of_parts) for _ in range(jobs)) for _ in nodes]
        step = slots * width
        packing = (
            (int(modulus), width, blob[i : i + step], slot_bits) for blob in sums for i in range(0, len(blob), step)
        )
        packed = self.workers.map(_pack_task, packing)
        return [[mpz.from_bytes(next(packed), "big") for _ in range(0, len(blob), step)] for blob in sums]

    def _source(
        self, ciphertexts: list[mpz], rows: NDArray[np.intp], width: int
    ) -> tuple[str | bytes, NDArray[np.int32]]:
        """Where a worker finds a node's ciphertexts, and which ones they are: in a file, or on a cluster with the task."""
        if self.workers.local:
            return self._share(ciphertexts, width), rows.astype(np.int32)
        return to_blob([ciphertexts[i] for i in rows.tolist()], width), np.arange(len(rows), dtype=np.int32)

    def _share(self, ciphertexts: list[mpz], width: int) -> str:
        """A file of the ciphertexts, written once per list of them."""
        if self._shared is None or self._shared[0] is not ciphertexts:
            self.close()
            folder = Path(tempfile.mkdtemp(prefix="glassleaf-"))
            self._delete = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            (folder / "pairs").write_bytes(to_blob(ciphertexts, width))
            self._shared = ciphertexts, folder
        return str(self._shared[1] / "pairs")

    def close(self) -> None:
        """Delete the file; it is also deleted with this object."""
        self._delete()
        self._shared = None


def _evenly(bins: BinIndex, parts: int) -> list[BinIndex]:
    """Features in `parts` runs of about equal length, possibly empty."""
    edges = [round(i * len(bins) / parts) for i in range(parts + 1)]
    return [bins[a:b] for a, b in pairwise(edges)]


def _sums(modulus: mpz, ciphertexts: list[mpz], rows: NDArray[np.intp], bins: BinIndex) -> list[mpz]:
    """Return the product of each bin of each feature; the neutral ciphertext 1 for an empty bin."""
    ciphertexts_of_rows = [ciphertexts[i] for i in rows.tolist()]
    total = mpz(1)
    for c in ciphertexts_of_rows:
        total = total * c % modulus
    out: list[mpz] = []
    for index, count in bins:
        frequent = int(np.bincount(index, minlength=count).argmax())
        sums = [mpz(1)] * count
        for i in np.flatnonzero(index != frequent).tolist():
            sums[index[i]] = sums[index[i]] * ciphertexts_of_rows[i] % modulus
        others = mpz(1)
        for c in sums:
            others = others * c % modulus
        # Enc(Σ frequent) = Enc(Σ all) / Enc(Σ others)
        sums[frequent] = total * gmpy2.invert(others, modulus) % modulus
        out += sums
    return out


def _pack(modulus: mpz, sums: list[mpz], slots: int, slot_bits: int) -> list[mpz]:
    return [_horner(modulus, sums[i : i + slots], slot_bits) for i in range(0, len(sums), slots)]


def _horner(modulus: mpz, sums: list[mpz], slot_bits: int) -> mpz:
    # Enc(Σ 2^(slot_bits·i)·sum_i): c^(2^slot_bits) shifts a plaintext by one slot
    shift = mpz(1) << slot_bits
    value = mpz(1)
    for c in reversed(sums):
        value = gmpy2.powmod(value, shift, modulus) * c % modulus
    return value


@lru_cache(maxsize=2)
def _read_shared(file: str, width: int) -> list[mpz]:
    return from_blob(Path(file).read_bytes(), width)


def _sums_task(source: str | bytes, width: int, modulus: int, rows: NDArray[np.intp], bins: BinIndex) -> bytes:
    if isinstance(source, str):
        ciphertexts = _read_shared(source, width)
    else:
        ciphertexts = from_blob(source, width)
    return to_blob(_sums(mpz(modulus), ciphertexts, rows, bins), width)


def _pack_task(modulus: int, width: int, sums: bytes, slot_bits: int) -> bytes:
    return to_blob([_horner(mpz(modulus), from_blob(sums, width), slot_bits)], width)
