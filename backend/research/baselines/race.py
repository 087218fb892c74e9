"""Protocols run side by side on the same people, and two of them by the size of the batch: what the comparison of a user is made of."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from backend.crypto.interface import KeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.workers import Workers
from backend.data.table import PartyTable
from backend.jobs import Job, work
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.simulated_latency import Link
from backend.research.baselines.batch_sizes import PAIR, BatchTimes, expected_seconds, points
from backend.research.baselines.comparison import PROTOCOLS, Comparison, compare, protocols
from backend.research.baselines.synthetic_model import Shape, SyntheticFederation
from backend.trees.ensemble import GuestModel

POOLS_WAIT = 15.0  # seconds that a run waits for obfuscators at most
MAX_BATCH_SECONDS = 30.0  # seconds of compute; a batch that is expected to take longer is left out
NODE_BY_NODE = "multi-interactive-node"
# from more samples on it is left out unless asked for: a round trip for every node of every sample
NODE_BY_NODE_SAMPLES = 20


def usual_protocols(samples: int) -> tuple[str, ...]:
    """Return the protocols that are compared on a number of samples by default."""
    return tuple(p for p in PROTOCOLS if p != NODE_BY_NODE or samples <= NODE_BY_NODE_SAMPLES)


@dataclass(frozen=True)
class Compared:
    """A comparison of protocols on one model.

    Attributes
    ----------
    pools : {"warm", "cold", "none"}
        Whether all obfuscators of the run were made before it; "none" if the cipher takes none.
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
    def points(self) -> tuple[BatchTimes, ...]:
        """Fed-EINI against its baseline by the number of samples, the race itself included."""
        return points((self.runs, *(batch.runs for batch in self.batches)))

    def over(self, link: Link) -> Compared:
        """Return the same runs over another link; nothing is scored again."""
        return replace(self, runs=self.runs.over(link), batches=tuple(batch.over(link) for batch in self.batches))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every figure of the race, no transcript."""
        shape = None if self.shape is None else asdict(self.shape)
        return {"model": self.model_id, "shape": shape, "pools": self.pools, **self.runs.as_dict()}


@dataclass(frozen=True)
class ComparisonSetup:
    """The model, the people and the parties of a comparison.

    Attributes
    ----------
    compiled : CompiledGuest
        Of the same model.
    key : KeySide
        The Guest's.
    warm_up : callable
        Has the parties start their pools.
    table : PartyTable
        The Guest's records of the samples there are, in the order in which they are taken.
    shape : Shape or None
        Of a synthetic model.
    """

    model_id: str
    model: GuestModel
    compiled: CompiledGuest
    runtime: GuestRuntime | SyntheticFederation
    key: KeySide
    warm_up: Callable[[], None]
    table: PartyTable
    shape: Shape | None = None


def run(
    setup: ComparisonSetup,
    samples: int,
    names: tuple[str, ...],
    batches: tuple[int, ...],
    workers: Workers,
    job: Job[Compared],
) -> Compared:
    """Run protocols on the same samples, then those of ``PAIR`` on the numbers of samples in `batches`.

    The race is in ``job.result`` as soon as it has ended, and stays there if the job is stopped later.
    """
    guest = setup.runtime.guest
    every = protocols(guest, setup.model, setup.compiled, setup.key, workers=workers)

    def score(people: int, chosen: tuple[str, ...], on_protocol: Callable[[str], None]) -> Compared:
        pools = _filled(setup, people, job)
        runs = compare(
            every,
            setup.model_id,
            setup.table.take(np.arange(people)),
            setup.key,
            lambda: setup.runtime.open_session(setup.model.hosts, job.cancelled, counted=False),
            names=chosen,
            on_protocol=on_protocol,
        )
        return Compared(setup.model_id, pools, runs, setup.shape)

    sizes = [n for n in batches if n != samples and n <= len(setup.table.ids)]
    job.total = len(names) + len(sizes)
    with ExitStack() as part:

        def begin(number: int, stage: str) -> None:
            part.close()
            job.at(stage, guest.name, number)
            part.enter_context(work.part(number / job.total, (number + 1) / job.total))

        job.result = compared = score(samples, names, lambda name: begin(names.index(name), name))
        for number, size in enumerate(sizes, len(names)):
            begin(number, "batches")
            if expected_seconds((compared.runs, *(batch.runs for batch in compared.batches)), size) > MAX_BATCH_SECONDS:
                compared = replace(compared, left_out=(*compared.left_out, size))
            else:
                compared = replace(compared, batches=(*compared.batches, score(size, PAIR, lambda name: None)))
            job.result = compared
    job.at("done", guest.name, job.total)
    return compared


def _filled(setup: ComparisonSetup, samples: int, job: Job[Compared]) -> Literal["warm", "cold", "none"]:
    """Give the parties' pools some seconds to hold what a run takes; what became of it."""
    key = setup.key
    runtime = setup.runtime
    if not isinstance(key, PaillierKeySide):
        return "none"
    n_obfuscators = (samples + 1) * max(1, setup.compiled.folding.n_entries)  # one sample is not counted
    if n_obfuscators > min(level.target for level in runtime.pools()):
        return "cold"
    setup.warm_up()
    job.at("pools", runtime.guest.name)
    until = time.perf_counter() + POOLS_WAIT
    with work.waiting():
        while time.perf_counter() < until and not job.cancelled():
            ready = [key.obfuscators.ready, *(p.ready for p in runtime.pools() if p.party in setup.model.hosts)]
            if min(ready) >= n_obfuscators:
                return "warm"
            time.sleep(0.1)
    return "cold"
