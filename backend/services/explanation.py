"""What a feature is worth to a model and how predictions move with it, measured for a user: by scores and sums under encryption.

As the Guest sees it. Of a Host's feature: scores with its values permuted by the Host, of which only the fall of quality is kept; and
mean predictions over tenths of at least 50 people, whose edges stay with the Host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.explain.dependence import (
    DECILES,
    MIN_PEOPLE,
    Dependence,
    GroupMean,
    GroupMeans,
    Scale,
    bounds,
    from_marks,
    from_sums,
    marks,
    partial_dependence,
)
from backend.explain.direction import LearnedDirection, learned_directions
from backend.explain.importance import FeatureImportance, Measure, feature_importance
from backend.explain.permutation import Permuted, candidates, permuted
from backend.explain.stability import (
    MEASURES,
    Interaction,
    SteadyImportance,
    agreement,
    interactions,
    steady_importance,
)
from backend.jobs import Job
from backend.protocols.group_sums.grouping import Group
from backend.protocols.group_sums.guest import pairs_a_record
from backend.protocols.scoring.permuted_values_guest import have_permuted
from backend.protocols.transport.channel import Session
from backend.results import MEANS, PERMUTATION
from backend.services.asked_sums import TEST, AskedSums
from backend.services.fairness import GROUPS
from backend.services.measurement import GroupWork, Measurement, MeasurementContext, Rows, Sessions, drawn, sums_bits
from backend.trees.ensemble import Columns, Leaf, Split

__all__ = [
    "MEASURES",
    "Explanation",
    "GroupMean",
    "Leaf",
    "MeansRequest",
    "Measure",
    "PermutationRequest",
    "Permuted",
    "Split",
    "SteadyImportance",
]

MAX_REPEATS = 20  # shufflings of one feature


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PermutationRequest:
    """What every feature in use, and every party, is worth to a model: on at most so many test records, each shuffled so many times."""

    model_id: str
    samples: int = 1000
    repeats: int = 3
    cipher: Cipher = "paillier"
    seed: int = 7


@dataclass(frozen=True)
class MeansRequest:
    """Mean predictions by groups of one Host feature, on at most so many test records.

    Attributes
    ----------
    cipher : {"paillier", "paillier-short", "none"}
    key_bits : int
        Of the sums by group; scores come under the fastest cipher that holds them.
    """

    model_id: str
    feature: str
    samples: int = 2000
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    seed: int = 7


class Explanation:
    """Importances and effects of features."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement, self._models = measurement, measurement.models

    def importance(self, model_id: str) -> tuple[FeatureImportance, ...]:
        """Every feature offered to the training, largest gain first."""
        record = self._models.get(model_id)
        return self._models.derived(
            "importance", record, lambda: feature_importance(self._models.partial_model(record))
        )

    def directions(self, model_id: str) -> tuple[LearnedDirection, ...]:
        """Expected and learned direction of every feature."""
        record = self._models.get(model_id)
        return self._models.derived(
            "directions", record, lambda: learned_directions(self._models.partial_model(record))
        )

    def steady_importance(
        self, model_id: str, measure: Measure = "gain", *, by_party: bool = False
    ) -> tuple[SteadyImportance, ...]:
        """Each feature's or party's share of gain, splits or cover with its interval over the trees, largest first."""
        return steady_importance(self._models.guest_model(model_id), measure, by_party=by_party)

    def agreement(self, model_id: str) -> float:
        """Rank correlation of importances in even and odd trees, -1 … 1; NaN where too few split to tell."""
        return agreement(self._models.guest_model(model_id))

    def interactions(self, model_id: str) -> tuple[Interaction, ...]:
        """Pairs of features that meet on paths, the largest gain first."""
        return interactions(self._models.guest_model(model_id))

    def partial_dependence(self, model_id: str, feature: str) -> Dependence:
        """What the model says on average if everybody had the same value of one of the Guest's features; asks no Host."""
        record = self._models.get(model_id)
        columns = self._measurement.workspace.runtime(record.federation).table.columns
        expectation = self._models.compiled(record).expectation
        return partial_dependence(self._models.partial_model(record), expectation, feature, columns)

    def start_permutation(self, request: PermutationRequest) -> Job[tuple[Permuted, ...]]:
        """Measure the permutation importance of every feature in use and of every party in the background; kept until it is repeated."""

        def work(job: Job[tuple[Permuted, ...]]) -> tuple[Permuted, ...]:
            record = self._models.get(request.model_id)
            done = measure_permutation(self._measurement.context(record), request, job)
            self._measurement.keep(record, PERMUTATION, "", [asdict(row) for row in done])
            return done

        return Job(work, 0, weighed=False).start()

    def permutation(self, model_id: str) -> tuple[Permuted, ...]:
        """The last permutation importances; empty where there are none."""
        kept = self._models.measured(self._models.get(model_id), PERMUTATION).get("")
        return tuple(Permuted(**row) for row in kept.rows) if kept else ()

    def start_means(self, request: MeansRequest) -> Job[GroupMeans]:
        """Measure mean predictions by tenths of a Host's feature in the background; kept until it is repeated."""

        def work(job: Job[GroupMeans]) -> GroupMeans:
            record = self._models.get(request.model_id)
            done = measure_means(self._measurement.context(record), request, job)
            self._measurement.keep(record, MEANS, request.feature, [asdict(done)])
            return done

        return Job(work, 0, weighed=False).start()

    def means(self, model_id: str) -> dict[str, GroupMeans]:
        """Host's feature → mean predictions by its groups, as far as they were measured."""
        kept = self._models.measured(self._models.get(model_id), MEANS)
        return {feature: read_means(one.rows[0]) for feature, one in kept.items()}


def measure_permutation(
    context: MeasurementContext, request: PermutationRequest, job: Job[tuple[Permuted, ...]]
) -> tuple[Permuted, ...]:
    """What each feature in use and each party is worth; those so far are the job's `result`, features first, in the dictionary's order.

    A feature of the Guest is shuffled in the Guest's sheet, one of a Host by the Host. The Hosts see one person several times, as in the
    attack by differencing (SECURITY.md A8): simulated Hosts allow it for measuring, others count it.

    Raises
    ------
    ParameterError
        The number of samples or repeats is not usable, or a Host refused some of the people.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    if not 1 <= request.repeats <= MAX_REPEATS:
        raise ParameterError(f"Choose 1 to {MAX_REPEATS} repeats; {request.repeats} were requested.")
    available = len(context.test_ids)
    if request.samples < MIN_PEOPLE or available < MIN_PEOPLE:
        raise ParameterError(
            f"Values are shuffled among {MIN_PEOPLE} or more people; only {min(request.samples, available)} would be scored."
        )
    rows = drawn(context, min(request.samples, available), request.seed)
    own, labels = context.runtime.table.take(rows), context.runtime.labels()[rows]
    sessions = Sessions(context.runtime, job, "shuffles")
    guest, draw = context.record.guest, np.random.default_rng(request.seed)
    asked = candidates(context.model)
    runs, done = 1 + len(asked) * request.repeats, 0
    job.result = ()

    def score(table: PartyTable, first: Callable[[Session, KeySide], None] = lambda session, key: None) -> Floats:
        nonlocal done
        kept, margins = sessions.score(context, table, request.cipher, first, at=(done * len(rows), runs * len(rows)))
        if len(kept) < len(rows):
            raise ParameterError(
                f"A Host refused {len(rows) - len(kept)} of {len(rows)} people, since it has answered about them before; importance is not "
                "measured on the others alone. Draw other people, or wait until the budget is renewed."
            )
        done += 1
        return margins

    whole = score(own)
    for party, features in asked:
        shuffled = [
            score(PartyTable(own.party, own.ids, _shuffled(own.columns, features, draw)))
            if party == guest
            else score(own, lambda session, key: have_permuted(session, party, key, own.ids, features))  # noqa: B023 (called here)
            for _ in range(request.repeats)
        ]
        worth = permuted(party, features, labels, whole, shuffled, context.compiled.outputs, request.seed)
        job.result = (*job.result, worth)
    return job.result


def _shuffled(columns: Columns, features: Sequence[str], draw: np.random.Generator) -> dict[str, NDArray[np.generic]]:
    """The same people with each other's values of some features, all from the same other person."""
    order = draw.permutation(len(columns[features[0]]))
    return {**columns, **{name: columns[name][order] for name in features}}


def read_means(kept: dict[str, Any]) -> GroupMeans:
    """Means as they were kept (``dataclasses.asdict``, from JSON)."""
    groups = tuple(
        GroupMean(Group(**row["group"]), tuple(row["mean"]), tuple(row["low"]), tuple(row["high"]), row["observed"])
        for row in kept["groups"]
    )
    return GroupMeans(kept["party"], kept["feature"], kept["n"], groups, kept.get("measured", ""))


def measure_means(context: MeasurementContext, request: MeansRequest, job: Job[GroupMeans]) -> GroupMeans:
    """Mean predictions by tenths, or codes, of a Host's feature: test records are scored, then summed by group, both under encryption.

    Where the Host has answered disparity or validation about the feature, and would not answer again, the means follow from that answer.

    Raises
    ------
    ParameterError
        The feature is no Host's of this model, or there are too few test records.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    runtime, outputs = context.runtime, context.compiled.outputs
    party = next((p for p, f in context.model.dictionary if f.name == request.feature), "")
    if party not in context.record.hosts:
        raise ParameterError(
            f"No Host offered the feature {request.feature} to this model; choose one that a Host offered."
        )
    rows = drawn(context, min(request.samples, len(context.test_ids)), request.seed)
    sessions = Sessions(runtime, job, "curves")
    before = _answered_before(context, request, party, rows, sessions)
    if before is not None:
        return before
    bits = sums_bits(request.cipher, request.key_bits)
    pairs = pairs_a_record(bounds(outputs.count, labelled=outputs.task == "binary"), len(rows), bits)
    plan = GroupWork(len(rows), 1, len(rows), pairs, 1, DECILES, request.cipher, request.key_bits).plan(context)
    with plan.part("score"):
        scored, margins = sessions.score(context, runtime.table.take(rows), request.cipher)
    rows, predicted = rows[scored], outputs.predict(margins)
    positive = runtime.labels()[rows] > 0 if outputs.task == "binary" else None
    scale = Scale.of(predicted, outputs.task)
    with sessions.begin((party,)) as session:
        with plan.part("align"):
            questions, at = sessions.ask_about(session, request.cipher, request.key_bits, rows)
        made, largest = marks(predicted[at], None if positive is None else positive[at], scale)
        with plan.part("pairs"):
            questions.send(made, (party,), largest=largest, on_piece=sessions.progress)
        job.at("sums", party)
        found = questions.ask({party: (request.feature,)}, DECILES, min_size=MIN_PEOPLE).get((party, request.feature))
    if found is None:
        return GroupMeans(party, request.feature, questions.records, ())
    return from_sums(party, request.feature, found.groups, found.sums, scale)


def _answered_before(
    context: MeasurementContext, request: MeansRequest, party: str, rows: Rows, sessions: Sessions
) -> GroupMeans | None:
    """The means that an earlier answer about the feature holds, where the Host would refuse another; None where it is to be asked.

    It is the Guest's already: nobody is asked, and nothing new is told.
    """
    key, sums = (party, request.feature), AskedSums(context, sessions, TEST, GROUPS)
    table = sums.kept([key], {}).get(key)
    wanted = {party: (request.feature,)}
    if table is None or sessions.ask_ahead(context, rows, wanted, DECILES, request.cipher, request.key_bits) is None:
        return None
    return from_marks(party, request.feature, table.marking, table.groups, table.sums, table.day)
