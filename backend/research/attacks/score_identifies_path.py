"""A5: a score identifies the path behind it. Plays a Guest that knows many people's Host records, not whose is whose; breaks no rule.

A sum of weights with many digits is the sum of one combination of leaves only. The Guest computes the score that each record would
give together with its own columns of the person scored, and keeps the records that fit. Even without records it finds the combination,
by meeting in the middle: sums over the first half of the trees against the rest for the second half.

The defence is rounding together with dither: the last Host adds one uniform number per person and model, always the same one, so that
repeated queries average nothing out. The attacker knows its range and keeps every record whose score lies within it.
"""

from __future__ import annotations

import time
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from backend.crypto.plain import PlainKeySide
from backend.protocols.scoring.dither import DITHER
from backend.research.attacks.result import AttackOutcome, SuccessCount, count
from backend.research.attacks.setup import EXACT_BITS, PARAMETERS, PEOPLE, AttackSetup, attack_setup
from backend.trees.metrics import auc

OTHER_BITS = (16, 6)  # scales beside the default, without dither
NARROW_DITHER = 2.0**-6  # width on the margin, beside the default
MAX_GUESSED = 2000  # people whose path is guessed without a score
MIN_COMBINATIONS = 10**9  # from which on FATE 1.11 releases a score


def run(seed: int, people: int = PEOPLE, targets: int = 200) -> AttackOutcome:
    """Identify the paths of `targets` people from their scores, exact ones and as shipped: rounded and with dither."""
    setup = attack_setup(people)
    default = PARAMETERS.score_bits
    rows = setup.draw_people(np.random.default_rng(seed), targets)
    identified: dict[str, SuccessCount] = {}
    numbers: dict[str, float] = {}
    settings = {f"{bits}_bits": (bits, 0.0) for bits in (EXACT_BITS, *OTHER_BITS, default)}
    settings |= {"dither_6": (default, NARROW_DITHER), "dither_4": (default, DITHER)}
    for name, (bits, dither) in settings.items():
        consistent: list[int] = []
        identified[name] = count(identify, setup, rows, bits, dither, consistent)
        numbers |= {f"records_{name}": float(np.mean(consistent)), f"auc_{name}": _auc(setup, bits, dither)}
    numbers |= meet_in_the_middle(setup, int(rows[setup.candidates(rows).sum(axis=1).argmax()]))
    chance = by_frequency(setup, seed)
    rates = {f"named_{name}": success.rate for name, success in identified.items()} | {"named_guessing": chance}
    setting = {"people": len(setup.guest.ids), "targets": targets, "trees": PARAMETERS.trees, "score_bits": default}
    off = identified[f"{EXACT_BITS}_bits"]
    on = identified["dither_4"]
    return AttackOutcome(off, on, chance=chance, setting=setting, rates=rates, numbers=numbers)


def _paths(setup: AttackSetup, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the path that each record would give with each person's own columns, as a number, ``(n_records, n)``."""
    paths: NDArray[np.float64] = setup.keep.astype(np.float64) @ np.where(setup.candidates(rows), setup.codes, 0.0).T
    return paths


def identify(
    setup: AttackSetup, rows: NDArray[np.intp], bits: int, dither: float, consistent: list[int]
) -> tuple[int, int]:
    """Count people whose score fits only one path among the paths of all records; `consistent` collects the number that fit."""
    compiled = setup.compiled(bits)
    people = setup.guest.take(rows)
    released = setup.score(compiled, people, PlainKeySide(), setup.host_party(dither=dither))
    constant, entries = compiled.encode(people.columns, len(rows))
    expected = setup.keep.astype(np.int64) @ entries.T.astype(np.int64) + np.array(constant)
    fits = np.abs(expected - np.array(released.units, dtype=np.int64)) <= released.dither
    consistent += fits.sum(axis=0).tolist()
    unique = []
    for p, f in zip(_paths(setup, rows).T, fits.T, strict=True):
        unique.append(len(np.unique(p[f])) == 1)
    return sum(unique), len(rows)


def by_frequency(setup: AttackSetup, seed: int) -> float:
    """Return how often the path that most records would give is a person's own: a guess without any score."""
    right = []
    draw = np.random.default_rng((seed, MAX_GUESSED))
    rows = setup.draw_people(draw, min(len(setup.guest.ids), MAX_GUESSED))
    for person, paths in zip(rows, _paths(setup, rows).T, strict=True):
        distinct, counts = np.unique(paths, return_counts=True)
        right.append(distinct[counts.argmax()] == paths[person])
    return float(np.mean(right))


def _auc(setup: AttackSetup, bits: int, dither: float) -> float:
    """Of everybody's scores as they are released, training records included."""
    scored = setup.score(setup.compiled(bits), setup.guest, PlainKeySide(), setup.host_party(dither=dither))
    return float(auc(setup.labels, np.array(scored.units, dtype=np.float64), np.ones((1, len(setup.labels))))[0])


def meet_in_the_middle(setup: AttackSetup, person: int) -> dict[str, float]:
    """One person's combination of leaves in enough trees for :data:`MIN_COMBINATIONS`, from their exact sum alone."""
    entries = setup.compiled(EXACT_BITS).encode(setup.guest.take(np.array([person])).columns, 1)[1][0]
    trees: list[list[int]] = []
    for leaves in setup.compiled(EXACT_BITS).folding.entry_of_leaf:
        candidates = sorted({e for e in leaves if e is not None and entries[e]})
        if candidates and prod(len(tree) for tree in trees) < MIN_COMBINATIONS:
            trees.append(candidates)
    truth = sum(int(entries[e]) for candidates in trees for e in candidates if setup.keep[person, e])
    began = time.perf_counter()
    first, second = (_sums([entries[candidates] for candidates in half]) for half in (trees[::2], trees[1::2]))
    solutions = int(np.isin(first, truth - second).sum())
    return {
        "middle_combinations": float(prod(len(tree) for tree in trees)),
        "middle_solutions": float(solutions),
        "middle_seconds": time.perf_counter() - began,
    }


def _sums(options: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Every sum of one number out of each option."""
    return reduce(lambda sums, units: np.add.outer(sums, units).ravel(), options, np.zeros(1, dtype=np.int64))
