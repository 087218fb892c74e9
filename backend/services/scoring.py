"""People scored for a user: the run under their cipher, what becomes of every row of their sheet, and a model evaluated that way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher, cipher_named
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.workers import Workers, cores
from backend.data.federation import capped
from backend.data.table import PartyTable, SampleSheet
from backend.errors import ParameterError, PartyUnreachable, SampleError
from backend.jobs import Job
from backend.policy.bands import Mark, Policy
from backend.protocols.approvals.messages import SCORING
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.fed_eini import refreshed
from backend.protocols.scoring.guest import Scored, ScoringClient, Timings
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import Acknowledge
from backend.protocols.transport.transcript import TranscriptEntry
from backend.remark import Remark
from backend.results import Evaluation, ModelRecord, Score, ScoreBatch, Stage, scores_csv
from backend.services import audit
from backend.services.audit import Auditor, Note, recorded
from backend.services.compliance import Compliance
from backend.services.decided import remember
from backend.services.policies import policy_of
from backend.services.registry import Compiled, Registry
from backend.services.score_marks import (
    SeenValues,
    few_held,
    guest_marks,
    host_mark,
    refused_score,
    seen_of,
    with_what_if,
)
from backend.services.waiting import TIMEOUT_SECONDS, repeated
from backend.services.workspace import Workspace
from backend.store.journal import Run
from backend.store.schema import StoredDecision
from backend.trees.metrics import measure

__all__ = ["KEY_BITS", "Cipher", "Scoring", "ScoringRequest", "Workers", "cipher_named", "cores"]

SEED = 7  # of which test records `evaluate` takes
RENEWED = 100  # scorings of a conversation that is kept open
IDLE_SECONDS = 1800.0  # seconds without a scoring after which a kept conversation is begun again
RLWE_FROM_PEOPLE = 50  # people from which one ciphertext a number is the slow way


@dataclass(frozen=True)
class ScoringRequest:
    """Samples to be scored; the model's policy decides.

    `decided_on` is the day whose policy holds, by default today.

    With `what_if` every score also says what another cut-off (probability of the positive label) would decide; it is no decision.
    With `canaries` every score carries a secret number that tells whether a Host has tampered with it; Paillier alone has room for one.
    Who would lose the scores if it stopped before it had passed them on asks to `hold` them: until :meth:`Scoring.handed_over` the same
    request gets them from the Guest's journal. `timeout` is how long busy Hosts are waited for, seconds; with
    :data:`backend.services.waiting.LASTING` those that are down are, too.

    With `assumed` values of the Guest the question is counted as any other. Its answer decides nothing: the Guest does not remember it, and
    the log counts no decision.
    """

    model_id: str
    samples: SampleSheet
    what_if: float | None = None
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    canaries: bool = True
    hold: bool = False
    timeout: float = TIMEOUT_SECONDS
    decided_on: date | None = None
    assumed: bool = False


class Conversation:
    """A session with the Hosts of a model that is kept open for one scoring after the other, so that they get the key once.

    Begun again after :data:`RENEWED` scorings, since its transcript grows, after one that failed, whose answers could still come, and
    after :data:`IDLE_SECONDS` seconds without one, before Hosts take it for over.
    """

    def __init__(self) -> None:
        self._runtime: GuestRuntime | None = None
        self._session: Session | None = None
        self._key: KeySide | None = None
        self._scorings = self._before = 0
        self._used = time.monotonic()
        self._job: Job[Any] | None = None
        self._owed: dict[str, list[tuple[str, str]]] = {}
        self._due: list[tuple[str, str]] = []

    def begin(
        self, runtime: GuestRuntime, hosts: tuple[str, ...], key: KeySide, job: Job[Any], *, counted: bool = True
    ) -> tuple[Session, bool]:
        """Return the session for one scoring more, and whether the Hosts have the key."""
        self._job = job
        now = time.monotonic()
        last_used = self._used
        is_open = (
            self._runtime is runtime
            and self._key is key
            and self._scorings < RENEWED
            and now < last_used + IDLE_SECONDS
        )
        self._used = now
        if self._session is None or not is_open:
            self.close()
            self._runtime = runtime
            self._key = key
            self._scorings = 0
            self._session = runtime.open_session(hosts, self._stopped, counted=counted)
        self._scorings = self._scorings + 1
        self._before = len(self._session.transcript())
        self._acknowledge(self._session)
        return self._session, self._scorings > 1

    def owed(self, run: Run) -> list[tuple[str, str]]:
        """Takes Host and request of every answer of a run; they are acknowledged once the run is handed over."""
        return self._owed.setdefault(run.name, [])

    def handed_over(self, run: str) -> None:
        """Note that the caller has the scores: Hosts get to know it with the next question, or at the end."""
        self._due += self._owed.pop(run, [])

    def _acknowledge(self, session: Session) -> None:
        """A Host that is down now gets it with the question after the next."""
        for host in sorted({host for host, _ in self._due}):
            requests = tuple(request for due_host, request in self._due if due_host == host)
            with suppress(PartyUnreachable):
                session.send(host, Acknowledge(session.name, requests))
                self._due = [(due_host, request) for due_host, request in self._due if due_host != host]

    def _stopped(self) -> bool:
        return self._job is not None and self._job.cancelled()

    def end(self, *, keep: bool) -> tuple[TranscriptEntry, ...]:
        """Return the messages of the scoring that has ended; the session stays open if it is to be kept."""
        if self._session is None:
            return ()
        if not keep:
            self._acknowledge(self._session)
        if keep:
            messages = self._session.transcript()
        else:
            messages = self._session.close()
        self._session = self._session if keep else None
        return messages[self._before :]

    def close(self) -> None:
        """End the session; the next scoring begins another."""
        self.end(keep=False)


class Scoring:
    """Scores people."""

    def __init__(
        self, workspace: Workspace, models: Registry, auditor: Auditor, compliance: Compliance, workers: Workers
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._compliance = compliance
        self._workers = workers

    def start(
        self, request: ScoringRequest, *, counted: bool = True, conversation: Conversation | None = None
    ) -> Job[ScoreBatch]:
        """Score in the background; what is not `counted` measures and leaves the simulated Hosts' budgets alone.

        In a `conversation` there is one scoring at a time, and all are counted.
        """
        people = len(request.samples.ids)
        run = partial(self._score, request, counted=counted, conversation=conversation)
        return Job[ScoreBatch](run, people, size=f"{request.cipher} {people}").start()

    def run(self, request: ScoringRequest, job: Job[Any], *, counted: bool = True) -> ScoreBatch:
        """Score within a job that is under way; `counted` as of :meth:`start`."""
        return self._score(request, job, counted, None)

    @recorded("score")
    def _score(
        self,
        note: Note,
        request: ScoringRequest,
        job: Job[ScoreBatch],
        counted: bool,
        conversation: Conversation | None,
    ) -> ScoreBatch:
        record = self._models.get(request.model_id)
        digest = audit.sheet_hash(request.samples)
        note.about(record, rows=len(request.samples.ids), input_sha256=digest)
        runtime = self._workspace.runtime(record.federation)
        compiled = self._models.compiled(record)
        rules = Rules.of(self._workspace, self._models, record, request.decided_on)
        batch = score(
            runtime, record, compiled, request, job, self._workers, rules, counted=counted, conversation=conversation
        )

        def keep() -> None:
            if counted and not request.assumed:
                remember(self._workspace, record, request.samples, batch, rules.seen_values.names)
            if not request.hold:
                self._workspace.journal(record.federation).handed_over(batch.run)

        note.keep = keep
        note.body = audit.of_scoring(record, batch, digest, self._compliance.pack_versions(), counted)
        if request.assumed:
            note.body |= {"assumed": True, "decisions": {}}
        return batch

    def suited(self, model_id: str, people: int) -> Cipher:
        """Return the default cipher for a number of people: RLWE for :data:`RLWE_FROM_PEOPLE` and more if it holds the model's scores."""
        if people < RLWE_FROM_PEOPLE:
            return "paillier"
        compiled = self._models.compiled(self._models.get(model_id)).guest
        try:
            parameters_for(max(1, len(compiled.folding.steps)), max(1, compiled.folding.n_entries), compiled.largest)
        except ParameterError:
            return "paillier"
        return "rlwe"

    def obfuscators(self, model_id: str) -> dict[str, int]:
        """Party → obfuscators that scoring one person under Paillier takes of its pool."""
        folding = self._models.compiled(self._models.get(model_id)).guest.folding
        return {self._models.guest_model(model_id).guest: folding.n_entries, **refreshed(folding)}

    def handed_over(self, batch: ScoreBatch) -> None:
        """Note that the caller has delivered the scores that were held: the journal forgets them."""
        self._workspace.journal(self._models.get(batch.model_id).federation).handed_over(batch.run)

    def evaluate(
        self,
        model_id: str,
        samples: int,
        key_bits: int = KEY_BITS,
        watch: Callable[[Job[ScoreBatch]], ScoreBatch] = Job.get,
    ) -> Evaluation:
        """Score `samples` random test records (any joint ones of an imported model) under encryption and measure them against the labels.

        Parameters
        ----------
        samples : int
            0 = none: the registered metrics on all test records only.
        watch : callable
            Follows the scoring to its end, e.g. to show progress.
        """
        record = self._models.get(model_id)
        if samples == 0:
            return Evaluation(record.metrics, None, 0.0)
        runtime = self._workspace.runtime(record.federation)
        rows = self._models.test_rows(record, samples, SEED)
        guest_rows = runtime.table.take(rows)
        sheet = SampleSheet(guest_rows.ids, guest_rows, {}, {}, ())
        batch = watch(self.start(ScoringRequest(record.id, sheet, key_bits=key_bits), counted=False))
        compiled = self._models.compiled(record)
        margins = compiled.guest.margins([s.units for s in batch.scores])
        metrics = measure(runtime.labels()[rows], margins, "test sample", compiled.outputs)
        return Evaluation(record.metrics, metrics, batch.seconds)

    @staticmethod
    def csv(batch: ScoreBatch) -> bytes:
        """Results as CSV, safe to open in a spreadsheet."""
        return scores_csv(batch)


@dataclass(frozen=True)
class Rules:
    """The rules that decide about people: the policy in force, and the usual values of the Guest."""

    policy: Policy
    seen_values: SeenValues

    @classmethod
    def of(cls, workspace: Workspace, models: Registry, record: ModelRecord, day: date | None = None) -> Rules:
        """Return the rules of a model as they hold on a UTC day, by default today."""
        return cls(policy_of(workspace, record, day), seen_of(workspace, models, record))


def score(
    runtime: GuestRuntime,
    record: ModelRecord,
    compiled: Compiled,
    request: ScoringRequest,
    job: Job[ScoreBatch],
    workers: Workers,
    rules: Rules,
    *,
    counted: bool,
    conversation: Conversation | None = None,
) -> ScoreBatch:
    """Score a sheet; rows with a problem are left out of the run and told in the result.

    Parameters
    ----------
    compiled : Compiled
        Of the record's model.
    counted : bool
        Whether simulated Hosts count the questions against their budgets.
    conversation : Conversation, optional
        That is kept open; only for questions that count and sheets without a Host's columns.

    Raises
    ------
    SampleError
        No row can be scored; nothing was sent.
    ParameterError
        The cut-off is no probability, or the model's scores do not fit the cipher.
    ApprovalPending
        A Host's operator has not decided yet; no person was counted.
    PartyUnreachable, SecurityError, Cancelled
        See :meth:`backend.protocols.scoring.guest.ScoringClient.score`.
    """
    if request.what_if is not None and not 0.0 <= request.what_if <= 1.0:
        raise ParameterError("cutoff_not_probability", cutoff=request.what_if)
    began = time.perf_counter()
    sheet = request.samples
    marks = guest_marks(rules.seen_values, sheet.guest)
    # Hosts are not asked about people whom the policy refuses by the Guest's values.
    refused = {row for row in marks.keys() - sheet.problems.keys() if rules.policy.refuses(marks[row])}
    good = np.array([i for i in range(len(sheet.ids)) if i not in sheet.problems and i not in refused], dtype=np.intp)
    if not len(good) and refused:
        scores = tuple(_not_asked(sheet, row, rules.policy, refused, marks) for row in range(len(sheet.ids)))
        return _nobody_asked(record, request, rules.policy, scores)
    if not len(good):
        raise SampleError(problems=nobody_to_score(sheet))
    job.at("key", runtime.guest.name, 0)
    job.total = len(good)
    key = runtime.keys.scoring(request.cipher, request.key_bits, compiled.guest)
    prepared = Stage("key", runtime.guest.name, time.perf_counter() - began)
    batches = -(-len(good) // key.rows_per_message(max(1, compiled.guest.folding.n_entries)))
    run = None
    if counted:
        run = begun(
            runtime, "score", record, sheet, request.cipher, request.key_bits, request.canaries, batches=batches
        )
    question = _Question(runtime, record, compiled, request, good, key, run, workers, counted, conversation, job)
    repeatable = run is not None or not counted  # else a question that a Host has counted would be counted again
    try:
        keep = (lambda: None) if run is None else run.wanted
        scored = repeated(question.ask, runtime, record.hosts, job, request.timeout if repeatable else 0.0, keep)
    finally:
        if runtime.journal is not None:
            runtime.journal.ended(run)
    job.at("done", runtime.guest.name, len(good))
    scores = sample_scores(sheet, good, compiled, question.own, scored, rules.policy, marks, refused, request.what_if)
    return ScoreBatch(
        model_id=record.id,
        cipher=key.scheme,
        key_bits=key.bits,
        policy=rules.policy,
        scores=scores,
        stages=(prepared, *stages(scored)),
        transcript=question.transcript,
        leaves=record.n_leaves,
        ciphertexts_per_sample=scored.entries,
        score_bits=record.score_bits,
        seconds=job.seconds,
        dither=scored.dither / float(1 << record.score_bits),
        canaries=scored.canaries,
        run="" if run is None else run.name,
        days=scored.days,
        recalled=scored.recalled,
        what_if=request.what_if,
        notes=(*sheet.notes, *few_held(scores, len(scored.has_record))),
    )


def _not_asked(
    sheet: SampleSheet, row: int, policy: Policy, refused: Collection[int], marks: Mapping[int, tuple[Mark, ...]]
) -> Score:
    """Return the result of a row that no Host was asked about."""
    if row in refused:
        return refused_score(sheet.ids[row], policy, marks[row])
    return failed_score(sheet.ids[row], sheet.problems.get(row, ()))


def _nobody_asked(
    record: ModelRecord, request: ScoringRequest, policy: Policy, scores: tuple[Score, ...]
) -> ScoreBatch:
    """Return a scoring without a question, since the policy refuses all people."""
    return ScoreBatch(
        model_id=record.id,
        cipher=request.cipher,
        key_bits=0,
        policy=policy,
        scores=scores,
        stages=(),
        transcript=(),
        leaves=record.n_leaves,
        ciphertexts_per_sample=0,
        score_bits=record.score_bits,
        seconds=0.0,
        what_if=request.what_if,
        notes=request.samples.notes,
    )


@dataclass
class _Question:
    """The `good` rows of a sheet to be scored, asked as often as Hosts want to be asked again; `transcript` is the last time's."""

    runtime: GuestRuntime
    record: ModelRecord
    compiled: Compiled
    request: ScoringRequest
    good: NDArray[np.intp]
    key: KeySide
    run: Run | None
    workers: Workers
    counted: bool
    conversation: Conversation | None
    job: Job[ScoreBatch]
    transcript: tuple[TranscriptEntry, ...] = ()

    def __post_init__(self) -> None:
        self.own = self.request.samples.guest.take(self.good)
        self._kept = self.conversation or Conversation()

    def ask(self) -> Scored:
        """In a conversation that is kept open, or one of its own."""
        runtime = self.runtime
        record = self.record
        job = self.job
        session, offered = self._kept.begin(runtime, record.hosts, self.key, job, counted=self.counted)
        job.read_transcript = session.transcript
        through = False
        try:
            self._prepare(session, offered)
            if self.conversation is None or self.run is None:
                owed = None
            else:
                owed = self.conversation.owed(self.run)
            how = self.workers, self.request.canaries, job.at, self.run, offered, owed
            guest = runtime.guest.name
            model = self.compiled.guest
            scored = ScoringClient(guest, record.id, model, self.own, self.key, session, *how).score()
            through = True
            return scored
        finally:
            self.transcript = self._kept.end(keep=self.conversation is not None and through)
            job.keep_transcript(self.transcript)

    def _prepare(self, session: Session, offered: bool) -> None:
        """Hosts' values that were typed in are played; the other Hosts' operators have to have allowed it."""
        sheet = self.request.samples
        people = len(self.good)
        for host, table in sheet.hosts.items():
            if host in self.record.hosts:
                self.runtime.play(session, host, table.take(self.good))
        if self.counted and not offered:
            chain = []
            for step in self.compiled.guest.folding.steps:
                if step.host not in sheet.hosts:
                    chain.append(step.host)
            self.runtime.ask_approval(session, chain, self.record.id, SCORING, people, self.record.named_share)


def nobody_to_score(sheet: SampleSheet) -> list[Remark]:
    """Return why no row of a sheet can be scored."""
    problems = [remark for remarks in sheet.problems.values() for remark in remarks]
    return [Remark("no_row_usable", {"rows": len(sheet.problems)}), *capped(problems)]


def begun(
    runtime: GuestRuntime,
    what: str,
    record: ModelRecord,
    samples: SampleSheet,
    cipher: Cipher,
    key_bits: int,
    *more: int | str,
    batches: int = 0,
) -> Run | None:
    """Return the journal of a question: of the same one under the same keys that was broken off, if any; None if nothing is counted."""
    if runtime.journal is None or samples.hosts:  # people with typed-in values of a Host are not in its records
        return None
    question = [what, record.content_hash, audit.sheet_hash(samples), cipher, key_bits, *runtime.keys.retired]
    return runtime.journal.run(sha256(json.dumps([*question, *more]).encode()).hexdigest(), batches)


def stages(scored: Scored) -> tuple[Stage, ...]:
    """Seconds by stage and party, in the order of the protocol."""
    order = ("encode", "encrypt", "mask", "decrypt")
    timed = sorted(scored.timings.seconds.items(), key=lambda item: order.index(item[0][0]))
    return tuple(Stage(name, party, seconds) for (name, party), seconds in timed)


def sample_scores(
    sheet: SampleSheet,
    good: Any,
    compiled: Compiled,
    guest_rows: PartyTable,
    scored: Scored,
    policy: Policy,
    own_marks: Mapping[int, tuple[Mark, ...]],
    refused: Collection[int],
    what_if: float | None,
) -> tuple[Score, ...]:
    """Return one result per row of the sheet, in its order, with the policy's decision.

    Rows with a problem or a Host's refusal are failed, those in `refused` are refused by the policy, the others are `good`.
    """
    outputs = compiled.outputs
    chain = tuple(scored.has_record)
    # a refused row is no number of the model
    answered = [0 if k in scored.refused else units for k, units in enumerate(scored.units)]
    margins = compiled.guest.margins(answered)
    predictions = outputs.predict(margins)
    expected = compiled.expectation.given(guest_rows.columns, len(guest_rows.ids))
    if outputs.task == "classes":
        best = predictions.argmax(axis=1)
    else:
        best = np.zeros(len(margins), dtype=np.intp)
    at = np.arange(len(margins)), best
    margin, best_predictions, expected_margins = (values[at].tolist() for values in (margins, predictions, expected))
    base = compiled.expectation.base[best].tolist()
    every = predictions.tolist()
    missing = {h: (~has_record).tolist() for h, has_record in scored.has_record.items()}
    out: list[Score] = []
    index_of = {row: k for k, row in enumerate(good.tolist())}
    for i, sample_id in enumerate(sheet.ids):
        k = index_of.get(i)
        if i in refused:
            out.append(refused_score(sample_id, policy, own_marks[i]))
            continue
        if k is None:
            out.append(failed_score(sample_id, sheet.problems.get(i, ())))
            continue
        if k in scored.refused:
            out.append(failed_score(sample_id, (scored.refused[k],)))
            continue
        absent_at = tuple(h for h, absent in missing.items() if absent[k])
        remarks = sheet.marks.get(i, ())
        if absent_at:
            remarks = (*remarks, Remark("not_held", {"hosts": absent_at}))
        if outputs.task == "number":
            probability = float("nan")
        else:
            probability = best_predictions[k]
        marks = (*host_mark(absent_at, chain), *own_marks.get(i, ()))
        verdict = policy.judge(margin[k] if policy.task == "number" else probability, marks)
        if verdict.decision == "refuse":
            out.append(refused_score(sample_id, policy, marks, absent_at))
            continue
        score = Score(
            id=sample_id,
            status="partial" if remarks else "ok",
            problems=(),
            margin=margin[k],
            probability=probability,
            decision=verdict.decision,
            predictions=tuple(every[k]),
            predicted=outputs.classes[best[k]] if outputs.classes else "",
            base=base[k],
            guest_part=expected_margins[k] - base[k],
            hosts_part=margin[k] - expected_margins[k],
            units=scored.units[k],
            not_held_by=absent_at,
            remarks=remarks,
            band=verdict.band,
            points=verdict.points,
            marks=marks,
            policy=policy.version,
        )
        out.append(with_what_if(score, what_if))
    return tuple(out)


def remembered_batch(
    record: ModelRecord,
    compiled: Compiled,
    sheet: SampleSheet,
    good: NDArray[np.intp],
    decisions: Sequence[StoredDecision],
    policies: Mapping[int, Policy],
    rules: Rules,
) -> ScoreBatch:
    """Return the scores of a sheet as they were, each decided by the policy that decided then.

    Parameters
    ----------
    good : ndarray of int
        Rows of the sheet that are remembered, in the order of `decisions`.
    policies : mapping of int to Policy
        By version.
    """
    guest_rows = sheet.guest.take(good)
    chain = [step.host for step in compiled.guest.folding.steps]
    has_record = {}
    for host in chain:
        has_record[host] = np.array([host not in decision.absent for decision in decisions])
    scored = Scored([decision.units for decision in decisions], has_record, 0, Timings())
    marks = guest_marks(rules.seen_values, sheet.guest)
    by_version = {}
    for version, policy in policies.items():
        by_version[version] = sample_scores(sheet, good, compiled, guest_rows, scored, policy, marks, (), None)
    scores = list(next(iter(by_version.values())))
    for row, decision in zip(good.tolist(), decisions, strict=True):
        scores[row] = by_version[decision.policy][row]
    return ScoreBatch(
        model_id=record.id,
        cipher="",
        key_bits=0,
        policy=policies[max(policies)],
        scores=tuple(scores),
        stages=(),
        transcript=(),
        leaves=record.n_leaves,
        ciphertexts_per_sample=0,
        score_bits=record.score_bits,
        seconds=0.0,
        decided=min(decision.created for decision in decisions),
    )


def failed_score(sample_id: str, problems: tuple[Remark, ...]) -> Score:
    """Return the result of a row that was not scored."""
    nan = float("nan")
    return Score(sample_id, "failed", problems, nan, nan, "", (), "", nan, nan, nan, 0, ())
