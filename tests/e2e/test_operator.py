"""What a Host's operator reads before deciding, and what it may then decide, in both languages: on its console, and in the shell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from app.texts import Texts
from backend.cli import main
from backend.i18n import Text
from backend.link.agreement import load_agreement
from backend.link.config import load_config
from backend.protocols.approvals.messages import SCORING, TRAINING
from backend.services.companies import make_companies
from backend.services.host_operator import Request, own_host
from backend.services.request_facts import BITS, COLUMNS, GIVE_AWAY, NARROW, SUM, WHAT_FOR, WHO
from backend.store.approvals import Approval
from backend.trees.serialization import load_host, structure_hash
from tests.e2e.serving import PATIENCE, SETTLED, served
from tests.e2e.test_accessibility import in_both_themes

WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
LABELS = (WHO, WHAT_FOR, COLUMNS, BITS, SUM, GIVE_AWAY, NARROW)
CODES = {
    SCORING: {
        "request_purpose",
        "request_columns",
        "request_bits",
        "request_bits_whole",
        "request_limit",
        "request_sum",
        "request_named",
        "request_alone",
        "request_narrow_model",
    },
    TRAINING: {
        "request_purpose",
        "request_columns",
        "request_training_bits",
        "request_training_sum",
        "request_most_named",
        "request_narrow_training",
    },
}
TERMS = {
    "algorithm": "secureboost",
    "trees": 20,
    "depth": 3,
    "bins": 32,
    "exclude": [],
    "hide_order": False,
    "epsilon": 0.0,
    "rows": 190,
    "most_named": 1.0,
    "features": 7,
}
BROUGHT = "m1mported00"  # the model that somebody brought along
Shell = Callable[..., str]

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def telecom(demo_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Host at its own company, with an agreement; the demo's model is asked about, and a training."""
    folder = make_companies(tmp_path_factory.mktemp("companies") / "three", rows=200).hosts["telecom"]
    with closing(own_host(demo_template / "parties" / "demo" / "telecom", "ana")) as demo:
        model_id = next(iter(demo._store.model_ids()))
        artefact = demo._store.artefact(model_id)
    model = load_host(artefact)
    about = {
        "trees": len(model.skeletons),
        "own_trees": len({tree for tree, _ in model.rules}),
        "own_splits": len(model.rules),
        "rows": 7,
        "capacity": model.capacity,
        "hosts": list(model.hosts),
        "named": 0.006,
        "most_named": 0.05,
        "alone": 0.12,
        "groups": 31,
        "records": 190,
    }
    # An exception that somebody allowed when a model was brought along.
    brought = about | {"imported": True, "named": 0.4, "most_named": 0.5}
    with closing(own_host(folder, "ana")) as operator:
        operator._store.put_artefact(model_id, artefact)
        asks = (
            Approval(guest="bank", purpose="scoring", subject=structure_hash(model), name=model_id, about=about),
            Approval(guest="bank", purpose="training", subject="t" * 64, name="secureboost", about=TERMS),
            Approval(guest="bank", purpose="scoring", subject="i" * 64, name=BROUGHT, about=brought),
        )
        for asked in asks:
            operator._approvals.ask(asked)
    return folder


@pytest.fixture(scope="module")
def console(telecom: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(telecom, tmp_path_factory.mktemp("log") / "console.log", app="app/host.py", pools=False) as address:
        yield address


@pytest.fixture
def shell(telecom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run `glassleaf host …` on the Host's folder in a language; return what it printed."""

    def run(language: str, *words: object) -> str:
        monkeypatch.setenv("GLASSLEAF_LANGUAGE", language)
        monkeypatch.setattr(sys, "argv", ["glassleaf", "host", *map(str, words), "--folder", str(telecom)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        assert not end.value.code, printed.err
        return printed.out

    return run


def waiting(telecom: Path) -> tuple[Request, ...]:
    with closing(own_host(telecom, "ana")) as operator:
        return operator.requests(waiting=True)


def ask_training(telecom: Path, subject: str) -> int:
    """Ask for a training as a Guest would; return the request's number."""
    with closing(own_host(telecom, "ana")) as operator:
        about = TERMS | {"structure": subject}
        operator._approvals.ask(Approval("bank", TRAINING, subject, "secureboost", about))
        return operator.requests(waiting=True)[0].approval.number


def sentences(request: Request, language: str) -> list[tuple[str, str]]:
    """Return the label and the sentence of each fact; the whole of what is to be read."""
    found = []
    for fact in request.facts:
        value = fact.value
        sentence = value.in_language(language) if isinstance(value, Text) else value.sentence(language)
        found.append((fact.label.in_language(language), " ".join(sentence.split())))
    return found


def check_facts(request: Request) -> None:
    """Fail unless the request has each thing that an operator has to read, with the agreement's words and its own figures."""
    remarks = {fact.value.code: fact.value.values for fact in request.facts if not isinstance(fact.value, Text)}
    brought = request.approval.name == BROUGHT
    expected = CODES[request.approval.purpose]
    if brought:  # its half is not here yet
        expected = expected - {"request_columns", "request_alone"} | {"request_columns_unknown", "request_imported"}
    assert set(remarks) == expected
    assert {fact.label for fact in request.facts} == set(LABELS)
    assert request.guest.en == "Linden Bank"
    purpose = remarks["request_purpose"]
    assert purpose["title"] == Text("Credit scores of applicants", "贷款申请人信用评分")
    assert purpose["basis"] == Text("A demonstration with synthetic people", "以合成人员进行的演示")
    assert purpose["days"] > 0
    if request.approval.purpose == TRAINING:
        assert remarks["request_most_named"]["bound"] == "100 %"
    else:
        assert remarks["request_named"]["bound"] == ("50 %" if brought else "5 %")


def last_day(telecom: Path) -> date:
    """Return until when the agreement allows anything."""
    agreement = load_agreement(telecom / load_config(telecom / "host.toml").agreement)
    return max(purpose.valid_until for purpose in agreement.purposes)


def opened(browser, console: str, language: str):
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{console}/?lang={language}")
    page.wait_for_function(SETTLED)
    return page


def day_shown(card, key: str) -> date:
    """Return the day that a field of the form holds before anybody touches it."""
    return date.fromisoformat(card.locator(f".st-key-{key} input").first.input_value())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_operator_reads_all_that_matters_before_deciding(
    browser, console: str, telecom: Path, language: str
) -> None:
    page = opened(browser, console, language)
    today = datetime.now(UTC).date()
    requests = waiting(telecom)
    assert [request.approval.purpose for request in requests[-3:]] == [SCORING, TRAINING, SCORING]
    for request in requests[-3:]:
        check_facts(request)
        number = request.approval.number
        card = page.locator(f".st-key-own_request_{number}")
        words = " ".join(card.inner_text().split())
        for label, sentence in sentences(request, language):
            assert label in words and sentence in words

        # Nothing is preset longer than the purpose lasts, nor wider than the request needs.
        until = day_shown(card, f"own_{number}_until")
        per_day = int(card.locator(f".st-key-own_{number}_per_day input").input_value())
        training = request.approval.purpose == TRAINING
        assert today <= until <= min(last_day(telecom), today + timedelta(days=1 if training else 28))
        assert per_day == (1 if training else request.approval.about["rows"])

        # Deny has the weight of Approve: the same size and colour, beside it.
        approve = page.locator(f".st-key-own_{number}_approve button")
        deny = page.locator(f".st-key-own_{number}_deny_open button").first
        assert approve.evaluate(LOOK) == deny.evaluate(LOOK)
        assert abs(approve.bounding_box()["y"] - deny.bounding_box()["y"]) < 2

    page.set_viewport_size(PHONE)
    page.wait_for_function(SETTLED)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert approve.evaluate(LOOK) == deny.evaluate(LOOK)
    page.context.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_asked_and_both_buttons_are_on_one_screen(browser, console: str, language: str) -> None:
    page = opened(browser, console, language)
    card = page.locator("[class*=st-key-own_request_]").first
    facts = card.locator("[data-testid=stTable]").first
    buttons = (card.locator("[class*=_approve] button"), card.locator("[class*=_deny_open] button").first)
    assert lower_edge(facts) <= WIDE["height"]
    assert all(lower_edge(button) <= WIDE["height"] for button in buttons)

    # On a phone: the sentence, the cost as the first line, and the buttons, without a touch.
    page.set_viewport_size(PHONE)
    page.wait_for_function(SETTLED)
    cost = facts.locator("tr").first
    assert BITS.in_language(language) in cost.inner_text()
    assert all(lower_edge(button) <= PHONE["height"] for button in buttons)
    assert lower_edge(cost) <= buttons[0].bounding_box()["y"]
    page.context.close()


@pytest.mark.parametrize(("language", "size"), [("en", WIDE), ("zh", PHONE)], ids=["en-wide", "zh-phone"])
def test_the_console_has_no_grave_fault(browser, console: str, language: str, size: dict[str, int]) -> None:
    page = opened(browser, console, language)
    page.set_viewport_size(size)
    page.locator("[class*=_deny_open] button").first.click()
    assert not in_both_themes(page)
    page.context.close()


def lower_edge(place) -> float:
    """Return where something ends on the screen that nobody has scrolled, in pixels."""
    box = place.bounding_box()
    return box["y"] + box["height"]


LOOK = """button => [button.offsetWidth, button.offsetHeight, getComputedStyle(button).backgroundColor,
    getComputedStyle(button).color, getComputedStyle(button).fontWeight]"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_second_training_a_day_and_scores_with_its_model_are_terms_that_the_operator_sets(
    browser, console: str, telecom: Path, language: str
) -> None:
    page = opened(browser, console, language)
    t = Texts(language)
    number = ask_training(telecom, language * 32)
    card = page.locator(f".st-key-own_request_{number}")
    card.wait_for()  # the open console finds it by itself
    name = f"own_{number}"
    assert " ".join(t("host.trainings_per_day").split()) in " ".join(card.inner_text().split())
    assert t("host.scores_too") in card.inner_text() and not card.locator(f".st-key-{name}_scores_until").count()
    per_day = card.locator(f".st-key-{name}_per_day input")
    per_day.fill("2")
    per_day.press("Enter")
    page.wait_for_function(SETTLED)
    card.locator(f".st-key-{name}_scores label").click()
    card.locator(f".st-key-{name}_scores_until").wait_for()
    page.wait_for_function(SETTLED)
    scores_until = day_shown(card, f"{name}_scores_until")
    assert scores_until <= last_day(telecom)
    assert card.locator(f".st-key-{name}_scores_per_day input").input_value() == "1"
    card.locator(f".st-key-{name}_approve button").click()
    page.get_by_text(t("host.approved", number=number)).wait_for()
    with closing(own_host(telecom, "ana")) as operator:
        grant = operator.request(number).approval
    assert (grant.state, grant.per_day) == ("granted", 2)
    assert (grant.scores_until, grant.scores_per_day) == (scores_until.isoformat(), 1)
    page.context.close()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shell_shows_the_same_facts_in_the_same_words(telecom: Path, shell: Shell, language: str) -> None:
    for request in waiting(telecom)[-3:]:
        printed = " ".join(shell(language, "show", request.approval.number).split())
        for label, sentence in sentences(request, language):
            assert f"{label}: {sentence}" in printed


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shell_sets_the_same_terms_and_denies_with_a_reason(telecom: Path, shell: Shell, language: str) -> None:
    number = ask_training(telecom, "s" + language * 31)
    until = datetime.now(UTC).date() + timedelta(days=1)
    terms = ("--until", until, "--per-day", 2, "--scores-until", last_day(telecom), "--scores-per-day", 40)
    assert until.isoformat() in shell(language, "approve", number, *terms)
    other = ask_training(telecom, "d" + language * 31)
    shell(language, "deny", other, "--because", "Too many trees")
    with closing(own_host(telecom, "ana")) as operator:
        grant = operator.request(number).approval
        denied = operator.request(other).approval
    assert (grant.state, grant.per_day, grant.scores_per_day) == ("granted", 2, 40)
    assert grant.scores_until == last_day(telecom).isoformat()
    assert (denied.state, denied.reason) == ("denied", "Too many trees")
