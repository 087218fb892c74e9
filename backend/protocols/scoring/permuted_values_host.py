"""A Host's handler for scores with other values: permuted, ages of one class, or none. Draws them itself; nobody learns whose."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host_state import Answer, Answering, Handlers, HostSession
from backend.protocols.scoring.age_classes import age_classes, is_in_years
from backend.protocols.scoring.messages import AgesAssigned, AssignAges, BlankValues, PermuteValues
from backend.store.accountant import EVERYBODY, TABLE, Question
from backend.trees.ensemble import Columns

MIN_PEOPLE = 50  # with a record here, among whom values are permuted, or who are scored without


@dataclass(frozen=True)
class PermutedValues:
    """Whose values stand in for whose, for one conversation; of ages, several people may have the same source.

    Attributes
    ----------
    features : tuple of str
        Permuted together: a person gets all of them from the same other person.
    sources : mapping of str to str
        Id → the id whose values it gets; of everybody who was named and has a record here.
    """

    features: tuple[str, ...]
    sources: Mapping[str, str] = field(repr=False)

    def of(self, ids: Sequence[str], held: Sequence[bool]) -> tuple[str, ...]:
        """Whose values each of some people gets; those without a record here stay without.

        Raises SecurityError where a person with a record was not among those whose values were permuted.
        """
        if any(known and i not in self.sources for i, known in zip(ids, held, strict=True)):
            raise SecurityError("Values were permuted among other people than those to be scored; ask about all.")
        return tuple(self.sources.get(i, i) for i in ids)

    def identities(self, ids: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
        """A person and whose values of the `used` features they get; their own id where none of those is permuted.

        Who is asked about again with the same values is the same again, so that no number that is drawn for them averages out.
        """
        moved = sorted(set(self.features) & set(used))
        sources = self.of(ids, [False] * len(ids))
        return tuple(
            i if not moved or source == i else "\0".join((i, source, *moved))
            for i, source in zip(ids, sources, strict=True)
        )


@dataclass(frozen=True)
class BlankedValues:
    """Who is scored without which values, for one conversation.

    Attributes
    ----------
    people : frozenset of str
        Everybody who was named and has a record here.
    """

    features: tuple[str, ...]
    people: frozenset[str] = field(repr=False)

    def blanked(self, columns: Columns, ids: Sequence[str], held: Sequence[bool]) -> Columns:
        """The same columns, those of the blanked features without a value.

        Raises SecurityError where a person with a record was not among those who were to be scored without.
        """
        if any(known and i not in self.people for i, known in zip(ids, held, strict=True)):
            raise SecurityError("Values were to be left out for other people than those to be scored; ask about all.")
        without = {
            name: np.full(len(ids), None, dtype=object)
            if columns[name].dtype == object
            else np.full(len(ids), np.nan, dtype=np.float64)
            for name in self.features
        }
        return {**columns, **without}

    def identities(self, ids: Sequence[str], used: Collection[str]) -> tuple[str, ...]:
        """As :meth:`PermutedValues.identities`: a person and which of the `used` features are blank."""
        blank = sorted(set(self.features) & set(used))
        return tuple("\0".join((i, "", *blank)) if blank and i in self.people else i for i in ids)


OtherValues = PermutedValues | BlankedValues


def other_values(session: HostSession) -> OtherValues | None:
    """With which values people are scored in a conversation instead of their own; None = their own."""
    return session.kept(PermutedValues) or session.kept(BlankedValues)


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
        self._session(sender, asked).keep(PermutedValues, permute(self.table, asked))

    def _blank_values(self, sender: str, asked: BlankValues) -> None:
        _check_own(self.table, asked.features)
        people = frozenset(_with_record(self.table, asked.ids))
        self._session(sender, asked).keep(BlankedValues, BlankedValues(asked.features, people))

    def _assign_ages(self, sender: str, asked: AssignAges) -> Answer:
        session, feature = self._session(sender, asked), self.features.get(asked.feature)
        if feature is None or not is_in_years(feature):
            raise SecurityError("People were to be scored at other ages by a feature that is no number of years here.")
        people = _with_record(self.table, asked.ids)
        self.answering.count_all(Question(sender, "", TABLE, "ages", (EVERYBODY,)), asked.conversation)
        classes = age_classes(feature, self.table.columns[feature.name])
        if classes:
            if not 0 <= asked.place < len(classes):
                raise SecurityError(f"Class {asked.place} of {len(classes)} classes of age was asked for.")
            draw, rows = secrets.SystemRandom(), classes[asked.place].tolist()
            sources = {i: self.table.ids[draw.choice(rows)] for i in people}
            session.keep(PermutedValues, PermutedValues((feature.name,), sources))
        yield sender, AgesAssigned(asked.conversation, len(classes))

    def _session(self, sender: str, asked: PermuteValues | BlankValues | AssignAges) -> HostSession:
        session = self.answering.sessions.of(asked.conversation)
        if sender != session.guest:
            raise SecurityError("Only the Guest may have people scored with other values.")
        for kind in (PermutedValues, BlankedValues):  # what was asked last counts
            session.drop(kind)
        return session


def permute(table: PartyTable, asked: PermuteValues) -> PermutedValues:
    """Draw a permutation of the people who have a record, uniformly and from the operating system's randomness.

    Raises SecurityError where a feature is none of this Host's, or fewer than :data:`MIN_PEOPLE` of the people have a record here.
    """
    _check_own(table, asked.features)
    people = _with_record(table, asked.ids)
    sources = list(people)
    secrets.SystemRandom().shuffle(sources)
    return PermutedValues(asked.features, dict(zip(people, sources, strict=True)))


def _check_own(table: PartyTable, features: Sequence[str]) -> None:
    if not features or not set(features) <= set(table.columns):
        raise SecurityError("Other values were asked for of a feature that is none of this Host's.")


def _with_record(table: PartyTable, ids: Sequence[str]) -> list[str]:
    """Those of some people who have a record, each once; raises SecurityError where they are fewer than :data:`MIN_PEOPLE`."""
    people = [i for i in dict.fromkeys(ids) if i in table.row_of]
    if len(people) < MIN_PEOPLE:
        raise SecurityError(
            f"Other values were asked for among {len(people)} people with a record here; {MIN_PEOPLE} or more are needed."
        )
    return people
