"""What the service is asked for and what it answers: requests, records, scores. Nothing in here is a Host's."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import Any, Literal

from backend.assurance.contribution import Expectation
from backend.crypto.engines import Cipher
from backend.crypto.paillier import KEY_BITS
from backend.data.table import PartyTable, SampleSheet
from backend.protocols.alignment.exchange import Alignment
from backend.protocols.channel import TranscriptEntry
from backend.protocols.comparison import PROTOCOLS, Comparison
from backend.protocols.guest import Scored
from backend.protocols.inference.fed_eini import CompiledGuest, to_logits
from backend.protocols.network import Link
from backend.protocols.training.parameters import SecureBoostParameters, TreeProgress
from backend.trees.ensemble import GuestModel
from backend.trees.growth import sigmoid
from backend.trees.metrics import Metrics


@dataclass(frozen=True)
class ModelRecord:
    """What the Guest knows about a model beside its half.

    Attributes
    ----------
    content_hash : str
        SHA-256 of the Guest's half; ``host_hashes`` holds the Hosts' own.
    cipher : {"paillier", "none"}
        How the sums travelled in training.
    parts : dict of str to int
        Joint records for training, validation and test.
    seconds : float
        Of training, wall clock.
    alignment : Alignment or None
        How the joint records were found; None for an imported model.
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


class Compiled:
    """What is worked out of the Guest's half once, for all scorings."""

    def __init__(self, model: GuestModel) -> None:
        self.guest, self.expectation = CompiledGuest(model), Expectation(model)


@dataclass(frozen=True)
class TrainingRequest:
    """A training to be started; `hosts` None means all of the federation's, in its order."""

    federation: str
    parameters: SecureBoostParameters
    hosts: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoringRequest:
    """Samples to be scored; decisions are ``decline`` at or above `cutoff` (probability of the positive label)."""

    model_id: str
    samples: SampleSheet
    cutoff: float = 0.5
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS


@dataclass(frozen=True)
class Score:
    """One sample's result; ``logit = base + guest_part + hosts_part`` (see :mod:`backend.assurance.contribution`)."""

    id: str
    status: Literal["ok", "failed"]
    problem: str
    logit: float
    probability: float
    decision: Literal["accept", "decline", ""]
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
    """Everything a scoring gives; `ciphertexts_per_sample` entries for `leaves` leaves."""

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


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a model.

    Attributes
    ----------
    registered : Metrics
        On all test records, measured when the model was grown.
    encrypted : Metrics or None
        On a random sample of them, scored anew under encryption.
    seconds : float
        Of that scoring.
    """

    registered: Metrics
    encrypted: Metrics | None
    seconds: float


NODE_BY_NODE = "multi-interactive-node"
NODE_BY_NODE_SAMPLES = (
    20  # from more samples on it is left out unless asked for: a round trip for every node of every sample
)


def usual_protocols(samples: int) -> tuple[str, ...]:
    """Protocols that are compared on so many samples where nobody asks for all."""
    return tuple(p for p in PROTOCOLS if p != NODE_BY_NODE or samples <= NODE_BY_NODE_SAMPLES)


@dataclass(frozen=True)
class ComparisonRequest:
    """Protocols to be run on random test records of the Guest; `names` None means :func:`usual_protocols`."""

    model_id: str
    samples: int = 1
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS
    names: tuple[str, ...] | None = None
    seed: int = 7


@dataclass(frozen=True)
class Compared:
    """A comparison of protocols on one model.

    Attributes
    ----------
    pools : {"warm", "cold", "none"}
        Whether all obfuscators of the run were made before it; "none" where the cipher takes none.
    runs : Comparison
        The protocols, each with its exchange and what each party learned.
    """

    model_id: str
    pools: Literal["warm", "cold", "none"]
    runs: Comparison

    def over(self, link: Link) -> Compared:
        """The same runs over another link; nothing is scored again."""
        return replace(self, runs=self.runs.over(link))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure, no transcript."""
        return {"model": self.model_id, "pools": self.pools, **self.runs.as_dict()}


def read_record(body: dict[str, Any]) -> ModelRecord:
    """A record as it was stored."""
    curve = tuple(TreeProgress(**p) for p in body["curve"])
    alignment = Alignment(**body["alignment"]) if body.get("alignment") else None
    tuples = {name: tuple(body[name]) for name in ("hosts", "exclude")}
    return ModelRecord(
        **{**body, **tuples, "metrics": Metrics(**body["metrics"]), "curve": curve, "alignment": alignment}
    )


def stages(scored: Scored) -> tuple[Stage, ...]:
    """Seconds by stage and party, in the order of the protocol."""
    order = ("encode", "encrypt", "mask", "decrypt")
    timed = sorted(scored.timings.seconds.items(), key=lambda item: order.index(item[0][0]))
    return tuple(Stage(name, party, seconds) for (name, party), seconds in timed)


def sample_scores(
    sheet: SampleSheet, good: Any, compiled: Compiled, own: PartyTable, scored: Scored, cutoff: float
) -> tuple[Score, ...]:
    """One result per row of the sheet, in its order; rows with a problem are failed, the others `good`."""
    logits = to_logits(scored.units, compiled.guest.score_bits)
    probabilities = sigmoid(logits)
    base = compiled.expectation.base
    expected = compiled.expectation.given(own.columns, len(own.ids))
    out: list[Score] = []
    place = {int(row): k for k, row in enumerate(good)}
    for i, sample_id in enumerate(sheet.ids):
        k = place.get(i)
        if k is None:
            nan = float("nan")
            out.append(Score(sample_id, "failed", sheet.problems[i], nan, nan, "", nan, nan, nan, 0, ()))
            continue
        out.append(
            Score(
                id=sample_id,
                status="ok",
                problem="",
                logit=float(logits[k]),
                probability=float(probabilities[k]),
                decision="decline" if probabilities[k] >= cutoff else "accept",
                base=base,
                guest_part=float(expected[k]) - base,
                hosts_part=float(logits[k] - expected[k]),
                units=scored.units[k],
                not_held_by=tuple(h for h, held in scored.held.items() if not held[k]),
            )
        )
    return tuple(out)


def scores_csv(batch: ScoreBatch) -> bytes:
    """Results as CSV; cells that a spreadsheet would run as a formula are neutralised."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "id",
            "status",
            "score",
            "probability",
            "decision",
            "base",
            "guest_part",
            "hosts_part",
            "not_held_by",
            "problem",
        ]
    )
    for s in batch.scores:
        numbers = [s.logit, s.probability, s.base, s.guest_part, s.hosts_part]
        shown = [f"{v:.6f}" if s.status == "ok" else "" for v in numbers]
        writer.writerow(
            [
                _cell(s.id),
                s.status,
                *shown[:2],
                s.decision,
                *shown[2:],
                _cell(" ".join(s.not_held_by)),
                _cell(s.problem),
            ]
        )
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
