"""The leak meter: how many ways through the trees a released score leaves open. Plays the Guest; the audit also sees the Hosts' answers.

*Naive count*: combinations of the Guest's candidate leaves, one a tree, whose weights sum to the score. It is an upper bound on
anonymity: 1 proves that the score names the path, a large count proves nothing, because trees share features and most combinations
belong to nobody. *Population count*: distinct paths among given Host records that give the same score; it takes a joint audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy

from backend.errors import ParameterError
from backend.protocols.channel import Conversation
from backend.protocols.inference.packing import Packing
from backend.protocols.messages import AskCandidates, CandidateLeaves, chunks, from_bitmap
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel, Leaf

SCORE_BITS = (6, 8, 10, 12, 14, 16)  # widths that a curve goes through
TOGETHER = 512  # records that an audit asks about in one message
BLOCK = 8192  # sums worked on together: they stay in a core's cache, and BLAS starts no threads for them
_LARGEST, _STEP = (
    480,
    512,
)  # counts of more bits than the first are divided by 2 to the second, to stay in float64's range
_START = np.array([[1.0], [1.0], [0.0], [0.0]])  # no tree: one combination, with the sum 0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Reading:
    """What one released score leaves open.

    Attributes
    ----------
    combinations : int
        Of the Guest's candidate leaves, before the score is known.
    count : int
        Combinations whose sum is the score: the naive count, exact below 2**53. 0: the score cannot be of this record.
    prior : float
        Bits: entropy over the combinations before the score, where trees are independent and a Host's split goes each way as often as in
        training (covers).
    entropy : float
        Bits: the same once the score is known; NaN where `count` is 0 or the covers rule the score out.
    min_entropy : float
        Bits: -log2 of the likeliest combination's share.
    """

    combinations: int
    count: int
    prior: float
    entropy: float
    min_entropy: float

    @property
    def bits(self) -> float:
        """log2 of the count; -inf for 0."""
        return math.log2(self.count) if self.count else -math.inf


@dataclass(frozen=True)
class _Options:
    """One tree's candidates for one sample, those of equal weight together.

    Attributes
    ----------
    offsets : ndarray of int64
        ``(k,)`` units above the smallest.
    values : ndarray of float64
        ``(4, k)``: number of combinations, sum of p, sum of p·log2 p, largest log2 p.
    """

    offsets: Integers
    values: Floats

    @classmethod
    def of(cls, units: Integers, shares: Floats) -> _Options:
        """``(m,)`` candidates' units and shares, which sum to 1."""
        offsets, place = np.unique(units - units.min(), return_inverse=True)
        values = np.zeros((4, len(offsets)))
        for row, weights in enumerate((np.ones(len(units)), shares, _plog(shares))):
            values[row] = np.bincount(place, weights, len(offsets))
        values[3] = -np.inf
        np.maximum.at(values[3], place, np.log2(shares, out=np.full(len(shares), -np.inf), where=shares > 0))
        return cls(offsets, values)

    @property
    def spread(self) -> int:
        """Units between the smallest and the largest."""
        return int(self.offsets[-1])


class LeakMeter:
    """Reads the naive count of one score after another; built once a model.

    Where the Guest decrypts a sum for each class, each is a sum over trees of its own; for the median it decrypts every tree's answer:
    then counts multiply and entropies add up. If a Host holds no record of the person, the Guest knows more than is counted here.

    Raises
    ------
    ParameterError
        A leaf of the model carries several numbers (a forest of several classes), whose sums cannot be counted one by one.
    """

    def __init__(self, model: GuestModel) -> None:
        self._packing = packing = Packing(model)
        if len(packing.leaf) != packing.n_leaves:
            raise ParameterError(
                "The leak meter reads models whose leaves hold one number each; this one holds several."
            )
        order = np.argsort(packing.leaf)
        self._units, self._slot = packing.unit[order], packing.slot[order]
        self._base = packing.unpack([packing.base])[0]
        self._candidates = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
        self._shares = host_shares(model)
        ends = np.cumsum([len(tree.leaves) for tree in model.trees])
        self._spans = [
            slice(int(end) - len(tree.leaves), int(end)) for end, tree in zip(ends, model.trees, strict=True)
        ]

    def read(self, columns: Columns, units: Sequence[int]) -> list[Reading]:
        """Read some scores.

        Parameters
        ----------
        columns : mapping of str to ndarray
            The Guest's, ``(n,)`` each.
        units : sequence of int
            ``(n,)``: the sums as they were decrypted, base score included.

        Returns
        -------
        list of Reading
            ``n``.
        """
        out: list[Reading] = []
        released = self._packing.unpack(units)
        for rows, kept in self._candidates.blocks(columns, len(units)):
            out += [self._read(leaves, sums) for leaves, sums in zip(kept.T, released[rows], strict=True)]
        return out

    def _read(self, kept: Flags, released: Integers) -> Reading:
        """``(n_leaves,)`` candidates and ``(slots,)`` sums of one sample."""
        combinations, prior, parts = 1, 0.0, []
        targets = released - self._base
        trees: dict[int, list[_Options]] = {slot: [] for slot in range(self._packing.slots)}
        for span in self._spans:
            here = np.flatnonzero(kept[span]) + span.start
            shares = self._shares[here]
            slot, units = int(self._slot[here[0]]), self._units[here]
            targets[slot] -= units.min()
            trees[slot].append(_Options.of(units, shares / shares.sum() if shares.any() else shares))
            combinations *= len(here)
            prior -= float(trees[slot][-1].values[2].sum())
        for slot, options in trees.items():
            parts.append(_at(options, int(targets[slot])))
        count = math.prod(part[0] for part in parts)
        return Reading(combinations, count, prior, sum(part[1] for part in parts), sum(part[2] for part in parts))


def host_shares(model: GuestModel) -> Floats:
    """``(n_leaves,)``: how often the Hosts' splits lead to a leaf that the Guest's splits lead to, by the covers of training."""
    shares = []
    for t, tree in enumerate(model.trees):
        stack = [(0, 1.0)]
        while stack:
            i, share = stack.pop()
            node = tree.nodes[i]
            if isinstance(node, Leaf):
                shares.append(share)
                continue
            left = tree.nodes[node.left].cover / node.cover if node.cover else 0.5
            own = (t, i) in model.rules
            stack += [
                (node.right, share if own else share * (1.0 - left)),
                (node.left, share if own else share * left),
            ]
    return np.array(shares)


def _at(trees: Sequence[_Options], target: int) -> tuple[int, float, float]:
    """Count, entropy and min-entropy of the combinations whose offsets sum to `target`; a half of the trees meets the other."""
    if not 0 <= target <= sum(tree.spread for tree in trees):
        return 0, math.nan, math.nan
    halves: tuple[list[_Options], list[_Options]] = [], []
    for tree in sorted(trees, key=lambda tree: tree.spread):  # narrow ones first
        min(halves, key=lambda half: sum(other.spread for other in half)).append(tree)
    (a, moved), (b, moved_too) = (_grid(half, target) for half in halves)
    low, high = max(0, target - b.shape[1] + 1), min(target, a.shape[1] - 1)
    a, b = a[:, low : high + 1], b[:, target - high : target - low + 1][:, ::-1]
    met = (a[0] > 0) & (b[0] > 0)
    a, b = a[:, met], b[:, met]
    numerator, denominator = float(np.dot(a[0], b[0])).as_integer_ratio()
    count, p = (numerator << (moved + moved_too)) // denominator, float(np.dot(a[1], b[1]))
    if not p:
        return count, math.nan, math.nan
    plog = float(np.dot(a[2], b[1]) + np.dot(a[1], b[2]))
    likeliest = float((a[3] + b[3]).max())
    return count, max(0.0, math.log2(p) - plog / p), max(0.0, math.log2(p) - likeliest)


def _grid(trees: Sequence[_Options], target: int) -> tuple[Floats, int]:
    """Shift and add, tree by tree.

    Returns
    -------
    grid : ndarray of float64
        ``(4, m)``: for every sum up to `target` the four numbers of :class:`_Options`.
    moved : int
        The first of them was divided by 2**moved.
    """
    grid, moved, bits = _START, 0, 0.0
    for tree in trees:
        length = min(target + 1, grid.shape[1] + tree.spread)
        wider = np.zeros((4, length))
        wider[3] = -np.inf
        for begin in range(0, length, BLOCK):
            for offset, values in zip(tree.offsets.tolist(), tree.values.T.tolist(), strict=True):
                low, high = max(begin, offset), min(begin + BLOCK, length, offset + grid.shape[1])
                if low < high:
                    _add(wider[:, low:high], grid[:, low - offset : high - offset], values)
        grid, bits = wider, bits + math.log2(tree.values[0].sum())
        if bits > _LARGEST:
            grid[0] *= 2.0**-_STEP
            moved, bits = moved + _STEP, bits - _STEP
    return grid, moved


def _add(into: Floats, part: Floats, values: Sequence[float]) -> None:
    """Every combination of `part` joined with each of some leaves of equal weight."""
    n, p, plog, top = values
    for line, factor, source in ((0, n, 0), (1, p, 1), (2, p, 2), (2, plog, 1)):
        daxpy(part[source], into[line], a=factor)  # into += factor * source, in one go
    np.maximum(into[3], part[3] + top, out=into[3])


def joint_audit(conversation: Conversation, model_id: str, model: GuestModel, ids: Sequence[str]) -> Flags:
    """Ask the Hosts of a simulation which leaves they leave open to some records. No Host that is not simulated answers.

    Returns
    -------
    ndarray of bool
        ``(len(ids), n_leaves)``: leaves that no Host rules out, trees in order, leaves left to right.
    """
    owners = {fork.owner for skeleton in model.skeletons for fork in skeleton.forks.values()}
    hosts = tuple(host for host in model.hosts if host in owners)
    leaves = np.ones((len(ids), model.n_leaves), dtype=bool)
    for rows in chunks(len(ids), TOGETHER):
        asked = tuple(ids[rows.start : rows.stop])
        for host in hosts:
            conversation.send(host, AskCandidates(conversation.name, model_id, asked))
        for answer in conversation.expect_each(CandidateLeaves, hosts).values():
            kept = from_bitmap(answer.leaves, len(asked) * model.n_leaves)
            leaves[rows.start : rows.stop] &= kept.reshape(len(asked), -1)
    return leaves


class Population:
    """Paths that a person with the Guest's columns would take with each of some records' answers of the Hosts.

    Parameters
    ----------
    model : GuestModel
    columns : mapping of str to ndarray
        The Guest's, ``(n,)`` each.
    hosts : ndarray of bool
        ``(n_records, n_leaves)``: see :func:`joint_audit`.
    own : ndarray of int
        ``(n,)``: each person's own record among them.
    """

    def __init__(self, model: GuestModel, columns: Columns, hosts: Flags, own: NDArray[np.intp]) -> None:
        conjunctions = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
        self._guest = np.empty((len(own), model.n_leaves))
        for rows, kept in conjunctions.blocks(columns, len(own)):
            self._guest[rows] = kept.T
        self._hosts, self._own = hosts.astype(np.float64), own
        # whole numbers below 2**44, so that float64 adds one a tree exactly and two sets of leaves hardly share a sum
        codes = np.floor(np.random.default_rng(0).random(model.n_leaves) * float(1 << 44))
        self._paths = self._hosts @ (self._guest * codes).T

    def released(self, model: GuestModel) -> list[int]:
        """``(n,)``: everybody's true score in units of a model that differs from the first in its scale only."""
        packing = Packing(model)
        packed, own = packing.of_leaves(), (self._guest * self._hosts[self._own]).astype(bool)
        return [packing.base + sum(int(v) for v in packed[leaves]) for leaves in own]

    def counts(self, model: GuestModel) -> Integers:
        """``(n,)``: distinct paths among all records that give everybody's score; the own one is always among them."""
        packing = Packing(model)
        fits = np.ones(self._paths.shape, dtype=bool)
        for slot in range(packing.slots):
            of_slot, units = packing.slot == slot, np.zeros(self._guest.shape[1])
            units[packing.leaf[of_slot]] = packing.unit[of_slot]
            sums = self._hosts @ (self._guest * units).T
            fits &= sums == sums[self._own, np.arange(len(self._own))]
        return np.array([len(np.unique(p[f])) for p, f in zip(self._paths.T, fits.T, strict=True)], dtype=np.int64)


@dataclass(frozen=True)
class LeakPoint:
    """What scores of one width leave open, over some people.

    Attributes
    ----------
    score_bits : int
    people, records : int
        Whose scores were read, and Host records that they were compared with.
    named : float
        Share of people whose naive count is 1: the score names the path, whoever sees it.
    bits, entropy : float
        Medians: log2 of the naive count; posterior entropy in bits.
    unique : float
        Share of people whose score fits one path only among the records.
    paths : float
        Median of the population count.
    """

    score_bits: int
    people: int
    records: int
    named: float
    bits: float
    entropy: float
    unique: float
    paths: float


def leak_curve(
    model: GuestModel,
    columns: Columns,
    hosts: Flags,
    own: NDArray[np.intp],
    widths: Sequence[int] = SCORE_BITS,
    on_person: Callable[[], None] = lambda: None,
) -> Iterator[LeakPoint]:
    """Both counts for the same people with the model's weights at several widths; a joint audit, so in a simulation only.

    Parameters
    ----------
    columns, hosts, own
        See :class:`Population`.
    on_person : callable
        Told after every score that was read; may raise to stop.
    """
    population = Population(model, columns, hosts, own)
    for width in widths:
        at = replace(model, score_bits=width)
        meter, units, readings = LeakMeter(at), population.released(at), []
        for i, unit in enumerate(units):
            readings += meter.read({name: column[i : i + 1] for name, column in columns.items()}, [unit])
            on_person()
        counts = population.counts(at)
        yield LeakPoint(
            width,
            len(own),
            len(hosts),
            float(np.mean([reading.count == 1 for reading in readings])),
            float(np.median([reading.bits for reading in readings])),
            float(np.median([reading.entropy for reading in readings])),
            float(np.mean(counts == 1)),
            float(np.median(counts)),
        )


def _plog(shares: Floats) -> Floats:
    return shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
