"""How long a warm page of the demo takes in a real browser: from the click in the sidebar to the last element drawn.

``python tests/e2e/measure_pages.py [ROUNDS] [--url URL]`` prints a table; without ``--url`` it serves an own demo.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Page, sync_playwright  # noqa: E402

from backend.services import Glassleaf  # noqa: E402
from tests.e2e.serving import CHROMIUM, FLAGS, NAVIGATION, PATIENCE, served  # noqa: E402

TITLES = ("Features", "Structure", "Importance", "Compliance", "Score", "Train", "Overview")
SETTLED = 300  # ms without a change: the page stands
TARGET = 300  # ms

# In the page itself, so that no round trip to the browser's driver is measured: the time of the click, of the title,
# and of the last change of the main area before it stands still (but for the hidden copy that a table keeps for
# screen readers and writes later). The sidebar may still be drawn, so its link is waited for before the clock starts.
WATCH = (
    """title => new Promise((resolve, reject) => {
  const main = document.querySelector('[data-testid=stMain]');
  const linked = () => [...document.querySelectorAll('NAVIGATION a')].find(link => link.textContent.includes(title));
  const asked = performance.now();
  const patient = setInterval(() => {
    const link = linked();
    if (link) { clearInterval(patient); walk(link); }
    else if (performance.now() - asked > PATIENCE) {
      clearInterval(patient);
      reject(new Error('The sidebar has no link ' + title + ': ' + document.body.innerText.slice(0, 500)));
    }
  }, 20);
  const walk = link => {
    let titled = 0, last = 0;
    const began = performance.now();
    const watch = new MutationObserver(changes => {
      if (changes.every(change => change.target.closest && change.target.closest('canvas'))) return;
      last = performance.now();
      const heading = main.querySelector('h1');
      if (!titled && heading && heading.textContent.includes(title)) titled = last;
    });
    watch.observe(main, {childList: true, subtree: true, characterData: true});
    link.click();
    const check = setInterval(() => {
      const app = document.querySelector('[data-testid=stApp]');
      const now = performance.now();
      const still = app.dataset.testScriptState === 'notRunning' && now - last > SETTLED;
      if (titled && still) { clearInterval(check); watch.disconnect(); resolve([titled - began, last - began]); }
      else if (now - began > PATIENCE) {
        clearInterval(check); watch.disconnect();
        reject(new Error('The page ' + title + ' has no heading: ' + main.innerText.slice(0, 500)));
      }
    }, 20);
  };
})""".replace("SETTLED", str(SETTLED))
    .replace("PATIENCE", str(PATIENCE))
    .replace("NAVIGATION", NAVIGATION)
)


@contextmanager
def _demo() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        glassleaf = Glassleaf(Path(folder) / "home", pools=False)
        glassleaf.training.prepare_demo()
        glassleaf.close()
        with served(Path(folder) / "home", Path(folder) / "dashboard.log") as url:
            yield url


def measure(page: Page, rounds: int, titles: Sequence[str] = TITLES) -> dict[str, list[tuple[float, float]]]:
    """Title and last element, ms, of every page in `rounds` walks through the sidebar; one walk before to warm up."""
    found: dict[str, list[tuple[float, float]]] = {title: [] for title in titles}
    for walk in range(rounds + 1):
        for title in titles:
            titled, last = page.evaluate(WATCH, title)
            if walk:
                found[title].append((titled, last))
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("rounds", nargs="?", type=int, default=7)
    arguments.add_argument("--url", help="a dashboard that is already being served")
    chosen = arguments.parse_args()
    with nullcontext(chosen.url) if chosen.url else _demo() as url, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        page = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US").new_page()
        page.goto(url)
        page.wait_for_selector("h1")
        time.sleep(20 if not chosen.url else 3)  # a fresh demo fills its pools first
        found = measure(page, chosen.rounds)
        browser.close()
    load = os.getloadavg()[0]
    print(f"Median of {chosen.rounds} walks, ms; target {TARGET} ms; load average {load:.1f} on {os.cpu_count()} cores")  # noqa: T201
    print(f"{'page':<12} {'title':>6} {'done':>6} {'worst':>6}")  # noqa: T201
    for title, times in found.items():
        titled, done = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{title:<12} {titled:>6.0f} {done:>6.0f} {max(last for _, last in times):>6.0f}")  # noqa: T201


if __name__ == "__main__":
    main()
