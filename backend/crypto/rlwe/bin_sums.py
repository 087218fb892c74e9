"""A Host's side of sums by bin under RLWE: blocks of rows come in, are multiplied by 0/1 polynomials and added up. Reads none.

How rows and bins lie is :mod:`backend.crypto.rlwe.coefficients`'s; why a reply shows sums and nothing else:
docs/decisions/training.md.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import BinIndex, check_length
from backend.crypto.rlwe import seal
from backend.crypto.rlwe.coefficients import blocks, check_block, groups, mask_positions, places_of, sum_positions
from backend.crypto.rlwe.flooding import hiding
from backend.crypto.rlwe.fresh import read_fresh
from backend.crypto.rlwe.layout import cuts
from backend.crypto.rlwe.ring import Ring, written
from backend.crypto.rlwe.sum_parameters import features_a_reply, flood_range
from backend.crypto.rlwe.zeros import Zeros, zeros_under
from backend.crypto.workers import Workers
from backend.errors import SecurityError

MAX_NUMBERS = 64  # polynomials of a row that a node can have
# of 0/1 polynomials kept between trees, over all processes of a party; beyond, they are made again
MASK_BYTES = 1 << 30
# of the process that hands large nodes to others: two roots. SEAL gives nothing back, and this process may be a dashboard
SMALL_BYTES = 1 << 24
SEEN = 1024  # nodes remembered, so that polynomials are kept from the second time on that the same rows are asked about
PARALLEL_MIN = 128  # products from which on other processes save more than they cost

# A 0/1 polynomial in SEAL's form, and whether it stands for 0, which SEAL refuses to multiply by: no row of the block is in a bin of the
# group.
Mask = tuple[Any, bool]
Masks = list[list[Mask]]  # by block and group


class KeptMasks:
    """0/1 polynomials in SEAL's form, in at most `max_bytes`, of nodes asked about before: the root's are the same for every tree."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._kept: OrderedDict[bytes, tuple[int, Masks]] = OrderedDict()
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()  # simulated Hosts are threads of one process

    def find(self, name: bytes) -> Masks | None:
        """Those of a node, if they are kept."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name][1]

    def wanted(self, name: bytes, size: int) -> bool:
        """Return whether to keep a node's `size` bytes: the node was asked about before, and they fit."""
        with self._lock:
            was_seen = name in self._seen
            self._seen[name] = None
            while len(self._seen) > SEEN:
                self._seen.popitem(last=False)
        return was_seen and size <= self._max_bytes

    def keep(self, name: bytes, size: int, masks: Masks) -> None:
        """Keep them, in place of those that were not used for longest."""
        with self._lock:
            self._size -= self._kept.pop(name, (0, []))[0]
            while self._kept and self._size + size > self._max_bytes:
                self._size -= self._kept.popitem(last=False)[1][0]
            self._kept[name] = size, masks
            self._size += size


class BinSumming:
    """The sums of one node.

    Parameters
    ----------
    bins : BinIndex
        Per feature the bin of each row, in the order of their numbers.
    block : int
        Rows of a block.
    numbers : int
        Polynomials a block.

    Raises
    ------
    SecurityError
        The key is too small to hide this Host's bins, or the form is none.
    """

    def __init__(self, offered: bytes, of: Ring, bins: BinIndex, block: int, numbers: int, workers: Workers) -> None:
        check_block(block)
        if not 1 <= numbers <= MAX_NUMBERS or not bins:
            raise SecurityError("sums_not_possible", numbers=numbers, features=len(bins))
        self._offered = offered
        self._ring = of
        self._block = block
        self._numbers = numbers
        self._places = places_of(bins).astype(np.int32)
        self._workers = workers
        rows = self._places.shape[1]
        max_features = features_a_reply(of.parameters, rows)
        if not max_features:
            raise SecurityError("rows_exceed_noise", rows=rows, parameters=of.parameters.name)
        self._groups = groups([count for _, count in bins], block, of.parameters.degree, max_features)
        self._awaited = pieces(len(blocks(rows, block)), of, numbers)
        products = sum(map(len, self._awaited)) * len(self._groups) * numbers
        self._parallel = workers.parallel and products >= PARALLEL_MIN
        self._came: list[bytes] = []
        self._file: Path | None = None
        if self._parallel and workers.local:
            folder = Path(tempfile.mkdtemp(prefix="glassleaf-"))
            self._file = folder / "blocks"
            self._delete: Callable[[], object] = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def complete(self) -> bool:
        """Whether all pieces have come."""
        return not self._awaited

    def add(self, blob: bytes) -> None:
        """Take the next piece; raises SecurityError if it is none, or there was no next one."""
        if not self._awaited:
            raise SecurityError("piece_too_many")
        check_length(blob, len(self._awaited.pop(0)) * self._numbers, self._ring.seeded_width)
        if self._file is None:
            self._came.append(blob)
        else:
            with self._file.open("ab") as file:
                file.write(blob)

    def finish(self) -> bytes:
        """Return the replies of all groups, each with its numbers one after the other: masked and flooded."""
        if self._awaited:
            raise SecurityError("pieces_missing", missing=len(self._awaited))
        jobs = self._workers.jobs
        shape = (self._block, self._numbers)
        max_bytes = MASK_BYTES // (jobs + 1)
        source = b"".join(self._came) if self._file is None else str(self._file)
        if not self._parallel:
            if self._workers.parallel:
                max_bytes = SMALL_BYTES
            return replies_of(self._offered, source, self._places, self._groups, *shape, max_bytes)
        edges = np.linspace(0, len(self._groups), min(jobs, len(self._groups)) + 1).astype(int)
        cut = [self._groups[a:b] for a, b in pairwise(edges.tolist())]
        tasks = [(self._offered, source, self._places, part, *shape, max_bytes) for part in cut]
        try:
            return b"".join(self._workers.map(replies_of, tasks))
        finally:
            if self._file is not None:
                self._delete()


def pieces(count: int, of: Ring, numbers: int) -> list[range]:
    """Which blocks travel together."""
    return cuts(count, of.seeded_width * numbers)


def replies_of(
    offered: bytes,
    source: bytes | str,
    places: NDArray[np.int32],
    groups: Sequence[range],
    block: int,
    numbers: int,
    max_bytes: int,
) -> bytes:
    """Return the replies of some groups of a node, computed in this process.

    Parameters
    ----------
    source : bytes or str
        The blocks, or the file that holds them.
    places : ndarray of int
        ``(features, rows)``: see :func:`backend.crypto.rlwe.coefficients.places_of`.
    groups : sequence of range
        Groups of bins.
    max_bytes : int
        Bytes of polynomials that this process may keep.
    """
    zeros = zeros_under(offered)
    of = zeros.ring
    masks = _masks(of, places, groups, block, _kept(max_bytes))
    if isinstance(source, bytes):
        blob = source
    else:
        blob = Path(source).read_bytes()
    width = of.seeded_width
    sums: list[list[Any]] = [[None] * numbers for _ in groups]
    for i in range(len(blocks(places.shape[1], block))):
        by_group = masks(i)
        for p in range(numbers):
            at = (i * numbers + p) * width
            ciphertext = read_fresh(of, blob[at : at + width])
            for g, mask in enumerate(by_group):
                sums[g][p] = _plus(of, sums[g][p], ciphertext, mask)
    replies = []
    for group, row in zip(groups, sums, strict=True):
        positions = sum_positions(group, block)
        for total in row:
            replies.append(sealed(zeros, total, positions, flood_range(of.parameters)))
    return b"".join(replies)


def _masks(
    of: Ring, places: NDArray[np.int32], groups: Sequence[range], block: int, cache: KeptMasks
) -> Callable[[int], list[Mask]]:
    """Return the polynomials of a block, group by group; made now, or kept from an earlier tree."""
    name = sha256(repr((of.parameters.name, block, places.shape, groups)).encode() + places.tobytes()).digest()
    cached_masks = cache.find(name)
    if cached_masks is not None:
        return cached_masks.__getitem__
    cut = blocks(places.shape[1], block)
    size = 8 * of.parameters.degree * len(of.parameters.data_bits) * len(cut) * len(groups)
    keeps = cache.wanted(name, size)
    new_masks: Masks = []

    def of_block(i: int) -> list[Mask]:
        row = [_mask(of, places[:, cut[i]], group, block) for group in groups]
        if keeps:
            new_masks.append(row)
            if len(new_masks) == len(cut):
                cache.keep(name, size, new_masks)
        return row

    return of_block


def _mask(of: Ring, places: NDArray[np.int32], group: range, block: int) -> Mask:
    """Return the polynomial of a block's rows in a group of bins; one that stands for 0 takes as long to make as another."""
    coefficients = np.zeros(of.parameters.degree, dtype=np.int64)
    coefficients[mask_positions(places.astype(np.intp), group, block)] = 1
    nothing = not coefficients.any()
    plain = of.plaintext(np.ones_like(coefficients) if nothing else coefficients)
    of.evaluator.transform_to_ntt_inplace(plain, of.first)
    return plain, nothing


def _plus(of: Ring, total: Any | None, ciphertext: Any, mask: Mask) -> Any | None:
    """Return a sum and the ciphertext times a mask; a mask of 0 takes as long as another, and its product is dropped.

    How long a Host works on a node must not say whether its rows avoid some bins: the Guest waits for the answer.
    """
    plain, nothing = mask
    product = seal.Ciphertext()
    of.evaluator.multiply_plain(ciphertext, plain, product)
    if nothing:
        of.evaluator.add_inplace(product, product)
        return total
    return of.plus(total, product)


def sealed(zeros: Zeros, total: Any, positions: NDArray[np.intp], span: int, addends: Sequence[int] = ()) -> bytes:
    """Return a sum as it may go to the Guest: plus a fresh Enc(0) under the public key, uniform numbers and uniform noise.

    The Guest reads the coefficients at `positions`. `addends` are integers modulo t that are added to them, ``(positions,)`` or empty.
    """
    of = zeros.ring
    reply = zeros.make(hiding(of.parameters, positions, span, addends))
    if total is not None:
        of.evaluator.add_inplace(reply, total)
    return of.pad(written(reply), of.full_width)


@lru_cache(maxsize=1)
def _kept(max_bytes: int) -> KeptMasks:
    return KeptMasks(max_bytes)
