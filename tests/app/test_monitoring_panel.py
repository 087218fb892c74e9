"""The panel on monitoring: offered where there is no run, a sheet is taken in, every figure stands there, and nothing leaks."""

import pytest

from app.texts import Texts
from backend.services import Glassleaf
from backend.services.monitoring import Monitored, MonitoringRequest
from tests.app.conftest import Answers, Opened, World, job_of
from tests.app.reading_out import everything, prose, says
from tests.app.test_nothing_leaks import leaks

T = Texts("en")


def sheet_of(glassleaf: Glassleaf, world: World) -> bytes:
    """Test records as a later sheet: ids alone."""
    ids = glassleaf.models.test_ids(world.record)[:60]
    column = glassleaf.federations.get(world.record.federation).guest.id
    return "\n".join([str(column), *ids]).encode()


@pytest.fixture(scope="module")
def done(glassleaf: Glassleaf, world: World) -> Monitored:
    later = glassleaf.monitoring.read(world.record.id, sheet_of(glassleaf, world))
    return glassleaf.monitoring.start(MonitoringRequest(world.record.id, later, "gender", cipher="none")).get()


def test_without_a_run_the_page_offers_one_once_there_is_a_sheet(opened: Opened, answers: Answers) -> None:
    answers["monitoring.last"] = lambda model_id: None
    at = opened("validation")
    assert not at.exception and says(at, "monitoring.none")
    button = at.button(key="monitoring_go")
    assert button.label == T("monitoring.go") and button.disabled


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_figure_stands_there_and_nothing_leaks(
    opened: Opened, answers: Answers, done: Monitored, world: World, language: str
) -> None:
    answers["monitoring.last"] = lambda model_id: done
    at = opened("validation", lang=language)
    t, text = Texts(language), everything(at)
    assert not at.exception
    assert not [test.id for test in done.tests if t(f"validation.test_{test.id}") not in text]
    assert t(f"monitoring.overall_{done.verdict}") in text and not leaks(world, text)


def test_a_sheet_that_was_handed_in_is_monitored(opened: Opened, glassleaf: Glassleaf, world: World) -> None:
    at = opened("validation")
    at.file_uploader(key="monitoring_sheet").upload("later.csv", sheet_of(glassleaf, world), "text/csv").run()
    assert not at.exception and not at.button(key="monitoring_go").disabled
    assert T("upload.account") in [button.proto.label for button in at.get("download_button")]
    at.button(key="monitoring_go").click().run()
    job = job_of(f"monitoring:{world.record.id}")
    job.cancel()
    job.wait(60)
    at.run()
    assert not at.exception and job.state in ("cancelled", "done")


def test_a_sheet_without_ids_says_so(opened: Opened) -> None:
    at = opened("validation")
    at.file_uploader(key="monitoring_sheet").upload("later.csv", b"nothing\n1\n", "text/csv").run()
    assert not at.exception and at.button(key="monitoring_go").disabled
    assert says(at, "sheet_without_ids"), prose(at)
