"""How closely a feature is associated with a protected attribute, from counts of both together. Knows counts of groups, no person's values.

Mutual information is I = Σ p_ij·log2(p_ij / (p_i·p_j)), in bits; Cramér's V = √(χ²/n / min(r-1, c-1)), 0 … 1. Both are too large in
small samples, by about (r-1)(c-1)/2n nats and (r-1)(c-1)/(n-1) of χ²/n; these are subtracted (Miller 1955; Bergsma 2013).

Chance: permuting the attribute's values among the records leaves both margins of the table as they are, and a table of permuted records
is distributed as any random table with these margins (multivariate hypergeometric). Such tables are drawn at the Guest, which
therefore needs no more from the Hosts than the one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.fairness.evidence import Evidence
from backend.fairness.intervals import percentiles
from backend.i18n import Text
from backend.protocols.group_sums.contingency import Table

PERMUTATIONS = 2000  # tables drawn for chance
TABLES_DRAWN = 1000  # tables drawn for an interval
FINDING_LEVEL = 0.05  # of a finding, over all features together
NOTABLE = 0.1  # Cramér's V from which an association is worth a finding (Cohen 1988: w = 0.1, a small effect)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Association:
    """How closely one feature is associated with the attribute.

    Attributes
    ----------
    n : int
        Records.
    groups : int
        Of the feature.
    bits, bits_low, bits_high : float
        Mutual information, and its 95 % interval.
    explained : float
        Of the uncertainty about the attribute, the share that knowing the feature removes: bits over the attribute's entropy, 0 … 1.
    v, v_low, v_high : float
        Cramér's V, and its 95 % interval.
    chance : float
        V that 95 % of permutations stay below.
    p : float
        Share of permutations that are associated as closely, times the number of features examined (Holm), at most 1.
    found : bool
        Beyond chance (p < 0.05) and not negligible (V ≥ 0.1).
    """

    party: str
    feature: str
    n: int
    groups: int
    bits: float
    bits_low: float
    bits_high: float
    explained: float
    v: float
    v_low: float
    v_high: float
    chance: float
    p: float
    found: bool


def associations(tables: Mapping[tuple[str, str], Table], seed: int) -> tuple[Association, ...]:
    """Return every feature's association with the attribute, the closest first.

    Parameters
    ----------
    tables : mapping of (party, feature) to ndarray of int
        Each ``(groups of the attribute, groups of the feature)``, no row or column empty, at least two of each.
    seed : int
        Of the drawn tables.
    """
    # whatever order they came in
    draw = np.random.default_rng(seed)
    tables = dict(sorted(tables.items()))
    permuted = {key: permuted_chi_squared(table, draw) for key, table in tables.items()}
    # the table itself counts as one permutation, so that no p is 0
    shares = {
        key: float(np.mean(np.append(chi >= chi_squared(tables[key]) * (1 - 1e-9), True)))
        for key, chi in permuted.items()
    }
    adjusted = _holm(shares)
    rows = []
    for (party, feature), table in tables.items():
        n = int(table.sum())
        p = adjusted[party, feature]
        resampled = draw.multinomial(n, (table / n).ravel(), size=TABLES_DRAWN).reshape(-1, *table.shape)
        v = float(_v(table))
        bits = float(mutual_information(table))
        v_low, v_high = percentiles(_v(resampled, 2), v)
        bits_low, bits_high = percentiles(mutual_information(resampled, 2), bits)
        rows.append(
            Association(
                party=party,
                feature=feature,
                n=n,
                groups=table.shape[1],
                bits=bits,
                bits_low=bits_low,
                bits_high=bits_high,
                explained=min(1.0, bits / float(_entropies(table.sum(axis=1), np.asarray(n)))),
                v=v,
                v_low=v_low,
                v_high=v_high,
                chance=float(
                    np.quantile(_corrected(permuted[party, feature] / n, table.shape, n, 1), 1 - FINDING_LEVEL)
                ),
                p=p,
                found=p < FINDING_LEVEL and v >= NOTABLE,
            )
        )
    return tuple(sorted(rows, key=lambda r: (-r.v, r.party, r.feature)))


def as_evidence(associations: tuple[Association, ...]) -> tuple[Evidence, ...]:
    """Return the evidence of a compliance finding on the attribute: the features that were found, the closest first."""
    return tuple(
        Evidence(about=Text(a.feature), measure="Cramér's V", n=a.n, value=a.v, low=a.v_low, high=a.v_high)
        for a in associations
        if a.found
    )


def permuted_chi_squared(table: Table, draw: np.random.Generator) -> Floats:
    """``(PERMUTATIONS,)``: χ² of random tables with the same margins."""
    tables = np.zeros((PERMUTATIONS, *table.shape), dtype=np.int64)
    remaining = np.tile(table.sum(axis=0), (PERMUTATIONS, 1))  # of each column, for this row and those below
    # A row after the other, and cell by cell, as if drawn from an urn; scipy.stats, which can, takes 50 MB.
    for i, row_total in enumerate(table.sum(axis=1)):
        missing = np.full(PERMUTATIONS, row_total)
        others = remaining.sum(axis=1)
        for j in range(table.shape[1]):
            others -= remaining[:, j]
            tables[:, i, j] = draw.hypergeometric(remaining[:, j], others, missing)
            missing -= tables[:, i, j]
        remaining -= tables[:, i]
    return chi_squared(tables)


def chi_squared(tables: NDArray[np.integer]) -> Floats:
    """χ² of tables ``(…, r, c)``; empty rows and columns contribute nothing."""
    rows = tables.sum(axis=-1, keepdims=True)
    columns = tables.sum(axis=-2, keepdims=True)
    expected = rows * columns / tables.sum(axis=(-1, -2), keepdims=True)
    terms = np.divide((tables - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)
    out: Floats = terms.sum(axis=(-1, -2))
    return out


def _v(tables: NDArray[np.integer], times: int = 1) -> Floats:
    """Bias-corrected V; resampled tables carry the bias twice: their own and that of the table they were drawn from."""
    n = int(tables.sum(axis=(-1, -2)).max())
    return _corrected(chi_squared(tables) / n, tables.shape[-2:], n, times)


def _corrected(phi: Floats, shape: tuple[int, ...], n: int, times: int) -> Floats:
    """V of φ² = χ²/n after Bergsma 2013."""
    r, c = shape[-2:]
    sides = [k - (k - 1) ** 2 / (n - 1) for k in (r, c)]
    corrected = np.maximum(0.0, phi - times * (r - 1) * (c - 1) / (n - 1))
    out: Floats = np.minimum(1.0, np.sqrt(corrected / (min(sides) - 1)))
    return out


def mutual_information(tables: NDArray[np.integer], times: int = 1) -> Floats:
    """Mutual information less its bias, bits."""
    n = tables.sum(axis=(-1, -2))
    joint = _entropies(tables, n)
    rows = _entropies(tables.sum(axis=-1), n)
    columns = _entropies(tables.sum(axis=-2), n)
    r, c = tables.shape[-2:]
    out: Floats = np.maximum(0.0, rows + columns - joint - times * (r - 1) * (c - 1) / (2 * n * np.log(2)))
    return out


def _entropies(counts: NDArray[np.integer], n: NDArray[np.integer]) -> Floats:
    """Entropy of counts over all axes but those of `n`, bits."""
    shares = counts / n.reshape(n.shape + (1,) * (counts.ndim - n.ndim))
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    out: Floats = -(shares * logs).sum(axis=tuple(range(n.ndim, counts.ndim)))
    return out


def _holm(shares: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Step-down adjustment for the number of features (Holm 1979)."""
    adjusted = {}
    worst = 0.0
    for rank, key in enumerate(sorted(shares, key=lambda k: shares[k])):
        worst = max(worst, min(1.0, shares[key] * (len(shares) - rank)))
        adjusted[key] = worst
    return adjusted
