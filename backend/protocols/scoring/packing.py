"""How the outputs of a model share one number, and a canary above them, so that a prediction takes no more ciphertexts for more classes.

Every output has a slot of its own in the integer that a leaf carries; slots are so wide that no sum runs over. The Hosts' 0/1 and the
sums of Fed-EINI eq. 10 act on all slots at once. For the median over trees every tree has slots of its own, which the Guest reads.

A canary is a secret number that rides above every score, so that only a sum of one leaf a tree comes back whole (docs/attacks.md, A7):
every candidate leaf of a tree carries the tree's number in bits that no score reaches. Whichever leaf a Host keeps, the numbers of all
trees add up to what is expected; a multiple of an entry, or one entry too many, does not. No Host can tell that they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.protocols.scoring.dither import headroom
from backend.trees.ensemble import GuestModel, Layout, Leaf

OFFSET_BITS = 62  # of a number that binds a score to its request, at most: int64 holds it
WORD = 63  # bits of a slot that stands alone: what int64 holds, and one to spare
CANARY_BITS = 16  # of a tree's number, and of the sum of all: what a Host changes passes with a probability of 2^-16
GUARD_BITS = 6  # above a score without a canary: a number that a Host made up lies within them with a probability of 2^-6 at most

IntArray = NDArray[np.int64]
Floats = NDArray[np.float64]


class Packing:
    """The leaf weights of one model as integers at its public scale, and where each stands in the packed number.

    Attributes
    ----------
    width : int
        Bits of a slot; 0 if there is one only.
    leaf, slot, unit : ndarray of int64
        ``(k,)`` each: leaf (trees in order, leaves left to right), slot and value of every weight.
    base : int
        Base scores, packed; 0 for the median, which they are added to afterwards.
    headroom : int
        Units by which a Host may move a sum (:mod:`backend.protocols.scoring.dither`).
    largest : int
        No sum of a sample's packed leaves, moved by so much, has a larger absolute value.
    """

    def __init__(self, model: GuestModel) -> None:
        self._outputs = model.outputs
        self._score_bits = model.score_bits
        self._median = model.outputs.aggregation == "median"
        count = model.outputs.count
        n_trees = len(model.trees)
        leaf: list[int] = []
        slot: list[int] = []
        weight: list[float] = []
        self.n_leaves = 0
        for t, tree in enumerate(model.trees):
            first = t * count if self._median else 0
            first += model.outputs.of_tree[t] if model.outputs.of_tree else 0
            for node in (tree.nodes[i] for i in tree.leaves):
                if isinstance(node, Leaf):
                    weights = node.weights or (node.weight,)
                else:
                    weights = ()
                leaf += [self.n_leaves] * len(weights)
                slot += range(first, first + len(weights))
                weight += weights
                self.n_leaves += 1
        self.slots = model.outputs.slots(n_trees)
        self.leaf = np.array(leaf, dtype=np.intp)
        self.slot = np.array(slot, dtype=np.intp)
        self.unit: IntArray = quantise(weight, model.score_bits)
        base = quantise(model.base_scores, model.score_bits)
        if self._median:
            self._added_to_median = base
        else:
            self._added_to_median = np.zeros_like(base)
        # a partial model from before scales asks for as much on shares as on logits
        self.headroom = headroom(model.score_bits + max(0, model.outputs.scale))
        # largest absolute sum of one leaf a tree, slot by slot
        tree_of = np.repeat(np.arange(n_trees), [len(tree.leaves) for tree in model.trees])
        highest = np.zeros((n_trees, self.slots), dtype=np.int64)
        np.maximum.at(highest, (tree_of[self.leaf], self.slot), np.abs(self.unit))
        spread = highest.sum(axis=0)
        widest = int(spread.max()) + int(np.abs(base).max()) + self.headroom
        self.width = 0 if self.slots == 1 else widest.bit_length() + 1
        if self.slots == 1:
            self.largest = int(spread[0]) + self.headroom
        else:
            self.largest = (1 << (self.width * self.slots)) - 1
        if self._median:
            self.base = 0
        else:
            self.base = sum(int(v) for v in self.shifted(base, np.arange(count)))

    @property
    def layout(self) -> Layout:
        """What Hosts learn of all this."""
        return Layout(self._score_bits, self.slots, self.width, self._outputs.scale)

    def of_leaves(self) -> NDArray[Any]:
        """``(n_leaves,)``: each leaf's packed number, int64 if there is one slot, else Python's integers."""
        out = np.zeros(self.n_leaves, dtype=np.int64 if self.slots == 1 else object)
        np.add.at(out, self.leaf, self.shifted(self.unit, self.slot))
        return out

    def shifted(self, units: IntArray, slots: NDArray[np.intp]) -> NDArray[Any]:
        """Values moved into their slots; the same shape as `units`, whose first axis goes along `slots`."""
        if self.slots == 1:
            return units
        powers = np.array([1 << (self.width * int(s)) for s in slots], dtype=object)
        packed: NDArray[Any] = units.astype(object) * powers.reshape(-1, *[1] * (units.ndim - 1))
        return packed

    def unpack(self, packed: Sequence[int]) -> IntArray:
        """Return the units, ``(n, slots)``, of ``(n,)`` packed sums."""
        if self.slots == 1:
            return np.array(packed, dtype=np.int64).reshape(-1, 1)
        out = np.empty((len(packed), self.slots), dtype=np.int64)
        mask = (1 << self.width) - 1
        half = 1 << (self.width - 1)
        for i, number in enumerate(packed):
            remaining = int(number)
            for s in range(self.slots):
                low = (remaining & mask) - ((remaining & half) << 1)
                out[i, s] = low
                remaining = (remaining - low) >> self.width
        return out

    def readable(self, packed: Sequence[int]) -> NDArray[np.bool_]:
        """``(n,)``: whether :meth:`unpack` reads a number without a rest; any number may be asked about."""
        width = self.width or WORD
        ones = ((1 << width * self.slots) - 1) // ((1 << width) - 1)  # a 1 in every slot
        low = -ones << (width - 1)
        high = ones * ((1 << (width - 1)) - 1)
        return np.array([low <= int(number) <= high for number in packed], dtype=bool)

    def margins(self, packed: Sequence[int]) -> Floats:
        """``(n,)`` packed sums of the base and a leaf a tree → ``(n, outputs.count)`` margins."""
        units = self.unpack(packed).astype(np.float64)
        if self._median:
            units = np.median(units.reshape(len(units), -1, self._outputs.count), axis=1)
        return (units + self._added_to_median) / float(1 << self._score_bits)


def request_offsets(seed: bytes, request: str, n: int, modulus: int, *, below: bool = False) -> IntArray:
    """Return the numbers, ``(n,)``, that bind each person's score to its request: an answer to another request is off by a random number.

    Every candidate leaf of one tree carries the person's number, so that a sum of one leaf a tree contains it once. It is a keyed function
    of the request and the person's place in it, so that the answer to a request repeated after a crash is read in the same way.

    Parameters
    ----------
    modulus : int
        A sum is read modulo this; numbers are uniform among as many, or among 2^62.
    below : bool
        Begin at minus three quarters of them, not at 0: so there is as much room above a sum as without
        (:func:`backend.crypto.fixedpoint.hidden_above`).
    """
    digest = shake_256(seed + f"request\0{request}".encode()).digest(8 * n)
    span = min(modulus, 1 << OFFSET_BITS)
    words = (np.frombuffer(digest, dtype="<u8") % np.uint64(span)).astype(np.int64)
    return words - (3 * span // 4 if below else 0)


def canaries(seed: bytes, model_id: str, ids: Sequence[str], trees: int) -> IntArray:
    """Return ``(trees, n)`` numbers: a keyed function of model and person, so that the Guest can show them to an auditor later."""
    width = CANARY_BITS // 8
    out = np.empty((trees, len(ids)), dtype=np.int64)
    for i, person in enumerate(ids):
        digest = shake_256(seed + f"canary\0{model_id}\0{person}".encode()).digest(trees * width)
        padded = np.zeros((trees, 8), dtype=np.uint8)
        padded[:, :width] = np.frombuffer(digest, dtype=np.uint8).reshape(trees, width)
        out[:, i] = padded.view("<i8").ravel()
    return out
