"""Single scores a second over HTTP, and how long each waits: a load generator for `glassleaf serve`.

Without `--url` it starts a server of its own over the demo's three parties (`--credit-card`: the credit-card model, where its data is),
with simulated Hosts in the server's process, so that both parties' work is on this machine. With `--url` and `--token` it asks a server
that is there. Callers work in a closed loop: each sends one person, waits for the score, and sends the next. Every person is asked about
once, with a key of their own; the first answers, which pay for keys and tables, are left out. A server that it starts is asked by half
as many callers, too, and then, as the peer, on plaintext, each time about other people.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import psutil

from backend.data.demo import write_demo
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from bench.aims import ONLINE, ONLINE_MS
from bench.cases import DEPTH, TREES, case_of
from bench.floors import rlwe_batch
from bench.setting import ABSENT, add_credit_card, fresh_folder, machine, progress, train
from bench.stream import worked

ROOT = Path(__file__).resolve().parents[1]
# at once; who waits for an answer before asking again, waits at 150 scores/s no less than callers/150 s
CALLERS = 16
FEW = 8
WARM = 20  # answers that are left out
TIMEOUT = 60  # seconds in which a server has to answer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="a server that is there, e.g. http://127.0.0.1:8700")
    parser.add_argument("--token", default="", help="its token")
    parser.add_argument("--ids", default="", help="file with an id a line, of people whom that server's Guest holds")
    parser.add_argument("--scores", type=int, default=600, help="people to score")
    parser.add_argument("--callers", type=int, default=CALLERS, help="callers at once")
    parser.add_argument("--cipher", default="", help="of the server that is started")
    parser.add_argument("--credit-card", action="store_true", help="the credit-card model instead of the demo's")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    found = {"machine": machine(), **measure(given)}
    print(json.dumps(found, indent=1) if given.json else describe(found))


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """One load on one server."""
    if given.url:
        ids = Path(given.ids).read_text(encoding="utf-8").split()[: given.scores]
        return asyncio.run(load(given.url, given.token, ids, given.callers))
    with fresh_folder() as home:
        made = prepared(home, given.credit_card)
        if made is None:
            return {"skipped": ABSENT}
        ids, floor = made
        third = min(given.scores, len(ids) // 3)
        found: dict[str, Any] = {"floor": floor}
        for at, (name, cipher, callers) in enumerate(
            (("found", given.cipher, given.callers), ("few", given.cipher, FEW), ("plain", "none", given.callers))
        ):
            progress(f"online: {name}")
            with server(home, cipher) as (url, process):
                found[name] = asyncio.run(load(url, "", ids[at * third : (at + 1) * third], callers, process))
        return {**found.pop("found"), **found}


def prepared(home: Path, credit_card: bool) -> tuple[list[str], dict[str, Any]] | None:
    """A home with a model in use, the Guest's ids, and the floor of a batch of all callers; None if the data is absent."""
    with Glassleaf(home, pools=False) as glassleaf:
        progress("online: the model")
        if credit_card:
            name = add_credit_card(glassleaf)
            if name is None:
                return None
        else:
            write_demo(home / "demo", rows=2_000)
            name = glassleaf.federations.add(home / "demo").name
        record = train(glassleaf, name, SecureBoostParameters(trees=TREES, depth=DEPTH, cipher="none"))
        glassleaf.lifecycle.open_demo(name)
        floor = rlwe_batch(case_of(glassleaf, record, name), CALLERS)
        return list(glassleaf.models.part_of(record)), floor


@contextmanager
def server(home: Path, cipher: str) -> Iterator[tuple[str, psutil.Process]]:
    """A server over a home; its address and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "backend", "serve", "--port", str(port), *(["--cipher", cipher] if cipher else [])]
    environment = {**os.environ, "GLASSLEAF_HOME": str(home)}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as running:  # noqa: S603 (our own command)
        try:
            asyncio.run(answers(f"http://127.0.0.1:{port}"))
            yield f"http://127.0.0.1:{port}", psutil.Process(running.pid)
        finally:
            running.terminate()


async def answers(url: str) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + TIMEOUT
    async with aiohttp.ClientSession(url) as client:
        while time.monotonic() < until:
            with suppress(aiohttp.ClientConnectionError):
                async with client.get("/v1/models"):
                    return
            await asyncio.sleep(0.1)
    raise SystemExit(f"{url} does not answer.")


async def load(
    url: str, token: str, ids: list[str], callers: int, process: psutil.Process | None = None
) -> dict[str, Any]:
    """Ask about everybody once; milliseconds of each answer, and answers a second."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(TIMEOUT)
    limit = aiohttp.TCPConnector(limit=callers)
    async with aiohttp.ClientSession(url, headers=headers, timeout=timeout, connector=limit) as client:
        async with client.get("/v1/models", raise_for_status=True) as listed:
            address = f"/v1/models/{(await listed.json())['models'][0]['id']}/scores"
        ask = Asking(client, address)
        for one in ids[:WARM]:
            await ask(one)
        people = iter(ids[WARM:])
        ask.waits = []
        before = worked(process) if process is not None else {}
        began = time.perf_counter()
        await asyncio.gather(*(caller(ask, people) for _ in range(callers)))
        seconds = time.perf_counter() - began
        after = worked(process) if process is not None else {}
    processor = sum(after.values()) - sum(before.values())
    p50, p95, p99 = np.percentile(ask.waits, [50, 95, 99]).tolist()
    return {
        "scores": len(ask.waits),
        "callers": callers,
        "cipher": ask.cipher,
        "seconds": seconds,
        "scores_per_second": len(ask.waits) / seconds,
        "processor_ms_per_score": 1000 * processor / len(ask.waits) if after else None,
        "ms": {"p50": p50, "p95": p95, "p99": p99},
        "codes": ask.codes,
    }


class Asking:
    """Asks about one person at a time and notes how long the answer took."""

    def __init__(self, client: aiohttp.ClientSession, address: str) -> None:
        self._client = client
        self._address = address
        self.waits: list[float] = []
        self.codes: dict[int, int] = {}
        self.cipher = ""

    async def __call__(self, one: str) -> None:
        """One score."""
        began = time.perf_counter()
        key = {"Idempotency-Key": secrets.token_hex(16)}
        async with self._client.post(self._address, json={"people": [{"id": one}]}, headers=key) as answer:
            found = await answer.json(content_type=None)
        self.waits.append(1000 * (time.perf_counter() - began))
        self.codes[answer.status] = self.codes.get(answer.status, 0) + 1
        self.cipher = found.get("cipher", self.cipher)


async def caller(ask: Asking, people: Iterator[str]) -> None:
    """One program: the next person once the last one is answered."""
    for one in people:
        await ask(one)


def describe(found: dict[str, Any]) -> str:
    """The figures in words."""
    if "skipped" in found:
        return f"Skipped: {found['skipped']}"
    about = found["machine"]
    ms = found["ms"]
    processor = found["processor_ms_per_score"]
    busy = f", {processor:.1f} ms of a core a score" if processor else ""
    few = found.get("few")
    fewer = (
        f"; {few['callers']} callers: {few['scores_per_second']:.0f} scores/s, p95 {few['ms']['p95']:.0f} ms"
        if few
        else ""
    )
    return (
        f"{found['scores']} single scores under {found['cipher']} from {found['callers']} callers in {found['seconds']:.1f} s on "
        f"{about['cores']} cores, load before {about['load_before']}: {found['scores_per_second']:.0f} scores/s (aim "
        f"{ONLINE}), p50 {ms['p50']:.0f} ms, p95 {ms['p95']:.0f} ms (aim {ONLINE_MS}), p99 {ms['p99']:.0f} ms{busy}; "
        f"codes {found['codes']}{fewer}"
    )


if __name__ == "__main__":
    main()
