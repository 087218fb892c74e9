"""A Host's handler for scores with other values: permuted, ages of one class, or none. Draws them itself; nobody learns whose."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.group_sums.grouping import MIN_GROUP
from backend.protocols.host_state import Answer, Answering, Handlers, HostSession
from backend.protocols.scoring.age_classes import age_classes, is_in_years
from backend.protocols.scoring.messages import AgesAssigned, AssignAges, BlankValues, PermuteValues
from backend.protocols.terms.records import Flags, Records
from backend.store.accountant import EVERYBODY, TABLE, Question
from backend.trees.ensemble import Columns

MIN_PEOPLE = 50  # with a record here, among whom values are permuted, or who are scored without


@dataclass(frozen=True)
class OtherValues:
    """Which values people are scored with instead of their own, for one conversation.

    Attributes
    ----------
    features : tuple of str
        A person gets all of them from the same other person.
    sources : mapping of str to str or None
        Id → the id whose values it gets, None for no value; of everybody who was named and has a record here. Of ages, several people
        may have the same source.
    """

    features: tuple[str, ...]
    sources: Mapping[str, str | None] = field(repr=False)

    def check(self, ids: Sequence[str], held: Flags) -> None:
        """Raise SecurityError if a person with a record was not among those who were named."""
        if any(known and i not in self.sources for i, known in zip(ids, held.tolist(), strict=True)):
            raise SecurityError("other_people_permuted")

    def sources_of(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return whose values each of some people gets; their own id if they get none, or were not named."""
        return tuple(self.sources.get(i) or i for i in ids)

    def columns(self, theirs: Records, ids: Sequence[str]) -> Columns:
        """Return the features' columns, ``(n,)`` each, of some people, made of the records of their sources."""
        blank = np.array([self.sources.get(i, i) is None for i in ids], dtype=bool)
        nothing: dict[bool, Any] = {True: None, False: np.nan}  # in a column of categories, or of numbers
        columns = {}
        for name in self.features:
            column = theirs.columns[name]
            columns[name] = np.where(blank, nothing[column.dtype == object], column)
        return columns

    def identities(self, ids: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
        """A person and whose values of the `used` features they get; their own id where they keep all of those.

        Who is asked about again with the same values is the same again, so that no number that is drawn for them averages out.
        """
        moved = sorted(set(self.features) & set(used))
        sources = [self.sources.get(i, i) for i in ids]
        return tuple(
            i if not moved or source == i else "\0".join((i, source or "", *moved))
            for i, source in zip(ids, sources, strict=True)
        )


@dataclass(repr=False)
class PermutedValuesHandler:
    """Has people scored with values that are not theirs, for one conversation."""

    table: PartyTable
    features: Mapping[str, Feature]
    answering: Answering

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {PermuteValues: self._permute_values, BlankValues: self._blank_values, AssignAges: self._assign_ages}

    def _permute_values(self, sender: str, asked: PermuteValues) -> None:
        self._session(sender, asked).keep(OtherValues, permute(self.table, asked, self._min_people))

    def _blank_values(self, sender: str, asked: BlankValues) -> None:
        _check_own(self.table, asked.features)
        nothing = dict.fromkeys(_with_record(self.table, asked.ids, self._min_people))
        self._session(sender, asked).keep(OtherValues, OtherValues(asked.features, nothing))

    def _assign_ages(self, sender: str, asked: AssignAges) -> Answer:
        session, feature = self._session(sender, asked), self.features.get(asked.feature)
        if feature is None or not is_in_years(feature):
            raise SecurityError("feature_is_not_age")
        people = _with_record(self.table, asked.ids, self._min_people)
        self.answering.count_all(Question(sender, "", TABLE, "ages", (EVERYBODY,)), asked.conversation)
        min_size = max(MIN_GROUP, self.answering.min_group)
        classes = age_classes(feature, self.table.columns[feature.name], min_size)
        if classes:
            if not 0 <= asked.place < len(classes):
                raise SecurityError("unknown_age_class", place=asked.place, classes=len(classes))
            draw, rows = secrets.SystemRandom(), classes[asked.place].tolist()
            sources = {i: self.table.ids[draw.choice(rows)] for i in people}
            session.keep(OtherValues, OtherValues((feature.name,), sources))
        yield sender, AgesAssigned(asked.conversation, len(classes))

    @property
    def _min_people(self) -> int:
        return max(MIN_PEOPLE, self.answering.min_group)

    def _session(self, sender: str, asked: PermuteValues | BlankValues | AssignAges) -> HostSession:
        session = self.answering.sessions.of(asked.conversation)
        if sender != session.guest:
            raise SecurityError("permuted_by_other_than_guest")
        session.drop(OtherValues)  # what was asked last counts
        return session


def permute(table: PartyTable, asked: PermuteValues, min_people: int = MIN_PEOPLE) -> OtherValues:
    """Draw a permutation of the people who have a record, uniformly and from the operating system's randomness.

    Raises SecurityError where a feature is none of this Host's, or fewer than `min_people` of the people have a record here.
    """
    _check_own(table, asked.features)
    people = _with_record(table, asked.ids, min_people)
    sources = list(people)
    secrets.SystemRandom().shuffle(sources)
    return OtherValues(asked.features, dict(zip(people, sources, strict=True)))


def _check_own(table: PartyTable, features: Sequence[str]) -> None:
    if not features or not set(features) <= set(table.columns):
        raise SecurityError("feature_of_other_party")


def _with_record(table: PartyTable, ids: Sequence[str], min_people: int) -> list[str]:
    """Those of some people who have a record, each once; raises SecurityError where they are fewer than `min_people`."""
    people = [i for i in dict.fromkeys(ids) if i in table.row_of]
    if len(people) < min_people:
        raise SecurityError("few_people_to_permute", people=len(people), least=min_people)
    return people
