"""What requests and answers look like; /openapi.json is written from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from backend.i18n import Text
from backend.remark import Remark
from backend.results import ModelRecord, Score, ScoreBatch, Status, counts_of
from backend.services.json_text import finite
from backend.services.online import Person, Value
from backend.services.policies import Policy
from backend.services.reasons import Against, PersonReasons

MAX_PEOPLE = 256  # of one request; more are scored as a file
MAX_COLUMNS = 200
NAMES = 4  # reasons if nobody says how many
Id = Annotated[str, Field(min_length=1, max_length=500)]


class Asked(BaseModel):
    """One person; without `values`, the bank's own record of this id."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    id: Id
    values: Annotated[dict[str, Value], Field(max_length=MAX_COLUMNS)] | None = None

    def person(self) -> Person:
        """As the services have it."""
        return Person(self.id, self.values)


class ScoresBody(BaseModel):
    """Whom to score. The model's policy decides; `what_if` is another cut-off, whose answer is no decision.

    With `ids` = ``as-written`` ten or more people are scored although their ids are not such as the Hosts are known to have.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    people: Annotated[list[Asked], Field(min_length=1, max_length=MAX_PEOPLE)]
    what_if: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    ids: Literal["", "as-written"] = ""


class ReasonsBody(ScoresBody):
    """Whose reasons to name, at most `names` a person, against all applicants unless `against` says otherwise."""

    names: Annotated[int, Field(ge=1, le=NAMES)] = NAMES
    against: Against | None = None


class RemarkAnswer(BaseModel):
    """What was not understood about a person: a code with values, and its English sentence."""

    code: str
    column: str
    values: dict[str, Any]
    sentence: str

    @classmethod
    def of(cls, remark: Remark) -> RemarkAnswer:
        """From what the services answer."""
        plain = remark.plain()
        return cls(code=remark.code, column=remark.column, values=plain["values"], sentence=remark.sentence())


class PolicyAnswer(BaseModel):
    """What decided; `set` is false if nobody has set a line and the base rate decides. `refer_at` is null without a band for referring."""

    version: int
    set: bool
    decline_at: float | None
    refer_at: float | None

    @classmethod
    def of(cls, policy: Policy) -> PolicyAnswer:
        """From what the services answer."""
        return cls(version=policy.version, set=policy.is_set, decline_at=policy.decline_at, refer_at=policy.refer_at)


# Not the score itself: callers do not get its units and predictions, and NaN is no JSON.
class ScoreAnswer(BaseModel):
    """One person's score; ``score = base + guest_part + hosts_part``.

    `decision` is the policy's, `band` what the score alone says, `marks` what was unusual; `what_if` is no decision. Of a person who was
    not scored `problem` says why; of one who is `partial`, `remarks` say what was not understood.
    """

    id: str
    status: Status
    problem: str
    score: float | None
    probability: float | None
    decision: Literal["accept", "refer", "decline", "refuse", ""]
    band: Literal["accept", "refer", "decline", ""]
    points: int | None
    policy: int
    marks: list[str]
    what_if: Literal["accept", "decline", ""]
    predicted: str
    base: float | None
    guest_part: float | None
    hosts_part: float | None
    not_held_by: list[str]
    remarks: list[RemarkAnswer] = []

    @classmethod
    def of(cls, score: Score) -> ScoreAnswer:
        """From what the services answer."""
        return cls(
            id=score.id,
            status=score.status,
            problem=score.problem,
            score=finite(score.margin),
            probability=finite(score.probability),
            decision=score.decision,
            band=score.band,
            points=score.points,
            policy=score.policy,
            marks=list(score.marks),
            what_if=score.what_if,
            predicted=score.predicted,
            base=finite(score.base),
            guest_part=finite(score.guest_part),
            hosts_part=finite(score.hosts_part),
            not_held_by=list(score.not_held_by),
            remarks=[RemarkAnswer.of(remark) for remark in score.remarks],
        )


class ScoresAnswer(BaseModel):
    """Scores in the order of the request, each within ±`dither` of the model's, and how many people have which status.

    `notes` say what was not understood about the request as a whole.
    """

    model: str
    cipher: str
    dither: float
    policy: PolicyAnswer
    counts: dict[Status, int]
    notes: list[RemarkAnswer]
    scores: list[ScoreAnswer]

    @classmethod
    def of(cls, batch: ScoreBatch) -> ScoresAnswer:
        """From what the services answer."""
        scores = [ScoreAnswer.of(score) for score in batch.scores]
        policy = PolicyAnswer.of(batch.policy)
        return cls(
            model=batch.model_id,
            cipher=batch.cipher,
            dither=batch.dither,
            policy=policy,
            counts=counts_of(batch.scores),
            notes=[RemarkAnswer.of(note) for note in batch.notes],
            scores=scores,
        )


# The answers of this file are the contract with callers: other fields of a result may change, and NaN is no JSON.
class ReasonAnswer(BaseModel):
    """A feature that raised the score; `blockers` say why it must not be stated as a reason, if anything does.

    At a value in the middle the score would be lower: the person's is above or below, as `side` says; empty if it has none. Features with
    the same `group` are one reason.
    """

    party: str
    feature: str
    learned: str
    side: Literal["above", "below", ""]
    group: int
    blockers: list[str]


class PersonAnswer(BaseModel):
    """One person's reasons, sorted by name: how much each weighs is not known to anybody."""

    score: ScoreAnswer
    status: Literal["ok", "failed"]
    problem: str
    reasons: list[ReasonAnswer]

    @classmethod
    def of(cls, person: PersonReasons) -> PersonAnswer:
        """From what the services answer."""
        reasons = []
        for r in person.reasons:
            reasons.append(
                ReasonAnswer(
                    party=r.party,
                    feature=r.feature,
                    learned=r.learned,
                    side=r.side,
                    group=r.group,
                    blockers=[f"{b.law}: {b.why}" for b in r.blockers],
                )
            )
        score = ScoreAnswer.of(person.score)
        return cls(score=score, status=person.status, problem=person.problem, reasons=reasons)


class ReasonsAnswer(BaseModel):
    """Reasons in the order of the request, measured `against` so many records as are `compared` (0 = not counted)."""

    model: str
    cipher: str
    against: Against
    compared: int
    people: list[PersonAnswer]


class ColumnAnswer(BaseModel):
    """One of the bank's columns."""

    name: str
    meaning: Text
    kind: str


class ModelAnswer(BaseModel):
    """A model that may be asked; `state` tells whether it is approved."""

    id: str
    name: str
    state: str
    created: str
    algorithm: str
    task: str
    hosts: list[str]
    columns: list[ColumnAnswer]


class ModelsAnswer(BaseModel):
    """Models, newest first."""

    models: list[ModelAnswer]


class ProblemAnswer(BaseModel):
    """RFC 9457; further members by type, e.g. `date` of a budget."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str


def model_answer(record: ModelRecord, name: str, state: str, columns: list[ColumnAnswer]) -> ModelAnswer:
    """From what the services answer."""
    about = {"created": record.created, "algorithm": record.algorithm, "task": record.task}
    return ModelAnswer(id=record.id, name=name, state=state, hosts=list(record.hosts), columns=columns, **about)
