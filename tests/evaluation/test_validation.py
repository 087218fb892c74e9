"""The suite's arithmetic is that of scikit-learn and scipy, every test passes a sound model and fails a broken one, and floors hold."""

import tomllib
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from json import dumps, loads

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, ks_2samp, norm, spearmanr
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from backend.errors import ParameterError
from backend.evaluation.performance import performance, stability
from backend.evaluation.validation import figures, slices
from backend.evaluation.validation.suite import (
    EXCUSED,
    Figure,
    MeasureLimits,
    OperatorConfig,
    OwnLimit,
    Validation,
    judge,
    overall,
    read_config,
    read_validation,
    standard,
    verdict_of,
    with_config,
)
from backend.evaluation.validation.words import about_in_words, value_in_words
from backend.fairness.intervals import of_difference
from backend.fairness.marking import mark
from backend.i18n import LANGUAGES, Catalogue
from backend.protocols.group_sums.grouping import Group
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split
from backend.trees.outputs import ONE_LOGIT

SUITE = standard()


def people(n=2000, seed=0, slope=2.0, ties=None):
    """Labels drawn from the probabilities that are predicted, as of a sound model."""
    draw = np.random.default_rng(seed)
    margins = slope * draw.normal(size=n) - 1
    if ties:
        margins = margins.round(ties)
    p = 1 / (1 + np.exp(-margins))
    return (draw.random(n) < p).astype(float), p, margins


def tree(weights, covers, gains=(1.0,)):
    return GuestTree((Split("bank", "a", 1, 2, True, gains[0], sum(covers)), *map(Leaf, weights, covers)))


def model_of(*trees, bits=10):
    return GuestModel("bank", (), trees, (0.0,), bits, (), {}, ONE_LOGIT)


# Oracles


@pytest.mark.parametrize("ties", [None, 1])
def test_figures_are_those_of_scikit_learn_and_scipy(ties):
    labels, p, margins = people(ties=ties)
    part = performance(labels, margins, ONE_LOGIT, "test")
    auc, gini = figures.discrimination(part)
    assert auc.value == pytest.approx(roc_auc_score(labels, p))
    assert gini.value == pytest.approx(2 * auc.value - 1) and gini.low == pytest.approx(2 * auc.low - 1)
    assert figures.of_part(part, "ks").value == pytest.approx(ks_2samp(p[labels == 1], p[labels == 0]).statistic)
    assert figures.average_precision(labels, p) == pytest.approx(average_precision_score(labels, p))
    assert figures.precision_lift(labels, p).value == pytest.approx(average_precision_score(labels, p) / labels.mean())
    base = brier_score_loss(labels, np.full(len(labels), labels.mean()))
    assert figures.brier_skill(labels, p).value == pytest.approx(1 - brier_score_loss(labels, p) / base)


def test_figures_of_robustness_have_the_interval_of_the_same_people_drawn_again():
    labels, p, _ = people(n=300)
    q = np.clip(p + np.random.default_rng(1).normal(0.02, 0.1, len(p)), 0, 1)
    fall, same = (figures.auc_fall("noise_fall", labels, p, changed, "bank") for changed in (q, p))
    assert fall.value == pytest.approx(roc_auc_score(labels, p) - roc_auc_score(labels, q))
    assert fall.low < fall.value < fall.high and fall.n == 300
    assert (same.value, same.low, same.high) == (0, 0, 0)  # what both share cancels out
    flips = figures.flips(p, q, 0.5, "bank")
    assert flips.low < flips.value < flips.high and flips.n == 300
    left, shift = figures.without_host(labels, p, q, "telecom")
    assert left.low < left.value < left.high
    error = 1.959964 * (q - p).std(ddof=1) / np.sqrt(300)
    assert (shift.low, shift.high) == pytest.approx((max(0, abs((q - p).mean()) - error), abs((q - p).mean()) + error))
    assert figures.auc_fall("noise_fall", np.ones(300), p, q, "bank").value is None  # nobody of the other class


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_figure_is_written_with_its_records_and_a_share_of_the_gain_with_one_decimal(language):
    say = Catalogue(language)
    written = value_in_words(say, Figure(measure="noise_flips", value=0.0123, low=0.01, high=0.02, n=1300), str)
    assert written == f"1.23 [1.00, 2.00]\u00a0%{say('validation_words.records', n='1,300')}"
    assert value_in_words(say, Figure(measure="top_share", value=0.27351), str) == "27.4\u00a0%"


def test_calibration_is_that_of_tenths_counted_by_hand():
    labels, p, _ = people()
    tenths = pd.DataFrame({"y": labels, "p": p}).groupby(pd.qcut(p, 10, labels=False))
    n, observed, predicted = tenths.size(), tenths.y.mean(), tenths.p.mean()
    assert figures.calibration_error(labels, p).value == pytest.approx(
        (n * (observed - predicted).abs()).sum() / n.sum()
    )
    statistic = (n * (observed - predicted) ** 2 / (predicted * (1 - predicted))).sum()
    assert figures.hosmer_lemeshow(labels, p).value == pytest.approx(chi2.sf(statistic, 10))
    z = ((labels - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    assert figures.spiegelhalter(labels, p).value == pytest.approx(2 * norm.sf(abs(z)))


def test_the_two_tests_of_calibration_find_a_sound_model_wrong_no_more_often_than_they_say():
    found = [people(seed=seed) for seed in range(300)]
    for test in (figures.hosmer_lemeshow, figures.spiegelhalter):
        wrong = np.mean([test(labels, p).value < 0.05 for labels, p, _ in found])
        assert 0.01 < wrong < 0.10


def test_rank_agreement_is_the_mean_of_spearmans_correlations():
    gains = np.random.default_rng(1).exponential(size=(20, 5)) * [5, 4, 3, 2, 1]
    times = np.random.default_rng(7).multinomial(20, np.full(20, 1 / 20), size=figures.RESAMPLES)
    [found] = figures.rank_agreement(gains)
    wanted = [spearmanr(gains.sum(axis=0), row).statistic for row in times @ gains]
    assert found.value == pytest.approx(np.mean(wanted))


def test_structure_is_counted():
    gains = np.array([[6.0, 2.0, 0.0], [1.0, 1.0, 0.0]])
    top, hhi = figures.concentration(("bank", "telecom", "bank"), ("a", "b", "c"), gains)
    assert (top.feature, top.value, hhi.value) == ("a", 0.7, pytest.approx(0.7**2 + 0.3**2))
    model = model_of(tree((1.0, -1.0), (999.0, 1.0)), tree((1.0, -1.0), (500.0, 500.0)))
    assert figures.thin_leaves(model).value == 1 / 4
    third = model_of(tree((1 / 3, 1.0), (1.0, 1.0)), bits=2)
    assert figures.rounding(third).value == pytest.approx(((4 / 3 - 1) ** 2 / 2) ** 0.5 / 4, rel=1e-6)
    assert figures.rounding(model).value == 0.0


def test_swap_sets_are_counted():
    draw = np.random.default_rng(3)
    labels = draw.random(500) < 0.3
    mine, theirs = draw.random(500) < 0.6, draw.random(500) < 0.6
    swapped, excess = figures.swap_sets(labels, mine, theirs)
    table = pd.DataFrame({"y": labels, "mine": mine, "theirs": theirs})
    only, other = table[mine & ~theirs].y, table[theirs & ~mine].y
    assert swapped.value == pytest.approx((mine != theirs).mean())
    assert excess.value == pytest.approx(only.mean() - other.mean()) and excess.n == len(only) + len(other)
    assert (excess.low, excess.high) == of_difference(only.mean(), len(only), other.mean(), len(other))
    few = figures.swap_sets(labels, mine, np.where(np.arange(500) < 450, mine, theirs))
    assert few[1].value is None  # a bad rate of fewer than 20 people is not disclosed


def sliced(labels, p, index, cutoff=0.5):
    groups = [Group("bin", str(k + 1), int((index == k).sum())) for k in range(index.max() + 1)]
    marking = mark(cutoff, labels > 0, p, own_groups=True)
    made, _ = marking.marks(labels > 0, p)
    return slices.slices(groups, slices.summed(made, index, len(groups)), marking)


def test_slices_are_those_of_a_table():
    labels, p, _ = people()
    index = np.random.default_rng(4).integers(0, 4, len(labels))
    for k, found in enumerate(sliced(labels, p, index)):
        y, q = labels[index == k], p[index == k]
        assert (found.accepted, found.positive) == ((q < 0.5).mean(), y.mean())
        assert found.predicted == pytest.approx(q.mean(), abs=1e-5)
        assert found.loss == pytest.approx(brier_score_loss(y, q), abs=1e-5)
        assert found.error == pytest.approx(((q - y) ** 2).std(ddof=1) / len(y) ** 0.5, rel=1e-3)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
def test_the_width_of_an_excess_is_that_of_the_records_where_the_sums_leave_nothing_open(share):
    """All positives are predicted alike: then the mean of y p² is the least that Jensen allows, which is what is taken."""
    draw = np.random.default_rng(6)
    labels = (np.arange(400) < 400 * share).astype(float)
    p = np.where(labels > 0, 0.6, draw.random(400) / 2)
    [found] = sliced(labels, p, np.zeros(400, dtype=int))
    part = (labels - p) ** 2 - (1 - 2 * share) * labels  # one record's, linearised
    width = (part.var() / 399 + 2 * (share * (1 - share) / 400) ** 2) ** 0.5
    assert found.excess_error == pytest.approx(width, rel=5e-3)
    [gap] = slices.calibration_gaps({("bank", "x"): (found,)})
    half = 1.959964 * (p.mean() * (1 - p.mean()) / 400) ** 0.5
    assert (gap.low, gap.high) == (pytest.approx(gap.value - half, abs=1e-4), pytest.approx(gap.value + half, abs=1e-4))


def test_a_group_of_fewer_than_twenty_is_in_no_figure():
    labels, p, _ = people(n=200)
    index = np.array([0] * 181 + [1] * 19)
    assert len(sliced(labels, p, index)) == 1


def test_periods_are_neighbouring_months_of_twenty_records_or_more_in_order():
    months = np.random.default_rng(5).choice([f"2026-{m:02}" for m in range(1, 10)], size=300)
    groups, index = slices.periods(months, 5)
    assert 2 <= len(groups) <= 5 and [g.n for g in groups] == np.bincount(index).tolist()
    for k, g in enumerate(groups):
        assert g.n >= 20 and g.name.split(" – ")[0] == min(months[index == k])
        assert k == 0 or max(months[index == k - 1]) < min(months[index == k])
    assert len(slices.periods(np.array(["2026"] * 90), 5)[0]) == 1
    assert [g.n for g in slices.periods(np.array(["2025"] * 90 + ["2026"] * 19), 5)[0]] == [109]


def test_one_of_a_hundred_sound_slices_is_not_found_weak_by_chance():
    alarms = 0
    for seed in range(20):
        labels, p, _ = people(n=3000, seed=seed)
        draw = np.random.default_rng(seed)
        found = {("bank", str(f)): sliced(labels, p, draw.integers(0, 5, 3000)) for f in range(20)}
        judged = SUITE.judge(
            {"group_calibration": slices.calibration_gaps(found), "weak_spots": slices.weak_spots(found)}
        )
        alarms += any(test.verdict in ("warn", "fail") for test in judged)
    assert alarms <= 1


# Every test passes a sound model and fails a broken one


def part_of(labels, margins, part="test"):
    return performance(labels, margins, ONE_LOGIT, part)


@cache
def cases():
    labels, p, margins = people()
    draw = np.random.default_rng(9)
    noise = draw.normal(size=len(labels))
    index = draw.integers(0, 4, len(labels))
    key, own = ("telecom", "x"), sliced(labels, p, index)
    wrong = {key: sliced(labels, np.where(index == 2, 1 - p, p), index)}
    biased = {key: sliced(labels, np.where(index == 1, np.minimum(p + 0.3, 1), p), index)}
    unlike = people(seed=1)[2] + 2.0
    gains = draw.exponential(size=(20, 5)) * [50, 20, 8, 3, 1]
    jumpy = np.diag(10 + 0.01 * np.arange(40.0))  # every tree by another feature
    thick, thin = (model_of(*[tree((0.5, -0.5), covers)] * 4) for covers in ((500.0, 500.0), (999.0, 1.0)))
    declined = {key: sliced(labels, np.where(index == 3, np.maximum(p, 0.6), p / 2), index)}
    rough = model_of(*[tree((0.9, -0.9), (500.0, 500.0))] * 4, bits=0)
    names = ("bank",) * 5, tuple("abcde")
    approved = labels < 0.5
    return {
        "auc": (figures.discrimination(part_of(labels, margins)), figures.discrimination(part_of(labels, noise))),
        "ks": ((figures.of_part(part_of(labels, margins), "ks"),), (figures.of_part(part_of(labels, noise), "ks"),)),
        "precision_recall": ((figures.precision_lift(labels, p),), (figures.precision_lift(labels, noise),)),
        "brier": ((figures.brier_skill(labels, p),), (figures.brier_skill(labels, 1 - p),)),
        "calibration": ((figures.calibration_error(labels, p),), (figures.calibration_error(labels, p**3),)),
        "group_calibration": (slices.calibration_gaps({key: own}), slices.calibration_gaps(biased)),
        "psi": tuple(
            (figures.shift(stability("training", people(seed=1)[2], "test", m, ONE_LOGIT)),) for m in (margins, unlike)
        ),
        "overfit": tuple(
            (figures.auc_gap(part_of(labels, seen, "training"), part_of(labels, margins)),)
            for seen in (margins, margins + 5 * labels)
        ),
        "overfit_regions": (slices.region_gaps({key: own}, {key: own}), slices.region_gaps(wrong, {key: own})),
        "time": (slices.over_time(key, own), slices.over_time(key, wrong[key])),
        "rank_stability": (figures.rank_agreement(gains), figures.rank_agreement(jumpy)),
        "noise": tuple(
            (figures.auc_fall("noise_fall", labels, p, q, "bank"), figures.flips(p, q, 0.5, "bank"))
            for q in (p * 0.99, draw.permutation(p))
        ),
        "missing_feature": tuple(
            (figures.auc_fall("missing_fall", labels, p, q, "bank", "a"),) for q in (p, draw.permutation(p))
        ),
        "host_out": tuple(figures.without_host(labels, p, q, "telecom") for q in (p, draw.permutation(p) / 3)),
        "weak_spots": (slices.weak_spots({key: own}), slices.weak_spots(wrong)),
        "concentration": tuple(figures.concentration(*names, g) for g in (gains[:, ::-1] + 9, gains * [9, 1, 1, 1, 1])),
        "leaf_support": ((figures.thin_leaves(thick),), (figures.thin_leaves(thin),)),
        "monotonicity": tuple(
            figures.against_expectation([("bank", "a", "down", against)], {"a": 0.3}) for against in (False, True)
        ),
        "exactness": tuple(
            (Figure(measure="not_exact", value=wrong), figures.rounding(m)) for wrong, m in ((0.0, thick), (1.0, rough))
        ),
        "reproducibility": tuple(
            (Figure(measure="hash_differs", value=x), Figure(measure="again_differs", value=0.0)) for x in (0.0, 1.0)
        ),
        "leak": tuple((Figure(measure="identifying", value=x),) for x in (0.0, 0.85)),
        "proxies": tuple((Figure(measure="cramers_v", value=v, low=v - 0.05, high=v + 0.05),) for v in (0.1, 0.8)),
        "disparity": (slices.impact_ratios({key: own}), slices.impact_ratios(declined)),
        "swap_sets": (
            figures.swap_sets(labels > 0, p < 0.5, p < 0.52),
            figures.swap_sets(labels > 0, draw.random(len(labels)) < 0.5, approved),
        ),
        "challenger": tuple(
            (figures.challenger_gain(labels, mine[:, None], margins[:, None], (ONE_LOGIT, ONE_LOGIT)),)
            for mine in (margins, noise)
        ),
    }


@pytest.mark.parametrize("test", [t.id for t in SUITE.tests])
def test_a_sound_model_passes_and_a_broken_one_fails(test):
    sound, broken = (next(t for t in SUITE.judge({test: found}) if t.id == test) for found in cases()[test])
    assert (sound.verdict, broken.verdict) == ("pass", "fail")
    assert broken.figures[0].verdict == "fail" and len(broken.figures) == len(cases()[test][1])


def test_there_are_twenty_five_tests_each_with_a_source_a_reason_and_something_that_fails():
    assert len(SUITE.tests) == len({t.id for t in SUITE.tests}) == 25 == len(cases())
    assert all(t.source and t.reason and any(limit.fail is not None for limit in t.limit) for t in SUITE.tests)
    measures = [limit.measure for t in SUITE.tests for limit in t.limit]
    assert len(measures) == len(set(measures))
    for t in SUITE.tests:
        for limit in t.limit:
            assert limit.warn is None or limit.fail is None or limit.worse(limit.fail, limit.warn)


# Verdicts


@pytest.mark.parametrize(
    ("sense", "figure", "verdict", "shows_from"),
    [
        ("max", (0.3, 0.25, 0.5), "fail", None),
        ("max", (0.18, 0.15, 0.5), "warn", None),  # beyond the first limit for certain, whether beyond the last or not
        ("max", (0.15, 0.05, 0.25), "undecided", 0.3),  # 0.2 and the 0.1 between the figure and its better end
        ("max", (0.05, -0.05, 0.21), "undecided", 0.3),
        ("max", (0.15, 0.05, 0.2), "undecided", 0.3),  # no figure beyond a limit passes
        ("max", (0.08, 0.05, 0.2), "pass", None),  # a failure is ruled out
        ("max", (0.05, 0.01, 0.09), "pass", None),
        ("min", (-0.3, -0.5, -0.1), "fail", None),
        ("min", (0.05, 0.01, 0.15), "warn", None),
        ("min", (0.3, -0.2, 0.8), "undecided", -0.5),
        ("min", (0.3, 0.0, 0.8), "pass", None),
        ("max", (0.3, None, None), "fail", None),
        ("max", (0.2, None, None), "warn", None),
        ("max", (0.1, None, None), "pass", None),
        ("max", (None, None, None), "not_provided", None),
    ],
)
def test_the_whole_interval_decides_of_every_measure(sense, figure, verdict, shows_from):
    ends = {"warn": 0.1, "fail": 0.2} if sense == "max" else {"warn": 0.2, "fail": 0.0}
    limit = MeasureLimits(measure="m", sense=sense, **ends)
    judged = judge(limit, Figure(*figure, measure="m"))
    assert judged.verdict == verdict
    assert judged.shows_from == (None if shows_from is None else pytest.approx(shows_from))


def test_without_a_second_limit_a_test_is_undecided_between_warning_and_passing():
    limit = MeasureLimits(measure="m", sense="max", warn=0.1)
    wanted = {(0.2, 0.15, 0.25): "warn", (0.12, 0.05, 0.2): "undecided", (0.05, 0.0, 0.1): "pass"}
    assert {figure: verdict_of(limit, Figure(*figure, measure="m")) for figure in wanted} == wanted


def test_the_worst_of_equal_verdicts_is_the_one_with_the_worst_figure_and_all_are_kept():
    found = [
        Figure(measure="group_gap", value=0.0096, low=0.0090, high=0.0102, n=900, group="large"),
        *(Figure(measure="group_gap", value=0.02, low=0.0, high=0.04, n=90, group=f"group {k}") for k in range(20)),
        Figure(measure="group_gap", value=0.0484, low=-0.0022, high=0.0990, n=41, group="small"),
    ]
    test = next(one for one in SUITE.judge({"group_calibration": found}) if one.id == "group_calibration")
    assert test.verdict == "pass" and test.figures[0].figure.group == "small" and len(test.figures) == 22
    wide = [*found, Figure(measure="group_gap", value=0.0300, low=-0.09, high=0.15, n=20, group="few")]
    test = next(one for one in SUITE.judge({"group_calibration": wide}) if one.id == "group_calibration")
    assert test.verdict == "undecided" and test.figures[0].figure.group == "few"


def test_a_test_without_a_figure_is_not_provided_and_a_missing_floor_leaves_the_whole_incomplete():
    sound = {test: found for test, (found, _) in cases().items()}
    assert overall(SUITE.judge(sound)) == "pass"
    assert overall(SUITE.judge({**sound, "auc": "no_scores"})) == "incomplete"
    assert overall(SUITE.judge({k: v for k, v in sound.items() if k != "weak_spots"})) == "incomplete"
    assert overall(SUITE.judge({**sound, "time": "no_time", "challenger": "no_challenger"})) == "pass"
    assert overall(SUITE.judge({**sound, "leak": next(iter(EXCUSED))})) == "pass"
    assert overall(SUITE.judge({**sound, "auc": "no_scores", "ks": cases()["ks"][1]})) == "fail"
    assert overall(SUITE.judge({**sound, "noise": (Figure(measure="noise_fall", value=0.04),)})) == "warn"
    assert (
        overall(SUITE.judge({**sound, "noise": (Figure(measure="noise_fall", value=0.04, low=0.01, high=0.07),)}))
        == "undecided"
    )


def test_what_is_kept_is_read_as_it_was():
    tests = SUITE.judge({test: found for test, (_, found) in cases().items()})
    done = Validation("m", "2026-01-01", "1", overall(tests), tests, 0.5, 10, 10, "", "", ("auc",), (("shop", "x"),))
    assert read_validation(loads(dumps(asdict(done)))) == done


# An operator's file


def test_an_operators_file_may_tighten_and_add(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'cutoff = 0.3\ntime = "month"\nfloors = ["time"]\n[limits.auc]\nwarn = 0.8\n[limits.hosmer_lemeshow]\nfail = 0.001\n'
        '[off]\nproxies = "no protected feature"\n'
    )
    suite = with_config(SUITE, read_config(file))
    limits = {limit.measure: limit for t in suite.tests for limit in t.limit}
    assert (limits["auc"].warn, limits["auc"].fail, limits["hosmer_lemeshow"].fail) == (0.8, 0.6, 0.001)
    assert (suite.cutoff, suite.time, suite.tightened) == (0.3, "month", ("auc", "hosmer_lemeshow"))
    judged = {t.id: t for t in suite.judge({"time": "few_people"})}
    assert judged["time"].floor and (judged["proxies"].verdict, judged["proxies"].because) == (
        "off",
        "no protected feature",
    )


@pytest.mark.parametrize("measure", [limit.measure for t in SUITE.tests for limit in t.limit])
def test_no_threshold_can_be_loosened(measure):
    limit = next(x for t in SUITE.tests for x in t.limit if x.measure == measure)
    step = -0.001 if limit.sense == "min" else 0.001
    for name in ("warn", "fail"):
        bound = getattr(limit, name)
        if bound is None:
            continue
        with pytest.raises(ParameterError, match=f"{measure}: {name}.*looser"):
            with_config(SUITE, OperatorConfig(limits={measure: OwnLimit(**{name: bound + step})}))
        with_config(SUITE, OperatorConfig(limits={measure: OwnLimit(**{name: bound - step})}))


@pytest.mark.parametrize("test", [t.id for t in SUITE.tests if t.floor])
def test_no_floor_can_be_switched_off(test):
    with pytest.raises(ParameterError, match="floor"):
        with_config(SUITE, OperatorConfig(off={test: "it fails"}))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[off]\nproxies = ' '\n", "without a reason"),
        ("[off]\nproxy = 'x'\n", "no test proxy"),
        ("[limits.gin]\nwarn = 1\n", "no measure gin"),
        ("floors = ['proxies']\n[off]\nproxies = 'x'\n", "floor"),
        ("[limits.auc]\nsense = 'max'\n", "unknown key"),
        ("cutoff = 1.5\n", "cutoff: found 1.5, expected a number below 1"),
        ("[limits.auc]\nwarn = nan\n", "warn"),
        ("suite = 'none'\n", "unknown key"),
        ("cutoff = \n", "text that is not TOML"),
    ],
)
def test_a_file_that_says_anything_else_is_refused_in_words(tmp_path, text, reason):
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(ParameterError, match=reason):
        with_config(SUITE, read_config(file))


def test_a_file_that_is_not_there_is_refused_in_words(tmp_path):
    with pytest.raises(ParameterError, match=r"none.toml: no such file"):
        read_config(tmp_path / "none.toml")


def test_the_data_file_is_what_the_suite_is():
    data = tomllib.loads((files("backend.evaluation.validation") / "suite.toml").read_text())
    assert [t["id"] for t in data["test"]] == [t.id for t in SUITE.tests] and SUITE.version == data["version"]
    assert replace(SUITE) == SUITE


def test_a_slice_that_was_put_together_names_its_members_in_both_languages_also_after_it_was_stored():
    groups = [Group("code", "f", 300), Group("missing", "", 40), Group("rest", "", 60)]
    own = tuple(
        slices.Slice(group, share, 0.2, 0.2, 0.1, 0.01, 0.0, 0.01)
        for group, share in zip(groups, (0.8, 0.7, 0.5), strict=True)
    )
    ratios = slices.impact_ratios({("bank", "gender"): own})
    rest = next(figure for figure in ratios if figure.kind == "rest")
    assert (rest.apart, rest.n) == (("f", ""), 60)
    stored = Figure(**loads(dumps(asdict(rest))))
    codes = {"f": "women", "m": "men", "x": "others"}
    english = about_in_words(Catalogue("en"), stored, "Gender", "Bank", codes)
    assert "all others together (men, others)" in english and "no value" not in english and "women" not in english
    assert "all codes but f" in about_in_words(Catalogue("en"), stored, "Gender", "Bank", {})
    assert "其余合计（men、others）" in about_in_words(Catalogue("zh"), stored, "性别", "银行", codes)
    alike = {"f": "women", "m": "not documented", "x": "not documented", "y": "others"}
    assert "all others together (not documented, others" in about_in_words(
        Catalogue("en"), stored, "Gender", "Bank", alike
    )
