"""Protocols compared for a user, on a model of theirs or a synthetic one: all in one race, then two of them by the size of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from backend.crypto.workers import Workers
from backend.errors import NotAvailable, ParameterError
from backend.jobs import Job
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.simulated_latency import Link
from backend.remark import Remark
from backend.research.baselines.batch_sizes import BATCHES, PAIR, leads
from backend.research.baselines.comparison import PROTOCOLS
from backend.research.baselines.race import (
    NODE_BY_NODE,
    NODE_BY_NODE_SAMPLES,
    Compared,
    ComparisonSetup,
    run,
    usual_protocols,
)
from backend.research.baselines.synthetic_model import SHAPE_LIMITS, SYNTHETIC, Shape, SyntheticFederation, make_up
from backend.research.textbook import encrypt_seconds
from backend.results import ModelRecord
from backend.services import audit
from backend.services.audit import Auditor, Note, recorded
from backend.services.measurement import KeyedRequest
from backend.services.registry import Registry
from backend.services.workspace import Workspace

__all__ = [
    "BATCHES",
    "NODE_BY_NODE",
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
        setup = ComparisonSetup(record.id, model, compiled, runtime, key, warm_up, guest_rows)
        return run(setup, request.samples, _names(request), request.batches, self._workers, job)

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
            setup = ComparisonSetup(
                SYNTHETIC, synthetic.model, compiled, parties, key, parties.warm_up, guest_rows, shape
            )
            return run(setup, request.samples, _names(request), request.batches, self._workers, job)


def check(request: ComparisonRequest, available: int) -> None:
    """Raise ParameterError if no sample was asked for, or more than the `available` there are."""
    if request.samples < 1:
        raise ParameterError("no_samples_requested", samples=request.samples)
    if request.samples > available:
        raise ParameterError("too_many_samples_requested", available=available, samples=request.samples)
