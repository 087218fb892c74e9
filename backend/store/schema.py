"""Every table of a party's database, in one place. Which of them a party fills depends on its role; what each holds is said here.

Until 1.0 nothing is migrated; from then on a table that changes needs a step in :mod:`backend.store.migrations`, and a test compares both.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    TypeDecorator,
    event,
    text,
)
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column

from backend.policy.bands import Policy, read_policy
from backend.remark import Remark, read_plain

NAME_LENGTH = 200  # characters of a party's, feature's or person's name
ID = 40  # characters of a model's id
TIME_LENGTH = 40  # characters: UTC, ISO 8601
ApprovalState = Literal["waiting", "granted", "denied", "withdrawn"]
State = Literal["draft", "in_review", "approved", "in_use", "retired"]  # of a model
JobState = Literal["running", "done", "failed", "cancelled", "interrupted"]
PolicyState = Literal["proposed", "approved", "superseded"]
_IN_USE = "state = 'in_use'"  # one model of a federation, never two
_HAS_REPLY = "reply IS NOT NULL"  # a few of the questions of a month


def _partial_index(name: str, column: str, condition: str, *, unique: bool = False) -> Index:
    """Return an index of the rows for which a condition holds."""
    index = Index(name, column, unique=unique)

    # not `sqlite_where` and `postgresql_where`, for which every process would load both dialects
    @event.listens_for(index, "before_create")
    def _add_condition(index: Index, connection: Connection, **_: object) -> None:
        index.dialect_options[connection.dialect.name]["where"] = text(condition)

    return index


class JsonText(TypeDecorator[Any]):
    """A table of texts, numbers and lists, stored as JSON with its keys sorted."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """Return the text that is stored."""
        return json.dumps(value, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Return what was stored."""
        return json.loads(value or "{}")


class NamesText(JsonText):
    """Several names, stored as JSON."""

    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:
        """Return the names."""
        return tuple(json.loads(value or "[]"))


class IntegerText(TypeDecorator[int]):
    """An integer that may be longer than a number of the database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str:
        """Return the digits."""
        return str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int:
        """Return the number."""
        return int(value or 0)


class RemarkText(TypeDecorator[Remark]):
    """A remark, or none."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Remark | None, dialect: Dialect) -> str:
        """Return it as JSON; empty for none."""
        return "" if value is None else json.dumps(value.plain())

    def process_result_value(self, value: str | None, dialect: Dialect) -> Remark | None:
        """Return the remark."""
        return read_plain(json.loads(value)) if value else None


def milliseconds(time: datetime) -> str:
    """Return a time as it is stored: ISO 8601 with milliseconds."""
    return time.isoformat(timespec="milliseconds")


class Base(DeclarativeBase):
    """All tables."""


class ArtefactRow(Base):
    """A party's partial model as canonical JSON."""

    __tablename__ = "artefacts"
    model_id: Mapped[str] = mapped_column(String(ID + 10), primary_key=True)
    content_hash: Mapped[str] = mapped_column(String(64))
    text: Mapped[str] = mapped_column(Text)


class RecordRow(Base):
    """The Guest's record of a model, apart from its partial model: metrics, parameters, how it was trained."""

    __tablename__ = "records"
    model_id: Mapped[str] = mapped_column(String(ID), ForeignKey("artefacts.model_id"), primary_key=True)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH))
    body: Mapped[str] = mapped_column(Text)


class SealedModel(MappedAsDataclass, Base):
    """A trained model that is kept sealed, since too many of its scores fit one path: stored and shown.

    Attributes
    ----------
    maker : str
        Who trained it, the only person to see it.
    body : dict of str to Any
        The record that it will have when it is opened, as measured last.
    approved_trees : int
        Rounds that may be grown within its approval.
    allowed : float
        Share of scores that may fit one path.
    """

    __tablename__ = "sealed_models"
    model_id: Mapped[str] = mapped_column(String(ID), ForeignKey("artefacts.model_id"), primary_key=True)
    maker: Mapped[str] = mapped_column(String(NAME_LENGTH))
    created: Mapped[str] = mapped_column(String(TIME_LENGTH))
    body: Mapped[dict[str, Any]] = mapped_column(JsonText)
    approved_trees: Mapped[int] = mapped_column(Integer)
    allowed: Mapped[float] = mapped_column(Float)


class ModelState(MappedAsDataclass, Base):
    """What people call a model, who answers for it, and how far it has come: stored, computed with and shown.

    Attributes
    ----------
    name, note : str
        Empty if none was given.
    owner : str
        Who answers for it.
    maker : str
        Who trained or imported it; empty if nobody knows.
    places, product : str
        Where its people live, separated by commas, and what it is for, if they differ from the federation's; else empty.
    """

    __tablename__ = "model_states"
    model_id: Mapped[str] = mapped_column(String(ID), ForeignKey("records.model_id"), primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    note: Mapped[str] = mapped_column(Text)
    owner: Mapped[str] = mapped_column(String(NAME_LENGTH))
    maker: Mapped[str] = mapped_column(String(NAME_LENGTH))
    state: Mapped[State] = mapped_column(String(20))
    places: Mapped[str] = mapped_column(String(NAME_LENGTH), default="")
    product: Mapped[str] = mapped_column(String(20), default="")
    __table_args__ = (_partial_index("one_in_use", "state", _IN_USE, unique=True),)


class ModelStep(MappedAsDataclass, Base):
    """A step that a model took from one state to the next, with whoever took it: stored and shown.

    Attributes
    ----------
    reason : str
        Empty if none was asked for.
    time : str
        UTC, ISO 8601.
    number : int
        Order of writing, over all models.
    """

    __tablename__ = "model_steps"
    model_id: Mapped[str] = mapped_column(String(ID), ForeignKey("records.model_id"), index=True)
    before: Mapped[State] = mapped_column(String(20))
    after: Mapped[State] = mapped_column(String(20))
    reason: Mapped[str] = mapped_column(Text)
    person: Mapped[str] = mapped_column(String(NAME_LENGTH))
    role: Mapped[str] = mapped_column(String(20))
    time: Mapped[str] = mapped_column(String(TIME_LENGTH))
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)


class PolicyVersion(MappedAsDataclass, Base):
    """One version of a model's policy, proposed by one person and approved by another: stored, computed with and shown.

    Attributes
    ----------
    version : int
        Of the model, from 1.
    body : dict of str to Any
        :meth:`backend.policy.bands.Policy.plain`.
    state : {"proposed", "approved", "superseded"}
        "superseded": another version was proposed before this one was approved.
    first_day : str
        UTC day from which it holds, ISO 8601.
    proposed, approved : str
        UTC, ISO 8601; `approved` is empty while it waits.
    note : str
        The second person's note.
    """

    __tablename__ = "policies"
    model_id: Mapped[str] = mapped_column(String(ID), ForeignKey("records.model_id"), index=True)
    version: Mapped[int] = mapped_column(Integer)
    body: Mapped[dict[str, Any]] = mapped_column(JsonText)
    owner: Mapped[str] = mapped_column(String(NAME_LENGTH))
    reason: Mapped[str] = mapped_column(Text)
    first_day: Mapped[str] = mapped_column(String(10))
    proposed_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    proposed: Mapped[str] = mapped_column(String(TIME_LENGTH))
    state: Mapped[PolicyState] = mapped_column(String(20), default="proposed")
    approved_by: Mapped[str] = mapped_column(String(NAME_LENGTH), default="")
    approved: Mapped[str] = mapped_column(String(TIME_LENGTH), default="")
    note: Mapped[str] = mapped_column(Text, default="")
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)

    @property
    def policy(self) -> Policy:
        """Return the policy of this version."""
        return replace(read_policy(self.body), version=self.version)


class StoredDecision(MappedAsDataclass, Base):
    """The Guest's last score of a person by a model, and which policy decided (:mod:`backend.store.decisions`).

    Attributes
    ----------
    own : str
        SHA-256 of the Guest's values that the score was made of.
    units : int
        The sum as it was decrypted.
    absent : tuple of str
        Hosts that had no record of the person.
    policy : int
        Version.
    created : str
        UTC, ISO 8601.
    """

    __tablename__ = "decisions"
    model_id: Mapped[str] = mapped_column(String(ID), primary_key=True)
    subject: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True, repr=False)
    own: Mapped[str] = mapped_column(String(64), repr=False)
    units: Mapped[int] = mapped_column(IntegerText, repr=False)
    absent: Mapped[tuple[str, ...]] = mapped_column(NamesText)
    policy: Mapped[int] = mapped_column(Integer)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH), index=True, default="")


class AuditRow(Base):
    """An entry of the Guest's audit log (:mod:`backend.store.audit_log`)."""

    __tablename__ = "audit"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(String(64))


class KeptHead(MappedAsDataclass, Base):
    """A head of another party's audit log as this party received it, every one of them.

    Attributes
    ----------
    public_key, signature : str
        Of the party whose log it is, in hexadecimal; empty for the head of an empty log.
    whose : str
        That party; empty of a head that is not stored here.
    """

    __tablename__ = "audit_heads"
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[str] = mapped_column(String(64))
    public_key: Mapped[str] = mapped_column(String(64), default="")
    signature: Mapped[str] = mapped_column(String(128), default="")
    whose: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True, default="", compare=False)


class ReviewRow(Base):
    """A verdict on a finding (:mod:`backend.store.reviews`)."""

    __tablename__ = "reviews"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    model: Mapped[str] = mapped_column(String(64), index=True)
    rule: Mapped[str] = mapped_column(String(NAME_LENGTH))
    feature: Mapped[str] = mapped_column(String(NAME_LENGTH))
    verdict: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str] = mapped_column(Text)
    person: Mapped[str] = mapped_column(String(NAME_LENGTH))
    time: Mapped[str] = mapped_column(String(TIME_LENGTH))


class SignOff(MappedAsDataclass, Base):
    """One person's statement about a model and the report that was read: stored, signed and shown.

    Attributes
    ----------
    model : str
        Content hash of the Guest's partial model.
    report_hash : str
        SHA-256 of the report that was signed, so that a later one is not covered.
    time : str
        UTC, ISO 8601.
    public_key, signature : str
        Of the Guest, in hexadecimal.
    number : int
        Order of writing, over all models.
    """

    __tablename__ = "signoffs"
    model: Mapped[str] = mapped_column(String(64), index=True)
    person: Mapped[str] = mapped_column(String(NAME_LENGTH))
    role: Mapped[str] = mapped_column(String(NAME_LENGTH))
    statement: Mapped[str] = mapped_column(Text)
    report_hash: Mapped[str] = mapped_column(String(64))
    time: Mapped[str] = mapped_column(String(TIME_LENGTH))
    public_key: Mapped[str] = mapped_column(String(64))
    signature: Mapped[str] = mapped_column(String(128), default="")
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)


class MeasurementRow(Base):
    """Measured evidence about a model (:mod:`backend.store.measurements`)."""

    __tablename__ = "measurements"
    model: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    feature: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH))
    body: Mapped[str] = mapped_column(Text)


class AnswerRow(Base):
    """How often a Host answered about a person, or each one of a crowd, by day (:mod:`backend.store.accountant`)."""

    __tablename__ = "answers"
    subject: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    structure: Mapped[str] = mapped_column(String(64), primary_key=True)
    guest: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    day: Mapped[int] = mapped_column(Integer, primary_key=True, index=True)
    asked: Mapped[int] = mapped_column(Integer)
    bits: Mapped[float] = mapped_column(Float)
    capacity: Mapped[float] = mapped_column(Float)


class CrowdRow(Base):
    """A member of a crowd: many people who were asked about together, and whose answers are booked under its name."""

    __tablename__ = "crowds"
    subject: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    crowd: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    __table_args__ = (Index("crowd_members", "crowd", "subject"),)


class QuestionRow(Base):
    """A request that a Host has booked, and its answer until the Guest has it: the gate's table, one row a request.

    Attributes
    ----------
    asked : str
        Hash of kind, structure and people; empty while only an approval's volume is used.
    records : str
        Version of the Host's records.
    people : int
        Number of people that it is about, with a record here; a whole table is one.
    cost : float
        Bits that were booked, over all of these people.
    state : {"approved", "booked", "answered", "acknowledged"}
        An answer that is never stored stays at "booked".
    receipt : str
        The conversation in which it came, whose receipt covers it.
    """

    __tablename__ = "questions"
    guest: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    request: Mapped[str] = mapped_column(String(64), primary_key=True)
    day: Mapped[int] = mapped_column(Integer, index=True)
    asked: Mapped[str] = mapped_column(String(64))
    records: Mapped[str] = mapped_column(String(64))
    spent: Mapped[bytes] = mapped_column(LargeBinary)
    digest: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(20), default="")
    structure: Mapped[str] = mapped_column(String(64), default="")
    people: Mapped[int] = mapped_column(Integer, default=0)
    cost: Mapped[float] = mapped_column(Float, default=0.0)
    state: Mapped[str] = mapped_column(String(20), default="approved")
    receipt: Mapped[str] = mapped_column(String(64), default="")
    reply: Mapped[bytes | None] = mapped_column(LargeBinary)
    __table_args__ = (_partial_index("kept_replies", "guest", _HAS_REPLY),)


# Keyed otherwise than the answers: of a person and a model the last record counts, whatever the day and the kind.
class ScoredRecordRow(Base):
    """Which version of a person's record a Host last answered a score about: reasons for that score are of the same record.

    Attributes
    ----------
    version : str
        SHA-256 of the record's values that the model uses.
    """

    __tablename__ = "scored_records"
    guest: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    structure: Mapped[str] = mapped_column(String(64), primary_key=True)
    subject: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    version: Mapped[str] = mapped_column(String(64))
    day: Mapped[int] = mapped_column(Integer, index=True)


class LoggedRow(MappedAsDataclass, Base):
    """One person's decision vector, or terms of reasons, in an auditor's sample; or what a question about sums was about.

    Attributes
    ----------
    day : str
        UTC date.
    kind : str
        ``score``, ``reasons``, or one of :data:`backend.store.request_log.SUMS`.
    subject : str
        The person; empty of sums.
    public_key : bytes
        The modulus, big-endian.
    vector : bytes
        Ciphertexts, entry by entry, as they came; of terms with the shares, features, value_bits and groups that came with them (msgpack);
        empty under RLWE. Of sums what :func:`backend.store.request_log.packed_question` gives.
    request : str
        The Guest's name for the question, empty if it cannot be repeated; of sums by group that of the conversation.
    place : int
        Position of the person in the question.
    dither : int
        Largest number that a Host before this one adds to the score, units.
    records : str
        Version of the records that were answered from; empty if the account knows it.
    priority : float
        Drawn from 0 to 1: the rows with the largest ones stay.
    """

    __tablename__ = "requests"
    day: Mapped[str] = mapped_column(String(TIME_LENGTH))
    kind: Mapped[str] = mapped_column(String(20))
    model_id: Mapped[str] = mapped_column(String(ID))
    subject: Mapped[str] = mapped_column(String(NAME_LENGTH))
    public_key: Mapped[bytes] = mapped_column(LargeBinary, repr=False)
    vector: Mapped[bytes] = mapped_column(LargeBinary, repr=False)
    request: Mapped[str] = mapped_column(String(64), default="")
    place: Mapped[int] = mapped_column(Integer, default=0)
    dither: Mapped[int] = mapped_column(BigInteger, default=0)
    records: Mapped[str] = mapped_column(String(64), default="")
    priority: Mapped[float] = mapped_column(Float, default=0.0, repr=False)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)


class SecretRow(Base):
    """A Host's long-term secret; a reader of the database can read its records as well."""

    __tablename__ = "secrets"
    name: Mapped[str] = mapped_column(String(ID), primary_key=True)
    value: Mapped[bytes] = mapped_column(LargeBinary)


class RunRow(Base):
    """A scoring of the Guest that is under way or whose scores were not yet handed over (:mod:`backend.store.journal`)."""

    __tablename__ = "runs"
    run: Mapped[str] = mapped_column(String(64), primary_key=True)
    question: Mapped[str] = mapped_column(String(64), index=True)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH))


class RunBatchRow(Base):
    """One batch of a run: its request's name at the Hosts, and its answer once it has come."""

    __tablename__ = "run_batches"
    run: Mapped[str] = mapped_column(String(64), ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    request: Mapped[str] = mapped_column(String(64))
    answer: Mapped[bytes | None] = mapped_column(LargeBinary)


class RunPieceRow(Base):
    """A message that the Guest was about to send for a batch; deleted when the answer is there."""

    __tablename__ = "run_pieces"
    run: Mapped[str] = mapped_column(String(64), ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    piece: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    sent: Mapped[bytes] = mapped_column(LargeBinary)


class TrainingRow(Base):
    """A training that may go on after a break (:mod:`backend.store.trainings`): at the Guest its trees, at a Host what it was asked for."""

    __tablename__ = "trainings"
    guest: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    request: Mapped[str] = mapped_column(String(64), primary_key=True)
    question: Mapped[str] = mapped_column(String(64), index=True)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH), index=True)
    body: Mapped[str] = mapped_column(Text)


class StatedRow(Base):
    """With which values of its own the Guest made what it sent, and what came back: stated if an auditor has drawn it."""

    __tablename__ = "stated"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH), index=True)
    body: Mapped[str] = mapped_column(Text)


class FederationRow(Base):
    """A federation that a home knows; a folder within the home is relative to it."""

    __tablename__ = "federations"
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    folder: Mapped[str] = mapped_column(Text)


class LoggedJob(MappedAsDataclass, Base):
    """A job of the home's users and what became of it (:mod:`backend.store.job_log`); in the home's own database.

    Attributes
    ----------
    user : str
        Hash of the account; empty without a sign-in.
    name : str
        Under which it was started: its kind, and of work on one model its id after a colon.
    model : str
        The model that was chosen when it was started; empty if there was none.
    process : str
        The one that runs it.
    started, ended : str
        UTC, ISO 8601; `ended` is empty while it runs.
    failure : Remark or None
        Why it failed, if that names no person.
    result : str
        Place of its result: a model's id, or a run of the Guest's journal.
    size : str
        What tells it from other work of its kind that takes longer or shorter; set once it has ended.
    seen : bool
        Its user knows that it has ended.
    beat : str
        Last heartbeat of the process, UTC, ISO 8601.
    """

    __tablename__ = "jobs"
    user: Mapped[str] = mapped_column(String(64), index=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    model: Mapped[str] = mapped_column(String(ID))
    process: Mapped[str] = mapped_column(String(ID))
    id: Mapped[str] = mapped_column(String(ID), primary_key=True, default_factory=lambda: secrets.token_hex(16))
    state: Mapped[JobState] = mapped_column(String(20), default="running")
    started: Mapped[str] = mapped_column(String(TIME_LENGTH), default_factory=lambda: milliseconds(datetime.now(UTC)))
    ended: Mapped[str] = mapped_column(String(TIME_LENGTH), default="")
    failure: Mapped[Remark | None] = mapped_column(RemarkText, default=None)
    result: Mapped[str] = mapped_column(String(NAME_LENGTH), default="")
    size: Mapped[str] = mapped_column(Text, default="")
    seen: Mapped[bool] = mapped_column(Boolean, default=False)
    beat: Mapped[str] = mapped_column(String(TIME_LENGTH), default="")

    @property
    def seconds(self) -> float:
        """From the start to the end; 0 while it runs."""
        if not self.ended:
            return 0.0
        return (datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.started)).total_seconds()


class Approval(MappedAsDataclass, Base):
    """A request of a Guest and what the Host's operator decided (:mod:`backend.store.approvals`): stored, computed with and shown.

    Attributes
    ----------
    purpose : str
        "training", "scoring", "reasons" or a purpose of measuring.
    subject : str
        The subject: SHA-256 in hexadecimal of a model's trees or of a training's terms. It stays with the Host.
    name : str
        The Guest's name for it: a model's id, or the algorithm of a training.
    about : dict of str to Any
        Trees, records and bits; of a training its terms, too.
    state : {"waiting", "granted", "denied", "withdrawn"}
    asked, decided : str
        UTC, ISO 8601; `decided` is empty while the request waits.
    until : str
        Last UTC day on which a grant counts, ISO 8601.
    per_day : int
        People, or trainings, a UTC day.
    scores_until, scores_per_day : str, int
        Of a training: last day and people a day for scores with the model that it makes; "" and 0 = they are asked for separately.
    reason : str
        Of a denial or withdrawal; the Guest reads it.
    signature : str
        The Host's over a grant; empty otherwise.
    number : int
        At this Host, from 1; None before it is stored.
    """

    __tablename__ = "approvals"
    guest: Mapped[str] = mapped_column(String(NAME_LENGTH), index=True)
    purpose: Mapped[str] = mapped_column(String(20))
    subject: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(ID))
    about: Mapped[dict[str, Any]] = mapped_column("body", JsonText)
    state: Mapped[ApprovalState] = mapped_column(String(20), default="waiting")
    asked: Mapped[str] = mapped_column(String(TIME_LENGTH), default="")
    decided: Mapped[str] = mapped_column(String(TIME_LENGTH), default="")
    person: Mapped[str] = mapped_column(String(NAME_LENGTH), default="")
    until: Mapped[str] = mapped_column(String(10), default="")
    per_day: Mapped[int] = mapped_column(Integer, default=0)
    reason: Mapped[str] = mapped_column(Text, default="")
    signature: Mapped[str] = mapped_column(String(128), default="", repr=False)
    scores_until: Mapped[str] = mapped_column(String(10), default="")
    scores_per_day: Mapped[int] = mapped_column(Integer, default=0)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)

    @property
    def since(self) -> datetime:
        """Return when it was asked for."""
        return datetime.fromisoformat(self.asked)

    def expired(self, today: date) -> bool:
        """Return whether it is a grant that has expired."""
        return self.state == "granted" and today > date.fromisoformat(self.until)

    @property
    def signed_fields(self) -> tuple[str | int, ...]:
        """Return what the Host signs of a grant."""
        return (
            self.number,
            self.guest,
            self.purpose,
            self.subject,
            self.name,
            self.decided,
            self.person,
            self.until,
            self.per_day,
            self.scores_until,
            self.scores_per_day,
        )


class ApprovalUseRow(Base):
    """How much of an approval's volume was used on a day, and how many questions it did not cover."""

    __tablename__ = "approval_uses"
    number: Mapped[int] = mapped_column(
        Integer, ForeignKey("approvals.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    day: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, index=True)
    used: Mapped[int] = mapped_column(Integer)
    refused: Mapped[int] = mapped_column(Integer)


class ReceiptRow(Base):
    """A party's signed statement about messages sent and received in a conversation: its own receipts and those of the others."""

    __tablename__ = "receipts"
    conversation: Mapped[str] = mapped_column(String(64), primary_key=True)
    party: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    peer: Mapped[str] = mapped_column(String(NAME_LENGTH), primary_key=True)
    created: Mapped[str] = mapped_column(String(TIME_LENGTH), index=True)
    body: Mapped[str] = mapped_column(Text)
    public_key: Mapped[str] = mapped_column(String(64))
    signature: Mapped[str] = mapped_column(String(128))
