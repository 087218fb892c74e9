"""The share of scores that will fit one path only, foretold before a training from rows, trees and depth.

A score is a sum of one leaf a tree. With dither, every path whose sum lies within the dither's width fits it: more trees and deeper ones
make more paths, which hide one another. 117 models of three tables (the demo, credit cards, bank marketing; 1,330 to 2,000 records, 3 to 48
trees of depth 2 to 4, boosted ones and forests, dither 1/16, 10 bits) gave a straight line for the log-odds of the share:
:data:`START`, less :data:`PER_DOUBLING` for twice the trees and :data:`PER_LEVEL` for a level more. The share of nine in ten
of these models lay within :data:`SPREAD` of it; no table was held out, so others may lie further away. Dither of twice the width hides
as twice the trees do (measured at 1/4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

START = 6.6
PER_DOUBLING = 1.7
PER_LEVEL = 1.1
SPREAD = 2.4
COMPARED = 2000  # records that a share is measured among at most
USUAL_DITHER = 0.0625  # width on a logit that the line was measured at


@dataclass(frozen=True)
class Foretold:
    """What the release check of a training will find, by the line.

    Attributes
    ----------
    share, low, high : float
        Of scores that fit one path only; nine in ten of the models that the line was drawn from lay between `low` and `high`.
    records : int
        That scores will be compared with at most.
    """

    share: float
    low: float
    high: float
    records: int


def foretell(rows: int, trees: int, depth: int, dither: float) -> Foretold:
    """Return the share that a model of these rows, trees and depth is likely to have.

    Without dither the number of trees hides little, and narrower dither than the usual hides less than was measured: `high` is 1 then.
    One tree names its leaf in every score.
    """
    records = min(rows, COMPARED)
    if trees == 1:
        return Foretold(1.0, 0.5, 1.0, records)
    odds = START - PER_DOUBLING * math.log2(trees) - PER_LEVEL * depth
    if dither < USUAL_DITHER:
        return Foretold(max(0.5, _share(odds)), _share(odds - SPREAD), 1.0, records)
    odds -= PER_DOUBLING * math.log2(dither / USUAL_DITHER)
    low = _share(odds - SPREAD)
    return Foretold(_share(odds), low, _share(odds + SPREAD), records)


def _share(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))
