"""The leak meter: how many paths through the trees a released score leaves open. Plays the Guest; the audit also sees the Hosts' answers.

*Naive count*: combinations of the Guest's candidate leaves, one per tree, whose weights sum to the score. It is an upper bound on
anonymity: 1 proves that the score identifies the path, a large count proves nothing, because trees share features and most combinations
belong to nobody. *Population count*: distinct paths among given Host records that give the same score; it takes a joint audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from backend.privacy.disclosed import disclosed_at_most
from backend.privacy.likeliest import likeliest
from backend.privacy.windows import windows
from backend.protocols.scoring.dither import half_units
from backend.protocols.scoring.packing import Packing
from backend.trees.backgrounds import leaf_shares
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import Columns, GuestModel

SCORE_BITS = (6, 8, 10, 12, 14, 16)  # resolutions of a curve
BLOCK = 8192  # sums worked on together: they stay in a core's cache, and BLAS starts no threads for them
COUNT_AT_ONCE = 10_000_000  # additions of a count: some 40 ms on one core (2.6 GHz Xeon)
# counts of more bits than the first are divided by 2 to the second, to stay in float64's range
_MAX_BITS = 480
_RESCALE_BITS = 512
# the imaginary part carries a sum's derivative, so small that its square vanishes (complex-step derivative)
_STEP_I = 2.0**-200

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SEED = 7  # of what a Host would add


@dataclass(frozen=True)
class LeakReading:
    """What one released score leaves open.

    Attributes
    ----------
    combinations : int
        The number of combinations of the Guest's candidate leaves, before the score is known.
    count : int
        Combinations whose sum is the score: the naive count, exact below 2**53. 0: the score cannot be of this record.
    prior : float
        Bits: entropy over the combinations before the score is known. Trees are taken as independent, and a Host's split goes each way as
        often as in training (covers).
    entropy : float
        Bits: the entropy once the score is known; NaN if `count` is 0 or the covers rule the score out.
    min_entropy : float
        Bits: -log2 of the most likely combination's share.
    disclosed_bits : float
        Bits that the score reveals: -log2 of its probability before it was known, over the same combinations. Each combination that fits
        becomes 2**disclosed_bits times as likely, and no guess about the path becomes likelier than that.
    """

    combinations: int
    count: int
    prior: float
    entropy: float
    min_entropy: float
    disclosed_bits: float

    @property
    def bits(self) -> float:
        """log2 of the count; -inf for 0."""
        return math.log2(self.count) if self.count else -math.inf


@dataclass(frozen=True)
class LeakBound:
    """The most that one released score reveals, without counting.

    Attributes
    ----------
    disclosed_bits : float
        Bits: at least :attr:`LeakReading.disclosed_bits`; inf if no combination was found that fits.
    min_entropy : float
        Bits: at most :attr:`LeakReading.min_entropy`.
    additions : int
        The number of additions of sums that counting would take; its time is proportional to it.
    """

    disclosed_bits: float
    min_entropy: float
    additions: int

    @property
    def countable(self) -> bool:
        """Whether a page may count at once: it takes no longer than :data:`COUNT_AT_ONCE`, or there is no bound."""
        return self.additions <= COUNT_AT_ONCE or math.isinf(self.disclosed_bits)


@dataclass(frozen=True)
class _Options:
    """One tree's candidates for one sample, those of equal weight together.

    Attributes
    ----------
    offsets : ndarray of int64
        ``(k,)`` units above the smallest.
    values : ndarray of float64
        ``(3, k)``: number of combinations, sum of p, sum of p·log2 p.
    logs : ndarray of float64
        ``(k,)`` largest log2 p.
    """

    offsets: Integers
    values: Floats
    logs: Floats

    @classmethod
    def of(cls, units: Integers, shares: Floats) -> _Options:
        """``(m,)`` candidates' units and shares, which sum to 1."""
        lowest = int(units.min())
        rows = dict[int, list[float]]()
        for unit, share in zip(units.tolist(), shares.tolist(), strict=True):  # a handful: arrays would cost more
            log = math.log2(share) if share else -math.inf
            n, p, plog, top = rows.get(unit - lowest, (0.0, 0.0, 0.0, -math.inf))
            rows[unit - lowest] = [n + 1.0, p + share, plog + (share * log if share else 0.0), max(top, log)]
        offsets = sorted(rows)
        values = np.array([rows[offset] for offset in offsets]).T
        return cls(np.array(offsets, dtype=np.int64), values[:3], values[3])

    @property
    def spread(self) -> int:
        """Units between the smallest and the largest."""
        return int(self.offsets[-1])

    def mirrored(self) -> _Options:
        """Return the options in units below the largest."""
        return _Options(self.spread - self.offsets[::-1], self.values[:, ::-1], self.logs[::-1])


class LeakMeter:
    """Reads the naive count of one score after another; built once per model.

    Where the Guest decrypts a sum for each class, each is a sum over trees of its own; for the median it decrypts every tree's answer:
    then counts multiply and entropies add up. Where every leaf carries a number for each class, the class whose sum leaves the fewest
    combinations is reported, which bounds those that fit all sums. If a Host holds no record of the person, the Guest knows more than is
    counted here.
    """

    def __init__(self, model: GuestModel) -> None:
        self._packing = packing = Packing(model)
        order = np.lexsort((packing.slot, packing.leaf))
        self._numbers = len(packing.leaf) // packing.n_leaves  # that a leaf carries
        self._units, self._slot = (x[order].reshape(-1, self._numbers) for x in (packing.unit, packing.slot))
        self._base = packing.unpack([packing.base])[0]
        self._candidates = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
        self._shares = leaf_shares(model)[0]
        ends = np.cumsum([0, *(len(tree.leaves) for tree in model.trees)]).tolist()
        self._spans = [slice(start, end) for start, end in pairwise(ends)]

    def read(self, columns: Columns, units: Sequence[int], dither: int = 0) -> list[LeakReading]:
        """Read some scores.

        Parameters
        ----------
        columns : mapping of str to ndarray
            The Guest's columns, ``(n,)`` each.
        units : sequence of int
            ``(n,)``: the sums as they were decrypted, base score included.
        dither : int
            Units by which the last Host may have moved each sum: combinations within that distance fit as well.

        Returns
        -------
        list of LeakReading
            ``n``.
        """
        out: list[LeakReading] = []
        released = self._packing.unpack(units)
        for rows, candidates in self._candidates.blocks(columns, len(units)):
            out += [self._read(leaves, sums, dither) for leaves, sums in zip(candidates.T, released[rows], strict=True)]
        return out

    def bound(self, columns: Columns, units: Sequence[int], dither: int = 0) -> list[LeakBound]:
        """Return the most that some scores reveal. The parameters are those of :meth:`read`, which takes longer for finer scores."""
        out: list[LeakBound] = []
        released = self._packing.unpack(units)
        for rows, candidates in self._candidates.blocks(columns, len(units)):
            out += [
                self._bound(leaves, sums, dither) for leaves, sums in zip(candidates.T, released[rows], strict=True)
            ]
        return out

    def _bound(self, candidates: Flags, released: Integers, dither: int) -> LeakBound:
        trees, targets, _, _ = self._options(candidates, released)
        parts = []
        guessed = []
        work = 0
        for slot, options in trees.items():
            target = int(targets[slot])
            shares = [(tree.offsets, tree.values[1]) for tree in options]
            parts.append(disclosed_at_most(shares, target, dither))
            guessed.append(-sum(float(tree.logs.max()) for tree in options))
            work += _additions(options, target, dither)
        if self._numbers > 1:
            # A leaf has several numbers: the one that reveals most counts; the reading's is one of them.
            disclosed_bits = max(parts)
            prior_bits = guessed[0]
        else:
            disclosed_bits = sum(parts)
            prior_bits = sum(guessed)
        min_entropy = max(0.0, prior_bits - disclosed_bits)
        return LeakBound(disclosed_bits, min_entropy, work)

    def _read(self, candidates: Flags, released: Integers, dither: int) -> LeakReading:
        """Read one sample: ``(n_leaves,)`` candidates and ``(slots,)`` sums."""
        trees, targets, combinations, prior = self._options(candidates, released)
        parts = [_at(options, int(targets[slot]), dither) for slot, options in trees.items()]
        if self._numbers > 1:
            parts = [min(parts)]
        counts, entropies, min_entropies, bits = zip(*parts, strict=True)
        return LeakReading(
            combinations=combinations,
            count=math.prod(counts),
            prior=prior,
            entropy=sum(entropies),
            min_entropy=sum(min_entropies),
            disclosed_bits=sum(bits),
        )

    def _options(self, candidates: Flags, released: Integers) -> tuple[dict[int, list[_Options]], Integers, int, float]:
        """Return candidates by slot and tree, sums to meet in units above the smallest, combinations and their entropy, of one sample."""
        combinations = 1
        prior = 0.0
        targets = released - self._base
        trees: dict[int, list[_Options]] = {slot: [] for slot in range(self._packing.slots)}
        for span in self._spans:
            here = np.flatnonzero(candidates[span]) + span.start
            shares = self._shares[here]
            shares = shares / shares.sum() if shares.any() else shares
            for slot, units in zip(self._slot[here[0]].tolist(), self._units[here].T, strict=True):
                targets[slot] -= units.min()
                trees[slot].append(_Options.of(units, shares))
            combinations *= len(here)
            prior -= float(_plog(shares).sum())
        return trees, targets, combinations, prior


@dataclass(frozen=True)
class _Grid:
    """Combinations of some trees by their sum of offsets, from 0 on.

    Attributes
    ----------
    counts : ndarray of float64
        ``(m,)`` combinations, divided by 2**rescaled.
    shares : ndarray of complex128
        ``(m,)``: sum of p, and sum of p·log2 p times :data:`_STEP_I` in the imaginary part.
    """

    counts: Floats
    shares: Complex
    rescaled: int

    def cut(self, low: int, high: int) -> _Grid:
        """Sums from `low` to `high`, both within."""
        here = slice(low, high + 1)
        return _Grid(self.counts[here], self.shares[here], self.rescaled)

    def windowed(self, reach: int) -> _Grid:
        """``(m + 2·reach,)``: combinations within `reach` of every sum from -reach on."""
        if not reach:
            return self
        return _Grid(windows(self.counts, reach), windows(self.shares, reach), self.rescaled)


def _halved(trees: Sequence[_Options], target: int) -> tuple[tuple[list[_Options], list[_Options]], int]:
    """Return trees in two halves of about the same spread, and the sum to meet, counted from its nearer end: larger sums are left out."""
    total_spread = sum(tree.spread for tree in trees)
    if 2 * target > total_spread:
        trees = [tree.mirrored() for tree in trees]
        target = total_spread - target
    halves: tuple[list[_Options], list[_Options]] = [], []
    spreads = [0, 0]
    for tree in sorted(trees, key=lambda tree: tree.spread):  # narrow ones first
        narrower = int(spreads[1] < spreads[0])
        halves[narrower].append(tree)
        spreads[narrower] += tree.spread
    return halves, target


def _additions(trees: Sequence[_Options], target: int, dither: int) -> int:
    """Sums that :func:`_grid` adds up for :func:`_at`."""
    halves, target = _halved(trees, target)
    total = 0
    for half in halves:
        length = 1
        for tree in half:
            total += length * len(tree.offsets)
            length = min(max(0, target + dither) + 1, length + tree.spread)
    return total


def _at(trees: Sequence[_Options], target: int, dither: int) -> tuple[int, float, float, float]:
    """Count, entropy, min-entropy and surprisal of combinations whose offsets sum to `target` ± `dither`, by meeting in the middle."""
    if not -dither <= target <= sum(tree.spread for tree in trees) + dither:
        return 0, math.nan, math.nan, math.nan
    halves, target = _halved(trees, target)
    trees = [*halves[0], *halves[1]]
    a, b = (_grid(half, target + dither) for half in halves)
    # b's sums begin at -dither now
    b = b.windowed(dither)
    total = target + dither
    low = max(0, total - len(b.counts) + 1)
    high = min(total, len(a.counts) - 1)
    if low > high:
        return 0, math.nan, math.nan, math.nan
    a = a.cut(low, high)
    b = b.cut(total - high, total - low)
    numerator, denominator = float(np.dot(a.counts, b.counts[::-1])).as_integer_ratio()
    count = (numerator << (a.rescaled + b.rescaled)) // denominator
    shares = complex(np.dot(a.shares, b.shares[::-1]))
    p = shares.real
    if not p:
        return count, math.nan, math.nan, math.nan
    top = likeliest([(tree.offsets, tree.logs) for tree in trees], target - dither, target + dither)
    top = _largest(halves, target, dither) if top is None else top
    entropy = math.log2(p) - shares.imag / _STEP_I / p
    min_entropy = math.log2(p) - top
    return count, max(0.0, entropy), max(0.0, min_entropy), max(0.0, -math.log2(p))


def _grid(trees: Sequence[_Options], max_sum: int) -> _Grid:
    """Shift and add, tree by tree, for every sum up to `max_sum`.

    This works in place and from the top: a block no longer than the smallest shift depends only on itself and on lower blocks.
    """
    from scipy.linalg.blas import daxpy, zaxpy  # noqa: PLC0415 - slow to import, and few runs need it

    size = min(max_sum, sum(tree.spread for tree in trees)) + 1
    counts = np.zeros(size)
    shares = np.zeros(size, dtype=np.complex128)
    counts[0] = shares[0] = 1.0
    spare_counts = np.empty_like(counts)
    spare_shares = np.empty_like(shares)
    length = 1
    rescaled = 0
    bits = 0.0
    for tree in trees:
        previous_length = length
        length = min(size, length + tree.spread)
        first, *others = zip(tree.offsets.tolist(), tree.values.T.tolist(), strict=True)
        n, p, plog = first[1]  # its offset is 0
        shift = others[0][0] if others else BLOCK
        old_counts = counts
        old_shares = shares
        if shift < BLOCK // 2:
            shift = BLOCK
            old_counts = spare_counts
            old_shares = spare_shares
            old_counts[:previous_length] = counts[:previous_length]
            old_shares[:previous_length] = shares[:previous_length]
        block = min(BLOCK, shift)
        for begin in reversed(range(0, length, block)):
            unshifted = slice(begin, min(begin + block, previous_length))
            if unshifted.start < unshifted.stop:
                counts[unshifted] *= n
                shares[unshifted] *= complex(p, plog * _STEP_I)
            for offset, (n_other, p_other, plog_other) in others:
                low = max(begin, offset)
                high = min(begin + block, length, offset + previous_length)
                if low < high:
                    into = slice(low, high)
                    source = slice(low - offset, high - offset)
                    daxpy(old_counts[source], counts[into], a=n_other)  # counts += n * old, in one pass
                    zaxpy(old_shares[source], shares[into], a=complex(p_other, plog_other * _STEP_I))
        bits += math.log2(tree.values[0].sum())
        if bits > _MAX_BITS:
            counts[:length] *= 2.0**-_RESCALE_BITS
            rescaled = rescaled + _RESCALE_BITS
            bits = bits - _RESCALE_BITS
    return _Grid(counts, shares, rescaled)


def _largest(halves: Sequence[Sequence[_Options]], target: int, dither: int) -> float:
    """Return the largest log2 p of the combinations whose offsets sum to `target` ± `dither`, sum by sum."""
    a, b = (_tops(half, target + dither) for half in halves)
    b = windows(b, dither, np.maximum) if dither else b
    total = target + dither
    low = max(0, total - len(b) + 1)
    high = min(total, len(a) - 1)
    return float((a[low : high + 1] + b[total - high : total - low + 1][::-1]).max())


def _tops(trees: Sequence[_Options], max_sum: int) -> Floats:
    """Return the largest log2 p for every sum up to `max_sum`; like :func:`_grid`, with the larger of two in place of their sum."""
    tops = np.full(min(max_sum, sum(tree.spread for tree in trees)) + 1, -np.inf)
    tops[0] = 0.0
    length = 1
    buffer = np.empty(BLOCK)
    for tree in trees:
        previous_length = length
        length = min(len(tops), length + tree.spread)
        for begin, end in _blocks_down(length):
            top = np.full(end - begin, -np.inf)
            for offset, log in zip(tree.offsets.tolist(), tree.logs.tolist(), strict=True):
                low = max(begin, offset)
                high = min(end, offset + previous_length)
                if low < high:
                    into = slice(low - begin, high - begin)
                    shifted = np.add(tops[low - offset : high - offset], log, out=buffer[: high - low])
                    np.maximum(top[into], shifted, out=top[into])
            tops[begin:end] = top
    return tops


def _blocks_down(length: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + BLOCK, length)) for begin in reversed(range(0, length, BLOCK)))


class Population:
    """Paths that a person with the Guest's columns would take with each of some records' answers of the Hosts.

    Parameters
    ----------
    columns : mapping of str to ndarray
        The Guest's, ``(n,)`` each.
    hosts : ndarray of bool
        ``(n_records, n_leaves)``: see :func:`backend.research.baselines.joint_audit.joint_audit`.
    own_records : ndarray of int
        ``(n,)``: each person's own record among them.
    """

    def __init__(self, model: GuestModel, columns: Columns, hosts: Flags, own_records: NDArray[np.intp]) -> None:
        conjunctions = Conjunctions(model.rules, own_conditions(model.skeletons, model.rules))
        self._guest = np.empty((len(own_records), model.n_leaves))
        for rows, candidates in conjunctions.blocks(columns, len(own_records)):
            self._guest[rows] = candidates.T
        self._hosts = hosts.astype(np.float64)
        self._own = own_records
        # integers below 2**44, so that float64 adds one per tree exactly and two sets of leaves hardly share a sum
        codes = np.floor(np.random.default_rng(0).random(model.n_leaves) * float(1 << 44))
        self._paths = self._hosts @ (self._guest * codes).T

    def released(self, model: GuestModel) -> list[int]:
        """Return each person's true score, ``(n,)``, in units of a model that differs from the first only in its scale."""
        packing = Packing(model)
        packed = packing.of_leaves()
        own_leaves = (self._guest * self._hosts[self._own]).astype(bool)
        return [packing.base + sum(int(v) for v in packed[leaves]) for leaves in own_leaves]

    def counts(self, model: GuestModel, shifts: Integers | None = None, reach: int = 0) -> Integers:
        """Return the number of distinct paths among all records that give each person's score, ``(n,)``, the person's own included.

        Parameters
        ----------
        shifts : ndarray of int64, optional
            ``(n, slots)`` units that dither has moved each sum by.
        reach : int
            The largest shift: paths whose sums are within it fit as well.
        """
        packing = Packing(model)
        fits = np.ones(self._paths.shape, dtype=bool)
        for slot in range(packing.slots):
            of_slot = packing.slot == slot
            units = np.zeros(self._guest.shape[1])
            units[packing.leaf[of_slot]] = packing.unit[of_slot]
            sums = self._hosts @ (self._guest * units).T
            released = sums[self._own, np.arange(len(self._own))]
            if shifts is not None:
                released = released + shifts[:, slot]
            fits &= np.abs(sums - released) <= reach
        counts = []
        for paths, fits_person in zip(self._paths.T, fits.T, strict=True):
            counts.append(len(np.unique(paths[fits_person])))
        return np.array(counts, dtype=np.int64)


@dataclass(frozen=True)
class LeakPoint:
    """What scores of one resolution leave open, over some people.

    Attributes
    ----------
    people, records : int
        Whose scores were read, and Host records that they were compared with.
    identified : float
        Share of people whose naive count is 1: the score identifies the path to any reader.
    bits, entropy : float
        Medians: log2 of the naive count; posterior entropy in bits.
    unique : float
        Share of people whose score fits only one path among the records.
    paths : float
        Median of the population count.
    """

    score_bits: int
    people: int
    records: int
    identified: float
    bits: float
    entropy: float
    unique: float
    paths: float


def leak_curve(
    model: GuestModel,
    columns: Columns,
    hosts: Flags,
    own_records: NDArray[np.intp],
    widths: Sequence[int] = SCORE_BITS,
    on_person: Callable[[], None] = lambda: None,
    dither: float = 0.0,
) -> Iterator[LeakPoint]:
    """Yield both counts for the same people at several resolutions of the score; this is a joint audit, so in a simulation only.

    Parameters
    ----------
    columns, hosts, own_records
        See :class:`Population`.
    dither : float
        Width of the Hosts' dither on a logit.
    on_person : callable
        Called after every score; may raise to stop.
    """
    population = Population(model, columns, hosts, own_records)
    for width in widths:
        rounded = replace(model, score_bits=width)
        packing = Packing(rounded)
        reach = half_units(math.ldexp(dither, model.outputs.scale), width)
        draw = np.random.default_rng((SEED, width, reach))
        shifts = draw.integers(-reach, reach, (len(own_records), packing.slots), endpoint=True)
        meter = LeakMeter(rounded)
        readings = []
        for i, unit in enumerate(population.released(rounded)):
            shift = sum(int(units) << (packing.width * slot) for slot, units in enumerate(shifts[i]))
            columns_of_person = {name: column[i : i + 1] for name, column in columns.items()}
            readings += meter.read(columns_of_person, [unit + shift], reach)
            on_person()
        counts = population.counts(rounded, shifts, reach)
        identified = [reading.count == 1 for reading in readings]
        bits = [reading.bits for reading in readings]
        entropies = [reading.entropy for reading in readings]
        yield LeakPoint(
            score_bits=width,
            people=len(own_records),
            records=len(hosts),
            identified=float(np.mean(identified)),
            bits=float(np.median(bits)),
            entropy=float(np.median(entropies)),
            unique=float(np.mean(counts == 1)),
            paths=float(np.median(counts)),
        )


def _plog(shares: Floats) -> Floats:
    return shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
