"""What services answer with: models' records, scores and their files. Nothing in here is a Host's."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from backend.data.cells import cell_text as cell_text  # noqa: PLC0414 - the pages write tables, too
from backend.data.cells import csv_text as csv_text  # noqa: PLC0414 - as the command line does
from backend.data.cells import plain_cell
from backend.i18n import joined
from backend.policy.bands import NOBODY_SET, Band, Decision, Policy
from backend.remark import Remark
from backend.trees.metrics import Metrics

if TYPE_CHECKING:
    from backend.compliance.assessment import ComplianceReport
    from backend.data.federation import Federation
    from backend.data.label import Task
    from backend.explain.direction import LearnedDirection
    from backend.explain.importance import FeatureImportance
    from backend.protocols.alignment.outcome import Alignment
    from backend.protocols.training.parameters import TreeProgress
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.trees.ensemble import GuestModel

DEMO = "demo"  # the built-in federation
RANKS = "ranks"  # how an OpBoost training's data travelled: as noisy ranks
JOINT = "joint"  # the part of every record that all parties hold; an imported model may have been trained on it
# where the scores behind a model card came from
TRAINING = "training"
SCORING = "scoring"
IMPORT = "import"
MIN_RECORDS = (
    1_000  # that scores are compared with before a model is registered; a score has few neighbours among fewer
)
NOBODY = "not signed in"  # the actor if nobody is known
PARTS = ("test", JOINT, "validation", TRAINING)  # of a model's records, in the order in which doors offer them
OUTSIDE = "not in training"  # the part of a record that had none
# kinds of measurement that are kept, beside evidence
PERMUTATION = "permutation"
MEANS = "means"
SCORES = "scores"
VALIDATION = "validation"
MONITORING = "monitoring"  # a later sheet against the model's own data
ALTERNATIVES = "alternatives"  # a search for less discriminatory models, kept with the model that it began from


@dataclass(frozen=True)
class ReleaseCheck:
    """What the scores of a model would give away, measured before it was registered (a joint audit in the simulation).

    Attributes
    ----------
    dither : float
        Width on the margin, as the Hosts add it.
    unique : tuple of (int, float)
        Resolution in bits, the model's own first, and the share of people whose score would fit one path only.
    paths : float
        Median of the paths that fit a score, at the model's own resolution.
    people, records : int
        Whose scores were read, and Host records that they were compared with.
    without_dither : float or None
        Share of people whose score would identify their path without it, at the model's own resolution; None if there is none.
    asked_bits : int or None
        Resolution that training was asked for, if too many scores would have named their path and a coarser one was taken.
    most_named : float
        Largest share of such people that was allowed when the model was registered; every Host reads it before it approves.
    """

    dither: float
    unique: tuple[tuple[int, float], ...]
    paths: float
    people: int
    records: int
    without_dither: float | None = None
    asked_bits: int | None = None
    most_named: float = 1.0

    @property
    def measurable(self) -> bool:
        """Return whether there were enough records to compare scores with; otherwise no share says that a model is fine."""
        return self.records >= MIN_RECORDS

    @property
    def named(self) -> float:
        """Share of people whose score identifies their path, at the model's own resolution."""
        return self.unique[0][1]


class Measured(Protocol):
    """What was measured of a model's scores, in a record or in a report."""

    @property
    def named(self) -> float:
        """Share of people whose score identifies their path."""

    @property
    def dither(self) -> float:
        """Width on the margin, as the Hosts add it."""

    @property
    def people(self) -> int:
        """Whose scores were read."""

    @property
    def records(self) -> int:
        """Host records that they were compared with."""


def told_by_scores(release: Measured | None, score_bits: int) -> Remark:
    """Return the sentence of every page, report and shell about what scores tell: the Guest alone, and whoever holds all records.

    Whatever the Guest alone can count includes the paths of these records, so that it names no more than who holds them.
    """
    if release is None:
        return Remark("scores_not_measured")
    if release.records < MIN_RECORDS:
        return Remark("scores_not_measurable", {"records": release.records, "least": MIN_RECORDS})
    values = {
        "named": release.named,
        "people": release.people,
        "records": release.records,
        "bits": score_bits,
        "dither": release.dither,
    }
    return Remark("scores_tell", values)


@dataclass(frozen=True)
class ModelRecord:
    """What the Guest knows about a model beside its partial model.

    Attributes
    ----------
    content_hash : str
        SHA-256 of the Guest's partial model; ``host_hashes`` holds the Hosts' own.
    cipher : {"paillier", "none"}
        How the sums travelled in training.
    parts : dict of str to int
        Joint records for training, validation and test.
    seconds : float
        Of training, wall clock.
    alignment : Alignment or None
        How the joint records were found; None for an imported model.
    task : {"binary", "classes", "number"}
    retrained_from : str
        Id of the model that this one replaces, retrained without some of its features; empty if there is none.
    release : ReleaseCheck or None
        None in records from before this was measured, and if no Host owns a split.
    label_bits : float or None
        Most that a set of training records told to a Host told it about labels (docs/training.md); None in older records, for imported
        models, for numbers, and if no sets are told.
    choice_bits : float
        Bits about labels that the choice of splits may have told a Host that bins its records as it likes (docs/training.md).
    test_from : str
        First period of the test records, where these are the latest ones; empty if they were drawn.
    """

    id: str
    federation: str
    created: str
    algorithm: str
    cipher: str
    key_bits: int
    content_hash: str
    guest: str
    hosts: tuple[str, ...]
    n_trees: int
    n_leaves: int
    depth: int
    score_bits: int
    metrics: Metrics
    parameters: dict[str, object]
    seconds: float
    parts: dict[str, int]
    curve: tuple[TreeProgress, ...]
    host_hashes: dict[str, str]
    positive_rate: float
    exclude: tuple[str, ...]
    alignment: Alignment | None = None
    task: Task = "binary"
    retrained_from: str = ""
    release: ReleaseCheck | None = None
    label_bits: float | None = None
    choice_bits: float = 0.0
    test_from: str = ""

    @property
    def weights(self) -> str:
        """Column of the Guest's file by which its records were weighed in training and are in its figures; empty if they count alike."""
        return str(self.parameters.get("weights", ""))

    @property
    def named_share(self) -> tuple[float, float]:
        """Return the share of scores that fit one path only, and the largest that was allowed; -1 for both if it was not measurable."""
        if self.release is None or not self.release.measurable:
            return -1.0, -1.0
        return self.release.named, self.release.most_named


@dataclass(frozen=True)
class ModelView:
    """What a model is and uses, as pages and reports show it; nothing in it is secret or anyone else's.

    Attributes
    ----------
    model : GuestModel
        Not compared: it never changes, and the record has its hash.
    importance : tuple of FeatureImportance
        Largest gain first.
    """

    record: ModelRecord
    federation: Federation
    model: GuestModel = field(compare=False)
    importance: tuple[FeatureImportance, ...]
    directions: tuple[LearnedDirection, ...]
    compliance: ComplianceReport


Status = Literal["ok", "partial", "refused", "failed"]
STATUSES: tuple[Status, ...] = get_args(Status)
SCORED: tuple[Status, ...] = ("ok", "partial")
EARLIER = "kept_from_earlier_file"  # remark of a row in a file of scores


@dataclass(frozen=True)
class Score:
    """One sample's result; ``margin = base + guest_part + hosts_part`` (see :mod:`backend.explain.contribution`).

    Attributes
    ----------
    margin : float
        Of the positive label (a logit where trees were boosted, a share in a forest), of the most probable class, or the value.
    probability : float
        Of the positive label or the most probable class; NaN for a number.
    decision : {"accept", "refer", "decline", "refuse", ""}
        By the model's policy; "" if it draws no line.
    predictions : tuple of float
        Per output of the model: the probability of the positive label, of each class, or the value.
    predicted : str
        Name of the most probable of several classes.
    status : {"ok", "partial", "refused", "failed"}
        Scored with everything understood; scored, but a Host has no record of the person, or something was not understood (`remarks`
        says what); not scored because the model's policy says so; not scored because the row cannot be read, a budget is spent or a link
        is down (`problems` says why).
    problems : tuple of Remark
        Why it was not scored; empty if it was.
    units : int
        The sum as it was decrypted; several outputs share it.
    remarks : tuple of Remark
        What was not understood, as codes with values.
    band : {"accept", "refer", "decline", ""}
        By the score alone, whatever was unusual.
    points : int or None
        As the policy states them; None if it has none.
    marks : tuple of str
        What was unusual, of :data:`backend.policy.bands.MARKS`.
    policy : int
        Version of the policy that decided; 0 = nobody has set one.
    what_if : {"accept", "decline", ""}
        The decision at another cut-off that was asked about; it is no decision.
    """

    id: str
    status: Status
    problems: tuple[Remark, ...]
    margin: float
    probability: float
    decision: Decision
    predictions: tuple[float, ...]
    predicted: str
    base: float
    guest_part: float
    hosts_part: float
    units: int
    not_held_by: tuple[str, ...]
    remarks: tuple[Remark, ...] = ()
    band: Band = ""
    points: int | None = None
    marks: tuple[str, ...] = ()
    policy: int = NOBODY_SET
    what_if: Literal["accept", "decline", ""] = ""

    @property
    def scored(self) -> bool:
        """Return whether there is a score."""
        return self.status in SCORED

    @property
    def problem(self) -> str:
        """Return why it was not scored, in English; empty if it was."""
        return joined(*(remark.sentence() for remark in self.problems))


def counts_of(scores: Iterable[Score]) -> dict[str, int]:
    """Return status → number of rows, of all statuses."""
    counts: dict[str, int] = dict.fromkeys(STATUSES, 0)
    for score in scores:
        counts[score.status] += 1
    return counts


@dataclass(frozen=True)
class Stage:
    """Seconds that a party spent in a stage, over all samples; ``key`` is reading model, tables and key."""

    name: str
    party: str
    seconds: float


@dataclass(frozen=True)
class ScoreBatch:
    """Everything a scoring gives; `ciphertexts_per_sample` entries for `leaves` leaves.

    Attributes
    ----------
    policy : Policy
        What decided.
    what_if : float or None
        Another cut-off that was asked about.
    decided : str
        When these people were scored, UTC, if the Guest remembered it; empty = just now.
    dither : float
        By how much, at most, the last Host has moved each margin, either way; 0 if it added nothing.
    canaries : int
        Scores that came back with the canary that they were sent with: none of them was tampered with.
    run : str
        Its name in the Guest's journal; empty if nothing was counted.
    days : int
        Where a Host's limit was reached, after so many days at the latest it answers again; 0 if none was.
    recalled : int
        People whose scores the Guest's journal had from an earlier attempt that was broken off: the transcript has no message about them.
    notes : tuple of Remark
        On the whole table: what was ignored, filled in, counted or not understood.
    """

    model_id: str
    cipher: str
    key_bits: int
    policy: Policy
    scores: tuple[Score, ...]
    stages: tuple[Stage, ...]
    transcript: tuple[TranscriptEntry, ...]
    leaves: int
    ciphertexts_per_sample: int
    score_bits: int
    seconds: float
    dither: float = 0.0
    canaries: int = 0
    run: str = ""
    days: int = 0
    recalled: int = 0
    what_if: float | None = None
    decided: str = ""
    notes: tuple[Remark, ...] = ()

    @property
    def cutoff(self) -> float:
        """Return the line at which the policy declines; NaN if there is none."""
        return self.policy.cutoff


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a model.

    Attributes
    ----------
    registered : Metrics
        On all test records, measured when the model was grown.
    encrypted : Metrics or None
        On a random sample of them, scored again under encryption.
    seconds : float
        Of that scoring.
    """

    registered: Metrics
    encrypted: Metrics | None
    seconds: float


def read_record(body: dict[str, Any]) -> ModelRecord:
    """A record as it was stored."""
    from backend.protocols.alignment.outcome import Alignment  # noqa: PLC0415 (what names results alone needs no protocol)
    from backend.protocols.training.parameters import TreeProgress  # noqa: PLC0415

    curve = tuple(TreeProgress(**p) for p in body["curve"])
    if body.get("alignment"):
        alignment = Alignment(**body["alignment"])
    else:
        alignment = None
    tuples = {name: tuple(body[name]) for name in ("hosts", "exclude")}
    release = None
    if body.get("release"):
        unique = tuple((int(bits), float(share)) for bits, share in body["release"]["unique"])
        release = ReleaseCheck(**{**body["release"], "unique": unique})
    parsed = {"metrics": Metrics(**body["metrics"]), "curve": curve, "alignment": alignment, "release": release}
    return ModelRecord(**{**body, **tuples, **parsed})


@dataclass(frozen=True)
class Streamed:
    """What came of a table that was scored group by group into a file.

    Attributes
    ----------
    rows, scored, failed : int
        Of the whole table, an earlier run's among them.
    partial : int
        Scored rows in which something was not understood.
    resumed : int
        Rows that an earlier run had written.
    key_bits : int
        As in :class:`ScoreBatch`.
    dither : float
        The widest of a group.
    seconds : float
        Of this run.
    notes : tuple of Remark
        What was ignored or filled in; each kind once.
    refused : int
        Of the whole table, by the policy.
    policy : Policy
        What decided.
    written : bool
        Whether the file was written: if nobody was scored, one that is there already stays.
    kept : int
        Failed rows that keep their row of the file that was there.
    """

    model_id: str
    cipher: str
    key_bits: int
    rows: int
    scored: int
    failed: int
    resumed: int
    dither: float
    seconds: float
    notes: tuple[Remark, ...]
    written: bool
    partial: int = 0
    refused: int = 0
    policy: Policy = field(default_factory=Policy)
    kept: int = 0


def scores_csv(batch: ScoreBatch) -> bytes:
    """Results as CSV; cells that a spreadsheet would run as a formula are neutralised."""
    classes = any(s.predicted for s in batch.scores)
    what_if = batch.what_if is not None
    return scores_head(classes, what_if) + scores_rows(batch.scores, batch.model_id, classes, what_if)


def score_columns(classes: bool, what_if: bool) -> list[str]:
    """Return the columns of scores in a file; `classes` = the model names one of several, `what_if` = another line was asked about."""
    columns = ["id", "status", "score", "probability", "decision", "band", "points", "policy"]
    if classes:
        columns.append("predicted")
    if what_if:
        columns.append("what_if")
    return [*columns, "base", "guest_part", "hosts_part", "not_held_by", "marks", "problem", "remarks", "model"]


def scores_head(classes: bool, what_if: bool = False) -> bytes:
    """Return the header line of scores as CSV."""
    return csv_text([score_columns(classes, what_if)]).encode()


def scores_rows(scores: Iterable[Score], model_id: str, classes: bool, what_if: bool = False) -> bytes:
    """Return lines of scores as CSV."""
    rows = []
    for s in scores:
        numbers = [s.margin, s.probability, s.base, s.guest_part, s.hosts_part]
        shown = ["" if math.isnan(v) else f"{v:.6f}" for v in numbers]
        answer = [s.decision, s.band, "" if s.points is None else str(s.points), str(s.policy)]
        if classes:
            answer.append(s.predicted)
        if what_if:
            answer.append(s.what_if)
        end = [" ".join(s.not_held_by), " ".join(s.marks), s.problem, remark_codes(s), model_id]
        rows.append([s.id, s.status, *shown[:2], *answer, *shown[2:], *end])
    return csv_text(rows).encode()


def earlier_rows(file: Path, model_id: str, ids: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the rows of a file of scores about some people that a model scored: id → column → cell.

    Only a score of the same model may stand for one that the model did not give now. A file that has no scores has no such rows.
    """
    rows: dict[str, dict[str, str]] = {}
    for row in _rows_of(file):
        scored = row.get("model") == model_id and row.get("status") in SCORED
        if scored and row.get("id", "") in ids:
            rows[row["id"]] = row
    return rows


def _rows_of(file: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a file of scores, CSV or Parquet, its cells as texts."""
    if file.suffix == ".parquet":
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - slow to import

        with suppress(ArrowException, OSError):
            for batch in parquet.ParquetFile(file).iter_batches():
                for row in batch.to_pylist():
                    yield {name: "" if value is None else str(value) for name, value in row.items()}
        return
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text, suppress(csv.Error):
        for row in csv.DictReader(text):
            yield {name: plain_cell(cell or "") for name, cell in row.items() if name is not None}


def kept_row(row: Mapping[str, str], columns: Sequence[str]) -> list[str]:
    """Return the cells of a row that is kept from an earlier file, with the remark that it is."""
    codes = [*row.get("remarks", "").split(), EARLIER]
    cells = {**row, "remarks": " ".join(dict.fromkeys(codes))}
    return [cells.get(column, "") for column in columns]


def with_earlier(new: bytes, earlier: Mapping[str, Mapping[str, str]]) -> tuple[bytes, int]:
    """Return scores as CSV in which failed rows keep their row of an earlier file, and how many these are.

    A budget that is spent would else take scores from a file that has them. A row that the policy refuses is not kept.
    """
    reader = csv.reader(io.StringIO(new.decode(), newline=""))
    columns = next(reader)
    id_at = columns.index("id")
    status_at = columns.index("status")
    lines = [columns]
    kept = 0
    for row in reader:
        line = row
        if row[status_at] == "failed" and plain_cell(row[id_at]) in earlier:
            line = kept_row(earlier[plain_cell(row[id_at])], columns)
            kept += 1
        lines.append([plain_cell(cell) for cell in line])
    return csv_text(lines).encode(), kept


def remark_codes(score: Score) -> str:
    """Return what was not understood in a row, as a cell: ``code_unseen:home not_held``."""
    codes = []
    for remark in score.remarks:
        codes.append(f"{remark.code}:{remark.column}" if remark.column else remark.code)
    return " ".join(codes)
