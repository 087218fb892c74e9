"""Every page in both languages, widths and themes is looked over by axe-core: nothing serious, nothing critical.

axe-core comes with axe-playwright-python as a file of the package, so that nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from app.texts import Texts
from tests.e2e.serving import OPEN, PATIENCE, ROOT, SETTLED, served

T = Texts("en")
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
GRAVE = ("serious", "critical")
LOOK = ["color-contrast"]  # what the theme changes
PAGES = sorted(file.stem for file in (ROOT / "pages").glob("[a-z]*.py") if file.stem != "not_found")

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("size", SIZES)
def test_no_page_has_a_grave_fault(address: str, browser: Any, locale: str, size: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe: pip install -r requirements-dev.txt")
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, locale=locale, reduced_motion="reduce", color_scheme="light"
    )
    try:
        page = context.new_page()
        page.goto(address, timeout=PATIENCE)
        page.wait_for_function(SETTLED, timeout=PATIENCE)
        page.evaluate(f"{axe.AXE_SCRIPT}; 0")
        page.add_style_tag(content="* { transition: none !important }")  # colours on their way are no fault
        found = []
        for name, themes in zip(PAGES, cycle([("light", "dark"), ("dark", "light")])):
            page.evaluate(OPEN, name)
            page.wait_for_url(f"**/{'' if name == 'overview' else name}*", timeout=PATIENCE)
            for theme in themes:
                page.emulate_media(color_scheme=theme)
                page.wait_for_timeout(150)  # until the script has begun
                page.wait_for_function(SETTLED, timeout=PATIENCE)
                if seen := faults(page, theme):  # a page that is drawn again fades; what stands is seen twice
                    page.wait_for_timeout(1500)
                    page.wait_for_function(SETTLED, timeout=PATIENCE)
                    again = faults(page, theme)
                    found += [f"{name}, {theme}: {fault}" for fault in seen if fault in again]
        assert not found, "\n".join(found)
    finally:
        context.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_answer_of_a_score_has_no_grave_fault(
    demo_home: Callable[[], Path], browser: Any, tmp_path: Path, size: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe: pip install -r requirements-dev.txt")
    width, height = SIZES[size]
    with served(demo_home(), tmp_path / "dashboard.log", pools=False) as address:
        context = browser.new_context(
            viewport={"width": width, "height": height}, locale="en-US", reduced_motion="reduce", color_scheme="light"
        )
        page = context.new_page()
        page.goto(f"{address}/score", timeout=PATIENCE)
        page.get_by_role("button", name=T("score.go")).click(timeout=PATIENCE)
        page.locator("summary", has_text=T("score.how")).click(timeout=PATIENCE)
        page.get_by_text(T("score.textbook_here")).first.wait_for(timeout=PATIENCE)
        page.evaluate(f"{axe.AXE_SCRIPT}; 0")
        page.add_style_tag(content="* { transition: none !important }")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.wait_for_timeout(1500)  # a page that is drawn again fades
            page.wait_for_function(SETTLED, timeout=PATIENCE)
            assert page.locator(".glassleaf-drawing > svg").count() == 4
            assert not faults(page, theme)
        context.close()


def faults(page: Any, theme: str) -> list[str]:
    """What axe finds: everything on the light page, on the dark one what a theme can change."""
    options: dict[str, object] = {"resultTypes": ["violations"]}
    if theme == "dark":
        options["runOnly"] = LOOK
    result = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{rule['id']} ({rule['impact']}) {node['target']}: {node['failureSummary']}"
        for rule in result["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]


def test_a_fault_is_found(browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="no axe: pip install -r requirements-dev.txt")
    page = browser.new_page()
    try:
        page.set_content("<main lang='en'><p style='color: #999; background: #fff'>pale</p><img src='x.png'></main>")
        page.evaluate(f"{axe.AXE_SCRIPT}; 0")
        page.add_style_tag(content="* { transition: none !important }")  # colours on their way are no fault
        assert {fault.split(" ")[0] for fault in faults(page, "light")} >= {"color-contrast", "image-alt"}
    finally:
        page.close()
