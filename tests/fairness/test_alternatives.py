"""Cut-offs, gaps and the frontier by hand and by brute force; sums over sets of people that are too close are never asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import ParameterError
from backend.evaluation.performance import draws
from backend.fairness.alternatives import (
    Candidate,
    Cells,
    CutoffComparison,
    DrawnQuality,
    Sums,
    cells_drawn,
    cutoff_for,
    judge,
    marks,
    too_close,
)
from backend.fairness.intervals import of_difference, simultaneous
from backend.protocols.group_sums.grouping import Group
from backend.trees import metrics

GROUPS = (Group("code", "1", 400), Group("code", "2", 600))
INDEX = np.repeat([0, 1], [400, 600])


def quality(value, spread=0.0, times=500):
    return DrawnQuality(value, value + spread * np.linspace(-1, 1, times))


def accepting(*counts):
    """Flags that accept so many of each group."""
    flags = np.zeros(1000, dtype=bool)
    flags[: counts[0]] = flags[400 : 400 + counts[1]] = True
    return flags


def candidate(name, auc, *counts, spread=0.0, times=500):
    return Candidate(name, 0.5, accepting(*counts), quality(auc, spread, times), quality(0.4))


def sums_of(first, other):
    rows = marks(first.accepts, [other.accepts])
    return Sums(*(np.array([row[k == INDEX].sum() for k in (0, 1)]) for row in rows))


def decision(first, *others, measured=True, seed=1):
    own = np.array([first.accepts[k == INDEX].sum() for k in (0, 1)])
    draw, times = np.random.default_rng(seed), len(first.auc_drawn.draws)
    cells = [Cells.of_sums(sums_of(first, other), GROUPS, times, draw) if measured else None for other in others]
    return CutoffComparison(first, own, tuple(zip(others, cells, strict=True)))


def judged(first, *others, measured=True):
    [decided] = judge([decision(first, *others, measured=measured)], GROUPS, reference=1, tolerance=0.002)
    return decided.points


def test_gap_ratio_and_change_by_hand():
    """280 of 400 and 480 of 600 are 70 % and 80 %; 300 and 465 are 75 % and 77.5 %."""
    first, other = judged(candidate("c0", 0.78, 280, 480), candidate("c1", 0.779, 300, 465))
    assert (first.gap.value, first.ratio.value) == pytest.approx((-0.1, 0.875))
    assert (first.gap.low, first.gap.high) == of_difference(0.7, 400, 0.8, 600)
    assert (other.gap.value, other.gap_change.value) == pytest.approx((-0.025, -0.075))
    assert first.gap_change.value == first.gap_change.low == first.gap_change.high == 0.0
    assert other.auc_change.value == pytest.approx(-0.001) and other.accepted == 0.765
    assert other.gap_change.low < -0.075 < other.gap_change.high
    assert other.narrower and other.sure and other.group == GROUPS[0]


def test_the_change_of_a_gap_is_resampled_as_records_are():
    """The cells of both decisions by group hold all that a draw of records with replacement can change."""
    first, other = (candidate(*of, times=2000) for of in (("c0", 0.78, 280, 480), ("c1", 0.779, 300, 465)))
    draw, changes = np.random.default_rng(0), []
    for _ in range(2000):
        at = draw.integers(0, 1000, 1000)
        rates = [[c.accepts[at][INDEX[at] == k].mean() for k in (0, 1)] for c in (first, other)]
        changes.append(abs(rates[1][0] - rates[1][1]) - abs(rates[0][0] - rates[0][1]))
    point = judged(first, other)[1]
    assert (point.gap_change.low, point.gap_change.high) == pytest.approx(
        np.quantile(changes, [0.025, 0.975]), abs=0.004
    )


def test_what_loses_too_much_or_is_no_narrower_is_no_alternative():
    first = candidate("c0", 0.78, 280, 480)
    worse, wider, unsure = judged(
        first,
        candidate("c1", 0.777, 300, 465),
        candidate("c2", 0.79, 270, 487),
        candidate("c3", 0.779, 300, 465, spread=0.05),
    )[1:]
    assert not worse.narrower and not wider.narrower and not worse.sure and not wider.sure
    assert unsure.narrower and not unsure.sure


def test_the_more_models_are_searched_the_harder_it_is_to_be_sure():
    first, other = candidate("c0", 0.78, 280, 480), candidate("c1", 0.7815, 300, 465, spread=0.00225)
    alone = judged(first, other)[1]
    among_many = judged(first, *[other] * 60)[1]
    assert alone.sure and not among_many.sure and among_many.narrower


def test_intervals_that_hold_together_are_those_of_a_plain_bootstrap_of_all_records():
    """By loops: records are drawn, every model's AUC and gap counted again, and the largest distance of all taken, draw by draw."""
    draw, n, times = np.random.default_rng(3), 120, 40
    index, labels = draw.integers(0, 2, n), draw.integers(0, 2, n).astype(float)
    scores = [np.round(labels + 0.8 * index * k + draw.normal(size=n), 1) for k in range(3)]
    accepted = [score < np.median(score) for score in scores]
    weights = np.concatenate(list(draws(n, times, 5)))

    def by_hand(weight):
        """Changes of AUC and of the gap's width of both alternatives, every record as often as it was drawn."""
        at, found = np.repeat(np.arange(n), weight.astype(int)), []
        for score, decided in zip(scores, accepted, strict=True):
            pairs = [(score[i], score[j]) for i in at for j in at if labels[i] == 1 and labels[j] == 0]
            area = sum(1.0 if one > other else 0.5 * (one == other) for one, other in pairs) / len(pairs)
            found.append((area, abs(decided[at][index[at] == 0].mean() - decided[at][index[at] == 1].mean())))
        return [found[k][what] - found[0][what] for k in (1, 2) for what in (0, 1)]

    values, drawn = np.array(by_hand(np.ones(n))), np.array([by_hand(weight) for weight in weights])
    errors = [np.std(column, ddof=1) for column in drawn.T]
    largest = sorted(max(abs(row[i] - values[i]) / errors[i] for i in range(4)) for row in drawn)
    factor = largest[38]  # the 39th of 40: 95 % of 41

    groups = tuple(Group("code", str(k), int((index == k).sum())) for k in (0, 1))
    areas = [
        DrawnQuality(float(metrics.auc(labels, s, np.ones((1, n)))[0]), metrics.auc(labels, s, weights)) for s in scores
    ]
    first, *others = (
        Candidate(f"c{k}", 0.5, flags, area, area) for k, (flags, area) in enumerate(zip(accepted, areas, strict=True))
    )
    flags = marks(first.accepts, [other.accepts for other in others])
    sums = [np.array([flag[index == k].sum() for k in (0, 1)]) for flag in flags]
    found = [Sums(sums[0], *both).cells(groups) for both in ((sums[1], sums[2]), (sums[3], sums[4]))]
    cells = [Cells(*both) for both in zip(found, cells_drawn(flags, index, 2, draws(n, times, 5)), strict=True)]
    own = CutoffComparison(first, sums[0], tuple(zip(others, cells, strict=True)))
    [decided] = judge([own], groups, reference=1, tolerance=0.002)
    shown = [figure for p in decided.points[1:] for figure in (p.auc_together, p.gap_together)]
    assert [figure.value for figure in shown] == pytest.approx(values)
    assert [figure.high - figure.value for figure in shown] == pytest.approx([factor * error for error in errors])
    assert [figure.value - figure.low for figure in shown] == pytest.approx([factor * error for error in errors])
    assert factor > 2 and decided.points[0].auc_together is None


def test_what_is_chosen_among_is_every_alternative_at_every_decision():
    first, other = candidate("c0", 0.78, 280, 480), candidate("c1", 0.7815, 300, 465, spread=0.002)
    one = judge([decision(first, other)], GROUPS, reference=1, tolerance=0.002)
    many = judge(
        [decision(first, other), *[decision(first, other, seed=k) for k in range(2, 40)]],
        GROUPS,
        reference=1,
        tolerance=0.002,
    )
    width = [d[0].points[1].gap_together.high - d[0].points[1].gap_together.low for d in (one, many)]
    assert width[1] > 1.3 * width[0]


def test_figures_whose_draws_are_apart_get_wider_intervals_not_narrower():
    """Of nine figures that go together one factor is enough; where a Host's sums hide that they do, it is that of nine independent ones."""
    draw = np.random.default_rng(0)
    shared = draw.normal(size=(20_000, 1))
    together = simultaneous(np.zeros(9), np.tile(shared, 9))
    apart = simultaneous(np.zeros(9), draw.normal(size=(20_000, 9)))
    assert together[1] == pytest.approx(np.full(9, 1.96), abs=0.05)
    assert apart[1] == pytest.approx(np.full(9, 2.77), abs=0.08)  # Šidák: 1 - 0.95 ** (1 / 9) on both sides


def test_a_figure_that_no_draw_moves_has_no_width_and_few_draws_give_no_interval():
    low, high = simultaneous(np.array([1.0, 2.0]), np.array([[1.0, 2.5], [1.0, 1.5], [1.0, np.nan]]))
    assert (low[0], high[0]) == (1.0, 1.0) and low[1] < 2.0 < high[1]
    assert simultaneous(np.zeros(2), np.full((500, 2), np.nan)) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(240, 320)), min_size=1, max_size=6))
def test_the_frontier_is_who_nobody_beats_in_both(drawn):
    first = candidate("c0", 0.75, 280, 480)
    others = [candidate(f"c{i}", 0.7 + auc / 100, accepted, 480) for i, (auc, accepted) in enumerate(drawn, start=1)]
    points = judged(first, *others)
    pairs = [(p.auc.value, abs(p.gap.value)) for p in points]
    for point, (auc, gap) in zip(points, pairs, strict=True):
        beaten = any(a >= auc and g <= gap and (a > auc or g < gap) for a, g in pairs)
        assert point.frontier == (not beaten)


def test_where_sums_would_tell_of_few_people_there_is_no_gap_and_no_claim():
    point = judged(candidate("c0", 0.78, 280, 480), candidate("c1", 0.79, 281, 480), measured=False)[1]
    assert (point.gap, point.ratio, point.gap_change, point.group) == (None,) * 4
    assert not (point.frontier or point.narrower or point.sure) and point.auc_change.value == pytest.approx(0.01)


def test_two_sums_may_not_differ_by_one_person_nor_by_nineteen():
    base = accepting(200, 300)
    assert not too_close([base], base) and not too_close([base], accepting(220, 300))
    for few in (1, 19):
        assert too_close([base], accepting(200 + few, 300)) and too_close([accepting(200 + few, 300)], base)
    swapped = accepting(200, 300)
    swapped[0], swapped[700:740] = False, True  # forty came and one went
    assert too_close([base], swapped)
    assert too_close([np.ones(1000, dtype=bool)], accepting(400, 595))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.floats(0, 1))
def test_a_cutoff_accepts_the_share_that_comes_closest(values, share):
    probabilities = np.array(values) / 20
    cutoff = cutoff_for(probabilities, share)
    every = [*np.unique(probabilities), probabilities.max() + 1]
    best = min(abs((probabilities < c).mean() - share) for c in every)
    assert abs((probabilities < cutoff).mean() - share) == pytest.approx(best)


def test_no_validation_record_gives_no_cutoff():
    with pytest.raises(ParameterError, match="no records to find a cut-off on"):
        cutoff_for(np.empty(0), 0.5)


def test_a_difference_of_figures_is_paired():
    one, other = quality(0.8, 0.02), quality(0.79, 0.02)
    figure = other.less(one).figure()
    assert (figure.value, figure.low, figure.high) == pytest.approx((-0.01,) * 3)
