"""Figures with intervals, curves and stability: by hand on a few records, and against scikit-learn on many."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, confusion_matrix, mean_absolute_error

from backend.evaluation.performance import RESAMPLES, calibration, draws, performance, separation, stability
from backend.trees.metrics import measure
from backend.trees.outputs import ONE_LOGIT, Outputs, sigmoid

CLASSES = Outputs("classes", ("a", "b", "c"), "softmax")
NUMBER = Outputs("number", link="identity")
SHARE = Outputs("binary", link="identity")


def binary(n=400, seed=0, rounded=1):
    draw = np.random.default_rng(seed)
    margins = draw.normal(size=n).round(rounded)
    return (draw.random(n) < sigmoid(1.5 * margins)).astype(float), margins[:, None]


def sample(outputs, n=400, seed=0):
    draw = np.random.default_rng(seed)
    if outputs.task == "binary":
        return binary(n, seed)
    if outputs.task == "classes":
        margins = draw.normal(size=(n, 3)).round(2)
        return (margins + draw.gumbel(size=(n, 3))).argmax(axis=1).astype(float), margins
    values = draw.normal(50, 10, n)
    return values + draw.normal(0, 5, n), values[:, None]


@pytest.mark.parametrize("outputs", [ONE_LOGIT, CLASSES, NUMBER], ids=lambda o: o.task)
def test_figures_are_those_the_model_is_registered_with_and_lie_in_their_intervals(outputs):
    labels, margins = sample(outputs)
    known = measure(labels, margins, "test", outputs)
    found = performance(labels, margins, outputs, "test")
    assert (found.part, found.n) == ("test", 400)
    for name in ("auc", "ks", "log_loss", "accuracy", "rmse", "r2"):
        figure, value = found.figure(name), getattr(known, name)
        assert (figure is None) == np.isnan(value)
        if figure is not None:
            assert figure.value == pytest.approx(value) and figure.low < figure.value < figure.high
    share = outputs.predict(margins)[:, 0]
    if outputs.task == "binary":
        assert found.figure("brier").value == pytest.approx(brier_score_loss(labels, share))
    if outputs.task == "number":
        assert found.figure("mae").value == pytest.approx(mean_absolute_error(labels, share))


def test_an_interval_covers_the_truth_at_its_nominal_rate():
    # AUC of N(1, 1) against N(0, 1) is Φ(1/√2) = 0.7602; 95 % intervals of 80 samples hold it in 70 or more but with p < 0.01
    covered = 0
    for seed in range(80):
        draw = np.random.default_rng(seed)
        labels = (draw.random(200) < 0.5).astype(float)
        figure = performance(labels, draw.normal(size=200) + labels, ONE_LOGIT, "test", seed).figure("auc")
        covered += figure.low <= 0.7602 <= figure.high
    assert 70 <= covered <= 80


def test_as_many_samples_are_drawn_as_asked_for_each_of_all_records():
    weights = np.vstack(list(draws(80, 6, 0)))
    assert weights.shape == (6, 80) and (weights.sum(axis=1) == 80).all()
    assert sum(len(w) for w in draws(10, RESAMPLES, 0)) == RESAMPLES


def test_without_one_of_the_outcomes_figures_that_need_both_are_left_out():
    found = performance(np.zeros(30), np.linspace(-1, 1, 30), ONE_LOGIT, "test")
    assert {f.name for f in found.figures} == {"brier", "log_loss", "accuracy"} and found.separation is None
    empty = performance(np.empty(0), np.empty((0, 1)), ONE_LOGIT, "test")
    assert (empty.n, empty.figures, empty.calibration, empty.spread) == (0, (), (), None)


def test_calibration_by_hand_keeps_equal_predictions_together():
    predicted = np.array([0.1, 0.1, 0.1, 0.6, 0.6, 0.9])[:, None]
    rows = calibration(np.array([0, 1, 0, 1, 0, 1.0]), predicted, "binary", bins=3)
    # thirds would end after 2 and 4 records; the first three are equal, and so are the fourth and fifth
    assert [(r.n, round(r.predicted, 3), round(r.observed, 3)) for r in rows] == [(3, 0.1, 0.333), (3, 0.7, 0.667)]
    assert all(0 <= r.low <= r.observed <= r.high <= 1 for r in rows)


def test_calibration_is_that_of_scikit_learn():
    draw = np.random.default_rng(3)
    probabilities = draw.random(1000)
    labels = (draw.random(1000) < probabilities).astype(float)
    rows = calibration(labels, probabilities[:, None], "binary")
    observed, predicted = calibration_curve(labels, probabilities, n_bins=10, strategy="quantile")
    assert [r.observed for r in rows] == pytest.approx(observed) and [r.predicted for r in rows] == pytest.approx(
        predicted
    )
    assert sum(r.low <= r.predicted <= r.high for r in rows) >= 8  # the probabilities are right by construction


def test_calibration_of_numbers_and_of_classes():
    rows = calibration(np.array([1.0, 3.0, 10.0, 14.0]), np.array([[2.0], [2.0], [11.0], [12.0]]), "number", bins=2)
    assert [(r.predicted, r.observed) for r in rows] == [(2.0, 2.0), (11.5, 12.0)]
    assert rows[0].high == pytest.approx(2 + 1.959964 * 2**0.5 / 2**0.5)  # sd √2 of two values, over √2
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    rows = calibration(np.array([0.0, 1.0]), probabilities, "classes", bins=2)
    assert [(r.predicted, r.observed) for r in rows] == [(0.5, 1.0), (0.8, 0.0)]


def test_separation_is_the_roc_curve_with_the_widest_gap_marked():
    labels, margins = binary(3000, 1, rounded=4)
    share = sigmoid(margins[:, 0])
    found = separation(labels, share)
    assert len(found.cutoffs) <= 201 and list(found.cutoffs) == sorted(found.cutoffs, reverse=True)
    for cutoff, true, false in zip(found.cutoffs, found.true_positive, found.false_positive, strict=True):
        assert true == pytest.approx((share[labels == 1] >= cutoff).mean())
        assert false == pytest.approx((share[labels == 0] >= cutoff).mean())
    gap = found.true_positive[found.widest] - found.false_positive[found.widest]
    assert gap == pytest.approx(measure(labels, margins, "").ks)


def test_distributions_count_everybody_once():
    labels, margins = binary()
    spread = performance(labels, margins, ONE_LOGIT, "test").spread
    assert [sum(row) for row in spread.counts] == [int((labels == 0).sum()), int((labels == 1).sum())]
    labels, values = sample(NUMBER)
    residuals = performance(labels, values, NUMBER, "test").spread
    assert sum(residuals.counts[0]) == 400 and residuals.edges[0] == -residuals.edges[-1]


def test_confusion_is_that_of_scikit_learn():
    labels, margins = sample(CLASSES)
    found = performance(labels, margins, CLASSES, "test")
    assert np.array_equal(found.confusion, confusion_matrix(labels, margins.argmax(axis=1)))
    assert found.counts == tuple(np.bincount(labels.astype(int)).tolist()) and found.spread is None


def test_stability_by_hand():
    # halves of the reference at 0 and 1; the other part has a quarter and three quarters there
    found = stability("training", np.array([0, 0, 1, 1.0]), "test", np.array([0, 1, 1, 1.0]), SHARE, bins=2)
    assert found.shares == ((0.5, 0.25), (0.5, 0.75))
    assert found.psi == pytest.approx(-0.25 * np.log(0.5) + 0.25 * np.log(1.5))
    assert (found.reference, found.part, found.n) == ("training", "test", 4) and not found.moved
    same = stability("training", np.arange(50.0), "test", np.arange(50.0), SHARE)
    assert same.psi == 0 and len(same.shares) == 10


def test_a_bin_that_one_part_leaves_empty_counts_as_half_a_record():
    found = stability("training", np.array([0.0, 1.0]), "test", np.array([1.0, 1.0]), SHARE, bins=2)
    assert found.psi == pytest.approx((0.25 - 0.5) * np.log(0.25 / 0.5) + 0.5 * np.log(2))


def test_two_samples_of_one_population_are_within_chance_and_a_moved_one_is_not():
    within = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        found = stability("training", draw.normal(size=900), "test", draw.normal(size=300), ONE_LOGIT)
        within += not found.moved
    assert within >= 88  # 95 expected
    draw = np.random.default_rng(0)
    assert stability("training", draw.normal(size=900), "test", draw.normal(0.5, 1, 300), ONE_LOGIT).moved


def test_stability_of_classes_compares_what_is_predicted():
    first, second = np.eye(3)[[0, 0, 1, 2]], np.eye(3)[[0, 1, 1, 2]]
    assert stability("training", first, "test", second, CLASSES).shares == ((0.5, 0.25), (0.25, 0.5), (0.25, 0.25))
    assert stability("training", np.empty((0, 3)), "test", second, CLASSES) is None


def test_a_record_of_weight_three_counts_as_three_of_them():
    """Calibration, curve and figures; people are counted once."""
    labels, margins = binary(300)
    weights = np.random.default_rng(1).integers(1, 4, 300)
    copied = performance(np.repeat(labels, weights), np.repeat(margins, weights, axis=0), ONE_LOGIT, "test")
    found = performance(labels, margins, ONE_LOGIT, "test", weights=weights.astype(float))
    assert [(f.name, pytest.approx(f.value)) for f in copied.figures] == [(f.name, f.value) for f in found.figures]
    assert found.separation.true_positive == pytest.approx(copied.separation.true_positive)
    assert found.n == 300 == found.separation.people[-1] and sum(found.counts) == 300
    one = calibration(labels, sigmoid(margins), "binary", bins=1, weights=weights.astype(float))[0]
    assert (one.n, one.weight) == (300, weights.sum())
    assert one.observed == pytest.approx(np.average(labels, weights=weights))
    # Less is known of a mean if a few records make most of it.
    heavy = np.where(np.arange(300) < 10, 100.0, 1.0)
    few = calibration(labels, sigmoid(margins), "binary", bins=1, weights=heavy)[0]
    assert few.high - few.low > 2 * (one.high - one.low)


def test_weights_of_one_change_no_figure():
    labels, margins = binary(300)
    plain, weighed = (performance(labels, margins, ONE_LOGIT, "test", weights=w) for w in (None, np.ones(300)))
    assert (plain.figures, plain.separation) == (weighed.figures, weighed.separation)
    assert [(r.predicted, r.observed) for r in plain.calibration] == [
        (r.predicted, r.observed) for r in weighed.calibration
    ]
