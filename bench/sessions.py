"""How the dashboard holds up when many people use it at once: a websocket client per session, as a browser's, without the drawing.

All sessions open the first page in the same moment; then each clicks through the other pages in an order of its own,
with a pause between two clicks. A page counts from the click to the message that says that its script has ended. The
client asks for no redraws by itself (a browser does while a job runs). The parties' randomness is ready before. First nobody
has to sign in, and somebody was scored before, whose answer every session shows; then each session has an account of its own.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from statistics import median, quantiles
from typing import Any

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from app.texts import Texts
from bench import sign_in
from bench.setting import fresh_glassleaf, progress, run
from bench.tables import sessions as describe
from tests.e2e.serving import free_port, served

SESSIONS = 25
PAUSE = (4.0, 8.0)  # seconds between an answer and the next click
FIRST = "first page, all at once"
OTHER = "any other page"
AIMS = {FIRST: 5.0, OTHER: 2.0}  # seconds, 95th percentile
SIGNED_IN = "{}, everybody signed in"
MEMORY = 500  # MB of the process
LONGEST_PREPARATION = 180.0  # seconds
LONGEST_SCORE = 240.0  # seconds
IDLE = 10.0  # percent of a core


class Session:
    """One browser's conversation with the server."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.pages: dict[str, str] = {}  # url path → hash of the page's script
        self.buttons: dict[str, str] = {}  # that can be pressed on the page that is open: words → id
        self.tiles = 0  # on the page that is open

    async def open(self, page: str = "", query: str = "", press: str = "") -> float:
        """Ask for a page, with the query of its address, where wanted by a press of a button on it; seconds until all of it was sent."""
        asked = BackMsg()
        if press:
            pressed = asked.rerun_script.widget_states.widgets.add()
            pressed.id = self.buttons[press]
            pressed.trigger_value = True
        asked.rerun_script.query_string = query
        asked.rerun_script.page_script_hash = self.pages[page] if page else ""
        asked.rerun_script.context_info.locale = "en-US"
        began = time.perf_counter()
        await self._socket.send(asked.SerializeToString())
        failed = ""
        self.tiles = 0
        self.buttons = {}
        while True:
            message = ForwardMsg.FromString(await self._socket.recv(decode=False))
            kind = message.WhichOneof("type")
            if kind == "navigation":
                self.pages = {found.url_pathname: found.page_script_hash for found in message.navigation.app_pages}
            elif kind == "delta":
                element = message.delta.new_element
                drawn = element.WhichOneof("type")
                if drawn == "exception":
                    failed = element.exception.message
                elif drawn == "button" and not element.button.disabled:
                    self.buttons[element.button.label] = element.button.id
                self.tiles += drawn == "metric"
            elif kind == "script_finished":
                if failed:
                    raise RuntimeError(f"the page {page!r} failed: {failed}")
                if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    return time.perf_counter() - began


@asynccontextmanager
async def connected(url: str, person: str = "") -> AsyncIterator[Session]:
    """A browser at the dashboard's address, where wanted with the cookie of somebody who has signed in."""
    address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
    options: dict[str, Any] = {"max_size": None, "ping_interval": None, "origin": url}
    async with connect(address, **options, **(sign_in.handshake(url, person) if person else {})) as socket:
        yield Session(socket)


async def score_somebody(url: str, query: str = "") -> None:
    """Press the button on the Score page, and wait until the answer's tiles stand there."""
    async with asyncio.timeout(LONGEST_SCORE), connected(url) as session:
        await session.open(query=query)
        await session.open("score", query)
        await session.open("score", query, press=Texts("en")("score.go_alone"))
        while not session.tiles:
            await asyncio.sleep(1.0)
            await session.open("score", query)


def measure(quick: bool = False) -> dict[str, Any]:
    """Seconds a page, and the most that the server's process holds in the end; the demo was prepared and opened once before."""
    with fresh_glassleaf() as glassleaf:
        progress("preparing the demo")
        glassleaf.training.prepare_demo()
        glassleaf.close()
        rows = []
        memory = []
        for names, port in (("{}", 0), (SIGNED_IN, free_port())):
            secrets = sign_in.want(glassleaf.home, port) if port else None
            with served(glassleaf.home, glassleaf.home / "dashboard.log", port, secrets) as url:
                first, other, held = _held_up(url, quick, signed_in=bool(port))
            rows += [_row(names.format(FIRST), first, AIMS[FIRST]), _row(names.format(OTHER), other, AIMS[OTHER])]
            memory.append(held)
    count, pause = _extent(quick)
    return {"sessions": count, "pause": pause, "rows": rows, "memory_mb": max(memory), "memory_aim_mb": MEMORY}


def _extent(quick: bool) -> tuple[int, tuple[float, float]]:
    return (3, (0.0, 0.1)) if quick else (SESSIONS, PAUSE)


def _held_up(url: str, quick: bool, *, signed_in: bool) -> tuple[list[float], list[float], float]:
    """Seconds of first pages and of all others, and MB in the end."""
    count, pause = _extent(quick)
    progress("one session before, which is not counted")
    asyncio.run(_together(url, 1, (0.0, 0.0), signed_in))
    if not signed_in:
        asyncio.run(score_somebody(url))
    server = process()
    progress("until the parties have prepared their randomness")
    until_idle(server, 0.0 if quick else LONGEST_PREPARATION)
    progress(f"{count} sessions")
    first, other = asyncio.run(_together(url, count, pause, signed_in))
    return first, other, server.memory_info().rss / 1e6


def process() -> psutil.Process:
    """The dashboard that is being served."""
    return next(c for c in psutil.Process().children() if "--server.port" in c.cmdline())


def until_idle(server: psutil.Process, longest: float = LONGEST_PREPARATION) -> None:
    """Wait until nothing is prepared in the background any more, so many seconds at most."""
    until = time.monotonic() + longest
    while time.monotonic() < until and server.cpu_percent(3.0) > IDLE:
        pass


async def _together(
    url: str, count: int, pause: tuple[float, float], signed_in: bool
) -> tuple[list[float], list[float]]:
    people = [f"person {i}" if signed_in else "" for i in range(count)]
    walks = await asyncio.gather(*(_walk(url, random.Random(i), pause, who) for i, who in enumerate(people)))
    return [walk[0] for walk in walks], [seconds for walk in walks for seconds in walk[1:]]


async def _walk(url: str, chance: random.Random, pause: tuple[float, float], person: str) -> list[float]:
    async with connected(url, person) as session:
        seconds = [await session.open()]
        others = [name for name in session.pages if name]
        for name in chance.sample(others, len(others)):
            await asyncio.sleep(chance.uniform(*pause))
            seconds.append(await session.open(name))
        return seconds


def _row(name: str, seconds: Sequence[float], aim: float) -> dict[str, Any]:
    worst = quantiles(seconds, n=20, method="inclusive")[-1]
    return {
        "name": name,
        "answers": len(seconds),
        "median_seconds": median(seconds),
        "p95_seconds": worst,
        "aim": {"at_most": aim, "reached": worst <= aim},
    }


if __name__ == "__main__":
    run(__doc__, measure, describe)
