"""Messy files of one's own in a real browser: each is mended where it lies, trained on, scored and explained.

Presses are counted, and the words that each step shows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.texts import Texts
from tests.e2e.serving import NAVIGATION, PATIENCE, ROOT, SETTLED, served, troubles
from tests.messy import FILES, MessyFile

T = Texts("en")
MOST_PRESSES = 20  # from the file to a score with its reasons
WORDS = (ROOT / "tests" / "e2e" / "words.js").read_text(encoding="utf-8")
NEW_MODEL = """([words, known]) => {
    const links = [...document.querySelectorAll("[data-testid=stMain] a")].filter(link => link.textContent.includes(words));
    return links.map(link => link.href).find(href => !known.includes(href));
}"""  # the address of the model that was trained last, which the page may show before it draws the training that has begun

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("own")
    with served(folder / "home", folder / "dashboard.log", pools=False, short_keys=True) as url:
        yield url


class Hand:
    """Presses what it is told to, waits until the page has answered, and counts."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.presses = 0
        self.words: list[int] = []

    def look(self) -> None:
        """Count the words of a step as it stands, folds closed."""
        self.words.append(self.page.evaluate(WORDS)["en"])

    def settle(self) -> None:
        self.page.wait_for_timeout(100)  # until the script of a press has begun
        self.page.wait_for_function(SETTLED)

    def press(self, place: str) -> None:
        self.page.locator(place).click()
        self.presses += 1
        self.settle()

    def button(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()
        self.presses += 1
        self.settle()

    def choose(self, menu: Any, name: str) -> None:
        """Two presses: the menu, and what is chosen in it; a menu that the page draws anew closes, and is opened again."""
        option = self.page.get_by_role("option", name=name, exact=True)
        while not option.is_visible():
            menu.click()
            self.page.wait_for_timeout(150)
        option.click()
        self.presses += 2
        self.settle()


def read(hand: Hand, file: MessyFile, folder: Path) -> None:
    """The file, and what it leaves open."""
    path = folder / file.name
    path.write_bytes(file.data)
    hand.page.locator("input[type=file]").first.set_input_files(path)
    hand.presses += 1
    for question, answer in file.answers.items():
        words = {"encoding": f"upload.encoding_{answer}", "header": "upload.header_row"}[question]
        hand.page.get_by_text(T(words, row=answer), exact=True).click()
        hand.presses += 1
    hand.page.get_by_role("heading", name=T("own_data.step_outcome")).wait_for()
    hand.settle()


def mended(hand: Hand, file: MessyFile) -> None:
    """What is predicted, whose column is whose, and each mend by one press in its row."""
    hand.look()
    hand.choose(hand.page.get_by_role("combobox", name=T("own_data.label")), file.label)
    for reason in file.leave_out:
        hand.press(f"[class*=_leave_out_{reason}] label")
    if file.one_spelling:
        hand.press("[class*=_one_spelling_] label")
    hand.page.locator("[class*=_positive_] label").filter(has_text=file.positive).click()
    hand.presses += 1
    hand.settle()
    hand.button(T("own_data.next"))
    first = hand.page.locator("[class*=st-key-own_][class*=_party_]").first
    hand.choose(first.get_by_role("combobox"), T("own_data.guest_usual"))
    hand.press(".st-key-own_give_1 button")
    for column, mend in file.mends.items():
        places = f"[class*=_mend_{column}_][class*=_{mend}] button"
        while hand.page.locator(places).count():
            hand.press(f"{places} >> nth=0")
    hand.look()
    hand.button(T("own_data.next"))
    hand.look()
    hand.button(T("own_data.make"))
    hand.page.get_by_role("link", name=T("own_data.to_train")).click()
    hand.presses += 1
    hand.page.get_by_role("heading", level=1, name=T("train.title")).wait_for()
    hand.settle()


def trained(hand: Hand, known: list[str]) -> None:
    """A model beside those that are `known` by their addresses, which is then known, too."""
    hand.page.get_by_role("radio", name=T("train.cipher_none")).click()
    hand.presses += 1
    hand.settle()
    hand.look()
    hand.button(T("train.go"))
    found = hand.page.wait_for_function(NEW_MODEL, arg=[T("train.open"), known])
    known.append(found.json_value())
    hand.page.get_by_role("link", name=T("train.open")).click()
    hand.presses += 1
    hand.page.get_by_role("heading", level=1, name=T("overview.title")).wait_for()


def explained(hand: Hand) -> None:
    """A score of the opened model, with its reasons."""
    hand.page.locator(NAVIGATION).get_by_role("link", name=T("score.title"), exact=True).click()
    hand.page.get_by_role("heading", level=1, name=T("score.title")).wait_for()
    hand.settle()
    hand.page.get_by_role("button", name=T("score.go_why")).click()
    hand.presses += 2
    hand.page.locator(".st-key-reasons_again").wait_for()
    hand.look()


def test_every_messy_file_ends_at_a_model_by_few_presses_and_without_a_document(
    address: str, browser: Any, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US", reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    seen = troubles(page)
    counted = {}
    models: list[str] = []
    try:
        for name, file in FILES.items():
            begun = time.monotonic()
            hand = Hand(page)
            page.goto(f"{address}/own_data")
            page.get_by_role("heading", level=1, name=T("own_data.title")).wait_for()
            hand.settle()
            read(hand, file, tmp_path)
            mended(hand, file)
            trained(hand, models)
            explained(hand)
            counted[name] = hand.presses
            seconds = time.monotonic() - begun
            print(f"{name}: {hand.presses} presses, {seconds:.1f} s, {hand.words} words a step")  # noqa: T201 - what the walk measures
        assert max(counted.values()) <= MOST_PRESSES and not seen
    except Exception as error:
        error.add_note("The page said:\n" + page.inner_text("body"))
        raise
    finally:
        context.close()
