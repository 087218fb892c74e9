"""Partial dependence of the Guest's features and means over groups of a Host's: by hand, and against scoring everybody in plaintext."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import random_world, with_outputs

from backend.data.dictionary import Feature, Kind
from backend.errors import ParameterError, SecurityError
from backend.explain.contribution import Expectation
from backend.explain.dependence import MIN_PEOPLE, Scale, from_sums, marks, partial_dependence
from backend.protocols.group_sums.grouping import Group
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split, SplitRule
from backend.trees.outputs import sigmoid

INCOME, AGE, CALLS = (Feature(name=name, meaning=name) for name in ("income", "age", "calls"))
#            income < 10 ?
#     calls (3 of 4 left)    age < 40 ?
#      -1.0      1.0         2.0     4.0
TREE = GuestTree(
    (
        Split("bank", "income", 1, 2, True, 1.0, 8.0),
        Split("telecom", "calls", 3, 4, True, 1.0, 4.0),
        Split("bank", "age", 5, 6, False, 1.0, 4.0),
        Leaf(-1.0, 3.0),
        Leaf(1.0, 1.0),
        Leaf(2.0, 2.0),
        Leaf(4.0, 2.0),
    )
)
MODEL = GuestModel(
    "bank",
    ("telecom",),
    (TREE,),
    (0.5,),
    10,
    (("bank", INCOME), ("bank", AGE), ("telecom", CALLS)),
    {(0, 0): SplitRule("income", True, 10.0), (0, 2): SplitRule("age", False, 40.0)},
)
COLUMNS = {"income": np.array([5.0, 15.0, 20.0, np.nan]), "age": np.array([30.0, 30.0, 30.0, 50.0])}


def test_partial_dependence_by_hand():
    # below 10 and missing: the Host's split by its covers, 3/4 of -1 and 1/4 of 1; from 10 on: three of four are under 40
    found = partial_dependence(MODEL, Expectation(MODEL), "income", COLUMNS)
    assert [(lv.low, lv.high, lv.share) for lv in found.levels] == [
        (None, 10.0, 0.25),
        (10.0, None, 0.5),
        (None, None, 0.25),
    ]
    assert [lv.score[0] for lv in found.levels] == pytest.approx([0.5 - 0.5, 0.5 + (3 * 2 + 4) / 4, 0.5 - 0.5])
    assert [lv.predicted[0] for lv in found.levels] == pytest.approx(sigmoid(np.array([0.0, 3.0, 0.0])).tolist())
    assert [lv.missing for lv in found.levels] == [False, False, True] and (found.party, found.n) == ("bank", 4)


@pytest.mark.parametrize("seed", range(4))
def test_without_hosts_it_is_the_mean_of_everybody_scored_with_that_value(seed):
    world = random_world(seed, n_hosts=0, n_trees=5)
    model, table = world.model, world.tables["bank"]
    for feature in {rule.feature for rule in model.rules.values()}:
        found = partial_dependence(model, Expectation(model), feature, table.columns)
        for level in found.levels:
            value = level.code or (None if level.missing else level.low if level.low is not None else level.high - 1e-9)
            units = [world.oracle({**world.row(i), feature: value}) for i in table.ids]
            assert level.score[0] == pytest.approx(np.mean(units) / 2**model.score_bits, abs=0.01)
        assert sum(level.share for level in found.levels) == pytest.approx(1)


def test_of_many_records_some_are_averaged_and_all_are_counted():
    draw = np.random.default_rng(0)
    columns = {"income": draw.choice([5.0, 15.0], 400, p=[0.25, 0.75]), "age": draw.choice([30.0, 50.0], 400)}
    found = partial_dependence(MODEL, Expectation(MODEL), "income", columns, max_records=50)
    assert found.n == 50 and found.levels[0].share == (columns["income"] < 10).mean()
    assert 0.5 + 2 < found.levels[1].score[0] < 0.5 + 4


def test_of_classes_there_is_a_probability_for_each():
    world = with_outputs(random_world(1, n_hosts=1), "class trees", 0)
    feature = next(iter(world.model.rules.values())).feature
    found = partial_dependence(world.model, Expectation(world.model), feature, world.tables["bank"].columns)
    assert all(len(lv.predicted) == 3 and sum(lv.predicted) == pytest.approx(1) for lv in found.levels)


def test_only_the_guests_features_that_split_can_be_set():
    for feature in ("calls", "nothing"):
        with pytest.raises(ParameterError, match=r"no split by \w+ of bank"):
            partial_dependence(MODEL, Expectation(MODEL), feature, COLUMNS)
    with pytest.raises(ParameterError, match="no record"):
        partial_dependence(MODEL, Expectation(MODEL), "age", {"age": np.empty(0)})
    median = replace(MODEL, outputs=replace(MODEL.outputs, link="identity", aggregation="median"))
    with pytest.raises(ParameterError, match="median"):
        partial_dependence(median, Expectation(median), "age", COLUMNS)


def test_a_boolean_is_reported_by_its_codes():
    married = Feature(name="married", meaning="married", kind=Kind.BOOLEAN)
    tree = GuestTree((Split("bank", "married", 1, 2, True, 1.0, 2.0), Leaf(-1.0, 1.0), Leaf(1.0, 1.0)))
    model = GuestModel("bank", (), (tree,), (0.0,), 10, (("bank", married),), {(0, 0): SplitRule("married", True, 0.5)})
    found = partial_dependence(model, Expectation(model), "married", {"married": np.array([0.0, 1.0, 1.0, np.nan])})
    assert [(lv.code, lv.share, lv.score[0]) for lv in found.levels] == [
        ("0", 0.25, -1.0),
        ("1", 0.5, 1.0),
        ("", 0.25, -1.0),
    ]


def summed(predicted, index, scale):
    units, largest = marks(predicted, scale)
    assert all(mark.min() >= 0 and mark.max() <= top for mark, top in zip(units, largest, strict=True))
    return np.array([[mark[index == k].sum() for k in range(index.max() + 1)] for mark in units])


@pytest.mark.parametrize("task", ["number", "classes"])
def test_means_and_errors_from_sums_are_those_of_the_people(task):
    draw = np.random.default_rng(0)
    index = np.repeat([0, 1], [60, 140])
    predicted = draw.random((200, 3 if task == "classes" else 1))
    if task == "number":
        predicted = predicted * 900 - 300
    scale = Scale.of(predicted, task)
    groups = (Group("bin", "1", 60), Group("bin", "2", 140))
    found = from_sums("telecom", "calls", groups, summed(predicted, index, scale), scale)
    assert (found.n, [g.group for g in found.groups]) == (200, list(groups))
    for k, row in enumerate(found.groups):
        own = predicted[index == k]
        half = 1.959964 * own.std(axis=0, ddof=1) / len(own) ** 0.5
        unit = 900 / 2**16 if task == "number" else 2**-16
        assert row.mean == pytest.approx(own.mean(axis=0), abs=unit)
        assert np.subtract(row.high, row.mean) == pytest.approx(half, rel=2e-3)
        assert row.observed is None


def test_equal_predictions_have_no_error_and_a_constant_number_no_range():
    scale = Scale.of(np.full((60, 1), 7.0), "number")
    found = from_sums("telecom", "calls", (Group("bin", "1", 60),), np.array([[0], [0]]), scale)
    assert found.groups[0].mean == found.groups[0].low == found.groups[0].high == (7.0,)


def test_means_of_few_people_are_discarded():
    scale = Scale.of(np.zeros((1, 1)), "binary")
    with pytest.raises(SecurityError, match="telecom sent sums over fewer than 50"):
        from_sums("telecom", "calls", (Group("bin", "1", MIN_PEOPLE - 1),), np.zeros((2, 1), dtype=np.int64), scale)
