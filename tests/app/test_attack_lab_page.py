"""The attack lab runs attacks live: what worked and what did not is shown in words, bars and a table; a run can be stopped."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest

from app import session
from app.texts import Texts
from backend.research.attacks.lab import ATTACKS, Attack
from backend.research.attacks.result import AttackOutcome, SuccessCount
from tests.app.conftest import Opened, job_of
from tests.app.reading_out import everything

T = Texts("en")


SETTING = {"key_bits": 2048, "bits": 7, "replies": 3, "entries": 5, "honest_trees": 2}
RATES = {"honest_key_off": 1.0, "honest_key_on": 0.0}


def measured(off: int, on: int | None):
    def measure(seed: int) -> AttackOutcome:
        return AttackOutcome(
            SuccessCount(off, 100, 0.1), None if on is None else SuccessCount(on, 100, 0.2), 0.5, SETTING, RATES
        )

    return measure


@pytest.fixture
def few() -> Iterator[None]:
    """Three attacks that take no time: one fails, one has no defence, one would work in spite of it."""
    outcomes = {"A1": measured(100, 50), "A2": measured(100, None), "A3": measured(100, 99)}
    known = dict(ATTACKS)
    ATTACKS.clear()
    for id_, measure in outcomes.items():
        ATTACKS[id_] = Attack(id_, known[id_].name, known[id_].severity, measure, 3)
    yield
    ATTACKS.clear()
    ATTACKS.update(known)  # whole again, and in its order


def run(at, key: str):
    at.button(key=key).click().run()
    job_of("attacks").wait(30)
    return at.run()


def test_every_attack_is_explained_before_it_is_run(opened: Opened) -> None:
    at = opened("attack_lab")
    for attack in ATTACKS.values():
        at.button(key=f"attack_open_{attack.id}").click().run()
        said = "\n".join(text.value for text in at.markdown)
        assert T(f"attack.{attack.text}_explanation") in said and T(f"attack.{attack.text}_defence") in said


def test_a_defence_that_is_off_by_default_is_said_to_be(opened: Opened, few: None) -> None:
    known = ATTACKS["A1"]
    ATTACKS["A1"] = Attack(
        "A1", known.name, known.severity, lambda seed: replace(known.measure(seed), optional=True), known.measurements
    )
    said = everything(run(opened("attack_lab"), "attack_A1"))
    assert T("attack_lab.fails_optional") in said and T("attack_lab.none_works", n=1) not in said
    assert quote(T("attack_lab.with_optional")) in said and quote(T("attack_lab.with")) not in said
    assert T("attack_lab.optional", names=f"A1 {T('attack.a1_title')}") in said


def test_an_attack_that_fails_is_shown_with_both_rates_and_what_guessing_gives(opened: Opened, few: None) -> None:
    at = run(opened("attack_lab"), "attack_A1")
    assert not at.exception
    said = everything(at)
    assert T("attack_lab.rates", off="100\u00a0%", on="50.0\u00a0%", chance="50.0\u00a0%") in said
    assert T("attack_lab.none_works", n=1) in said and T("attack_lab.fails") in said
    assert T("attack.a1_found", honest_trees="2", honest_key_off="100\u00a0%", honest_key_on="0\u00a0%") in said
    assert T("attack_lab.counted", off="100 / 100", on="50 / 100", often="1,000,000,000") in said


def test_what_works_is_named_whether_a_defence_is_shipped_or_not(opened: Opened, few: None) -> None:
    at = run(opened("attack_lab"), "attack_all")
    assert not at.exception
    said = everything(at)
    names = f"A2 {T('attack.a2_title')}, A3 {T('attack.a3_title')}"
    assert T("attack_lab.some_work", n=2, ran=3, names=names) in said
    table = next(frame.value for frame in at.dataframe if T("attack_lab.verdict") in frame.value)
    works, fails = T("attack_lab.works"), T("attack_lab.fails")
    assert table[T("attack_lab.verdict")].tolist() == [fails, works, works]
    assert table[T("attack_lab.with")].tolist() == ["50.0\u00a0%", "–", "99.0\u00a0%"]


def test_results_outlive_the_next_run(opened: Opened, few: None) -> None:
    at = run(run(opened("attack_lab"), "attack_A1"), "attack_A3")
    assert T("attack_lab.some_work", n=1, ran=2, names=f"A3 {T('attack.a3_title')}") in everything(at)


def test_only_the_severities_that_are_asked_for_are_shown_and_run(opened: Opened, few: None) -> None:
    at = opened("attack_lab")
    at.get_by_key("attack_lab_severity").set_value(["high"]).run()
    said = everything(at)
    assert T("attack.a2_title") in said and T("attack.a1_title") not in said
    assert at.button(key="attack_all").label == T("attack_lab.all", n=1)


def test_a_run_that_is_stopped_keeps_what_had_run(opened: Opened, few: None) -> None:
    at = opened("attack_lab")

    def stop(seed: int) -> AttackOutcome:
        while session.service().jobs.of("").find("attacks") is None:  # the page gets its job a moment after it began
            time.sleep(0.01)
        job_of("attacks").cancel()
        return measured(100, 50)(seed)

    ATTACKS["A1"] = Attack("A1", "x", "critical", stop, 1)
    at = run(at, "attack_all")
    said = everything(at)
    assert T("attack_lab.cancelled") in said and T("attack_lab.none_works", n=1) in said


def test_an_attack_run_alone_is_followed_in_its_details(opened: Opened, few: None) -> None:
    go = threading.Event()
    known = ATTACKS["A2"]

    def measure(seed: int) -> AttackOutcome:
        go.wait(60)
        return known.measure(seed)

    ATTACKS["A2"] = Attack("A2", known.name, known.severity, measure, known.measurements)
    at = opened("attack_lab")
    at.button(key="attack_A2").click().run()
    keys = [button.key for button in at.button]
    assert keys[keys.index("attack_A1") - 1] == "cancel_attacks"
    assert T("attack.a2_explanation") in everything(at)
    go.set()
    job_of("attacks").wait(60)
    assert not at.run().exception
