"""Every page in both languages, widths and themes is looked over by axe-core: nothing serious, nothing critical.

What is not marked slow opens each page twice: wide and English in one theme, on a phone and in Chinese in the other.

No page says more as it opens than somebody reads.

The browser has nothing to complain about meanwhile: no error, no failed request, no request to another machine.

axe-core comes with axe-playwright-python as a file of the package, so that nothing is fetched. What it leaves out is measured here:
words in charts, which it judges by another colour than the one they are drawn in, and targets that are small but stand apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.texts import Texts
from tests.e2e.serving import OPEN, PATIENCE, ROOT, SETTLED, served, troubles

T = Texts("en")
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
GRAVE = ("serious", "critical")
AXE = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
MEASURED = (ROOT / "tests" / "e2e" / "measured.js").read_text(encoding="utf-8")
WORDS = (ROOT / "tests" / "e2e" / "words.js").read_text(encoding="utf-8")
MOST_WORDS = {"en": 250, "zh": 450}  # that a page says as it opens, folds closed: English words, or Chinese characters
# The page that was asked for has come, and not only its address.
HEADED = "title => [...document.querySelectorAll('h1')].some(head => head.innerText.trim() === title)"
PAGES = sorted(file.stem for file in (ROOT / "pages").glob("[a-z]*.py") if file.stem != "not_found")

pytestmark = pytest.mark.e2e


EACH_ONCE = (("light", PAGES[::2]), ("dark", PAGES[1::2]))
THE_OTHER_THEME = (("light", PAGES[1::2]), ("dark", PAGES[::2]))
BOTH_THEMES = (("light", PAGES), ("dark", PAGES))


@pytest.mark.parametrize(
    ("size", "locale", "pages_of_themes"),
    [
        pytest.param("wide", "en-US", EACH_ONCE, id="wide-en"),
        pytest.param("phone", "zh-CN", THE_OTHER_THEME, id="phone-zh"),
        pytest.param("wide", "en-US", BOTH_THEMES, id="wide-en-both", marks=pytest.mark.slow),
        pytest.param("wide", "zh-CN", BOTH_THEMES, id="wide-zh-both", marks=pytest.mark.slow),
        pytest.param("phone", "en-US", BOTH_THEMES, id="phone-en-both", marks=pytest.mark.slow),
        pytest.param("phone", "zh-CN", BOTH_THEMES, id="phone-zh-both", marks=pytest.mark.slow),
    ],
)
def test_no_page_has_a_grave_fault(
    address: str, browser: Any, size: str, locale: str, pages_of_themes: tuple[tuple[str, list[str]], ...]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe: pip install -r requirements-dev.txt")
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, locale=locale, reduced_motion="reduce", color_scheme="light"
    )
    try:
        page = context.new_page()
        seen = troubles(page)
        page.goto(address, timeout=PATIENCE)
        page.wait_for_function(SETTLED, timeout=PATIENCE)
        page.evaluate(f"{axe.AXE_SCRIPT}; 0")
        page.add_style_tag(content="* { transition: none !important }")  # colours on their way are no fault
        found = []
        read = {}
        texts = Texts(locale[:2])
        titles = {name: texts(f"{name}.title") for name in PAGES}
        for theme, pages in pages_of_themes:
            page.emulate_media(color_scheme=theme)
            page.wait_for_timeout(400)  # the theme draws the page again; a page asked for meanwhile does not come
            page.wait_for_function(SETTLED, timeout=PATIENCE)
            for name in pages:
                page.evaluate(OPEN, name)
                page.wait_for_url(f"**/{'' if name == 'overview' else name}*", timeout=PATIENCE)
                page.wait_for_timeout(400)  # until the script has begun, also if its theme has just changed
                if name != "demonstration":  # whose steps have titles of their own
                    page.wait_for_function(HEADED, arg=titles[name], timeout=PATIENCE)
                page.wait_for_function(SETTLED, timeout=PATIENCE)
                found += [f"{name}, {theme}: {fault}" for fault in lasting(page)]
                read[name] = page.evaluate(WORDS)[locale[:2]]
        assert not found, "\n".join(found)
        print(f"{MOST_WORDS[locale[:2]]} may be read at first:", read)  # noqa: T201 - what the walk measures
        assert {name: words for name, words in read.items() if words > MOST_WORDS[locale[:2]]} == {}
        assert not seen
    finally:
        context.close()


def test_the_answer_of_a_score_has_no_grave_fault(demo_home: Callable[[], Path], browser: Any, tmp_path: Path) -> None:
    width, height = SIZES["wide"]
    with served(demo_home(), tmp_path / "dashboard.log", pools=False, short_keys=True) as address:
        context = browser.new_context(
            viewport={"width": width, "height": height}, locale="en-US", reduced_motion="reduce", color_scheme="light"
        )
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{address}/score")
        page.get_by_role("button", name=T("score.go_alone")).click()
        page.locator("summary", has_text=T("score.how")).click()
        page.get_by_text(T("score.textbook_here")).first.wait_for()
        assert not in_theme(page, "light")
        assert page.locator(".glassleaf-drawing > svg, .vega-embed").count() == 4
        on_a_phone(page)
        assert not in_theme(page, "dark")
        page.set_viewport_size({"width": width, "height": height})
        page.locator(".st-key-engine_panel button").click()  # its window stands beside the app
        page.get_by_text(T("engine.first_rlwe")).wait_for()
        assert not in_theme(page, "dark")
        on_a_phone(page)
        assert not in_theme(page, "light")
        context.close()


def on_a_phone(page: Any) -> None:
    width, height = SIZES["phone"]
    page.set_viewport_size({"width": width, "height": height})


def in_theme(page: Any, theme: str) -> list[str]:
    """The faults of a page that stands still, in a theme."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe: pip install -r requirements-dev.txt")
    page.evaluate(f"{axe.AXE_SCRIPT}; 0")
    page.add_style_tag(content="* { transition: none !important }")
    page.emulate_media(color_scheme=theme)
    page.wait_for_timeout(150)  # until the script has begun
    page.wait_for_function(SETTLED)
    return lasting(page)


def in_both_themes(page: Any) -> list[str]:
    """The faults of a page that stands still, in one theme and then in the other."""
    return in_theme(page, "light") + in_theme(page, "dark")


def lasting(page: Any) -> list[str]:
    """Return the faults that are seen twice: a page that is drawn again fades meanwhile."""
    seen = faults(page)
    if not seen:
        return []
    page.wait_for_timeout(1500)
    page.wait_for_function(SETTLED, timeout=PATIENCE)
    again = faults(page)
    return [fault for fault in seen if fault in again]


def faults(page: Any) -> list[str]:
    """What axe finds, and what is measured."""
    violations = page.evaluate("options => axe.run(document, options).then(found => found.violations)", AXE)
    grave = [
        f"{rule['id']} ({rule['impact']}) {node['target']}: {node['failureSummary']}"
        for rule in violations
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]
    return grave + page.evaluate(MEASURED)


FAULTY = """<main lang="en" data-testid="stMain">
    <p style="color: #999; background: #fff">pale</p><img src="x.png">
    <svg viewBox="0 0 200 80" width="150" height="60"><text y="30" font-size="12">small</text></svg>
    <svg width="150" height="60" font-size="12" fill="#8c8c8c"><text y="30">grey</text><text y="50">●</text></svg>
    <style>button {width: 20px; height: 20px; padding: 0; border: 0}</style>
    <div style="display: flex"><button>x</button><button>y</button><button disabled>z</button></div></main>"""


def test_a_fault_is_found(browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe: pip install -r requirements-dev.txt")
    page = browser.new_page()
    try:
        page.set_content(FAULTY)
        page.evaluate(f"{axe.AXE_SCRIPT}; 0")
        page.add_style_tag(content="* { transition: none !important }")  # colours on their way are no fault
        found = faults(page)
        assert {fault.split(" ")[0] for fault in found} >= {"color-contrast", "image-alt", "target-size"}
        assert found[-4:] == [
            "chart-text: small is 9.0 px",
            "chart-contrast: grey has 3.36:1 (rgb(140, 140, 140) on 255,255,255)",
            "target: x is 20 x 20 px",
            "target: y is 20 x 20 px",
        ]
    finally:
        page.close()
