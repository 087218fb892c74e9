"""The Model card page: figures with intervals, the charts that apply to a task, and scoring again where nothing is kept."""

import pytest
from streamlit.testing.v1 import AppTest

from app.texts import Texts
from backend.i18n import LANGUAGES
from backend.services import Glassleaf
from backend.services.model_card import CardRequest, ModelCard
from tests.app.conftest import Answers, Opened, World, _fresh, job_of
from tests.app.reading_out import everything, says
from tests.app.test_nothing_leaks import leaks
from tests.app.test_tasks import Tasks, tasks  # noqa: F401 - a fixture

T = Texts("en")


def headings(at: AppTest) -> list[str]:
    return [heading.value for heading in at.header]


def test_the_registered_figures_stand_with_their_intervals(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("model_card")
    assert not at.exception
    auc = glassleaf.model_cards.get(world.record.id).parts[0].figure("auc")
    tile = next(metric for metric in at.metric if metric.label == T("figure.auc"))
    assert tile.value == f"{world.record.metrics.auc:.3f}" and f"{auc.low:.3f}" in tile.delta
    assert headings(at)[:5] == [T(f"card.{name}") for name in ("how_good", "roc", "ks", "calibration", "spread")]
    assert {T("card.stability"), T("card.identity")} <= {box.label for box in at.expander}
    assert "n=" not in at.markdown[0].value and not leaks(world, everything(at))


@pytest.mark.parametrize("language", LANGUAGES)
def test_parameters_are_told_in_words(opened: Opened, language: str) -> None:
    t, at = Texts(language), opened("model_card", lang=language)
    [table] = [found.value for found in at.dataframe if t("parameter.learning_rate") in found.value.to_string()]
    cells = {str(cell) for cell in table.to_numpy().ravel()}
    assert t("alignment.name_dh") in cells
    assert not cells & {"False", "None", "none", "dh", "0.0", "cipher", "alignment", "key_bits", "3072"}


def test_another_part_says_that_the_model_was_trained_on_it(opened: Opened) -> None:
    at = opened("model_card")
    at.get_by_key("card_part").set_value("training")
    at.run()
    assert says(at, "card.seen_training")


def test_without_kept_scores_the_page_says_what_to_do(opened: Opened, world: World, answers: Answers) -> None:
    answers["model_cards.get"] = lambda model_id: ModelCard(world.record, (), (), {})
    at = opened("model_card")
    assert not at.exception and says(at, "card.none")
    assert T("card.how_good") not in headings(at)
    assert at.button(key="card_go").label == Texts("en")("card.go")


def test_a_press_scores_again_and_it_can_be_stopped(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("model_card")
    at.button(key="card_go").click().run()
    job = job_of(f"card:{world.record.id}")
    job.cancel()
    job.wait(60)
    at.run()
    assert not at.exception and job.state in ("cancelled", "done")


def test_scored_again_the_card_says_so(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    card = glassleaf.model_cards.start(CardRequest(world.record.id, cipher="none")).get()
    assert card.parts[0].figure("auc").value == pytest.approx(world.record.metrics.auc)
    assert card.sources["test"] == "scoring"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("task", "there", "absent"),
    [
        ("classes", "card.confusion", "card.roc"),
        ("median", "card.confusion", "card.ks"),
        ("number", "card.residuals", "card.confusion"),
        ("hidden", "card.calibration_number", "card.spread"),
    ],
)
def test_what_does_not_apply_to_a_task_is_not_shown(
    tasks: Tasks,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    there: str,
    absent: str,
    language: str,
) -> None:
    at = _fresh(tasks.home, monkeypatch)("model_card", model=tasks.models[task].id)
    at.get_by_key("language").set_value(language)
    at.run()
    t = Texts(language)
    assert not at.exception and t(there) in headings(at) and t(absent) not in headings(at)


def test_a_single_record_reads_well() -> None:
    words = T("card.sentence", n=1, people="1", part="test", figure="AUC", value="1", low="1", high="1")
    assert says(words, "card.sentence", n=1)
