"""Less discriminatory alternatives on the Compliance page: a search in, the frontier and one model out, a choice with its reason."""

from pathlib import Path

import pytest

from app import session
from app.texts import Texts
from backend.services.alternatives import AlternativesRequest
from backend.store.reviews import REASON_MIN
from tests.app.conftest import Opened, World, _fresh, job_of
from tests.app.reading_out import says

T = Texts("en")


@pytest.fixture
def opened(home: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    return _fresh(home, monkeypatch)  # a home of its own: what is searched registers models


@pytest.fixture(scope="module")
def searched(home: Path, world: World) -> str:
    service = session._service(str(home))
    request = AlternativesRequest(world.record.id, "gender", (("gender",),), cutoffs=(0.25, 0.15), cipher="none")
    service.alternatives.start(request).get()
    return "c1"


@pytest.mark.slow
def test_a_search_runs_from_the_page_and_its_frontier_is_shown(opened: Opened) -> None:
    at = opened("compliance")
    assert not at.exception and says(at, "lda.why")
    assert at.selectbox(key="lda_attribute").value == "gender"
    assert says(at, "lda.takes", n=2)
    at.slider(key="lda_cutoff").set_value(25)
    at.run().button(key="alternatives_go_alternatives").click().run()
    job = job_of(f"alternatives:{at.session_state['model']}")
    job.wait(120)
    assert job.failure is None
    at.run()
    assert not at.exception and says(at, "lda.done", n=2) and says(at, "lda.limits")


@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_a_model_is_opened_compared_and_chosen_with_a_reason(
    opened: Opened, world: World, searched: str, language: str
) -> None:
    at = opened("compliance", model=world.record.id, lang=language)
    at.selectbox(key="lda_open_gender").set_value(searched).run()
    assert not at.exception and says(at, "lda.leans", language)
    assert says(at, "lda.other_records", language)  # a Host holds the attribute
    facts = [cell for table in at.table for cell in table.value.iloc[:, 0]]
    assert {Texts(language)("lda.auc_together"), Texts(language)("lda.gap_together")} <= set(facts)
    assert Texts(language)("document.lda_warning") in [one.value for one in at.warning]
    at.button(key="lda_choose").click().run()
    assert says(at, "choice_without_reason", language, least=REASON_MIN)
    at.text_input(key="lda_reason_gender").set_value("narrower, and the bank accepts the cost")
    at.button(key="lda_choose").click().run()
    assert not at.exception
    assert Texts(language)("lda.taken") in [done.value for done in at.success]
    assert at.text_input(key="lda_reason_gender").value == ""  # what was said is not said again
    assert says(at, "lda.to_model", language)
