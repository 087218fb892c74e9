"""The fields of the canonical report: what is in it, and what each of them means. Results stand in it as they are.

``Content`` depends on the model, its findings and what people decided about them; ``Issued`` is what belongs to the day of the report.
No field has room for a Host's threshold, a Host's value, a score, a label or an id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from backend.compliance.assessment import ComplianceReport
from backend.data.rounding import Rounded
from backend.evaluation.performance import Calibration, Estimate, Stability
from backend.evaluation.validation.monitoring import Monitored
from backend.evaluation.validation.suite import Validation
from backend.fairness.alternatives import Choice, Point, Tried
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import Text
from backend.privacy.given_away import WindowTotal
from backend.reports.verdict.facts import Verdict
from backend.trees.ensemble import Usage
from backend.trees.metrics import Metrics


class Part(BaseModel):
    """Frozen, without other fields, every number finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# The model


class Identity(Part):
    """Which model this is, and how it was made; sizes in bits, `training_seconds` in seconds."""

    model: str
    federation: str
    title: Text
    synthetic: bool = Field(description="every person is synthetic")
    created: str
    task: str
    predicts: Text = Field(description="what the label says about a person")
    algorithm: str
    cipher: str
    key_bits: int
    score_bits: int
    guest_sha256: str = Field(description="content hash of the Guest's partial model")
    host_sha256: dict[str, str] = Field(description="Host → content hash of its partial model, as the Host reported it")
    parameters: dict[str, str]
    left_out: tuple[str, ...] = Field(description="features that were kept out of training")
    training_seconds: float


class PartyLine(Part):
    """One party and its part in the model; shares from 0 to 1."""

    name: str
    title: Text
    role: Literal["guest", "host"]
    records: int | None = Field(description="brought to the alignment; null for an imported model")
    features: int
    used: int
    splits: int
    gain_share: float


class FeatureLine(Part):
    """One disclosed feature: what it means, how much the model uses it and which way; shares from 0 to 1."""

    name: str
    party: str
    meaning: Text
    unit: Text
    kind: str
    sensitivity: str
    codes: dict[str, Text] = Field(description="code → what it stands for, as disclosed")
    usage: Usage
    expected: str
    learned: str
    strength: float = Field(description="-1: all of the gain points down; 1: all of it points up")
    contradicts: bool
    against: int = Field(description="splits that point against the expectation")


class Structure(Part):
    """How the model decides, in numbers."""

    trees: int
    leaves: int
    depth: int
    splits: int
    hidden_splits: int = Field(description="splits of which the Guest does not know the threshold")
    aggregation: str
    outputs: int = Field(description="numbers that the Guest learns of each person scored")


# What was measured


class Evidenced(Part):
    """What was measured about one feature, which may be one that training was not given."""

    feature: str
    meaning: Text
    on: Basis | None = Field(description="null = not kept")
    measures: tuple[Evidence, ...]


# Models retrained


class Pair(Part):
    """One figure of two models; null where it does not apply or a model was not given the feature."""

    name: str
    before: float | None
    after: float | None


class GainPair(Pair):
    """A feature's share of the gain in two models, from 0 to 1."""

    party: str
    meaning: Text


class OutcomePairLine(Part):
    """One figure about a group in two models; null where it was not measured."""

    feature: str
    meaning: Text
    before: Evidence | None
    after: Evidence | None
    cutoff: float | None = Field(
        None, description="probability from which decisions declined; null where it was not recorded"
    )


class Retrained(Part):
    """A model beside the one that was retrained from it without some of its features; one of the two is this report's."""

    before: str = Field(description="model")
    after: str = Field(description="model")
    before_sha256: str = Field(description="content hash of the Guest's partial model")
    after_sha256: str
    created: str = Field(description="of the second")
    without: tuple[str, ...] = Field(description="features that the second was not given")
    same_people: bool = Field(description="the figures are of the same records")
    figures: tuple[Pair, ...]
    structure: tuple[Pair, ...]
    gain: tuple[GainPair, ...]
    outcomes: tuple[OutcomePairLine, ...] = Field(description="empty = not measured")
    leak: tuple[Pair, ...] = Field(description="what scores give away, as in `release`; empty = not measured for both")


# Alternatives


class AlternativeLine(Part):
    """One model of a search, at the cut-off at which it accepts the share of people that the first model accepts."""

    tried: Tried
    point: Point
    group: Text = Field(description="name of the point's group; empty = it was not measured")


class SearchLine(Part):
    """A search for less discriminatory alternatives at one decision; the first line is the model that it began from."""

    model: str
    attribute: str
    meaning: Text
    created: str
    n: int
    source: Literal["records", "sums", "validation"] = Field(
        description="from the Guest's test records, or a Host's encrypted sums: of test records, of validation records"
    )
    reference: Text = Field(description="the group that others are compared with")
    tolerance: float = Field(description="AUC that an alternative may lose")
    cutoff: float
    policy: int | None = Field(
        None, description="version of the policy whose line the cut-off is; 0 = the base rate; null = another line"
    )
    alternatives: tuple[AlternativeLine, ...]
    choice: Choice | None = Field(description="null = nobody has chosen yet")


# Quality


@dataclass(frozen=True, kw_only=True)
class Quality(Metrics):
    """Figures on one part of the data; `rows` are the joint records in each part."""

    positive_rate: Rounded | None
    rows: dict[str, int]


class CutoffLine(Part):
    """Shares of the people with the positive label, and of the others, at or above a probability."""

    cutoff: float
    true_positive: float
    false_positive: float


class PerformanceSection(Part):
    """The model's quality with intervals, on one part of the data; no line stands for fewer than 20 people."""

    part: str
    n: int
    source: str = Field(description="when the scores were learned: training, scoring or import")
    figures: tuple[Estimate, ...]
    calibration: tuple[Calibration, ...]
    separation: tuple[CutoffLine, ...] = Field(
        description="falling cut-offs, both of whose shares are ROC; empty = no two outcomes"
    )
    stability: tuple[Stability, ...]


# Who saw what


class ReleaseLine(Part):
    """What scores give away, measured before the model was registered, in the simulation; shares from 0 to 1."""

    score_bits: int = Field(description="bits behind the point of a score")
    dither: float = Field(description="width of what the last Host adds to a score, on the margin; 0 = nothing")
    named: float = Field(description="share of the people whose score fits one path only, among the records")
    named_without: float | None = Field(description="the same without dither; null = not measured, or there is none")
    paths: float = Field(description="median of the paths that fit a score")
    people: int
    records: int


# Not an entry of a transcript: it adds up messages of many conversations.
class Traffic(Part):
    """Messages of one class between two parties, as they were counted on the wire."""

    kind: str
    sender: str
    receiver: str
    messages: int
    bytes: int
    holds: str
    readable_by: str


class Limit(Part):
    """What this report does not say, or what is not protected."""

    key: str
    text: str


class OutOfTimeLine(Part):
    """The test records are the latest ones, from a period on; the model was grown on earlier ones alone."""

    test_from: str = Field(description="day, month or year, as the Guest's records have it")
    n: int


# What people add


class DetailsSection(Part):
    """What the operator alone can say; empty = not provided. Filled in at the page Report or by ``glassleaf report-details``."""

    intended_use: str = ""
    barred_use: str = ""
    owner: str = Field("", description="who answers for the model's use")
    tier: str = Field("", description="materiality: exposure and purpose")
    process: str = Field("", description="the decision that the model is part of, and how often it is made")
    affected: str = Field("", description="people and groups whom it concerns")
    harms: str = ""
    oversight: str = Field("", description="who can stop or change a decision, and how")
    complaints: str = ""
    population: str = ""
    period: str = Field("", description="of the records that the model was grown on")
    lineage: dict[str, str] = Field(default={}, description="party → where its data come from")
    data_quality: dict[str, str] = Field(default={}, description="party → what was checked of its data")
    assumptions: str = ""
    challenger: str = Field("", description="id of the registered model that was compared")
    sensitivity: str = ""
    monitoring: str = ""
    triggers: str = ""
    overrides: str = Field("", description="when a person may decide otherwise than the score")
    validator: str = Field("", description="who validated the model, by name")
    validation: str = Field("", description="when, on what, and with which result")
    changes: str = Field("", description="planned, and those that no log shows")
    due: str = Field("", description="by when open points are to be closed")


Drift = Literal["not measured", "still", "moved", "moved far"]


class DossierColumn(Part):
    """One column as its Host documents it; shares in steps of 0.05, so that no person's coming or going shows."""

    name: str
    meaning: Text
    unit: Text
    codes: dict[str, Text]
    source: str
    lawful_basis: str
    refresh: str
    owner: str
    missing: float = Field(description="share without a value, rounded")
    bands: tuple[tuple[str, float], ...] = Field(
        description="code or band → share, rounded; bands are of equal width, and where they lie stays with the Host"
    )
    drift: Drift = Field(description="since the records of `reference`")
    drifts: tuple[Drift, ...] = Field((), description="since each of the dossier's references")


class DossierSection(Part):
    """What a Host documents and signs about its columns, as the Guest took it in."""

    host: str
    day: str
    reference: str = Field(description="day of the records that drift is measured against; empty = none yet")
    references: tuple[str, ...] = Field((), description="days of trainings on whose records drift is measured")
    trained: dict[str, int] = Field(
        default_factory=dict,
        description="model → place of its training's records in `references`",
    )
    columns: tuple[DossierColumn, ...]
    public_key: str
    signature: str = Field(description="over the statement in docs/report.md")

    def since(self, model: str) -> DossierSection:
        """Return the same with `reference` and `drift` of the model's training; none are measured where the Host kept no records of it.

        A dossier that knows of no single training stays as it is.
        """
        if not self.references:
            return self
        index = self.trained.get(model)
        day = "" if index is None else self.references[index]
        columns = tuple(
            c.model_copy(update={"drift": "not measured" if index is None else c.drifts[index]}) for c in self.columns
        )
        return self.model_copy(update={"reference": day, "columns": columns})


class Content(Part):
    """What people assess and sign."""

    identity: Identity
    parties: tuple[PartyLine, ...]
    features: tuple[FeatureLine, ...] = Field(description="largest share of the gain first")
    structure: Structure
    assessment: ComplianceReport
    fairness: tuple[Evidenced, ...] | None = Field(description="outcome disparity; null = not measured")
    proxies: tuple[Evidenced, ...] | None = Field(
        description="association with protected features; null = not measured"
    )
    retrained: tuple[Retrained, ...] = Field(description="this model beside those it replaces or is replaced by")
    quality: Quality
    performance: PerformanceSection | None = Field(description="null = no scores are kept that it could be measured on")
    validation: Validation | None = Field(None, description="null = the suite was not run on the model")
    monitoring: Monitored | None = Field(None, description="null = the model was not monitored")
    release: ReleaseLine | None = Field(description="null = not measured, or no Host is asked")
    training_traffic: tuple[Traffic, ...] | None = Field(
        description="null = training was not logged, or there was none"
    )
    limits: tuple[Limit, ...]
    out_of_time: OutOfTimeLine | None = Field(None, description="null = the federation has no time column")
    details: DetailsSection | None = Field(None, description="null = the operator provided nothing")
    challenger: Retrained | None = Field(None, description="the model beside another registered one; null = none named")
    dossiers: tuple[DossierSection, ...] | None = Field(None, description="null = no Host's was taken in")
    searches: tuple[SearchLine, ...] = Field((), description="empty = no alternatives were searched")


# The day of the report


class SignOffLine(Part):
    """A person's statement; `covers` = it names the hash of this very content. The Guest signs it, not the person (hexadecimal)."""

    person: str
    role: str
    statement: str
    report_sha256: str
    covers: bool
    time: str
    public_key: str = Field(description="of the Guest")
    signature: str = Field(description="over the statement in docs/report.md")


class StandingLine(Part):
    """What the model is called, who answers for it and whether it may be used; names are as they were given."""

    name: str
    note: str
    owner: str
    maker: str = Field(description="who trained or imported it; empty = not known")
    state: Literal["draft", "in_review", "approved", "in_use", "retired"]
    approved_by: str | None = Field(description="null = no approval stands")
    approved_at: str | None
    approved_because: str | None = Field(description="why, where findings had no decision; null = none was asked for")


class PolicyLine(Part):
    """The policy that turned scores into decisions on the day of the report."""

    version: int = Field(description="0 = nobody has set a line, and the base rate decides")
    decline_at: float | None = Field(description="declined at or above; null = the model has no such line")
    refer_at: float | None = Field(
        description="referred to a person from here on; null = nobody is referred by the score"
    )
    points: str = Field(description="base points, base odds, points that double the odds; empty = none")
    treatments: dict[str, str] = Field(description="what is unusual about a person → score, refer or refuse")
    owner: str
    reason: str
    first_day: str
    proposed_by: str
    approved_by: str


class Use(Part):
    """How much the model was used, by the audit log."""

    scorings: int
    rows: int
    failed: int
    in_the_clear: int = Field(description="rows that were scored on plaintext, in the simulation")
    comparisons: int
    traffic: tuple[Traffic, ...]


class ReasonsLine(Part):
    """How often reasons were found and notices drawn against one group, by the audit log (:mod:`backend.trees.backgrounds`)."""

    against: Literal["all", "approved", "covers"]
    people: int = Field(description="whose reasons were found")
    notices: int


class AuditLine(Part):
    """The audit log as it was checked for this report."""

    entries: int
    head_sha256: str
    holds: bool
    problems: tuple[str, ...]
    witnesses: tuple[str, ...]


class ChangeLine(Part):
    """One entry of the audit log that changed the model, what is said of it or who stands by it."""

    time: str
    action: str
    detail: str = Field(description="the step taken, or the fields that changed")
    actor: str


class MeasuredEntry(Part):
    """One entry of the audit log by which something was measured on the model: a line of the test log."""

    number: int = Field(description="in the audit log")
    time: str
    action: str
    about: str = Field(description="feature or period; empty = the model as a whole")
    actor: str
    entry_sha256: str


class Issued(Part):
    """What belongs to the day of the report."""

    time: str
    actor: str
    role: str
    law_of: str = Field(description="the day whose law was applied")
    standing: StandingLine = Field(description="the model's state")
    verdict: Verdict = Field(description="what is true of the model, the worst first")
    policy: PolicyLine = Field(description="the line that decides")
    sign_offs: tuple[SignOffLine, ...]
    use: Use
    given_away: tuple[WindowTotal, ...] | None = Field(
        description="what answers have given away, by Host; null = not known"
    )
    reasons: tuple[ReasonsLine, ...] = Field(description="reasons and notices, by whom people were compared with")
    audit: AuditLine
    versions: dict[str, str] = Field(description="software that made this report")
    changes: tuple[ChangeLine, ...]
    test_log: tuple[MeasuredEntry, ...] = Field(
        (), description="what was measured on the model, and when; oldest first"
    )
