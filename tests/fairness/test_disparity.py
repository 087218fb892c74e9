"""Outcomes by group: worked out by hand, by fairlearn, and the same from records and from sums."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from backend.errors import ParameterError, SecurityError
from backend.fairness import disparity, significance
from backend.fairness.disparity import (
    MEASURES,
    SUPPRESSED,
    as_evidence,
    from_records,
    from_sums,
    measure_in_words,
    of_pairs,
)
from backend.fairness.intervals import of_difference, of_ratio
from backend.fairness.marking import FIXED, MIN_GROUP, Marking, check_cutoff, mark, smallest
from backend.fairness.significance import by_chance
from backend.i18n import LANGUAGES, Catalogue, Text
from backend.protocols.group_sums.grouping import Group

CUT = 0.5
PLAIN = Marking(CUT, (), True, 0.0, 1.0)


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


def by_sums(groups, index, labels, probabilities, cutoff=CUT, **options):
    """What a Host would have added up."""
    marking = mark(cutoff, labels, probabilities, own_groups=True)
    each, _ = marking.marks(labels, probabilities)
    sums = np.array([[mark[index == k].sum() for k in range(len(groups))] for mark in each], dtype=np.int64)
    return from_sums("host", "f", marking, groups, sums, **{"seed": 0, **options})


def by_records(groups, index, labels, probabilities, cutoff=CUT, **options):
    marking = mark(cutoff, labels, probabilities, own_groups=True)
    return from_records("bank", "f", marking, groups, index, labels, probabilities, **{"seed": 0, **options})


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
    disparity = measure(*people((10, 70, 10, 10), (20, 20, 40, 21)))
    assert {gap.reference.name for gap in disparity.gaps} == {"1"} and disparity.n == 201  # the larger by one
    selection, true, false = (gap.others[0] for gap in disparity.gaps)
    assert selection.group.name == "0"
    assert (selection.difference.value, selection.ratio.value) == pytest.approx((0.8 - 40 / 101, 0.8 / (40 / 101)))
    assert (true.difference.value, true.ratio.value) == pytest.approx((0.5 - 40 / 60, 0.75)) and true.ratio.n == 80
    assert false.difference.value == pytest.approx(10 / 80 - 21 / 41) and disparity.gaps[2].n == 121
    for other in (selection, true, false):
        for rate in (other.ratio, other.difference):
            assert rate.low < rate.value < rate.high


def test_every_other_group_is_held_against_the_largest_and_keeps_its_sign():
    gap = by_sums(*people((0, 30, 0, 10), (0, 40, 0, 40), (0, 10, 0, 30))).gaps[0]
    assert gap.reference.name == "1"
    assert [(o.group.name, o.difference.value) for o in gap.others] == [("0", 0.25), ("2", -0.25)]


def test_groups_are_held_against_the_one_that_is_named():
    named = people((0, 30, 0, 10), (0, 40, 0, 40), (0, 10, 0, 30))
    found = by_sums(*named, reference="2")
    assert {gap.reference.name for gap in found.gaps if gap.reference} == {"2"}
    assert [(o.group.name, o.difference.value) for o in found.gaps[0].others] == [("0", 0.5), ("1", 0.25)]
    assert [o.group.name for o in found.scores] == [o.group.name for o in found.cutoffs[0].others] == ["0", "1"]
    with pytest.raises(ParameterError, match="no group x; its groups are 0, 1, 2"):
        by_sums(*named, reference="x")
    # nobody of group 2 has the positive label: nothing can be held against its rate of these
    assert by_sums(*people((5, 20, 20, 5), (20, 20, 20, 20), (0, 20, 0, 20)), reference="2").gaps[1].reference is None


def scattered(n=600, seed=4):
    """Probabilities of two groups of which the second is scored riskier, and labels."""
    draw = np.random.default_rng(seed)
    index = (draw.random(n) < 0.4).astype(int)
    probabilities = draw.beta(2 + index, 6)
    groups = tuple(Group("code", str(k), int((index == k).sum())) for k in range(2))
    return groups, index, draw.random(n) < probabilities, probabilities


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_scores_are_compared_as_statistics_libraries_compare_them(measure):
    groups, index, labels, probabilities = scattered()
    (found,) = measure(groups, index, labels, probabilities, 0.3).scores
    own, base = (probabilities[index == k] for k in (1, 0))
    pooled = np.sqrt((own.var(ddof=1) + base.var(ddof=1)) / 2)
    assert found.smd.value == pytest.approx((own.mean() - base.mean()) / pooled, abs=1e-4)
    assert found.smd.low < found.smd.value < found.smd.high and found.smd.n == 600
    assert found.p == pytest.approx(ttest_ind(own, base, equal_var=False).pvalue, rel=0.02)


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_selection_at_each_cutoff_of_the_range_is_that_of_the_records(measure):
    groups, index, labels, probabilities = scattered()
    found = measure(groups, index, labels, probabilities, 0.3)
    cutoffs = [at.cutoff for at in found.cutoffs]
    assert cutoffs == sorted(cutoffs) and 0.3 in cutoffs and len(cutoffs) >= 9
    for at in found.cutoffs:
        rates = [np.mean(probabilities[index == k] < at.cutoff) for k in range(2)]
        assert [rate.value for rate in at.rates] == pytest.approx(rates)
        (other,) = at.others
        assert (other.difference.value, other.ratio.value) == pytest.approx((rates[1] - rates[0], rates[1] / rates[0]))
        alone = measure(groups, index, labels, probabilities, at.cutoff).gaps[0].others[0]
        assert (other.difference, other.ratio, other.p) == (alone.difference, alone.ratio, alone.p)


@given(st.integers(40, 130), st.integers(0, 10**6), st.sampled_from([0.1, 0.2, 0.5]), st.integers(2, 40), st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_set_of_records_that_a_hosts_sums_tell_apart_is_small(n, seed, cutoff, ties, undecided):
    """Of all sets of records whose sums follow from those that a Host returns, none has 1 to 19 records."""
    draw = np.random.default_rng(seed)
    probabilities = np.round(draw.beta(1, 4, n) * ties) / ties
    labels = draw.random(n) < probabilities * 2
    try:
        marking = mark(cutoff, labels, probabilities, own_groups=False, undecided=undecided)
    except ParameterError:
        assert not undecided
        return
    marks, _ = marking.marks(labels, probabilities)
    told = np.array([np.ones(n), *marks[:3], *marks[FIXED:]])
    kinds, sizes = np.unique(told, axis=1, return_counts=True)  # records that are marked alike
    sets = np.array(list(itertools.product((0, 1), repeat=kinds.shape[1])), dtype=float)
    left = sets - sets @ np.linalg.pinv(kinds) @ kinds
    found = sets[np.abs(left).max(axis=1) < 1e-9] @ sizes
    assert len(found) >= 2 and all(size == 0 or size >= MIN_GROUP for size in found)


@given(st.integers(60, 200), st.integers(0, 10**6), st.sampled_from([0.2, 0.5]), st.integers(2, 12), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_no_combination_of_a_hosts_sums_is_about_few_records(n, seed, cutoff, ties, groups):
    """Not a difference of two sets either, and not if decisions are crossed with a feature of the Guest's."""
    draw = np.random.default_rng(seed)
    probabilities = np.round(draw.beta(1, 2, n) * ties) / ties
    labels = draw.random(n) < probabilities
    index = draw.integers(0, groups, n)
    index[:groups] = range(groups)
    wire = [("code", str(k), int((index == k).sum())) for k in range(groups)]
    crossed = None if groups == 1 else ("age", wire, index)
    try:
        marking = mark(cutoff, labels, probabilities, own_groups=False, crossed=crossed)
    except ParameterError:
        return
    marks, largest = marking.marks(labels, probabilities, None if groups == 1 else index)
    assert len(largest) == len(marks) == FIXED + marking.flags
    told = np.array([np.ones(n), *marks[:3], *marks[FIXED:]])
    kinds, sizes = np.unique(told, axis=1, return_counts=True)  # records that are marked alike
    rank = np.linalg.matrix_rank(kinds)
    for _ in range(60):
        few = []
        for kind in draw.permutation(len(sizes)).tolist():
            if sizes[[*few, kind]].sum() < MIN_GROUP:
                few.append(kind)
        # A combination that is 0 for all others would be one fewer among these.
        assert np.linalg.matrix_rank(np.delete(kinds, few, axis=1)) == rank


def test_a_positive_record_less_another_intervals_negative_one_is_about_two_people():
    probabilities = np.repeat([0.1, 0.2, 0.9], 60)
    labels = np.repeat([False, True, False], 60)
    labels[[0, 60]] = True, False  # one of each in the other interval
    marking = mark(0.5, labels, probabilities, own_groups=False)
    along = dataclasses.replace(marking, others=(0.2,))
    # Positive labels less those between the cut-offs are one person less another one.
    assert smallest(along, labels, probabilities) == 2
    assert marking.labelled and not marking.others


def test_two_features_together_by_hand():
    """Women accepted less often are seen among the young alone; of the old there are too few."""
    of_age = Group("bin", "1", 140), Group("bin", "2", 119)
    of_sex = Group("code", "f", 119), Group("code", "m", 140)
    people_in = np.array([[100, 40], [19, 100]])
    accepted = np.array([[30, 32], [19, 80]])
    done = of_pairs("bank", "age × sex", 0.5, (of_age, of_sex), people_in, accepted, "records", seed=0)
    assert [(g.group.name, g.group.n) for g in done.groups] == [("1 × f", 100), ("1 × m", 40), ("2 × m", 100)]
    assert [g.rates["selection rate"].value for g in done.groups] == [0.3, 0.8, 0.8]
    assert done.small == (Group("pair", "2 × f", 0),) and done.n == 240
    (gap,) = done.gaps
    assert gap.reference.name == "1 × f" and [o.ratio.value for o in gap.others] == pytest.approx([8 / 3, 8 / 3])
    names = [Text(name) for name in ("young women", "young men", "old men", "old women")]
    rows = as_evidence(done, names)
    (small,) = [row for row in rows if row.about == Text("old women")]
    assert (small.n, small.value, small.low, small.high) == (0, None, None, None)
    assert {row.measure.partition(",")[0] for row in rows} == {"selection rate"}


def test_two_features_that_make_no_groups_are_compared_with_nothing():
    empty = np.zeros((0, 0), dtype=np.int64)
    done = of_pairs("bank", "age × sex", 0.5, ((), ()), empty, empty, "records", seed=0, reference="x")
    assert (done.groups, done.small, as_evidence(done, ())) == ((), (), ())
    with pytest.raises(SecurityError):
        of_pairs("b", "f", 0.5, ((Group("code", "a", 30),),) * 2, np.array([[30]]), np.array([[31]]), "sums", seed=0)


def test_what_would_tell_few_apart_is_not_asked_of_a_host():
    probabilities, labels = np.linspace(0, 0.6, 100), np.arange(100) % 2 == 0
    with pytest.raises(ParameterError, match="83 of 100 records are accepted"):
        mark(0.5, labels, probabilities, own_groups=False)
    assert mark(0.5, labels, probabilities, own_groups=True).labelled
    both = mark(0.3, labels, probabilities, own_groups=False)
    assert both.labelled and len(both.range) > 1
    few = mark(0.3, labels & (np.arange(100) < 70), probabilities, own_groups=False)  # 10 are declined and positive
    assert not few.labelled and few.labels
    fewer = mark(0.3, np.arange(100) < 18, probabilities, own_groups=False)
    assert not fewer.labels and len(fewer.range) > 1


def test_without_labels_acceptance_and_scores_are_reported_and_nothing_of_labels():
    groups, index, labels, probabilities = scattered()
    marking = dataclasses.replace(mark(0.3, labels, probabilities, own_groups=True), labelled=False, labels=False)
    each, _ = marking.marks(labels, probabilities)
    assert not each[1].any() and not each[2].any()
    found = from_sums(
        "host", "f", marking, groups, np.array([[m[index == k].sum() for k in range(2)] for m in each]), seed=0
    )
    whole = by_records(groups, index, labels, probabilities, 0.3)
    for one, other in zip(found.groups, whole.groups, strict=True):
        assert (one.positive, one.calibration.value, one.rates["false positive rate"]) == (SUPPRESSED, None, SUPPRESSED)
        assert one.rates["selection rate"] == other.rates["selection rate"] and one.score == other.score
    assert found.gaps[0] == whole.gaps[0] and found.scores == whole.scores and found.cutoffs == whole.cutoffs


def test_rates_by_label_are_suppressed_where_labels_were_not_crossed_with_decisions():
    groups, index, labels, probabilities = scattered()
    marking = dataclasses.replace(mark(0.3, labels, probabilities, own_groups=True), labelled=False)
    each, _ = marking.marks(labels, probabilities)
    sums = np.array([[m[index == k].sum() for k in range(2)] for m in each])
    found = from_sums("host", "f", marking, groups, sums, seed=0)
    assert found.groups[0].rates["true positive rate"] == SUPPRESSED and found.gaps[2].reference is None
    assert found.groups[0].rates["selection rate"].value == np.mean(probabilities[index == 0] < 0.3)
    assert found.groups[0].positive.value == np.mean(labels[index == 0])


@settings(max_examples=5, deadline=None)
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
    for gap, metric, predicted in zip(
        sums.gaps,
        (selection_rate, true_positive_rate, false_positive_rate),
        (1 - declined, declined, declined),
        strict=True,
    ):
        rates = MetricFrame(
            metrics=metric, y_true=labels.astype(int), y_pred=predicted, sensitive_features=index
        ).by_group
        for other in gap.others:
            base, rate = rates[int(gap.reference.name)], rates[int(other.group.name)]
            assert (other.difference.value, other.ratio.value) == pytest.approx((rate - base, rate / base))


def test_a_rate_with_fewer_than_twenty_records_behind_it_is_suppressed():
    disparity = by_sums(*people((10, 70, 10, 10), (9, 50, 10, 31), (30, 30, 30, 30)))
    assert disparity.groups[1].rates["true positive rate"] == SUPPRESSED  # 19 with the positive label
    assert disparity.groups[1].rates["selection rate"].n == 100
    gap = disparity.gaps[1]
    assert (gap.n, gap.reference.name, [o.group.name for o in gap.others]) == (20 + 60, "2", ["0"])
    alone = by_sums(*people((10, 70, 10, 10), (9, 50, 10, 31)))
    assert (alone.gaps[1].reference, alone.gaps[1].others, alone.gaps[1].p) == (None, (), None)
    assert alone.gaps[0].others


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_without_groups_nothing_is_reported(measure):
    disparity = measure((), np.zeros(30, dtype=int), np.zeros(30, dtype=bool), np.full(30, 0.4))
    assert disparity.groups == () and disparity.gaps == ()


@pytest.mark.parametrize("measure", [by_sums, by_records])
def test_a_ratio_of_nothing_accepted_anywhere_is_suppressed(measure):
    disparity = measure(*people((0, 0, 30, 30), (0, 0, 40, 20)))
    (other,) = disparity.gaps[0].others
    assert other.ratio == SUPPRESSED and other.difference.value == 0 and disparity.gaps[0].p == 1


def test_somebody_at_the_cutoff_is_declined():
    groups, index, labels, _ = people((0, 20, 0, 0), (0, 20, 0, 0))
    at = np.where(index == 0, 0.5, np.nextafter(0.5, 0))
    for measure in (by_sums, by_records):
        assert [o.rates["selection rate"].value for o in measure(groups, index, labels, at).groups] == [0, 1]


def test_an_interval_of_certainty_is_not_certain():
    everybody = by_records(*people((5, 25, 0, 0), (10, 10, 5, 5))).groups[0].rates["selection rate"]
    assert everybody.value == 1 and 0.85 < everybody.low < 0.95 and everybody.high == 1


def test_a_gaps_intervals_are_close_to_those_of_resampled_records():
    _, index, _, probabilities = TWO
    draw, drawn = np.random.default_rng(2), []
    for _ in range(400):
        rows = draw.integers(0, len(index), len(index))
        reference, own = (np.mean(probabilities[rows][index[rows] == k] < CUT) for k in range(2))
        drawn.append((own - reference, own / reference))
    (other,) = by_sums(*TWO).gaps[0].others
    for rate, resampled in zip((other.difference, other.ratio), np.transpose(drawn), strict=True):
        assert (rate.low, rate.high) == pytest.approx(tuple(np.quantile(resampled, [0.025, 0.975])), abs=0.04)


def test_two_groups_in_which_everybody_is_accepted_are_not_certainly_alike():
    (other,) = by_sums(*people((5, 25, 0, 0), (10, 20, 0, 0))).gaps[0].others
    assert other.difference.value == 0 and -0.2 < other.difference.low < -0.05 and 0.05 < other.difference.high < 0.2
    assert other.ratio.value == 1 and other.ratio.low < 0.95 and other.ratio.high > 1.05


RUNS = 1000


def drawn(rates, sizes, seed):
    """``(RUNS, groups)``: how many of each group are accepted."""
    return np.random.default_rng(seed).binomial(sizes, rates, size=(RUNS, len(sizes)))


def compared(accepted, sizes):
    """Groups of which so many are accepted, without labels."""
    groups = tuple(Group("code", str(k), n) for k, n in enumerate(sizes))
    nobody = np.zeros(len(sizes), dtype=np.int64)
    return from_sums("host", "f", PLAIN, groups, np.array([accepted, *[nobody] * 6]), seed=0)


@pytest.mark.parametrize("rates", [(0.7, 0.7), (0.7, 0.55), (0.9, 0.95)], ids=["no gap", "worse", "better"])
def test_an_interval_holds_the_true_difference_and_ratio_in_95_of_100_runs(rates):
    sizes, held = (300, 150), np.zeros(2)
    true = rates[1] - rates[0], rates[1] / rates[0]
    for accepted in drawn(rates, sizes, seed=11):
        (reference, own), (n, other_n) = accepted / sizes, sizes
        found = of_difference(own, other_n, reference, n), of_ratio(own, other_n, reference, n)
        held += [low <= value <= high for value, (low, high) in zip(true, found, strict=True)]
    assert np.all((held >= 0.93 * RUNS) & (held <= 0.97 * RUNS)), held


@pytest.mark.parametrize(("rates", "least", "most"), [((0.7,) * 4, 0.03, 0.07), ((0.7, 0.7, 0.7, 0.5), 0.9, 1.0)])
def test_the_permutation_test_finds_a_gap_and_cries_wolf_in_5_of_100_runs(rates, least, most, monkeypatch):
    monkeypatch.setattr(significance, "PERMUTATIONS", 400)
    sizes, draw = np.array([300, 200, 150, 100]), np.random.default_rng(3)
    found = [by_chance(accepted, sizes, draw) < 0.05 for accepted in drawn(rates, sizes, seed=13)]
    assert least <= np.mean(found) <= most


def test_what_is_reported_of_groups_without_a_gap_holds_no_gap_in_95_of_100_runs():
    sizes = np.array([200, 100])
    others = [compared(accepted, sizes).gaps[0].others[0] for accepted in drawn((0.8, 0.8), sizes, seed=17)[:200]]
    for held in (
        [o.difference.low <= 0 <= o.difference.high for o in others],
        [o.ratio.low <= 1 <= o.ratio.high for o in others],
    ):
        assert np.mean(held) > 0.9


def test_probabilities_and_squares_travel_as_small_whole_numbers():
    marking = Marking(0.5, (0.2,), True, 0.5, 0.25, square_bits=16)
    flags, largest = marking.marks(np.array([True, True]), np.array([1.0, 0.3]))
    # 0.3 * 4,096 = 1,228.8; (0.3 - 0.5)² / 0.25 * 65,536 = 10,485.76
    assert [m.tolist() for m in flags] == [
        [0, 1],
        [1, 1],
        [0, 1],
        [4096, 1229],
        [65536, 10486],
        [0, 2007],
        [0, 983],
        [0, 0],
    ]
    # (0.3 - 1)² = 0.49, and 0.49² = 0.2401
    assert largest == [1, 1, 1, 4096, 65536, 4096, 4096, 1]


def test_a_standard_deviation_from_sums_holds_to_the_digits_that_are_printed():
    draw = np.random.default_rng(3)
    p = np.append(draw.normal(0.1, 0.02, 500).clip(0, 1), [0.95] * 3)  # nearly all squares are small beside the largest
    groups, index = (Group("code", "a", 300), Group("code", "b", 203)), np.repeat([0, 1], [300, 203])
    found = by_sums(groups, index, p > 0.2, p)
    exact = [p[index == k].std(ddof=1) for k in (0, 1)]
    assert [g.deviation for g in found.groups] == pytest.approx(exact, abs=5e-5)


def test_sums_that_no_records_give_are_discarded():
    groups = (Group("code", "a", 30), Group("code", "b", 30))
    with pytest.raises(SecurityError, match="not those of any records"):
        from_sums("host", "f", PLAIN, groups, np.array([[10, 10], [25, 25], [12, 5], *[[0, 0]] * 4]), seed=0)
    falling = np.array([[10, 10], [15, 15], [5, 5], *[[0, 0]] * 4, [9, 11]])  # fewer accepted at a higher cut-off
    with pytest.raises(SecurityError, match="not those of any records"):
        from_sums("host", "f", Marking(CUT, (0.6,), True, 0.0, 1.0), groups, falling, seed=0)


@pytest.mark.parametrize("cutoff", [0.0, 1.0, -1, math.nan, 2])
def test_a_cutoff_that_decides_nothing_is_refused(cutoff):
    with pytest.raises(ParameterError, match="above 0 and below 1"):
        check_cutoff(cutoff)


def test_as_evidence_each_figure_says_its_group_and_its_number_of_records():
    rows = disparity.as_evidence(by_sums(*TWO), (Text("men"), Text("women")))
    assert [(e.about.en, e.measure, e.n) for e in rows[3:5]] == [
        ("women", "selection rate", 100),
        ("women", "true positive rate", 60),
    ]
    assert [(e.about.en, e.measure, e.n) for e in rows[6:11]] == [
        ("men", "selection rate, reference", 100),
        ("women", "selection rate, difference", 200),
        ("women", "selection rate, ratio", 200),
        ("women", "selection rate, pair p", 200),
        ("all groups", "selection rate, p", 200),
    ]
    assert rows[7].value == pytest.approx(-0.4) and rows[8].value == pytest.approx(0.5) and rows[9].value < 0.001
    assert rows[10].value == rows[9].value  # of two groups, the same test
    assert [(e.about.en, e.measure, e.cutoff) for e in rows[21:]] == [
        ("men", "score", None),
        ("women", "score", None),
        ("women", "score, standardised mean difference", None),
        ("women", "score, pair p", None),
        ("men", "selection rate by cut-off", CUT),
        ("women", "selection rate by cut-off", CUT),
        ("women", "selection rate by cut-off, difference", CUT),
        ("women", "selection rate by cut-off, ratio", CUT),
    ]
    assert len(rows) == 2 * 3 + 3 * 5 + 4 + 4
    assert disparity.widest(rows) == rows[7] and disparity.widest(rows[:7]) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_measure_has_words(language):
    for row in disparity.as_evidence(by_sums(*TWO), (Text("men"), Text("women"))):
        assert measure_in_words(Catalogue(language), row.measure) != row.measure
