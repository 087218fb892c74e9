"""All scoring protocols on the same samples, side by side: rounds, bytes, time over a link, what each party learns.

Run by the Guest in a simulation. Whether all protocols give the same scores is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from backend.crypto.interface import KeySide
from backend.crypto.workers import Workers
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.protocols.guest import GuestParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.guest import SERIAL
from backend.protocols.transport.channel import Session
from backend.protocols.transport.simulated_latency import Exchange, Link, simulate
from backend.protocols.transport.transcript import TranscriptEntry
from backend.research.baselines.collaborative import Collaborative
from backend.research.baselines.disclosure import Learned, by_score
from backend.research.baselines.guest import TOGETHER, GuestPaths, Inference, InferenceOutcome
from backend.research.baselines.multi_interactive import MultiInteractive
from backend.research.baselines.one_round import OneRound
from backend.trees.ensemble import GuestModel

PROTOCOLS = (
    "fed-eini",
    "multi-interactive-node",
    "multi-interactive-tree",
    "multi-interactive-level",
    "one-round-streaming",
    "one-round-batched",
    "collaborative",
)


class FedEini:
    """Fed-EINI under a key, behind the interface of the others."""

    name = "fed-eini"

    def __init__(
        self, guest: GuestParty, compiled: CompiledGuest, paths: GuestPaths, key: KeySide, workers: Workers = SERIAL
    ) -> None:
        self._guest = guest
        self._compiled = compiled
        self._paths = paths
        self._key = key
        self._workers = workers

    def run(self, model_id: str, table: PartyTable, conversation: Session) -> InferenceOutcome:
        """See :class:`backend.research.baselines.guest.Inference`."""
        scored = self._guest.score(model_id, self._compiled, table, self._key, conversation, workers=self._workers)
        return InferenceOutcome(scored, partial(self._learned, table))

    def _learned(self, table: PartyTable, transcript: Sequence[TranscriptEntry]) -> tuple[Learned, ...]:
        tells = self._paths.tells(table.columns, len(table.ids))
        return by_score(self._guest.name, self._paths.hosts, tells, self._key.scheme == "none", transcript)


@dataclass(frozen=True)
class ProtocolResult:
    """One protocol.

    Attributes
    ----------
    learned : tuple of Learned
        The Guest, then the Hosts.
    equal : bool
        Whether every score is that of the first row.
    """

    protocol: str
    exchange: Exchange
    learned: tuple[Learned, ...]
    equal: bool
    transcript: tuple[TranscriptEntry, ...] = field(repr=False)


@dataclass(frozen=True)
class Comparison:
    """The rows, and under which key and link."""

    samples: int
    cipher: str
    key_bits: int
    link: Link
    rows: tuple[ProtocolResult, ...]

    def over(self, link: Link) -> Comparison:
        """The same runs over another link; nothing is scored again."""
        rows = tuple(replace(row, exchange=simulate(row.transcript, link)) for row in self.rows)
        return replace(self, link=link, rows=rows)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure, no transcript."""
        return {
            "samples": self.samples,
            "cipher": self.cipher,
            "key_bits": self.key_bits,
            "latency_seconds": self.link.latency,
            "bandwidth_bytes_per_second": self.link.bandwidth,
            "protocols": [_row_dict(row) for row in self.rows],
        }


def protocols(
    guest: GuestParty,
    model: GuestModel,
    compiled: CompiledGuest,
    key: KeySide,
    *,
    workers: Workers = SERIAL,
    together: int = TOGETHER,
) -> dict[str, Inference]:
    """All scoring protocols for a model, by the names of :data:`PROTOCOLS`; `together` is the largest batch of the others, in samples."""
    paths = GuestPaths(model)
    every: list[Inference] = [
        FedEini(guest, compiled, paths, key, workers),
        MultiInteractive(paths, "node"),
        MultiInteractive(paths, "tree", together),
        MultiInteractive(paths, "level", together),
        OneRound(paths, streaming=True),
        OneRound(paths, streaming=False, together=together),
        Collaborative(paths, together),
    ]
    return {protocol.name: protocol for protocol in every}


def compare(
    every: dict[str, Inference],
    model_id: str,
    table: PartyTable,
    key: KeySide,
    open_session: Callable[[], Session],
    *,
    link: Link | None = None,
    names: Collection[str] = PROTOCOLS,
    on_protocol: Callable[[str], None] = lambda name: None,
) -> Comparison:
    """Score the rows of `table` by each protocol.

    Each first scores one sample that is not counted, so that work done once per model or key is in no figure.

    Parameters
    ----------
    open_session : callable
        Begins a conversation of the Guest with the Hosts.
    link : Link, optional
        Default: the forest paper's.
    names : collection of str
        Which protocols; the first one's scores are the reference.
    on_protocol : callable
        Called with each protocol's name before it runs.

    Raises
    ------
    ParameterError
        A name is unknown, there is no sample, or no Host owns a split, so that no message is needed.
    """
    unknown = [name for name in names if name not in every]
    if unknown or not names:
        raise ParameterError("unknown_protocol", asked=tuple(unknown), known=tuple(every))
    if not table.ids:
        raise ParameterError("no_sample_to_compare")
    link = link or Link()
    rows: list[ProtocolResult] = []
    units: list[int] = []
    for name in names:
        on_protocol(name)
        _run(every[name], model_id, table.take(np.array([0], dtype=np.intp)), open_session)
        outcome, transcript = _run(every[name], model_id, table, open_session)
        if not transcript:
            raise ParameterError("guest_scores_alone")
        units = units or outcome.scored.units
        rows.append(
            ProtocolResult(
                name, simulate(transcript, link), outcome.learned(transcript), outcome.scored.units == units, transcript
            )
        )
    return Comparison(len(table.ids), key.scheme, key.bits, link, tuple(rows))


def _run(
    protocol: Inference, model_id: str, table: PartyTable, open_session: Callable[[], Session]
) -> tuple[InferenceOutcome, tuple[TranscriptEntry, ...]]:
    conversation = open_session()
    try:
        outcome = protocol.run(model_id, table, conversation)
    finally:
        transcript = conversation.close()
    return outcome, transcript


def _row_dict(row: ProtocolResult) -> dict[str, Any]:
    e = row.exchange
    return {
        "protocol": row.protocol,
        "rounds": e.rounds,
        "hops": e.hops,
        "messages": e.messages,
        "bytes": e.bytes,
        "compute_seconds": e.compute,
        "network_seconds": e.network,
        "total_seconds": e.total,
        "work_seconds": e.work,
        "equal": row.equal,
        "learned": [asdict(learned) | {"bits": learned.bits} for learned in row.learned],
    }
