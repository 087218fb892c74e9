"""Finding one's way in a real browser: addresses and history, language, titles, the search, a phone's sidebar, paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pypdf import PdfReader

from app.texts import Texts
from tests.e2e.serving import NAVIGATION, PATIENCE, SETTLED, served

T, ZH = Texts("en"), Texts("zh")
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}

pytestmark = pytest.mark.e2e


def _opened(browser, size) -> Iterator[object]:
    context = browser.new_context(viewport=size, locale="en-US", reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(browser) -> Iterator[object]:
    yield from _opened(browser, WIDE)


@pytest.fixture
def phone(browser) -> Iterator[object]:
    yield from _opened(browser, PHONE)


def open_at(page, url: str, title: str) -> None:
    page.goto(url)
    shows(page, title)


def shows(page, title: str) -> None:
    """Wait until the page with this title stands."""
    page.get_by_role("heading", level=1, name=title, exact=True).wait_for()
    page.wait_for_timeout(100)  # until the script of a click has begun
    page.wait_for_function(SETTLED)


def go(page, title: str) -> None:
    page.locator(NAVIGATION).get_by_role("link", name=title, exact=True).click()
    shows(page, title)


def entries(page) -> int:
    return int(page.evaluate("history.length"))


def stands_at(page, path: str) -> None:
    """Wait until this is what the address bar shows."""
    page.wait_for_function("path => location.pathname + location.search === path", arg=path)


def speaks(page, language: str) -> None:
    page.wait_for_function("language => document.documentElement.lang === language", arg=language)


def test_one_click_is_one_entry_of_the_history_and_back_leads_to_the_page_before(address: str, page) -> None:
    open_at(page, f"{address}/structure", T("structure.title"))
    before = entries(page)
    page.locator(".st-key-tree_2 button").click()
    page.wait_for_url("**/structure?tree=3")
    go(page, T("importance.title"))
    go(page, T("structure.title"))
    stands_at(page, "/structure?tree=3")
    go(page, T("features.title"))
    stands_at(page, "/features")
    assert entries(page) == before + 4
    page.go_back()
    shows(page, T("structure.title"))
    page.go_back()
    shows(page, T("importance.title"))
    page.go_back()
    shows(page, T("structure.title"))
    page.go_back()
    page.wait_for_url("**/structure")
    page.get_by_text(T("structure.tree", tree=1)).first.wait_for()
    assert entries(page) == before + 4


def test_the_language_is_in_the_link_in_the_document_and_kept_when_the_page_is_loaded_again(address: str, page) -> None:
    open_at(page, f"{address}/features", T("features.title"))
    speaks(page, "en")
    page.get_by_role("radio", name="中文").click()
    shows(page, ZH("features.title"))
    page.wait_for_url("**/features?lang=zh")
    role = ZH("sidebar.role_operator")
    # menus, too
    page.wait_for_function("role => document.querySelector('.st-key-role input').value === role", arg=role)
    page.reload()
    shows(page, ZH("features.title"))
    speaks(page, "zh-CN")
    before = entries(page)
    go(page, ZH("importance.title"))
    stands_at(page, "/importance?lang=zh")
    assert entries(page) == before + 1


def test_every_page_has_a_title_and_its_place_in_the_navigation(address: str, page) -> None:
    open_at(page, address, T("overview.title"))
    navigation = page.get_by_role("navigation", name=T("nav.label"))
    for name in ("overview", "features"):
        go(page, T(f"{name}.title"))
        page.wait_for_function("title => document.title.startsWith(title)", arg=T(f"{name}.title"))
        assert page.title().count(" · ") >= 1
        current = navigation.locator("[aria-current=page]")
        current.filter(has_text=T(f"{name}.title")).wait_for()
        assert current.count() == 1


@pytest.mark.parametrize(("asked", "title"), [("overview", "overview.title"), ("no-such-page", "not_found.title")])
def test_a_guessed_address_has_a_page(address: str, page, asked: str, title: str) -> None:
    open_at(page, f"{address}/{asked}", T(title))
    assert page.get_by_role("dialog").count() == 0
    go(page, T("features.title"))
    stands_at(page, "/features")


def test_the_search_is_a_key_away_and_leads_to_the_place(address: str, page) -> None:
    open_at(page, f"{address}/help", T("help.title"))
    page.get_by_role("button", name=T("search.open")).wait_for()
    page.keyboard.press("Control+k")
    field = page.get_by_role("textbox", name=T("search.field"))
    field.wait_for()
    page.wait_for_function("document.activeElement.matches('.st-key-search_typed input')")
    page.keyboard.type("late payments")
    link = page.get_by_role("dialog").get_by_role("link").first
    link.wait_for()
    before = entries(page)
    link.press("Enter")
    shows(page, T("features.title"))
    page.wait_for_url("**feature=*")
    page.get_by_role("dialog").wait_for(state="detached")
    assert entries(page) == before + 1


def test_the_first_steps_do_not_come_back_once_skipped(address: str, page) -> None:
    open_at(page, address, T("overview.title"))
    page.get_by_role("button", name=T("walk.skip")).click()
    page.locator(".st-key-walk").wait_for(state="detached")
    page.wait_for_function("document.cookie.includes('glassleaf_walked')")
    page.goto(f"{address}/score")
    shows(page, T("score.title"))
    assert page.locator(".st-key-walk").count() == 0


def test_on_a_phone_the_sidebar_makes_way_for_the_page_that_was_chosen_in_it(address: str, phone) -> None:
    open_at(phone, address, T("overview.title"))
    phone.get_by_test_id("stExpandSidebarButton").click()
    go(phone, T("features.title"))
    phone.wait_for_function(
        "document.querySelector('[data-testid=stSidebar]')?.getAttribute('aria-expanded') !== 'true'"
    )
    phone.wait_for_function("document.querySelector('h1')?.getBoundingClientRect().x >= 0")
    phone.wait_for_function("document.elementFromPoint(100, 200)?.closest('[data-testid=stSidebar]') === null")


def test_why_a_file_is_not_taken_stands_beside_it_in_the_readers_language(address: str, phone, tmp_path: Path) -> None:
    large, strange = tmp_path / "people.csv", tmp_path / "people.zip"
    large.write_bytes(b"id\n" * 2_000_000)
    strange.write_bytes(b"PK")
    open_at(phone, f"{address}/people?lang=zh", ZH("people.title"))
    for file, why in ((large, ZH("nav.upload_large", size="5 MB")), (strange, ZH("nav.upload_kind"))):
        phone.locator("input[type=file]").set_input_files(file)
        told = phone.get_by_role("alert").filter(has_text=why)
        told.wait_for()
        assert told.inner_text() == why and told.evaluate("node => node.getBoundingClientRect().width") > 200


def test_a_menu_speaks_the_readers_language(address: str, page) -> None:
    open_at(page, f"{address}/features?lang=zh", ZH("features.title"))
    page.locator(".st-key-features_filter button").first.click()
    page.get_by_test_id("stMultiSelect").first.locator("input").click()
    page.get_by_role("option", name=ZH("nav.menu_all"), exact=True).wait_for()
    page.keyboard.type("zzz")
    page.get_by_role("option", name=ZH("nav.menu_none"), exact=True).wait_for()


def test_a_server_that_is_gone_is_told_in_the_readers_language(browser, tmp_path: Path) -> None:
    context = browser.new_context(viewport=PHONE, locale="zh-CN")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    with served(tmp_path / "home", tmp_path / "dashboard.log", pools=False) as url:
        open_at(page, url, ZH("overview.title"))
    page.get_by_role("heading", name=ZH("nav.gone"), exact=True).wait_for()
    assert page.get_by_text(ZH("nav.gone_until"), exact=True).is_visible()
    assert not page.get_by_text("streamlit run").is_visible()
    context.close()


def test_on_paper_stands_the_whole_page_and_nothing_else(address: str, page, tmp_path: Path) -> None:
    open_at(page, f"{address}/compliance", T("compliance.title"))
    page.get_by_text(T("law.title")).wait_for()
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    printed = " ".join(" ".join(sheet.extract_text() for sheet in PdfReader(tmp_path / "page.pdf").pages).split())
    assert T("compliance.title") in printed
    assert T("law.title") in printed  # among the last lines, far below the first screen
    for gone in ("attack_lab.title", "nav.protection"):
        assert T(gone) not in printed


def test_a_wide_window_draws_no_chart_that_paper_would_cut(address: str, page) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    open_at(page, f"{address}/structure", T("structure.title"))
    widths = page.locator(".js-plotly-plot").evaluate_all(
        "all => all.map(chart => chart.getBoundingClientRect().width)"
    )
    assert widths and max(widths) <= 980  # what assets/print.css makes fit
