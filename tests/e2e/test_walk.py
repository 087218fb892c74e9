"""The main walk in a real browser: an empty home, the demo, its gender flag, one person scored with encryption, the file.

``GLASSLEAF_SCREENSHOTS=1`` keeps the pictures of the walk for the README in docs/images.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
MOST_BYTES = 200_000  # of one picture in the repository

pytestmark = pytest.mark.e2e


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(url: str, server: subprocess.Popen[bytes], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if server.poll() is not None:
            pytest.fail(f"the dashboard stopped with code {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):  # noqa: S310 - our own server
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"the dashboard did not answer at {url} within {seconds:.0f} s")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = _free_port()
    url = f"http://localhost:{port}"
    log = tmp_path_factory.mktemp("log") / "dashboard.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.port", str(port)]
        environment = {**os.environ, "GLASSLEAF_HOME": str(tmp_path_factory.mktemp("home"))}
        command += ["--server.headless", "true"]
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)  # noqa: S603 - our own
        try:
            _wait_until_up(url, server)
            yield url
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if not CHROMIUM.exists():
        pytest.skip(f"no browser: {CHROMIUM} is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install -r requirements-dev.txt")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


def _settle(page) -> None:
    """Wait until the script has run and the charts stand."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)
    page.wait_for_timeout(900)


def _picture(page, name: str) -> None:
    if os.environ.get("GLASSLEAF_SCREENSHOTS") != "1":
        return
    IMAGES.mkdir(parents=True, exist_ok=True)
    file = IMAGES / f"{name}.png"
    page.screenshot(path=str(file))
    assert file.stat().st_size <= MOST_BYTES, f"{file.name} is {file.stat().st_size:,} bytes, at most {MOST_BYTES:,}"


def _go(page, title: str) -> None:
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=title).click()
    page.get_by_role("heading", level=1, name=title).wait_for(timeout=60_000)
    _settle(page)


def test_the_main_walk_from_an_empty_home_to_the_scores_file(address: str, browser) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US", color_scheme="light")
    page = context.new_page()
    strangers: list[str] = []
    page.on("request", lambda request: strangers.append(request.url) if _leaves(request.url) else None)

    page.goto(address)
    page.get_by_role("button", name="Prepare the demo").click(timeout=60_000)
    page.get_by_text("24 of 24 readable").wait_for(timeout=120_000)
    _settle(page)
    _picture(page, "overview")

    page.get_by_role("link", name="See findings and evidence").click()
    page.get_by_role("heading", level=4, name=re.compile("Gender")).wait_for(timeout=60_000)
    assert page.get_by_text("Prohibited").count() >= 1
    _settle(page)
    _picture(page, "compliance")

    for title in ("Features", "Structure", "Importance"):
        _go(page, title)
        _picture(page, title.lower())

    _go(page, "Score")
    page.get_by_role("button", name="Score with encryption").click()
    page.get_by_role("heading", name="The round trip").wait_for(timeout=180_000)
    _settle(page)
    _picture(page, "score")
    page.get_by_role("heading", name="The round trip").evaluate("node => node.scrollIntoView()")
    page.wait_for_timeout(600)
    _picture(page, "round-trip")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the scores").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("id,status,score,probability,decision")
    assert len(lines) == 2
    assert lines[1].split(",")[1] == "ok"

    assert not strangers, f"the dashboard asked other machines: {strangers}"
    context.close()


def _leaves(url: str) -> bool:
    return not url.startswith(("http://localhost:", "ws://localhost:", "data:", "blob:"))


@pytest.mark.parametrize("page_name", ["", "features", "structure", "importance", "compliance", "score", "train"])
def test_a_phone_shows_one_column_and_cuts_nothing_off(address: str, browser, page_name: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-US", color_scheme="dark")
    page = context.new_page()
    page.goto(f"{address}/{page_name}")
    page.wait_for_selector("h1", timeout=60_000)
    _settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollWidth") <= 390
    context.close()
