"""OpBoost's value mapping and its three order-preserving maps. Knows one party's column as numbers; sends nothing.

A column becomes integers ``L … R`` (here 0 … levels-1), and every integer a noisy one, by one of

- **Global-Map**: over the whole domain, ε per step;
- **Adj-Map**: first one of the partitions of length θ, ε_prt per partition, then a position in it, ε_ner per step. A value that moves to
  another partition starts at that partition's nearest end;
- **Local-Map**: a position in its own partition, ε_ner per step. The partition itself is disclosed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.errors import ParameterError
from backend.protocols.training.opboost.noise_terms import NoiseTerms
from backend.protocols.training.opboost.sampling import IntArray, Mechanism, Sampler, Words, system_words
from backend.protocols.training.parameters import not_a_choice, out_of_range
from backend.remark import Remark
from backend.trees.importers.thresholds import LARGEST, at_most

Map = Literal["global", "adj", "local"]
MAPS: tuple[Map, ...] = ("global", "adj", "local")
MECHANISMS: tuple[Mechanism, ...] = ("exponential", "laplace")
RANGES: dict[str, tuple[float, float]] = {
    "epsilon": (0.001, 20.0),
    "theta": (2, 64),
    "alpha": (0.1, 100.0),
    "levels": (4, 256),
}
MISSING = -1  # level of a missing value


@dataclass(frozen=True)
class Noise(NoiseTerms):
    """How values are desensitised; the Guest asks for it, the Host checks it again.

    Attributes
    ----------
    map : {"global", "adj", "local"}
    mechanism : {"exponential", "laplace"}
        How draws are made (:mod:`backend.protocols.training.opboost.sampling`); the distribution is the same.
    epsilon : float
        Privacy loss per step of distance; the exact decimal number as written.
    theta : int
        Levels in a partition (Adj-Map, Local-Map); divides `levels`.
    alpha : float
        Adj-Map: ε_prt is alpha·θ·ε_ner.
    levels : int
        Integers from L to R, both included.

    Raises
    ------
    ParameterError
        With everything that is out of range.
    """

    map: Map
    mechanism: Mechanism

    @property
    def canonical(self) -> Noise:
        """Return the setting with what does nothing under its map set to one value: equal settings give equal draws.

        Both mechanisms draw from one distribution, and are one setting.
        """
        if self.map == "global":
            theta = RANGES["theta"][0]
        else:
            theta = self.theta
        alpha = self.alpha if self.map == "adj" else 1.0
        levels = self.levels
        return Noise(self.map, "exponential", float(self.epsilon), int(theta), float(alpha), levels)

    def __post_init__(self) -> None:
        problems = out_of_range(vars(self), RANGES)
        for name, choices in (("map", MAPS), ("mechanism", MECHANISMS)):
            if getattr(self, name) not in choices:
                problems.append(not_a_choice(name, getattr(self, name), choices))
        if not problems and self.map != "global" and self.levels % self.theta:
            problems.append(Remark("theta_does_not_divide", {"theta": self.theta, "levels": self.levels}))
        if problems:
            raise ParameterError(problems=problems)

    @property
    def step(self) -> Fraction:
        """ε of one step of distance: ε itself; under Adj-Map ε_ner = ε/(alpha + θ/|D|), so that the whole width costs ε·|D|."""
        epsilon = Fraction(str(self.epsilon))
        if self.map == "adj":
            # where Partition-dLDP becomes dLDP, the paper has α = 1: ε_prt = θ·ε_ner and ε_ner = ε/(1 + θ/|D|)
            return epsilon / (Fraction(str(self.alpha)) + Fraction(self.theta, self.levels))
        return epsilon

    @property
    def jump(self) -> Fraction:
        """Adj-Map: ε_prt, of one step from partition to partition."""
        return Fraction(str(self.alpha)) * self.theta * self.step

    def desensitise(self, values: IntArray, words: Words = system_words) -> IntArray:
        """Draw noisy levels of ``(n,)`` true levels 0 … levels-1, each independently."""
        # Global-Map: dLDP, Pr[y | x] ≤ e^(t·ε)·Pr[y | x'] for |x - x'| ≤ t
        if self.map == "global":
            return Sampler(self.step, self.levels, self.mechanism).draw(values, words)
        true_partition, position = np.divmod(values, self.theta)
        partition = true_partition
        # Adj-Map, first step: a partition, by Global-Map under ε_prt; under Local-Map (ε_prt = ∞) it is the value's own
        if self.map == "adj":
            partition = Sampler(self.jump, self.levels // self.theta, self.mechanism).draw(true_partition, words)
            position = np.where(
                partition > true_partition, 0, np.where(partition < true_partition, self.theta - 1, position)
            )
        # second step: a value of that partition, by Global-Map under ε_ner
        return partition * self.theta + Sampler(self.step, self.theta, self.mechanism).draw(position, words)

    def desensitise_flags(self, flags: IntArray, words: Words = system_words) -> IntArray:
        """Noisy 0 and 1 of ``(n,)`` answers to a yes-or-no question, ε under every map: a domain of two has no partitions."""
        return Sampler(Fraction(str(self.epsilon)), 2, self.mechanism).draw(flags, words)


@dataclass(frozen=True, repr=False)
class ValueMap:
    """⌈L + (x - lower)/(upper - lower)·(R - L)⌉ with L = 0, and back. The bounds are those that the feature declares, or the Host's own.

    Attributes
    ----------
    lower, upper : float
        Values beyond them are clipped.
    levels : int
        R + 1.
    """

    lower: float
    upper: float
    levels: int

    @property
    def edges(self) -> NDArray[np.float64]:
        """``(levels - 1,)``: level k holds the values in (edge k-1, edge k]."""
        share = np.arange(self.levels - 1) / (self.levels - 1)
        return self.lower + share * (self.upper - self.lower)

    def level(self, values: NDArray[np.float64]) -> IntArray:
        """Return levels, ``(n,)``; MISSING for NaN."""
        # pre-processing of feature values: ⌈s⌉ is the number of integers 0, 1, 2 … below s
        levels = np.searchsorted(self.edges, values, side="left")
        return np.where(np.isnan(values), MISSING, levels).astype(np.int64)

    def threshold(self, level: int) -> float:
        """T such that ``value < T`` is equivalent to ``level(value) < level``; `level` is 0 … levels."""
        if not 0 < level < self.levels:
            return LARGEST if level else -LARGEST
        return at_most(float(self.edges[level - 1]))
