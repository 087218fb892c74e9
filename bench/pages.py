"""How long a page takes, on the demo and on a model of 500 features and 300 trees: in the server, and in a real browser from the
click to the last element drawn; Score and Privacy also once somebody has been scored. For somebody who has signed in the server alone is
measured: a browser draws the same.

Needs Chromium and Playwright. The large federation is synthetic (`bench.large`); each dashboard runs in a process of its own, which
prepares no randomness in the background: that would take the pages' processors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from app.texts import Texts
from backend.services import Glassleaf
from backend.services.retraining import RetrainingRequest
from bench import sign_in
from bench.large import grow_large
from bench.sessions import connected, process, score_somebody
from bench.setting import fresh_folder, machine, progress, run
from bench.tables import pages as describe
from tests.e2e.measure_pages import measure as walk
from tests.e2e.serving import CHROMIUM, FLAGS, free_port, served

NAMES = [
    *("overview", "features", "structure", "importance", "model_card", "compliance", "validation", "compare_models"),
    *("score", "privacy", "protocols", "attack_lab", "host", "own_data", "train", "report", "audit"),
]
ANSWERED = ("score", "privacy")  # what shows the answer of a scoring
ROUNDS = 3
SERVER = 0.120  # seconds in the server's process, whatever else the machine does
AIMS = {"demo": 0.3, "large": 0.6}  # seconds to the last element


def measure(rounds: int = ROUNDS, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Medians over `rounds` walks through the pages, warm; each model can be compared with one retrained from it."""
    with fresh_folder() as folder:
        facts, rows = {}, []
        for size, aim in AIMS.items():
            progress(f"growing the models: {size}")
            home = folder / size
            model, found = grown(home, size)
            facts[size] = found
            progress(f"walking: {size}")
            rows += [{"size": size, "aim_seconds": aim} | row for row in timed(home, model, rounds, names)]
    return {
        "rounds": rounds,
        "server_aim_seconds": SERVER,
        "load_after": machine()["load_before"],
        "models": facts,
        "rows": rows,
    }


def grown(home: Path, size: str) -> tuple[str, Mapping[str, int]]:
    """A home with a model and one retrained from it; the model's id, and how large it is."""
    with Glassleaf(home, pools=False) as glassleaf:
        if size == "demo":
            glassleaf.training.prepare_demo()
            record = glassleaf.models.all()[0]
        else:
            record = grow_large(glassleaf)
        findings = glassleaf.compliance.assess(record.id).findings
        glassleaf.retraining.start(RetrainingRequest(record.id, (findings[0].feature,), cipher="none")).get()
        facts = {
            "features": len(glassleaf.models.guest_model(record.id).dictionary),
            "trees": record.n_trees,
            "leaves": record.n_leaves,
            "findings": len(findings),
        }
    return record.id, facts


def timed(home: Path, model: str, rounds: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row a page, a row more for those that show an answer, and a row each for somebody who has signed in."""
    with served(home, home / "dashboard.log", pools=False) as url:
        rows = walked(url, model, rounds, names)
        progress("scoring one person")
        asyncio.run(score_somebody(url, f"model={model}"))
        rows += walked(url, model, rounds, [name for name in names if name in ANSWERED], "{}, one person scored")
    port = free_port()
    with served(home, home / "dashboard.log", port, sign_in.want(home, port), pools=False) as url:
        progress("signed in")
        spent = asyncio.run(_spent(url, model, rounds, names, "somebody"))
    titles = _titles(names)
    return rows + [
        {"page": f"{titles[name]}, signed in", "server_seconds": median(seconds)} for name, seconds in spent.items()
    ]


def _titles(names: Sequence[str]) -> dict[str, str]:
    return {name: Texts("en")(f"{name}.title") for name in names}


def walked(url: str, model: str, rounds: int, names: Sequence[str], called: str = "{}") -> list[dict[str, Any]]:
    """A row a page of a dashboard that is being served; `called` is what a page's title becomes."""
    if not names:
        return []
    titles = _titles(names)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
        page = context.new_page()
        page.goto(
            f"{url}/help?model={model}"
        )  # none of those that are walked, so that the first click leads to another page
        page.wait_for_selector("h1", timeout=120_000)
        time.sleep(3)
        seen = walk(page, rounds, list(titles.values()))
        browser.close()
    spent = asyncio.run(_spent(url, model, rounds, names))
    rows = []
    for name, title in titles.items():
        first, last = ([milliseconds / 1000 for milliseconds in column] for column in zip(*seen[title], strict=True))
        rows.append(
            {
                "page": called.format(title),
                "server_seconds": median(spent[name]),
                "title_seconds": median(first),
                "seconds": median(last),
                "worst_seconds": max(last),
            }
        )
    return rows


async def _spent(url: str, model: str, rounds: int, names: Sequence[str], person: str = "") -> dict[str, list[float]]:
    """Processor seconds of the server for each page, one after the other; one round before, which is not counted."""
    found: dict[str, list[float]] = {name: [] for name in names}
    server = process()
    async with connected(url, person) as session:
        await session.open(query=f"model={model}")
        for counted in range(rounds + 1):
            for name in names:
                before = server.cpu_times()
                await session.open(name, query=f"model={model}")
                after = server.cpu_times()
                if counted:
                    found[name].append(after.user + after.system - before.user - before.system)
    return found


if __name__ == "__main__":
    run(__doc__, measure, describe)
