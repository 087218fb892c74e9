"""A forest served while one of its workers is lost (Yao et al. §4.1): every batch is answered, by the trees that are there.

Asks in the clear, in one round (Alg. 5), so that it is for comparisons in the simulation only.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from backend.data.table import PartyTable
from backend.errors import Cancelled, ParameterError
from backend.jobs import Job
from backend.protocols.transport.channel import Session
from backend.research.baselines.forest_service import ForestAnswer, ForestService, candidate_leaves
from backend.research.baselines.guest import GuestPaths
from backend.trees.ensemble import GuestModel

BATCH_INTERVAL = 0.1  # seconds, so that one sees a worker come back
MAX_BATCHES = 200
MAX_WORKERS = 8
START_SECONDS = 120.0  # for all workers, on a busy machine


@dataclass(frozen=True)
class ServingRequest:
    """The same `samples` test records, asked about `batches` times; before batch `lost_at` (from 1) one of `workers` is killed."""

    model_id: str
    samples: int = 50
    batches: int = 40
    workers: int = 3
    lost_at: int = 6
    seed: int = 7


@dataclass(frozen=True)
class ServedBatch:
    """One batch.

    Attributes
    ----------
    number : int
        From 1.
    seconds : float
        From the candidate leaves to the predictions.
    missing : tuple of int
        Trees that are left out, from 0.
    shift : float
        Largest difference of a prediction from the same person's with all trees, on the scale of the predictions.
    """

    number: int
    seconds: float
    missing: tuple[int, ...]
    shift: float


@dataclass(frozen=True)
class ServingTrial:
    """The answers to the batches.

    Attributes
    ----------
    batches : tuple of ServedBatch
        All that were asked so far.
    """

    request: ServingRequest
    trees: int
    samples: int
    batches: tuple[ServedBatch, ...] = ()

    @property
    def without(self) -> tuple[ServedBatch, ...]:
        """Those that were answered without some trees."""
        return tuple(batch for batch in self.batches if batch.missing)

    @property
    def whole_again(self) -> int | None:
        """Number of the first batch after the loss that all trees answered; None if there was none."""
        if self.without:
            last = self.without[-1].number
        else:
            last = self.request.lost_at
        return next((batch.number for batch in self.batches if batch.number > last), None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "whole_again": self.whole_again}


def check(request: ServingRequest, available: int) -> None:
    """Raise ParameterError if the request cannot be served with the test records that there are."""
    ranges = {
        "samples": (request.samples, 1, available),
        "batches": (request.batches, 2, MAX_BATCHES),
        "workers": (request.workers, 2, MAX_WORKERS),
        "lost-at": (request.lost_at, 2, request.batches),
    }
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise ParameterError("option_out_of_range", option=name, value=value, low=low, high=high)


def serve(
    model: GuestModel,
    request: ServingRequest,
    table: PartyTable,
    open_session: Callable[[tuple[str, ...]], Session],
    job: Job[ServingTrial],
) -> ServingTrial:
    """Start the workers, ask batch after batch, and kill a worker on the way; ``job.result`` holds the batches so far.

    Parameters
    ----------
    table : PartyTable
        The Guest's records of the samples.
    open_session : callable
        Hosts → a conversation with them.

    Raises
    ------
    ModelError
        The model is no forest.
    Cancelled
        The user stopped the job.
    """
    paths = GuestPaths(model)
    job.result = trial = ServingTrial(request, len(model.trees), len(table.ids))
    with ForestService(model, request.workers) as service:
        job.at("workers", model.guest, 0)
        service.wait_ready(START_SECONDS)
        first: ForestAnswer | None = None
        for number in range(1, request.batches + 1):
            if job.cancelled():
                raise Cancelled("trial_stopped")
            if number == request.lost_at:
                os.kill(service.processes[0], signal.SIGKILL)
            job.at("batch", model.guest, number)
            began = time.perf_counter()
            answer = _ask(paths, service, request.model_id, table, open_session)
            seconds = time.perf_counter() - began
            first = first or answer
            shift = float(np.abs(answer.margins - first.margins).max())
            batch = ServedBatch(number, seconds, answer.missing, shift)
            job.result = trial = ServingTrial(request, trial.trees, trial.samples, (*trial.batches, batch))
            time.sleep(BATCH_INTERVAL)
    job.at("done", model.guest, request.batches)
    return trial


def _ask(
    paths: GuestPaths,
    service: ForestService,
    model_id: str,
    table: PartyTable,
    open_session: Callable[[tuple[str, ...]], Session],
) -> ForestAnswer:
    session = open_session(paths.hosts)
    try:
        return service.answer(candidate_leaves(paths, model_id, table, session))
    finally:
        session.close()
