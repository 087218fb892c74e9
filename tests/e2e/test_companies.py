"""`make federation` in windows side by side: the bank asks, each Host's operator allows it at its console, and both see one score."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from app.texts import Texts
from tests.e2e.serving import PATIENCE, SETTLED, wait_until_up

T = Texts("en")
WINDOW = {"width": 1440, "height": 900}
ENDING = 90  # seconds: Hosts end open work first

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def free(*ports: int) -> bool:
    """Whether nobody listens there; below the ports that a system hands out, so that no other test is given one meanwhile."""
    with ExitStack() as probes, suppress(OSError):
        for port in ports:
            probes.enter_context(socket.create_server(("127.0.0.1", port)))
        return True
    return False


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[list[int]]:
    """Of the bank's pages and of the Hosts' consoles, all of them processes that one command has started."""
    first = next(one for one in iter(lambda: random.randrange(20_000, 30_000), None) if free(one, one + 1, one + 2))
    ports = [first, first + 1, first + 2]
    command = ["companies", "--out", str(tmp_path / "three"), "--rows", "600", "--start", "--port", str(first)]
    environment = {**os.environ, "STREAMLIT_SERVER_HEADLESS": "true", "STREAMLIT_SERVER_FILE_WATCHER_TYPE": "none"}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "glassleaf", *command], env=environment, stdout=log, stderr=log
        )
        try:
            for port in ports:
                wait_until_up(f"http://localhost:{port}", process)
            yield ports
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(ENDING) == 0


def settled(page) -> None:
    page.wait_for_timeout(100)  # until the script of a click has begun
    page.wait_for_function(SETTLED)


def press(page, key: str) -> None:
    page.locator(f".st-key-{key} button").click()
    settled(page)


def test_a_training_and_a_score_are_asked_for_allowed_and_seen_in_the_windows_of_both_sides(browser, ports):
    context = browser.new_context(viewport=WINDOW, locale="en-US", reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    bank, *consoles = (context.new_page() for _ in ports)
    for page, port in zip((bank, *consoles), ports, strict=True):
        page.goto(f"http://localhost:{port}")
        settled(page)

    def allowed(number: int) -> None:
        """A console shows by itself what is asked."""
        bank.locator(".st-key-waits_again").wait_for()
        for console in consoles:
            press(console, f"own_{number}_approve")
        bank.locator(".st-key-waits_again button").click()

    bank.goto(f"http://localhost:{ports[0]}/train")
    trees = bank.get_by_label(T("parameter.trees"), exact=True).first
    trees.fill("5")
    trees.press("Enter")
    settled(bank)
    press(bank, "train_go")
    allowed(1)
    bank.get_by_role("heading", name=T("train.learned")).wait_for()  # a model is there

    bank.goto(f"http://localhost:{ports[0]}/score")
    settled(bank)
    console = consoles[0]
    press(bank, "score_go")
    console.locator(".st-key-own_2_approve").wait_for()
    console.get_by_role("tab", name=T("host.tab_decided")).click()
    assert console.get_by_text("1 / 1").is_visible()  # the training
    console.get_by_role("tab", name=T("host.tab_waiting", count=1)).click()
    allowed(2)
    bank.get_by_text(T("score.decision"), exact=True).first.wait_for()
    console.get_by_role("tab", name=T("host.tab_decided")).click()
    console.get_by_text("1 / 1").nth(1).wait_for()  # the score beside the training, seen by itself
    assert console.get_by_role("tab", name=T("host.tab_decided")).get_attribute("aria-selected") == "true"
    context.close()
