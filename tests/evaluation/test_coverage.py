"""How often intervals hold the truth, on populations whose truth is known: those about fairness are counted by `bench.coverage`."""

from functools import cache

import numpy as np
import pytest

from backend.evaluation.difference import paired_difference
from backend.evaluation.performance import RESAMPLES, Performance, calibration, draws, performance, weighted_figures
from backend.evaluation.validation import figures, slices
from backend.explain.dependence import Scale, from_marks, from_sums, marks
from backend.explain.permutation import permuted
from backend.explain.stability import _resampled
from backend.fairness.alternatives import Candidate, CutoffComparison, DrawnQuality, judge
from backend.fairness.marking import mark
from backend.protocols.group_sums.grouping import Group
from backend.reports import model_comparison
from backend.reports.build.performance import merged
from backend.trees.metrics import auc, ks
from backend.trees.outputs import ONE_LOGIT, Outputs, sigmoid

pytestmark = pytest.mark.slow
RUNS, N, MANY = 200, 400, 1_000_000
# of 200 intervals that hold with 95 %, fewer than 181 do with a probability of 0.3 %
LEAST = 181
NUMBER = Outputs("number", link="identity")


def people(n, seed):
    """Labels and margins: log-odds are right."""
    draw = np.random.default_rng(seed)
    margins = draw.normal(-0.5, 1.2, n)
    return (draw.random(n) < sigmoid(margins)).astype(float), margins


def amounts(n, seed):
    """Values and predictions: off by 5 as they are drawn."""
    draw = np.random.default_rng(seed)
    predicted = draw.normal(50, 10, n)
    return predicted + draw.normal(0, 5, n), predicted


SAMPLES = {"binary": (people, ONE_LOGIT), "number": (amounts, NUMBER)}


@cache
def truth(task):
    """Every figure on very many records."""
    sample, outputs = SAMPLES[task]
    labels, margins = sample(MANY, 1 << 30)
    return weighed(labels, margins[:, None], outputs)


def weighed(labels, margins, outputs):
    """Every figure of records that count once each; ascending, as resampling has them."""
    order = np.argsort(margins[:, 0], kind="stable")
    labels, margins = labels[order], margins[order]
    found = weighted_figures(labels, margins, outputs.predict(margins), outputs.task, np.ones((1, len(labels))))
    return {name: float(values[0]) for name, values in found.items()}


@cache
def runs(task):
    """Every figure of many small samples."""
    sample, outputs = SAMPLES[task]
    found = []
    for seed in range(RUNS):
        labels, margins = sample(N, seed)
        found.append(performance(labels, margins[:, None], outputs, "test", seed))
    return found


@pytest.mark.parametrize(
    ("task", "name"),
    [
        *(("binary", n) for n in ("auc", "ks", "brier", "log_loss", "accuracy")),
        *(("number", n) for n in ("r2", "rmse", "mae")),
    ],
)
def test_a_models_figures(task, name):
    true = truth(task)[name]
    held = [figure.low <= true <= figure.high for run in runs(task) if (figure := run.figure(name))]
    assert len(held) == RUNS and sum(held) >= LEAST


def test_a_bin_of_a_calibration():
    held = bins = 0
    for seed in range(RUNS):
        labels, margins = people(N, seed)
        p = sigmoid(margins)
        order = np.argsort(p, kind="stable")
        rows = calibration(labels, p[:, None], "binary", 5)
        ends = np.cumsum([row.n for row in rows])
        for row, own in zip(rows, np.split(p[order], ends[:-1]), strict=True):
            held += row.low <= own.mean() <= row.high
            bins += 1
    assert held >= 0.93 * bins


def test_the_gap_of_auc_between_training_and_test():
    own = [figures.auc_gap(a, b) for a, b in zip(runs("binary")[::2], runs("binary")[1::2], strict=True)]
    assert sum(one.low <= 0 <= one.high for one in own) >= 0.9 * len(own)


def test_gini_is_twice_the_auc():
    run: Performance = runs("binary")[0]
    auc, gini = figures.discrimination(run)
    assert (gini.low, gini.high) == (2 * auc.low - 1, 2 * auc.high - 1)


def shuffled(n, seed):
    """Labels, margins, and margins with one of two parts taken from others."""
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=(2, n))
    labels = (draw.random(n) < sigmoid(a + b)).astype(float)
    return labels, (a + b)[:, None], [(a + draw.permutation(b))[:, None] for _ in range(3)]


def test_what_a_feature_is_worth():
    labels, whole, others = shuffled(MANY, 1 << 30)
    true = weighed(labels, whole, ONE_LOGIT)["auc"] - weighed(labels, others[0], ONE_LOGIT)["auc"]
    held = 0
    for seed in range(RUNS):
        labels, whole, others = shuffled(N, seed)
        found = permuted("bank", ("b",), labels, whole, others, ONE_LOGIT, seed)
        held += found.low <= true <= found.high
    assert held >= LEAST


def test_a_share_of_the_gain_over_trees():
    """Of trees that are drawn one by one from all that could be."""
    held = np.zeros(3)
    means = np.array([5.0, 2.0, 1.0])
    for seed in range(RUNS):
        totals = np.random.default_rng(seed).gamma(2.0, means / 2, size=(60, 3))
        for row in _resampled(totals, [("p", "0"), ("p", "1"), ("p", "2")]):
            held[int(row.feature)] += row.low <= (means / means.sum())[int(row.feature)] <= row.high
    assert held.min() >= LEAST


@pytest.mark.parametrize("n", [60, 300])
def test_a_groups_mean_prediction(n):
    """From sums, as a Host gives them: of two outcomes, and of a number."""
    held = {"binary": 0, "number": 0}
    for seed in range(RUNS):
        labels, margins = people(n, seed)
        p, index, groups = sigmoid(margins), np.zeros(n, dtype=int), (Group("bin", "1", n),)
        marking = mark(0.5, labels > 0, p, own_groups=True)
        sums = slices.summed(marking.marks(labels > 0, p)[0], index, 1)
        # one group alone is none: a second of the same people stands beside it
        found = from_marks("h", "f", marking, groups * 2, np.hstack([sums, sums]), "")
        held["binary"] += found.groups[0].low[0] <= MEAN_P <= found.groups[0].high[0]
        _, predicted = amounts(n, seed)
        scale = Scale.of(predicted[:, None], "number")
        made, _ = marks(predicted[:, None], scale)
        row = from_sums("h", "f", groups, slices.summed(made, index, 1), scale).groups[0]
        held["number"] += row.low[0] <= 50 <= row.high[0]
    assert min(held.values()) >= LEAST, held


MEAN_P = float(sigmoid(people(MANY, 1 << 30)[1]).mean())


def sliced(labels, margins, seed, groups=4):
    """Slices of a feature that tells nothing, in so many groups."""
    p = sigmoid(margins)
    index = np.random.default_rng(seed + 10_000).integers(0, groups, len(p))
    named = tuple(Group("bin", str(k + 1), int((index == k).sum())) for k in range(groups))
    marking = mark(0.5, labels > 0, p, own_groups=True)
    return slices.slices(named, slices.summed(marking.marks(labels > 0, p)[0], index, groups), marking)


def test_gaps_by_group_hold_together():
    """Calibration by group, loss by region between two parts, loss and calibration over time: where there is no gap, all intervals hold
    0 at once.
    """
    found = dict.fromkeys(("group_gap", "region_gap", "period_loss", "period_gap"), 0)
    for seed in range(RUNS):
        test, training = (sliced(*people(800, s), s) for s in (seed, seed + 50_000))
        key = ("bank", "f")
        found["group_gap"] += _all_hold(slices.calibration_gaps({key: test}))
        found["region_gap"] += _all_hold(slices.region_gaps({key: test}, {key: training}))
        for measure in ("period_loss", "period_gap"):
            found[measure] += _all_hold([f for f in slices.over_time(key, test) if f.measure == measure])
    assert min(found.values()) >= LEAST, found


def _all_hold(rows, true=0.0):
    assert rows
    return all(row.low <= true <= row.high for row in rows)


def scored(n, seed, slope, shift, wrong):
    """Labels and margins of a model that tells people apart by `slope`; log-odds are `wrong` by so much."""
    draw = np.random.default_rng(seed)
    margins = draw.normal(shift, slope, n)
    return (draw.random(n) < sigmoid(margins + wrong)).astype(float), margins


@pytest.mark.parametrize(
    ("slope", "shift", "wrong"),
    [
        (1.2, -0.5, 0.0),
        (1.2, -2.5, 0.0),  # few are positive
        (2.5, -2.5, 0.0),
        (4.0, -2.0, 0.0),  # nearly told apart
        (0.2, -1.5, 0.0),  # hardly told apart
        (0.2, 0.0, 0.0),
        (1.2, -0.5, 1.0),  # wrong by as much
    ],
)
def test_how_weak_slices_are_holds_together(slope, shift, wrong):
    labels, margins = scored(MANY, 1 << 30, slope, shift, wrong)
    true = float(((labels - sigmoid(margins)) ** 2).mean() - labels.var())
    held = sum(
        _all_hold(slices.weak_spots({("bank", "f"): sliced(*scored(800, seed, slope, shift, wrong), seed)}), true)
        for seed in range(RUNS)
    )
    assert held >= LEAST


@pytest.mark.parametrize("gap", [0.0, 0.7])
def test_an_impact_ratio(gap):
    """A smaller group's share of accepted people over the larger one's, from slices as from a Host's sums; each by itself."""
    held, true = 0, [float((p < 0.5).mean()) for p in (sigmoid(people(MANY, 1 << 30)[1] + by) for by in (0.0, gap))]
    for seed in range(RUNS):
        labels, margins = people(N, seed)
        index = (np.arange(N) < N // 3).astype(int)
        p = sigmoid(margins + gap * index)
        groups, marking = (
            (Group("code", "0", N - N // 3), Group("code", "1", N // 3)),
            mark(0.5, labels > 0, p, own_groups=True),
        )
        own = slices.slices(groups, slices.summed(marking.marks(labels > 0, p)[0], index, 2), marking)
        (found,) = slices.impact_ratios({("bank", "f"): own})
        held += found.low <= true[1] / true[0] <= found.high
    assert held >= LEAST


def two_models(n, seed):
    """Labels, and margins of two models that share half of their noise: the second is the better one."""
    draw = np.random.default_rng(seed)
    labels, shared = (draw.random(n) < 0.3).astype(float), draw.normal(size=n)
    one, other = (gap * labels + np.sqrt(0.5) * (shared + draw.normal(size=n)) for gap in (1.0, 1.2))
    return labels, one[:, None] - 1.5, other[:, None] - 1.5


BOTH = (ONE_LOGIT, ONE_LOGIT)


@cache
def differences():
    return [{f.name: f for f in paired_difference(*two_models(N, seed), BOTH)} for seed in range(RUNS)]


@cache
def true_differences():
    labels, one, other = two_models(MANY, 1 << 30)
    before, after = (weighed(labels, margins, ONE_LOGIT) for margins in (one, other))
    return {name: after[name] - before[name] for name in before}


@pytest.mark.parametrize("name", ["auc", "ks", "brier", "log_loss", "accuracy"])
def test_what_two_models_differ_by_on_the_same_people(name):
    true = true_differences()[name]
    assert sum(found[name].low <= true <= found[name].high for found in differences()) >= LEAST


@pytest.mark.parametrize("name", ["auc", "ks", "brier", "log_loss", "accuracy"])
def test_what_two_models_differ_by_on_other_people(name):
    """Put together from both models' own intervals."""
    held, true = 0, true_differences()[name]
    for seed in range(RUNS):
        sides = []
        for at, by in ((1, seed), (2, seed + 50_000)):
            sample = two_models(N, by)
            sides.append(performance(sample[0], sample[at], ONE_LOGIT, "test", by).figure(name))
        before, after = sides
        ends = (before.low, before.high), (after.low, after.high)
        low, high = model_comparison._apart(before.value, after.value, *ends)
        held += low <= true <= high
    assert held >= LEAST


def disturbed(n, seed):
    """Labels, probabilities, and those of the same people where something is missing or noisy: less sharp, and higher on the whole."""
    labels, margins = people(n, seed)
    changed = margins + np.random.default_rng(seed + 1).normal(0.2, 0.8, n)
    return labels, sigmoid(margins), sigmoid(changed)


def robustness(n, seed):
    """What is lost, which decisions change, and what is left without a Host."""
    labels, whole, changed = disturbed(n, seed)
    fall = figures.auc_fall("noise_fall", labels, whole, changed, "bank")
    return fall, figures.flips(whole, changed, 0.4, "bank"), *figures.without_host(labels, whole, changed, "bank")


def test_robustness_to_noise_a_missing_feature_and_a_host_that_is_out():
    labels, whole, changed = disturbed(MANY, 1 << 30)
    once = np.ones((1, MANY))
    true = (
        auc(labels, whole, once)[0] - auc(labels, changed, once)[0],
        ((whole < 0.4) != (changed < 0.4)).mean(),
        auc(labels, changed, once)[0],
        abs((changed - whole).mean()),
    )
    held = np.zeros(len(true))
    for seed in range(RUNS):
        held += [one.low <= value <= one.high for one, value in zip(robustness(N, seed), true, strict=True)]
    assert min(held) >= LEAST, held


def test_how_much_worse_one_models_own_approvals_are():
    """Whoever is approved by one of two models only: here both are right about as often."""
    held = 0
    for seed in range(RUNS):
        draw = np.random.default_rng(seed)
        labels, champion, challenger = draw.random((3, 600)) < np.array([[0.2], [0.6], [0.6]])
        _, excess = figures.swap_sets(labels, champion, challenger)
        held += excess.low <= 0 <= excess.high
    assert held >= LEAST


@pytest.mark.parametrize("merge", [False, True])
def test_a_bin_of_a_calibration_of_numbers(merge):
    """Also where a report merges two of few people."""
    held = bins = 0
    for seed in range(RUNS):
        labels, predicted = amounts(100 if merge else N, seed)
        rows = calibration(labels, predicted[:, None], "number", 10)
        for row in merged(rows, shares=False) if merge else rows:
            assert row.n >= 20
            held += row.low <= row.predicted <= row.high
            bins += 1
    assert held >= 0.93 * bins


def test_the_ks_of_an_alternative():
    held, true = 0, truth("binary")["ks"]
    group = (Group("code", "0", N // 2), Group("code", "1", N // 2))
    for seed in range(RUNS):
        labels, margins = people(N, seed)
        order = np.argsort(margins, kind="stable")
        labels, margins = labels[order], margins[order][:, None]
        drawn = np.concatenate([ks(labels, margins, weights) for weights in draws(N, RESAMPLES, seed)])
        quality = DrawnQuality(float(ks(labels, margins, np.ones((1, N)))[0]), drawn)
        accepted = margins[:, 0] < 0
        first = Candidate("m", 0.5, accepted, quality, quality)
        own = np.array([accepted[: N // 2].sum(), accepted[N // 2 :].sum()])
        (decided,) = judge([CutoffComparison(first, own, ())], group, reference=0, tolerance=0.0)
        held += decided.points[0].ks.low <= true <= decided.points[0].ks.high
    assert held >= LEAST
