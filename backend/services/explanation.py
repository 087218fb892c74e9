"""What a feature is worth to a model and how predictions move with it, measured for a user: by scores and sums under encryption.

As the Guest sees it. Of a Host's feature: scores with its values permuted by the Host, of which only the fall of quality is kept; and
mean predictions over tenths of at least 50 people, whose edges stay with the Host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.data.table import PartyTable
from backend.errors import HostRefused, ParameterError, QuestionRefused
from backend.evaluation.validation.suite import CUTOFF
from backend.explain.dependence import (
    DECILES,
    MIN_PEOPLE,
    Dependence,
    GroupMean,
    GroupMeans,
    Scale,
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
from backend.fairness.marking import mark
from backend.jobs import Job, work
from backend.protocols.group_sums.grouping import Group
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.scoring.permuted_values_guest import have_permuted
from backend.protocols.transport.channel import Session
from backend.results import MEANS, PERMUTATION, VALIDATION
from backend.services.asked_sums import (
    GROUPS,
    TEST,
    AnsweredSums,
    AskedSums,
    Key,
    Refused,
    ask_others,
    sum_own,
    with_first,
    without,
)
from backend.services.measurement import (
    AHEAD,
    ALIGNED,
    SCORED,
    KeyedRequest,
    Measurement,
    MeasurementContext,
    ModelRequest,
    Rows,
    Sessions,
    drawn,
    not_begun,
    of_outcomes,
    others_of_hosts,
)
from backend.services.policies import line_for
from backend.trees.ensemble import Columns

__all__ = [
    "MEASURES",
    "Explanation",
    "GroupMean",
    "MeansRequest",
    "Measure",
    "PermutationRequest",
    "Permuted",
    "SteadyImportance",
]

MAX_REPEATS = 20  # shufflings of one feature


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PermutationRequest(ModelRequest):
    """What every feature in use, and every party, is worth to a model: the fall of its quality when values are permuted.

    Attributes
    ----------
    samples : int
        Test records that are scored at most; 50 or more.
    repeats : int
        Permutations of each feature, 1 to :data:`MAX_REPEATS`.
    """

    samples: int = 1000
    repeats: int = 3


@dataclass(frozen=True)
class MeansRequest(KeyedRequest):
    """Mean predictions by groups of one Host feature.

    Attributes
    ----------
    samples : int or None
        Test records that are scored at most; None = all, so that no later question finds some of them answered about and others not.
    cutoff : float or None
        Decisions that are summed beside predictions, so that disparity and validation at it need not ask again; None = that of the model's
        last validation, else :data:`CUTOFF`.
    """

    feature: str
    samples: int | None = None
    cutoff: float | None = None


class Explanation:
    """Importances and effects of features."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._models = measurement.models

    def importance(self, model_id: str) -> tuple[FeatureImportance, ...]:
        """Return every feature offered to the training, largest gain first."""
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
        """Return each feature's or party's share of gain, splits or cover with its interval over the trees, largest first."""
        return steady_importance(self._models.guest_model(model_id), measure, by_party=by_party)

    def agreement(self, model_id: str) -> float:
        """Rank correlation of importances in even and odd trees, -1 … 1; NaN if too few split to tell."""
        return agreement(self._models.guest_model(model_id))

    def interactions(self, model_id: str) -> tuple[Interaction, ...]:
        """Pairs of features that meet on paths, the largest gain first."""
        return interactions(self._models.guest_model(model_id))

    def partial_dependence(self, model_id: str, feature: str) -> Dependence:
        """Return what the model says on average if everybody had the same value of one of the Guest's features; asks no Host.

        Friedman 2001, §8.2; both sides of a Host's split count by their covers. Raises as
        :func:`backend.explain.dependence.partial_dependence`.
        """
        record = self._models.get(model_id)
        columns = self._measurement.workspace.runtime(record.federation).table.columns
        expectation = self._models.compiled(record).expectation
        return partial_dependence(self._models.partial_model(record), expectation, feature, columns)

    def start_permutation(self, request: PermutationRequest) -> Job[tuple[Permuted, ...]]:
        """Measure the permutation importance of every feature in use and of every party in the background; kept until it is repeated."""

        def work(job: Job[tuple[Permuted, ...]]) -> tuple[Permuted, ...]:
            record = self._models.get(request.model_id)
            importances = measure_permutation(self._measurement.context(record), request, job)
            self._measurement.keep(record, PERMUTATION, "", [asdict(row) for row in importances])
            return importances

        return Job(work, 0).start()

    def permutation(self, model_id: str) -> tuple[Permuted, ...]:
        """Return the last permutation importances; empty if none were measured."""
        measurement = self._models.measured(self._models.get(model_id), PERMUTATION).get("")
        if measurement:
            return tuple(Permuted(**row) for row in measurement.rows)
        return ()

    def start_means(self, request: MeansRequest) -> Job[GroupMeans]:
        """Measure mean predictions by tenths of a Host's feature in the background; kept until it is repeated."""

        def work(job: Job[GroupMeans]) -> GroupMeans:
            record = self._models.get(request.model_id)
            last = self._models.measured(record, VALIDATION).get("")
            line = line_for(self._measurement.workspace, record)
            cutoff = request.cutoff or (line.cutoff if last is None else last.rows[0]["cutoff"])
            means = measure_means(self._measurement.context(record), replace(request, cutoff=cutoff), job)
            self._measurement.keep_of_feature(record, MEANS, means)
            return means

        return Job(work, 0).start()

    def means(self, model_id: str) -> dict[str, GroupMeans]:
        """Host's feature → mean predictions by its groups, as far as they were measured."""
        measurements = self._models.measured(self._models.get(model_id), MEANS)
        return {feature: read_means(measurement.rows[0]) for feature, measurement in measurements.items()}


def measure_permutation(
    context: MeasurementContext, request: PermutationRequest, job: Job[tuple[Permuted, ...]]
) -> tuple[Permuted, ...]:
    """Return what each feature in use and each party is worth: features first, in the dictionary's order.

    Those that are measured so far are the job's `result`.

    A feature of the Guest is shuffled in the Guest's sheet, one of a Host by the Host. The Hosts see one person several times, as in the
    attack by differencing (docs/attacks.md A8): simulated Hosts allow it for measuring, others count it.

    Raises
    ------
    ParameterError
        The number of samples or repeats is not usable, or a Host refused some of the people.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    if not 1 <= request.repeats <= MAX_REPEATS:
        raise ParameterError("repeats_out_of_range", most=MAX_REPEATS, repeats=request.repeats)
    available = len(context.test_ids)
    if request.samples < MIN_PEOPLE or available < MIN_PEOPLE:
        raise ParameterError("too_few_to_shuffle", least=MIN_PEOPLE, people=min(request.samples, available))
    rows = drawn(context, min(request.samples, available), request.seed)
    people = context.runtime.table.take(rows)
    labels = context.runtime.labels()[rows]
    sessions = Sessions(context.runtime, job, "shuffles")
    guest = context.record.guest
    draw = np.random.default_rng(request.seed)
    feature_sets = candidates(context.model)
    runs = 1 + len(feature_sets) * request.repeats
    runs_done = 0
    job.result = ()

    def score(table: PartyTable, first: Callable[[Session, KeySide], None] = lambda session, key: None) -> Floats:
        nonlocal runs_done
        scored_rows, margins = sessions.score(
            context, table, request.cipher, first, at=(runs_done * len(rows), runs * len(rows))
        )
        if len(scored_rows) < len(rows):
            raise ParameterError(
                "people_refused_for_importance", refused=len(rows) - len(scored_rows), people=len(rows)
            )
        runs_done += 1
        return margins

    baseline = score(people)
    for party, features in feature_sets:
        shuffled = []
        for _ in range(request.repeats):
            if party == guest:
                columns = _shuffled(people.columns, features, draw)
                margins = score(PartyTable(people.party, people.ids, columns))
            else:
                margins = score(people, lambda session, key: have_permuted(session, party, key, people.ids, features))  # noqa: B023 (called here)
            shuffled.append(margins)
        worth = permuted(party, features, labels, baseline, shuffled, context.compiled.outputs, request.seed)
        job.result = (*job.result, worth)
    return job.result


def _shuffled(columns: Columns, features: Sequence[str], draw: np.random.Generator) -> dict[str, NDArray[np.generic]]:
    """Return the same people with each other's values of some features, all from the same other person."""
    order = draw.permutation(len(columns[features[0]]))
    return {**columns, **{name: columns[name][order] for name in features}}


def read_means(stored: dict[str, Any]) -> GroupMeans:
    """Means as they were kept (``dataclasses.asdict``, from JSON)."""
    groups = tuple(
        GroupMean(Group(**row["group"]), tuple(row["mean"]), tuple(row["low"]), tuple(row["high"]), row["observed"])
        for row in stored["groups"]
    )
    return GroupMeans(stored["party"], stored["feature"], stored["n"], groups, stored.get("measured", ""))


def measure_means(context: MeasurementContext, request: MeansRequest, job: Job[GroupMeans]) -> GroupMeans:
    """Mean predictions by tenths, or codes, of a Host's feature: test records are scored, then summed by group, both under encryption.

    Where the Host has answered about the feature, for disparity or validation, say, and would not answer again, the means follow from that
    answer. Of two outcomes the same is summed as for those, so that theirs follow from this one.

    Raises
    ------
    ParameterError
        The feature is no Host's of this model, or there are too few test records.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    runtime = context.runtime
    outputs = context.compiled.outputs
    party = next((p for p, f in context.model.dictionary if f.name == request.feature), "")
    if party not in context.record.hosts:
        raise ParameterError("no_host_feature", feature=request.feature)
    context = of_outcomes(context)
    rows = drawn(context, _at_most(request.samples, len(context.test_ids)), request.seed)
    sessions = Sessions(runtime, job, "curves")
    key = (party, request.feature)
    sums = AskedSums(context, sessions, TEST, DECILES)
    others = others_of_hosts(context, [request.feature])
    features = with_first(key, others)
    sums.recover(request.cipher, request.key_bits)
    with work.part(0.0, AHEAD):
        refused = sessions.ask_ahead(context, rows, features, DECILES, request)
    if key in refused:
        return _answered_before(
            context,
            sessions,
            key,
            not_begun(context, request.feature, refused[key], sums.summed_without(request.feature)),
        )
    with work.part(AHEAD, SCORED):
        scored, margins = sessions.score(context, runtime.table.take(rows), request.cipher)
    if not len(scored):
        return _answered_before(context, sessions, key, sums.scored_without(request.feature))
    rows = rows[scored]
    predicted = outputs.predict(margins)
    if outputs.task == "binary" and not runtime.simulated:
        sum_own(context, sessions, rows, (runtime.labels()[rows] > 0, predicted[:, 0]), request.cutoff or CUTOFF)
    others = without(others, refused)
    with sessions.begin(tuple(with_first(key, others))) as session, work.part(SCORED, 1.0):
        with work.part(0.0, ALIGNED):
            questions, at = sessions.ask_about(session, request, rows)
        with work.part(ALIGNED, 1.0):
            answers, late = _asked(context, request, sums, questions, rows[at], predicted[at], key, others)
        if outputs.task == "binary":
            outcomes = runtime.labels()[rows[at]] > 0, predicted[at][:, 0]
            ask_others(context, sessions, questions, rows[at], outcomes, request.cutoff or CUTOFF, others)
    if key in late:  # another process was first
        return _answered_before(context, sessions, key, late[key])
    if answers[key].groups:
        return _means(key, answers[key], "")
    return GroupMeans(*key, questions.records, ())


def _at_most(requested: int | None, records: int) -> int:
    """Return the number of records to score."""
    if requested is None:
        return records
    return min(requested, records)


def _asked(
    context: MeasurementContext,
    request: MeansRequest,
    sums: AskedSums,
    questions: GroupQuestions,
    rows: Rows,
    predicted: Floats,
    key: Key,
    others: Mapping[str, Sequence[str]],
) -> tuple[dict[Key, AnsweredSums], Refused]:
    """Sums of what disparity and validation need, too, if there are two outcomes; else of predictions, by all features."""
    runtime = context.runtime
    task = context.compiled.outputs.task
    ids = runtime.table.take(rows).ids
    if task == "binary":
        outcomes = runtime.labels()[rows] > 0, predicted[:, 0]
        marking = mark(request.cutoff or CUTOFF, *outcomes, own_groups=False, undecided=True)
        return sums.outcomes(questions, ids, *outcomes, marking, with_first(key, {}), min_size=MIN_PEOPLE)
    scale = Scale.of(predicted, task)
    about = {"low": scale.low.tolist(), "span": scale.span.tolist()}
    return sums.ask(questions, ids, *marks(predicted, scale), about, with_first(key, others), min_size=MIN_PEOPLE)


def _answered_before(
    context: MeasurementContext, sessions: Sessions, key: Key, refused: HostRefused | QuestionRefused
) -> GroupMeans:
    """Return the means from an earlier answer about the feature, in that answer's groups; without one raise the Host's refusal.

    The Guest has it already: no Host is asked, and nothing new is revealed.
    """
    for max_groups in (DECILES, GROUPS):
        table = AskedSums(context, sessions, TEST, max_groups).kept([key], {}).get(key)
        if table is not None:
            return _means(key, table, table.day)
    raise refused


def _means(key: Key, table: AnsweredSums, day: str) -> GroupMeans:
    if "low" not in table.about:
        return from_marks(*key, table.marking, table.groups, table.sums, day)
    scale = Scale(np.array(table.about["low"]), np.array(table.about["span"]))
    return from_sums(*key, table.groups, table.sums, scale, day)
