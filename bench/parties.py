"""Scoring as the service does it: Guest and Hosts that meet in messages only, in threads of this process or in two processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from backend.crypto.interface import KeySide
from backend.crypto.paillier.bin_products import BinProducts
from backend.crypto.registry import open_offer
from backend.crypto.workers import Workers
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.scoring.guest import Scored
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.transport.channel import Session
from backend.protocols.transport.network import Network
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host
from bench.cases import Case
from bench.chain import GuestSide, HostSide, Stopwatch
from bench.timing import repeated, seconds_of

MODEL = "m-bench"
SERIAL = Workers()
KEY_FLOOR = 512  # bits; tests measure with small keys


class ServedParties:
    """A Guest and served Hosts on one network.

    Parameters
    ----------
    pool : int
        Obfuscators that each Host keeps ready.
    tables : Path
        Where Hosts keep tables.
    workers : Workers
        Who does the Hosts' long work.
    """

    def __init__(self, case: Case, pool: int, tables: Path, workers: Workers = SERIAL) -> None:
        self._case = case
        self._network = Network()
        federation = case.federation()
        options: dict[str, Any] = {"simulated": True, "key_floor": KEY_FLOOR, "pool": pool, "tables": tables}
        options["products"] = BinProducts(workers)
        hosts = []
        for name, partial_model in case.partial_models.items():
            store = memory_store({MODEL: dump_host(partial_model)})
            features = federation.party(name).features
            hosts.append(HostParty(name, case.tables[name], features, store, **options))
        self._hosts = SimulatedHosts(self._network, hosts)
        self._guest = GuestParty(federation, lambda: case.tables[case.model.guest])
        self._sessions = 0

    def score(self, key: KeySide, n: int, workers: Workers) -> Scored:
        """Score `n` records in one session."""
        self._sessions += 1
        session = Session(self._network.end(self._guest.name), f"c{self._sessions}", self._case.model.hosts)
        try:
            return self._guest.score(MODEL, self._case.guest, self._case.records(n), key, session, workers=workers)
        finally:
            session.close()

    def seconds(self, key: KeySide, n: int, workers: Workers, repeats: int) -> list[float]:
        """Of scoring `n` records, once Hosts and workers have met the key and every pool is full."""
        self.score(key, n, workers)
        while any(ready < wanted for ready, wanted in (host.pool_level() for host in self._hosts.hosts.values())):
            time.sleep(0.05)
        return repeated(partial(seconds_of, self.score, key, n, workers), repeats)

    def close(self) -> None:
        """Stop the Hosts."""
        self._hosts.stop()


class HostProcess:
    """The only Host of a case in a process of its own, on the last core; a context manager."""

    def __init__(self, case: Case, key: KeySide) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, case, key.scheme, key.offer()), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()
        self._case = case
        self._guest = GuestSide(case, key)

    def score(self, n: int) -> dict[str, float]:
        """Score `n` records; seconds until the last score, and the processor's seconds of both parties."""
        began = time.perf_counter()
        own = time.process_time()
        theirs = 0.0
        units: list[int] = []
        for batch in self._guest.batches(self._case.records(n)):
            for blob in self._guest.ask(batch, units, Stopwatch()):
                self._pipe.send_bytes(blob)
            self._pipe.recv_bytes()  # which ids are held
            self._guest.read(self._pipe.recv_bytes(), len(batch.ids), units, Stopwatch())
            theirs += self._pipe.recv()
        return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - own + theirs}

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, case: Case, scheme: str, offer: bytes) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    host = HostSide(case, 0, open_offer(scheme, offer, KEY_FLOOR, 0, None, None)[0])
    pipe.send("ready")
    with suppress(EOFError):
        while True:
            began = time.process_time()
            for blob in host.answer(iter(pipe.recv_bytes, None), Stopwatch()):
                pipe.send_bytes(blob)
            pipe.send(time.process_time() - began)
