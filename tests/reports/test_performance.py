"""Quality in a report: the card's own figures, and no line about fewer than 20 people."""

import numpy as np
import pytest

from backend.evaluation.performance import Calibration
from backend.evaluation.performance import performance as measured
from backend.fairness.intervals import wilson
from backend.reports.build.performance import merged, performance
from backend.reports.build.sources import Card
from backend.reports.schema import PerformanceSection
from backend.trees.outputs import Outputs


def card(n, seed=1, labels=None):
    draw = np.random.default_rng(seed)
    margins = draw.normal(size=n)
    labels = (draw.random(n) < 1 / (1 + np.exp(-margins))).astype(float) if labels is None else labels
    return Card(measured(labels, margins[:, None], Outputs(), "test"), "training", ())


def test_where_no_scores_are_kept_or_too_few_nothing_is_reported():
    assert performance(None) is None and performance(card(19)) is None
    assert performance(card(20)) is not None


def test_figures_are_the_cards_own_rounded_with_their_intervals():
    kept = card(500)
    found = PerformanceSection.model_validate_json(performance(kept).model_dump_json())
    assert [(f.name, f.value, f.low, f.high) for f in found.figures] == [
        (f.name, round(f.value, 4), round(f.low, 4), round(f.high, 4)) for f in kept.part.figures
    ]
    assert (found.part, found.n, found.source) == ("test", 500, "training")


@pytest.mark.parametrize("n", [25, 60, 150, 500])
def test_no_bin_and_no_step_of_the_curve_stands_for_fewer_than_twenty_people(n):
    kept = card(n)
    found = performance(kept)
    assert all(row.n >= 20 for row in found.calibration) and sum(row.n for row in found.calibration) == n
    others, positive = kept.part.counts
    above = [c.true_positive * positive + c.false_positive * others for c in found.separation]
    steps = np.diff([0.0, *above, n])
    assert not above or steps.min() >= 20 - 0.1  # shares are rounded
    assert [c.cutoff for c in found.separation] == sorted((c.cutoff for c in found.separation), reverse=True)


def test_the_widest_gap_is_a_point_of_the_curve():
    kept = card(2000)
    found = performance(kept)
    assert max(c.true_positive - c.false_positive for c in found.separation) == pytest.approx(
        kept.part.figure("ks").value, abs=1e-4
    )


def test_small_bins_are_merged_with_their_neighbours_by_hand():
    rows = [Calibration(10, 0.1, 0.0, 0, 0), Calibration(30, 0.2, 0.2, 0, 0), Calibration(5, 0.6, 1.0, 0, 0)]
    [row] = merged(rows, shares=True)
    assert (row.n, row.predicted, row.observed) == (45, pytest.approx((1 + 6 + 3) / 45), pytest.approx(11 / 45))
    assert (row.low, row.high) == wilson(11 / 45, 45)
    numbers = [Calibration(10, 1.0, 1.0, 0.0, 2.0), Calibration(10, 2.0, 3.0, 1.0, 5.0)]
    [row] = merged(numbers, shares=False)
    # half of 1 and half of 2
    assert (row.observed, row.high - row.observed) == (2.0, pytest.approx(np.hypot(0.5, 1.0)))


def test_a_model_of_numbers_has_no_curve():
    draw = np.random.default_rng(0)
    margins = draw.normal(size=100)
    outputs = Outputs("number", (), "identity")
    found = performance(
        Card(measured(margins + draw.normal(size=100), margins[:, None], outputs, "test"), "training", ())
    )
    assert found.separation == () and {f.name for f in found.figures} == {"rmse", "mae", "r2"}
