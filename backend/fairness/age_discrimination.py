"""Whether a model assigns the age of elderly applicants a negative factor. Knows predictions of the same people at other ages, no age.

A credit scoring system may use age if the age of an elderly applicant is not assigned a negative factor or value (12 CFR 1002.6(b)(2)(ii)):
it scores at least as well as the most favoured class of younger ages (official interpretation, 6(b)(2)-2). So the same people are scored
with an age of 62 or more, and with ages of each younger class, all else left as it is: a difference is the effect of age alone.
Comparing people of different ages would mix that with everything else in which they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from backend.data.rounding import Rounded
from backend.errors import ParameterError
from backend.fairness.evidence import FeatureResult
from backend.fairness.intervals import CONFIDENCE

MIN_PEOPLE = 50

Floats = NDArray[np.float64]
AgeVerdict = Literal["not_negative", "negative", "undecided"]


@dataclass(frozen=True)
class AgeGap:
    """Elderly ages against one class of younger ones.

    Attributes
    ----------
    place : int
        Index of the class, 1 being the youngest; of this name in stored measurements and reports.
    predicted : float
        Mean probability of the positive label with ages of this class.
    worse, low, high : float
        Mean probability with elderly ages less `predicted`, with its interval; above 0, elderly ages score worse.
    """

    place: int
    predicted: Rounded
    worse: Rounded
    low: Rounded
    high: Rounded


@dataclass(frozen=True)
class AgeCheck(FeatureResult):
    """Effect of elderly ages on a model's predictions.

    Attributes
    ----------
    predicted : float
        Mean probability of the positive label with elderly ages.
    gaps : tuple of AgeGap
        Youngest class first.
    verdict : {"not_negative", "negative", "undecided"}
        See :func:`verdict_of`.
    """

    predicted: Rounded
    gaps: tuple[AgeGap, ...]
    verdict: AgeVerdict


def in_words(say: Callable[..., str], check: AgeCheck | None, is_split: bool, refused: str = "") -> str:
    """Return the result as a sentence; `is_split` = the model splits on the feature, `refused` = the Host that has not agreed."""
    if check is None and is_split and refused:
        return say("disparity.not_agreed", host=refused)
    if check is None:
        return say("document.elderly_open" if is_split else "document.elderly_unused")
    return say("document.elderly_on", n=f"{check.n:,}") + verdict_in_words(say, check)


def verdict_in_words(say: Callable[..., str], check: AgeCheck) -> str:
    """Return what was found, without how."""
    worst = max(check.gaps, key=lambda gap: gap.worse)
    figures = {}
    for name in ("worse", "low", "high"):
        figures[name] = f"{getattr(worst, name):+.4f}".replace("-", "−")
    return say(f"document.elderly_{check.verdict}", place=worst.place, classes=len(check.gaps), **figures)


def check_ages(party: str, feature: str, elderly: Floats, younger: Sequence[Floats]) -> AgeCheck:
    """Compare predictions of the same people at elderly and at younger ages.

    Each interval is that of a mean of paired differences, wide enough that all of them hold together with 95 % (Bonferroni).

    Parameters
    ----------
    elderly : ndarray of float64
        ``(n,)`` probabilities of the positive label.
    younger : sequence of ndarray of float64
        The same for each class, youngest first.

    Raises
    ------
    ParameterError
        Fewer than :data:`MIN_PEOPLE` people.
    """
    n = len(elderly)
    if n < MIN_PEOPLE:
        raise ParameterError("too_few_ages", n=n, least=MIN_PEOPLE)
    z = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / len(younger))
    gaps = []
    for place, predicted in enumerate(younger, start=1):
        difference = elderly - predicted
        worse = float(difference.mean())
        error = z * float(difference.std(ddof=1)) / n**0.5
        gaps.append(AgeGap(place, float(predicted.mean()), worse, worse - error, worse + error))
    return AgeCheck(party, feature, n, float(elderly.mean()), tuple(gaps), verdict_of(gaps))


def verdict_of(gaps: Sequence[AgeGap]) -> AgeVerdict:
    """Return ``negative`` if elderly ages score significantly worse than one class, ``not_negative`` if they do so than none."""
    if any(gap.low > 0 for gap in gaps):
        return "negative"
    if all(gap.high <= 0 for gap in gaps):
        return "not_negative"
    return "undecided"


def read_check(stored: dict[str, Any]) -> AgeCheck:
    """Return a check from its stored form (``dataclasses.asdict`` as JSON)."""
    return AgeCheck(**{**stored, "gaps": tuple(AgeGap(**gap) for gap in stored["gaps"])})
