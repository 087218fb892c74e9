"""H1: one stump was approved, and the bins of every record are read. Plays a malicious Guest.

A Host that answers whichever splits a Guest names tells for each of them which records go left. The Guest names every cut of every
feature at the same node, and knows the bin of every record in every feature. A Host without a record of how the trees have grown exists
only here; the defence is the record that a Host keeps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.protocols.training.growth_record import PEOPLE as LEAST
from backend.protocols.training.growth_record import ROOT, GrowthRecord, Terms
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import PEOPLE, attack_setup

BINS = 32  # of a feature, as approved
TARGETS = 500  # records whose bins are read


def run(seed: int, people: int = PEOPLE, targets: int = TARGETS) -> AttackOutcome:
    """Read the bin of `targets` records in every feature of the Host, after one tree of one split was approved."""
    setup = attack_setup(people)
    rows = setup.draw_people(np.random.default_rng(seed), targets)
    columns = {name: _bins(column) for name, column in setup.host.columns.items() if column.dtype.kind == "f"}
    n = len(setup.host.ids)
    usual = {name: int(np.bincount(bins).argmax()) for name, bins in columns.items()}
    answered: list[int] = []

    def read(record: GrowthRecord | None) -> tuple[int, int]:
        if record is not None:
            record.begin_sums(0, 0, ROOT, np.ones(n, dtype=bool), LEAST)  # the one node that was approved
        right = 0
        splits = 0
        for name, bins in columns.items():
            lower = np.zeros(n, dtype=np.intp)
            upper = np.full(n, BINS - 1)
            for cut in range(1, BINS):
                if not _answers(record, bins < cut):
                    continue
                splits += 1
                lower = np.where(bins < cut, lower, np.maximum(lower, cut))
                upper = np.where(bins < cut, np.minimum(upper, cut - 1), upper)
            inside = (usual[name] >= lower) & (usual[name] <= upper)
            guesses = np.where(inside, usual[name], (lower + upper) // 2)
            right += int(np.count_nonzero(guesses[rows] == bins[rows]))
        answered.append(splits)
        return right, targets * len(columns)

    off = count(read, None)
    on = count(read, GrowthRecord(Terms(trees=1, depth=1), np.ones(n, dtype=bool)))
    chance = float(np.mean([np.mean(bins == usual[name]) for name, bins in columns.items()]))
    return AttackOutcome(
        off,
        on,
        chance=chance,
        setting={"people": n, "targets": targets, "features": len(columns), "bins": BINS},
        numbers={"splits_off": float(answered[0]), "splits_on": float(answered[1])},
    )


def _bins(column: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return each record's bin, ``(n,)``: equally filled ones, as the Host makes them."""
    values = column.astype(np.float64)
    cuts = np.unique(np.nanquantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))
    return np.digitize(np.nan_to_num(values, nan=float(np.nanmedian(values))), cuts)


def _answers(record: GrowthRecord | None, goes_left: NDArray[np.bool_]) -> bool:
    """Return whether the Host answers which records go left at a split of the one root that was approved."""
    if record is None:
        return True
    everybody = np.ones(len(goes_left), dtype=bool)
    try:
        record.begin_split(0, 0, ROOT, everybody, LEAST)
        record.split(0, 0, ROOT, everybody, goes_left)
    except SecurityError:
        return False
    return True
