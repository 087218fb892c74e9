"""A monitoring run: a later sheet against what the model was grown and tested on. Pure arithmetic; knows no person's id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.binning import make_bins
from backend.data.dictionary import Feature
from backend.data.rounding import Rounded
from backend.evaluation.performance import CALIBRATION_BINS, Calibration, calibration, moved_by
from backend.evaluation.validation.suite import Again, Figure, Found, Overall, Suite, Tested, read_tests, shipped
from backend.fairness.disparity import Disparity
from backend.protocols.group_sums.grouping import MIN_GROUP

Column = NDArray[np.generic]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Monitored:
    """What a later sheet shows of a model.

    Attributes
    ----------
    version : str
        Of the triggers.
    n, failed : int
        People of the sheet who were scored, and who were not.
    outcomes : int
        Of those who were scored, with a known outcome.
    reference : str
        The part of the kept scores that scores are compared with; empty if none are kept.
    brier : float or None
        Mean squared error of the probability; of models of two outcomes, if outcomes are known.
    tenths : tuple of Calibration
        Predicted against observed, each of 20 people or more.
    unexamined : tuple of (str, str)
        (party, feature) that was not measured: a Host refused, or its groups were asked about for differences between them.
    again : Again
        About the same people.
    policy : int or None
        Version of the policy whose line the cut-off is; None = another line.
    partial : int
        People who were scored although something about them was not understood, or a Host has no record of them.
    new_codes : tuple of (str, str, int)
        Feature of the Guest, code that the model does not know, people who have it.
    """

    model: str
    made: str
    version: str
    verdict: Overall
    tests: tuple[Tested, ...]
    cutoff: Rounded
    n: int
    failed: int
    outcomes: int
    reference: str = ""
    feature: str = ""
    brier: Rounded | None = None
    tenths: tuple[Calibration, ...] = ()
    unexamined: tuple[tuple[str, str], ...] = ()
    again: Again = ()
    policy: int | None = None
    partial: int = 0
    new_codes: tuple[tuple[str, str, int], ...] = ()


def triggers() -> Suite:
    """Return the figures of a run and their thresholds, as they are shipped."""
    return shipped("monitoring.toml")


def read_monitored(stored: dict[str, Any]) -> Monitored:
    """Return a run as it was kept (``dataclasses.asdict``, from JSON)."""
    lists = {
        "tests": read_tests(stored["tests"]),
        "tenths": tuple(Calibration(**row) for row in stored["tenths"]),
        "unexamined": tuple((party, feature) for party, feature in stored["unexamined"]),
        "new_codes": tuple((feature, code, n) for feature, code, n in stored.get("new_codes", ())),
        "again": tuple((party, feature, day) for party, feature, day in stored.get("again", ())),
    }
    return Monitored(**{**stored, **lists})


def shift(reference: NDArray[np.intp], current: NDArray[np.intp], party: str, feature: str) -> Figure:
    """PSI of two parts counted in the same bins; not disclosed of fewer than 20 people, and its lower end is 0 if chance explains it."""
    n = int(current.sum())
    if min(int(reference.sum()), n) < MIN_GROUP:
        return Figure(measure="psi", value=None, n=n, party=party, feature=feature)
    psi, chance = moved_by(reference, current)
    return Figure(
        measure="psi", value=psi, low=psi if psi > chance else 0.0, high=psi, n=n, party=party, feature=feature
    )


def column_shift(party: str, feature: Feature, reference: Column, current: Column) -> Figure:
    """PSI of a column in tenths, or codes, of the values `reference`; missing values and codes that were not there are one bin more."""
    bins = make_bins(feature, reference, CALIBRATION_BINS)
    reference_counts = np.bincount(bins.index(reference), minlength=bins.count + 1)
    current_counts = np.bincount(bins.index(current), minlength=bins.count + 1)
    return shift(reference_counts, current_counts, party, feature.name)


def tenths(labels: Floats, predicted: Floats, task: str) -> tuple[Calibration, ...]:
    """Predicted against observed by tenth, or in fewer bins, so that none is of fewer than 20 people."""
    bins = max(1, min(CALIBRATION_BINS, len(labels) // MIN_GROUP))
    return tuple(row for row in calibration(labels, predicted, task, bins) if row.n >= MIN_GROUP)


def ratios(disparity: Disparity) -> Found:
    """Acceptance rates over that of the largest group."""
    gap = next((gap for gap in disparity.gaps if gap.measure == "selection rate" and gap.reference), None)
    if gap is None:
        return "few_people"
    return [
        Figure(
            measure="impact_ratio",
            value=compared.ratio.value,
            low=compared.ratio.low,
            high=compared.ratio.high,
            n=compared.group.n,
            party=disparity.party,
            feature=disparity.feature,
            kind=compared.group.kind,
            group=compared.group.name,
        )
        for compared in gap.others
    ]
