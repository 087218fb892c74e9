"""The demonstration told from the keys alone, in both languages and widths: each step has its link, its bytes and letters of a size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.panels.demonstration import DECK_STEPS
from app.texts import Texts
from tests.e2e.serving import PATIENCE, SETTLED, picture, served
from tests.e2e.test_accessibility import in_theme

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
SMALLEST = {"wide": 28, "phone": 14}  # pixels
DECK = ".deck"
# Looked at for faults of accessibility, which takes seconds a step: one theme at odd steps, the other at even ones.
LOOKED_AT = {("en", "wide"): ("light", "dark"), ("zh", "phone"): ("dark", "light")}
# Every element with words of its own that is narrower in letters than allowed.
SMALL = """(deck, least) => [...deck.querySelectorAll("*")].filter(one =>
    [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
    && one.getClientRects().length && parseFloat(getComputedStyle(one).fontSize) < least)
    .map(one => `${one.tagName} ${one.textContent} ${getComputedStyle(one).fontSize}`)"""
MOVING = (
    """deck => [...deck.querySelectorAll("*")].filter(one => getComputedStyle(one).animationName !== "none").length"""
)
# How much of the deck's colour is seen, 0 … 1, through all that it stands in.
SEEN = """deck => {
    let seen = 1
    for (let one = deck; one; one = one.parentElement ?? one.getRootNode().host) seen *= Number(getComputedStyle(one).opacity)
    return seen
}"""
DIMMED_AFTER = 1_800  # milliseconds; Streamlit dims what it draws again half a second after it asked, over a second
SIDEWAYS = "() => document.documentElement.scrollWidth > window.innerWidth"

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def shown(demo_home: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("log") / "dashboard.log"
    with served(demo_home(), log, pools=False, short_keys=True) as address:
        yield address


def opened(
    browser: Any,
    address: str,
    language: str,
    size: str,
    motion: str = "reduce",
    step: str = "",
    answers: Callable[[Any], None] | None = None,
) -> Any:
    """Return a page at a step; `answers` stands between the page and its server."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion=motion, color_scheme="light"
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    if answers is not None:
        page.route_web_socket("**/_stcore/stream*", answers)
    page.goto(f"{address}/demonstration?lang={language}" + (f"&step={step}" if step else ""))
    page.locator(f"{DECK} h2:not(:empty)").wait_for()
    return page


def settled(page: Any) -> None:
    """All of the step is there."""
    page.locator(f"{DECK} .waiting").wait_for(state="detached")
    page.wait_for_function(SETTLED)


def lie_over(one: Any, other: Any) -> bool:
    """Return whether two elements cover the same place of the screen."""
    first = one.bounding_box()
    second = other.bounding_box()
    across = first["x"] < second["x"] + second["width"] and second["x"] < first["x"] + first["width"]
    down = first["y"] < second["y"] + second["height"] and second["y"] < first["y"] + first["height"]
    return across and down


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", SIZES)
def test_eight_steps_are_told_from_the_keys_alone(browser: Any, shown: str, language: str, size: str) -> None:
    t = Texts(language)
    page = opened(browser, shown, language, size)
    for number, step in enumerate(DECK_STEPS):
        if number:
            page.keyboard.press("ArrowRight")
        settled(page)
        assert page.locator(f"{DECK} h2").inner_text() == t(f"demonstration.title_{step}")
        assert f"step={step}" in page.url
        assert page.locator(f"{DECK} .count").inner_text() == f"{number + 1} / {len(DECK_STEPS)}"
        deck = page.locator(DECK)
        assert deck.evaluate(SMALL, SMALLEST[size]) == []
        assert not page.evaluate(SIDEWAYS)
        assert deck.evaluate(MOVING) == 0  # as the reader asks for
        if (language, size) in LOOKED_AT:
            assert not in_theme(page, LOOKED_AT[language, size][number % 2])
            # Another theme is news of the same step: it stays marked.
            assert page.locator(f"{DECK} nav [aria-current]").inner_text() == str(number + 1)
            page.emulate_media(color_scheme="light")
            settled(page)
        if step == "sum":
            assert not lie_over(page.locator(f"{DECK} .bytes"), page.locator(f"{DECK} .big"))
        if step == "answer":
            assert page.locator(f"{DECK} .bandname").count() == page.locator(f"{DECK} .band").count() == 3
        if size == "wide":
            picture(page, f"demonstration-{number + 1}-{language}")
    page.keyboard.press("ArrowRight")  # there is no ninth
    assert f"step={DECK_STEPS[-1]}" in page.url
    page.keyboard.press("5")
    assert page.locator(f"{DECK} .huge").evaluate("one => getComputedStyle(one).fontSize") == "96px"
    page.keyboard.press("Home")
    assert f"step={DECK_STEPS[0]}" in page.url
    page.context.close()


def test_a_box_tells_its_bytes_to_the_pointer_and_to_the_keys(browser: Any, shown: str) -> None:
    page = opened(browser, shown, "en", "wide", step="ask")
    settled(page)
    box = page.locator(f"{DECK} .fly .box").nth(3)
    label = page.locator(f"{DECK} .bytes")
    box.hover()
    fourth = label.inner_text()
    assert fourth.startswith("4 of ") and label.is_visible()
    assert label.bounding_box()["y"] > box.bounding_box()["y"]  # below it
    page.locator(f"{DECK} .fly").focus()
    page.keyboard.press("ArrowDown")
    assert label.inner_text().startswith("5 of ")
    page.keyboard.press("ArrowUp")
    assert label.inner_text() == fourth
    assert "step=ask" in page.url  # the arrows of a grid turn no page
    page.context.close()


def test_a_link_opens_its_step_and_the_language_changes_by_a_key(browser: Any, shown: str) -> None:
    page = opened(browser, shown, "en", "wide", step="race")
    settled(page)
    assert page.locator(f"{DECK} h2").inner_text() == Texts("en")("demonstration.title_race")
    page.keyboard.press("l")
    page.get_by_text(Texts("zh")("demonstration.title_race")).wait_for()
    assert "step=race" in page.url and "lang=zh" in page.url
    page.keyboard.press("Escape")
    page.wait_for_url("**/overview*")
    page.context.close()


def test_no_step_is_dimmed_while_the_server_is_slow_to_answer(browser: Any, shown: str) -> None:
    """The audience looks at a step that stands, whatever the server works out meanwhile."""
    left = None  # messages that still come through; None = all

    def answers(page_side: Any) -> None:
        server_side = page_side.connect_to_server()

        def pass_on(message: Any) -> None:
            nonlocal left
            if left is None or left > 0:
                page_side.send(message)
            if left:
                left -= 1

        page_side.on_message(server_side.send)
        server_side.on_message(pass_on)

    page = opened(browser, shown, "en", "wide", step="parties", answers=answers)
    settled(page)
    left = 4  # that a script has begun, and no more
    page.emulate_media(color_scheme="dark")  # the page is drawn again
    page.locator("[data-stale=true] .deck").wait_for()
    page.wait_for_timeout(DIMMED_AFTER)
    assert page.locator(DECK).evaluate(SEEN) == 1
    page.context.close()


def test_numbers_move_and_end_where_the_still_has_them(browser: Any, shown: str) -> None:
    still = opened(browser, shown, "en", "wide", step="hosts")
    settled(still)
    places = "deck => [...deck.querySelectorAll('.work .lid')].map(one => one.getBoundingClientRect().x | 0)"
    end = still.locator(DECK).evaluate(places)
    moving = opened(browser, shown, "en", "wide", motion="no-preference", step="hosts")
    settled(moving)
    moving.keyboard.press("r")
    deck = moving.locator(DECK)
    assert deck.evaluate(MOVING) > 100
    begin = deck.evaluate(places)
    assert begin != end  # they come from the company before
    deck.evaluate("deck => Promise.all(deck.getAnimations({subtree: true}).map(one => one.finished)).then(() => 0)")
    assert deck.evaluate(places) == end
    for page in (still, moving):
        page.context.close()
