"""Value mapping and maps: hand-worked levels, draws that fit the exact distribution, bounds that no pair of values breaks."""

from decimal import Decimal
from fractions import Fraction
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from backend.data.dictionary import Feature, Kind
from backend.errors import ParameterError
from backend.protocols.training.opboost.maps import MISSING, Noise, ValueMap
from bench.opboost_bounds import bound, of_record, worst

NOISES = [
    Noise("global", "exponential", 0.4, 2, 1.0, 12),
    Noise("adj", "exponential", 0.4, 4, 1.0, 12),
    Noise("adj", "laplace", 1.3, 3, 2.5, 12),
    Noise("adj", "exponential", 2.0, 2, 0.4, 8),
    Noise("local", "laplace", 0.7, 4, 1.0, 12),
]
NAMES = [f"{n.map} {n.epsilon}" for n in NOISES]


def test_the_value_mapping_is_the_papers_formula_by_hand():
    mapping = ValueMap(10.0, 20.0, 6)  # ⌈(x-10)/10·5⌉: edges 10, 12, 14, 16, 18
    values = np.array([10, 10.1, 12, 12.1, 20, 19, np.nan, -3, 99])
    assert mapping.level(values).tolist() == [0, 1, 1, 2, 5, 5, MISSING, 0, 5]


@given(st.floats(-1e6, 1e6), st.floats(0.001, 1e6), st.integers(2, 40), st.lists(st.floats(-2e6, 2e6), max_size=20))
def test_a_threshold_says_of_every_value_what_its_level_says(lower, width, levels, values):
    mapping = ValueMap(lower, lower + width, levels)
    column = np.array([*values, *mapping.edges, *np.nextafter(mapping.edges, np.inf)])
    for level in range(1, levels):
        assert ((column < mapping.threshold(level)) == (mapping.level(column) < level)).all()


def test_a_column_of_one_value_has_one_level():
    assert ValueMap(3.0, 3.0, 8).level(np.array([3.0, 3.0])).tolist() == [0, 0]


@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
def test_no_pair_of_values_is_told_apart_better_than_the_bound_says(noise, distribution):
    """Pr[y|x] ≤ e^b·Pr[y|x'] for every x, x' and y, the partition-dLDP of the paper among them."""
    exact = [[float(p) for p in distribution(noise, x)] for x in range(noise.levels)]
    for x in range(noise.levels):
        for other in range(noise.levels):
            b, t = bound(noise, x, other), abs(x - other)
            for p, q in zip(exact[x], exact[other], strict=True):
                assert p <= exp(b) * q * (1 + 1e-12) if b < inf else True
            if noise.map == "adj":
                assert b <= -(-t // noise.theta) * noise.jump + noise.theta * noise.step


def test_a_bounded_laplace_of_scale_one_over_epsilon_would_break_the_bound(bounded):
    """Hence the scale 2/ε, with which it is the exponential mechanism."""
    at_0, at_1 = (bounded(Fraction(2), 8, x) for x in (0, 1))  # exp(-|z|): scale 1/ε for ε = 1
    assert at_0[0] / at_1[0] > Decimal(1).exp() * Decimal("1.2")


@pytest.mark.parametrize("noise", NOISES[:4], ids=NAMES[:4])
def test_some_pair_uses_up_at_least_half_of_the_largest_bound(noise, distribution):
    """The figures exaggerate by less than two: normalising constants add at most ln 2 to the ε·t/2 of Global-Map."""
    exact = [[float(p) for p in distribution(noise, x)] for x in range(noise.levels)]
    largest = max(log(p / q) for ps in exact for qs in exact for p, q in zip(ps, qs, strict=True))
    assert largest <= worst(noise, noise.levels - 1) <= 2 * largest


@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
@pytest.mark.parametrize("x", [0, 3, 5])
def test_draws_fit_the_exact_distribution_of_the_map(noise, x, distribution, seeded):
    n = 30_000
    drawn = noise.desensitise(np.full(n, x), seeded(x))
    expected = np.array([float(p) for p in distribution(noise, x)]) * n
    assert drawn.min() >= 0 and drawn.max() < noise.levels
    possible = expected > 0
    counts = np.bincount(drawn, minlength=noise.levels)
    assert counts[~possible].sum() == 0
    assert chisquare(counts[possible], expected[possible]).pvalue > 0.001


def test_local_map_never_leaves_the_partition_and_adj_map_does(seeded):
    values = np.repeat(np.arange(12), 200)
    local, adj = (Noise(m, "exponential", 0.1, 4, 1.0, 12).desensitise(values, seeded(1)) for m in ("local", "adj"))
    assert (local // 4 == values // 4).all() and (adj // 4 != values // 4).any()


def test_an_answer_of_yes_or_no_is_kept_with_the_chance_that_half_epsilon_gives(seeded):
    flags = np.ones(40_000, dtype=np.int64)
    for noise in NOISES[:3]:
        kept = noise.desensitise_flags(flags, seeded(2)).mean()
        assert kept == pytest.approx(1 / (1 + exp(-noise.epsilon / 2)), abs=0.01)


def test_adj_maps_budget_over_the_whole_width_is_that_of_global_map():
    """ε_ner = ε/(α + θ/|D|) and ε_prt = α·θ·ε_ner: |D|/θ steps of ε_prt and θ of ε_ner make ε·|D|."""
    noise = Noise("adj", "exponential", 0.5, 4, 2.0, 64)
    assert noise.step == Fraction("0.5") / (2 + Fraction(4, 64))
    assert (64 // 4) * noise.jump + 4 * noise.step == Fraction("0.5") * 64


def test_worst_cases_by_hand():
    wide = Noise("global", "exponential", 0.5, 2, 1.0, 64)
    assert (worst(wide, 1), worst(wide, 63)) == (0.5, 31.5)
    local = Noise("local", "exponential", 0.5, 4, 1.0, 64)
    assert bound(local, 4, 7) == 1.5 and bound(local, 3, 4) == inf and worst(local, 1) == inf
    adj = Noise("adj", "exponential", 1.0625, 4, 1.0, 64)  # ε_ner = 1, ε_prt = 4
    assert (bound(adj, 4, 7), bound(adj, 3, 4), bound(adj, 0, 63)) == (3.0, 4.0 + 3.0, 15 * 4.0 + 3.0)


def test_the_figures_of_a_record_add_up_over_its_features():
    kinds = [Kind.NUMERIC, Kind.NUMERIC, Kind.BOOLEAN, Kind.CATEGORICAL]
    features = [Feature(name=f"f{i}", meaning="m", kind=kind) for i, kind in enumerate(kinds)]
    assert of_record(Noise("global", "exponential", 0.5, 2, 1.0, 64), features) == 63.75  # 2 · 31.5 + 0.25 + 0.5
    local = Noise("local", "exponential", 0.5, 4, 1.0, 64)
    assert (of_record(local, features), of_record(local, features[2:])) == (inf, 0.75)


@given(st.sampled_from(["global", "adj", "local"]), st.integers(0, 63), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_a_strong_epsilon_moves_hardly_any_value(seeded, name, x, seed):
    """Global-Map at ε = 20 moves a value with a chance of 2·e^-10."""
    drawn = Noise(name, "laplace", 20.0, 4, 1.0, 64).desensitise(np.full(50, x), seeded(seed))
    assert (drawn == x).mean() > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0"),
        ({"map": "lokal"}, "one of global, adj, local"),
        ({"mechanism": "float"}, "one of exponential, laplace"),
        ({"theta": 3}, "one that divides the 64 levels"),
        ({"levels": 1000}, "levels is 1000"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
    ],
)
def test_what_is_out_of_range_is_refused(change, message):
    sound = {"map": "adj", "mechanism": "laplace", "epsilon": 1.0, "theta": 4, "alpha": 1.0, "levels": 64}
    with pytest.raises(ParameterError, match=message):
        Noise(**(sound | change))
