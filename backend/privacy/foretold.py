"""The range in which the share of scores that fit one path only will lie, foretold before a training from rows, trees and depth.

A score is a sum of one leaf a tree. With dither, every path whose sum lies within the dither's width fits it: more trees and deeper ones
make more paths, which hide one another. ``python -m bench.foretold`` trains 48 models of four tables (boosted ones and forests, 3 to 48
trees of depth 2 and 4, dither 1/16, 10 bits) and draws a straight line through the log-odds of the share: :data:`START`, less
:data:`PER_DOUBLING` for twice the trees and :data:`PER_LEVEL` for a level more. Tables differ much, so that a range is told and no point:
:data:`SPREAD` to either side, within which nine in ten models of a table lay that the line had not seen. Dither of twice the width hides as
twice the trees do (measured at 1/4, on other models).

A score of several classes has a number a class, and more trees do not hide its path: of eight models of one table (four classes, 3 and 12
trees) none had a smaller share than :data:`LEAST_OF_CLASSES`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

START = 7.9
PER_DOUBLING = 1.4
PER_LEVEL = 1.05
SPREAD = 3.3
COMPARED = 2000  # records that a share is measured among at most
USUAL_DITHER = 0.0625  # width on a logit that the line was measured at
LEAST_OF_CLASSES = 0.5
LEAST_OF_ONE_TREE = 0.5


@dataclass(frozen=True)
class Foretold:
    """What the release check of a training is likely to find.

    Attributes
    ----------
    low, high : float
        Share of scores that fit one path only; nine in ten of the models that were measured lay between.
    records : int
        That scores will be compared with at most.
    """

    low: float
    high: float
    records: int


def foretell(rows: int, trees: int, depth: int, dither: float, outputs: int = 1) -> Foretold:
    """Return the range of shares that models of these rows, trees and depth are likely to have.

    Without dither the number of trees hides little, and narrower dither than the usual hides less than was measured: `high` is 1 then.
    One tree names its leaf in every score.

    Parameters
    ----------
    outputs : int
        Numbers in a score: 1, or one a class.
    """
    records = min(rows, COMPARED)
    if trees == 1:
        return Foretold(LEAST_OF_ONE_TREE, 1.0, records)
    if outputs > 1:
        return Foretold(LEAST_OF_CLASSES, 1.0, records)
    odds = START - PER_DOUBLING * math.log2(trees) - PER_LEVEL * depth
    if dither < USUAL_DITHER:
        return Foretold(_share(odds - SPREAD), 1.0, records)
    odds -= PER_DOUBLING * math.log2(dither / USUAL_DITHER)
    return Foretold(_share(odds - SPREAD), _share(odds + SPREAD), records)


def _share(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))
