"""Points beside a probability, as scorecards have them: more points mean a lower risk."""

from __future__ import annotations

import math
from dataclasses import dataclass

from backend.errors import ParameterError

CERTAIN = 1e-6  # a probability nearer to 0 or 1 counts as this near


@dataclass(frozen=True)
class PointScale:
    """How many points stand for which odds.

    Parameters
    ----------
    base_points : int
        Points at the base odds.
    base_odds : float
        Odds of a good outcome against a bad one: 50 means 50 to 1.
    double : int
        Points that double the odds.

    Examples
    --------
    >>> PointScale(600, 50, 20).points(1 / 51)
    600
    >>> PointScale(600, 50, 20).points(1 / 101)
    620
    """

    base_points: int = 600
    base_odds: float = 50.0
    double: int = 20

    def points(self, probability: float) -> int:
        """Return the points of a probability of the bad outcome.

        They are rounded to the nearest whole point, halves up.
        """
        bad = min(max(probability, CERTAIN), 1.0 - CERTAIN)
        odds = (1.0 - bad) / bad
        exact = self.base_points + self.double * math.log2(odds / self.base_odds)
        return math.floor(exact + 0.5)

    def probability(self, points: float) -> float:
        """Return the probability of the bad outcome at so many points."""
        odds = self.base_odds * math.exp2((points - self.base_points) / self.double)
        return 1.0 / (1.0 + odds)

    def check(self) -> None:
        """Raise ParameterError if a number is outside its range."""
        if not 0.001 <= self.base_odds <= 1e6:
            raise ParameterError("base_odds_out_of_range", odds=self.base_odds)
        if not 1 <= self.double <= 1000 or not 0 <= self.base_points <= 10_000:
            raise ParameterError("points_out_of_range", double=self.double, base=self.base_points)
