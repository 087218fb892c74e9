"""How much the scores of a model give away, measured for a user: who saw what, the leak meter, and a joint audit in the simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.federation import Measure
from backend.data.label import Task
from backend.data.table import SampleSheet
from backend.errors import Cancelled, NotAvailable, ParameterError, ReleaseRefused, SampleError
from backend.jobs import Job
from backend.privacy.disclosure import DisclosedField, PartyDisclosure, lines, table_two
from backend.privacy.given_away import GivenAway, given_away
from backend.privacy.leakage import SCORE_BITS, LeakBound, LeakMeter, LeakPoint, LeakReading, leak_curve
from backend.privacy.tradeoff import BITS, TradeoffPoint, tradeoff_curve
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.dither import half_units
from backend.remark import Remark
from backend.reports.adverse_action_notice import MAX_REASONS, form_groups
from backend.research.baselines.joint_audit import joint_audit
from backend.results import ModelRecord, ReleaseCheck, Score, ScoreBatch
from backend.services.audit import Auditor, Note, recorded
from backend.services.registry import Registry
from backend.services.samples import Samples
from backend.services.workspace import Workspace
from backend.store.accountant import COHORT, REASONS, SCORE, Question
from backend.trees.ensemble import Columns, GuestModel
from backend.trees.folding import fold_structure

MAX_IDENTIFYING = 0.05  # share of scores; with the default dither 0.6 % on the credit-card data, without 85 %
LEAF_PEOPLE = 50  # that a leaf should hold where it may be known who is in it; as groups of reasons and cohorts are
MAX_RECORDS = 2000  # Host records that released scores are compared with at most


SEED = 7  # of which test records are read
RELEASE_PEOPLE = 200  # validation records on which a new model's scores are measured before it is registered


@dataclass(frozen=True)
class Audited:
    """The model, the people and the parties of a joint audit.

    Attributes
    ----------
    rows : ndarray of int
        ``(n,)`` rows of the Guest's table.
    joint_ids : sequence of str
        Records that all parties hold; some of them, besides those of `rows`, are what scores are compared with.
    purpose : {"leaks"}, optional
        What Hosts have to agree to; None for the check before a model is registered, without which there is no model.
    """

    runtime: GuestRuntime
    record: ModelRecord
    model: GuestModel
    rows: NDArray[np.intp]
    joint_ids: Sequence[str]
    purpose: Measure | None = None

    def leaves(self, job: Job[Any]) -> NDArray[np.bool_]:
        """Leaves that no Host rules out, of the people of `rows` first and then of others to compare with."""
        if not self.runtime.simulated and self.record.hosts:
            raise NotAvailable(self.record.hosts[0], Remark("its_leaves"))
        ids = self.runtime.table.take(self.rows).ids
        row_ids = set(ids)
        audited_ids = (*ids, *(i for i in self.joint_ids if i not in row_ids))[: max(MAX_RECORDS, len(ids))]
        job.at("leak_audit", self.runtime.guest.name, 0)
        session = self.runtime.open_session(self.record.hosts, job.cancelled, counted=False, purpose=self.purpose)
        try:
            return joint_audit(session, self.record.id, self.model, audited_ids)
        finally:
            job.keep_transcript(session.close())


@dataclass(frozen=True)
class AnswerCost:
    """The cost of one more answer about a person at a Host.

    Attributes
    ----------
    score : float
        Bits that a score tells at most.
    reasons : float or None
        The same of reasons; None if the model gives none.
    score_spent, reasons_spent : bool
        Whether the Host would not answer now, since the person's budget is spent. Of a Host at its own company nobody knows before it is
        asked.
    """

    host: str
    score: float
    reasons: float | None
    score_spent: bool = False
    reasons_spent: bool = False


class Leakage:
    """Measures what scorings and scores disclose."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor, samples: Samples) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._samples = samples

    def disclosures(self, batch: ScoreBatch) -> tuple[tuple[PartyDisclosure, ...], tuple[DisclosedField, ...]]:
        """Return who saw what in a scoring: the paper's Table II, and every field of every message of its transcript.

        The table has what was seen in an earlier attempt, too, whose answers came from the Guest's journal.
        """
        record = self._models.get(batch.model_id)
        by_tree = self._models.partial_model(record).outputs.aggregation == "median"
        steps = self._models.compiled(record).guest.folding.steps
        if batch.recalled:
            asked_before = [step.host for step in steps]
        else:
            asked_before = []
        return (
            table_two(
                batch.transcript, record.guest, record.hosts, batch.cipher, by_tree=by_tree, asked_before=asked_before
            ),
            lines(batch.transcript, record.guest, batch.cipher),
        )

    def given_away(self, model_id: str, person: str = "") -> tuple[GivenAway, ...]:
        """Return what each Host's answers have given away within its window, and what more answers of a model would: its operator's view.

        Only simulated Hosts show it; of others, NotAvailable is raised.

        Parameters
        ----------
        person : str
            An id, whose total is wanted too.

        Raises
        ------
        SampleError
            The person is nobody of the Guest's, and no Host has answered about such an id.
        """
        record = self._models.get(model_id)
        runtime = self._workspace.runtime(record.federation)
        compiled = self._models.compiled(record).guest
        chain = [step.host for step in compiled.folding.steps]
        costs = self._costs(record)
        amounts = [given_away(host, runtime.operator.account(host), person) for host in runtime.hosts]
        if person and person not in runtime.table.row_of and not any(amount.person for amount in amounts):
            raise SampleError("unknown_to_all", id=person)
        capacities = {host: runtime.operator.capacity(host, record.id) for host in chain}
        bounded = []
        for amount in amounts:
            # No answer can tell more than all that the Host's half of the model tells apart.
            max_bits = capacities.get(amount.host, 0.0)
            host_costs = {kind: min(bits, max_bits) for kind, bits in costs.items()}
            bounded.append(replace(amount, capacity=max_bits, costs=host_costs))
        return tuple(bounded)

    def cost_of_answers(self, model_id: str, person: str = "") -> tuple[AnswerCost, ...]:
        """Return what a score and its reasons cost at each Host of a model, and whether a person's budget is spent."""
        record = self._models.get(model_id)
        runtime = self._workspace.runtime(record.federation)
        costs = self._costs(record)
        answer_costs = []
        for step in self._models.compiled(record).guest.folding.steps:
            spent = set()
            told_at_most = dict(costs)
            if runtime.simulated:  # all that a Host could ever tell of its half bounds each answer
                capacity = runtime.operator.capacity(step.host, record.id)
                told_at_most = {kind: min(bits, capacity) for kind, bits in costs.items()}
            if person and runtime.simulated:
                account = runtime.operator.account(step.host)
                structure = runtime.operator.structure(step.host, record.id)
                for kind in (SCORE, REASONS):
                    max_bits = told_at_most.get(kind, 0.0)
                    question = Question(record.guest, "", kind, structure, (person,), max_bits, capacity)
                    if account.reached(question).any():
                        spent.add(kind)
            answer_costs.append(
                AnswerCost(step.host, told_at_most[SCORE], told_at_most.get(REASONS), SCORE in spent, REASONS in spent)
            )
        return tuple(answer_costs)

    def _costs(self, record: ModelRecord) -> dict[str, float]:
        """Kind of question → what an answer tells at most by its own size, bits; names as many as a notice states."""
        # as a Host books it: the width that is announced, with room for the canary
        score = {SCORE: float(self._models.compiled(record).guest.sum_bits(canary=True))}
        shape = self._models.derived("shape of reasons", record, lambda: _shape(self._models.partial_model(record)))
        if shape is None:
            return score
        people = len(self._models.part_of(record))
        return score | {
            REASONS: shape.told,
            COHORT: shape.sums_bits(people),
        }

    def meter(
        self, model_id: str, score: Score, sample: SampleSheet | None = None, dither: float | None = None
    ) -> LeakReading:
        """Return what one released score leaves open of the Hosts' answers: the naive count and its entropy.

        Parameters
        ----------
        sample : SampleSheet, optional
            The values that were scored, one row; default the Guest's record of that id.
        dither : float, optional
            By how much its Hosts said that they moved it at most (:class:`backend.results.ScoreBatch`); default what simulated Hosts add.

        Raises
        ------
        SampleError
            The score was not made of these values; typed in or uploaded ones are not kept.
        """
        meter, columns, moved = self._meter(model_id, score, sample, dither)
        return meter.read(columns, [score.units], moved)[0]

    def bound(
        self, model_id: str, score: Score, sample: SampleSheet | None = None, dither: float | None = None
    ) -> LeakBound:
        """Return what one released score tells at most, in a fraction of the time of :meth:`meter`, whose parameters and errors it has."""
        meter, columns, moved = self._meter(model_id, score, sample, dither)
        return meter.bound(columns, [score.units], moved)[0]

    def _meter(
        self, model_id: str, score: Score, sample: SampleSheet | None, dither: float | None
    ) -> tuple[LeakMeter, Columns, int]:
        """Return the meter, the Guest's values that the score was made of, and by how many units it may have been moved."""
        record = self._models.get(model_id)
        bits = record.score_bits
        if dither is None:
            moved = half_units(self._models.dither(record.id), bits)
        else:
            moved = round(math.ldexp(dither, bits))
        guest_rows = (sample or self._samples.of_person(record.id, score.id)).guest
        expectation = self._models.compiled(record).expectation
        known_part = score.base + score.guest_part
        if (
            not score.scored
            or not np.isclose(expectation.given(guest_rows.columns, 1)[0], known_part, equal_nan=True).any()
        ):
            raise SampleError("scored_with_other_values", id=score.id)
        return LeakMeter(self._models.partial_model(record)), guest_rows.columns, moved

    def start_curve(self, model_id: str, people: int = 100) -> Job[tuple[LeakPoint, ...]]:
        """Read the meter for some test records at several widths of the score: a joint audit that only simulated Hosts answer.

        The points so far are in the job's `result`.
        """
        return Job[tuple[LeakPoint, ...]](lambda job: self._curve(model_id, people, job), 0).start()

    @recorded("leak-audit")
    def _curve(self, note: Note, model_id: str, people: int, job: Job[tuple[LeakPoint, ...]]) -> tuple[LeakPoint, ...]:
        return measure_leaks(self._audited(note, model_id, people), job)

    def start_tradeoff(self, model_id: str, people: int = 500) -> Job[tuple[TradeoffPoint, ...]]:
        """Resolution and dither of scores against privacy and quality on some test records: a joint audit in the simulation.

        The points so far are in the job's `result`.
        """
        return Job[tuple[TradeoffPoint, ...]](lambda job: self._tradeoff(model_id, people, job), 0).start()

    @recorded("leak-audit")
    def _tradeoff(
        self, note: Note, model_id: str, people: int, job: Job[tuple[TradeoffPoint, ...]]
    ) -> tuple[TradeoffPoint, ...]:
        return measure_tradeoff(self._audited(note, model_id, people), job)

    def _audited(self, note: Note, model_id: str, people: int) -> Audited:
        record = self._models.get(model_id)
        note.about(record, people=people, seed=SEED)
        rows = self._models.test_rows(record, min(people, len(self._models.test_ids(record))), SEED)
        runtime = self._workspace.runtime(record.federation)
        joint = list(self._models.part_of(record))
        return Audited(runtime, record, self._models.partial_model(record), rows, joint, "leaks")


def measure_leaks(audited: Audited, job: Job[tuple[LeakPoint, ...]]) -> tuple[LeakPoint, ...]:
    """Read the meter for some of the Guest's records; the points so far are the job's `result`.

    Raises
    ------
    ParameterError
        There is no record to read the meter for.
    """
    rows = audited.rows
    record = audited.record
    runtime = audited.runtime
    if not len(rows):
        raise ParameterError("no_records_for_leak_meter", model=record.id)
    widths = sorted({*SCORE_BITS, min(record.score_bits, max(SCORE_BITS))})
    hosts = audited.leaves(job)
    job.total = len(rows) * len(widths)
    job.result = ()
    job.at("leak_count", runtime.guest.name, 0)

    def person() -> None:
        job.at("leak_count", runtime.guest.name, job.done + 1)
        _check_cancelled(job)

    guest_rows = runtime.table.take(rows)
    chain = []
    for step in fold_structure(audited.model.skeletons, audited.model.guest, audited.model.hosts).steps:
        chain.append(step.host)
    width = runtime.dither(chain)
    for point in leak_curve(audited.model, guest_rows.columns, hosts, np.arange(len(rows)), widths, person, width):
        job.result = (*job.result, point)
    return job.result


def measure_tradeoff(audited: Audited, job: Job[tuple[TradeoffPoint, ...]]) -> tuple[TradeoffPoint, ...]:
    """Resolution and dither against privacy and quality, on some of the Guest's records; the points so far are the job's `result`.

    Raises
    ------
    ParameterError
        There is no record to measure on.
    """
    rows = audited.rows
    record = audited.record
    runtime = audited.runtime
    if not len(rows):
        raise ParameterError("no_records_for_tradeoff", model=record.id)
    hosts = audited.leaves(job)
    job.total = 0
    job.result = ()
    job.at("leak_count", runtime.guest.name, 0)
    bits = sorted({*BITS, record.score_bits}, reverse=True)
    guest_rows = runtime.table.take(rows)
    labels = runtime.labels()[rows]
    points = tradeoff_curve(
        audited.model,
        guest_rows.columns,
        labels,
        hosts,
        np.arange(len(rows)),
        bits=bits,
        on_point=lambda: _check_cancelled(job),
    )
    for point in points:
        job.result = (*job.result, point)
    return job.result


def _shape(model: GuestModel) -> ReasonShape | None:
    """Sizes of a request for one person's reasons; None if the model gives no reasons."""
    try:
        terms = CompiledTerms(model)
        return terms.shape(MAX_REASONS, form_groups(model, terms.items))
    except ParameterError:
        return None


def released(
    runtime: GuestRuntime,
    record: ModelRecord,
    model: GuestModel,
    part_of: Mapping[str, str],
    part: str,
    job: Job[Any],
) -> ModelRecord:
    """Return the record of a new model with what its scores would give away, measured on some records of a part."""
    ids = [i for i, name in part_of.items() if name == part][:RELEASE_PEOPLE]
    rows = np.array([runtime.table.row_of[i] for i in ids], dtype=np.intp)
    return replace(record, release=check_release(Audited(runtime, record, model, rows, list(part_of)), job))


def check_release(audited: Audited, job: Job[Any]) -> ReleaseCheck | None:
    """Return what the scores of a new model would give away, on some records; None if no Host is asked, or it runs at its own company."""
    runtime = audited.runtime
    record = audited.record
    model = audited.model
    rows = audited.rows
    chain = []
    for step in fold_structure(model.skeletons, model.guest, model.hosts).steps:
        chain.append(step.host)
    if not len(rows) or not chain or not runtime.simulated:
        return None
    job.at("leak_audit", runtime.guest.name)
    hosts = audited.leaves(Job[None](lambda _: None, 0))  # the job's own transcript is that of the training
    width = runtime.dither(chain)
    bits = sorted({*(b for b in BITS if b <= record.score_bits), record.score_bits}, reverse=True)
    points = list(
        tradeoff_curve(
            model,
            runtime.table.take(rows).columns,
            runtime.labels()[rows],
            hosts,
            np.arange(len(rows)),
            bits=bits,
            dithers=(0.0, width),
            on_point=lambda: _check_cancelled(job),
        )
    )
    first = points[0]  # the model's own resolution, with dither where it has units for it
    bare = next(p.unique for p in points if p.score_bits == first.score_bits and not p.dither)
    shared = {p.score_bits: p.unique for p in reversed(points)}  # with dither, which comes before none
    return ReleaseCheck(
        math.ldexp(width, model.outputs.scale),
        tuple((b, shared[b]) for b in bits),
        first.paths,
        len(rows),
        len(hosts),
        bare if first.dither else None,
    )


def finest(release: ReleaseCheck, bound: float) -> int | None:
    """Return the finest resolution at which no larger share of scores than `bound` identifies a path; None if the coarsest does, too."""
    return next((bits for bits, unique in release.unique if unique <= bound), None)


def usual_bound(release: ReleaseCheck) -> float:
    """Return the largest share of scores that may identify a path, by default.

    It is :data:`MAX_IDENTIFYING` for every model, of synthetic people too. With fewer than :data:`backend.results.MIN_RECORDS` records
    the share cannot be measured, because hardly any score could have company: nothing is refused, and nothing is called fine.
    """
    return MAX_IDENTIFYING if release.measurable else 1.0


def kept_to_the_rule(record: ModelRecord, most_named: float | None) -> ModelRecord:
    """Return the record with the largest share that was allowed; raise ReleaseRefused if more scores identify a path.

    `most_named` is a share that a person allowed; None means the usual bound.
    """
    if record.release is None:
        return record
    if most_named is None:
        bound = usual_bound(record.release)
    else:
        bound = most_named
    refuse_if_identifying(record.release, bound, record.n_trees, record.task)
    return replace(record, release=replace(record.release, most_named=bound))


def exception_of(record: ModelRecord) -> float | None:
    """Return the share above the usual bound that was allowed for a model; None if none was.

    A retraining or a tested variant of the model may use it, too.
    """
    release = record.release
    if release is None or not release.measurable or release.most_named <= MAX_IDENTIFYING:
        return None
    return release.most_named


def refuse_if_identifying(release: ReleaseCheck, bound: float, trees: int, task: Task = "binary") -> None:
    """Raise ReleaseRefused if the scores of so many trees name more paths than `bound`; it says what would help.

    Every piece of advice was measured (``python -m bench.foretold``): more trees hide paths in a score that is one number, and not in one
    of several classes, where each class has a number of its own.
    """
    if release.named <= bound:
        return
    bits = finest(release, bound)
    values = {"people": release.people, "records": release.records}
    if bits is not None:
        raise ReleaseRefused("too_many_named_at_these_bits", release.named, bound, bits, **values)
    if trees == 1:  # measured on bank marketing: 98 % at depth 3 and at depth 5, 100 % with 50 people a leaf
        raise ReleaseRefused(
            "too_many_named_by_one_tree", release.named, bound, bits, leaf_people=LEAF_PEOPLE, **values
        )
    if task == "classes":
        code = "too_many_named_by_classes"
    else:
        code = "too_many_named"
    raise ReleaseRefused(code, release.named, bound, bits, **values)


def _check_cancelled(job: Job[Any]) -> None:
    if job.cancelled():
        raise Cancelled("stopped_partly_measured")
