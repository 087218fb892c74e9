"""The Guest relates one feature to every other, whoever holds the two: a table of counts each, and of a Host's values nothing else.

Who encrypts depends on who holds what:

- the feature is the Guest's: a mark for each of its groups, summed by every Host by its own features;
- it is a Host's, the other one too: that Host encrypts the marks, the other (or itself) sums them, the Guest decrypts the sums;
- it is a Host's, the other one the Guest's: the Guest encrypts a mark for each group of its own features, and the Host sums them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature
from backend.errors import ParameterError, SecurityError
from backend.protocols.group_sums.disclosure_bound import leaves_unknown, spread_of
from backend.protocols.group_sums.grouping import MIN_GROUP, Group, Grouped, group
from backend.protocols.group_sums.guest import GroupTable
from backend.protocols.group_sums.values import Counts
from backend.trees.ensemble import Columns

Table = NDArray[np.int64]  # (groups of the feature, groups of the other one): records
Wanted = Mapping[str, Sequence[str]]  # Host → its features
Tables = dict[tuple[str, str], Table]  # by (party, feature) of the other one


class GroupSumsClient(Protocol):
    """Asks Hosts for sums by group about the records that count; (Host, feature) → sums, of those that make two groups."""

    def sums(
        self,
        marks: Sequence[Counts],
        features: Wanted,
        max_groups: int,
        known_groups: Sequence[Group] = (),
        min_size: int = MIN_GROUP,
    ) -> dict[tuple[str, str], GroupTable]:
        """Return sums of the Guest's 0/1 marks; `known_groups` are the groups, of at least `min_size` records, that can bear them."""

    def borne_by(self, marks: int, max_groups: int) -> int:
        """As of :meth:`GroupQuestions.borne_by`, of so many marks of 0 or 1."""

    def ahead(self, features: Wanted, max_groups: int, min_size: int) -> None:
        """Raise the error with which a Host would refuse sums of the Guest's marks by groups of at least `min_size` records."""

    def sums_of_host(
        self, source: tuple[str, str, int, int], features: Wanted, max_groups: int
    ) -> tuple[tuple[Group, ...], dict[tuple[str, str], GroupTable]]:
        """Return a Host's groups of a feature, limited in number and size by `source`, and sums of its marks of all but the last group."""


class ContingencyTable:
    """One feature against others.

    Parameters
    ----------
    client : GroupSumsClient
        Every Host that holds one of the features.
    columns : mapping of str to ndarray
        The Guest's, ``(records,)`` each.
    others : sequence of (party, Feature)
        What the feature is related to.
    max_groups, bins : int
        Groups of the feature, and of each other one, at most.
    at : callable
        Called with the stage, and the parties at work.
    """

    def __init__(
        self,
        client: GroupSumsClient,
        guest: str,
        columns: Columns,
        others: Sequence[tuple[str, Feature]],
        *,
        max_groups: int,
        bins: int,
        at: Callable[[str, str], None] = lambda stage, party: None,
    ) -> None:
        self._client = client
        self._guest = guest
        self._columns = columns
        self._max_groups = max_groups
        self._bins = bins
        self._at = at
        guest_features = [group(f, columns[f.name], bins) for party, f in others if party == guest]
        self._own = [g for g in guest_features if g.groups]
        self._bearing, self._least = self._bearable(self._own)
        self._asked: dict[str, list[str]] = {}
        for party, f in others:
            if party != guest:
                self._asked.setdefault(party, []).append(f.name)

    def tables(self, party: str, feature: Feature) -> tuple[tuple[Group, ...], Tables]:
        """The feature's groups, and a table for every other one that has groups, too, and can be related to them without naming anybody.

        Raises
        ------
        ParameterError
            The feature does not make two groups of :data:`MIN_GROUP` records.
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`backend.protocols.group_sums.guest.GroupQuestions.ask`.
        """
        if party == self._guest:
            return self._of_guest(feature)
        return self._of_host(party, feature.name)

    def _of_guest(self, feature: Feature) -> tuple[tuple[Group, ...], Tables]:
        grouped = group(feature, self._columns[feature.name], self._max_groups)
        _check(feature.name, grouped.groups)
        tables = {}
        for guest_feature in self._own:
            tables[(self._guest, guest_feature.feature)] = _cross_tabulated(grouped, guest_feature)
        if self._asked:
            tables |= _completed_all(self._client.sums(_flags(grouped), self._asked, self._bins))
        return grouped.groups, tables

    def _of_host(self, host: str, feature: str) -> tuple[tuple[Group, ...], Tables]:
        if self._bearing:  # checked first, since these sums are requested last, after the long work
            self._client.ahead({host: (feature,)}, self._max_groups, self._least)
        self._at("marks", host)
        source = host, feature, self._max_groups, self._least
        groups, of_hosts = self._client.sums_of_host(source, self._asked, self._bins)
        _check(feature, groups)
        tables = _completed_all(of_hosts)
        borne = self._borne(groups)
        if borne:
            flags = [flag for guest_feature in borne for flag in _flags(guest_feature)]
            features = {host: (feature,)}
            table = self._client.sums(flags, features, self._max_groups, groups, self._least).get((host, feature))
            if table is None or table.groups != groups:
                raise SecurityError("two_reports_of_feature", host=host, feature=feature)
            ends = np.cumsum([len(guest_feature.groups) - 1 for guest_feature in borne])[:-1]
            for guest_feature, sums in zip(borne, np.split(table.sums, ends), strict=True):
                tables[self._guest, guest_feature.feature] = _completed(sums, groups).T
        return groups, tables

    def _bearable(self, features: Sequence[Grouped]) -> tuple[list[Grouped], int]:
        """Return the Guest's features, in order, that a Host's groups of a quarter of the records can bear, and the groups' least size."""
        bearable = list[Grouped]()
        marks = 0
        min_size = MIN_GROUP
        for guest_feature in features:
            more = marks + len(guest_feature.groups) - 1
            size = self._client.borne_by(more, self._max_groups)
            if size <= max(MIN_GROUP, len(guest_feature.index) // 4):
                bearable = [*bearable, guest_feature]
                marks = more
                min_size = max(MIN_GROUP, size)
        return bearable, min_size

    def _borne(self, groups: Sequence[Group]) -> list[Grouped]:
        """Return the Guest's features, in order, that can be related to groups of these sizes without revealing their members."""
        sizes = [g.n for g in groups]
        spread = tuple[float, ...]()
        borne = []
        for guest_feature in self._bearing:
            more = (*spread, *spread_of(_flags(guest_feature)))
            if leaves_unknown(more, sizes):
                spread = more
                borne.append(guest_feature)
        return borne


def _check(feature: str, groups: Sequence[Group]) -> None:
    if not groups:
        raise ParameterError("fewer_than_two_groups", feature=feature, least=MIN_GROUP)


def _flags(grouped: Grouped) -> list[Counts]:
    """A mark of 0 or 1 for every group but the last."""
    return [(grouped.index == k).astype(np.int64) for k in range(len(grouped.groups) - 1)]


def _cross_tabulated(first: Grouped, second: Grouped) -> Table:
    """Records by two groupings of the Guest."""
    table = np.zeros((len(first.groups), len(second.groups)), dtype=np.int64)
    np.add.at(table, (first.index, second.index), 1)
    return table


def _completed_all(tables: dict[tuple[str, str], GroupTable]) -> Tables:
    return {key: _completed(table.sums, table.groups) for key, table in tables.items()}


def _completed(sums: Counts, groups: Sequence[Group]) -> Table:
    """Sums of the marks of all groups but the last, ``(marks, groups)``, with the last one's row."""
    sizes = np.array([g.n for g in groups], dtype=np.int64)
    return np.vstack([sums, sizes - sums.sum(axis=0)])
