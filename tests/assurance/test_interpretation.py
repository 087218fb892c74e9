"""Steady importances, meetings on paths and shuffled features: by hand on small trees."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import random_world

from backend.assurance.importance import feature_importance
from backend.assurance.interpretation import FEWEST_TREES, agreement, interactions, permuted, steady_importance
from backend.data.dictionary import Feature
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Rule, Split
from backend.trees.outputs import Outputs

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


def test_meetings_by_hand():
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


def test_of_few_trees_no_interval_is_told():
    rows = steady_importance(model(*[DEEP] * (FEWEST_TREES - 1)))
    assert all((r.low, r.high, r.first, r.last) == (None,) * 4 for r in rows) and rows[0].share == pytest.approx(
        10 / 18
    )


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_the_importance_table(seed):
    made = random_world(seed, n_trees=12).model
    known = {r.feature: r.gain_share for r in feature_importance(made)}
    rows = steady_importance(made)
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


def scored_by(columns, times):
    """Only income decides, up to a little noise."""
    return np.asarray(columns["income"], dtype=float)[:, None] + 0.0 * times


@pytest.mark.parametrize(("task", "quality"), [("binary", "auc"), ("number", "r2")])
def test_what_decides_is_worth_most_and_what_does_not_is_worth_nothing(task, quality):
    draw = np.random.default_rng(0)
    income, age = draw.normal(size=200), draw.normal(size=200)
    labels = (income > 0).astype(float) if task == "binary" else income
    outputs = Outputs(task, link="logistic" if task == "binary" else "identity")
    made = model(DEEP, outputs=outputs, rules={(0, 0): Rule("income", True, 0.0)})
    asked = []

    def margins_of(columns, times):
        asked.append((times, len(columns["income"])))
        return scored_by(columns, times)

    rows = {p.feature: p for p in permuted(made, {"income": income, "age": age}, labels, margins_of, repeats=3, seed=1)}
    assert set(rows) == {"income", "age"} and asked == [(1, 200), (3, 600), (3, 600)]
    worth = rows["income"]
    assert (worth.quality, worth.n, worth.repeats) == (quality, 200, 3) and worth.low <= worth.fall <= worth.high
    assert (0.4 < worth.fall < 0.6) if task == "binary" else (1.6 < worth.fall < 2.4)  # to AUC 0.5, to R² -1
    assert rows["age"].fall == rows["age"].low == rows["age"].high == 0


def test_features_that_do_not_split_and_those_of_hosts_are_not_shuffled():
    made = model(stump("telecom", "calls", 1.0), stump("bank", "age", 1.0))
    columns = {"income": np.arange(20.0), "age": np.arange(20.0)}
    names = [p.feature for p in permuted(made, columns, np.arange(20) % 2, scored_by, repeats=1, seed=0)]
    assert names == ["age"]
