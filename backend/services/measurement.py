"""Parts that measurements of a model share: the parties, the sessions of one measurement, and the store of its result.

As the Guest sees it: scores, labels and its own columns. What comes back from a Host is encrypted sums or scores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backend.compliance.assessment import DISPARITY, PROXIES
from backend.crypto.interface import KeySide
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.crypto.workers import Workers
from backend.data.federation import Measure
from backend.data.table import PartyTable
from backend.errors import (
    ApprovalDenied,
    ApprovalPending,
    HostBusy,
    HostRefused,
    NotAgreed,
    ParameterError,
    QuestionRefused,
)
from backend.fairness.evidence import Basis, FeatureResult
from backend.jobs import Job, work
from backend.protocols.alignment.exchange import align
from backend.protocols.group_sums.grouping import MIN_GROUP, features_of
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.transcript import TranscriptEntry
from backend.remark import Remark
from backend.results import ALTERNATIVES, JOINT, MEANS, MONITORING, VALIDATION, ModelRecord
from backend.services.audit import DONE, Auditor, of_model
from backend.services.registry import Compiled, Registry
from backend.services.workspace import Workspace
from backend.store.measurements import Kept, Measurements
from backend.trees.ensemble import GuestModel

if TYPE_CHECKING:
    from backend.services.compliance import Compliance

Rows = NDArray[np.intp]
NOT_AGREED = "not agreed"  # an outcome in the audit log
AHEAD = 0.05  # about the share of the work after which Hosts were asked ahead
SCORED = 0.4  # and people scored
ALIGNED = 0.1  # about the share of a question after which ids are aligned
# measurements, each with a third of the people on whom a model was, or may have been, trained
TURNS = (VALIDATION, MONITORING, PROXIES)
# measurements, as the audit log calls them, that ask for groups of one feature, and of all
BY_ONE = (DISPARITY, ALTERNATIVES, MEANS)
BY_ANY = (PROXIES, VALIDATION, MONITORING)


@dataclass(frozen=True)
class ModelRequest:
    """What is to be measured of one model; each measurement adds its own fields.

    Attributes
    ----------
    cipher : {"rlwe", "paillier", "paillier-short", "none"}
        Sums by group never use ``rlwe``. People are scored under the fastest cipher, with ``none`` on plaintext.
    seed : int
        Draws the records, and what the Guest draws besides; a Host draws from the system.
    """

    model_id: str
    cipher: Cipher = field(default="paillier", kw_only=True)
    seed: int = field(default=7, kw_only=True)


@dataclass(frozen=True)
class KeyedRequest(ModelRequest):
    """A request under a key of a length of its own; of sums by group it is the length of their key."""

    key_bits: int = field(default=KEY_BITS, kw_only=True)


@dataclass(frozen=True)
class MeasurementContext:
    """The subject and the parties of a measurement.

    Attributes
    ----------
    compiled : Compiled
        Of the same model.
    test_ids : sequence of str
        Records that the model was not trained on; any joint ones of an imported model.
    part_of : mapping of str to str
        Id of a joint record → the part it had in training.
    workers : Workers
        Workers that encrypt when records are scored.
    measurements : Measurements
        What was measured before.
    last_asked : callable
        Feature → a remark about the last measurement that asked for its groups; None if there was none.
    protected : callable
        Names of the features that a rule calls protected.
    """

    runtime: GuestRuntime
    record: ModelRecord
    model: GuestModel
    compiled: Compiled
    test_ids: Sequence[str]
    part_of: Mapping[str, str]
    workers: Workers
    measurements: Measurements
    last_asked: Callable[[str], Remark | None] = lambda feature: None
    protected: Callable[[], Collection[str]] = tuple

    @property
    def subject(self) -> str:
        """Return what answers are kept about."""
        return self.record.content_hash


class Sessions:
    """The conversations of one job, their transcripts one after the other; with their purpose, if a Host has to agree to it."""

    def __init__(self, runtime: GuestRuntime, job: Job[Any], purpose: Measure | None = None) -> None:
        self._runtime = runtime
        self.job = job
        self._purpose = purpose
        self._transcript: tuple[TranscriptEntry, ...] = ()
        self._allowed = set[str]()

    @contextmanager
    def begin(self, hosts: tuple[str, ...], *, counted: bool = True) -> Iterator[Session]:
        """One conversation, closed at the end."""
        session = self._runtime.open_session(hosts, self.job.cancelled, counted=counted, purpose=self._purpose)
        earlier = self._transcript
        self.job.read_transcript = lambda: (*earlier, *session.transcript())
        try:
            yield session
        finally:
            self._transcript = (*earlier, *session.close())
            self.job.read_transcript = lambda: self._transcript

    def allowed(self, context: MeasurementContext, people: int) -> None:
        """Have the operators of real Hosts decide, all of them before anybody is counted at the first; once a model.

        Raises
        ------
        ApprovalPending, HostRefused
            One of them has not decided yet, or was against it.
        """
        record = context.record
        runtime = self._runtime
        if self._purpose is None or runtime.simulated or record.id in self._allowed:
            return
        chain = [step.host for step in context.compiled.guest.folding.steps]
        with self.begin(record.hosts) as session:
            runtime.ask_approval(session, chain, record.id, self._purpose, people, record.named_share)
        self._allowed.add(record.id)

    def ask(
        self,
        session: Session,
        cipher: Cipher,
        bits: int,
        choose: Callable[[Rows], NDArray[np.bool_]],
        ids: Sequence[str] | None = None,
    ) -> tuple[GroupQuestions, Rows]:
        """Offer a key and align `ids` (default the Guest's table's); `choose` tells which of the joint rows count. Returns these rows."""
        guest = self._runtime.guest.name
        self.job.at("key", guest, 0)
        key = self._runtime.keys.pair(cipher, bits)
        session.broadcast(OfferKey(session.name, key.scheme, key.offer()))
        self.job.at("align", guest)
        joint, _ = align(session, guest, self._runtime.table.ids if ids is None else ids, "dh")
        counted = choose(joint)
        return GroupQuestions(session, guest, key, counted, self._runtime.named, self._runtime.journal), joint[counted]

    def ask_about(self, session: Session, request: KeyedRequest, rows: Rows) -> tuple[GroupQuestions, Rows]:
        """Offer the request's key and align some of the Guest's `rows`; return where among these the joint ones are."""
        questions, joint = self.ask(session, request.cipher, request.key_bits, lambda joint: np.isin(joint, rows))
        index_of = {row: i for i, row in enumerate(rows.tolist())}
        return questions, np.array([index_of[row] for row in joint.tolist()], dtype=np.intp)

    def ask_ahead(
        self,
        context: MeasurementContext,
        rows: Rows,
        features: Mapping[str, Sequence[str]],
        max_groups: int,
        request: KeyedRequest,
    ) -> dict[tuple[str, str], HostRefused | QuestionRefused]:
        """Before anybody is scored or a model is trained: (Host, feature) → why sums about these of the Guest's rows would be refused.

        In a conversation of its own; counts nothing and tells no group.

        Raises
        ------
        NotAgreed, ApprovalPending, HostBusy
            A Host has not agreed, or cannot say now.
        """
        with self.begin(tuple(features)) as session:
            questions, _ = self.ask_about(session, request, rows)
            refused = self.refused_ahead(questions, features, max_groups)
        for error in refused.values():
            if isinstance(error, (ApprovalPending, HostBusy)):
                raise error
        return refused

    def refused_ahead(
        self,
        questions: GroupQuestions,
        features: Mapping[str, Sequence[str]],
        max_groups: int,
        min_size: int = MIN_GROUP,
    ) -> dict[tuple[str, str], HostRefused | QuestionRefused]:
        """(Host, feature) → what its sums would be refused with, if they were asked for now; the others would be answered."""
        refused: dict[tuple[str, str], HostRefused | QuestionRefused] = {}
        for host, names in features.items():
            for name in names:
                try:
                    questions.would_answer(host, (name,), max_groups, min_size)
                except (HostRefused, QuestionRefused) as error:
                    refused[host, name] = error
                if isinstance(waits := refused.get((host, name)), ApprovalPending):
                    self._runtime.note_waiting(waits)
        return refused

    def score(
        self,
        context: MeasurementContext,
        table: PartyTable,
        cipher: Cipher,
        first: Callable[[Session, KeySide], None] = lambda session, key: None,
        at: tuple[int, int] | None = None,
    ) -> tuple[Rows, NDArray[np.float64]]:
        """Rows of `table` that no Host refused, and their margins ``(rows, outputs.count)``; measuring leaves budgets alone.

        Parameters
        ----------
        first : callable, optional
            Called first in the same conversation: to have a Host permute values, say.
        at : (int, int), optional
            Number of records scored before these, and of all: if this is one scoring of several.
        """
        self.allowed(context, len(table.ids))
        runtime = self._runtime
        job = self.job
        compiled = context.compiled.guest
        offset, job.total = at or (0, len(table.ids))
        job.at("key", runtime.guest.name, offset)
        if cipher == "none":
            key = runtime.keys.scoring(cipher, 0, compiled)
        else:
            key = runtime.keys.bulk(KEY_BITS, compiled)
        total = max(job.total, 1)
        share = work.part(offset / total, (offset + len(table.ids)) / total)
        with self.begin(context.record.hosts, counted=False) as session, share:
            first(session, key)
            scored = runtime.guest.score(
                context.record.id,
                compiled,
                table,
                key,
                session,
                workers=context.workers,
                on_stage=lambda stage, party, n_done: job.at(stage, party, offset + n_done),
            )
        scored_rows = np.array([i for i in range(len(table.ids)) if i not in scored.refused], dtype=np.intp)
        return scored_rows, compiled.margins([scored.units[i] for i in scored_rows])

    def progress(self, n_done: int, total: int) -> None:
        """Ciphertexts made."""
        self.job.total = total
        self.job.at("marks", self._runtime.guest.name, n_done)
        if n_done:  # what comes before the first is not theirs
            work.reached(n_done / total)


def sums_bits(cipher: Cipher, key_bits: int) -> int:
    """Bits of the key of sums by group; 0 if nothing is encrypted."""
    return 0 if cipher == "none" else key_bits


class Measurement:
    """Measures models of a home and keeps what was found."""

    def __init__(
        self, workspace: Workspace, models: Registry, auditor: Auditor, workers: Workers, compliance: Compliance
    ) -> None:
        self.workspace = workspace
        self.models = models
        self.auditor = auditor
        self._workers = workers
        self._compliance = compliance

    def context(self, record: ModelRecord) -> MeasurementContext:
        """Return what is measured of a model, and with whom."""
        return MeasurementContext(
            self.workspace.runtime(record.federation),
            record,
            self.models.partial_model(record),
            self.models.compiled(record),
            self.models.test_ids(record),
            self.models.part_of(record),
            self._workers,
            self.workspace.measurements(record.federation),
            partial(self._last_asked, record.federation),
            partial(self._compliance.protected, record.id),
        )

    def _last_asked(self, federation: str, feature: str) -> Remark | None:
        """Return a remark about the last measurement in the log that asked for groups of a feature; None if there was none."""
        for entry in reversed(self.workspace.audit_log(federation).entries()):
            by_one = entry.action in BY_ONE and feature in features_of(entry.body.get("feature", ""))
            asks = entry.action in BY_ANY or by_one
            if asks and entry.body.get("outcome") == DONE:
                model = entry.body["model"]
                day = entry.time[:10]
                return Remark("last_measured", {"feature": feature, "action": entry.action, "model": model, "day": day})
        return None

    def keep(
        self,
        record: ModelRecord,
        kind: str,
        feature: str,
        rows: list[dict[str, Any]],
        basis: dict[str, Any] | None = None,
    ) -> None:
        """Keep what was measured until it is measured again, and log that it was."""
        self.workspace.measurements(record.federation).put(record.content_hash, kind, feature, Kept(rows, basis or {}))
        body = {**of_model(record), "feature": feature, "numbers": len(rows), "outcome": DONE}
        self.auditor.note(record.federation, kind, body)

    def keep_of_feature(self, record: ModelRecord, kind: str, result: FeatureResult) -> None:
        """Store what was measured by one feature, in place of what was measured by it before."""
        self.keep(record, kind, result.feature, [asdict(result)])

    @contextmanager
    def asking(self, record: ModelRecord, kind: str, feature: str) -> Iterator[None]:
        """Where a Host has not agreed, keep that, unless the same was measured before; and log it. The error goes on."""
        try:
            yield
        except NotAgreed as refused:
            measurements = self.workspace.measurements(record.federation)
            earlier = measurements.of(record.content_hash, kind).get(feature)
            if earlier is None or earlier.basis.get("refused"):
                measurements.put(record.content_hash, kind, feature, Kept([], asdict(Basis(0, refused=refused.host))))
            body = {**of_model(record), "feature": feature, "host": refused.host, "outcome": NOT_AGREED}
            self.auditor.note(record.federation, kind, body)
            raise


def not_begun(
    context: MeasurementContext, feature: str, refused: HostRefused | QuestionRefused, instead: Remark | None = None
) -> HostRefused | QuestionRefused:
    """Return the error that says why nothing was asked, and when the feature's groups were last measured, or which were `instead`."""
    if isinstance(refused, ApprovalDenied):
        return refused
    why = refused.remarks[0]
    last = context.last_asked(feature) or instead
    if last is None:
        return HostRefused("not_begun", why=why)
    return HostRefused("not_begun_measured", why=why, last=last)


def protected_of(context: MeasurementContext) -> frozenset[str]:
    """Return the names of the features that a rule calls protected, or that were kept out of the training."""
    return frozenset({*context.protected(), *context.record.exclude})


def others_of_hosts(context: MeasurementContext, excluded: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the features of the model's Hosts but those named, by Host: these are asked about as well, since scores are counted.

    Hosts at their own companies count each score of a person, so that no person can be scored for a second feature. Simulated Hosts do not
    count what is measured. Protected features come first: a Host answers until its limits are reached.
    """
    if context.runtime.simulated:
        return {}
    protected = protected_of(context)
    others = {}
    for host in context.record.hosts:
        names = []
        for feature in context.runtime.federation.party(host).features:
            if feature.name not in excluded:
                names.append(feature.name)
        others[host] = tuple(sorted(names, key=lambda name: name not in protected))
    return others


def drawn(context: MeasurementContext, samples: int | None, seed: int) -> Rows:
    """Return rows of some or all test records in the Guest's table; people who have left it since the training have none."""
    row_of = context.runtime.table.row_of
    ids = [i for i in context.test_ids if i in row_of]
    count = len(context.test_ids) if samples is None else samples
    if not ids or not 1 <= count <= len(context.test_ids):
        raise ParameterError("test_records_out_of_range", asked=count, records=len(context.test_ids), held=len(ids))
    selected = np.random.default_rng(seed).choice(len(ids), size=min(count, len(ids)), replace=False)
    return np.array([row_of[ids[i]] for i in selected], dtype=np.intp)


def of_outcomes(context: MeasurementContext) -> MeasurementContext:
    """Return a context with only the test records about whose groups disparity and validation ask a Host, if people are real.

    Of an imported model, whose records have no parts, that is one third; the others are for `proxies` and `monitor`.
    """
    if context.runtime.federation.synthetic:
        return context
    parts = context.part_of
    return replace(
        context, test_ids=[i for i in context.test_ids if parts.get(i) != JOINT or asked_by(i) == VALIDATION]
    )


def asked_by(person: str) -> str:
    """Return which of :data:`TURNS` may ask a Host about the groups of a person on whom the model was, or may have been, trained.

    By the id alone, so that records which come or go do not move people from one to another: a Host that counts answers once answers all.
    """
    return TURNS[int.from_bytes(sha256(person.encode()).digest()[:8]) % len(TURNS)]


def is_of_share(person: str, attribute: str, protected: Collection[str]) -> bool:
    """Return whether a person of the turn of `proxies` is among those whom it asks about by this attribute.

    Each protected attribute has a share of these people to itself, and all other features have one together: a Host answers once about a
    person, so that the first attribute would leave no people for the second.
    """
    shares = [*sorted(protected), ""]
    own_share = attribute if attribute in protected else ""
    return shares[int.from_bytes(sha256(person.encode()).digest()[8:16]) % len(shares)] == own_share
