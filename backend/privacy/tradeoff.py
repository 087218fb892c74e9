"""Privacy–utility trade-off: resolution and dither of a score against how many paths fit it, and against quality. A joint audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.privacy.leakage import SEED, Flags, Population
from backend.protocols.scoring.dither import half_units
from backend.protocols.scoring.packing import Packing
from backend.trees.ensemble import Columns, GuestModel
from backend.trees.metrics import Metrics, measure

BITS = (16, 10, 8, 6)
DITHERS = (0.0, 2.0**-6, 2.0**-4, 2.0**-3)  # widths on a logit, or of the same relative size on other margins


@dataclass(frozen=True)
class TradeoffPoint:
    """Scores of one resolution with dither of one width, over some people.

    Attributes
    ----------
    dither : float
        Width on the margin.
    people, records : int
        Whose scores were read, and Host records that they were compared with.
    unique : float
        Share of people whose score fits only one path among the records.
    paths : float
        Median of the paths that fit.
    metrics : Metrics
        Of the same people's scores.
    """

    score_bits: int
    dither: float
    people: int
    records: int
    unique: float
    paths: float
    metrics: Metrics


def tradeoff_curve(
    model: GuestModel,
    columns: Columns,
    labels: NDArray[np.float64],
    hosts: Flags,
    own_records: NDArray[np.intp],
    *,
    bits: Sequence[int] = BITS,
    dithers: Sequence[float] = DITHERS,
    on_point: Callable[[], None] = lambda: None,
) -> Iterator[TradeoffPoint]:
    """Yield every resolution with every dither of at least one unit.

    Parameters
    ----------
    columns, hosts, own_records
        See :class:`backend.privacy.leakage.Population`.
    labels : ndarray of float64
        ``(n,)``.
    bits, dithers : sequence
        Resolutions, and widths of the dither on a logit.
    on_point : callable
        Called before every point; may raise to stop.
    """
    population = Population(model, columns, hosts, own_records)
    for score_bits in bits:
        rounded = replace(model, score_bits=score_bits)
        packing = Packing(rounded)
        released = population.released(rounded)
        widths = [math.ldexp(width, model.outputs.scale) for width in reversed(dithers)]
        for reach, width in {half_units(width, score_bits): width for width in widths}.items():
            on_point()
            draw = np.random.default_rng((SEED, score_bits, reach))
            shifts = draw.integers(-reach, reach, (len(own_records), packing.slots), endpoint=True)
            shifted = []
            for score, row in zip(released, shifts, strict=True):
                shift = sum(int(units) << (packing.width * slot) for slot, units in enumerate(row))
                shifted.append(score + shift)
            margins = packing.margins(shifted)
            counts = population.counts(rounded, shifts, reach)
            yield TradeoffPoint(
                score_bits,
                width if reach else 0.0,
                len(own_records),
                len(hosts),
                float(np.mean(counts == 1)),
                float(np.median(counts)),
                measure(labels, margins, "test", model.outputs),
            )
