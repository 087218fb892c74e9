"""Models of a search for alternatives: which are to be trained, and how they are judged on the same records.

Of an attribute of a Host's the Guest sees sums over groups of at least 20 records. They are of *validation* records, so that a Host that
answers once about the groups of some people can answer about test records for disparity, too (docs/decisions/groups.md).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature
from backend.data.federation import Measure
from backend.errors import ParameterError
from backend.evaluation.performance import RESAMPLES, draws
from backend.fairness.alternatives import (
    Candidate,
    Cells,
    CutoffComparison,
    DecidedModels,
    DrawnQuality,
    Sums,
    Tried,
    cells_drawn,
    cutoff_for,
    judge,
    marks,
    too_close,
)
from backend.jobs import Job, work
from backend.protocols.group_sums.grouping import MIN_GROUP, Group, group
from backend.protocols.training.algorithms import ALGORITHMS, Parameters
from backend.protocols.training.guest import Trained
from backend.protocols.training.parameters import read_constraints, write_constraints
from backend.results import ModelRecord
from backend.services.asked_sums import GROUPS, AskedSums
from backend.services.fairness import group_names
from backend.services.leakage import exception_of
from backend.services.measurement import ALIGNED, KeyedRequest, MeasurementContext, Sessions
from backend.services.training import TrainingRequest
from backend.trees.metrics import auc, ks

MAX_TRIED = 64
PURPOSE: Measure = "alternatives"
SEARCH = "search"  # which one an answer is about
CHECKED: Final = "validation"  # the part of records whose groups a Host is asked for
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AlternativesRequest(KeyedRequest):
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
    lambdas : tuple of float
        L2 regularisation of leaf weights.
    cutoffs : tuple of float
        Of the model: each is a decision, at which an alternative accepts the same share of people.
    tolerance : float
        AUC that an alternative may lose.
    reference : str
        Code of the group that others are compared with; empty = `usual`.
    groups : int
        Most groups of a number, or codes.
    cipher : {"paillier", "paillier-short", "none"}
        Of the sums by group, if a Host holds the attribute; models are trained as the model was.
    usual : str
        The group, in English, that the model's decisions were compared with, so that both name one; if there is none such, the largest.
        One of five bins is none of four.
    """

    attribute: str
    without: tuple[tuple[str, ...], ...] = ()
    constraints: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()
    lambdas: tuple[float, ...] = ()
    cutoffs: tuple[float, ...] = ()
    tolerance: float = 0.002
    reference: str = ""
    groups: int = GROUPS
    usual: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class TestedModel:
    """A model that was just trained, with its scores in the joint order.

    Attributes
    ----------
    ids, checked_ids : tuple of str
        Test records, and validation records.
    labels, margins, predicted : ndarray of float64
        ``(n,)``: of the test records.
    checked : ndarray of float64
        Probabilities of the validation records.
    weights : ndarray of float64 or None
        ``(n,)``: sample weights of the test records, by which AUC and KS count them.
    """

    tried: Tried
    ids: tuple[str, ...]
    checked_ids: tuple[str, ...]
    labels: Floats
    margins: Floats
    predicted: Floats
    checked: Floats
    weights: Floats | None = None

    @classmethod
    def of(
        cls, name: str, base: ModelRecord, request: TrainingRequest, record: ModelRecord, trained: Trained
    ) -> TestedModel:
        """Return what training left, seen from the model that the search began from."""
        settings = request.parameters.as_dict()
        labels, margins, weights = trained.scores["test"]
        predict = trained.model.outputs.predict
        tried = Tried(
            name,
            record.id,
            record.content_hash,
            tuple(feature for feature in request.exclude if feature not in base.exclude),
            str(settings.get("constraints", "")),
            int(settings["depth"]),
            settings.get("reg_lambda"),
            record.n_trees,
            record.n_leaves,
        )
        ids = tuple(i for i, part in trained.part_of.items() if part == "test")
        checked_ids = tuple(i for i, part in trained.part_of.items() if part == CHECKED)
        checked = predict(trained.scores[CHECKED][1])[:, 0]
        return cls(tried, ids, checked_ids, labels, margins[:, 0], predict(margins)[:, 0], checked, weights)


def combinations(
    request: AlternativesRequest, record: ModelRecord, offered: Sequence[str]
) -> tuple[TrainingRequest, ...]:
    """Return the trainings of a search, the model's own first.

    Raises
    ------
    ParameterError
        The algorithm has not what is asked for, there are too many combinations, or nothing to vary.
    """
    parameter_values: dict[str, Any] = dict(record.parameters)
    base_parameters: Parameters = ALGORITHMS[record.algorithm](**parameter_values)
    names = {f.name for f in fields(base_parameters)}
    levers: dict[str, tuple[Any, ...]] = {
        "constraints": request.constraints,
        "depth": request.depths,
        "reg_lambda": request.lambdas,
    }
    missing = [name for name, values in levers.items() if values and name not in names]
    if missing:
        raise ParameterError("lever_missing", algorithm=record.algorithm, levers=tuple(missing))
    feature_lists = [*request.without, *map(read_constraints, request.constraints)]
    strange = [name for names_ in feature_lists for name in names_ if name not in offered]
    if strange:
        raise ParameterError("feature_not_offered", names=tuple(strange), model=record.id, known=tuple(offered))
    varied = {
        name: dict.fromkeys((parameter_values.get(name, getattr(base_parameters, name)), *levers[name]))
        for name in levers
        if name in names
    }
    sets = dict.fromkeys(((), *(tuple(sorted(set(dropped))) for dropped in request.without)))
    trainings: dict[TrainingRequest, None] = {}
    for dropped, *values in itertools.product(sets, *varied.values()):
        changes = dict(zip(varied, values, strict=True))
        if changes.get("constraints") and dropped:
            constraints = {f: sign for f, sign in read_constraints(changes["constraints"]).items() if f not in dropped}
            changes["constraints"] = write_constraints(constraints)
        parameters = replace(base_parameters, **changes)
        exclude = tuple(dict.fromkeys((*record.exclude, *dropped)))
        trainings[TrainingRequest(record.federation, parameters, record.hosts, exclude, exception_of(record))] = None
    if not 1 < len(trainings) <= MAX_TRIED:
        raise ParameterError("too_many_trainings", count=len(trainings), most=MAX_TRIED)
    return tuple(trainings)


def resampled(models: Sequence[TestedModel], seed: int) -> list[tuple[DrawnQuality, DrawnQuality]]:
    """AUC and KS of every model, over draws of test records that are the same for all."""
    labels = models[0].labels
    if models[0].weights is None:
        base_weights = np.ones((1, len(labels)))
    else:
        base_weights = models[0].weights[None]
    drawn_quality: list[list[tuple[Floats, Floats]]] = [[] for _ in models]
    for n_drawn, weights in enumerate(draws(len(labels), RESAMPLES, seed), start=1):
        for model, parts in zip(models, drawn_quality, strict=True):
            work.check()
            counted = weights * base_weights
            parts.append((auc(labels, model.margins, counted), ks(labels, model.margins, counted)))
        work.reached(min(1.0, n_drawn * len(weights) / RESAMPLES))
    qualities = []
    for model, parts in zip(models, drawn_quality, strict=True):
        whole_auc = auc(labels, model.margins, base_weights)
        whole_ks = ks(labels, model.margins, base_weights)
        auc_draws = np.concatenate([auc_part for auc_part, _ in parts])
        ks_draws = np.concatenate([ks_part for _, ks_part in parts])
        qualities.append((DrawnQuality(float(whole_auc[0]), auc_draws), DrawnQuality(float(whole_ks[0]), ks_draws)))
    return qualities


def at_decision(
    models: Sequence[TestedModel],
    quality: Sequence[tuple[DrawnQuality, DrawnQuality]],
    cutoff: float,
    *,
    of_guest: bool,
) -> list[Candidate]:
    """Return every model at the cut-off at which it accepts as many people of one part as the first model; it is judged on the other part.

    Parameters
    ----------
    of_guest : bool
        Whether the Guest holds the attribute: then test records are judged, else validation records.
    """
    matched = [model.checked if of_guest else model.predicted for model in models]
    judged = [model.predicted if of_guest else model.checked for model in models]
    share = float((matched[0] < cutoff).mean())
    cutoffs = [cutoff, *(cutoff_for(probabilities, share) for probabilities in matched[1:])]
    return [
        Candidate(model.tried.name, at, probabilities < at, *quality_pair)
        for model, at, probabilities, quality_pair in zip(models, cutoffs, judged, quality, strict=True)
    ]


def judged_by_group(
    context: MeasurementContext,
    party: str,
    feature: Feature,
    request: AlternativesRequest,
    models: Sequence[TestedModel],
    quality: Sequence[tuple[DrawnQuality, DrawnQuality]],
    job: Job[Any],
) -> tuple[tuple[Group, ...], tuple[DecidedModels, ...]]:
    """Groups, and all models at every decision: of a Host's attribute from sums, of the Guest's own from records."""
    runtime = context.runtime
    of_guest = party == runtime.guest.name
    decisions = []
    for cutoff in request.cutoffs:
        decisions.append(at_decision(models, quality, cutoff, of_guest=of_guest))
    ids = models[0].ids if of_guest else models[0].checked_ids
    rows = np.array([runtime.table.row_of[i] for i in ids], dtype=np.intp)
    if of_guest:
        # of its own records the Guest may know as much as it likes
        measured = [list(range(1, len(candidates))) for candidates in decisions]
        grouped = group(feature, runtime.table.columns[feature.name][rows], request.groups)
        flags = _flags(decisions, measured, np.arange(len(rows)))
        rows_of_sums = []
        for row in flags:
            for mark in row:
                rows_of_sums.append([mark[grouped.index == k].sum() for k in range(len(grouped.groups))])
        sums = np.array(rows_of_sums)
        # on the records that quality was drawn on
        cells = [
            cells_drawn(row, grouped.index, len(grouped.groups), draws(len(rows), RESAMPLES, request.seed))
            for row in flags
        ]
        return grouped.groups, _decided(decisions, measured, grouped.groups, sums, request, feature, cells)
    sessions = Sessions(runtime, job, PURPOSE)
    key = (party, feature.name)
    asked_sums = sums_of(context, sessions, request)
    with sessions.begin((party,)) as session:
        with work.part(0.0, ALIGNED):
            questions, at = sessions.ask_about(session, request, rows)
        measured = _far_apart(decisions, at)
        marked = [mark for row in _flags(decisions, measured, at) for mark in row]
        about = {SEARCH: named(request), "marks": sha256(b"".join(mark.tobytes() for mark in marked)).hexdigest()}
        people = runtime.table.take(rows[at]).ids
        features = {party: (feature.name,)}
        with work.part(ALIGNED, 1.0):
            answers, refused = asked_sums.ask(questions, people, marked, [1] * len(marked), about, features)
    answers |= asked_sums.kept(refused, about, people)
    if key not in answers:
        raise refused[key]
    return answers[key].groups, _decided(decisions, measured, answers[key].groups, answers[key].sums, request, feature)


def sums_of(context: MeasurementContext, sessions: Sessions, request: AlternativesRequest) -> AskedSums:
    """Return what a Host is, or was, asked about for a search."""
    return AskedSums(context, sessions, CHECKED, request.groups)


def named(request: AlternativesRequest) -> str:
    """Hash of a search: the same search trains the same models and asks the same of the same records."""
    settings = {}
    for name, value in asdict(request).items():
        if name not in ("cipher", "key_bits", "usual"):
            settings[name] = value
    return sha256(json.dumps(settings).encode()).hexdigest()


def _far_apart(decisions: Sequence[Sequence[Candidate]], at: NDArray[np.intp]) -> list[list[int]]:
    """At each decision the alternatives whose sums a Host may be asked for: no two sums differ by those of a few people.

    Raises
    ------
    ParameterError
        The first model's own decisions are not among them.
    """
    asked_flags = [np.ones(len(at), dtype=bool)]
    measured = []
    for candidates in decisions:
        first = candidates[0].accepts[at]
        indices = []
        for index, candidate in enumerate(candidates):
            accepted = candidate.accepts[at]
            if not any(too_close(asked_flags, flags) for flags in (accepted, accepted & first)):
                asked_flags += [accepted, accepted & first]
                indices.append(index)
        if 0 not in indices:
            raise ParameterError("cutoffs_too_close", least=MIN_GROUP)
        measured.append(indices[1:])
    return measured


def _flags(
    decisions: Sequence[Sequence[Candidate]], measured: Sequence[Sequence[int]], at: NDArray[np.intp]
) -> list[list[NDArray[np.int64]]]:
    """Return what is summed by group, a row a decision."""
    return [
        marks(candidates[0].accepts[at], [candidates[k].accepts[at] for k in indices])
        for candidates, indices in zip(decisions, measured, strict=True)
    ]


def _decided(
    decisions: Sequence[Sequence[Candidate]],
    measured: Sequence[Sequence[int]],
    groups: Sequence[Group],
    sums: NDArray[np.int64],
    request: AlternativesRequest,
    feature: Feature,
    drawn_cells: Sequence[Sequence[NDArray[np.int64]]] | None = None,
) -> tuple[DecidedModels, ...]:
    """Return all models at every decision, from ``(flags, groups)`` sums in the order of :func:`_flags`.

    `drawn_cells` is given if the records are here.
    """
    if not groups:
        raise ParameterError("attribute_without_groups", attribute=request.attribute, least=MIN_GROUP)
    rows = iter(sums)
    draw = np.random.default_rng(request.seed)
    judged = []
    for number, (candidates, indices) in enumerate(zip(decisions, measured, strict=True)):
        first_sums = next(rows)
        cells = {}
        for k, index in enumerate(indices):
            candidate_sums = Sums(first_sums, next(rows), next(rows))
            if drawn_cells is None:
                cells[index] = Cells.of_sums(candidate_sums, groups, RESAMPLES, draw)
            else:
                cells[index] = Cells(candidate_sums.cells(groups), drawn_cells[number][k])
        others = ((candidate, cells.get(index)) for index, candidate in enumerate(candidates) if index)
        judged.append(CutoffComparison(candidates[0], first_sums, tuple(others)))
    return judge(judged, groups, reference=reference_of(groups, request, feature), tolerance=request.tolerance)


def reference_of(groups: Sequence[Group], request: AlternativesRequest, feature: Feature) -> int:
    """Place of the group that others are compared with: the one that is named, else the usual one, else the largest."""
    matching = [k for k, g in enumerate(groups) if request.reference and (g.name or g.kind) == request.reference]
    usual = [k for k, words in enumerate(group_names(groups, feature)) if words.en == request.usual]
    if request.reference and not matching:
        choices = tuple(group.name or group.kind for group in groups)
        raise ParameterError("unknown_reference_group", group=request.reference, known=choices)
    return next(iter((*matching, *usual)), max(range(len(groups)), key=lambda k: groups[k].n))
