"""The canonical report on one model: what is in it, and the hashes by which a copy is checked. Built from what the Guest knows.

``content`` depends on the model, its findings and what people decided about them; a sign-off names its hash. ``issued`` is what belongs to
the day of the report: who asked, how much the model was used, the head of the audit log. No field has room for a Host's threshold, a
Host's value, a score, a label or an id.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backend.errors import ModelError

SCHEMA: Literal["glassleaf-report"] = "glassleaf-report"
VERSION = 1
SHARE_DIGITS = 4  # a share of 0.6142 is written as 61.42 % everywhere


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Identity(_Part):
    """Which model this is, and how it was made; sizes in bits, `training_seconds` in seconds."""

    model: str
    federation: str
    title: str
    title_zh: str
    synthetic: bool = Field(description="every person is made up")
    created: str
    task: str
    predicts: str = Field(description="what the label says about a person")
    predicts_zh: str
    algorithm: str
    cipher: str
    key_bits: int
    score_bits: int
    guest_sha256: str = Field(description="content hash of the Guest's half of the model")
    host_sha256: dict[str, str] = Field(description="Host → content hash of its half, as it told it")
    parameters: dict[str, str]
    left_out: tuple[str, ...] = Field(description="features that were kept out of training")
    training_seconds: float


class PartyLine(_Part):
    """One party and its part in the model; shares from 0 to 1."""

    name: str
    title: str
    title_zh: str
    role: Literal["guest", "host"]
    records: int | None = Field(description="brought to the alignment; null for an imported model")
    features: int
    used: int
    splits: int
    gain_share: float


class FeatureLine(_Part):
    """One disclosed feature: what it means, how much the model uses it and which way; shares from 0 to 1."""

    name: str
    party: str
    meaning: str
    meaning_zh: str
    unit: str
    kind: str
    sensitivity: str
    codes: dict[str, str] = Field(description="code → what it stands for, as disclosed")
    splits: int
    trees: int
    gain_share: float
    cover_share: float
    expected: str
    learned: str
    strength: float = Field(description="-1 every bit of gain points down, 1 up")
    contradicts: bool
    against: int = Field(description="splits that point against the expectation")


class Structure(_Part):
    """How the model decides, in numbers."""

    trees: int
    leaves: int
    depth: int
    splits: int
    hidden_splits: int = Field(description="splits of which the Guest does not know the threshold")
    aggregation: str
    outputs: int = Field(description="numbers that the Guest learns of each person scored")


class Measured(_Part):
    """One measured number with its interval; null where the group was too small to be told."""

    about: str
    about_zh: str = Field(description="a group's name in Chinese, where that differs")
    measure: str
    n: int
    value: float | None
    low: float | None
    high: float | None


class BasisLine(_Part):
    """What something was measured on; `cutoff` is the probability from which decisions declined, null where there were none."""

    n: int
    cutoff: float | None


class Decision(_Part):
    """What a person decided about a finding."""

    decision: str
    reason: str
    person: str
    time: str


class LawLine(_Part):
    """What a rule says; days in ISO form."""

    rule: str
    title: str
    title_zh: str
    pack: str
    citation: str
    jurisdiction: str
    as_of: str
    status: str
    effective_from: str
    effective_to: str
    force: str
    explanation: str
    explanation_zh: str
    remedy: str
    remedy_zh: str


class FindingLine(LawLine):
    """A rule that speaks of a feature, what matched, the evidence claim by claim, and what was done about it."""

    feature: str
    party: str
    matched: str
    matched_in: str
    splits: int
    gain_share: float
    proxies: tuple[Measured, ...] | None = Field(description="null = not measured")
    disparities: tuple[Measured, ...] | None = Field(description="null = not measured")
    proxies_on: BasisLine | None
    disparities_on: BasisLine | None
    decision: Decision | None = Field(description="the last one; null = nobody decided yet")
    earlier_decisions: int


class DutyLine(LawLine):
    """A rule about the model as a whole, and what is offered towards it."""

    evidence: str
    evidence_zh: str


class PackLine(_Part):
    """A rule pack that was applied."""

    name: str
    version: str
    as_of: str
    title: str
    title_zh: str
    jurisdiction: str
    source: str
    built_in: bool


class Assessment(_Part):
    """What was flagged, and under which rules."""

    assessed: int
    words: str = Field(description="version of the words that names and meanings were searched for")
    findings: tuple[FindingLine, ...]
    set_aside: tuple[FindingLine, ...] = Field(description="matches that an owner's tag `none` sets aside")
    not_in_force: tuple[FindingLine, ...]
    duties: tuple[DutyLine, ...]
    packs: tuple[PackLine, ...]
    problems: tuple[str, ...]


class Evidenced(_Part):
    """What was measured about one feature, which may be one that training was not given."""

    feature: str
    meaning: str
    meaning_zh: str
    on: BasisLine | None = Field(description="null = not kept")
    measures: tuple[Measured, ...]


class Pair(_Part):
    """One figure of two models; null where it does not apply or a model was not given the feature."""

    name: str
    before: float | None
    after: float | None


class GainPair(Pair):
    """A feature's share of the gain in two models, from 0 to 1."""

    party: str
    meaning: str
    meaning_zh: str


class OutcomePair(_Part):
    """One figure about a group in two models; null where it was not measured."""

    feature: str
    meaning: str
    meaning_zh: str
    before: Measured | None
    after: Measured | None


class Retrained(_Part):
    """A model beside the one that was trained anew from it without some of its features; one of the two is this report's."""

    before: str = Field(description="model")
    after: str = Field(description="model")
    before_sha256: str = Field(description="content hash of the Guest's half")
    after_sha256: str
    created: str = Field(description="of the second")
    without: tuple[str, ...] = Field(description="features that the second was not given")
    same_people: bool = Field(description="the figures are of the same records")
    figures: tuple[Pair, ...]
    structure: tuple[Pair, ...]
    gain: tuple[GainPair, ...]
    outcomes: tuple[OutcomePair, ...] = Field(description="empty = not measured")


class Quality(_Part):
    """Figures on one part of the data; null where one does not apply to the task."""

    part: str
    n: int
    auc: float | None
    ks: float | None
    log_loss: float | None
    accuracy: float | None
    rmse: float | None
    r2: float | None
    positive_rate: float | None
    rows: dict[str, int] = Field(description="joint records in each part")


class Traffic(_Part):
    """Messages of one class between two parties, as they were counted on the wire."""

    kind: str
    sender: str
    receiver: str
    messages: int
    bytes: int
    holds: str
    readable_by: str


class Limit(_Part):
    """What this report does not say, or what is not protected."""

    key: str
    text: str


class Content(_Part):
    """What people assess and sign."""

    identity: Identity
    parties: tuple[PartyLine, ...]
    features: tuple[FeatureLine, ...] = Field(description="largest share of the gain first")
    structure: Structure
    assessment: Assessment
    fairness: tuple[Evidenced, ...] | None = Field(description="outcome disparity; null = not measured")
    proxies: tuple[Evidenced, ...] | None = Field(
        description="association with protected features; null = not measured"
    )
    retrained: tuple[Retrained, ...] = Field(description="this model beside those it replaces or is replaced by")
    quality: Quality
    training_traffic: tuple[Traffic, ...] | None = Field(
        description="null = training was not logged, or there was none"
    )
    limits: tuple[Limit, ...]


class SignOffLine(_Part):
    """A person's statement; `covers` = it names the hash of this very content."""

    person: str
    role: str
    statement: str
    report_sha256: str
    covers: bool
    time: str


class Use(_Part):
    """How much the model was used, by the audit log."""

    scorings: int
    rows: int
    failed: int
    in_the_clear: int = Field(description="rows that were scored on plain numbers, in the simulation")
    comparisons: int
    traffic: tuple[Traffic, ...]


class AuditLine(_Part):
    """The audit log as it was checked for this report."""

    entries: int
    head_sha256: str
    holds: bool
    problems: tuple[str, ...]
    witnesses: tuple[str, ...]


class Issued(_Part):
    """What belongs to the day of the report."""

    time: str
    actor: str
    role: str
    law_of: str = Field(description="the day whose law was applied")
    sign_offs: tuple[SignOffLine, ...]
    use: Use
    audit: AuditLine


class Report(_Part):
    """The whole document."""

    schema_name: Literal["glassleaf-report"] = Field(SCHEMA, alias="schema")
    version: Literal[1] = 1
    content: Content
    content_sha256: str = Field(description="SHA-256 of `content`, canonically written; what a sign-off names")
    issued: Issued
    sha256: str = Field(description="SHA-256 of the document without this field, canonically written")

    def body(self) -> dict[str, Any]:
        """The document as plain JSON types."""
        return self.model_dump(mode="json", by_alias=True)


def make(content: Content, issued: Issued) -> Report:
    """Put a report together and compute its hashes."""
    parts = {"content": content.model_dump(mode="json"), "issued": issued.model_dump(mode="json")}
    document = {"schema": SCHEMA, "version": VERSION, "content_sha256": content_hash(content), **parts}
    whole = canonical({**document, "sha256": sha256(document)})
    return Report.model_validate_json(whole)  # as a reader gets it: names in their canonical order


def content_hash(content: Content) -> str:
    """SHA-256 of a content."""
    return sha256(content.model_dump(mode="json"))


def canonical(document: Any) -> str:
    """JSON in its one form: keys sorted, no spaces, ASCII only, no NaN."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(document: Any) -> str:
    """SHA-256 of a document's canonical form."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def to_json(report: Report) -> str:
    """The report as a file: its canonical form."""
    return canonical(report.body()) + "\n"


def read(text: str) -> Report:
    """A report as it was written.

    Raises
    ------
    ModelError
        The text is no report of this version, or its hashes do not fit: it was changed.
    """
    try:
        body = json.loads(text)
        report = Report.model_validate(body)
    except (ValueError, ValidationError) as error:
        raise ModelError(f"This is no report of version {VERSION}: {_first_line(error)}") from error
    without = {key: value for key, value in body.items() if key != "sha256"}
    if sha256(without) != report.sha256:
        raise ModelError("The report does not have its hash: it was changed after it was issued. Ask for it again.")
    if sha256(body["content"]) != report.content_sha256:
        raise ModelError("The report's content does not have its hash: it was put together from two reports.")
    return report


def schema() -> str:
    """JSON Schema of a report, as in docs/report-schema.json."""
    return json.dumps(Report.model_json_schema(by_alias=True), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
