"""Metrics: by hand on a few records, and against scikit-learn on many, weighted ones included."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    roc_curve,
)

from backend.trees.metrics import auc, ks, measure, weighted_figures
from backend.trees.outputs import ONE_LOGIT, Outputs, sigmoid, softmax

CLASSES = Outputs("classes", ("a", "b", "c"), "softmax")
NUMBER = Outputs("number", link="identity")
SHARE = Outputs("binary", link="identity")


def binary(n, seed):
    draw = np.random.default_rng(seed)
    margins = draw.normal(size=n).round(1)
    return (draw.random(n) < sigmoid(1.5 * margins)).astype(float), margins


def test_area_and_gap_by_hand():
    # scores 1 2 2 3, labels 0 1 0 1: pairs (2>1) 1, (2=2) 1/2, (3>1) 1, (3>2) 1 → 3.5 of 4
    labels, scores, once = np.array([0, 1, 0, 1.0]), np.array([1, 2, 2, 3.0]), np.ones((1, 4))
    assert auc(labels, scores, once) == pytest.approx([3.5 / 4])
    # below 3: half of the positive, all of the others; below 2: none and half
    assert ks(labels, scores, once) == pytest.approx([0.5])
    assert np.isnan(auc(labels, scores, np.array([[1, 0, 1, 0.0]]))[0])
    assert np.isnan(ks(labels, scores, np.array([[0, 1, 0, 1.0]]))[0])


@pytest.mark.parametrize("seed", range(5))
def test_figures_of_weighted_records_are_those_of_scikit_learn(seed):
    labels, margins = binary(80, seed)
    draw, share = np.random.default_rng(seed), sigmoid(margins)
    weights = draw.multinomial(80, np.full(80, 1 / 80), size=6).astype(float)
    found = weighted_figures(labels, margins[:, None], share[:, None], "binary", weights)
    for k, w in enumerate(weights):
        expected = {
            "auc": roc_auc_score(labels, margins, sample_weight=w),
            "ks": np.subtract(*roc_curve(labels, margins, sample_weight=w)[1::-1]).max(),
            "brier": brier_score_loss(labels, share, sample_weight=w),
            "log_loss": log_loss(labels, share, sample_weight=w),
            "accuracy": accuracy_score(labels, share >= 0.5, sample_weight=w),
        }
        assert {name: values[k] for name, values in found.items()} == pytest.approx(expected)


def test_two_classes_are_measured_as_by_scikit_learn():
    labels, margins = binary(400, 0)
    found, share = measure(labels, margins, "test"), sigmoid(margins)
    assert (found.part, found.n) == ("test", 400) and np.isnan([found.rmse, found.r2]).all()
    assert found.auc == pytest.approx(roc_auc_score(labels, margins))
    assert found.ks == pytest.approx(np.subtract(*roc_curve(labels, margins)[1::-1]).max())
    assert found.loss == found.log_loss == pytest.approx(log_loss(labels, share))
    assert found.accuracy == pytest.approx(np.mean((share >= 0.5) == labels))


def test_several_classes_are_measured_as_by_scikit_learn():
    draw = np.random.default_rng(1)
    margins = draw.normal(size=(300, 3))
    labels = (margins + draw.gumbel(size=(300, 3))).argmax(axis=1).astype(float)
    found, shares = measure(labels, margins, "test", CLASSES), softmax(margins)
    assert found.auc == pytest.approx(np.mean([roc_auc_score(labels == k, shares[:, k]) for k in range(3)]))
    assert found.log_loss == pytest.approx(log_loss(labels, shares)) and np.isnan(found.ks)
    assert found.accuracy == pytest.approx(np.mean(shares.argmax(axis=1) == labels))


def test_numbers_are_measured_as_by_scikit_learn():
    draw = np.random.default_rng(2)
    predicted = draw.normal(50, 10, 300)
    labels = predicted + draw.normal(0, 5, 300)
    found = measure(labels, predicted, "test", NUMBER)
    assert found.r2 == pytest.approx(r2_score(labels, predicted)) and np.isnan([found.auc, found.log_loss]).all()
    assert found.loss == found.rmse == pytest.approx(np.mean((labels - predicted) ** 2) ** 0.5)
    weighted = weighted_figures(labels, predicted[:, None], predicted[:, None], "number", np.ones((1, 300)))
    assert weighted["mae"] == pytest.approx([mean_absolute_error(labels, predicted)])
    assert np.isnan(measure(np.zeros(3), np.arange(3.0), "test", NUMBER).r2)  # no variance to explain


def test_a_certain_prediction_that_is_wrong_costs_as_much_as_by_scikit_learn():
    labels, shares = np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.5])
    assert measure(labels, shares, "test", SHARE).log_loss == pytest.approx(log_loss(labels, shares))


def test_figures_that_need_both_labels_or_any_record_are_undefined_without():
    one_label = measure(np.ones(3), np.arange(3.0), "test", ONE_LOGIT)
    assert np.isnan([one_label.auc, one_label.ks]).all() and one_label.accuracy == 1.0 and one_label.loss > 0
    empty = measure(np.empty(0), np.empty(0), "test", ONE_LOGIT)
    assert empty.n == 0 and np.isnan([empty.auc, empty.loss, empty.accuracy]).all()


@pytest.mark.parametrize("seed", range(3))
def test_figures_of_records_that_count_differently_are_scikit_learns(seed):
    labels, margins = binary(200, seed)
    weights = np.random.default_rng(seed).uniform(0.001, 0.004, 200)  # together less than one record
    found, predicted = measure(labels, margins, "test", ONE_LOGIT, weights), sigmoid(margins)
    assert found.auc == pytest.approx(roc_auc_score(labels, predicted, sample_weight=weights))
    assert found.log_loss == pytest.approx(log_loss(labels, predicted, sample_weight=weights))
    assert found.accuracy == pytest.approx(accuracy_score(labels, predicted >= 0.5, sample_weight=weights))
    false, true, _ = roc_curve(labels, predicted, sample_weight=weights)
    assert found.ks == pytest.approx((true - false).max())
    assert found.n == 200
