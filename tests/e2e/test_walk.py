"""The main walk in a real browser: an empty home, the demo, its gender flag, one person scored with encryption, the file.

``GLASSLEAF_SCREENSHOTS=1`` keeps the pictures of the walk for the README in docs/images.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.session import WALKED
from app.texts import Texts
from tests.e2e.serving import NAVIGATION, OPEN, PATIENCE, PICTURES, SETTLED, picture, served, troubles

expect = pytest.importorskip("playwright.sync_api").expect
T = Texts("en")
FIRST_ROWS = T("people.histogram", n=5000, people="5,000").replace("**", "")

# With drawings, components, a table and a form; `test_accessibility` opens every page by its link.
OPENED_BY_ADDRESS = ("structure", "demonstration", "people", "score", "train")

pytestmark = pytest.mark.e2e


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[str]:
    """A dashboard on a home in which nothing is, with pools as a user has it, and of one walk's own."""
    with served(tmp_path / "home", tmp_path / "dashboard.log", short_keys=True) as url:
        yield url


@pytest.fixture(scope="module")
def changing(demo_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard on the demo, for walks that measure and train."""
    with served(demo_home(), tmp_path_factory.mktemp("log") / "dashboard.log", pools=False) as url:
        yield url


def _settle(page) -> None:
    """Wait until the script has run; for pictures also until the charts stand."""
    page.wait_for_timeout(900 if PICTURES else 150)  # until the script of a click has begun
    page.wait_for_function(SETTLED)


def _go(page, title: str) -> None:
    page.locator(NAVIGATION).get_by_role("link", name=title, exact=True).click()
    page.get_by_role("heading", level=1, name=title).wait_for()
    _settle(page)


@contextmanager
def _opened(browser, url: str, *, phone: bool = False) -> Iterator[object]:
    """A page in a profile of its own; by its end the browser has had nothing to complain about."""
    size = {"width": 390, "height": 844} if phone else {"width": 1440, "height": 900}
    scheme = "dark" if phone else "light"
    context = browser.new_context(viewport=size, locale="en-US", color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    context.add_cookies([{"name": WALKED, "value": "1", "url": url}])  # not here for the first time
    page = context.new_page()
    seen = troubles(page)
    try:
        page.goto(url)
        page.wait_for_selector("h1")
        _settle(page)
        yield page
        assert not seen
    except Exception as error:
        error.add_note("The page said:\n" + page.inner_text("body"))
        raise
    finally:
        context.close()


def test_the_main_walk_from_an_empty_home_to_the_scores_file(empty: str, browser) -> None:
    with _opened(browser, empty) as page:
        page.get_by_role("button", name=T("empty.prepare")).click()
        page.get_by_text(T("states.unapproved")).wait_for()
        _settle(page)
        picture(page, "overview")

        page.get_by_role("button", name=re.compile(r"Review \d+ findings?")).click()
        page.locator("[class*=st-key-finding_] summary", has_text="Gender").click()
        page.get_by_role("heading", level=3, name=re.compile("Gender")).wait_for()
        page.get_by_text(T("compliance.prohibited")).first.wait_for()
        _settle(page)

        for title in ("Features", "Structure", "Importance"):
            _go(page, title)

        _go(page, "Score")
        page.get_by_text(f"· {T('engine.ready')}").wait_for()  # once randomness is prepared, without a click
        page.get_by_role("button", name=T("score.go_why")).click()
        page.locator(".st-key-reasons_again").wait_for()  # with the score, by the same press
        _settle(page)
        _on_the_first_screen(page)
        page.get_by_role("radio", name="中文").click()
        page.get_by_role("heading", level=1, name=Texts("zh")("score.title")).wait_for()
        _settle(page)
        _on_the_first_screen(page)
        page.get_by_role("radio", name="EN").click()
        page.get_by_role("heading", level=1, name=T("score.title")).wait_for()
        _settle(page)
        picture(page, "score")
        page.locator("summary", has_text=T("score.how")).click()
        page.get_by_role("heading", name=T("score.learned"), exact=True).wait_for()
        page.get_by_role("heading", name=T("transcript.title"), exact=True).wait_for()
        with page.expect_download() as download:
            page.get_by_role("button", name=T("score.download")).click()
        assert download.value.suggested_filename == "glassleaf-scores.csv"
        _check_scores(Path(download.value.path()))

        _go(page, "Protocols")
        page.get_by_role("radio", name="RLWE").click()
        _race(page)
        expect(page.get_by_text(T("protocols.equal"))).to_have_count(1, timeout=PATIENCE)


@pytest.mark.slow
def test_five_thousand_people_are_scored_while_the_pages_stay_open(
    demo_home: Callable[[], Path], browser, tmp_path: Path
) -> None:
    with served(demo_home(), tmp_path / "dashboard.log") as url, _opened(browser, f"{url}/people") as page:
        with page.expect_download() as template:
            page.get_by_role("button", name=T("upload.template")).click()
        header, row, _ = Path(template.value.path()).read_text().splitlines()
        values = row.split(",", 1)[1]
        people = tmp_path / "people.csv"
        people.write_text("\n".join([header, *(f"new{i},{values}" for i in range(5000))]))

        page.locator("input[type=file]").set_input_files(people)
        page.get_by_text(T("upload.ids_as_written")).click()  # no Host has such ids, which is asked about
        page.get_by_text("5,000 rows read").wait_for()
        score = page.get_by_role("button", name=T("people.go"))
        score.click()
        page.get_by_role("button", name=T("stage.cancel")).click()
        page.get_by_text(T("stage.cancelled")).wait_for()

        _settle(page)
        score.click()
        page.get_by_text(re.compile(f"so far|{FIRST_ROWS}")).first.wait_for()
        for title in ("Importance", "Overview", T("people.title")):
            page.locator(NAVIGATION).get_by_role("link", name=title, exact=True).click()
            page.get_by_role("heading", level=1, name=title).wait_for()
        page.get_by_text(FIRST_ROWS).wait_for()
        page.locator("summary", has_text=T("score.how")).click()
        page.get_by_text("as fast as the textbook").wait_for()
        with page.expect_download() as download:
            page.get_by_role("button", name=T("score.download")).click()
        with Path(download.value.path()).open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        assert [line["id"] for line in rows] == [f"new{i}" for i in range(5000)]
        assert {line["status"] for line in rows} == {"partial"}  # no Host knows them
        scores = [float(line["score"]) for line in rows]
        assert max(scores) - min(scores) <= 1 / 16  # the same values throughout, moved by the demo's dither alone


def test_a_comparison_on_a_synthetic_model_fits_a_phone(changing: str, browser) -> None:
    with _opened(browser, f"{changing}/protocols", phone=True) as page:
        page.get_by_role("radio", name=T("protocols.source_synthetic")).click()
        page.get_by_text(T("protocols.leaves", leaves=800)).wait_for()
        page.get_by_role("radio", name="RLWE").click()
        _race(page)
        synthetic = T("protocols.on_synthetic", n=50, depth=4, features=20, leaves=800)
        expect(page.get_by_text(synthetic)).to_have_count(1, timeout=PATIENCE)
        tables = page.get_by_test_id("stTable")
        expect(tables).to_have_count(3, timeout=PATIENCE)
        for table in tables.all():
            wide = table.evaluate("node => Math.max(...[node, ...node.querySelectorAll('*')].map(n => n.scrollWidth))")
            assert wide <= table.evaluate("node => node.clientWidth")
        assert page.get_by_test_id("stMain").evaluate("node => node.scrollWidth") <= 390
        page.locator(".updatemenu-button").click()  # what saves the chart does not lie over it


def test_a_forest_is_trained_and_stands_beside_the_first_model(changing: str, browser) -> None:
    with _opened(browser, f"{changing}/train") as page:
        page.get_by_text(T("algorithm.name_forest"), exact=True).first.click()
        page.get_by_text(T("parameter.aggregation")).wait_for()
        page.get_by_role("radio", name=T("train.cipher_none")).click()
        _settle(page)
        page.get_by_role("button", name=T("train.go"), exact=True).click()
        page.get_by_text(T("train.registered")).wait_for()
        _settle(page)
        expect(page.get_by_text("people are known to all parties")).to_have_count(1, timeout=PATIENCE)
        expect(page.get_by_text("Best figure:")).to_have_count(1, timeout=PATIENCE)
        page.get_by_role("link", name=T("train.open")).click()
        page.get_by_role("heading", level=1, name="Overview").wait_for()
        page.get_by_text(T("states.unapproved")).first.wait_for()


def _race(page) -> None:
    """Run every protocol on the Protocols page, and wait for the last batch."""
    _settle(page)
    page.get_by_role("button", name=T("protocols.go")).click()
    page.get_by_text(T("protocols.batches_caption").split(",")[0]).wait_for()
    page.get_by_role("progressbar").wait_for(state="detached")
    _settle(page)
    for name in ("race", "by_size", "figures", "learned"):
        heading = page.get_by_role("heading", name=T(f"protocols.{name}"), exact=True)
        expect(heading).to_have_count(1, timeout=PATIENCE)
    points = page.locator("[data-testid=stVegaLiteChart] .mark-symbol path")
    points.nth(3).wait_for()  # two sizes or more, two lines
    with page.expect_download() as download:
        save = page.locator("[data-testid=stElementToolbar]").get_by_role("button", name=T("frame.save_svg"))
        save.first.dispatch_event("click")  # it is seen while the pointer is over a chart of Vega-Lite
    assert "<path" in Path(download.value.path()).read_text(encoding="utf-8")


def _on_the_first_screen(page) -> None:
    """Person, answer, points and four reasons are seen without scrolling."""
    page.get_by_test_id("stMain").evaluate("node => node.scrollTo(0, 0)")
    reasons = page.locator(".st-key-reasons_listed li")
    expect(reasons).to_have_count(4)
    figures = page.locator(".st-key-score_answer [data-testid=stMetric]")
    expect(figures).to_have_count(3)  # decision, probability, points
    for one in (page.locator(".st-key-score_assume"), *figures.all(), *reasons.all()):
        box = one.bounding_box()
        assert box["y"] + box["height"] <= page.viewport_size["height"], one.inner_text()


def _check_scores(file: Path) -> None:
    with file.open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row["status"] == "ok"
    assert row["problem"] == row["not_held_by"] == ""
    assert row["decision"] == ("decline" if float(row["probability"]) >= 0.5 else "accept")
    parts = sum(float(row[name]) for name in ("base", "guest_part", "hosts_part"))
    assert float(row["score"]) == pytest.approx(parts, abs=3e-6)
    assert float(row["probability"]) == pytest.approx(1 / (1 + math.exp(-float(row["score"]))), abs=2e-6)


def test_a_page_that_is_opened_by_its_address_asks_for_nothing_that_is_not_there(address: str, browser) -> None:
    with _opened(browser, address) as page:
        for name in OPENED_BY_ADDRESS:
            page.goto(f"{address}/{name}")
            page.wait_for_function(SETTLED)  # what is left half loaded fails
            assert page.url.split("?")[0] == f"{address}/{name}"


def test_a_phone_shows_one_column_and_cuts_nothing_off(address: str, browser) -> None:
    with _opened(browser, address, phone=True) as page:
        for name in (
            "overview",
            "features",
            "structure",
            "importance",
            "compliance",
            "score",
            "people",
            "protocols",
            "train",
        ):
            page.evaluate(OPEN, name)
            page.get_by_role("heading", level=1, name=T(f"{name}.title"), exact=True).wait_for()
            _settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            assert page.get_by_test_id("stMain").evaluate("node => node.scrollWidth") <= 390, name
