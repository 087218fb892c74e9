"""Products of ciphertexts by bin: encrypted sums for training, spread over processes, few multiplications.

The most frequent bin of a feature is not multiplied up but divided out of the product of all rows, which is made once per node for
all features. Several sums then share one ciphertext by shifting (Horner).
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

from backend.crypto.workers import Workers

BinIndex = list[tuple[NDArray[np.intp], int]]  # per feature: the bin of each row (k,), and the number of bins
WORTH_SHARING = 4000  # products in a request below which other processes cost more than they save


class BinProducts:
    """Who multiplies.

    Parameters
    ----------
    workers : Workers
        This machine's processes; ciphertexts reach them through a file, once a tree.
    """

    def __init__(self, workers: Workers | None = None) -> None:
        self._shared: tuple[list[mpz], Path] | None = None
        self._delete: Callable[[], object] = list  # nothing is there yet
        self._workers = workers or Workers()

    def packed_sums(
        self,
        modulus: mpz,
        ciphertexts: list[mpz],
        nodes: Sequence[tuple[NDArray[np.intp], BinIndex]],
        slots: int,
        slot_bits: int,
    ) -> list[list[mpz]]:
        """Per node: the sums of all bins of all features, `slots` to a ciphertext, lowest slot first; not yet refreshed."""
        jobs = self._workers.jobs
        if jobs == 1 or sum(len(rows) * len(bins) for rows, bins in nodes) < WORTH_SHARING:
            return [_pack(modulus, _sums(modulus, ciphertexts, rows, bins), slots, slot_bits) for rows, bins in nodes]
        width = (int(modulus.bit_length()) + 7) // 8
        file = self._share(ciphertexts, width)
        tasks = [
            (
                file,
                width,
                int(modulus),
                rows.astype(np.int32),
                [(index.astype(np.int32), count) for index, count in part],
            )
            for rows, bins in nodes
            for part in _evenly(bins, jobs)
        ]
        made = self._workers.map(_sums_task, tasks)
        flat = [[mpz.from_bytes(c, "big") for blob in (next(made) for _ in range(jobs)) for c in blob] for _ in nodes]
        packing = (
            (int(modulus), width, [c.to_bytes(width, "big") for c in sums[i : i + slots]], slot_bits)
            for sums in flat
            for i in range(0, len(sums), slots)
        )
        packed = self._workers.map(_pack_task, packing)
        return [[mpz.from_bytes(next(packed), "big") for _ in range(0, len(sums), slots)] for sums in flat]

    def _share(self, ciphertexts: list[mpz], width: int) -> str:
        """A file of the ciphertexts, written once per list of them."""
        if self._shared is None or self._shared[0] is not ciphertexts:
            self.close()
            folder = Path(tempfile.mkdtemp(prefix="glassleaf-"))
            self._delete = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            (folder / "pairs").write_bytes(b"".join(c.to_bytes(width, "big") for c in ciphertexts))
            self._shared = ciphertexts, folder
        return str(self._shared[1] / "pairs")

    def close(self) -> None:
        """Delete the file; it goes with this object, too."""
        self._delete()
        self._shared = None


def _evenly(bins: BinIndex, parts: int) -> list[BinIndex]:
    """Features in `parts` runs of about equal length; a run may be empty."""
    edges = [round(i * len(bins) / parts) for i in range(parts + 1)]
    return [bins[a:b] for a, b in pairwise(edges)]


def _sums(modulus: mpz, ciphertexts: list[mpz], rows: NDArray[np.intp], bins: BinIndex) -> list[mpz]:
    """The product of each bin of each feature; the neutral ciphertext 1 for an empty bin."""
    chosen = [ciphertexts[i] for i in rows.tolist()]
    total = mpz(1)
    for c in chosen:
        total = total * c % modulus
    out: list[mpz] = []
    for index, count in bins:
        most = int(np.bincount(index, minlength=count).argmax())
        sums = [mpz(1)] * count
        for place in np.flatnonzero(index != most).tolist():
            b = index[place]
            sums[b] = sums[b] * chosen[place] % modulus
        others = mpz(1)
        for c in sums:
            others = others * c % modulus
        sums[most] = total * gmpy2.invert(others, modulus) % modulus
        out += sums
    return out


def _pack(modulus: mpz, sums: list[mpz], slots: int, slot_bits: int) -> list[mpz]:
    return [_horner(modulus, sums[i : i + slots], slot_bits) for i in range(0, len(sums), slots)]


def _horner(modulus: mpz, sums: list[mpz], slot_bits: int) -> mpz:
    shift, value = mpz(1) << slot_bits, mpz(1)
    for c in reversed(sums):
        value = gmpy2.powmod(value, shift, modulus) * c % modulus
    return value


@lru_cache(maxsize=2)
def _read_shared(file: str, width: int) -> list[mpz]:
    blob = Path(file).read_bytes()
    return [mpz.from_bytes(blob[i : i + width], "big") for i in range(0, len(blob), width)]


def _sums_task(file: str, width: int, modulus: int, rows: NDArray[np.intp], bins: BinIndex) -> list[bytes]:
    sums = _sums(mpz(modulus), _read_shared(file, width), rows, bins)
    return [c.to_bytes(width, "big") for c in sums]


def _pack_task(modulus: int, width: int, sums: list[bytes], slot_bits: int) -> bytes:
    packed = _horner(mpz(modulus), [mpz.from_bytes(c, "big") for c in sums], slot_bits)
    return bytes(packed.to_bytes(width, "big"))
