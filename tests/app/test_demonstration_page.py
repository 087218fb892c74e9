"""The demonstration: eight steps with the bytes, counts and figures of one run, none of which takes anything off a budget."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from inside import runtime_of
from streamlit.testing.v1 import AppTest

from app import session
from app.panels import demonstration
from app.texts import Texts, percent
from backend.data.dictionary import ExpectedDirection, Kind
from backend.errors import ParameterError
from backend.jobs import Job
from backend.research.attacks.result import AttackOutcome, AttackResult, SuccessCount
from backend.services import Glassleaf
from backend.services.attack_runs import AttackRuns
from backend.services.demonstration import ATTACK, race_request
from backend.services.protocol_comparison import PROTOCOLS
from backend.services.scoring import ScoringRequest
from backend.services.training import Training
from tests.app.conftest import Answers, Opened, World, job_of
from tests.app.reading_out import elements, everything, says
from tests.app.test_nothing_leaks import leaks

T = Texts("en")


def deck(at: AppTest) -> dict[str, Any]:
    """What the component was given."""
    [found] = [element.proto for element in elements(at) if element.type == "bidi_component"]
    return dict(json.loads(found.json))


def steps(at: AppTest) -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in deck(at)["steps"]}


def ended(opened: Opened, world: World, language: str = "en") -> AppTest:
    """The page once all that it shows has been run."""
    opened("demonstration", lang=language)
    job_of(f"demonstration:{world.record.id}").wait(240)
    return opened("demonstration", lang=language)


@pytest.fixture(autouse=True)
def _attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab's attack has tests of its own, under keys that these tests shorten."""
    counts = SuccessCount(100, 100, 0.1), SuccessCount(53, 100, 0.1)
    done = AttackResult(ATTACK, "an attack", "critical", AttackOutcome(*counts, chance=0.5, setting={}))
    monkeypatch.setattr("backend.research.attacks.lab.run_all", lambda names: (done,) if names == [ATTACK] else ())


@pytest.fixture
def shown(glassleaf: Glassleaf, world: World) -> Any:
    job = glassleaf.demonstration.start(world.record.id)
    return job.get()


def test_the_steps_show_the_bytes_and_counts_of_the_run_and_nothing_of_a_hosts(opened: Opened, world: World) -> None:
    at = ended(opened, world)
    assert not at.exception
    job = job_of(f"demonstration:{world.record.id}")
    assert job.result.failed == {}
    found = steps(at)
    assert tuple(found) == demonstration.DECK_STEPS and not any(step["waiting"] for step in found.values())
    vectors = [entry for entry in job.result.scored.transcript if entry.kind == "DecisionVectors"]
    for entry, host in zip(vectors, found["hosts"]["hosts"], strict=True):
        assert host["count"] == entry.entries == len(host["bytes"]) > 1
        assert [bytes.fromhex(shown) for shown in host["bytes"]] == list(entry.each)
        assert bytes.fromhex(host["bytes"][0]) == entry.sample[:8]
    back = next(entry for entry in job.result.scored.transcript if entry.kind == "EncryptedScores")
    assert bytes.fromhex(found["sum"]["bytes"]) == back.sample[:8]
    score = job.result.scored.scores[0]
    assert found["answer"]["big"] == percent(score.probability)
    assert len(found["answer"]["reasons"]) == len(job.result.reasons.people[0].reasons)
    outcome = job.result.attack.outcome
    assert [side["rate"] for side in found["attack"]["sides"]] == [
        outcome.on.right / outcome.on.trials,
        outcome.off.right / outcome.off.trials,
    ]
    assert [side["kind"] for side in found["attack"]["sides"]] == ["blocked", "works"]
    assert [lane["seconds"] for lane in found["race"]["lanes"]] == [r.exchange.total for r in job.result.race.runs.rows]
    bits = job.result.race.runs.rows[0].learned[0].bits
    said = [line["text"] for line in found["learned"]["cards"][0]["lines"]]
    assert T("demonstration.got_score", n=ceil(bits)) in said
    assert not leaks(world, everything(at))


def test_what_is_dropped_is_what_each_host_drops(
    shown: Any, glassleaf: Glassleaf, world: World, opened: Opened
) -> None:
    opened("overview")
    view = session.view(world.record.id)
    look = lambda host: glassleaf.demonstration.look_as(world.record.id, host, shown.person)  # noqa: E731
    made = {step["id"]: step for step in demonstration.steps(T, view.federation, view, shown, look)}
    for host in made["hosts"]["hosts"]:
        seen = look(host["name"])
        assert sum(host["dropped"]) == seen.ruled_out and len(host["dropped"]) == host["count"]
    blind = {step["id"]: step for step in demonstration.steps(T, view.federation, view, shown, None)}
    assert all(host["dropped"] == [] for host in blind["hosts"]["hosts"])


def test_how_many_boxes_each_host_gets_is_known_where_hosts_seal_what_they_send_each_other(
    shown: Any, world: World, opened: Opened
) -> None:
    opened("overview")
    view = session.view(world.record.id)
    guest = view.model.guest
    sealed = [
        entry if guest in (entry.sender, entry.receiver) else replace(entry, entries=0, unreadable=0, each=())
        for entry in shown.scored.transcript
    ]
    apart = replace(shown, scored=replace(shown.scored, transcript=tuple(sealed)))
    counts = []
    for run in (shown, apart):
        made = {step["id"]: step for step in demonstration.steps(T, view.federation, view, run, None)}
        counts.append([(host["count"], host["said"]) for host in made["hosts"]["hosts"]])
    assert counts[0] == counts[1] and min(count for count, _ in counts[1]) > 1
    following = counts[1][1][0]
    assert [said for _, said in counts[1]] == [
        T("demonstration.passes_on", n=following),
        T("demonstration.passes_on", n=1),
    ]


def test_no_budget_is_touched_and_the_person_can_be_scored_as_often_as_before(
    glassleaf: Glassleaf, world: World
) -> None:
    runtime = runtime_of(glassleaf)
    person = glassleaf.demonstration.person(world.record.id)

    def left() -> list[dict[str, int]]:
        hosts = [host.name for host in world.federation.hosts]
        return [glassleaf.host_operator(runtime.federation.name, host).budget(person).left for host in hosts]

    before = left()
    done = glassleaf.demonstration.start(world.record.id).get()
    assert done.person == person and done.failed == {}
    assert left() == before
    # The same question, counted, does take something: the comparison above can fail.
    sheet = glassleaf.samples.of_person(world.record.id, person)
    glassleaf.scoring.start(ScoringRequest(world.record.id, sheet)).get()
    assert left() != before


def test_a_piece_that_fails_is_left_out_and_the_others_are_shown(
    glassleaf: Glassleaf, world: World, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    def refused(names: object) -> object:
        raise ParameterError("unknown_attack", attacks=("A1",), known=())

    monkeypatch.setattr("backend.research.attacks.lab.run_all", refused)
    done = glassleaf.demonstration.start(world.record.id).get()
    assert list(done.failed) == ["attack"] and done.race is not None
    opened("overview")
    made = {
        step["id"]: step for step in demonstration.steps(T, world.federation, session.view(world.record.id), done, None)
    }
    assert made["attack"]["waiting"] == T("demonstration.failed") and not made["race"]["waiting"]


def test_in_an_empty_home_the_first_step_stands_while_the_companies_tables_are_written(
    opened_empty: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Event()

    def write_slowly(*given: object, **options: object) -> None:
        written.wait(60)
        raise ParameterError("unknown_attack", attacks=("A1",), known=())

    monkeypatch.setattr("backend.services.training.write_demo", write_slowly)
    try:
        opened_empty().button(key="prepare_demo").click().run()
        at = opened_empty("demonstration")
        assert not at.exception
        made = steps(at)
        assert len(made["parties"]["cards"]) == 3
        assert made["ask"]["waiting"] == T("demonstration.waits_companies")
    finally:
        written.set()


def test_a_session_that_the_command_opened_prepares_the_demo_once_behind_its_first_step(
    opened_empty: Opened, monkeypatch: pytest.MonkeyPatch, go: Event
) -> None:
    started: list[Job[str]] = []

    def make(job: Job[str]) -> str:
        go.wait(60)
        return "demo"

    def start(training: Training) -> Job[str]:
        started.append(Job[str](make, 1).start())
        return started[0]

    # patched: a demo that takes until somebody lets it end
    monkeypatch.setattr("backend.services.training.Training.start_demo", start)
    opened_empty()
    assert not started  # the dashboard was started in another way
    monkeypatch.setenv("GLASSLEAF_OPEN", "demonstration")
    at = opened_empty()
    assert len(steps(at)["parties"]["cards"]) == 3
    go.set()
    started[0].wait(60)
    at.run()
    assert len(started) == 1  # what has ended, or was stopped, is not begun again


def test_before_anything_has_been_run_each_step_says_for_what_it_waits(opened: Opened, world: World) -> None:
    opened("overview")
    made = {
        step["id"]: step for step in demonstration.steps(T, world.federation, session.view(world.record.id), None, None)
    }
    assert not made["parties"]["waiting"] and len(made["parties"]["cards"]) == 1 + len(world.federation.hosts)
    waits = {step: made[step]["waiting"] for step in demonstration.DECK_STEPS[1:]}
    assert made["attack"]["words"] == T("demonstration.words_attack") and not made["answer"]["words"]
    assert waits["answer"] == T("demonstration.waits_score") and waits["learned"] == T("demonstration.waits_race")
    assert all(waits.values())


def test_a_company_is_introduced_by_quantities_whose_effect_anybody_expects(opened: Opened, world: World) -> None:
    [step] = [one for one in demonstration.steps(T, world.federation, None, None, None) if one["id"] == "parties"]
    for party, card in zip(world.federation.parties, step["cards"], strict=True):
        examples = [line["text"] for line in card["lines"] if line.get("kind") == "quiet"]
        meanings = {T.brief(feature): feature for feature in party.features}
        assert len(examples) == demonstration.CARD_COLUMNS
        for example in examples:
            assert meanings[example].kind is Kind.NUMERIC and meanings[example].sensitivity in ("", "none")
            assert meanings[example].expected_direction is not ExpectedDirection.NONE


def test_the_attack_and_the_race_are_among_those_there_are() -> None:
    assert ATTACK in {attack.id for attack in AttackRuns.all()}
    names = race_request("m", None).names
    assert set(names) <= set(PROTOCOLS) and names[0] == PROTOCOLS[0]


def test_from_the_step_of_the_attack_a_presenter_goes_to_a_hosts_attacks_in_the_lab(
    opened: Opened, answers: Answers
) -> None:
    names = {attack.id: T(f"attack.{attack.text}_title") for attack in AttackRuns.all()}
    links = deck(opened("demonstration", step="attack"))["lab"]
    asked = [parse_qs(urlparse(link["to"]).query)["attack"] for link in links]
    assert asked == [["H4"], ["H5"]]
    assert [link["title"] for link in links] == [names["H4"], names["H5"]]


def test_a_link_names_a_step_and_one_that_is_none_says_so(opened: Opened, answers: Answers) -> None:
    assert deck(opened("demonstration", step="sum"))["start"] == "sum"
    at = opened("demonstration", step="nobody")
    assert not at.exception
    assert says(at, "frame.unknown_link", what=T("frame.link_step"), linked="nobody")
    assert deck(at)["start"] == demonstration.DECK_STEPS[0]
