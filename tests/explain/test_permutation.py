"""What is permuted, and how much quality falls: by hand, and against scikit-learn's permutation importance."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from worlds import random_world

from backend.errors import ParameterError
from backend.explain.permutation import candidates, permuted
from backend.trees.ensemble import GuestTree, Leaf, Split
from backend.trees.outputs import ONE_LOGIT, Outputs

NUMBER = Outputs("number", link="identity")
CLASSES = Outputs("classes", ("a", "b"), "identity")


def test_the_fall_by_hand():
    # AUC 1; permuted once 0.5 (0 1 0 1 in order 0 0 1 1: pairs 1/2, 1/2, ...), once 0: the mean falls by 0.75
    labels, whole = np.array([0, 0, 1, 1.0]), np.array([[1.0], [2.0], [3.0], [4.0]])
    half, none = np.array([[1.0], [4.0], [2.0], [3.0]]), whole[::-1]
    found = permuted("bank", ["income"], labels, whole, [half, none], ONE_LOGIT, 0)
    assert found.fall == pytest.approx(0.75) and (found.n, found.repeats, found.quality) == (4, 2, "auc")
    assert (found.party, found.feature) == ("bank", "income") and found.low <= 0.75 <= found.high


def test_of_numbers_explained_variance_falls():
    # 1 - 0 to 1 - (4 + 0 + 4)/2: R² 1 → -3
    labels = np.array([1.0, 2.0, 3.0])
    found = permuted("bank", ["income"], labels, labels[:, None], [labels[::-1][:, None]], NUMBER, 0)
    assert found.quality == "r2" and found.fall == pytest.approx(8 / 2)


def test_of_classes_the_mean_area_falls():
    labels, shares = np.array([0, 0, 1, 1.0]), np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
    found = permuted("bank", ["income"], labels, shares, [shares[::-1]], CLASSES, 0)
    assert found.quality == "auc" and found.fall == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_falls_are_those_of_scikit_learn_and_what_means_nothing_is_near_zero(seed):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(600, 3))
    labels = (draw.random(600) < 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1]))).astype(float)
    fitted = LogisticRegression().fit(x, labels)
    rows = []
    for column in range(3):
        again = []
        for _ in range(5):
            changed = x.copy()
            changed[:, column] = draw.permutation(changed[:, column])
            again.append(fitted.decision_function(changed)[:, None])
        whole = fitted.decision_function(x)[:, None]
        found = permuted("bank", [f"x{column}"], labels, whole, again, ONE_LOGIT, seed)
        expected = roc_auc_score(labels, whole) - np.mean([roc_auc_score(labels, a) for a in again])
        assert found.fall == pytest.approx(expected)
        rows.append(found)
    assert rows[0].low > rows[1].high > rows[1].low > rows[2].high  # in the order in which the labels were model
    assert rows[2].low < 0.01


def test_people_of_one_label_have_no_quality():
    with pytest.raises(ParameterError, match="have one label"):
        permuted("bank", ["income"], np.ones(3), np.zeros((3, 1)), [np.zeros((3, 1))], ONE_LOGIT, 0)


def test_each_feature_that_splits_and_all_of_a_partys_together_can_be_permuted():
    model = random_world(0, n_trees=6).model
    used = {s.feature for tree in model.trees for s in tree.splits.values()}
    found = candidates(model)
    assert {features[0] for _, features in found if len(features) == 1} == used
    together = {party: set(features) for party, features in found if len(features) > 1}
    assert together == {p: {f for f in used if f.startswith(p)} for p in ("bank", "host0", "host1")}


def test_a_party_with_one_feature_in_use_is_not_permuted_twice():
    tree = GuestTree((Split("bank", "bank_x", 1, 2, True, 1.0, 2.0), Leaf(0.0, 1.0), Leaf(1.0, 1.0)))
    model = replace(random_world(0).model, trees=(tree,))
    assert candidates(model) == (("bank", ("bank_x",)),)
