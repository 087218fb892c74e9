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
from tests.e2e.serving import PATIENCE, SETTLED, picture, wait_until_up
from tests.e2e.test_accessibility import in_both_themes

T = Texts("en")
CHINESE = Texts("zh")
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
    # A console that is being drawn again has a button twice for a moment.
    page.locator(f".st-key-{key} button").last.click()
    settled(page)


def test_a_training_and_a_score_are_asked_for_allowed_and_seen_in_the_windows_of_both_sides(browser, ports):
    """The demonstration over links, from the keys at the bank and the operators' presses alone; others watch both sides in Chinese."""
    context = browser.new_context(viewport=WINDOW, locale="en-US", reduced_motion="reduce", color_scheme="light")
    context.set_default_timeout(PATIENCE)
    bank, *consoles = (context.new_page() for _ in ports)
    watched = tuple(context.new_page() for _ in ("bank", "host"))
    for page, port in zip((bank, *consoles), ports, strict=True):
        page.goto(f"http://localhost:{port}")
    for page, port in zip(watched, ports, strict=False):
        page.goto(f"http://localhost:{port}/?lang=zh")

    def pictures(step: int) -> None:
        for language, pages in (("en", (bank, consoles[0])), ("zh", watched)):
            for name, page in zip(("bank", "host"), pages, strict=True):
                picture(page, f"two-windows-{step}-{name}-{language}")

    # 1. Both sides open on who is connected.
    bank.wait_for_url("**/demonstration*")
    connected = T("demonstration.connected", since="").strip()
    for nth in range(len(consoles)):
        bank.locator(".deck .good", has_text=connected).nth(nth).wait_for()
    for console in consoles:
        console.get_by_text(T("host.connected", since="").strip()).first.wait_for()
    watched[0].wait_for_url("**/demonstration*")
    watched[0].locator(".deck .good", has_text=CHINESE("demonstration.connected", since=" ").split()[-1]).nth(
        1
    ).wait_for()
    watched[1].get_by_text(CHINESE("host.connected", since=" ").split()[-1]).first.wait_for()
    pictures(1)

    # 2. The first training is asked for by a key; a console shows by itself what is asked, and a score is allowed with it.
    bank.keyboard.press("ArrowRight")
    bank.locator(".deck .press").wait_for()
    bank.keyboard.press("ArrowRight")
    for console in consoles:
        console.locator(".st-key-own_1_approve").wait_for()
    watched[0].keyboard.press("2")
    watched[0].locator(".deck .waiting").wait_for()
    watched[1].locator(".st-key-own_1_approve").wait_for()
    pictures(2)
    for console in consoles:
        console.locator(".st-key-own_1_scores label").click()
        settled(console)
        press(console, "own_1_approve")

    # 3. The bank goes on by itself once all have decided; the score is asked for by a key.
    bank.get_by_text(T("demonstration.ask_score", hosts="").split(".")[0]).wait_for()
    bank.locator(".deck .press").wait_for()
    watched[0].locator(".deck .press").wait_for()
    pictures(3)
    bank.keyboard.press("ArrowRight")
    bank.locator(".deck .fly .box").first.wait_for()
    bank.keyboard.press("5")
    bank.locator(".deck .huge").wait_for()

    # 4. The Hosts' windows show what was given, without a press.
    for console in consoles:
        console.get_by_text(T("host.given", n=1, bits="").split("**")[2].split(",")[0].strip()).first.wait_for()
    watched[0].keyboard.press("5")
    watched[0].locator(".deck .huge").wait_for()
    watched[1].get_by_text(CHINESE("host.given", n=1, bits="").split("**")[0].strip()).first.wait_for()
    pictures(4)

    # 5. Reasons have an approval of their own; the bank shows them once it is there, without a press.
    bank.locator(
        ".deck .why", has_text=T("demonstration.waits_reasons_approval", host="", number=3).split(":")[0]
    ).wait_for()
    for console in consoles:
        console.locator("[class*=st-key-own_][class*=_approve] button").click()
        settled(console)
    for page in (bank, watched[0]):
        page.locator(".deck .why li").first.wait_for()
    pictures(5)

    # What was given is drawn by now, too.
    for page in (consoles[0], watched[1], bank):
        assert not in_both_themes(page)
    context.close()
