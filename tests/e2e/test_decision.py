"""A line is chosen by looking, approved by a second user, and decides: on the page, in the shell and in the log."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.texts import Texts
from backend.services import Glassleaf
from tests.e2e.serving import ROOT, SETTLED, served

expect = pytest.importorskip("playwright.sync_api").expect
T = Texts("en")
WAIT = 90_000  # ms, for a busy machine
STEPS = 15  # percent that the line is moved down from the demo's 50
SAID = ("decision", "band", "points", "policy")

pytestmark = pytest.mark.e2e


@pytest.fixture
def home(demo_home):
    return demo_home()


def visit(browser, url: str, page: str, role: str):
    """Return a page in a profile of its own: another user's."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
    context.set_default_timeout(WAIT)
    opened = context.new_page()
    opened.goto(f"{url}/{page}?role={role}")
    opened.wait_for_selector("h1")
    opened.wait_for_function(SETTLED)
    return opened


def shell(home: Path, *words: object) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "backend", *map(str, words)]
    environment = {**os.environ, "GLASSLEAF_HOME": str(home)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


def said_by(row: dict[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in SAID)


def test_a_line_that_two_users_set_decides_on_the_page_and_in_the_shell(browser, home, tmp_path) -> None:
    with served(home, tmp_path / "dashboard.log", pools=False) as url:
        # 1. One user looks at lines and proposes one.
        page = visit(browser, url, "decide", "operator")
        right = page.locator(".st-key-decide_lines input[type=range]").nth(1)
        right.focus()
        for _ in range(STEPS):
            right.press("ArrowLeft")
        expect(page.get_by_text("If people are declined from 35.0")).to_be_visible(timeout=WAIT)
        page.get_by_label(T("decide.owner")).fill("Olga")
        page.get_by_label(T("decide.person")).fill("Ana")
        page.get_by_label(T("decide.reason")).fill("looked at on the page")
        page.get_by_role("button", name=T("decide.propose_go"), exact=True).click()
        expect(page.get_by_text(T("decide.proposed"))).to_be_visible(timeout=WAIT)

        # 2. Another user finds it waiting, and approves it.
        other = visit(browser, url, "decide", "regulator")
        expect(other.get_by_text(T("policy.waits", version=2))).to_be_visible(timeout=WAIT)
        other.get_by_label(T("decide.person")).fill("Rita")
        other.get_by_role("button", name=T("decide.approve_go"), exact=True).click()
        expect(other.get_by_text(T("policy.by", version=2)).first).to_be_visible(timeout=WAIT)

        # 3. A person is scored on the page, and the file is taken.
        page = visit(browser, url, "score", "operator")
        page.get_by_role("button", name=T("score.go_alone")).click()
        page.get_by_role("button", name=T("score.download")).wait_for()
        expect(page.get_by_text(T("policy.by", version=2)).first).to_be_visible(timeout=WAIT)
        with page.expect_download() as download:
            page.get_by_role("button", name=T("score.download")).click()
        with Path(download.value.path()).open(encoding="utf-8-sig") as lines:
            (on_page,) = csv.DictReader(lines)

    # 4. The shell says the same of this person; `test_decision_walk` asks every other door.
    sheet = tmp_path / "people.csv"
    sheet.write_text(f"id\n{on_page['id']}\n", encoding="utf-8")
    (printed,) = json.loads(shell(home, "score", "latest", sheet, "--cipher", "none", "--json"))["scores"]
    assert said_by(printed) == said_by(on_page) and on_page["policy"] == "2"

    # 5. The log names the version and the line of both scores.
    with Glassleaf(home, pools=False) as glassleaf:
        log = [entry.body for entry in glassleaf.audit.entries("demo") if entry.action == "score"]
    assert [(body["policy"], body["decline_at"]) for body in log] == [(2, 0.35), (2, 0.35)]
