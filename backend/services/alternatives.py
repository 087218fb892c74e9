"""Search for less discriminatory alternatives: models trained with other settings, judged by quality and disparity, one of them chosen.

As the Guest sees it: scores, labels and its own columns; of a Host's attribute sums over groups of at least 20 records.
A candidate is kept at every party as training left it, and is registered when a user chooses it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np

from backend.compliance.assessment import DISPARITY
from backend.data.dictionary import Feature
from backend.errors import NotAgreed, ParameterError
from backend.explain.importance import FeatureImportance, feature_importance
from backend.fairness.alternatives import (
    Choice,
    DecidedModels,
    IntervalFigure,
    Point,
    Search,
    Tried,
    read_search,
)
from backend.fairness.disparity import REFERENCE
from backend.fairness.marking import check_cutoff
from backend.jobs import Job, work
from backend.protocols.training.algorithms import ALGORITHMS
from backend.protocols.training.guest import Trained
from backend.protocols.training.joint import DIRECTIONS
from backend.protocols.training.parameters import write_constraints
from backend.results import ALTERNATIVES, TRAINING, ModelRecord, read_record
from backend.services import audit
from backend.services.audit import DONE, Note, recorded
from backend.services.compliance import Compliance
from backend.services.fairness import feature_of, group_names
from backend.services.leakage import exception_of, kept_to_the_rule, released
from backend.services.measurement import NOT_AGREED, Measurement, MeasurementContext, Sessions, not_begun
from backend.services.model_card import ModelCards, without_ids
from backend.services.policies import line_for
from backend.services.training import TrainingRequest, forget, train
from backend.services.tried_models import (
    CHECKED,
    PURPOSE,
    SEARCH,
    AlternativesRequest,
    TestedModel,
    combinations,
    judged_by_group,
    named,
    reference_of,
    resampled,
    sums_of,
)
from backend.store.measurements import Kept
from backend.store.reviews import REASON_MIN
from backend.trees.serialization import dump_guest

__all__ = [
    "Alternatives",
    "AlternativesRequest",
    "DecidedModels",
    "IntervalFigure",
    "Opened",
    "Point",
    "Search",
    "Tried",
]

TRAININGS_OF_JUDGING = 1  # trainings that take as long as judging by group
CHOICE = "alternative-choice"  # as the audit log calls it


@dataclass(frozen=True)
class Opened:
    """One model of a search, looked at before it is registered."""

    record: ModelRecord
    registered: bool
    importance: tuple[FeatureImportance, ...]


class Alternatives:
    """Searches, and keeps what was found with the model that the search began from."""

    def __init__(self, measurement: Measurement, cards: ModelCards, compliance: Compliance) -> None:
        self._measurement = measurement
        self._models = measurement.models
        self._auditor = measurement.auditor
        self._workspace = measurement.workspace
        self._cards = cards
        self._compliance = compliance

    def start(self, request: AlternativesRequest) -> Job[Search]:
        """Search in the background; what was found is shown and reported from then on."""
        record = self._models.get(request.model_id)
        return Job[Search](lambda job: self.search(request, job), record.n_trees).start()

    def searches(self, model_id: str) -> tuple[Search, ...]:
        """Return what was searched from a model, an attribute each."""
        record = self._models.get(model_id)
        return tuple(
            read_search(measurement.basis) for measurement in self._models.measured(record, ALTERNATIVES).values()
        )

    def expected(self, model_id: str) -> str:
        """Constraints that hold a model to the directions its dictionary expects; empty if it expects none."""
        features = [feature for _, feature in self._models.guest_model(model_id).dictionary]
        return write_constraints(
            {
                f.name: DIRECTIONS[f.expected_direction]
                for f in features
                if f.expected_direction in DIRECTIONS and f.kind.value != "categorical"
            }
        )

    def search(self, request: AlternativesRequest, job: Job[Any]) -> Search:
        """Train every combination, judge all of them on the same records, and keep the result.

        Raises
        ------
        ParameterError
            The model cannot be trained again, or what is asked for does not fit it.
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`backend.protocols.guest.GuestParty.train`.
        """
        self._auditor.require(ALTERNATIVES)
        record = self._models.get(request.model_id)
        context = self._measurement.context(record)
        if not request.cutoffs:
            request = replace(request, cutoffs=(line_for(self._workspace, record).cutoff,))
        party, feature = _check(request, record, context)
        requests = combinations(request, record, [f.name for _, f in context.model.dictionary])
        if party != context.runtime.guest.name:
            self._ask_ahead(context, party, feature, request, job)
        request = replace(request, usual=self._compared_with(record, feature.name))
        trained: list[TestedModel] = []
        work.reached(0.0)  # what was read before tells no pace
        steps = len(requests) + TRAININGS_OF_JUDGING
        for number, training_request in enumerate(requests):
            with work.part(number / steps, (number + 1) / steps):
                job.points = ()
                trained.append(self._train(context, training_request, number, trained, job))
        job.points = ()
        quality = resampled(trained, request.seed)
        with work.part(len(requests) / steps, 1.0):
            groups, judged = judged_by_group(context, party, feature, request, trained, quality, job)
        decided = []
        for decision in judged:
            line = line_for(self._workspace, record, decision.cutoff)
            decided.append(replace(decision, policy=line.version))
        result = Search(
            model=record.id,
            sha256=record.content_hash,
            party=party,
            attribute=feature.name,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            n=sum(g.n for g in groups),
            source="records" if party == context.runtime.guest.name else CHECKED,
            groups=groups,
            words=group_names(groups, feature),
            reference=reference_of(groups, request, feature),
            tolerance=request.tolerance,
            tried=tuple(model.tried for model in trained),
            decisions=tuple(decided),
        )
        self._keep(record, result)
        body: dict[str, Any] = {
            "feature": feature.name,
            "tried": {t.model: t.sha256 for t in result.tried},
            "outcome": DONE,
        }
        body |= {"decisions": len(decided), "narrower": sum(len(d.narrower()) for d in decided)}
        self._auditor.note(record.federation, ALTERNATIVES, audit.of_model(record) | body)
        return result

    def _compared_with(self, record: ModelRecord, feature: str) -> str:
        """Return the group, in English, that the model's decisions by a feature were compared with; empty if they were not."""
        measurement = self._models.measured(record, DISPARITY).get(feature)
        rows = () if measurement is None else measurement.rows
        return next((row["about"]["en"] for row in rows if row["measure"] == f"selection rate, {REFERENCE}"), "")

    def _ask_ahead(
        self, context: MeasurementContext, party: str, feature: Feature, request: AlternativesRequest, job: Job[Any]
    ) -> None:
        """Ask the Host of the attribute before anything is trained; that it does not agree is logged, and any refusal goes on.

        Where it has answered the same search before, which a kill broke off, say, its answer serves.
        """
        sessions = Sessions(context.runtime, job, PURPOSE)
        row_of = context.runtime.table.row_of
        checked = [i for i, part in context.part_of.items() if part == CHECKED and i in row_of]
        rows = np.array([row_of[i] for i in checked], dtype=np.intp)
        sums = sums_of(context, sessions, request)
        features = {party: (feature.name,)}
        try:
            sums.recover(request.cipher, request.key_bits)
            with work.part(0.0, 0.0):  # its alignment takes little of the training that follows
                refused = sessions.ask_ahead(context, rows, features, request.groups, request)
        except NotAgreed as error:
            body = {"feature": feature.name, "host": error.host, "outcome": NOT_AGREED}
            self._auditor.note(context.record.federation, ALTERNATIVES, audit.of_model(context.record) | body)
            raise
        why = refused.get((party, feature.name))
        if why is not None and not sums.kept([(party, feature.name)], {SEARCH: named(request)}):
            raise not_begun(context, feature.name, why)

    def opened(self, model_id: str, attribute: str, name: str) -> Opened:
        """One model of a search, registered or not."""
        base, search = self._found(model_id, attribute)
        tried = search.of(name)
        registered = next((m for m in self._models.all(base.federation) if m.id == tried.model), None)
        record = registered or self._candidate(base, tried)[0]
        return Opened(record, registered is not None, tuple(feature_importance(self._models.partial_model(record))))

    def choose(self, model_id: str, attribute: str, name: str, reason: str) -> ModelRecord:
        """Take one model of a search, with a reason: it is registered as a draft, if it is not yet, and the choice is recorded.

        Raises
        ------
        ParameterError
            The search or the model does not exist, or the reason is too short.
        ReleaseRefused
            Too many of its scores would identify their path.
        """
        base, search = self._found(model_id, attribute)
        tried = search.of(name)
        if len(reason.strip()) < REASON_MIN:
            raise ParameterError("choice_without_reason", least=REASON_MIN)
        if tried.model not in {m.id for m in self._models.all(base.federation)}:
            self._register(base, tried)
        return self._choose(base, search, tried, reason.strip())

    @recorded(CHOICE)
    def _choose(self, note: Note, base: ModelRecord, search: Search, tried: Tried, reason: str) -> ModelRecord:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        choice = Choice(tried.name, tried.model, self._auditor.actor, self._auditor.role, reason, now)
        note.about(base, feature=search.attribute, chosen=tried.model, chosen_sha256=tried.sha256)
        note.body |= {"reason_sha256": sha256(reason.encode()).hexdigest()}
        note.keep = lambda: self._keep(base, replace(search, choice=choice))
        return self._models.get(tried.model)

    @recorded("train")
    def _register(self, note: Note, base: ModelRecord, tried: Tried) -> None:
        candidate, traffic, digest = self._candidate(base, tried)
        model = self._models.partial_model(candidate)
        part_of = self._models.part_of(base)
        runtime = self._workspace.runtime(base.federation)
        note.about(candidate)
        measured = released(runtime, candidate, model, part_of, "validation", Job[None](lambda _: None, 0))
        record = kept_to_the_rule(measured, exception_of(base))

        def keep() -> None:
            self._models.register(record, model, part_of, self._auditor.person)
            packs = self._compliance.pack_versions()
            note.body = audit.of_training(record, digest, packs) | {"traffic": traffic}

        note.keep = keep

    def _train(
        self,
        context: MeasurementContext,
        request: TrainingRequest,
        number: int,
        tested_models: Sequence[TestedModel],
        job: Job[Any],
    ) -> TestedModel:
        base = context.record
        grown, trained = train(context.runtime, request, job)
        forget(context.runtime, request)
        if not number and grown.content_hash != base.content_hash:
            raise ParameterError("base_trains_differently", model=base.id)
        if number:
            self._keep_candidate(replace(grown, retrained_from=base.id), trained, job)
        model = TestedModel.of(f"c{number}", base, request, grown, trained)
        if tested_models and (model.ids, model.checked_ids) != (tested_models[0].ids, tested_models[0].checked_ids):
            raise ParameterError("tested_on_other_records")
        return model

    def _keep_candidate(self, record: ModelRecord, trained: Trained, job: Job[Any]) -> None:
        """Keep what registering needs, so that nothing has to be trained again."""
        store = self._workspace.guest_store(record.federation)
        digest = audit.federation_hash(self._workspace.federation(record.federation))
        body = {"record": asdict(record), "traffic": audit.traffic(job.transcript), "input_sha256": digest}
        with self._workspace.database(record.federation).write():
            store.put_artefact(record.id, dump_guest(trained.model))
            store.put_artefact(f"{record.id}.candidate", json.dumps(body))
            self._cards.keep_scores(
                record, {part: without_ids(*scores, TRAINING) for part, scores in trained.scores.items()}
            )

    def _candidate(self, base: ModelRecord, tried: Tried) -> tuple[ModelRecord, list[list[Any]], str]:
        body = json.loads(self._workspace.guest_store(base.federation).artefact(f"{tried.model}.candidate"))
        return read_record(body["record"]), body["traffic"], body["input_sha256"]

    def _found(self, model_id: str, attribute: str) -> tuple[ModelRecord, Search]:
        base = self._models.get(model_id)
        searches = self._models.measured(base, ALTERNATIVES)
        if attribute not in searches:
            raise ParameterError("not_searched_by", model=base.id, attribute=attribute, searched=tuple(searches))
        return base, read_search(searches[attribute].basis)

    def _keep(self, record: ModelRecord, search: Search) -> None:
        measurement = Kept([], asdict(search))
        self._workspace.measurements(record.federation).put(
            record.content_hash, ALTERNATIVES, search.attribute, measurement
        )


def _check(request: AlternativesRequest, record: ModelRecord, context: MeasurementContext) -> tuple[str, Feature]:
    """Return whose the attribute is; raises ParameterError if nothing can be searched."""
    if record.algorithm not in ALGORITHMS:
        raise ParameterError("no_alternatives_to_import", model=record.id, algorithm=record.algorithm)
    if record.algorithm == "opboost":
        raise ParameterError("opboost_has_no_alternatives")
    if record.task != "binary":
        raise ParameterError("only_two_outcomes", task=record.task)
    for cutoff in request.cutoffs:
        check_cutoff(cutoff)
    if not request.cutoffs or not 0.0 <= request.tolerance < 0.5:
        raise ParameterError("cutoff_or_tolerance_wrong", tolerance=request.tolerance)
    party, feature = feature_of(context.runtime.federation, request.attribute)
    codes = feature.categories
    if request.reference and codes and request.reference not in (*codes, "rest", "missing"):
        raise ParameterError("unknown_group", feature=feature.name, group=request.reference, codes=tuple(codes))
    return party, feature
