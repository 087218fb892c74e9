"""Seeded words in place of the system's, and the exact distribution of each map that draws and bounds are held against."""

from decimal import Decimal, localcontext

import numpy as np
import pytest


@pytest.fixture(scope="session")
def seeded():
    """Seed → a source of random words."""

    def source(seed):
        draw = np.random.default_rng(seed)
        return lambda count: draw.integers(0, 1 << 64, size=count, dtype=np.uint64)

    return source


@pytest.fixture(scope="session")
def bounded():
    """ε, size, anchor → exp(-ε|y-x|/2) on 0 … size-1, normalised: decimals of 90 digits, another road than the code's."""

    def probabilities(epsilon, size, anchor):
        with localcontext() as context:
            context.prec = 90
            half = Decimal(epsilon.numerator) / Decimal(epsilon.denominator) / 2
            weights = [(-half * abs(y - anchor)).exp() for y in range(size)]
            return [w / sum(weights) for w in weights]

    return probabilities


@pytest.fixture(scope="session")
def distribution(bounded):
    """Noise, x → ``(levels,)`` Pr[y | x]: the partition first, then a place that begins at the nearer end."""

    def of_map(noise, x):
        if noise.map == "global":
            return bounded(noise.step, noise.levels, x)
        theta, own = noise.theta, x // noise.theta
        count = noise.levels // theta
        chances = bounded(noise.jump, count, own) if noise.map == "adj" else [Decimal(q == own) for q in range(count)]
        out = []
        for q in range(count):
            begin = x - own * theta if q == own else 0 if q > own else theta - 1
            out += [chances[q] * p for p in bounded(noise.step, theta, begin)]
        return out

    return of_map
