"""A5: a score names the path behind it. Plays a Guest that knows many people's Host records, though not whose is whose; breaks no rule.

A sum of weights with many digits is the sum of one combination of leaves only. The Guest works out the score that each record would
give together with its own columns of the person scored, and looks which records fit. Even without records it finds the combination,
by meeting in the middle: sums of the first half of the trees against what is left for the second half.

Also measured, though no Host does it yet: what is left where the last Host adds one uniform number per person and model (dither), always
the same one, so that asking again averages nothing out.
"""

from __future__ import annotations

import time
from math import prod

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from backend.assurance.attacks.result import Attempt, Outcome, attempt
from backend.assurance.attacks.scene import EXACT_BITS, PEOPLE, Scene, scene
from backend.crypto.plain import PlainKeySide
from backend.protocols.training.parameters import SecureBoostParameters

OTHER_BITS = (16, 6)  # scales beside the default
DITHERS = (6, 4)  # bits: added numbers lie in a range of 2^-6 and of 2^-4 on the margin
ENOUGH = 10**9  # combinations from which on FATE 1.11 lets a score go

Sums = NDArray[np.int64]


def run(seed: int, people: int = PEOPLE, targets: int = 200, trees: int = SecureBoostParameters().trees) -> Outcome:
    """Name the paths of `targets` people from their scores, by how finely these are rounded; the default's rounding is the defence.

    Parameters
    ----------
    people : int
        In the demo; the attacker knows the Host's records of all of them.
    trees : int
        Of the model.
    """
    stage = scene(people, trees)
    chosen = np.random.default_rng(seed).choice(len(stage.guest.ids), targets, replace=False)
    default = SecureBoostParameters().score_bits
    named: dict[int, Attempt] = {}
    numbers: dict[str, float] = {}
    for bits in (EXACT_BITS, *OTHER_BITS, default):
        consistent: list[int] = []
        named[bits] = attempt(_named, stage, chosen, bits, consistent)
        numbers |= {f"records_{bits}_bits": float(np.mean(consistent)), f"auc_{bits}_bits": _auc(stage, bits)}
    added: dict[str, float] = {}
    for width in DITHERS:
        found: list[int] = []
        right, people_asked = _named(stage, chosen, default, found, _Dither(seed, default, width))
        added[f"named_dither_{width}"] = right / people_asked
        numbers[f"records_dither_{width}"] = float(np.mean(found))
        numbers[f"auc_dither_{width}"] = _auc(stage, default, _Dither(seed, default, width))
    numbers |= meet_in_the_middle(stage, int(chosen[stage.candidates(chosen).sum(axis=1).argmax()]))
    rates = {f"named_{bits}_bits": named[bits].rate for bits in OTHER_BITS} | added
    setting = {"people": len(stage.guest.ids), "targets": targets, "trees": trees, "score_bits": default}
    return Outcome(named[EXACT_BITS], named[default], chance=0.0, setting=setting, rates=rates, numbers=numbers)


class _Dither:
    """Whole numbers of a scale that a last Host would add: uniform in a range of 2^-width on the margin; none by default."""

    def __init__(self, seed: int = 0, bits: int = 0, width: int | None = None) -> None:
        self.most = 0 if width is None else (1 << bits) >> (width + 1)
        self._draw = np.random.default_rng((seed, self.most))

    def numbers(self, n: int) -> Sums:
        """``(n,)``."""
        return self._draw.integers(-self.most, self.most, n, endpoint=True)


def _named(
    stage: Scene, chosen: NDArray[np.intp], bits: int, consistent: list[int], dither: _Dither | None = None
) -> tuple[int, int]:
    """People whose score fits one path only, among the paths of all records; how many records fit goes to `consistent`."""
    compiled, people = stage.compiled(bits), stage.guest.take(chosen)
    released = stage.score(compiled, people, PlainKeySide(), stage.host_party())
    constant, entries = compiled.encode(people.columns, len(chosen))
    dither = dither or _Dither()
    would = stage.keep.astype(np.int64) @ entries.T.astype(np.int64) + np.array(constant)
    fits = np.abs(would - (np.array(released) + dither.numbers(len(chosen)))) <= dither.most
    paths = stage.keep.astype(np.float64) @ np.where(stage.candidates(chosen), stage.codes, 0.0).T
    consistent += fits.sum(axis=0).tolist()
    return sum(len(np.unique(p[f])) == 1 for p, f in zip(paths.T, fits.T, strict=True)), len(chosen)


def _auc(stage: Scene, bits: int, dither: _Dither | None = None) -> float:
    """Of everybody's scores at a scale, training records included."""
    constant, entries = stage.compiled(bits).encode(stage.guest.columns, len(stage.guest.ids))
    scores = np.array(constant) + np.where(stage.keep, entries, 0).sum(axis=1)
    return float(roc_auc_score(stage.labels, scores + (dither or _Dither()).numbers(len(scores))))


def meet_in_the_middle(stage: Scene, person: int) -> dict[str, float]:
    """One person's combination of leaves in as many trees as give enough combinations, from their exact sum alone."""
    entries = stage.compiled(EXACT_BITS).encode(stage.guest.take(np.array([person])).columns, 1)[1][0]
    trees: list[list[int]] = []
    for leaves in stage.compiled(EXACT_BITS).folding.entry_of_leaf:
        places = sorted({e for e in leaves if e is not None and entries[e]})
        if places and prod(len(tree) for tree in trees) < ENOUGH:
            trees.append(places)
    truth = sum(int(entries[e]) for places in trees for e in places if stage.keep[person, e])
    began = time.perf_counter()
    first, second = (_sums([entries[p] for p in half]) for half in (trees[::2], trees[1::2]))
    solutions = int(np.isin(first, truth - second).sum())
    return {
        "middle_combinations": float(prod(len(tree) for tree in trees)),
        "middle_solutions": float(solutions),
        "middle_seconds": time.perf_counter() - began,
    }


def _sums(options: list[Sums]) -> Sums:
    total = np.zeros(1, dtype=np.int64)
    for values in options:
        total = np.add.outer(total, values.astype(np.int64)).ravel()
    return total
