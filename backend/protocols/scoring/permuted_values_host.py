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
    disclosed : dict of str to dict of str to float
        Structure → person → what the scores so far may have told, bits.
    """

    features: tuple[str, ...]
    sources: Mapping[str, str | None] = field(repr=False)
    from_all: bool = False
    disclosed: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)

    def check(self, ids: Sequence[str], has_record: Flags) -> None:
        """Raise SecurityError if a person with a record is missing in the message that named the people."""
        if any(is_known and i not in self.sources for i, is_known in zip(ids, has_record.tolist(), strict=True)):
            raise SecurityError("other_people_permuted")

    def charges(self, guest: str, served: ServedModel, score: Question) -> list[Charge]:
        """Return the charges, in addition to scores, about each person whose values may be used for other people.

        If a person is the source for one other person, the scores of that one bound what is revealed about the source. If a record may be
        drawn for several people, all scores together do. Neither can reveal more than the values of these features.
        """
        bits_before = self._told(served.structure, ())
        bits_now = self._told(served.structure, self._sourced(score.people), score.bits)
        max_bits = sum(served.model.capacities.get(name, 0.0) for name in self.features)
        bits = min(bits_now, max_bits) - min(bits_before, max_bits)
        if self.from_all:
            people: tuple[str, ...] = (EVERYBODY,)
        else:
            people = tuple(i for i, source in self.sources.items() if source is not None)
        if not people or bits <= 0.0:
            return []
        capacity = served.model.capacity
        return [Charge(Question(guest, "", SOURCE, served.structure, people, bits, capacity))]

    def note_told(self, served: ServedModel, score: Question) -> None:
        """Note that scores were told."""
        of_person = self.disclosed.setdefault(served.structure, {})
        for person in self._sourced(score.people):
            of_person[person] = of_person.get(person, 0.0) + score.bits

    def _sourced(self, people: Sequence[str]) -> list[str]:
        """Return who of some people is scored with values of somebody."""
        return [person for person in people if self.sources.get(person) is not None]

    def _told(self, structure: str, people: Sequence[str], bits: float = 0.0) -> float:
        """Return what scores may have told about one source, bits, once some people have been scored for `bits` each."""
        of_person = dict(self.disclosed.get(structure, {}))
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

    def identities(self, ids: Sequence[str], model_features: Collection[str]) -> tuple[str, ...]:
        """Return a name for each person and the source of their values of `model_features`; the person's id if all values are their own.

        The same person with the same values has the same name, so that repeated questions do not average the numbers drawn for it.
        """
        moved = sorted(set(self.features) & set(model_features))
        names = []
        for person in ids:
            source = self.sources.get(person, person)
            if not moved or source == person:
                names.append(person)
            else:
                names.append("\0".join((person, source or "", *moved)))
        return tuple(names)


@dataclass(frozen=True, repr=False)
class _People:
    """Who is to be scored with other values, as a rule has read it: everybody with a record here, each once."""

    ids: tuple[str, ...]
    features: tuple[str, ...]


# Rules: what the gate reads of a message. No value of a record is here.


def read_permute(request: Asked) -> Ask:
    """Read the people and the features whose values are permuted among them.

    Raises
    ------
    SecurityError
        If a feature is not this Host's, or too few of the people have a record here.
    """
    _check_own(request, request.message.features)
    return Ask(subject=_with_record(request, request.message.features))


def read_blank(request: Asked) -> Ask:
    """Read the people who are scored without some features: one feature, or all of this Host's.

    Two scores of a person, one with a feature alone and one without any, would reveal the value of that feature.

    Raises
    ------
    SecurityError
        As :func:`read_permute`, and if there are several features but not all.
    """
    features = request.message.features
    _check_own(request, features)
    if len(set(features)) > 1 and set(features) != set(request.features):
        raise SecurityError("blanked_some_features", got=len(set(features)), features=len(request.features))
    return Ask(subject=_with_record(request, features))


def read_ages(request: Asked) -> Ask:
    """Read the people who are scored, and the age class.

    Raises
    ------
    SecurityError
        If the feature is not an age in years, or too few of the people have a record here.
    """
    feature = request.features.get(request.message.feature)
    if feature is None or not is_in_years(feature):
        raise SecurityError("feature_is_not_age")
    people = _with_record(request, (feature.name,))
    # Classes follow from the set of people of 62 or older and the bins of the others: one place more than those of the bins.
    bits = column_bits(request.records + 1)
    structure = sha256(f"ages {feature.name}".encode()).hexdigest()
    charge = Charge(Question(request.session.guest, "", TABLE, structure, (EVERYBODY,), bits, bits))
    return Ask(opens={"ages": Rows(columns=(feature.name,))}, others=[charge], subject=people)


def _check_own(request: Asked, features: Sequence[str]) -> None:
    if not features or not set(features) <= set(request.features):
        raise SecurityError("feature_of_other_party")


def _with_record(request: Asked, features: tuple[str, ...]) -> _People:
    """Return the people who have a record; the last such message counts.

    Raises
    ------
    SecurityError
        If another party than the Guest asks, or too few people have a record. The refusal does not state their number.
    """
    if request.sender != request.session.guest:
        raise SecurityError("permuted_by_other_than_guest")
    request.session.drop(OtherValues)
    ids = tuple(dict.fromkeys(request.message.ids))
    has_record = request.roster.held(ids).tolist()
    people = tuple(person for person, is_known in zip(ids, has_record, strict=True) if is_known)
    min_people = request.floors.people(MIN_PEOPLE)
    if len(people) < min_people:
        raise SecurityError("few_people_to_permute", least=min_people)
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
    """Give each person the age of a record of the class, drawn separately for each; the person's own age if there are no classes.

    Scores are charged alike in both cases, so that the account reveals no ages.
    """
    people: _People = permit.ask.subject
    ages = opened["ages"]
    min_size = permit.floors.people(MIN_GROUP)
    classes = age_classes(permit.request.features[message.feature], ages.columns[message.feature], min_size)
    own_sources = {person: person for person in people.ids}
    permit.session.keep(OtherValues, OtherValues(people.features, own_sources, from_all=True))
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
