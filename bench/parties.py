"""Scoring as the service does it: Guest and Hosts that meet in messages only, in threads of this process or in two processes."""

from __future__ import annotations

import multiprocessing
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from backend.crypto.interface import KeySide
from backend.crypto.registry import open_offer
from backend.crypto.workers import Workers
from backend.protocols.guest import GuestParty, Scored
from backend.protocols.host import HostParty
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.transport.channel import Network, Session
from backend.trees.serialization import dump_host
from bench.cases import Case
from bench.chain import GuestSide, HostSide, Stopwatch

MODEL = "m-bench"
KEY_FLOOR = 512  # bits; tests measure with small keys
READY = b"ready"
SECONDS = struct.Struct("d")


class _SingleModelStore:
    """A Host's store that holds one partial model."""

    def __init__(self, text: str) -> None:
        self._text = text

    def artefact(self, model_id: str) -> str:
        """Its only partial model."""
        return self._text

    def put_artefact(self, model_id: str, text: str, content_hash: str) -> None:
        """Nothing is trained here."""


class ServedParties:
    """A Guest and served Hosts on one network.

    Parameters
    ----------
    pool : int
        Obfuscators that each Host keeps ready.
    tables : Path
        Where Hosts keep tables.
    """

    def __init__(self, case: Case, pool: int, tables: Path) -> None:
        self._case, self._network = case, Network()
        federation = case.federation()
        self._hosts = SimulatedHosts(
            self._network,
            [
                HostParty(
                    name,
                    case.tables[name],
                    federation.party(name).features,
                    _SingleModelStore(dump_host(partial_model)),
                    simulated=True,
                    key_floor=KEY_FLOOR,
                    pool=pool,
                    tables=tables,
                )
                for name, partial_model in case.partial_models.items()
            ],
        )
        self._guest = GuestParty(federation, case.tables[case.model.guest])
        self._sessions = 0

    def score(self, key: KeySide, n: int, workers: Workers) -> Scored:
        """Score `n` records in one session."""
        self._sessions += 1
        session = Session(self._network, self._guest.name, f"c{self._sessions}", self._case.model.hosts)
        try:
            return self._guest.score(MODEL, self._case.guest, self._case.records(n), key, session, workers=workers)
        finally:
            session.close()

    def wait_for_pools(self) -> None:
        """Until every Host that has met a key has its pool full."""
        while any(ready < wanted for ready, wanted in self._hosts.pool_levels().values()):
            time.sleep(0.05)

    def close(self) -> None:
        """Stop the Hosts."""
        self._hosts.stop()


class HostProcess:
    """The only Host of a case in a process of its own, on the last core."""

    def __init__(self, case: Case, key: KeySide) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, case, key.scheme, key.offer()), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv_bytes()
        self._case, self._guest = case, GuestSide(case, key)

    def score(self, n: int) -> dict[str, float]:
        """Score `n` records; seconds until the last score, and the processor's seconds of both parties."""
        records = self._case.records(n)
        began, own, theirs = time.perf_counter(), time.process_time(), 0.0
        units: list[int] = []
        for batch in self._guest.batches(records):
            for blob in self._guest.ask(batch, units, Stopwatch()):
                self._pipe.send_bytes(blob)
            self._pipe.recv_bytes()  # which ids are held
            self._guest.read(self._pipe.recv_bytes(), len(batch.ids), units, Stopwatch())
            theirs += SECONDS.unpack(self._pipe.recv_bytes())[0]
        return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - own + theirs}

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()


@contextmanager
def host_process(case: Case, key: KeySide) -> Iterator[HostProcess]:
    """A :class:`HostProcess` that is closed afterwards."""
    other = HostProcess(case, key)
    try:
        yield other
    finally:
        other.close()


def _serve(pipe: Connection, case: Case, scheme: str, offer: bytes) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    host = HostSide(case, 0, open_offer(scheme, offer, KEY_FLOOR, 0, None, None)[0])
    pipe.send_bytes(READY)
    with suppress(EOFError):
        while True:
            began = time.process_time()
            for blob in host.answer(_received(pipe), Stopwatch()):
                pipe.send_bytes(blob)
            pipe.send_bytes(SECONDS.pack(time.process_time() - began))


def _received(pipe: Connection) -> Iterator[Any]:
    while True:
        yield pipe.recv_bytes()
