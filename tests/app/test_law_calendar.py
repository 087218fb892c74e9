"""The calendar of the law at the end of the Compliance page."""

from __future__ import annotations

from datetime import date

import pytest

from app.panels import frame
from app.texts import Texts
from backend.compliance.calendar import law_calendar
from backend.compliance.rule_pack import load_packs
from backend.i18n import Text
from backend.services import Glassleaf
from tests.app.conftest import Answers, Opened
from tests.app.reading_out import everything, says


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_ends_with_what_is_in_force_and_what_is_to_come(
    opened: Opened, answers: Answers, glassleaf: Glassleaf, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    before_any_report = glassleaf.compliance.calendar()
    answers["compliance.calendar"] = lambda model_id: before_any_report
    at = opened("compliance")
    at.get_by_key("language").set_value(language)
    at.run()
    shown, t = everything(at), Texts(language)
    assert not at.exception
    assert any(t("law.title") in box.label for box in at.expander) and not says(shown, "law.no_report", language)
    assert "2027-12-02" not in shown  # what nobody opened is not sent
    at.session_state["law_calendar"] = True  # open
    at.session_state["law_dates"] = "coming"
    shown = everything(at.run())
    assert says(shown, "law.no_report", language)
    assert t("law.change_starts", day="2027-12-02") in shown and t("law.whom_vendor") in shown
    at.session_state["law_dates"] = "unchecked"
    assert "GB/T 45574" in everything(at.run())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_rule_that_began_since_the_last_report_is_in_force_since_its_day(
    opened: Opened, answers: Answers, language: str
) -> None:
    found = law_calendar(load_packs(), date(2026, 11, 24), date(2026, 11, 19))
    answers["compliance.calendar"] = lambda model_id: found
    at = opened("compliance")
    at.get_by_key("language").set_value(language)
    at.session_state["law_calendar"] = True  # open
    shown, t = everything(at.run()), Texts(language)
    assert says(shown, "law.changed", language, since="2026-11-19", n=8)
    assert t("law.change_started", day="2026-11-20") in shown
    assert t.text(Text("2023/2225 Art. 18(3)", "2023/2225 第 18 条第 3 款")) in shown
