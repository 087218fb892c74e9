"""What reasons are in plain integers, for an auditor who has all parties' values: exact, without a cipher and without packing.

In the notation of :mod:`backend.trees.shap`: per entry and point the Guest has a base for Hosts' features, and a number for each of its
own; each Host of the chain multiplies both by its factors, and makes its own features' numbers of the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.medians import sides
from backend.protocols.explanations.guest_terms import Compiled, CompiledTerms
from backend.protocols.explanations.host_factors import (
    AnyFactors,
    CompiledDropFactors,
    CompiledFactors,
    Decided,
    Flags,
)
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.explanations.shape import COEFFICIENT_BITS, ReasonShape
from backend.trees.backgrounds import Background
from backend.trees.ensemble import Columns, GuestModel, HostModel
from backend.trees.folding import fold_structure

Whole = NDArray[Any]  # Python's integers, which have no largest


@dataclass(frozen=True, repr=False)
class Numbers:
    """One person's numbers on their way through the chain.

    Attributes
    ----------
    base : ndarray of int
        ``(entries, points)``.
    features : ndarray of int
        ``(entries, points, features)``: of all parties so far.
    constant : list of int
        One a feature of the Guest, at the last scale.
    """

    base: Whole
    features: Whole
    constant: list[int]

    def packed(self, layout: PaillierLayout, parties: int) -> list[int]:
        """Return the numbers as the party at that position receives them, one a ciphertext: base, packs, constant."""
        packs = []
        for of_point in self.features.reshape(-1, self.features.shape[2]).tolist():
            begin = 0
            for party in range(parties):
                for size in layout.packs(party):
                    packs.append(_joined(of_point[begin : begin + size], layout.slot))
                    begin += size
        constant = []
        begin = 0
        for size in layout.packs(0):
            constant.append(_joined(self.constant[begin : begin + size], layout.slot))
            begin += size
        return [*self.base.ravel().tolist(), *packs, *constant]

    def values(self) -> list[int]:
        """Return a number a feature, once the last Host is done."""
        totals: list[int] = self.features.sum(axis=(0, 1)).tolist()
        for feature, constant in enumerate(self.constant):
            totals[feature] += constant
        return totals


def _joined(numbers: Sequence[int], slot: int) -> int:
    return sum(number << (slot * i) for i, number in enumerate(numbers))


class PlainReasons:
    """Reasons of one model, with all of its halves.

    Parameters
    ----------
    hosts : mapping of str to HostModel
        Partial models of all Hosts of the chain.
    groups : tuple of int
        The reason of each item, where several are one; empty = each is one.
    """

    def __init__(
        self, model: GuestModel, hosts: Mapping[str, HostModel], background: Background, groups: tuple[int, ...] = ()
    ) -> None:
        self.compiled = CompiledTerms(model, background)
        self.hosts = hosts
        self._groups = groups
        folding = fold_structure(model.skeletons, model.guest, model.hosts)
        self._factors: dict[str, CompiledFactors] = {}
        for step in folding.steps:
            shares = self.compiled.shares_of(step.host)
            self._factors[step.host] = CompiledFactors(hosts[step.host], step, shares)
        shape = self.shape(1)
        self._drop_factors: dict[str, CompiledDropFactors] = {}
        for place, (host, factors) in enumerate(self._factors.items(), start=1):
            self._drop_factors[host] = CompiledDropFactors(factors, shape.groups_of(place))

    def shape(self, count: int) -> ReasonShape:
        """Return the sizes of a request."""
        return self.compiled.shape(count, self._groups)

    def features_of(self, host: str) -> list[str]:
        """Return a Host's features in use."""
        return self._factors[host].names

    def decided(self, host: str, columns: Columns, has_record: bool) -> Decided:
        """Return how a person answers at a Host, columns ``(1,)`` each."""
        return Decided.of(self._factors[host], self._drop_factors[host], columns, has_record)

    def contributions(self, guest_columns: Columns, decided: Mapping[str, Decided]) -> list[Numbers]:
        """Return a person's numbers as they come to each Host, and as the last one leaves them."""
        factors: dict[str, AnyFactors] = {**self._factors}
        return self._through(
            self.compiled, guest_columns, factors, {host: answers.holds for host, answers in decided.items()}
        )

    def drops(self, guest_columns: Columns, decided: Mapping[str, Decided]) -> list[Numbers]:
        """Return a person's numbers of drops as they come to each Host, and as the last one leaves them."""
        factors: dict[str, AnyFactors] = {**self._drop_factors}
        return self._through(
            self.compiled.drops(self._groups),
            guest_columns,
            factors,
            {host: answers.drops for host, answers in decided.items()},
        )

    def sides(self, guest_columns: Columns, decided: Mapping[str, Decided]) -> Flags:
        """Return whether each item's value is above its median, and whether below, ``(items, 2)``."""
        names = [feature for _, feature in self.compiled.items[: self.compiled.own]]
        of_guest = sides(names, guest_columns, self.compiled.model.medians, 1)[:, :, 0]
        return np.concatenate([of_guest, *(decided[host].sides for host in self.compiled.chain)])

    def _through(
        self, part: Compiled, guest_columns: Columns, factors: Mapping[str, AnyFactors], holds: Mapping[str, Flags]
    ) -> list[Numbers]:
        """Steps 1 and 2 of :mod:`backend.protocols.explanations.guest`, in plain integers."""
        terms = part.encode(guest_columns)
        entries = self.compiled.entries
        points = (part.rows - 1) // entries
        lift = COEFFICIENT_BITS * len(self.compiled.chain)
        constant = [number << lift for number in terms.constant[0].tolist()]
        base = terms.base[0].reshape(entries, points).astype(object)
        features = terms.own[0].reshape(entries, points, -1).astype(object)
        numbers_by_stage = [Numbers(base, features, constant)]
        for host in self.compiled.chain:
            numbers_by_stage.append(_weighed(numbers_by_stage[-1], factors[host], holds[host]))
        return numbers_by_stage


def _weighed(numbers: Numbers, factors: AnyFactors, holds: Flags) -> Numbers:
    """Return what an honest Host makes of a person's numbers."""
    step = factors.step
    points = numbers.base.shape[1]
    count = numbers.features.shape[2]
    others = factors.others(holds)[0].astype(object)
    own_factors = factors.own(holds)[0].astype(object)
    base = np.zeros((step.n_out, points), dtype=object)
    features = np.zeros((step.n_out, points, count + len(factors.names)), dtype=object)
    # Other parties' numbers are multiplied by one factor, entry by entry, and added up by the remaining conditions.
    for entry, target in enumerate(step.target):
        base[target] += numbers.base[entry] * others[entry]
        features[target, :, :count] += numbers.features[entry] * others[entry][:, np.newaxis]
    # A feature of this Host gets its numbers from the base.
    for factor, (entry, feature) in enumerate(zip(*(at.tolist() for at in factors.where), strict=True)):
        features[step.target[entry], :, count + feature] += numbers.base[entry] * own_factors[factor]
    return Numbers(base, features, numbers.constant)


def largest(
    values: Sequence[int], shape: ReasonShape, named_items: Sequence[int], ranked: Sequence[bool]
) -> tuple[int, ...]:
    """Return the items that a ranking names, of those that are `ranked`; of equal items the `named_items` come first.

    It gives the result of :func:`backend.protocols.ranking.circuit.select` on numbers without shares: the k largest above 0, and further
    ones while all belong to k reasons.
    """
    order = sorted(range(len(values)), key=lambda item: (-values[item], item not in named_items))
    above = [item for item in order if values[item] > 0 and ranked[item]]
    ranking = shape.ranking
    largest_items = above[: ranking.k]
    for more in range(ranking.k + 1, ranking.max_names + 1):
        if len({ranking.groups[item] for item in above[:more]}) <= ranking.k:
            largest_items = above[:more]
    return tuple(sorted(largest_items))
