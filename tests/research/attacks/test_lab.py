"""The lab's registry, what counts as working, and the words that go with each attack."""

import json
import re
import string
import tomllib
from pathlib import Path

import pytest
from scipy.stats import binomtest

from backend.errors import ParameterError
from backend.research.attacks.lab import ATTACKS, Attack, run_all
from backend.research.attacks.result import ALPHA, AttackOutcome, AttackResult, SuccessCount, works

ROOT = Path(__file__).resolve().parents[3]
SENTENCE = re.compile(r"[.?!](?=\s|$)|。")
SHOWN_WITH_RESULT = ("honest_trees", "known_pairs")  # in the text of the result, not of the setting
PARTS = ("title", "explanation", "defence", "setting")


def result(off, on, chance=0.5):
    shipped = None if on is None else SuccessCount(on, 64, 0.1)
    return AttackResult("A0", "Synthetic", "high", AttackOutcome(SuccessCount(off, 64, 0.1), shipped, chance, {}))


def test_the_attacks_stand_in_the_order_of_the_security_page():
    rows = [
        "A1",
        "A2",
        "A2-key",
        "A3",
        "A4",
        "A5",
        "A6",
        "A7",
        "A8",
        "A9",
        "P1",
        "P2",
        "P3",
        "P4",
        "P5",
        "P10",
        "T1",
        "T2",
        "T3",
        "T4",
        "T5",
        "H1",
        "H2",
        "H3",
        "H4",
        "H5",
    ]
    assert list(ATTACKS) == rows
    assert all(id_ == attack.id for id_, attack in ATTACKS.items())


def test_an_attack_works_when_it_beats_chance_against_what_is_shipped():
    assert works(result(64, 60))
    assert not works(result(64, 40))
    assert works(result(64, None)), "without a defence, what is shipped is the undefended code"
    assert not works(result(40, None))
    assert works(result(1, 1, chance=0.0)) and not works(result(64, 0, chance=0.0))


def test_the_threshold_is_one_in_a_thousand_million():
    assert ALPHA == 1e-9
    assert not SuccessCount(29, 29, 0.0).beats(0.5)  # 2^-29 > 10^-9
    assert SuccessCount(30, 30, 0.0).beats(0.5)


def test_a_result_becomes_json():
    shown = json.loads(json.dumps(result(64, None).as_dict()))
    assert shown["defence_shipped"] is False and shown["defence_on"] is None and shown["seconds_on"] is None
    assert shown["defence_off"] == 1.0 and shown["works"] is True


def test_only_what_was_asked_for_runs_in_the_page_s_order_and_is_announced_before(monkeypatch):
    announced, seeds = [], []

    def measure(seed):
        seeds.append(seed)
        return AttackOutcome(SuccessCount(1, 1, 0.0), None, 0.5, {})

    fakes = {id_: Attack(id_, id_, "high", measure, 2) for id_ in ("A1", "A2", "A3")}
    monkeypatch.setattr("backend.research.attacks.lab.ATTACKS", fakes)
    results = run_all(["A3", "A1"], seed=5, on_attack=lambda attack: announced.append(attack.id))
    assert [r.id for r in results] == announced == ["A1", "A3"]
    assert seeds == [5, 5]
    assert len(run_all()) == 3


def test_an_unknown_attack_is_named_with_those_there_are():
    with pytest.raises(ParameterError, match="no attacks A99; the attacks are A1, A2"):
        run_all(["A1", "A99"])


def placeholders(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("id_", ATTACKS)
def test_every_attack_has_its_words_and_they_are_filled_in_by_its_result(measured, language, id_):
    texts = tomllib.loads((ROOT / "assets" / "texts" / f"{language}.toml").read_text(encoding="utf-8"))["attack"]
    title, explanation, defence, setting = (texts[f"{ATTACKS[id_].text}_{part}"] for part in PARTS)
    outcome = measured(id_)
    assert placeholders(setting) == {name for name in outcome.setting if name not in SHOWN_WITH_RESULT}
    known = {*outcome.setting, *outcome.rates, *outcome.numbers, "off", *([] if outcome.on is None else ["on"])}
    assert placeholders(texts.get(f"{ATTACKS[id_].text}_found", "")) <= known
    assert not placeholders(title + explanation + defence)
    assert len(SENTENCE.findall(explanation)) == 2 and len(SENTENCE.findall(defence)) == 1


def test_every_attack_is_measured_by_a_test_beside_its_claim():
    """Where it is measured, the `measured` fixture asks whether its defence is called planned where none is shipped."""
    claims = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*_attacks.py"))
    assert [id_ for id_ in ATTACKS if f'"{id_}"' not in claims] == []


@pytest.mark.parametrize(
    ("right", "trials", "chance"), [(0, 5, 0.5), (5, 5, 0.5), (14, 20, 0.4), (60, 100, 0.5), (3, 9, 0.0)]
)
def test_an_attack_beats_chance_where_scipys_binomial_test_says_so(right, trials, chance):
    expected = binomtest(right, trials, chance, alternative="greater").pvalue <= ALPHA
    assert SuccessCount(right, trials, 0.0).beats(chance) == expected
