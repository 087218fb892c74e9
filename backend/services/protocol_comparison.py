"""Protocols compared for a user, on a model of theirs or a synthetic one: all in one race, then two of them by the size of the batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from backend.crypto.interface import KeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.workers import Workers
from backend.data.table import PartyTable
from backend.errors import NotAvailable, ParameterError
from backend.jobs import Job, work
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.simulated_latency import Link
from backend.remark import Remark
from backend.research.baselines.batch_sizes import BATCHES, PAIR, BatchTimes, expected_seconds, leads, points
from backend.research.baselines.comparison import PROTOCOLS, Comparison, compare, protocols
from backend.research.baselines.synthetic_model import SHAPE_LIMITS, SYNTHETIC, Shape, SyntheticFederation, make_up
from backend.research.textbook import encrypt_seconds
from backend.results import ModelRecord
from backend.services import audit
from backend.services.audit import Auditor, Note, recorded
from backend.services.measurement import KeyedRequest
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.trees.ensemble import GuestModel

__all__ = [
    "BATCHES",
    "NODE_BY_NODE_SAMPLES",
    "PAIR",
    "PROTOCOLS",
    "SHAPE_LIMITS",
    "SYNTHETIC",
    "Compared",
    "ComparisonRequest",
    "Link",
    "ProtocolComparison",
    "Shape",
    "leads",
    "usual_protocols",
]

POOLS_WAIT = 15.0  # seconds that a run waits for obfuscators at most
MAX_BATCH_SECONDS = 30.0  # seconds of compute; a batch that is expected to take longer is left out
NODE_BY_NODE = "multi-interactive-node"
# from more samples on it is left out unless asked for: a round trip for every node of every sample
NODE_BY_NODE_SAMPLES = 20


def usual_protocols(samples: int) -> tuple[str, ...]:
    """Return the protocols that are compared on a number of samples by default."""
    return tuple(p for p in PROTOCOLS if p != NODE_BY_NODE or samples <= NODE_BY_NODE_SAMPLES)


def _names(request: ComparisonRequest) -> tuple[str, ...]:
    if request.names is not None:
        return request.names
    return usual_protocols(request.samples)


@dataclass(frozen=True)
class ComparisonRequest(KeyedRequest):
    """Protocols to be run on random test records of the Guest; `names` None means :func:`usual_protocols`.

    Attributes
    ----------
    shape : Shape or None
        A synthetic model to run them on instead, under the key of the model's federation.
    batches : tuple of int
        Numbers of samples, rising, on which Fed-EINI and its baseline are run too (see :mod:`backend.research.baselines.batch_sizes`).
    """

    samples: int = 1
    names: tuple[str, ...] | None = None
    shape: Shape | None = None
    batches: tuple[int, ...] = ()


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


class ProtocolComparison:
    """Runs protocols side by side."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor, workers: Workers) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._workers = workers

    def start(self, request: ComparisonRequest) -> Job[Compared]:
        """Score some test records by every protocol in the background, in the simulation; see :class:`ComparisonRequest`."""
        return Job[Compared](lambda job: self.compare(request, job), len(_names(request))).start()

    def textbook_seconds(self, model_id: str, bits: int) -> float:
        """Return the seconds that plain `phe` would need to encrypt one sample: leaves times a constant measured on this machine."""
        record = self._models.get(model_id)
        key = self._workspace.runtime(record.federation).keys.pair("paillier", bits)
        return record.n_leaves * encrypt_seconds(key.offer())

    @recorded("compare")
    def compare(self, note: Note, request: ComparisonRequest, job: Job[Compared]) -> Compared:
        """Do the same within a job that is under way, and return the result."""
        record = self._models.get(request.model_id)
        details = {
            "protocols": len(_names(request)),
            "rows": request.samples,
            "cipher": request.cipher,
            "seed": request.seed,
        }
        note.about(record, **details, synthetic=request.shape is not None)
        runtime = self._workspace.runtime(record.federation)
        if request.shape is None:
            compared = self._on_model(record, runtime, request, job)
        else:
            compared = self._on_synthetic(request.shape, runtime, request, job)
        sent = audit.traffic(entry for row in compared.runs.rows for entry in row.transcript)
        note.body |= {"key_bits": compared.runs.key_bits, "traffic": sent}
        return compared

    def _on_model(
        self, record: ModelRecord, runtime: GuestRuntime, request: ComparisonRequest, job: Job[Compared]
    ) -> Compared:
        if not runtime.simulated:
            raise NotAvailable(record.hosts[0], Remark("its_other_protocols"))
        available = len(self._models.test_ids(record))
        check(request, available)
        guest_rows = runtime.table.take(self._models.test_rows(record, available, request.seed))
        model = self._models.partial_model(record)
        compiled = self._models.compiled(record).guest
        job.at("key", runtime.guest.name, 0)
        key = runtime.keys.scoring(request.cipher, request.key_bits, compiled)
        warm_up = partial(self._workspace.warm_up, record.federation, key.bits)
        # asked in a conversation of its own, so that it is in no protocol's messages
        runtime.open_session(model.hosts, job.cancelled, purpose="comparisons").close()
        return run(
            ComparisonSetup(record.id, model, compiled, runtime, key, warm_up, guest_rows), request, self._workers, job
        )

    def _on_synthetic(
        self, shape: Shape, runtime: GuestRuntime, request: ComparisonRequest, job: Job[Compared]
    ) -> Compared:
        people = max(request.samples, *request.batches, 0)
        check(request, people)
        synthetic = make_up(shape, people, request.seed)
        compiled = CompiledGuest(synthetic.model)
        job.at("key", runtime.guest.name, 0)
        key = runtime.keys.scoring(request.cipher, request.key_bits, compiled)
        with SyntheticFederation(synthetic, key, pools=runtime.pools()[0].target > 0) as parties:
            guest_rows = synthetic.tables[synthetic.model.guest]
            setup = ComparisonSetup(SYNTHETIC, synthetic.model, compiled, parties, key, parties.warm_up, guest_rows)
            return run(setup, request, self._workers, job)


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
    """

    model_id: str
    model: GuestModel
    compiled: CompiledGuest
    runtime: GuestRuntime | SyntheticFederation
    key: KeySide
    warm_up: Callable[[], None]
    table: PartyTable


def check(request: ComparisonRequest, available: int) -> None:
    """Raise ParameterError if no sample was asked for, or more than the `available` there are."""
    if request.samples < 1:
        raise ParameterError("no_samples_requested", samples=request.samples)
    if request.samples > available:
        raise ParameterError("too_many_samples_requested", available=available, samples=request.samples)


def run(setup: ComparisonSetup, request: ComparisonRequest, workers: Workers, job: Job[Compared]) -> Compared:
    """Run every protocol on the same samples, then those of ``PAIR`` on the numbers of samples in ``request.batches``.

    The race is in ``job.result`` as soon as it has ended, and stays there if the job is stopped later.
    """
    guest = setup.runtime.guest
    every = protocols(guest, setup.model, setup.compiled, setup.key, workers=workers)

    def score(samples: int, names: tuple[str, ...], on_protocol: Callable[[str], None]) -> Compared:
        pools = _filled(setup, samples, job)
        runs = compare(
            every,
            setup.model_id,
            setup.table.take(np.arange(samples)),
            setup.key,
            lambda: setup.runtime.open_session(setup.model.hosts, job.cancelled, counted=False),
            names=names,
            on_protocol=on_protocol,
        )
        return Compared(setup.model_id, pools, runs, request.shape)

    names = _names(request)
    sizes = [n for n in request.batches if n != request.samples and n <= len(setup.table.ids)]
    job.total = len(names) + len(sizes)
    with ExitStack() as part:

        def begin(number: int, stage: str) -> None:
            part.close()
            job.at(stage, guest.name, number)
            part.enter_context(work.part(number / job.total, (number + 1) / job.total))

        job.result = compared = score(request.samples, names, lambda name: begin(names.index(name), name))
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
