"""Outcomes by group: worked out by hand, by fairlearn, and the same from records and from sums."""

import math

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import ParameterError, SecurityError
from backend.fairness import disparity
from backend.fairness.disparity import MEASURES, SUPPRESSED, from_records, from_sums, marks
from backend.protocols.group_sums.grouping import Group

CUT = 0.5


def people(*counts):
    """Per group (accepted positive, accepted other, declined positive, declined other) → groups, index, labels, probabilities."""
    index, labels, probabilities = [], [], []
    for k, group in enumerate(counts):
        for n, (accepted, positive) in zip(
            group, [(True, True), (True, False), (False, True), (False, False)], strict=True
        ):
            index += [k] * n
            labels += [positive] * n
            probabilities += [0.25 if accepted else 0.75] * n
    groups = tuple(Group("code", str(k), sum(group)) for k, group in enumerate(counts))
    return groups, np.array(index), np.array(labels), np.array(probabilities)


def by_sums(groups, index, labels, probabilities, cutoff=CUT, seed=0):
    """What a Host would have added up."""
    each, _ = marks(probabilities < cutoff, labels, probabilities)
    sums = np.array([[mark[index == k].sum() for k in range(len(groups))] for mark in each])
    return from_sums("host", "f", cutoff, groups, sums, seed=seed)


def by_records(groups, index, labels, probabilities, cutoff=CUT, seed=0):
    return from_records("bank", "f", cutoff, groups, index, labels, probabilities, seed=seed)


TWO = people((10, 70, 10, 10), (20, 20, 40, 20))  # 100 in each


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_rates_by_hand(measure):
    first, second = measure(*TWO).groups
    assert [r.value for r in first.rates.values()] == pytest.approx([0.8, 0.5, 10 / 80])
    assert [r.value for r in second.rates.values()] == pytest.approx([0.4, 40 / 60, 20 / 40])
    assert [r.n for r in second.rates.values()] == [100, 60, 40] and tuple(second.rates) == MEASURES
    assert first.positive.value == pytest.approx(0.2) and second.positive.value == pytest.approx(0.6)
    # mean probabilities: 0.25·0.8 + 0.75·0.2 = 0.35 and 0.25·0.4 + 0.75·0.6 = 0.55
    assert first.calibration.value == pytest.approx(0.2 - 0.35) and second.calibration.value == pytest.approx(0.05)
    assert second.calibration.low == pytest.approx(second.positive.low - 0.55)


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_gaps_by_hand(measure):
    disparity = measure(*TWO)
    selection, true, false = disparity.gaps
    assert (selection.lowest.name, selection.highest.name) == ("1", "0") and selection.ratio.value == pytest.approx(0.5)
    assert disparity.gaps[0] is selection and selection.difference.value == pytest.approx(0.4)
    assert true.ratio.value == pytest.approx(0.75) and (true.lowest.name, true.ratio.n) == ("0", 80)
    assert false.difference.value == pytest.approx(0.375) and false.ratio.n == 120 and disparity.n == 200
    for gap in disparity.gaps:
        for rate in (gap.ratio, gap.difference):
            assert rate.low < rate.value < rate.high


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(st.integers(5, 60), min_size=4, max_size=4), min_size=2, max_size=5), st.integers(0, 99))
def test_records_and_sums_give_the_same_and_fairlearn_the_same_again(counts, seed):
    groups, index, labels, probabilities = people(*counts)
    records, sums = (measure(groups, index, labels, probabilities, seed=seed) for measure in (by_records, by_sums))
    assert (records.source, sums.source) == ("records", "sums")
    for one, other in zip(records.groups, sums.groups, strict=True):
        for a, b in zip(
            (*one.rates.values(), one.calibration), (*other.rates.values(), other.calibration), strict=True
        ):
            assert a.n == b.n and (a.value is None) == (b.value is None)
            if a.value is not None:
                assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high))
    declined = (probabilities >= CUT).astype(int)
    for gap, metric, reference in zip(
        sums.gaps,
        (selection_rate, true_positive_rate, false_positive_rate),
        (1 - declined, declined, declined),
        strict=True,
    ):
        behind = [outcome.rates[gap.measure].n for outcome in sums.groups]
        if min(behind) == 0:
            continue
        frame = MetricFrame(metrics=metric, y_true=labels.astype(int), y_pred=reference, sensitive_features=index)
        assert gap.ratio.value == pytest.approx(frame.ratio()) and gap.difference.value == pytest.approx(
            frame.difference()
        )


def test_a_rate_with_fewer_than_twenty_records_behind_it_is_suppressed():
    disparity = by_sums(*people((10, 70, 10, 10), (9, 50, 10, 31), (30, 30, 30, 30)))
    assert disparity.groups[1].rates["true positive rate"] == SUPPRESSED  # 19 with the positive label
    assert disparity.groups[1].rates["selection rate"].n == 100
    gap = disparity.gaps[1]
    assert gap.ratio.n == 20 + 60 and {gap.lowest.name, gap.highest.name} <= {"0", "2"}
    alone = by_sums(*people((10, 70, 10, 10), (9, 50, 10, 31)))
    assert alone.gaps[1].ratio == SUPPRESSED and alone.gaps[1].lowest is None and alone.gaps[0].ratio.value is not None


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_without_groups_nothing_is_reported(measure):
    disparity = measure((), np.zeros(30, dtype=int), np.zeros(30, dtype=bool), np.full(30, 0.4))
    assert disparity.groups == () and disparity.gaps == ()


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_a_ratio_of_nothing_accepted_anywhere_is_suppressed(measure):
    disparity = measure(*people((0, 0, 30, 30), (0, 0, 40, 20)))
    assert disparity.gaps[0].ratio == SUPPRESSED and disparity.gaps[0].difference.value == 0


def test_somebody_at_the_cutoff_is_declined():
    groups, index, labels, _ = people((0, 20, 0, 0), (0, 20, 0, 0))
    at = np.where(index == 0, 0.5, np.nextafter(0.5, 0))
    for measure in (by_sums, by_records):
        assert [o.rates["selection rate"].value for o in measure(groups, index, labels, at).groups] == [0, 1]


def test_an_interval_of_certainty_is_not_certain():
    everybody = by_records(*people((5, 25, 0, 0), (10, 10, 5, 5))).groups[0].rates["selection rate"]
    assert everybody.value == 1 and 0.85 < everybody.low < 0.95 and everybody.high == 1


def test_a_gaps_interval_is_that_of_resampled_records():
    _, index, _, probabilities = TWO
    draw, ratios = np.random.default_rng(2), []
    for _ in range(400):
        rows = draw.integers(0, len(index), len(index))
        rates = [np.mean(probabilities[rows][index[rows] == k] < CUT) for k in range(2)]
        ratios.append(min(rates) / max(rates))
    ratio = by_sums(*TWO).gaps[0].ratio
    assert (ratio.low, ratio.high) == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])), abs=0.04)


def test_probabilities_travel_as_small_whole_numbers():
    flags, largest = marks(np.array([True, False]), np.array([True, True]), np.array([1.0, 0.3]))
    assert [m.tolist() for m in flags] == [[1, 0], [1, 1], [1, 0], [65536, 19661]] and largest == [1, 1, 1, 65536]


def test_sums_that_no_records_give_are_discarded():
    groups = (Group("code", "a", 30), Group("code", "b", 30))
    with pytest.raises(SecurityError, match="no records give"):
        from_sums("host", "f", CUT, groups, np.array([[10, 10], [25, 25], [12, 5], [0, 0]]), seed=0)


@pytest.mark.parametrize("cutoff", [0.0, 1.0, -1, math.nan, 2])
def test_a_cutoff_that_decides_nothing_is_refused(cutoff):
    with pytest.raises(ParameterError, match="above 0 and below 1"):
        disparity.check_cutoff(cutoff)


def test_as_evidence_each_figure_says_its_group_and_its_number_of_records():
    rows = disparity.as_evidence(by_sums(*TWO), ("men", "women"))
    assert [(e.about, e.measure, e.n) for e in rows[3:5]] == [
        ("women", "selection rate", 100),
        ("women", "true positive rate", 60),
    ]
    assert rows[6].measure == "selection rate, smallest over largest" and rows[6].value == pytest.approx(0.5)
    assert len(rows) == 2 * 3 + 2 * 3
