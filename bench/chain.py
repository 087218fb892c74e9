"""Guest and Hosts of Fed-EINI one after the other in one process, with a stopwatch at every stage and a count of what crosses.

What is computed and sent is what :mod:`backend.protocols.guest` and :mod:`backend.protocols.host` compute and send; there are no
threads and no mailboxes, so that the seconds of one party are not those of another.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, cast

import numpy as np

from backend.crypto.interface import KeySide, PublicSide
from backend.crypto.pool import Pool
from backend.data.table import PartyTable
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, MoreVectors
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import chunks, to_bitmap
from bench.cases import Case

Stage = tuple[str, str]  # (party, stage)
# as long as the service's own names
SESSION = "c1"
MODEL = "m0123456789"


class Stopwatch:
    """Seconds by (party, stage); a span inside another counts for the inner one alone."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds: dict[Stage, float] = defaultdict(float)
        self._inside: list[float] = []

    @contextmanager
    def span(self, party: str, stage: str) -> Iterator[None]:
        """Count what is done within."""
        began = self._clock()
        self._inside.append(0.0)
        try:
            yield
        finally:
            elapsed = self._clock() - began
            self.seconds[party, stage] += elapsed - self._inside.pop()
            if self._inside:
                self._inside[-1] += elapsed

    def around(self, party: str, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, counted whenever it is called."""
        return self.span(party, stage)(function)


@dataclass
class Run:
    """What one scoring took.

    Attributes
    ----------
    units : list of int
        ``(n,)`` scores.
    seconds : dict of (party, stage) to float
        Stages: encode, encrypt, decrypt at the Guest; decide, fold, refresh at a Host; serialise at both.
    bytes : dict of (sender, receiver) to int
    rounds : int
        Batches, each of which waits for the scores of the one before.
    kept : int
        Numbers of all records that the first Host's columns do not rule out.
    """

    units: list[int] = field(default_factory=list)
    seconds: dict[Stage, float] = field(default_factory=dict)
    bytes: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    rounds: int = 0
    kept: int = 0

    def of(self, party: str) -> float:
        """Seconds of one party."""
        return sum(s for (p, _), s in self.seconds.items() if p == party)

    @property
    def total(self) -> float:
        """Seconds of all parties, one after the other."""
        return sum(self.seconds.values())


def median_seconds(runs: Sequence[Run], guest: str) -> dict[str, float]:
    """Of all parties, of the Guest, and of the Hosts."""
    return {
        "seconds": median(run.total for run in runs),
        "guest_seconds": median(run.of(guest) for run in runs),
        "host_seconds": median(run.total - run.of(guest) for run in runs),
    }


class HostSide:
    """One Host of the chain."""

    def __init__(self, case: Case, index: int, side: PublicSide) -> None:
        self.name = case.chain[index]
        self._side = side
        self.kept = 0
        self._table = case.tables[self.name]
        self._compiled = case.hosts[index]
        self._plan = case.plans[index]

    def answer(self, blobs: Iterator[bytes], clock: Stopwatch) -> Iterator[bytes]:
        """Messages for the next party, from those of the previous one; the first reports to the Guest which ids are held."""
        pool = getattr(self._side, "obfuscators", None) or getattr(self._side, "floods", None)
        if pool is not None:
            pool.take = clock.around(self.name, "refresh", partial(Pool.take, pool))
        request = cast(DecisionVectors, self._read(blobs, clock))
        with clock.span(self.name, "decide"):
            rows = np.fromiter((self._table.row_of.get(i, -1) for i in request.ids), np.intp, len(request.ids))
            held = rows >= 0
            keep = self._compiled.decide(self._table.take(np.where(held, rows, 0)).columns, held)
        self.kept += int(keep.sum())
        with clock.span(self.name, "serialise"):
            note = encode(HeldRecords(SESSION, to_bitmap(held)))
        yield note
        with clock.span(self.name, "fold"):
            fold = self._side.start_fold(keep, self._plan)
            fold.add(request.vectors)
        for _ in range(request.pieces - 1):
            more = cast(MoreVectors, self._read(blobs, clock))
            with clock.span(self.name, "fold"):
                fold.add(more.vectors)
        with clock.span(self.name, "refresh"):
            pieces = list(fold.finish())
        for i, piece in enumerate(pieces):
            out: Message = MoreVectors(SESSION, piece)
            if self._plan.last:
                out = EncryptedScores(SESSION, piece)
            elif i == 0:
                out = DecisionVectors(SESSION, MODEL, request.ids, self._plan.n_out, len(pieces), piece)
            with clock.span(self.name, "serialise"):
                blob = encode(out)
            yield blob

    def _read(self, blobs: Iterator[bytes], clock: Stopwatch) -> Message:
        blob = next(blobs)
        with clock.span(self.name, "serialise"):
            return decode(blob)


class GuestSide:
    """The Guest."""

    def __init__(self, case: Case, key: KeySide) -> None:
        self.name = case.model.guest
        self._compiled = case.guest
        self._key = key

    def batches(self, records: PartyTable) -> list[PartyTable]:
        """Records that travel together."""
        rows = self._key.rows_per_message(max(1, self._compiled.folding.n_entries))
        return [records.take(np.arange(r.start, r.stop)) for r in chunks(len(records.ids), rows)]

    def ask(self, batch: PartyTable, units: list[int], clock: Stopwatch) -> Iterator[bytes]:
        """Messages for the first Host; appends the constants of the scores to `units`."""
        n = len(batch.ids)
        m = self._compiled.folding.n_entries
        with clock.span(self.name, "encode"):
            constant, entries = self._compiled.encode(batch.columns, n)
            units.extend(constant)
            pieces = self._key.pieces(n, m)
        for i, piece in enumerate(pieces):
            with clock.span(self.name, "encrypt"):
                vectors = self._key.encrypt(entries[:, piece.start : piece.stop])
            with clock.span(self.name, "serialise"):
                first = DecisionVectors(SESSION, MODEL, batch.ids, m, len(pieces), vectors)
                blob = encode(first if i == 0 else MoreVectors(SESSION, vectors))
            yield blob

    def read(self, blob: bytes, n: int, units: list[int], clock: Stopwatch) -> None:
        """Add the decrypted sums to the last `n` of `units`."""
        with clock.span(self.name, "serialise"):
            scores = cast(EncryptedScores, decode(blob)).scores
        with clock.span(self.name, "decrypt"):
            for i, value in enumerate(self._key.decrypt(scores, n), len(units) - n):
                units[i] += value


def run_chain(
    case: Case, key: KeySide, sides: Sequence[PublicSide], n: int, timer: Callable[[], float] = time.perf_counter
) -> Run:
    """Score `n` records, party by party."""
    clock = Stopwatch(timer)
    run = Run()
    guest = GuestSide(case, key)
    hosts = [HostSide(case, i, side) for i, side in enumerate(sides)]
    names = [guest.name, *(h.name for h in hosts), guest.name]

    def counted(link: int, blobs: Iterator[bytes]) -> Iterator[bytes]:
        for blob in blobs:
            run.bytes[names[link], names[link + 1]] += len(blob)
            yield blob

    for batch in guest.batches(case.records(n)):
        flow = counted(0, guest.ask(batch, run.units, clock))
        for link, host in enumerate(hosts, 1):
            answers = host.answer(flow, clock)
            run.bytes[host.name, guest.name] += len(next(answers))
            flow = counted(link, answers)
        for blob in flow:
            guest.read(blob, len(batch.ids), run.units, clock)
        run.rounds += 1
    run.seconds = dict(clock.seconds)
    run.kept = sum(host.kept for host in hosts[:1])
    return run
