"""What a model makes of the age of elderly applicants, measured for a user: the same people scored at elderly and at younger ages.

As the Guest sees it: scores, and its own columns. A Host draws ages from its own records and keeps them, and the classes' edges, to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.compliance.assessment import ELDERLY as KIND
from backend.crypto.interface import KeySide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.fairness.age_discrimination import AgeCheck, check_ages
from backend.jobs import Job
from backend.protocols.group_sums.grouping import ELDERLY, MIN_GROUP, is_in_years
from backend.protocols.scoring.age_classes import YOUNGER, age_classes
from backend.protocols.scoring.permuted_values_guest import have_ages
from backend.protocols.transport.channel import Session
from backend.services.measurement import Measurement, MeasurementContext, ModelRequest, Sessions, drawn

__all__ = ["AgeCheck", "AgeChecks", "AgeRequest"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AgeRequest(ModelRequest):
    """Request to measure how a model treats elderly ages, on some test records; scores use the fastest cipher, or plaintext.

    Attributes
    ----------
    feature : str
        A number of years that the model asks about, of any party.
    """

    feature: str
    samples: int = 2000


class AgeChecks:
    """Checks elderly ages; the finding and the report show it from then on."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement

    def start(self, request: AgeRequest) -> Job[AgeCheck]:
        """Measure what the model makes of elderly ages in the background."""

        def work(job: Job[AgeCheck]) -> AgeCheck:
            record = self._measurement.models.get(request.model_id)
            with self._measurement.asking(record, KIND, request.feature):
                check = measure_ages(self._measurement.context(record), request, job)
            self._measurement.keep_of_feature(record, KIND, check)
            return check

        return Job(work, 0, size="ages").start()


def measure_ages(context: MeasurementContext, request: AgeRequest, job: Job[AgeCheck]) -> AgeCheck:
    """Score people with ages of 62 or more, then with ages of each younger class; all else stays as it is.

    The Hosts see one person several times, as in shuffling
    (:func:`backend.services.explanation.measure_permutation`): simulated Hosts allow it
    for measuring, others count it.

    Raises
    ------
    ParameterError
        The model does not tell two outcomes apart or does not ask about the feature, the feature is no number of years, there are too few
        records, or a Host refused some of the people.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    party, feature = _asked_about(context, request.feature)
    ages = (_OwnAges if party == context.record.guest else _HostAges)(context, party, feature, request, job)
    elderly = ages.predicted(0)
    younger = [ages.predicted(index) for index in range(1, ages.classes)]
    return check_ages(party, feature.name, elderly, younger)


def _asked_about(context: MeasurementContext, name: str) -> tuple[str, Feature]:
    """Party and entry of a feature whose ages can be held against 62."""
    if context.record.task != "binary":
        raise ParameterError("only_two_outcomes", task=context.record.task)
    split_features = set()
    for tree in context.model.trees:
        for split in tree.splits.values():
            split_features.add(split.feature)
    entry = next(
        ((party, f) for party, f in context.model.dictionary if f.name == name and name in split_features), None
    )
    if entry is None:
        raise ParameterError("feature_in_no_split", feature=name)
    if not is_in_years(entry[1]):
        raise ParameterError("feature_not_in_years", feature=name, unit=entry[1].unit, age=ELDERLY)
    return entry


class _Ages:
    """The same people, scored at ages of one class after another.

    Attributes
    ----------
    classes : int
        The elderly included; known once the first was scored.
    """

    def __init__(
        self, context: MeasurementContext, party: str, feature: Feature, request: AgeRequest, job: Job[AgeCheck]
    ) -> None:
        self._context = context
        self._party = party
        self._feature = feature
        self._cipher = request.cipher
        self._sessions = Sessions(context.runtime, job, "age")
        rows = drawn(context, min(request.samples, len(context.test_ids)), request.seed)
        self._people = context.runtime.table.take(rows)
        self._draw = np.random.default_rng(request.seed)
        self.classes = 0

    def _begin(self, classes: int) -> None:
        if not classes:
            raise ParameterError(
                "ages_would_show", feature=self._feature.name, party=self._party, least=MIN_GROUP, age=ELDERLY
            )
        self.classes = classes

    def predicted(self, index: int) -> Floats:
        """``(n,)``: everybody's probability of the positive label at ages of a class."""
        n = len(self._people.ids)
        scored_rows, margins = self._sessions.score(
            self._context,
            self._changed(index),
            self._cipher,
            lambda session, key: self._first(session, key, index),
            at=(index * n, (self.classes or 1 + YOUNGER) * n),
        )
        if len(scored_rows) < n:
            raise ParameterError("people_refused_for_ages", refused=n - len(scored_rows), people=n)
        predicted: Floats = self._context.compiled.outputs.predict(margins)[:, 0]
        return predicted

    def _changed(self, index: int) -> PartyTable:
        """Return the Guest's table."""
        return self._people

    def _first(self, session: Session, key: KeySide, index: int) -> None:
        """What is asked before scoring."""


class _OwnAges(_Ages):
    """The Guest holds the ages."""

    def _changed(self, index: int) -> PartyTable:
        column = self._context.runtime.table.columns[self._feature.name]
        classes = age_classes(self._feature, column)
        self._begin(len(classes))
        ages = column[self._draw.choice(classes[index], size=len(self._people.ids))]
        return PartyTable(self._people.party, self._people.ids, {**self._people.columns, self._feature.name: ages})


class _HostAges(_Ages):
    """A Host holds the ages."""

    def _first(self, session: Session, key: KeySide, index: int) -> None:
        self._begin(have_ages(session, self._party, key, self._people.ids, self._feature.name, index))
