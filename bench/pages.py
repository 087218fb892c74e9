"""How long a page takes in a real browser on a model of 500 features and 300 trees: from the click to the last element drawn.

Needs Chromium and Playwright. The federation is synthetic (`bench.large`), the dashboard runs in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from backend.services import Glassleaf
from backend.services.retraining import RetrainingRequest
from bench.large import grow_large
from bench.setting import fresh_folder, machine, progress, run
from bench.tables import pages as describe
from tests.e2e.measure_pages import measure as walk
from tests.e2e.serving import CHROMIUM, FLAGS, served

TITLES = [
    *("Overview", "Features", "Structure", "Importance", "Model card", "Compliance", "Compare models"),
    *("Score", "Privacy", "Protocols", "Attack lab", "Train", "Report", "Audit"),
]
ROUNDS = 5
TARGET = 1.0  # seconds


def measure(rounds: int = ROUNDS, titles: Sequence[str] = TITLES) -> dict[str, Any]:
    """Medians over `rounds` walks through the pages, warm; the model is compared with one retrained from it."""
    with fresh_folder() as folder:
        home = folder / "home"
        glassleaf = Glassleaf(home, pools=False)
        progress("growing the model")
        record = grow_large(glassleaf)
        findings = glassleaf.compliance.assess(record.id).findings
        progress("retraining it")
        glassleaf.retraining.start(RetrainingRequest(record.id, (findings[0].feature,), cipher="none")).get()
        facts = {
            "features": len(glassleaf.models.guest_model(record.id).dictionary),
            "trees": record.n_trees,
            "leaves": record.n_leaves,
            "findings": len(findings),
        }
        glassleaf.close()
        with served(home, folder / "dashboard.log") as url, sync_playwright() as play:
            progress("walking")
            browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
            page = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US").new_page()
            page.goto(f"{url}/?model={record.id}")
            page.wait_for_selector("h1", timeout=120_000)
            time.sleep(3)
            times = walk(page, rounds, titles)
            browser.close()
    rows = []
    for title, own in times.items():
        first, last = ([milliseconds / 1000 for milliseconds in column] for column in zip(*own, strict=True))
        rows.append(
            {"page": title, "title_seconds": median(first), "seconds": median(last), "worst_seconds": max(last)}
        )
    return {"rounds": rounds, "target_seconds": TARGET, "load_after": machine()["load_before"], **facts, "rows": rows}


if __name__ == "__main__":
    run(__doc__, measure, describe)
