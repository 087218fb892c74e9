"""Reasons for a user: the names of what raised a person's score most, and means of contributions over a group. As the Guest sees it.

Of one person it learns names and the parts that it can work out alone; of a group of at least 50 people, mean contributions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher, preferred
from backend.crypto.rlwe.residues import ResidueKeySide
from backend.crypto.workers import Workers
from backend.data.dictionary import Kind
from backend.data.table import SampleSheet
from backend.errors import ParameterError
from backend.explain.direction import LearnedDirection
from backend.i18n import joined
from backend.jobs import Job, work
from backend.protocols.approvals.messages import REASONS
from backend.protocols.explanations.encryption import ReasonKey
from backend.protocols.explanations.guest import Named, ReasonsClient, Summed
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import MIN_PEOPLE
from backend.protocols.transport.transcript import TranscriptEntry
from backend.remark import Remark
from backend.reports.adverse_action_notice import (
    FORMATS,
    MAX_REASONS,
    Blocker,
    draw,
    form_groups,
    why_blocked,
)
from backend.reports.language import said_at_once
from backend.results import ModelRecord, Score, ScoreBatch
from backend.services.audit import Note, of_model, recorded, sheet_hash, traffic
from backend.services.compliance import Compliance, Finding
from backend.services.decided import remember
from backend.services.explanation import Explanation
from backend.services.measurement import KeyedRequest, Measurement, MeasurementContext, drawn
from backend.services.notice_details import NoticeDetails
from backend.services.notices import as_stated, notice_of, refuse_without_meaning, refuse_without_reason
from backend.services.policies import line_for, policy_version
from backend.services.scoring import Rules, ScoringRequest, begun, remembered_batch, score
from backend.services.verdicts import Verdicts
from backend.services.waiting import TIMEOUT_SECONDS, repeated
from backend.store.journal import Run
from backend.trees.backgrounds import Against, Background, methods
from backend.trees.ensemble import GuestModel

__all__ = [
    "FORMATS",
    "MAX_REASONS",
    "Against",
    "CohortImportance",
    "CohortRequest",
    "PersonReasons",
    "Reason",
    "Reasons",
    "ReasonsRequest",
    "ReasonsService",
    "methods",
    "said_at_once",
    "why_blocked",
]

DEFAULT_CIPHER = preferred("rlwe")
SCORED = {"rlwe": 0.06, "paillier": 0.05}  # share of the work that scoring takes, if it comes first
ENCRYPTED = 0.5  # share of the work on mean contributions that is done before the Hosts add up
STEPS = ("encrypt", "weigh", "rank")  # of one person, for progress
COHORT = 200  # people of a group, by default


@dataclass(frozen=True)
class ReasonsRequest:
    """Request for reasons.

    Attributes
    ----------
    names : int
        Largest number of reasons a person; all names are given of reasons that a notice states in the same words.
    cipher : {"rlwe", "paillier", "paillier-short"}
    against : {"", "all", "approved", "covers"}
        Whom people are compared with (:class:`backend.trees.backgrounds.Background`); empty = all applicants, if the model knows them.
    scored : ScoreBatch or None
        A scoring of the same sheet. None = that of the last 30 days if the Guest remembers one of everybody with the same values; else it
        is scored first, which is a question about everybody of its own.
    hold : bool
        See :class:`backend.services.scoring.ScoringRequest`.
    """

    model_id: str
    samples: SampleSheet
    names: int = MAX_REASONS
    cipher: Cipher = DEFAULT_CIPHER
    key_bits: int = KEY_BITS
    scored: ScoreBatch | None = None
    hold: bool = False
    against: str = ""


@dataclass(frozen=True)
class Reason:
    """One feature that raised a person's score.

    Attributes
    ----------
    expected, learned : str
        What a higher value does to the risk, by the dictionary and in the model (:class:`LearnedDirection`).
    blockers : tuple of Blocker
        Why the feature must not be a reason.
    asked : {"above", "below", ""}
        Which side of the holder's median is asked about, as the model has learned it of all features of the reason; empty = none, of codes,
        of a model without medians, and of what must not be a reason, so that it gives its place to no other.
    side : {"above", "below", ""}
        The side of a reason that was found: there the value is, and medians would have lowered the score.
    group : int
        Features with the same number are one reason.
    """

    party: str
    feature: str
    expected: str
    learned: str
    blockers: tuple[Blocker, ...] = ()
    asked: Literal["above", "below", ""] = ""
    side: Literal["above", "below", ""] = ""
    group: int = 0


@dataclass(frozen=True)
class PersonReasons:
    """One person: decision and the parties' totals stand in the score; `reasons`, by name, are empty if there are `problems`."""

    score: Score
    reasons: tuple[Reason, ...]
    problems: tuple[Remark, ...] = ()

    @property
    def problem(self) -> str:
        """Return why there are no reasons, in English; empty if there are."""
        return joined(*(remark.sentence() for remark in self.problems))

    @property
    def status(self) -> Literal["ok", "failed"]:
        """Return whether names were found (they may be none)."""
        return "failed" if self.problems else "ok"

    @property
    def blocked(self) -> bool:
        """Return whether a reason must not be one."""
        return any(reason.blockers for reason in self.reasons)

    @property
    def merged(self) -> list[tuple[Reason, ...]]:
        """Return the features of each reason."""
        by_group: dict[tuple[int, str], list[Reason]] = {}
        for reason in self.reasons:
            by_group.setdefault((reason.group, reason.side), []).append(reason)
        return [tuple(features) for features in by_group.values()]


@dataclass(frozen=True)
class Reasons:
    """Everything that a request for reasons gives.

    Attributes
    ----------
    features : int
        Ranked, of all parties.
    ciphertexts : int
        That the Guest encrypted a person.
    seconds : float
        Without the scoring.
    stages : mapping of (stage, party) to float
        Seconds.
    against : {"all", "approved", "covers"}
        Whom people were compared with.
    compared : int
        Training records in that group; 0 if their number is not known.
    cutoff : float
        At which "approved" were only just so.
    decided : str
        When these people were scored, UTC, if the Guest remembered it; empty = with these reasons, or by the caller.
    """

    model_id: str
    people: tuple[PersonReasons, ...]
    names: int
    features: int
    cipher: str
    key_bits: int
    ciphertexts: int
    seconds: float
    stages: Mapping[tuple[str, str], float]
    transcript: tuple[TranscriptEntry, ...]
    runs: tuple[str, ...] = ()
    against: Against = "covers"
    compared: int = 0
    cutoff: float = 0.5
    decided: str = ""


@dataclass(frozen=True)
class CohortRequest(KeyedRequest):
    """Mean contributions over a group: the people named, or `samples` random test records if none is."""

    ids: tuple[str, ...] = ()
    samples: int = COHORT
    cipher: Cipher = field(default=DEFAULT_CIPHER, kw_only=True)


@dataclass(frozen=True)
class CohortImportance:
    """What one feature added to the margins of a group of people, on average; signed, so that ups and downs cancel out."""

    party: str
    feature: str
    mean: float
    people: int
    error_bound: float
    cipher: str
    key_bits: int


class ReasonsService:
    """Gives reasons for scores."""

    def __init__(
        self,
        measurement: Measurement,
        compliance: Compliance,
        explanation: Explanation,
        details: NoticeDetails,
        verdicts: Verdicts,
    ) -> None:
        self._verdicts = verdicts
        self._measurement = measurement
        self._models = measurement.models
        self._auditor = measurement.auditor
        self._compliance = compliance
        self._explanation = explanation
        self._details = details

    def start(self, request: ReasonsRequest) -> Job[Reasons]:
        """Names of what raised people's scores most, in the background; a question of its own about everybody in the sheet."""
        people = len(request.samples.ids)
        size = f"{request.cipher} {people} {request.scored is None}"
        return Job[Reasons](lambda job: self.run(request, job), people, size=size).start()

    @recorded("reasons")
    def run(self, note: Note, request: ReasonsRequest, job: Job[Any], *, counted: bool = True) -> Reasons:
        """Names of what raised people's scores most, within a job that is under way.

        Without `counted` it shows how it works, and leaves the simulated Hosts' budgets alone.
        """
        record = self._models.get(request.model_id)
        digest = sheet_hash(request.samples)
        note.about(record, rows=len(request.samples.ids), input_sha256=digest)
        workspace = self._measurement.workspace
        rules = Rules.of(workspace, self._models, record)
        scored = request.scored or self.scored_before(record.id, request.samples)
        scored_request = replace(request, scored=scored)
        reasons, batch = give_reasons(
            self._measurement.context(record),
            scored_request,
            self._known_of_features(record),
            rules,
            job,
            counted=counted,
        )
        note.body = of_reasons(record, reasons, digest) | {"counted": counted}

        def keep() -> None:
            if scored is None and counted:
                remember(workspace, record, request.samples, batch, rules.seen_values.names)
            if not request.hold:
                self.handed_over(reasons)

        note.keep = keep
        return reasons

    def day_of_score(self, model_id: str, person: str) -> str:
        """Return the UTC day of a person's last score that is remembered, whatever the values; empty if there is none."""
        record = self._models.get(model_id)
        stored = self._measurement.workspace.decisions(record.federation).of(record.id, [person])
        return stored[person].created[:10] if person in stored else ""

    def scored_before(self, model_id: str, sheet: SampleSheet) -> ScoreBatch | None:
        """Return the scores of a sheet's people that are remembered; None unless of everybody, with the same values of the Guest."""
        record = self._models.get(model_id)
        workspace = self._measurement.workspace
        rules = Rules.of(workspace, self._models, record)
        good = [row for row in range(len(sheet.ids)) if row not in sheet.problems]
        if sheet.hosts or not good:
            return None
        stored = workspace.decisions(record.federation).of(record.id, [sheet.ids[row] for row in good])
        digests = sheet.guest.digests(np.arange(len(sheet.ids)), rules.seen_values.names)
        decisions = []
        for row in good:
            decision = stored.get(sheet.ids[row])
            if decision is None or decision.own != digests[row]:
                return None
            decisions.append(decision)
        policies = {}
        for stored_decision in decisions:
            policies[stored_decision.policy] = policy_version(workspace, record, stored_decision.policy)
        compiled = self._models.compiled(record)
        return remembered_batch(record, compiled, sheet, np.array(good, dtype=np.intp), decisions, policies, rules)

    def handed_over(self, reasons: Reasons) -> None:
        """Note that the caller has delivered the names that were held: the journal forgets them."""
        journal = self._measurement.workspace.journal(self._models.get(reasons.model_id).federation)
        for run in reasons.runs:
            journal.handed_over(run)

    def _known_of_features(self, record: ModelRecord) -> dict[str, Reason]:
        """Return what is stated of a feature that is a reason; a finding that was overridden with a reason blocks nothing."""
        standing = self._measurement.workspace.reviews(record.federation).standing(record.content_hash)
        blockers: dict[str, list[Blocker]] = {}
        assessed = self._compliance.assess(record.id)
        for question in assessed.unanswered:
            # a question that no phrase of a rule suggests stops no notice
            if question.status == "prohibited" and question.sign.strength != "proposed":
                blockers.setdefault(question.feature, []).append(Blocker(question.citation, "asked"))
        for finding in assessed.findings:
            review = standing.get((finding.rule_id, finding.feature))
            if (blocker := _blocker(finding)) and (review is None or review.verdict != "overridden"):
                blockers.setdefault(finding.feature, []).append(blocker)
        model = self._models.partial_model(record)
        directions = self._explanation.directions(record.id)
        groups = form_groups(model, [(d.party, d.feature) for d in directions])
        sides = _sides_asked(model, directions, groups)
        reasons = {}
        for direction, group in zip(directions, groups, strict=True):
            stated = tuple(blockers.get(direction.feature, ()))
            has_side = model.feature(direction.feature).kind is not Kind.CATEGORICAL and _knows_medians(model)
            reasons[direction.feature] = Reason(
                direction.party,
                direction.feature,
                direction.expected,
                direction.learned,
                stated,
                sides[group] if has_side and not stated else "",
                group=group,
            )
        return reasons

    @recorded("notice")
    def notice(self, note: Note, reasons: Reasons, sample_id: str, language: str, kind: str) -> bytes:
        """Return a notice of adverse action for one declined person, or why there is none, as txt, html or pdf; logged by its hash.

        Raises
        ------
        ParameterError
            The person was not declined or has no reasons, or the language or the kind is unknown.
        """
        record = self._models.get(reasons.model_id)
        person = next((p for p in reasons.people if p.score.id == sample_id), None)
        if person is None:
            raise ParameterError("reasons_not_requested", id=sample_id)
        day = datetime.now(UTC).date().isoformat()
        federation = self._details.federation(record.federation)
        standing = self._measurement.workspace.model_states(record.federation).standing(record.id)
        content = notice_of(
            person, self._models.partial_model(record), federation, standing, day, self._verdicts.of(record.id)
        )
        content = replace(content, against=reasons.against, compared=reasons.compared)
        file = draw(content, language, kind)
        digest = sha256(file).hexdigest()
        about = {
            "language": language,
            "kind": kind,
            "blocked": content.blocked,
            "state": standing.model.state,
            "against": content.against,
            "policy": content.policy,
        }
        note.about(record, **about, sha256=digest)
        return file

    def check_notice(self, model_id: str, language: str, against: str = "") -> None:
        """Raise ParameterError if a notice might state a feature without a meaning or text, or the group is unknown; called first."""
        record = self._models.get(model_id)
        line = line_for(self._measurement.workspace, record)
        Background.of(self._models.partial_model(record), against, line.cutoff)
        model = self._models.partial_model(record)
        reasons = self._known_of_features(record)
        federation = self._measurement.workspace.federation(record.federation)
        used_features = set()
        for tree in model.trees:
            for split in tree.splits.values():
                used_features.add(split.feature)
        refuse_without_meaning(model, used_features)
        sides = {name: (reasons[name].asked or "either",) for name in used_features if not reasons[name].blockers}
        refuse_without_reason([as_stated(model, federation, name) for name in sorted(sides)], language, sides)

    def start_cohort(self, request: CohortRequest) -> Job[tuple[CohortImportance, ...]]:
        """Mean SHAP contributions of all features over a group of at least 50 people, under encryption, in the background."""
        size = f"{request.cipher} {len(request.ids) or request.samples}"
        return Job[tuple[CohortImportance, ...]](lambda job: self._cohort(request, job), 0, size=size).start()

    @recorded("cohort")
    def _cohort(
        self, note: Note, request: CohortRequest, job: Job[tuple[CohortImportance, ...]]
    ) -> tuple[CohortImportance, ...]:
        record = self._models.get(request.model_id)
        people = len(request.ids) or request.samples
        note.about(record, people=people, seed=request.seed, cipher=request.cipher)
        importances = mean_contributions(self._measurement.context(record), request, job)
        note.body["traffic"] = traffic(job.transcript)
        return importances


def _knows_medians(model: GuestModel) -> bool:
    """Return whether parties know the medians of training records: those of an imported model, and of OpBoost's, know none."""
    return bool(model.medians) or not model.rules


def _sides_asked(
    model: GuestModel, directions: Sequence[LearnedDirection], groups: Sequence[int]
) -> dict[int, Literal["above", "below"]]:
    """Return for each reason the side that raises the score: by the direction of most of the gain of its features."""
    gains: dict[str, float] = {}
    for tree in model.trees:
        for split in tree.splits.values():
            gains[split.feature] = gains.get(split.feature, 0.0) + split.gain
    weights: dict[int, float] = {}
    for direction, group in zip(directions, groups, strict=True):
        strength = direction.strength
        if direction.learned == "hidden":
            # a Host that hides which side of a split is the lower one leaves the owner's expectation
            strength = {"up": 1.0, "down": -1.0}.get(direction.expected, 0.0)
        weights[group] = weights.get(group, 0.0) + strength * gains.get(direction.feature, 0.0)
    return {group: "below" if weight < 0 else "above" for group, weight in weights.items()}


def _blocker(finding: Finding) -> Blocker | None:
    """Return what a finding says against stating its feature as a reason."""
    if finding.status == "prohibited":
        return Blocker(finding.citation, "prohibited")
    if not finding.check:
        return None
    verdict = "open" if finding.ages is None else finding.ages.verdict
    if verdict == "not_negative":
        return None
    return Blocker(finding.citation, verdict)


def give_reasons(
    context: MeasurementContext,
    request: ReasonsRequest,
    reason_of: Mapping[str, Reason],
    rules: Rules,
    job: Job[Any],
    *,
    counted: bool = True,
) -> tuple[Reasons, ScoreBatch]:
    """Score if that was not done, then ask for names; return both.

    Parameters
    ----------
    reason_of : mapping of str to Reason
        The facts to state about each feature.
    counted : bool
        Whether simulated Hosts count the questions against their budgets.

    Raises
    ------
    ParameterError
        No reasons can be given for the request or the model.
    PartyUnreachable, SecurityError, Cancelled
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    if request.cipher == "none":
        raise ParameterError("reasons_need_encryption")
    runtime = context.runtime
    record = context.record
    if rules.policy.task == "binary":
        line = rules.policy.cutoff
    else:
        line = 0.5
    background = Background.of(context.model, request.against, line)
    terms = CompiledTerms(context.model, background)
    if request.scored is None:
        batch = _scored(context, request, rules, job, counted)
    else:
        batch = request.scored
    began = time.perf_counter()
    good = _explainable(batch, record.id, request.samples)
    groups = tuple(reason_of[feature].group for _, feature in terms.items)
    key = runtime.keys.reasons(request.cipher, request.key_bits, terms.shape(request.names, groups).load(terms.rows))
    run = None
    if counted:
        details = request.names, background.against, background.band
        run = begun(runtime, "reasons", record, request.samples, request.cipher, request.key_bits, *details)
    sides = {feature: reason_of[feature].asked for _, feature in terms.items}
    question = _Question(context, request, terms, key, run, good, sides, groups, counted)
    ask = partial(question.ask, () if request.scored else batch.transcript, job)
    try:
        named_features, transcript = repeated(
            ask, runtime, terms.chain, job, TIMEOUT_SECONDS if run is not None else 0.0
        )
    finally:
        if runtime.journal is not None:
            runtime.journal.ended(run)
    reasons = Reasons(
        model_id=record.id,
        people=_people(batch, good, named_features, reason_of),
        names=request.names,
        features=len(terms.items),
        cipher=_named_cipher(key),
        key_bits=key.bits,
        ciphertexts=named_features.ciphertexts,
        seconds=time.perf_counter() - began,
        stages=named_features.seconds,
        transcript=transcript,
        runs=(batch.run, "" if run is None else run.name),
        against=background.against,
        compared=background.records(context.model),
        cutoff=line,
        decided=batch.decided,
    )
    return reasons, batch


def _scored(
    context: MeasurementContext, request: ReasonsRequest, rules: Rules, job: Job[Any], counted: bool
) -> ScoreBatch:
    scoring_request = ScoringRequest(context.record.id, request.samples, None, request.cipher, request.key_bits)
    with work.part(0.0, SCORED[request.cipher]):
        return score(
            context.runtime, context.record, context.compiled, scoring_request, job, Workers(), rules, counted=counted
        )


def _explainable(batch: ScoreBatch, model_id: str, samples: SampleSheet) -> NDArray[np.intp]:
    """Rows of the sheet that were scored; raises ParameterError if there are none, or the scores are of another sheet or model."""
    if batch.model_id != model_id or tuple(s.id for s in batch.scores) != tuple(samples.ids):
        raise ParameterError("scores_of_others")
    good = np.array([i for i, s in enumerate(batch.scores) if s.scored], dtype=np.intp)
    if not len(good):
        raise ParameterError("nothing_to_explain", why=batch.scores[0].problems[:1])
    return good


def _people(
    batch: ScoreBatch, good: NDArray[np.intp], named_features: Named, reason_of: Mapping[str, Reason]
) -> tuple[PersonReasons, ...]:
    """Everybody in the sheet, those who were not scored without reasons."""
    people = [PersonReasons(score, (), score.problems) for score in batch.scores]
    for k, i in enumerate(good.tolist()):
        names = [feature for _, feature in named_features.names[k] or ()]
        reasons = tuple(replace(reason_of[feature], side=reason_of[feature].asked) for feature in names)
        refused = (named_features.refused[k],) if k in named_features.refused else ()
        people[i] = PersonReasons(batch.scores[i], reasons, refused)
    return tuple(people)


@dataclass(frozen=True)
class _Question:
    """A question for names.

    Attributes
    ----------
    good : ndarray of int
        Rows of the sheet that are asked about.
    sides : mapping of str to {"above", "below", ""}
        Feature → on which side of the holder's median a value has to be; empty = on any.
    groups : tuple of int
        Which features a notice states in the same words.
    counted : bool
        See :func:`give_reasons`.
    """

    context: MeasurementContext
    request: ReasonsRequest
    terms: CompiledTerms
    key: ReasonKey
    run: Run | None
    good: NDArray[np.intp]
    sides: Mapping[str, str]
    groups: tuple[int, ...]
    counted: bool

    def ask(self, earlier: tuple[TranscriptEntry, ...], job: Job[Any]) -> tuple[Named, tuple[TranscriptEntry, ...]]:
        """One session, its transcript behind the one `earlier`."""
        runtime = self.context.runtime
        request = self.request
        terms = self.terms
        job.total = len(self.good) * len(STEPS)
        job.at("key", runtime.guest.name, 0)
        start = 0.0 if request.scored else SCORED[request.cipher]

        def at(stage: str, party: str, people: int) -> None:
            n_done = people * len(STEPS) + (STEPS.index(stage) if stage in STEPS else 0)
            job.at(stage, party, n_done)
            work.reached(start + (1 - start) * n_done / job.total)

        session = runtime.open_session(terms.chain, job.cancelled, counted=self.counted)
        job.read_transcript = lambda: (*earlier, *session.transcript())
        transcript = earlier
        try:
            for host, table in request.samples.hosts.items():
                if host in terms.chain:
                    runtime.play(session, host, table.take(self.good))
            asked_hosts = [host for host in terms.chain if host not in request.samples.hosts]
            model_id = self.context.record.id
            runtime.ask_approval(
                session, asked_hosts, model_id, REASONS, len(self.good), self.context.record.named_share
            )
            client = ReasonsClient(
                session, runtime.guest.name, model_id, terms, self.key, at, self.run, runtime.journal
            )
            guest_rows = request.samples.guest.take(self.good)
            below = [feature for feature, side in self.sides.items() if side == "below"]
            sideless = [feature for feature, side in self.sides.items() if not side]
            named_features = client.names(guest_rows, request.names, below, self.groups, sideless)
        finally:
            transcript = (*earlier, *session.close())
            job.keep_transcript(transcript)
        return named_features, transcript


def mean_contributions(
    context: MeasurementContext, request: CohortRequest, job: Job[tuple[CohortImportance, ...]]
) -> tuple[CohortImportance, ...]:
    """Add contributions up over a group under encryption; largest mean first, by size.

    Raises
    ------
    ParameterError
        The group is too small or has an unknown person, or no contributions can be worked out for the model.
    PartyUnreachable, SecurityError, Cancelled
        A Host refuses a group with a person who was in another group within 28 days, among others.
    """
    runtime = context.runtime
    record = context.record
    unknown = [i for i in request.ids if i not in runtime.table.row_of]
    count = len(request.ids) or min(request.samples, len(context.test_ids))
    if unknown or count < MIN_PEOPLE:
        raise ParameterError("group_too_small", least=MIN_PEOPLE, given=count, unknown=len(unknown))
    rows = np.array([runtime.table.row_of[i] for i in request.ids], dtype=np.intp)
    people = runtime.table.take(rows if request.ids else drawn(context, count, request.seed))
    terms = CompiledTerms(context.model)
    job.total = count
    job.at("key", runtime.guest.name, 0)
    key = runtime.keys.reasons(request.cipher, request.key_bits, terms.shape(1).load(terms.rows, count))
    sheet = SampleSheet(people.ids, people, hosts={}, problems={}, notes=())
    run = begun(runtime, "cohort", record, sheet, request.cipher, request.key_bits)

    def at(stage: str, party: str, people: int) -> None:
        job.at(stage, party, people)
        if stage == "encrypt":  # what is added up of all of them says nothing meanwhile
            work.reached(ENCRYPTED * people / count)

    def ask() -> Summed:
        session = runtime.open_session(terms.chain, job.cancelled)
        job.read_transcript = session.transcript
        try:
            runtime.ask_approval(session, terms.chain, record.id, REASONS, count, record.named_share)
            client = ReasonsClient(session, runtime.guest.name, record.id, terms, key, at, run, runtime.journal)
            return client.sums(people)
        finally:
            job.keep_transcript(session.close())

    try:
        summed = repeated(ask, runtime, terms.chain, job, TIMEOUT_SECONDS if run is not None else 0.0)
        if runtime.journal is not None and run is not None:
            runtime.journal.handed_over(run.name)
    finally:
        if runtime.journal is not None:
            runtime.journal.ended(run)
    means = summed.sums / summed.people
    bound = summed.error_bound / summed.people
    cipher = _named_cipher(key)
    out = []
    for item, mean in zip(summed.items, means, strict=True):
        out.append(CohortImportance(*item, float(mean), summed.people, bound, cipher, key.bits))
    return tuple(sorted(out, key=lambda importance: -abs(importance.mean)))


def _named_cipher(key: ReasonKey) -> str:
    """As a user chose it."""
    if isinstance(key, ResidueKeySide):
        return "rlwe"
    return key.scheme


def of_reasons(record: ModelRecord, reasons: Reasons, input_sha256: str) -> dict[str, Any]:
    """Return what the audit log says of reasons: counts and hashes; no name and no id."""
    return {
        **of_model(record),
        "rows": len(reasons.people),
        "failed": sum(person.status == "failed" for person in reasons.people),
        "blocked": sum(person.blocked for person in reasons.people),
        "names": reasons.names,
        "against": reasons.against,
        "cipher": reasons.cipher,
        "key_bits": reasons.key_bits,
        "counted": True,
        "decided": reasons.decided,
        "traffic": traffic(reasons.transcript),
        "input_sha256": input_sha256,
    }
