"""What the service is asked for and what it answers: requests, records, scores. Nothing in here is a Host's."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.data.label import Task
from backend.data.table import PartyTable, SampleSheet
from backend.explain.contribution import Expectation
from backend.protocols.alignment.exchange import Alignment
from backend.protocols.baselines.batch_sizes import Point, points
from backend.protocols.baselines.comparison import PROTOCOLS, Comparison
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.guest import Scored
from backend.protocols.simulation.synthetic_model import Shape
from backend.protocols.training.algorithms import Parameters
from backend.protocols.training.parameters import TreeProgress
from backend.protocols.transport.channel import TranscriptEntry
from backend.protocols.transport.simulated_latency import Link
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import Metrics


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
        Share of people whose score would identify their path without it, at the model's own resolution; None where there is none.
    asked_bits : int or None
        Resolution that training was asked for, where too many scores would have named their path and a coarser one was taken.
    """

    dither: float
    unique: tuple[tuple[int, float], ...]
    paths: float
    people: int
    records: int
    without_dither: float | None = None
    asked_bits: int | None = None

    @property
    def named(self) -> float:
        """Share of people whose score identifies their path, at the model's own resolution."""
        return self.unique[0][1]


@dataclass(frozen=True)
class ModelRecord:
    """What the Guest knows about a model beside its half.

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
        Id of the model that this one replaces, retrained without some of its features; empty where there is none.
    release : ReleaseCheck or None
        None in records from before this was measured, and where no Host owns a split.
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


class Compiled:
    """What is worked out of the Guest's partial model once, for all scorings."""

    def __init__(self, model: GuestModel) -> None:
        self.guest, self.expectation, self.outputs = CompiledGuest(model), Expectation(model), model.outputs


@dataclass(frozen=True)
class TrainingRequest:
    """A training to be started; `hosts` None means all of the federation's, in its order.

    A model of which a larger share of scores than `most_named` would name their paths is refused (1 = none is; None = the usual bound,
    :func:`backend.services.leakage.usual_bound`). With `coarser` it is trained once more instead, with the finest
    scale of scores that does.
    """

    federation: str
    parameters: Parameters
    hosts: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    most_named: float | None = None
    coarser: bool = False


@dataclass(frozen=True)
class ScoringRequest:
    """Samples to be scored; decisions are ``decline`` at or above `cutoff` (probability of the positive label).

    With `canaries` every score carries a secret number that tells whether a Host has tampered with it; Paillier alone has room for one.
    """

    model_id: str
    samples: SampleSheet
    cutoff: float = 0.5
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    canaries: bool = True


@dataclass(frozen=True)
class Score:
    """One sample's result; ``margin = base + guest_part + hosts_part`` (see :mod:`backend.explain.contribution`).

    Attributes
    ----------
    margin : float
        Of the positive label (a logit where trees were boosted, a share in a forest), of the most probable class, or the value.
    probability : float
        Of the positive label or the most probable class; NaN for a number.
    decision : {"accept", "decline", ""}
        Two classes only.
    predictions : tuple of float
        Per output of the model: the probability of the positive label, of each class, or the value.
    predicted : str
        Name of the most probable of several classes.
    units : int
        The sum as it was decrypted; several outputs share it.
    """

    id: str
    status: Literal["ok", "failed"]
    problem: str
    margin: float
    probability: float
    decision: Literal["accept", "decline", ""]
    predictions: tuple[float, ...]
    predicted: str
    base: float
    guest_part: float
    hosts_part: float
    units: int
    not_held_by: tuple[str, ...]


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
    dither : float
        By how much, at most, the last Host has moved each margin, either way; 0 where it added nothing.
    canaries : int
        Scores that came back with the canary that they were sent with: none of them was tampered with.
    """

    model_id: str
    cipher: str
    key_bits: int
    cutoff: float
    scores: tuple[Score, ...]
    stages: tuple[Stage, ...]
    transcript: tuple[TranscriptEntry, ...]
    leaves: int
    ciphertexts_per_sample: int
    score_bits: int
    seconds: float
    dither: float = 0.0
    canaries: int = 0


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


RANKS = "ranks"  # how an OpBoost training's data travelled: as noisy ranks
NODE_BY_NODE = "multi-interactive-node"
NODE_BY_NODE_SAMPLES = (
    20  # from more samples on it is left out unless asked for: a round trip for every node of every sample
)


def usual_protocols(samples: int) -> tuple[str, ...]:
    """Protocols that are compared on so many samples where nobody asks for all."""
    return tuple(p for p in PROTOCOLS if p != NODE_BY_NODE or samples <= NODE_BY_NODE_SAMPLES)


@dataclass(frozen=True)
class ComparisonRequest:
    """Protocols to be run on random test records of the Guest; `names` None means :func:`usual_protocols`.

    Attributes
    ----------
    shape : Shape or None
        A synthetic model to run them on instead, under the key of the model's federation.
    batches : tuple of int
        Numbers of samples, rising, on which Fed-EINI and its baseline are run too (see :mod:`backend.protocols.baselines.batch_sizes`).
    """

    model_id: str
    samples: int = 1
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    names: tuple[str, ...] | None = None
    seed: int = 7
    shape: Shape | None = None
    batches: tuple[int, ...] = ()


@dataclass(frozen=True)
class Compared:
    """A comparison of protocols on one model.

    Attributes
    ----------
    pools : {"warm", "cold", "none"}
        Whether all obfuscators of the run were made before it; "none" where the cipher takes none.
    runs : Comparison
        The protocols, each with its exchange and what each party learned.
    shape : Shape or None
        Of a synthetic model.
    batches : tuple of Compared
        Fed-EINI and its baseline on other numbers of samples.
    left_out : tuple of int
        Numbers of samples that would have taken too long.
    """

    model_id: str
    pools: Literal["warm", "cold", "none"]
    runs: Comparison
    shape: Shape | None = None
    batches: tuple[Compared, ...] = ()
    left_out: tuple[int, ...] = ()

    @property
    def points(self) -> tuple[Point, ...]:
        """Fed-EINI against its baseline by the number of samples, the race itself included."""
        return points((self.runs, *(batch.runs for batch in self.batches)))

    def over(self, link: Link) -> Compared:
        """The same runs over another link; nothing is scored again."""
        return replace(self, runs=self.runs.over(link), batches=tuple(batch.over(link) for batch in self.batches))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure of the race, no transcript."""
        shape = None if self.shape is None else asdict(self.shape)
        return {"model": self.model_id, "shape": shape, "pools": self.pools, **self.runs.as_dict()}


def read_record(body: dict[str, Any]) -> ModelRecord:
    """A record as it was stored."""
    curve = tuple(TreeProgress(**p) for p in body["curve"])
    alignment = Alignment(**body["alignment"]) if body.get("alignment") else None
    tuples = {name: tuple(body[name]) for name in ("hosts", "exclude")}
    release = None
    if body.get("release"):
        unique = tuple((int(bits), float(share)) for bits, share in body["release"]["unique"])
        release = ReleaseCheck(**{**body["release"], "unique": unique})
    told = {"metrics": Metrics(**body["metrics"]), "curve": curve, "alignment": alignment, "release": release}
    return ModelRecord(**{**body, **tuples, **told})


def stages(scored: Scored) -> tuple[Stage, ...]:
    """Seconds by stage and party, in the order of the protocol."""
    order = ("encode", "encrypt", "mask", "decrypt")
    timed = sorted(scored.timings.seconds.items(), key=lambda item: order.index(item[0][0]))
    return tuple(Stage(name, party, seconds) for (name, party), seconds in timed)


def sample_scores(
    sheet: SampleSheet, good: Any, compiled: Compiled, own: PartyTable, scored: Scored, cutoff: float
) -> tuple[Score, ...]:
    """One result per row of the sheet, in its order; rows with a problem or a Host's refusal are failed, the others `good`."""
    outputs = compiled.outputs
    answered = [
        0 if k in scored.refused else units for k, units in enumerate(scored.units)
    ]  # a refused row is no number of the model
    margins = compiled.guest.margins(answered)
    predictions = outputs.predict(margins)
    expected = compiled.expectation.given(own.columns, len(own.ids))
    best = predictions.argmax(axis=1) if outputs.task == "classes" else np.zeros(len(margins), dtype=np.intp)
    out: list[Score] = []
    place = {int(row): k for k, row in enumerate(good)}
    for i, sample_id in enumerate(sheet.ids):
        k = place.get(i)
        problem = sheet.problems[i] if k is None else scored.refused.get(k, "")
        if k is None or problem:
            nan = float("nan")
            out.append(Score(sample_id, "failed", problem, nan, nan, "", (), "", nan, nan, nan, 0, ()))
            continue
        at = best[k]
        chosen, base = float(predictions[k, at]), float(compiled.expectation.base[at])
        out.append(
            Score(
                id=sample_id,
                status="ok",
                problem="",
                margin=float(margins[k, at]),
                probability=float("nan") if outputs.task == "number" else chosen,
                decision="" if outputs.task != "binary" else "decline" if chosen >= cutoff else "accept",
                predictions=tuple(predictions[k].tolist()),
                predicted=outputs.classes[at] if outputs.classes else "",
                base=base,
                guest_part=float(expected[k, at]) - base,
                hosts_part=float(margins[k, at] - expected[k, at]),
                units=scored.units[k],
                not_held_by=tuple(h for h, held in scored.held.items() if not held[k]),
            )
        )
    return tuple(out)


def scores_csv(batch: ScoreBatch) -> bytes:
    """Results as CSV; cells that a spreadsheet would run as a formula are neutralised."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    classes = any(s.predicted for s in batch.scores)
    head = ["id", "status", "score", "probability", "decision", *(["predicted"] if classes else [])]
    writer.writerow([*head, "base", "guest_part", "hosts_part", "not_held_by", "problem"])
    for s in batch.scores:
        numbers = [s.margin, s.probability, s.base, s.guest_part, s.hosts_part]
        shown = ["" if math.isnan(v) else f"{v:.6f}" for v in numbers]
        said = [s.decision, *([_cell(s.predicted)] if classes else [])]
        end = [_cell(" ".join(s.not_held_by)), _cell(s.problem)]
        writer.writerow([_cell(s.id), s.status, *shown[:2], *said, *shown[2:], *end])
    return out.getvalue().encode()


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
