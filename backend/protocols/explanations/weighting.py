"""How a Host multiplies encrypted numbers by its factors and adds them up: packed under Paillier, in slots under RLWE. Reads none of them.

What the Guest encrypts: :mod:`backend.protocols.explanations.encryption`. What goes on to the next Host is refreshed, and so is what
goes to the Guest; what a Host keeps is not. Each cipher has a class with the same four methods.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import hidden_above
from backend.crypto.interface import FoldPlan, PublicSide, Weighted, WeightedPublicSide
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.crypto.rlwe.inner_products import RowProducts, Totals
from backend.crypto.rlwe.residues import ResiduePublicSide, Weighed
from backend.errors import SecurityError
from backend.protocols.explanations.host_factors import AnyFactors, CompiledDropFactors, CompiledFactors, Decided, Flags
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.explanations.shape import COEFFICIENT_BITS, ReasonShape
from backend.protocols.ranking.host import MarkedNumbers, RankingHost
from backend.protocols.ranking.packing import PackedBlinds

_Sums = dict[int, tuple[list[int], list[int]]]
Below = Callable[[int], int]
"""Limit → a uniform random integer from 0 to the limit - 1."""


class PaillierWeighting:
    """Paillier, or plaintext.

    Parameters
    ----------
    party : int
        This Host's position among the parties, the Guest's being 0.

    Attributes
    ----------
    ciphertexts : int
        That come of one person.
    together : int
        People of a cohort whose numbers share a message.
    """

    together = 1

    def __init__(self, side: WeightedPublicSide, compiled: AnyFactors, shape: ReasonShape, party: int) -> None:
        self._side = side
        self._compiled = compiled
        self._shape = shape
        self._party = party
        self._layout = PaillierLayout(shape, side.bits)
        self._points = len(compiled.points)
        self._width = self._layout.packs_before(party)
        self.ciphertexts = len(compiled.step.host_conditions) * self._points * (1 + self._width) + len(
            self._layout.packs(0)
        )

    def values(self, terms: bytes, holds: NDArray[np.bool_], previous: Any = None) -> list[Any]:
        """Return the values of all features of one person, added to the `previous` ones; they stay at the last Host, which computes them.

        Their layout is :meth:`PaillierLayout.layout`. Raises SecurityError if `terms` are damaged.
        """
        base_enc, packs_enc, constant_enc = self._load(terms)
        factors = self._compiled.others(holds).ravel().tolist()
        width = self._width
        sums: list[Weighted] = [(range(g, len(packs_enc), width), factors) for g in range(width)]
        theirs = self._side.weighted_sums(packs_enc, sums)
        for g, constant in enumerate(constant_enc):
            theirs[g] = self._plus(theirs[g], constant)
        own_sums: _Sums = defaultdict(lambda: ([], []))
        for entry, feature, units in self._own(holds):
            _extend(own_sums[feature], self._at(entry), units)
        mine = self._side.weighted_sums(base_enc, [own_sums[h] for h in range(self._shape.features[self._party])])
        values = [*theirs, *mine]
        if previous is None:
            return values
        return [self._plus(*pair) for pair in zip(previous, values, strict=True)]

    def blinded(self, values: Any, addends: Sequence[int]) -> tuple[bytes, list[int]]:
        """Return one person's values for the ranking, 2^tie_bits·value plus `addends`, several features a ciphertext, and shares of them.

        Raises SecurityError under plaintext.
        """
        if not isinstance(self._side, PaillierPublicSide):
            raise SecurityError("key_cannot_rank")
        return PackedBlinds(self._side, self._spread(values), self._layout.packing).blinded(addends)

    def sums(self, values: Any, people: int, below: Below) -> bytes:
        """Return a cohort's values for the Guest, refreshed, with random numbers below their last digit and above their width."""
        slot = self._layout.slot
        addends = []
        for size in self._layout.layout(self._party):
            # of the last feature in a pack, all that the plaintext has room for
            rooms = [1 << slot] * (size - 1) + [1 << (self._layout.plain_bits - slot * (size - 1))]
            blinds = []
            for i, room in enumerate(rooms):
                blinds.append(blind(self._shape, people, room, below) << (slot * i))
            addends.append(sum(blinds))
        return self._side.refreshed(values, addends)

    def passed_on(self, terms: bytes, holds: NDArray[np.bool_]) -> bytes:
        """Return one person's numbers for the next Host, added up by the remaining conditions; packs of this Host's features are new."""
        base_enc, packs_enc, constant_enc = self._load(terms)
        step = self._compiled.step
        points = self._points
        width = self._width
        factors = self._compiled.others(holds).ravel().tolist()
        count = step.n_out * points
        on: _Sums = defaultdict(lambda: ([], []))
        for entry, out in enumerate(step.target):
            for k, i in enumerate(self._at(entry)):
                _extend(on[out * points + k], [i], [factors[i]])
        base_out = self._side.weighted_sums(base_enc, [on[o] for o in range(count)])
        theirs = self._side.weighted_sums(
            packs_enc, [([i * width + g for i in on[o][0]], on[o][1]) for o in range(count) for g in range(width)]
        )
        mine = self._own_packs(base_enc, holds)
        packs_out = [pack for o in range(count) for pack in (*theirs[o * width : (o + 1) * width], *mine[o])]
        return self._side.refreshed([*base_out, *packs_out, *constant_enc])

    def _own_packs(self, base_enc: Any, holds: NDArray[np.bool_]) -> list[list[Any]]:
        """Return packs of this Host's features, by outgoing entry and point."""
        step = self._compiled.step
        points = self._points
        count = self._shape.features[self._party]
        own_sums: _Sums = defaultdict(lambda: ([], []))
        for entry, feature, units in self._own(holds):
            for k, (i, unit) in enumerate(zip(self._at(entry), units, strict=True)):
                _extend(own_sums[(step.target[entry] * points + k) * count + feature], [i], [unit])
        out = []
        for position in range(step.n_out * points):
            values = iter(self._side.weighted_sums(base_enc, [own_sums[position * count + h] for h in range(count)]))
            packs = []
            for size in self._layout.packs(self._party):
                packs.append([next(values) for _ in range(size)])
            out.append([self._side.joined(pack, self._layout.slot) for pack in packs])
        return out

    def _own(self, holds: NDArray[np.bool_]) -> list[tuple[int, int, list[int]]]:
        """Return entry, own feature, and the feature's factor at every point."""
        entries, features = self._compiled.where
        return list(zip(entries.tolist(), features.tolist(), self._compiled.own(holds)[0].tolist(), strict=True))

    def _spread(self, values: Sequence[Any]) -> list[Any]:
        """Return a number a feature for the ranking, which adds up 2^(slot·i) · number i.

        A pack is at the position of its first feature; zeros are at those of its other features.
        """
        (zero,) = self._side.weighted_sums([], [((), ())])
        sizes = self._layout.layout(self._party)
        return [number for value, size in zip(values, sizes, strict=True) for number in (value, *[zero] * (size - 1))]

    def _plus(self, left: Any, right: Any) -> Any:
        return self._side.weighted_sums([left, right], [((0, 1), (1, 1))])[0]

    def _at(self, entry: int) -> range:
        return range(entry * self._points, (entry + 1) * self._points)

    def _load(self, terms: bytes) -> tuple[Any, Any, Any]:
        """Base, packs and constant."""
        count = len(self._compiled.step.host_conditions) * self._points
        ends = count, count * (1 + self._width)
        loaded = self._side.load_terms(terms, ends[1] + len(self._layout.packs(0)))
        return loaded[: ends[0]], loaded[ends[0] : ends[1]], loaded[ends[1] :]


class RlweWeighting:
    """RLWE: every slot times one factor; the Guest's slots go through all Hosts as they are, so that only the last one adds up.

    Methods as in :class:`PaillierWeighting`; `people` are those of a cohort, 0 = one person's names. What is `kept` of several people
    lies side by side, ``(m, people)``.

    Raises
    ------
    SecurityError
        The keys are not those of such a request: a sum could run over, or what a Host multiplies by could show in the noise.
    """

    def __init__(
        self, side: ResiduePublicSide, compiled: AnyFactors, shape: ReasonShape, plan: FoldPlan, people: int
    ) -> None:
        self._side = side
        self._compiled = compiled
        self._plan = plan
        self._shape = shape
        self._ranking = shape.ranking
        self._first = sum(shape.features[: plan.index + 1])
        self._features = self._ranking.n
        if plan.last and not people:
            self._lift = self._ranking.tie_bits
        else:
            self._lift = 0
        self._origin = np.array(plan.origin, dtype=np.intp)
        side.check(shape.load(len(plan.origin) * compiled.key_points + 1, people))
        load = shape.load(len(plan.origin) * len(compiled.points) + 1, people)
        self.together = load.together(side.bits)
        self.ciphertexts = len(side.sides) * load.ciphertexts(side.bits)

    def passed_on(self, terms: bytes, holds: NDArray[np.bool_]) -> bytes:
        """Return the weighted ciphertexts for the next Host, as many as arrived."""
        return self._side.refreshed(self._weighted(terms, holds))

    def values(self, terms: bytes, holds: NDArray[np.bool_], previous: Any = None) -> Weighed:
        """Return one ciphertext a key: the slots of a feature add up to its value, for the ranking times 2^tie_bits."""
        return self._side.total(self._weighted(terms, holds), previous)

    def blinded(self, values: Any, addends: Sequence[int]) -> tuple[bytes, list[int]]:
        """Return masked slots that add up to the numbers, each blinded modulo T, and shares of them."""
        blinds = [secrets.randbelow(self._side.modulus) for _ in addends]
        reply = self._side.reply(values, self._features, [a + r for a, r in zip(addends, blinds, strict=True)])
        return reply, [self._ranking.against(r) for r in blinds]

    def sums(self, values: Any, people: int, below: Below) -> bytes:
        """Return masked slots that add up to the sums, with random numbers below their last digit and above their width."""
        return self._side.reply(values, self._features, self._blinds(people, below))

    def _blinds(self, people: int, below: Below) -> list[int]:
        return [blind(self._shape, people, self._side.modulus, below) for _ in range(self._features)]

    def _weighted(self, terms: bytes, holds: NDArray[np.bool_]) -> Weighed:
        return self._side.weighted(terms, self._factors(holds) << self._lift, self._plan.index == 0)

    def _factors(self, holds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return factors in the layout of the Guest's numbers, ``(features, rows)``; 1 without a condition of this Host."""
        others, own_factors = self._parts(holds)
        table = np.tile(others, (self._features, 1))
        table[self._first : self._first + len(own_factors)] = own_factors
        return table

    def _parts(self, holds: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return factors for other parties' numbers, ``(rows,)``, and for own features, ``(features, rows)``, person after person."""
        entries, features = self._compiled.where
        points = len(self._compiled.points)
        people = holds.shape[-1]
        names = len(self._compiled.names)
        rows = len(self._origin) * points
        others = self._compiled.others(holds)[:, self._origin].reshape(people, rows)
        own_factors = np.zeros((names, people, len(self._compiled.step.host_conditions), points), dtype=np.int64)
        own_factors[features, :, entries] = self._compiled.own(holds).transpose(1, 0, 2)
        parts = own_factors[:, :, self._origin].reshape(names, people, rows)
        return (
            np.pad(others, ((0, 0), (0, 1)), constant_values=1 << COEFFICIENT_BITS).ravel(),
            np.pad(parts, ((0, 0), (0, 0), (0, 1))).reshape(names, people * (rows + 1)),
        )


class RowWeighting(RlweWeighting):
    """RLWE, for a cohort at a single Host: inner products."""

    def __init__(
        self, side: ResiduePublicSide, compiled: AnyFactors, shape: ReasonShape, plan: FoldPlan, people: int
    ) -> None:
        super().__init__(side, compiled, shape, plan, people)
        self._rows = RowProducts(side, *shape.features)

    def values(self, terms: bytes, holds: NDArray[np.bool_], previous: Any = None) -> Totals:
        """Return a ciphertext a key for the Guest's features, and one for each feature of the Host."""
        return self._rows.add(terms, *self._parts(holds), previous)

    def sums(self, values: Totals, people: int, below: Below) -> bytes:
        """Return each of them with all but the sums hidden."""
        return self._rows.replies(values, self._blinds(people, below))


Weighting = PaillierWeighting | RlweWeighting


class PersonWeighting:
    """For the names of one person: contributions, and behind them drops.

    Attributes
    ----------
    drop_factors : CompiledDropFactors
        What decides drops.
    """

    def __init__(self, side: PublicSide | None, compiled: CompiledFactors, shape: ReasonShape, plan: FoldPlan) -> None:
        self._contributions = weighting_of(side, compiled, shape, plan)
        self.drop_factors = CompiledDropFactors(compiled, shape.groups_of(plan.index + 1))
        self._drops = weighting_of(side, self.drop_factors, shape, plan)

    def values(self, terms: bytes, decided: Decided) -> tuple[Any, Any]:
        """At the last Host: both as the parts give them."""
        first, second = self._cut(terms)
        return self._contributions.values(first, decided.holds), self._drops.values(second, decided.drops)

    def passed_on(self, terms: bytes, decided: Decided) -> bytes:
        """One person's numbers for the next Host."""
        first, second = self._cut(terms)
        return self._contributions.passed_on(first, decided.holds) + self._drops.passed_on(second, decided.drops)

    def ranking(self, values: tuple[Any, Any], sides: Flags, shape: ReasonShape) -> RankingHost:
        """Who ranks contributions, of those that drops and this Host's shares of `sides`, ``(2, n)``, make eligible."""
        marks = MarkedNumbers(partial(self._drops.blinded, values[1]), sides)
        return RankingHost(partial(self._contributions.blinded, values[0]), shape.ranking, marks)

    def _cut(self, terms: bytes) -> tuple[bytes, bytes]:
        """Wrong lengths are refused by whoever reads the parts."""
        counts = self._contributions.ciphertexts, self._drops.ciphertexts
        at = len(terms) * counts[0] // sum(counts)
        return terms[:at], terms[at:]


def blind(shape: ReasonShape, people: int, room: int, below: Below) -> int:
    """Return what is added to a sum over a cohort that has `room` modulo which it is read.

    A uniform number below the last digit that is told, and a uniform multiple of 2^width above all that was announced: neither an honest
    sum's fractions nor what a Guest hid above its width are read (docs/decisions/groups.md).
    """
    width = shape.sum_width(people)
    above = hidden_above(width, room)
    low = below(1 << shape.noise_bits)
    return low + ((1 + below(above)) << width) if above else low


def weighting_of(
    side: PublicSide | None, compiled: AnyFactors, shape: ReasonShape, plan: FoldPlan, people: int = 0
) -> Weighting:
    """How numbers are weighted under a key; `people` of a cohort, 0 for names.

    Raises SecurityError if there is no key, or none that can weigh numbers like these.
    """
    if isinstance(side, ResiduePublicSide):
        kind = (
            RowWeighting
            if shape.load(len(plan.origin) * len(compiled.points) + 1, people).guest_features
            else RlweWeighting
        )
        return kind(side, compiled, shape, plan, people)
    if isinstance(side, WeightedPublicSide):
        return PaillierWeighting(side, compiled, shape, plan.index + 1)
    raise SecurityError("no_key_for_reasons")


def _extend(weighted: tuple[list[int], list[int]], positions: Sequence[int], factors: Sequence[int]) -> None:
    weighted[0].extend(positions)
    weighted[1].extend(factors)
