"""Importance intervals and interactions on paths: by hand on small trees."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import random_world

from backend.data.dictionary import Feature
from backend.errors import ParameterError
from backend.explain.importance import feature_importance
from backend.explain.stability import MIN_TREES, agreement, interactions, steady_importance
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split

DICTIONARY = (
    ("bank", Feature(name="income", meaning="Income")),
    ("bank", Feature(name="age", meaning="Age")),
    ("telecom", Feature(name="calls", meaning="Calls")),
)


def stump(party, feature, gain):
    return GuestTree((Split(party, feature, 1, 2, True, gain, 2.0), Leaf(0.0, 1.0), Leaf(1.0, 1.0)))


def model(*trees, **changes):
    return replace(GuestModel("bank", ("telecom",), trees, (0.0,), 10, DICTIONARY, {}), **changes)


#            income(0) 8
#     calls(1) 3      income(2) 2
#   .    age(4) 1    .     calls(6) 4
DEEP = GuestTree(
    (
        Split("bank", "income", 1, 2, True, 8.0, 8.0),
        Split("telecom", "calls", 3, 4, True, 3.0, 4.0),
        Split("bank", "income", 5, 6, True, 2.0, 4.0),
        Leaf(0.0, 1.0),
        Split("bank", "age", 7, 8, True, 1.0, 3.0),
        Leaf(0.0, 1.0),
        Split("telecom", "calls", 9, 10, True, 4.0, 3.0),
        *(Leaf(0.0, 1.0) for _ in range(4)),
    )
)


def test_interactions_by_hand():
    # below income: calls 3, calls 4, age 1; below calls: age 1; income below income is no pair
    found = {i.features: i for i in interactions(model(DEEP, stump("bank", "age", 2.0)))}
    income, calls, age = ("bank", "income"), ("telecom", "calls"), ("bank", "age")
    assert set(found) == {(income, calls), (age, income), (age, calls)}
    assert (found[income, calls].gain, found[income, calls].splits, found[income, calls].trees) == (7.0, 2, 1)
    assert found[income, calls].share == 7 / 20 and found[income, calls].across
    assert found[age, income].gain == 1.0 and not found[age, income].across


def test_the_pair_with_the_largest_gain_comes_first_over_all_trees():
    first = interactions(model(DEEP, DEEP))[0]
    assert first.features == (("bank", "income"), ("telecom", "calls")) and (first.gain, first.trees) == (14.0, 2)
    assert interactions(model(stump("bank", "age", 1.0))) == ()


def test_trees_that_are_alike_leave_no_doubt():
    rows = steady_importance(model(*[DEEP] * 12))
    assert [(r.feature, r.rank, r.first, r.last) for r in rows] == [
        ("income", 1, 1, 1),
        ("calls", 2, 2, 2),
        ("age", 3, 3, 3),
    ]
    assert [r.share for r in rows] == pytest.approx([10 / 18, 7 / 18, 1 / 18])
    assert all(r.low == pytest.approx(r.share) == r.high for r in rows)


def test_one_tree_that_carries_a_feature_makes_its_share_unsteady():
    rows = steady_importance(model(stump("bank", "age", 10.0), *[stump("bank", "income", 1.0)] * 19))
    age = next(r for r in rows if r.feature == "age")
    # the one tree is left out of a draw of 20 with probability (19/20)^20 = 0.36, and drawn four times or more with 0.016
    assert age.share == pytest.approx(10 / 29) and age.low == 0 and age.high == pytest.approx(30 / 47)
    assert (age.rank, age.first, age.last) == (2, 1, 2)


def test_of_few_trees_no_interval_is_given():
    rows = steady_importance(model(*[DEEP] * (MIN_TREES - 1)))
    assert all((r.low, r.high, r.first, r.last) == (None,) * 4 for r in rows) and rows[0].share == pytest.approx(
        10 / 18
    )


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_the_importance_table(seed):
    trained = random_world(seed, n_trees=12).model
    known = {r.feature: r.gain_share for r in feature_importance(trained)}
    rows = steady_importance(trained)
    assert {r.feature: r.share for r in rows} == pytest.approx(known)
    assert all(r.low <= r.share <= r.high and r.first <= r.last for r in rows)


def test_halves_of_the_trees_agree_or_not():
    up = [("bank", "income", 3.0), ("bank", "age", 2.0), ("telecom", "calls", 1.0)]
    down = [(p, f, 4.0 - g) for p, f, g in up]
    alike = [stump(*s) for s in up for _ in range(2)]
    assert agreement(model(*alike)) == pytest.approx(1)
    other = [stump(*s) for pair in zip(up, down, strict=True) for s in pair]
    assert agreement(model(*other)) == pytest.approx(-1)
    assert np.isnan(agreement(model(stump(*up[0]))))


def test_every_measure_is_shared_out_by_feature_and_by_party():
    trained = model(*[DEEP] * 12)
    splits = {r.feature: r.share for r in steady_importance(trained, "splits")}
    assert splits == pytest.approx({"income": 2 / 5, "calls": 2 / 5, "age": 1 / 5})
    cover = {r.feature: r.share for r in steady_importance(trained, "cover")}
    assert cover == pytest.approx({"income": 12 / 22, "calls": 7 / 22, "age": 3 / 22})
    parties = {(r.party, r.feature): r.share for r in steady_importance(trained, by_party=True)}
    assert parties == pytest.approx({("bank", ""): 11 / 18, ("telecom", ""): 7 / 18})
    with pytest.raises(ParameterError, match="choose one of gain, splits, cover"):
        steady_importance(trained, "luck")


def test_a_party_is_steadier_than_its_features_when_they_take_turns():
    turns = [stump("bank", "age", 1.0), stump("bank", "income", 1.0), stump("telecom", "calls", 1.0)] * 10
    by_feature = {r.feature: r.high - r.low for r in steady_importance(model(*turns))}
    bank = next(r for r in steady_importance(model(*turns), by_party=True) if r.party == "bank")
    assert bank.share == pytest.approx(2 / 3) and bank.low > 0.4 and bank.high < 0.9
    assert bank.high - bank.low < by_feature["age"] + by_feature["income"]
