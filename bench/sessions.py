"""How the dashboard holds up when many people use it at once: a websocket client per session, as a browser's, without the drawing.

All sessions open the first page in the same moment; then each clicks through the other pages in an order of its own,
with a pause between two clicks. A page counts from the click to the message that says that its script has ended. The
client asks for no redraws by itself (a browser does while a job runs). The parties' randomness is ready before.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Any

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from bench.setting import fresh_glassleaf, progress, run
from bench.tables import sessions as describe
from tests.e2e.serving import served

SESSIONS = 25
PAUSE = (4.0, 8.0)  # seconds between an answer and the next click
FIRST, OTHER = "first page, all at once", "any other page"
AIMS = {FIRST: 5.0, OTHER: 2.0}  # seconds, 95th percentile
MEMORY = 500  # MB of the process
LONGEST_PREPARATION = 180.0  # seconds
IDLE = 10.0  # percent of a core


class Session:
    """One browser's conversation with the server."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.pages: dict[str, str] = {}  # url path → hash of the page's script

    async def open(self, page: str = "", query: str = "") -> float:
        """Ask for a page, with the query of its address; seconds until all of it was sent."""
        asked = BackMsg()
        asked.rerun_script.query_string = query
        asked.rerun_script.page_script_hash = self.pages.get(page, "")
        asked.rerun_script.context_info.locale = "en-US"
        began = time.perf_counter()
        await self._socket.send(asked.SerializeToString())
        failed = ""
        while True:
            message = ForwardMsg.FromString(await self._socket.recv(decode=False))
            kind = message.WhichOneof("type")
            if kind == "navigation":
                self.pages = {found.url_pathname: found.page_script_hash for found in message.navigation.app_pages}
            elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "exception":
                failed = message.delta.new_element.exception.message
            elif kind == "script_finished":
                if failed:
                    raise RuntimeError(f"the page {page!r} failed: {failed}")
                if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    return time.perf_counter() - began


def measure(quick: bool = False) -> dict[str, Any]:
    """Seconds a page, and what the server's process holds in the end; the demo was prepared and opened once before."""
    count, pause = (3, (0.0, 0.1)) if quick else (SESSIONS, PAUSE)
    with fresh_glassleaf() as glassleaf:
        progress("preparing the demo")
        glassleaf.training.prepare_demo()
        glassleaf.close()
        with served(glassleaf.home, glassleaf.home / "dashboard.log") as url:
            progress("one session before, which is not counted")
            address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
            asyncio.run(_together(address, 1, (0.0, 0.0)))
            server = next(c for c in psutil.Process().children() if "streamlit" in c.cmdline())
            progress("until the parties have prepared their randomness")
            _until_idle(server, 0.0 if quick else LONGEST_PREPARATION)
            progress(f"{count} sessions")
            first, other = asyncio.run(_together(address, count, pause))
            memory = server.memory_info().rss / 1e6
    rows = [_row(FIRST, first), _row(OTHER, other)]
    return {"sessions": count, "pause": pause, "rows": rows, "memory_mb": memory, "memory_aim_mb": MEMORY}


def _until_idle(server: psutil.Process, longest: float) -> None:
    until = time.monotonic() + longest
    while time.monotonic() < until and server.cpu_percent(3.0) > IDLE:
        pass


async def _together(address: str, count: int, pause: tuple[float, float]) -> tuple[list[float], list[float]]:
    walks = await asyncio.gather(*(_walk(address, random.Random(i), pause) for i in range(count)))
    return [walk[0] for walk in walks], [seconds for walk in walks for seconds in walk[1:]]


async def _walk(address: str, chance: random.Random, pause: tuple[float, float]) -> list[float]:
    async with connect(address, max_size=None, ping_interval=None) as socket:
        session = Session(socket)
        seconds = [await session.open()]
        others = [name for name in session.pages if name]
        for name in chance.sample(others, len(others)):
            await asyncio.sleep(chance.uniform(*pause))
            seconds.append(await session.open(name))
        return seconds


def _row(name: str, seconds: Sequence[float]) -> dict[str, Any]:
    worst = quantiles(seconds, n=20, method="inclusive")[-1]
    return {
        "name": name,
        "answers": len(seconds),
        "median_seconds": median(seconds),
        "p95_seconds": worst,
        "aim": {"at_most": AIMS[name], "reached": worst <= AIMS[name]},
    }


if __name__ == "__main__":
    run(__doc__, measure, describe)
