"""What a party may say of a column's values without showing them: shares in coarse steps, bands without their places, how far it moved.

Reads one party's own column and no model, so that nothing here follows from a threshold. Shares are rounded to :data:`SHARE_STEP`, and none
stands for fewer than 20 people: between two summaries that differ by one person, next to nothing shows (docs/decisions/data.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.data.column_counts import Column, counts_as, present
from backend.data.dictionary import Feature, Kind
from backend.evaluation.performance import moved_by
from backend.protocols.group_sums.grouping import MIN_GROUP

SHARE_STEP = 0.05  # of a share that leaves its owner
BANDS = 5  # of a numeric column, between its 5th and 95th percentile; what is beyond joins the outermost
# PSI, by the trade's convention (Siddiqi 2006)
STILL = 0.1
FAR = 0.25
OTHER_CODES = "*"  # codes that are rare or not disclosed, together

Drift = Literal["not measured", "still", "moved", "moved far"]
Bands = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ColumnSummary:
    """What may be said of a column; `missing` and shares are multiples of :data:`SHARE_STEP`."""

    missing: float
    bands: Bands


def summary(feature: Feature, column: Column) -> ColumnSummary:
    """Summarise a column."""
    values = present(column)
    if len(column) >= MIN_GROUP:
        missing = coarse(1 - len(values) / len(column))
    else:
        missing = 0.0
    return ColumnSummary(missing, bands(feature, values))


def coarse(share: float) -> float:
    """Return a share in steps."""
    return round(round(share / SHARE_STEP) * SHARE_STEP, 2)


def bands(feature: Feature, values: Column) -> Bands:
    """Code or band → share; empty if fewer than two groups have people enough.

    A numeric column's bands are of equal width and bear numbers alone, 1 being the lowest: their limits are not disclosed.
    """
    numbers = feature.kind is Kind.NUMERIC
    if numbers:
        counted = _by_width(values.astype(np.float64))
    else:
        counted = _by_code(feature, values)
    merged = _neighbours(counted) if numbers else _rare(counted)
    if len(merged) > 1:
        return tuple((name, coarse(n / len(values))) for name, n in merged)
    return ()


def _by_width(values: NDArray[np.float64]) -> list[tuple[str, int]]:
    if len(values) < 2 * MIN_GROUP:
        return []
    low, high = np.quantile(values, [0.05, 0.95])
    inner = np.linspace(low, high, BANDS + 1)[1:-1]
    counts = np.bincount(np.searchsorted(inner, values, side="right"), minlength=BANDS)
    return [(str(k), int(n)) for k, n in enumerate(counts, start=1)]


def _by_code(feature: Feature, values: Column) -> list[tuple[str, int]]:
    """Disclosed codes with their people, rarest last; any other code was not disclosed."""
    boolean = feature.kind is Kind.BOOLEAN
    texts = [f"{value:g}" if boolean else str(value) for value in values.tolist()]
    codes = ("0", "1") if boolean else tuple(feature.categories)
    counts = {code: texts.count(code) for code in codes}
    counts[OTHER_CODES] = len(texts) - sum(counts.values())
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _neighbours(counted: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Bands with their neighbours until each has people enough."""
    merged: list[tuple[str, int]] = []
    for name, n in counted:
        if merged and merged[-1][1] < MIN_GROUP:
            merged.append(_joined(merged.pop(), (name, n)))
        else:
            merged.append((name, n))
    if len(merged) > 1 and merged[-1][1] < MIN_GROUP:
        last = merged.pop()
        merged.append(_joined(merged.pop(), last))
    return merged


def _joined(lower: tuple[str, int], higher: tuple[str, int]) -> tuple[str, int]:
    return f"{lower[0].split('–', maxsplit=1)[0]}–{higher[0]}", lower[1] + higher[1]


def _rare(counted: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Codes with people enough; the others together, with the rarest of those where they are too few themselves."""
    disclosed = [(code, n) for code, n in counted if n >= MIN_GROUP and code != OTHER_CODES]
    n_other = sum(n for _, n in counted) - sum(n for _, n in disclosed)
    while disclosed and 0 < n_other < MIN_GROUP:
        n_other += disclosed.pop()[1]
    if n_other:
        return [*disclosed, (OTHER_CODES, n_other)]
    return disclosed


def drift(feature: Feature, column: Column, reference: Mapping[str, Any] | None) -> Drift:
    """Return how far a column has moved since `reference` (:func:`backend.data.column_counts.reference_of`; None = not known), in words.

    A figure would tell about single people. What chance explains is no move.
    """
    values = present(column)
    if reference is None or len(values) < MIN_GROUP or sum(reference["counts"]) < MIN_GROUP:
        return "not measured"
    reference_counts = np.array(reference["counts"], dtype=np.intp)
    psi, chance = moved_by(reference_counts, counts_as(feature, values, reference["cuts"]))
    if psi <= max(STILL, chance):
        return "still"
    return "moved" if psi <= FAR else "moved far"
