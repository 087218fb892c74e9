"""A Host that is damaged on purpose is caught by the leak oracle: a price that is too low, a floor or a defence that is gone."""

from dataclasses import replace

import pytest
from leak_crowd import played
from leak_scripts import SCRIPTS, begin_training, bin_sums, cohort, group_sums, node_sums, score
from leak_worlds import ALL_NAMED, BY_NODE, FINE, GROUPED, SMALL, WIDE, toy_floors, world_of

from backend.protocols.explanations import weighting
from backend.protocols.scoring import host as scoring_host
from backend.protocols.scoring.permuted_values_host import OtherValues
from backend.protocols.terms import prices
from backend.store.accountant import Accountant


@pytest.fixture(autouse=True)
def _toy_floors():
    with toy_floors():
        yield


def verdict_of(name):
    world = world_of(name)
    return played(world, SCRIPTS[name](world))


def priced(monkeypatch, most):
    """Have the account book at most so many bits an answer."""
    add = Accountant._add

    def cheaper(session, question, day, granted):
        add(session, replace(question, bits=min(question.bits, most)), day, granted)

    # patched: a mutant of the price, which the oracle has to catch
    monkeypatch.setattr(Accountant, "_add", staticmethod(cheaper))


KINDS = [
    "score",
    "score, in pieces",
    "training begins",
    "node sums",
    "layout of no bits",
    "permuted, one scored",
    "blanked",
    "ages",
    "cohort",
    "reasons",
    "reasons that have a side",
    "groups",
    "pairs of groups",
    "together, marks apart",
    "screening, distinct values",
]


@pytest.mark.parametrize("name", KINDS)
def test_a_host_that_books_nothing_is_caught(name, monkeypatch):
    assert verdict_of(name).holds
    priced(monkeypatch, 0.0)
    assert not verdict_of(name).holds


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("score", 1.9),  # a row has two bits
        ("a score of one bit", 0.9),
        ("reasons", 1.5),
        ("node sums", 0.7),  # twice: when it is approved, and when it begins
        ("screening, distinct values", 0.9),
        ("together, marks apart", 0.9),  # for the one feature, and for the other
        ("groups", 0.4),  # for the sizes of groups, and for their sums
    ],
)
def test_a_price_somewhat_too_low_is_caught(name, most, monkeypatch):
    priced(monkeypatch, most)
    assert not verdict_of(name).holds


def test_a_training_at_a_price_by_bins_is_caught(monkeypatch):
    """Of three bins and missing values a row is in one of four, but a cut moves with one person."""
    monkeypatch.setattr(prices, "column_bits", lambda records: 2.0)
    verdict = verdict_of("cuts of a training")
    assert verdict.worst == (pytest.approx(2.3219, abs=1e-4), 2.0)


def test_an_account_that_leaves_out_whose_value_is_used_is_caught(monkeypatch):
    # patched: the mutant itself
    monkeypatch.setattr(OtherValues, "charges", lambda *_: [])
    verdict = verdict_of("permuted, one scored")
    assert verdict.worst == (1.0, 0.0)


def test_scores_above_which_nothing_is_hidden_are_caught(monkeypatch):
    assert verdict_of("a score of one bit, far apart").holds
    monkeypatch.setattr(scoring_host, "hidden_above", lambda width, room: 0)
    assert not verdict_of("a score of one bit, far apart").holds
    assert played(FINE, [score(FINE, bits=1, step=3)]).worst == (2.0, 1.0)


def test_sums_over_a_cohort_above_which_nothing_is_hidden_are_caught(monkeypatch):
    """A cohort keeps its bits even so, but one person's terms far above the others' name every cell."""
    apart = cohort(WIDE, value_bits=52, apart=True)
    assert played(WIDE, apart).named < SMALL.floors.named
    monkeypatch.setattr(weighting, "hidden_above", lambda width, room: 0)
    assert played(WIDE, apart).named == 1.0


def test_hosts_without_a_bound_on_the_share_that_sums_could_name_are_caught():
    script = group_sums(GROUPED, ("a",), apart=True, half=13)
    verdict = played(replace(GROUPED, floors=ALL_NAMED), script)
    assert verdict.named > GROUPED.floors.named / 2 > played(GROUPED, script).named == 0.0
    for world, sums in ((WIDE, bin_sums), (BY_NODE, node_sums)):
        training = [*begin_training(world), *sums(world, apart=True)]
        bounded = replace(world, floors=SMALL.floors)
        assert played(world, training).named > played(bounded, training).named
    sums = cohort(WIDE, value_bits=52, apart=False)
    assert played(WIDE, sums).answered == 4 and played(SMALL, sums).answered == 0
