"""What the dashboard's process holds on the demo: pages, trainings, scores and PDFs in one process that nobody restarts.

A websocket client opens every page and presses the buttons, each as it is first offered. The process alone counts, without those
that draw a PDF or make randomness. It is at rest once nothing is prepared any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psutil

from app.texts import Texts
from bench.sessions import MEMORY, Session, connected, process, until_idle
from bench.setting import fresh_glassleaf, progress, run
from bench.tables import memory as describe
from tests.e2e.serving import served

SAMPLED = 0.01  # seconds between two looks at the process
LOOK = 1.0  # seconds between two looks whether a job has ended
LONGEST = 1800.0  # seconds that a job may take
PRESSED = {
    "training": ("train", "train.go", 3),
    "score": ("score", "score.go", 20),
    "PDF": ("report", "report.file_pdf", 10),
}


async def press(session: Session, page: str, button: str) -> None:
    """Press a button and wait until it can be pressed again."""
    words = Texts("en")(button)
    async with asyncio.timeout(LONGEST):
        await session.open(page)
        await session.open(page, press=words)
        await session.open(page)
        while words not in session.buttons:
            await asyncio.sleep(LOOK)
            await session.open(page)


@asynccontextmanager
async def sampled(server: psutil.Process) -> AsyncIterator[Callable[[], float]]:
    """The most that the process held within, in MB."""
    most = 0.0

    async def look() -> None:
        nonlocal most
        while True:
            most = max(most, server.memory_info().rss / 1e6)
            await asyncio.sleep(SAMPLED)

    looking = asyncio.create_task(look())
    try:
        yield lambda: most
    finally:
        looking.cancel()


async def walk(url: str, server: psutil.Process, quick: bool) -> list[dict[str, Any]]:
    """A row for the pages, and one for each kind of job."""
    rows = []

    async def row(name: str, action: Callable[[], Any], times: int) -> None:
        async with sampled(server) as most:
            for _ in range(times):
                await action()
            await asyncio.to_thread(until_idle, server, 0.0 if quick else LONGEST)
            rest = server.memory_info().rss / 1e6
        progress(f"{name}: {most():.0f} MB at most, {rest:.0f} at rest")
        rows.append({"name": name, "peak_mb": most(), "rest_mb": rest})

    async with connected(url) as session:

        async def pages() -> None:
            await session.open()
            for page in filter(None, tuple(session.pages)):
                await session.open(page)

        await row("every page", pages, 1)
        for name, (page, button, times) in PRESSED.items():
            if quick and name == "training":
                continue
            count = 1 if quick else times
            await row(f"then {count} × {name}", partial(press, session, page, button), count)
    return rows


def measure(quick: bool = False) -> dict[str, Any]:
    """MB of the process at its highest and at rest, action by action."""
    with fresh_glassleaf() as glassleaf:
        progress("preparing the demo")
        glassleaf.training.prepare_demo()
        glassleaf.close()
        with served(glassleaf.home, glassleaf.home / "dashboard.log") as url:
            rows = asyncio.run(walk(url, process(), quick))
    peak = max(row["peak_mb"] for row in rows)
    return {"rows": rows, "peak_mb": peak, "rest_mb": rows[-1]["rest_mb"], "aim_mb": MEMORY}


if __name__ == "__main__":
    run(__doc__, measure, describe)
