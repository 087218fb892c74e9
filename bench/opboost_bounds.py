"""What OpBoost's noise guarantees: how far it bounds what a rank tells apart.

For a pair of true levels x, x' and every noisy y, ``Pr[y | x] ≤ e^b · Pr[y | x']`` with

- Global-Map: b = ε·t, where t = |x - x'| (distance-based LDP);
- Adj-Map (partition-dLDP): b = t·ε_ner in one partition, b = d·ε_prt + (θ-1)·ε_ner in partitions that are d ≤ ⌈t/θ⌉ apart;
- Local-Map: b = t·ε in one partition; different partitions are told apart with certainty, b = ∞.

A yes-or-no column has b = ε/2, a categorical one b = ε: two of its indicators change. Values of a record are drawn independently, so
the b of a record is the sum over its features. Missing values are disclosed as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

from backend.data.dictionary import Feature, Kind
from backend.protocols.training.opboost.maps import Noise


def of_record(noise: Noise, features: Sequence[Feature]) -> float:
    """Worst case of a record with all these `features` of Hosts: ε·W·d for d numeric ones of width W under Global-Map."""
    counts = {kind: sum(f.kind is kind for f in features) for kind in Kind}
    numeric = counts[Kind.NUMERIC] * worst(noise, noise.levels - 1) if counts[Kind.NUMERIC] else 0.0
    return numeric + noise.epsilon * (counts[Kind.BOOLEAN] / 2 + counts[Kind.CATEGORICAL])


def worst(noise: Noise, distance: int) -> float:
    """Largest b over all pairs of levels that are `distance` apart, 1 … levels-1."""
    return max(bound(noise, x, x + distance) for x in range(noise.levels - distance))


def bound(noise: Noise, first: int, second: int) -> float:
    """The b of one pair of levels; infinite if Local-Map discloses that they differ."""
    apart = abs(first // noise.theta - second // noise.theta)
    if noise.map == "global" or apart == 0:
        return float(noise.step * abs(first - second))
    if noise.map == "local":
        return inf
    return float(Fraction(apart) * noise.jump + (noise.theta - 1) * noise.step)
