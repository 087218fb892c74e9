"""A page that is drawn again asks nothing that has not changed, and makes no table that nobody looks at; counted, not timed."""

import asyncio
import os
import sys
import threading
import time
from collections import UserDict
from collections.abc import Iterator, KeysView
from contextlib import contextmanager
from pathlib import Path

import plotly.graph_objects as go
import pytest
import streamlit as st
from sqlalchemy import event
from sqlalchemy.engine import Engine
from streamlit.testing.v1 import AppTest

from app import dashboard
from app.panels import charts, frame
from app.texts import Texts
from backend.compliance.rule_pack import load_packs
from backend.services import compliance
from tests.app.conftest import _fresh

PAGES = ("overview", "features", "structure", "importance", "model_card", "compliance", "compare_models")


@contextmanager
def queries() -> Iterator[list[str]]:
    """Statements that reach a database meanwhile."""
    seen: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def age(home: Path) -> None:
    """Have every database be changed a minute ago, as on any page that is opened later."""
    then = time.time_ns() - 60 * 10**9
    for file in home.rglob("store.db"):
        os.utime(file, ns=(then, then))


@pytest.fixture(scope="module")
def walked(home: Path) -> Iterator[tuple[Path, AppTest]]:
    """A session that has seen every page once."""
    with pytest.MonkeyPatch.context() as patch:
        at = _fresh(home, patch)("overview")
        for page in PAGES:
            assert not at.switch_page(f"../pages/{page}.py").run().exception
        age(home)
        yield home, at


@pytest.mark.parametrize("page", PAGES)
def test_a_warm_page_asks_the_store_for_nothing(walked: tuple[Path, AppTest], page: str) -> None:
    home, at = walked
    at.switch_page(f"../pages/{page}.py").run()
    age(home)  # whatever it or a job has just written
    at.run()  # what this page alone has read
    before = {file: file.stat().st_mtime_ns for file in home.rglob("store.db")}
    with queries() as asked:
        at.run()
    assert not at.exception
    assert before == {file: file.stat().st_mtime_ns for file in before}  # a look writes nothing
    assert asked == [], "; ".join(asked)


@pytest.mark.parametrize(("page", "others"), [("model_card", 0), ("importance", 0), ("structure", 0)])
def test_what_is_in_a_box_is_made_once_it_is_opened(
    walked: tuple[Path, AppTest], monkeypatch: pytest.MonkeyPatch, page: str, others: int
) -> None:
    _, at = walked
    assert not at.switch_page(f"../pages/{page}.py").run().exception
    opened = len(at.dataframe)
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    at.switch_page("../pages/overview.py").run()
    assert not at.switch_page(f"../pages/{page}.py").run().exception
    assert opened > len(at.dataframe) == others
    assert (
        at.get("plotly_chart")
        or at.get("vega_lite_chart")
        or any("data-svg" in html.proto.body for html in at.get("html"))
    )


class AskedUser(UserDict[str, str]):
    """Streamlit's user where nobody signs in; it counts how often it is read."""

    times = 0

    def keys(self) -> KeysView[str]:
        self.times += 1
        return super().keys()


@pytest.mark.parametrize("page", [*PAGES, "report", "train"])
def test_a_page_asks_once_who_is_signed_in(
    walked: tuple[Path, AppTest], monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    _, at = walked
    asked = AskedUser()
    monkeypatch.setattr(st, "user", asked)
    assert not at.switch_page(f"../pages/{page}.py").run().exception
    assert asked.times == 1
    assert "account" not in at.session_state and "service" not in at.session_state  # callbacks and fragments ask again


def test_a_warm_page_draws_its_tree_no_second_time(
    walked: tuple[Path, AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, at = walked
    at.switch_page("../pages/structure.py").run()
    drawn, real = [], charts.figure
    monkeypatch.setattr(charts, "figure", lambda *given, **more: drawn.append(given) or real(*given, **more))
    assert not at.run().exception and at.get("plotly_chart")
    assert not drawn


def test_a_chart_is_drawn_again_for_another_language_look_or_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @charts.cached
    def draw(t: Texts, shown: list[int], height: int) -> go.Figure:
        seen.append(t.language)
        return charts.figure(height)

    one, other = [1], [1]
    first = draw(Texts("en"), one, 100)
    assert draw(Texts("en"), one, 100) is first and seen == ["en"]
    draw(Texts("zh"), one, 100)
    draw(Texts("en"), other, 100)
    assert draw(Texts("en"), one, 200).layout.height == 200
    monkeypatch.setattr(charts, "dark", lambda: True)
    assert draw(Texts("en"), one, 100) is not first
    assert seen == ["en", "zh", "en", "en", "en"]


def test_a_server_prepares_what_its_first_visitor_would_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    called = threading.Event()
    # patched: reading the rule packs takes a second
    monkeypatch.setattr(compliance, "prepare", called.set)

    async def served() -> None:
        async with dashboard.served(dashboard.app):
            assert await asyncio.to_thread(called.wait, 60)

    asyncio.run(served())
    panels = Path(frame.__file__).parent.glob("[a-z]*.py")
    assert {f"app.panels.{panel.stem}" for panel in panels} <= sys.modules.keys()


def test_preparing_reads_the_rule_packs() -> None:
    compliance.prepare()
    assert load_packs.cache_info().currsize == 1
