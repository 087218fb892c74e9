"""A5: a score names the path behind it. Plays a Guest that knows many people's Host records, though not whose is whose; breaks no rule.

A sum of weights with many digits is the sum of one combination of leaves only. The Guest works out the score that each record would
give together with its own columns of the person scored, and looks which records fit. Even without records it finds the combination,
by meeting in the middle: sums of the first half of the trees against what is left for the second half.

The defence is rounding together with dither: the last Host adds one uniform number per person and model, always the same one, so that
asking again averages nothing out. The attacker knows how wide it is and keeps every record that comes as near.
"""

from __future__ import annotations

import time
from math import prod

import numpy as np
from numpy.typing import NDArray

from backend.attacks.result import AttackOutcome, Attempt, attempt
from backend.attacks.setup import EXACT_BITS, PEOPLE, AttackSetup, scene
from backend.crypto.plain import PlainKeySide
from backend.protocols.scoring.dither import DITHER
from backend.protocols.training.parameters import SecureBoostParameters

OTHER_BITS = (16, 6)  # scales beside the default, without dither
NARROW = 2.0**-6  # width of another dither, on the margin
GUESSED = 2000  # people whose path is guessed without a score
ENOUGH = 10**9  # combinations from which on FATE 1.11 lets a score go

Sums = NDArray[np.int64]


def run(
    seed: int, people: int = PEOPLE, targets: int = 200, trees: int = SecureBoostParameters().trees
) -> AttackOutcome:
    """Name the paths of `targets` people from their scores, exact ones and as they are shipped: rounded and with dither.

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
    named: dict[str, Attempt] = {}
    numbers: dict[str, float] = {}
    settings = {f"{bits}_bits": (bits, 0.0) for bits in (EXACT_BITS, *OTHER_BITS, default)}
    settings |= {"dither_6": (default, NARROW), "dither_4": (default, DITHER)}
    for name, (bits, dither) in settings.items():
        consistent: list[int] = []
        named[name] = attempt(_named, stage, chosen, bits, dither, consistent)
        numbers |= {f"records_{name}": float(np.mean(consistent)), f"auc_{name}": _auc(stage, bits, dither)}
    numbers |= meet_in_the_middle(stage, int(chosen[stage.candidates(chosen).sum(axis=1).argmax()]))
    chance = by_frequency(stage, seed)
    rates = {f"named_{name}": found.rate for name, found in named.items()} | {"named_guessing": chance}
    setting = {"people": len(stage.guest.ids), "targets": targets, "trees": trees, "score_bits": default}
    off, on = named[f"{EXACT_BITS}_bits"], named["dither_4"]
    return AttackOutcome(off, on, chance=chance, setting=setting, rates=rates, numbers=numbers)


def _paths(stage: AttackSetup, chosen: NDArray[np.intp]) -> NDArray[np.float64]:
    """``(n_records, n)``: the path that each record would give with each person's own columns, as a number."""
    paths: NDArray[np.float64] = stage.keep.astype(np.float64) @ np.where(stage.candidates(chosen), stage.codes, 0.0).T
    return paths


def _named(
    stage: AttackSetup, chosen: NDArray[np.intp], bits: int, dither: float, consistent: list[int]
) -> tuple[int, int]:
    """People whose score fits one path only, among the paths of all records; how many records fit goes to `consistent`."""
    compiled, people = stage.compiled(bits), stage.guest.take(chosen)
    released = stage.scored(compiled, people, PlainKeySide(), stage.host_party(dither=dither))
    constant, entries = compiled.encode(people.columns, len(chosen))
    would = stage.keep.astype(np.int64) @ entries.T.astype(np.int64) + np.array(constant)
    fits = np.abs(would - np.array(released.units, dtype=np.int64)) <= released.dither
    consistent += fits.sum(axis=0).tolist()
    named = [len(np.unique(p[f])) == 1 for p, f in zip(_paths(stage, chosen).T, fits.T, strict=True)]
    return sum(named), len(chosen)


def by_frequency(stage: AttackSetup, seed: int) -> float:
    """How often the path that most records would give is a person's own: a guess without any score, about up to :data:`GUESSED` people."""
    n, right = len(stage.guest.ids), []
    chosen = np.random.default_rng((seed, GUESSED)).choice(n, min(n, GUESSED), replace=False)
    for person, paths in zip(chosen, _paths(stage, chosen).T, strict=True):
        found, counts = np.unique(paths, return_counts=True)
        right.append(found[counts.argmax()] == paths[person])
    return float(np.mean(right))


def _auc(stage: AttackSetup, bits: int, dither: float) -> float:
    """Of everybody's scores as they are released, training records included."""
    scored = stage.score(stage.compiled(bits), stage.guest, PlainKeySide(), stage.host_party(dither=dither))
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - slow to import, and few runs need it

    return float(roc_auc_score(stage.labels, np.array(scored, dtype=np.float64)))


def meet_in_the_middle(stage: AttackSetup, person: int) -> dict[str, float]:
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
