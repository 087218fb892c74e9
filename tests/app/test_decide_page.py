"""The line is looked at, proposed by one person and approved by another, on one page."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import session
from app.texts import Texts, percent
from backend.services.policies import DEMO_APPROVER, DEMO_OWNER, DEMO_REASON
from backend.services.roles import OPERATOR, REGULATOR
from tests.app.conftest import Opened, _fresh
from tests.app.reading_out import everything, says

T = Texts("en")


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Pages of a home of this file's own: a line that is approved holds for everybody."""
    return _fresh(home, monkeypatch)


def sent(at: AppTest, key: str) -> AppTest:
    return next(button for button in at.button if button.key == key).click().run()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_says_what_a_line_means_and_which_one_holds(opened: Opened, language: str) -> None:
    at = opened("decide", lang=language)
    assert not at.exception and says(at, "decide.sentence_binary", language)
    held = session.service().policies.in_force("latest")
    assert says(at, "policy.by" if held.is_set else "policy.base_rate", language)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_policy_that_the_demo_brings_along_is_in_the_readers_language(
    home: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    service = session._service(str(home))
    service.policies.open_demo(service.models.get("latest").id)
    shown = everything(_fresh(home, monkeypatch)("decide", lang=language))
    for key, words in (("owner", DEMO_OWNER), ("approver", DEMO_APPROVER), ("reason", DEMO_REASON)):
        assert T(f"document.demo_{key}") == words
        assert Texts(language)(f"document.demo_{key}") in shown
        assert language == "en" or words not in shown


def test_a_line_is_proposed_and_a_second_person_approves_it(opened: Opened) -> None:
    at = opened("decide", role=OPERATOR)
    before = session.service().policies.in_force("latest").version
    at.slider(key="decide_lines").set_value((12, 34)).run()
    assert says(at, "decide.sentence_binary", line=percent(0.34))
    at.toggle(key="decide_points").set_value(True).run()
    at.number_input(key="decide_base").set_value(500).run()
    at.selectbox(key="decide_treat_no_host").set_value("refuse").run()
    at.text_input(key="decide_owner").set_value("Olga")
    at.text_input(key="decide_person").set_value("Ana")
    at.text_area(key="decide_reason").set_value("looked at on the page")
    at = sent(at, "decide_propose_go")
    assert not at.exception and says(at, "policy.waits")
    assert session.service().policies.in_force("latest").version == before

    for person, holds in (("Ana", False), ("Rita", True)):
        at = opened("decide", role=REGULATOR)
        at.text_input(key="decide_person").set_value(person)
        at = sent(at, "decide_approve_go")
        assert not at.exception
        assert says(at, "policy_needs_second_person") is not holds
        assert (session.service().policies.in_force("latest").decline_at == 0.34) is holds
    assert says(at, "policy.three_above", refer=percent(0.12), decline=percent(0.34))
    held = session.service().policies.in_force("latest")
    assert held.points is not None and (held.points.base_points, held.treatments.no_host) == (500, "refuse")
    assert says(at, "policy.points_are", base="500")
    # a line that is looked at decides nothing: another session finds the approved one
    at.slider(key="decide_lines").set_value((50, 60)).run()
    again = opened("decide")
    assert again.slider(key="decide_lines").value == (12, 34) and says(again, "decide.what_if")


def test_gain_and_loss_show_the_most_profitable_line(opened: Opened) -> None:
    at = opened("decide")
    assert not says(at, "decide.profit")
    at.number_input(key="decide_gain").set_value(100.0)
    at.number_input(key="decide_loss").set_value(500.0).run()
    assert not at.exception and says(at, "decide.profit")
