"""What is true of a model reads the same on every page, on the report's first page, in a notice and in the shell, in both languages."""

import contextlib
import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from lines import decide_at
from pydantic import TypeAdapter
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import model_comparison
from backend.cli import app as shell
from backend.i18n import LANGUAGES
from backend.reports.language import words_in
from backend.reports.sections import outline
from backend.results import told_by_scores
from backend.services import Glassleaf
from backend.services.fairness import DisparityRequest
from backend.services.reasons import ReasonsRequest
from backend.services.retraining import RetrainingRequest
from backend.services.validation import ValidationRequest
from backend.services.verdicts import Verdict
from tests.app.conftest import World, _fresh
from tests.app.reading_out import everything

PAGES = ("overview", "compliance", "validation", "compare_models", "report")


@dataclass(frozen=True)
class Judged:
    """A home with a model of which much is true, its verdict, and the models that it is compared with."""

    home: Path
    model: str
    verdict: Verdict
    notices: dict[str, str]


@pytest.fixture(scope="module")
def judged(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """A finding was upheld, the suite was run, a model was retrained without the feature, and somebody was declined."""
    home = tmp_path_factory.mktemp("judged") / "home"
    shutil.copytree(world.fresh, home)
    glassleaf = session._service(str(home))
    first = world.record.id
    glassleaf.retraining.start(RetrainingRequest(first, ("marital_status",), ("gender",), 0.25, "none")).get()
    model = glassleaf.models.get("latest").id
    found = next(f for f in glassleaf.compliance.assess(model).findings if f.feature == "gender")
    glassleaf.reviews.decide(model, found.rule_id, "gender", "confirmed", "It has to go before use.", "Rita")
    glassleaf.validation.start(ValidationRequest(model, cipher="none", samples=100)).get()
    decide_at(glassleaf, 0.01, model)
    glassleaf.fairness.start(DisparityRequest(model, "gender", cipher="none")).get()
    notices = notices_of(glassleaf, model)
    yield Judged(home, model, glassleaf.verdicts.of(model), notices)
    glassleaf.close()


def notices_of(glassleaf: Glassleaf, model: str) -> dict[str, str]:
    """Language → the notice for a person who was declined."""
    record = glassleaf.models.get(model)
    person = next(iter(glassleaf.models.test_ids(record)))
    sheet = glassleaf.samples.of_person(model, person)
    reasons = glassleaf.reasons.start(ReasonsRequest(model, sheet, cipher="paillier")).get()
    return {one: glassleaf.reasons.notice(reasons, person, one, "txt").decode() for one in LANGUAGES}


def page(judged: Judged, name: str, language: str, monkeypatch: pytest.MonkeyPatch) -> str:
    opened = partial(_fresh(judged.home, monkeypatch), name, lang=language, model=judged.model)
    at: AppTest = opened()
    assert not at.exception
    return plain(everything(at))


def plain(text: str) -> str:
    """Text without what Markdown, a table of a test and quoting add to it."""
    return text.replace("\\", "").replace('""', '"')


def test_enough_is_true_of_the_model_to_be_told(judged: Judged) -> None:
    states = {fact.state for fact in judged.verdict.facts}
    assert {"broken", "undecided", "not_measured"} <= states
    assert {"rule", "test", "outcomes", "change"} <= {fact.kind for fact in judged.verdict.facts}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_the_verdict_in_its_words(
    judged: Judged, name: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = page(judged, name, language, monkeypatch)
    assert plain(judged.verdict.headline.in_language(language)) in shown
    if name != "compare_models":  # which shows the facts of both beside each other as changes
        assert not [
            fact.sentence for fact in judged.verdict.facts if plain(fact.sentence.in_language(language)) not in shown
        ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_of_the_report_says_it(judged: Judged, language: str) -> None:
    report = session._service(str(judged.home)).reports.make(judged.model, ask_hosts=False)
    first_page = str(outline(report, language).blocks)
    as_written = TypeAdapter(Verdict).dump_python  # figures are rounded where they are written
    assert as_written(report.issued.verdict, mode="json") == as_written(judged.verdict, mode="json")
    assert words_in(language).language == language
    for text in (judged.verdict.headline, *(fact.sentence for fact in judged.verdict.facts)):
        assert repr(text.in_language(language))[1:-1] in first_page


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_notice_says_what_is_broken_before_it_is_sent(judged: Judged, language: str) -> None:
    assert judged.verdict.state == "broken"
    assert judged.verdict.headline.in_language(language) in judged.notices[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_shell_says_it(judged: Judged, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSLEAF_HOME", str(judged.home))
    monkeypatch.setenv("GLASSLEAF_LANGUAGE", language)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        shell(["models", "verdict", judged.model], standalone_mode=True)
    for text in (judged.verdict.headline, *(fact.sentence for fact in judged.verdict.facts)):
        assert text.in_language(language) in printed.getvalue()


def test_two_models_that_are_called_the_same_have_a_verdict_each(
    judged: Judged, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_comparison, "called", lambda *_: "Demo")  # made within the same minute, say
    shown = page(judged, "compare_models", "en", monkeypatch)
    other = session._service(str(judged.home)).verdicts.of(world.record.id)
    assert judged.verdict.headline != other.headline
    for verdict in (judged.verdict, other):
        assert plain(verdict.headline.en) in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_compare_answers_first_which_is_better(
    judged: Judged, world: World, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = session._service(str(judged.home)).verdicts.compare(judged.model, world.record.id)
    shown = page(judged, "compare_models", language, monkeypatch)
    for text in (found.headline, *(change.sentence for change in found.changes)):
        assert plain(text.in_language(language)) in shown
    told = told_by_scores(world.record.release, world.record.score_bits)  # too few people, of either model
    assert shown.count(plain(told.sentence(language))) == 2
