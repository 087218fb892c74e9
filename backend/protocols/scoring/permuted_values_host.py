"""A Host's handler for scores with other values: permuted, ages of one class, or none. Draws them itself; nobody learns whose.

Such a score tells about two people: who is scored, and whose values are used. Anybody who may be the source is charged, too, by what the
scores may tell and no more than the values can. Without values there is no second person.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from backend.errors import SecurityError
from backend.protocols.group_sums.grouping import MIN_GROUP, is_in_years
from backend.protocols.host_state import ServedModel
from backend.protocols.scoring.age_classes import age_classes
from backend.protocols.scoring.messages import AgesAssigned, AssignAges, BlankValues, PermuteValues
from backend.protocols.terms.noise import Noise
from backend.protocols.terms.permit import Ask, Asked, Charge, Kind, Permit, Reply
from backend.protocols.terms.prices import column_bits
from backend.protocols.terms.records import Flags, Opened, Records, Rows
from backend.store.accountant import EVERYBODY, SOURCE, TABLE, Question
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
    from_all : bool
        Whether a source may be any record of this Host; otherwise each of the people is the source of one of them.
    told : dict of str to dict of str to float
        Structure → person → what the scores so far may have told, bits.
    """

    features: tuple[str, ...]
    sources: Mapping[str, str | None] = field(repr=False)
    from_all: bool = False
    told: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)

    def check(self, ids: Sequence[str], held: Flags) -> None:
        """Raise SecurityError if a person with a record was not among those who were named."""
        if any(known and i not in self.sources for i, known in zip(ids, held.tolist(), strict=True)):
            raise SecurityError("other_people_permuted")

    def charges(self, guest: str, served: ServedModel, score: Question) -> list[Charge]:
        """Return what is booked, beside scores, about everybody whose values may be used for them.

        A person is the source of one of the people, so that all scores of that one bound what is told about the source; a record that
        may be drawn for several people, all scores together. Neither can tell more than the values of these features say.
        """
        before = self._told(served.structure, ())
        now = self._told(served.structure, self._sourced(score.people), score.bits)
        most = sum(served.model.capacities.get(name, 0.0) for name in self.features)
        bits = min(now, most) - min(before, most)
        people = (EVERYBODY,) if self.from_all else tuple(i for i, source in self.sources.items() if source is not None)
        if not people or bits <= 0.0:
            return []
        capacity = served.model.capacity
        return [Charge(Question(guest, "", SOURCE, served.structure, people, bits, capacity))]

    def note_told(self, served: ServedModel, score: Question) -> None:
        """Note that scores were told."""
        of_person = self.told.setdefault(served.structure, {})
        for person in self._sourced(score.people):
            of_person[person] = of_person.get(person, 0.0) + score.bits

    def _sourced(self, people: Sequence[str]) -> list[str]:
        """Return who of some people is scored with values of somebody."""
        return [person for person in people if self.sources.get(person) is not None]

    def _told(self, structure: str, people: Sequence[str], bits: float = 0.0) -> float:
        """Return what scores may have told about one source, bits, once some people have been scored for `bits` each."""
        of_person = dict(self.told.get(structure, {}))
        for person in people:
            of_person[person] = of_person.get(person, 0.0) + bits
        if self.from_all:
            return sum(of_person.values())
        return max(of_person.values(), default=0.0)

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


@dataclass(frozen=True, repr=False)
class _People:
    """Who is to be scored with other values, as a rule has read it: everybody with a record here, each once."""

    ids: tuple[str, ...]
    features: tuple[str, ...]


# Rules: what the gate reads of a message. No value of a record is here.


def read_permute(asked: Asked) -> Ask:
    """Read among whom values of which features are permuted.

    Raises
    ------
    SecurityError
        If a feature is not this Host's, or too few of the people have a record here.
    """
    _check_own(asked, asked.message.features)
    return Ask(subject=_with_record(asked, asked.message.features))


def read_blank(asked: Asked) -> Ask:
    """Read who is scored without which features: one, or all of this Host's.

    Two scores of a person, one with a feature alone and one without any, would tell the value of that feature.

    Raises
    ------
    SecurityError
        As :func:`read_permute`, and if there are several features but not all.
    """
    features = asked.message.features
    _check_own(asked, features)
    if len(set(features)) > 1 and set(features) != set(asked.features):
        raise SecurityError("blanked_some_features", got=len(set(features)), features=len(asked.features))
    return Ask(subject=_with_record(asked, features))


def read_ages(asked: Asked) -> Ask:
    """Read who is scored at ages of which class.

    Raises
    ------
    SecurityError
        If the feature is not an age in years, or too few of the people have a record here.
    """
    feature = asked.features.get(asked.message.feature)
    if feature is None or not is_in_years(feature):
        raise SecurityError("feature_is_not_age")
    people = _with_record(asked, (feature.name,))
    # Classes follow from who is 62 or older and from the bins of the others: one place more than those of the bins.
    bits = column_bits(asked.records + 1)
    structure = sha256(f"ages {feature.name}".encode()).hexdigest()
    charge = Charge(Question(asked.session.guest, "", TABLE, structure, (EVERYBODY,), bits, bits))
    return Ask(opens={"ages": Rows(columns=(feature.name,))}, others=[charge], subject=people)


def _check_own(asked: Asked, features: Sequence[str]) -> None:
    if not features or not set(features) <= set(asked.features):
        raise SecurityError("feature_of_other_party")


def _with_record(asked: Asked, features: tuple[str, ...]) -> _People:
    """Return the people who have a record; what was asked last counts.

    Raises
    ------
    SecurityError
        If another party than the Guest asks, or too few people have a record. The refusal does not say how many have one.
    """
    if asked.sender != asked.session.guest:
        raise SecurityError("permuted_by_other_than_guest")
    asked.session.drop(OtherValues)
    ids = tuple(dict.fromkeys(asked.message.ids))
    held = asked.roster.held(ids).tolist()
    people = tuple(person for person, known in zip(ids, held, strict=True) if known)
    least = asked.floors.people(MIN_PEOPLE)
    if len(people) < least:
        raise SecurityError("few_people_to_permute", least=least)
    return _People(people, features)


# Handlers: what is answered to a message that has a permit.


def answer_permute(permit: Permit, opened: Opened, message: PermuteValues, noise: Noise) -> Reply:
    """Draw a permutation of the people who have a record, uniformly."""
    people: _People = permit.ask.subject
    sources = noise.shuffled(people.ids)
    permit.session.keep(OtherValues, OtherValues(people.features, dict(zip(people.ids, sources, strict=True))))
    yield from ()


def answer_blank(permit: Permit, opened: Opened, message: BlankValues, noise: Noise) -> Reply:
    """Note that the people are scored without values."""
    people: _People = permit.ask.subject
    permit.session.keep(OtherValues, OtherValues(people.features, dict.fromkeys(people.ids)))
    yield from ()


def answer_ages(permit: Permit, opened: Opened, message: AssignAges, noise: Noise) -> Reply:
    """Give everybody the age of a record in the class, each drawn by itself; their own if there are no classes.

    Scores are charged alike in both cases, so that the account says nothing of who is how old.
    """
    people: _People = permit.ask.subject
    ages = opened["ages"]
    min_size = permit.floors.people(MIN_GROUP)
    classes = age_classes(permit.asked.features[message.feature], ages.columns[message.feature], min_size)
    own = {person: person for person in people.ids}
    permit.session.keep(OtherValues, OtherValues(people.features, own, from_all=True))
    if classes:
        if not 0 <= message.place < len(classes):
            raise SecurityError("unknown_age_class", place=message.place, classes=len(classes))
        rows = classes[message.place].tolist()
        sources = {person: ages.ids[noise.choice(rows)] for person in people.ids}
        permit.session.keep(OtherValues, OtherValues(people.features, sources, from_all=True))
    yield permit.guest, AgesAssigned(message.conversation, len(classes))


PERMUTED_KINDS = {
    PermuteValues: Kind(read_permute, answer_permute),
    BlankValues: Kind(read_blank, answer_blank),
    AssignAges: Kind(read_ages, answer_ages),
}
