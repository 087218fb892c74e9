"""Search for less discriminatory alternatives: models trained with other settings, judged by quality and disparity, one of them chosen.

As the Guest sees it: scores, labels and its own columns; of a Host's attribute sums over groups of at least 20 records.
A candidate is kept at every party as training left it, and is registered when somebody chooses it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.data.dictionary import Feature
from backend.data.federation import Measure
from backend.errors import NotAgreed, ParameterError
from backend.evaluation.performance import RESAMPLES, draws
from backend.explain.importance import FeatureImportance, feature_importance
from backend.fairness.alternatives import (
    Candidate,
    Cells,
    Choice,
    DecidedModels,
    Decision,
    DrawnQuality,
    IntervalFigure,
    Point,
    Search,
    Sums,
    Tried,
    cells_drawn,
    cutoff_for,
    judge,
    marks,
    read_search,
    too_close,
)
from backend.fairness.marking import check_cutoff
from backend.jobs import Job, work
from backend.protocols.group_sums.grouping import Group, group
from backend.protocols.group_sums.guest import GroupTable
from backend.protocols.training.algorithms import ALGORITHMS, Parameters
from backend.protocols.training.guest import Trained
from backend.protocols.training.joint import DIRECTIONS
from backend.protocols.training.parameters import read_constraints, write_constraints
from backend.results import ALTERNATIVES, TRAINING, ModelRecord, read_record
from backend.services import audit
from backend.services.audit import DONE, Note, recorded
from backend.services.compliance import Compliance
from backend.services.fairness import GROUPS, feature_of, group_names
from backend.services.leakage import refuse_if_identifying, released, usual_bound
from backend.services.measurement import NOT_AGREED, Measurement, MeasurementContext, Sessions
from backend.services.model_card import ModelCards, without_ids
from backend.services.training import TrainingRequest, forget, train
from backend.store.measurements import Kept
from backend.store.reviews import REASON_MIN
from backend.trees.metrics import auc, ks
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

MAX_TRIED = 64
TRAINED, RESAMPLED = 0.85, 0.95  # shares of the work that are done once models are trained, and quality is resampled
CHOICE = "alternative-choice"  # as the audit log calls it
PURPOSE: Measure = "alternatives"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AlternativesRequest:
    """A search. Every combination of what is listed is trained; what is not listed stays as in the model.

    Attributes
    ----------
    attribute : str
        Feature of any party by whose groups people are compared; may be one that the model does not use.
    without : tuple of tuple of str
        Sets of features to be left out together; leaving out nothing is always tried too.
    constraints : tuple of str
        Monotone constraints in place of the model's own, which are always tried too
        (:func:`backend.protocols.training.parameters.read_constraints`).
    depths : tuple of int
    lambdas : tuple of float
        L2 regularisation of leaf weights.
    cutoffs : tuple of float
        Of the model: each is a decision, at which an alternative accepts the same share of people.
    tolerance : float
        AUC that an alternative may lose.
    reference : str
        Code of the group that others are compared with; empty = the largest.
    groups : int
        Most groups of a number, or codes.
    cipher : {"paillier", "paillier-short", "none"}
        Of the sums by group, where a Host holds the attribute; models are trained as the model was.
    """

    model_id: str
    attribute: str
    without: tuple[tuple[str, ...], ...] = ()
    constraints: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()
    lambdas: tuple[float, ...] = ()
    cutoffs: tuple[float, ...] = (0.5,)
    tolerance: float = 0.002
    reference: str = ""
    groups: int = GROUPS
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    seed: int = 7


@dataclass(frozen=True)
class Opened:
    """One model of a search, looked at before it is registered.

    Attributes
    ----------
    registered : bool
    importance : tuple of FeatureImportance
    """

    record: ModelRecord
    registered: bool
    importance: tuple[FeatureImportance, ...]


@dataclass(frozen=True, eq=False, repr=False)
class TestedModel:
    """A model that was just trained, with its scores in the joint order.

    Attributes
    ----------
    ids : tuple of str
        Test records.
    labels, margins, predicted : ndarray of float64
        ``(n,)``: of these.
    checked : ndarray of float64
        Probabilities of the validation records.
    """

    tried: Tried
    ids: tuple[str, ...]
    labels: Floats
    margins: Floats
    predicted: Floats
    checked: Floats

    @classmethod
    def of(
        cls, name: str, base: ModelRecord, asked: TrainingRequest, record: ModelRecord, trained: Trained
    ) -> TestedModel:
        """What training left, seen from the model that the search began from."""
        settings, (labels, margins) = asked.parameters.as_dict(), trained.scores["test"]
        predict = trained.model.outputs.predict
        tried = Tried(
            name,
            record.id,
            record.content_hash,
            tuple(feature for feature in asked.exclude if feature not in base.exclude),
            str(settings.get("constraints", "")),
            int(settings["depth"]),
            settings.get("reg_lambda"),
            record.n_trees,
            record.n_leaves,
        )
        ids = tuple(i for i, part in trained.part_of.items() if part == "test")
        checked = predict(trained.scores["validation"][1])[:, 0]
        return cls(tried, ids, labels, margins[:, 0], predict(margins)[:, 0], checked)


class Alternatives:
    """Searches, and keeps what was found with the model that the search began from."""

    def __init__(self, measurement: Measurement, cards: ModelCards, compliance: Compliance) -> None:
        self._measurement, self._models, self._auditor = measurement, measurement.models, measurement.auditor
        self._workspace, self._cards, self._compliance = measurement.workspace, cards, compliance

    def start(self, request: AlternativesRequest) -> Job[Search]:
        """Search in the background; what was found is shown and reported from then on."""
        record = self._models.get(request.model_id)
        return Job[Search](lambda job: self.search(request, job), record.n_trees, alike=False).start()

    def searches(self, model_id: str) -> tuple[Search, ...]:
        """What was searched from a model, an attribute each."""
        record = self._models.get(model_id)
        return tuple(read_search(kept.basis) for kept in self._models.measured(record, ALTERNATIVES).values())

    def expected(self, model_id: str) -> str:
        """Constraints that hold a model to the directions its dictionary expects; empty where it expects none."""
        features = [feature for _, feature in self._models.guest_model(model_id).dictionary]
        return write_constraints(
            {
                f.name: DIRECTIONS[f.expected_direction]
                for f in features
                if f.expected_direction in DIRECTIONS and f.kind.value != "categorical"
            }
        )

    def search(self, request: AlternativesRequest, job: Job[Any]) -> Search:
        """Train every combination, judge all of them on the same test records, and keep the result.

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
        party, feature = _check(request, record, context)
        self._have_agreed(context, party, feature, job)
        asked = combinations(request, record, [f.name for _, f in context.model.dictionary])
        trained: list[TestedModel] = []
        for number, one in enumerate(asked):
            with work.part(TRAINED * number / len(asked), TRAINED * (number + 1) / len(asked)):
                job.points = ()
                trained.append(self._train(context, one, number, trained, job))
        job.points = ()
        with work.part(TRAINED, RESAMPLED):
            quality = resampled(trained, request.seed)
        with work.part(RESAMPLED, 1.0):
            groups, decided = _judged(context, party, feature, request, trained, quality, job)
        found = Search(
            record.id,
            record.content_hash,
            party,
            feature.name,
            datetime.now(UTC).isoformat(timespec="seconds"),
            sum(g.n for g in groups),
            "records" if party == context.runtime.guest.name else "sums",
            groups,
            group_names(groups, feature, "en"),
            group_names(groups, feature, "zh"),
            _reference(groups, request.reference),
            request.tolerance,
            tuple(model.tried for model in trained),
            decided,
        )
        self._keep(record, found)
        body: dict[str, Any] = {
            "feature": feature.name,
            "tried": {t.model: t.sha256 for t in found.tried},
            "outcome": DONE,
        }
        body |= {"decisions": len(decided), "narrower": sum(len(d.narrower()) for d in decided)}
        self._auditor.note(record.federation, ALTERNATIVES, audit.of_model(record) | body)
        return found

    def _have_agreed(self, context: MeasurementContext, party: str, feature: Feature, job: Job[Any]) -> None:
        """Ask the Host of the attribute whether it agrees, before anything is trained; a refusal is logged, and goes on."""
        if party == context.runtime.guest.name:
            return
        try:
            context.runtime.open_session((party,), job.cancelled, purpose=PURPOSE).close()
        except NotAgreed as refused:
            body = {"feature": feature.name, "host": refused.host, "outcome": NOT_AGREED}
            self._auditor.note(context.record.federation, ALTERNATIVES, audit.of_model(context.record) | body)
            raise

    def opened(self, model_id: str, attribute: str, name: str) -> Opened:
        """One model of a search, registered or not."""
        base, found = self._found(model_id, attribute)
        chosen = found.of(name)
        known = next((m for m in self._models.all(base.federation) if m.id == chosen.model), None)
        record = known or self._candidate(base, chosen)[0]
        return Opened(record, known is not None, tuple(feature_importance(self._models.partial_model(record))))

    def choose(self, model_id: str, attribute: str, name: str, reason: str) -> ModelRecord:
        """Take one model of a search, with a reason: it is registered as a draft, if it is not yet, and the choice is recorded.

        Raises
        ------
        ParameterError
            There was no such search or model, or the reason says nothing.
        ReleaseRefused
            Too many of its scores would identify their path.
        """
        base, found = self._found(model_id, attribute)
        chosen = found.of(name)
        if len(reason.strip()) < REASON_MIN:
            raise ParameterError(f"Give a reason of {REASON_MIN} characters or more; the report shows it.")
        if chosen.model not in {m.id for m in self._models.all(base.federation)}:
            self._register(base, chosen)
        return self._choose(base, found, chosen, reason.strip())

    @recorded(CHOICE)
    def _choose(self, note: Note, base: ModelRecord, found: Search, chosen: Tried, reason: str) -> ModelRecord:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        choice = Choice(chosen.name, chosen.model, self._auditor.actor, self._auditor.role, reason, now)
        note.about(base, feature=found.attribute, chosen=chosen.model, chosen_sha256=chosen.sha256)
        note.body |= {"reason_sha256": sha256(reason.encode()).hexdigest()}
        note.keep = lambda: self._keep(base, replace(found, choice=choice))
        return self._models.get(chosen.model)

    @recorded("train")
    def _register(self, note: Note, base: ModelRecord, chosen: Tried) -> None:
        candidate, traffic, digest = self._candidate(base, chosen)
        model, part_of = self._models.partial_model(candidate), self._models.part_of(base)
        runtime = self._workspace.runtime(base.federation)
        note.about(candidate)
        record = released(runtime, candidate, model, part_of, "validation", Job[None](lambda _: None, 0))
        if record.release is not None:
            allowed = usual_bound(record.release, runtime.federation.synthetic)
            refuse_if_identifying(record.release, allowed, record.n_trees)

        def keep() -> None:
            self._models.register(record, model, part_of, self._auditor.person)
            packs = self._compliance.pack_versions()
            note.body = audit.of_training(record, digest, packs) | {"traffic": traffic}

        note.keep = keep

    def _train(
        self,
        context: MeasurementContext,
        asked: TrainingRequest,
        number: int,
        before: Sequence[TestedModel],
        job: Job[Any],
    ) -> TestedModel:
        base = context.record
        grown, trained = train(context.runtime, asked, job)
        forget(context.runtime, asked)
        if not number and grown.content_hash != base.content_hash:
            raise ParameterError(
                f"Trained again, {base.id} comes out as another model: records or features have changed since. Train it on what "
                "there is now, and search from that model."
            )
        if number:
            self._keep_candidate(replace(grown, retrained_from=base.id), trained, job)
        model = TestedModel.of(f"c{number}", base, asked, grown, trained)
        if before and model.ids != before[0].ids:
            raise ParameterError("Two models were tested on different records; the search was stopped.")
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

    def _candidate(self, base: ModelRecord, chosen: Tried) -> tuple[ModelRecord, list[list[Any]], str]:
        body = json.loads(self._workspace.guest_store(base.federation).artefact(f"{chosen.model}.candidate"))
        return read_record(body["record"]), body["traffic"], body["input_sha256"]

    def _found(self, model_id: str, attribute: str) -> tuple[ModelRecord, Search]:
        base = self._models.get(model_id)
        kept = self._models.measured(base, ALTERNATIVES)
        if attribute not in kept:
            raise ParameterError(
                f"No alternatives to {base.id} were searched by {attribute}; searched by: {', '.join(kept) or 'nothing'}."
            )
        return base, read_search(kept[attribute].basis)

    def _keep(self, record: ModelRecord, found: Search) -> None:
        kept = Kept([], asdict(found))
        self._workspace.measurements(record.federation).put(record.content_hash, ALTERNATIVES, found.attribute, kept)


def combinations(
    request: AlternativesRequest, record: ModelRecord, offered: Sequence[str]
) -> tuple[TrainingRequest, ...]:
    """The trainings of a search, the model's own first.

    Raises
    ------
    ParameterError
        The algorithm has not what is asked for, there are too many combinations, or nothing to vary.
    """
    known: dict[str, Any] = dict(record.parameters)
    own: Parameters = ALGORITHMS[record.algorithm](**known)
    names = {f.name for f in fields(own)}
    levers: dict[str, tuple[Any, ...]] = {
        "constraints": request.constraints,
        "depth": request.depths,
        "reg_lambda": request.lambdas,
    }
    missing = [name for name, values in levers.items() if values and name not in names]
    if missing:
        raise ParameterError(f"{record.algorithm} has no {', '.join(missing)}; search without.")
    strange = [name for names_ in request.without for name in names_ if name not in offered]
    if strange:
        raise ParameterError(
            f"{', '.join(strange)} was not offered to {record.id}; leave out some of {', '.join(offered)}."
        )
    varied = {
        name: dict.fromkeys((known.get(name, getattr(own, name)), *levers[name])) for name in levers if name in names
    }
    sets = dict.fromkeys(((), *(tuple(sorted(set(dropped))) for dropped in request.without)))
    asked: dict[TrainingRequest, None] = {}
    for dropped, *values in itertools.product(sets, *varied.values()):
        changes = dict(zip(varied, values, strict=True))
        if changes.get("constraints") and dropped:
            kept = {f: sign for f, sign in read_constraints(changes["constraints"]).items() if f not in dropped}
            changes["constraints"] = write_constraints(kept)
        parameters = replace(own, **changes)
        exclude = tuple(dict.fromkeys((*record.exclude, *dropped)))
        asked[TrainingRequest(record.federation, parameters, record.hosts, exclude)] = None
    if not 1 < len(asked) <= MAX_TRIED:
        raise ParameterError(
            f"Models that would be trained: {len(asked)}. Choose what makes 2 to {MAX_TRIED}: "
            "features to leave out, constraints, depths, λ."
        )
    return tuple(asked)


def _check(request: AlternativesRequest, record: ModelRecord, context: MeasurementContext) -> tuple[str, Feature]:
    """Whose the attribute is; raises ParameterError where nothing can be searched."""
    if record.algorithm not in ALGORITHMS:
        raise ParameterError(
            f"The model {record.id} was not trained here ({record.algorithm}), so no alternatives to it can be."
        )
    if record.algorithm == "opboost":
        raise ParameterError(
            "OpBoost draws its noise again in every training, so that two of its models differ by chance too. Search from a model of "
            "another algorithm."
        )
    if record.task != "binary":
        raise ParameterError(f"Decisions by group need a model of two outcomes; this one's task is {record.task!r}.")
    for cutoff in request.cutoffs:
        check_cutoff(cutoff)
    if not request.cutoffs or not 0.0 <= request.tolerance < 0.5:
        raise ParameterError(f"Choose a cut-off, and an AUC to lose from 0 to 0.5; got {request.tolerance:g}.")
    return feature_of(context.runtime.federation, request.attribute)


def resampled(models: Sequence[TestedModel], seed: int) -> list[tuple[DrawnQuality, DrawnQuality]]:
    """AUC and KS of every model, over draws of test records that are the same for all."""
    labels = models[0].labels
    whole = np.ones((1, len(labels)))
    drawn: list[list[tuple[Floats, Floats]]] = [[] for _ in models]
    for done, weights in enumerate(draws(len(labels), RESAMPLES, seed), start=1):
        for model, parts in zip(models, drawn, strict=True):
            work.check()
            parts.append((auc(labels, model.margins, weights), ks(labels, model.margins, weights)))
        work.reached(min(1.0, done * len(weights) / RESAMPLES))
    found = []
    for model, parts in zip(models, drawn, strict=True):
        values = (auc(labels, model.margins, whole), ks(labels, model.margins, whole))
        found.append(
            tuple(DrawnQuality(float(v[0]), np.concatenate([part[i] for part in parts])) for i, v in enumerate(values))
        )
    return [(one, other) for one, other in found]


def at_decision(
    models: Sequence[TestedModel], quality: Sequence[tuple[DrawnQuality, DrawnQuality]], cutoff: float
) -> list[Candidate]:
    """Every model at the cut-off at which as many validation people are accepted as by the first one."""
    share = float((models[0].checked < cutoff).mean())
    own = [cutoff, *(cutoff_for(model.checked, share) for model in models[1:])]
    return [
        Candidate(model.tried.name, at, model.predicted < at, *found)
        for model, at, found in zip(models, own, quality, strict=True)
    ]


def _judged(
    context: MeasurementContext,
    party: str,
    feature: Feature,
    request: AlternativesRequest,
    models: Sequence[TestedModel],
    quality: Sequence[tuple[DrawnQuality, DrawnQuality]],
    job: Job[Any],
) -> tuple[tuple[Group, ...], tuple[DecidedModels, ...]]:
    """Groups, and all models at every decision."""
    decisions = [at_decision(models, quality, cutoff) for cutoff in request.cutoffs]
    runtime = context.runtime
    rows = np.array([runtime.table.row_of[i] for i in models[0].ids], dtype=np.intp)
    if party == runtime.guest.name:
        # of its own records the Guest may know as much as it likes
        measured = [list(range(1, len(candidates))) for candidates in decisions]
        own = group(feature, runtime.table.columns[feature.name][rows], request.groups)
        flags = _flags(decisions, measured, np.arange(len(rows)))
        sums = np.array([[mark[own.index == k].sum() for k in range(len(own.groups))] for row in flags for mark in row])
        # on the records that quality was drawn on
        drawn = [
            cells_drawn(row, own.index, len(own.groups), draws(len(rows), RESAMPLES, request.seed)) for row in flags
        ]
        return own.groups, _decided(decisions, measured, own.groups, sums, request, drawn)
    place, sessions = {row: i for i, row in enumerate(rows.tolist())}, Sessions(runtime, job, PURPOSE)
    with sessions.begin((party,)) as session:
        questions, counted = sessions.ask(session, request.cipher, request.key_bits, lambda joint: np.isin(joint, rows))
        at = np.array([place[row] for row in counted.tolist()], dtype=np.intp)
        measured = _far_apart(decisions, at)
        marked = [mark for row in _flags(decisions, measured, at) for mark in row]
        questions.send(marked, (party,), on_piece=sessions.progress)
        job.at("sums", party)
        found = questions.ask({party: (feature.name,)}, request.groups).get((party, feature.name))
    if found is None:
        found = GroupTable((), np.zeros((0, 0), dtype=np.int64))
    return found.groups, _decided(decisions, measured, found.groups, found.sums, request)


def _far_apart(decisions: Sequence[Sequence[Candidate]], at: NDArray[np.intp]) -> list[list[int]]:
    """At each decision the alternatives whose sums a Host may be asked for: no two sums differ by those of a few people.

    Raises
    ------
    ParameterError
        The first model's own decisions are not among them.
    """
    asked, measured = [np.ones(len(at), dtype=bool)], []
    for candidates in decisions:
        first, kept = candidates[0].accepted[at], []
        for place, candidate in enumerate(candidates):
            accepted = candidate.accepted[at]
            if not any(too_close(asked, flags) for flags in (accepted, accepted & first)):
                asked += [accepted, accepted & first]
                kept.append(place)
        if 0 not in kept:
            raise ParameterError(
                "At one of the cut-offs the model declines or accepts fewer than 20 of the test people, or decides nearly as at another "
                "cut-off; a Host is not asked about the groups of so few. Choose other cut-offs."
            )
        measured.append(kept[1:])
    return measured


def _flags(
    decisions: Sequence[Sequence[Candidate]], measured: Sequence[Sequence[int]], at: NDArray[np.intp]
) -> list[list[NDArray[np.int64]]]:
    """What is summed by group, a row a decision."""
    return [
        marks(candidates[0].accepted[at], [candidates[k].accepted[at] for k in kept])
        for candidates, kept in zip(decisions, measured, strict=True)
    ]


def _decided(
    decisions: Sequence[Sequence[Candidate]],
    measured: Sequence[Sequence[int]],
    groups: Sequence[Group],
    sums: NDArray[np.int64],
    request: AlternativesRequest,
    drawn: Sequence[Sequence[NDArray[np.int64]]] | None = None,
) -> tuple[DecidedModels, ...]:
    """All models at every decision, from ``(flags, groups)`` sums in the order of :func:`_flags`; `drawn` where records are at hand."""
    if not groups:
        raise ParameterError(
            f"{request.attribute} does not make two groups of 20 test records; compare by another feature."
        )
    rows, draw, judged = iter(sums), np.random.default_rng(request.seed), []
    for number, (candidates, kept) in enumerate(zip(decisions, measured, strict=True)):
        own, cells = next(rows), {}
        for k, place in enumerate(kept):
            found = Sums(own, next(rows), next(rows))
            cells[place] = (
                Cells.of_sums(found, groups, RESAMPLES, draw)
                if drawn is None
                else Cells(found.cells(groups), drawn[number][k])
            )
        others = ((candidate, cells.get(place)) for place, candidate in enumerate(candidates) if place)
        judged.append(Decision(candidates[0], own, tuple(others)))
    return judge(judged, groups, reference=_reference(groups, request.reference), tolerance=request.tolerance)


def _reference(groups: Sequence[Group], name: str) -> int:
    """Place of the group that others are compared with: the named one, else the largest."""
    named = [k for k, g in enumerate(groups) if name and g.name == name]
    if name and not named:
        raise ParameterError(f"No group {name!r}; groups are {', '.join(g.name or g.kind for g in groups)}.")
    return named[0] if named else max(range(len(groups)), key=lambda k: groups[k].n)
