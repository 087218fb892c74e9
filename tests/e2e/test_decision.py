"""A line is chosen by looking, approved by a second user, and decides at every door: page, shell, HTTP, table, log, report, notice."""

import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.texts import Texts
from backend.services import Glassleaf
from tests.e2e.serving import ROOT, SETTLED, served
from tests.services.test_decision_walk import over_http

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


def test_a_line_that_two_users_set_decides_at_every_door(browser, home, tmp_path) -> None:
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
    person = on_page["id"]

    # 4. Shell, long table and HTTP say the same.
    ids = [person, *(one for one in json.loads(shell(home, "samples", "latest", "--json"))["ids"] if one != person)][
        :30
    ]
    sheet = tmp_path / "people.csv"
    sheet.write_text("\n".join(["id", *ids]), encoding="utf-8")
    printed = json.loads(shell(home, "score", "latest", sheet, "--cipher", "none", "--json"))["scores"]
    shell(home, "score", "latest", sheet, "--cipher", "none", "--out", tmp_path / "table.parquet")
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "table.parquet").to_pylist()
    with Glassleaf(home, pools=False) as glassleaf:
        record = glassleaf.models.get("latest")
        with ThreadPoolExecutor() as thread:  # the browser's loop runs in this one
            answer = thread.submit(over_http, glassleaf, record.id, ids).result()
        log = [entry.body for entry in glassleaf.audit.entries("demo") if entry.action == "score"]
    doors = [{row["id"]: said_by(row) for row in rows} for rows in (printed, table, answer["scores"])]
    assert doors[0] == doors[1] == doors[2] and len(doors[0]) == len(ids)
    assert doors[0][person] == said_by(on_page)
    assert {said[3] for said in doors[0].values()} == {"2"} and answer["policy"]["decline_at"] == 0.35

    # 5. Log, report and notice name the same version.
    assert len(log) >= 4 and {(body["policy"], body["decline_at"]) for body in log} == {(2, 0.35)}
    issued = json.loads(shell(home, "report", "latest"))["issued"]
    assert (issued["policy"]["version"], issued["policy"]["approved_by"]) == (2, "Rita")
    declined = next(one for one, said in doors[0].items() if said[0] == "decline")
    notice = tmp_path / "notice.txt"
    shell(home, "reasons", "latest", "--id", declined, "--bits", 3072, "--notice", "en", "--out", notice)
    assert "version 2 of the model's policy" in " ".join(notice.read_text(encoding="utf-8").split())
