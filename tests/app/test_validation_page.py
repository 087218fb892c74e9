"""The Validation page: offered where there is none, every test with its verdict, what an operator switched off, and it can be stopped."""

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.panels import frame
from app.texts import Texts, markdown
from backend.services import Glassleaf
from backend.services.validation import Validation, ValidationRequest
from tests.app.conftest import Answers, Opened, World, job_of
from tests.app.reading_out import everything, says
from tests.app.test_nothing_leaks import leaks

T = Texts("en")


@pytest.fixture(scope="module")
def done(glassleaf: Glassleaf, world: World) -> Validation:
    return glassleaf.validation.start(ValidationRequest(world.record.id, cipher="none", samples=100)).get()


def test_without_a_validation_the_page_offers_one(opened: Opened, answers: Answers) -> None:
    answers["validation.last"] = lambda model_id: None
    at = opened("validation")
    assert not at.exception and says(at, "verdict_no_validation")
    assert at.button(key="validation_go").label == T("validation.go")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_test_stands_there_with_its_verdict_and_nothing_leaks(
    opened: Opened, answers: Answers, done: Validation, world: World, language: str
) -> None:
    answers["validation.last"] = lambda model_id: done
    at = opened("validation", lang=language)
    t, text = Texts(language), everything(at)
    assert not at.exception
    missing = [test.id for test in done.tests if t(f"validation.test_{test.id}") not in text]
    assert not missing
    assert all(markdown(t.text(test.source)) in text for test in done.tests)
    assert language == "en" or not [test.id for test in done.tests if test.source.en in text]
    assert not leaks(world, text)


def words_of_bars(at: AppTest) -> list[str]:
    """What stands above the bars of a page, a line each."""
    found = []
    for chart in at.get("vega_lite_chart"):
        for layer in json.loads(chart.proto.spec)["layer"]:
            found += [row["words"] for row in layer["data"]["values"] if "words" in row]
    return found


def test_what_passes_is_one_press_away_and_no_figure_is_said_to_stand_where_its_bar_is_cut(
    opened: Opened, answers: Answers, done: Validation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *rest = (test for test in done.tests if test.verdict == "pass" and test.figures)
    [one, *_] = first.figures
    far = replace(one, sense="max", fail=1.0, verdict="fail", figure=replace(one.figure, value=5.0, low=4.0, high=6.0))
    failed = replace(first, verdict="fail", figures=(far,))
    answers["validation.last"] = lambda model_id: replace(done, tests=(failed, *rest))
    monkeypatch.setattr(frame, "BOXES_OPEN", False)
    page = opened("validation")
    text = everything(page)
    assert any("≥ 200\u00a0% · fails" in words for words in words_of_bars(page))
    assert T(f"validation.what_{first.id}") in text
    assert not [test.id for test in rest if T(f"validation.what_{test.id}") in text]


def test_what_an_operator_changed_and_a_host_refused_is_shown(
    opened: Opened, answers: Answers, done: Validation
) -> None:
    first, *rest = done.tests
    off = replace(first, verdict="off", because="second line, file 17", figures=())
    changed = replace(done, tests=(off, *rest), tightened=("auc",), unexamined=(("telecom", "gender"),))
    answers["validation.last"] = lambda model_id: changed
    text = everything(opened("validation"))
    for words in ("second line, file 17", "Tightened by the operator", "Not examined", "Gender of the subscriber"):
        assert words in text


def test_a_press_validates_and_it_can_be_stopped(opened: Opened, world: World) -> None:
    at = opened("validation")
    at.button(key="validation_go").click().run()
    job = job_of(f"validation:{world.record.id}")
    job.cancel()
    job.wait(60)
    at.run()
    assert not at.exception and job.state in ("cancelled", "done")
