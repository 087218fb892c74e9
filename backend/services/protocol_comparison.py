"""Protocols compared for a user, on a model of theirs or a synthetic one: all in one race, then two of them by the size of the batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from backend.crypto.interface import KeySide
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.workers import Workers
from backend.data.table import PartyTable
from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.baselines.batch_sizes import PAIR, expected_seconds
from backend.protocols.baselines.comparison import compare, protocols
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.simulation.synthetic_model import SyntheticFederation
from backend.results import Compared, ComparisonRequest, usual_protocols
from backend.trees.ensemble import GuestModel

POOLS_WAIT = 15.0  # seconds that a run waits for obfuscators at most
LONGEST = 30.0  # seconds of compute; a batch that is expected to take longer is left out


@dataclass(frozen=True)
class ComparisonSetup:
    """What protocols are compared on, and with whom.

    Attributes
    ----------
    model_id : str
    model : GuestModel
    compiled : CompiledGuest
        Of the same model.
    runtime : FederationRuntime or SyntheticFederation
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
    runtime: FederationRuntime | SyntheticFederation
    key: KeySide
    warm_up: Callable[[], None]
    table: PartyTable


def check(request: ComparisonRequest, most: int) -> None:
    """Raise ParameterError where no sample was asked for, or more than the `most` there are."""
    if request.samples < 1:
        raise ParameterError(f"Protocols were to be compared on {request.samples} test records; ask for 1 or more.")
    if request.samples > most:
        raise ParameterError(f"{request.samples} test records were asked for; the model has {most:,}.")


def run(setup: ComparisonSetup, request: ComparisonRequest, workers: Workers, job: Job[Compared]) -> Compared:
    """Every protocol on the same samples, then, for ``request.batches``, those of ``PAIR`` on more and fewer.

    The race is in ``job.result`` as soon as it is over, and stays there if the job is stopped later.
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

    names = request.names if request.names is not None else usual_protocols(request.samples)
    sizes = [n for n in request.batches if n != request.samples and n <= len(setup.table.ids)]
    job.total = len(names) + len(sizes)
    job.result = done = score(request.samples, names, lambda name: job.at(name, guest.name, names.index(name)))
    for place, size in enumerate(sizes, len(names)):
        job.at("batches", guest.name, place)
        if expected_seconds((done.runs, *(batch.runs for batch in done.batches)), size) > LONGEST:
            done = replace(done, left_out=(*done.left_out, size))
        else:
            done = replace(done, batches=(*done.batches, score(size, PAIR, lambda name: None)))
        job.result = done
    job.at("done", guest.name, job.total)
    return done


def _filled(setup: ComparisonSetup, samples: int, job: Job[Compared]) -> Literal["warm", "cold", "none"]:
    """Give the parties' pools some seconds to hold what a run takes; what became of it."""
    key, runtime = setup.key, setup.runtime
    if not isinstance(key, PaillierKeySide):
        return "none"
    wanted = (samples + 1) * max(1, setup.compiled.folding.n_entries)  # one sample is not counted
    if wanted > min(level.target for level in runtime.pools()):
        return "cold"
    setup.warm_up()
    job.at("pools", runtime.guest.name)
    until = time.perf_counter() + POOLS_WAIT
    while time.perf_counter() < until and not job.cancelled():
        ready = [key.obfuscators.ready, *(p.ready for p in runtime.pools() if p.party in setup.model.hosts)]
        if min(ready) >= wanted:
            return "warm"
        time.sleep(0.1)
    return "cold"
