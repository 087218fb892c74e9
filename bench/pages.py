"""How long a page takes, on the demo and on a model of 500 features and 300 trees: in the server, and in a real browser from the
click to the last element drawn, beside an empty Streamlit page; Score and Privacy also once somebody has been scored. For somebody who
has signed in the server alone is measured: a browser draws the same.

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
    *("overview", "demonstration", "features", "structure", "importance", "model_card", "compliance", "validation"),
    *("decide", "compare_models", "score", "people", "privacy", "protocols", "attack_lab", "host", "own_data"),
    *("screen", "train", "report", "audit"),
]
ANSWERED = ("score", "privacy")  # what shows the answer of a scoring
ROUNDS = 3
EMPTY = {"empty": "Empty", "help": "Help"}  # the pages of bench/empty.py, the first of which is measured
SERVER = 0.120  # seconds in the server's process, whatever else the machine does
AIMS = {"demo": 0.4, "large": 0.6}  # seconds to the last element


def measure(rounds: int = ROUNDS, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Medians over `rounds` walks through the pages, warm; each model can be compared with one retrained from it."""
    with fresh_folder() as folder:
        progress("walking: an empty page")
        with served(folder, folder / "empty.log", app="bench/empty.py") as url:
            facts = {}
            rows = [{"size": "none"} | walked(url, "", rounds, EMPTY)[0]]
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
    """A row a page, with what the server needs for somebody who has signed in, and a row more for those that show an answer."""
    titles = {name: Texts("en")(f"{name}.title") for name in names}
    with served(home, home / "dashboard.log", pools=False) as url:
        rows = walked(url, model, rounds, titles)
        progress("scoring one person")
        asyncio.run(score_somebody(url, f"model={model}"))
        scored = walked(url, model, rounds, {name: title for name, title in titles.items() if name in ANSWERED})
    port = free_port()
    with served(home, home / "dashboard.log", port, sign_in.want(home, port), pools=False) as url:
        progress("signed in")
        spent = asyncio.run(_spent(url, model, rounds, names, "somebody"))
    for row, seconds in zip(rows, spent.values(), strict=True):
        row["signed_in_seconds"] = median(seconds)
    return rows + [row | {"page": f"{row['page']}, one person scored"} for row in scored]


def walked(url: str, model: str, rounds: int, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row a page, by name and title, of a dashboard that is being served."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
        page = context.new_page()
        # The last of those that are walked or none of them, so that the first click leads to another page.
        page.goto(f"{url}/help?model={model}")
        page.wait_for_selector("h1", timeout=120_000)
        time.sleep(3)
        seen = walk(page, rounds, list(titles.values()))
        browser.close()
    spent = asyncio.run(_spent(url, model, rounds, list(titles)))
    rows = []
    for name, title in titles.items():
        first, last = ([milliseconds / 1000 for milliseconds in column] for column in zip(*seen[title], strict=True))
        rows.append(
            {
                "page": title,
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
                    spent = after.user + after.system - before.user - before.system
                    found[name].append(abs(round(spent, 3)))  # the system counts hundredths
    return found


if __name__ == "__main__":
    run(__doc__, measure, describe)
