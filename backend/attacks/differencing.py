"""A8: many scores of one person under varied Guest columns. Plays a Guest that knows many people's Host records and asks again and again.

Each column that the Guest varies brings other leaves into the sum, so that every score says something else about the same Host record,
however coarsely it is rounded. A Host that counts leaves the Guest with the first few; the rest of its questions come back empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.attacks.result import AttackOutcome, Attempt, attempt
from backend.attacks.setup import PEOPLE, AttackSetup, scene
from backend.crypto.plain import PlainKeySide
from backend.protocols.host import HostParty
from backend.protocols.training.parameters import SecureBoostParameters
from backend.store.query_budget import QUERIES, QueryBudget

SCORE_BITS = 6  # coarse: one score says little (A5)
FEWER = (1, 2, 4, 16)  # queries


def run(
    seed: int,
    people: int = PEOPLE,
    targets: int = 60,
    queries: int = 64,
    trees: int = SecureBoostParameters().trees,
) -> AttackOutcome:
    """Name every answer of the Host about `targets` people, each scored `queries` times with other people's Guest columns.

    Parameters
    ----------
    people : int
        In the demo; the attacker knows the Host's records of all of them.
    trees : int
        Of the model.
    """
    stage = scene(people, trees)
    draw = np.random.default_rng(seed)
    chosen = draw.choice(len(stage.guest.ids), targets, replace=False)
    columns = draw.integers(0, len(stage.guest.ids), (targets, queries))
    columns[:, 0] = chosen  # the first score is an honest one
    rates: dict[int, Attempt] = {}
    for asked in (*FEWER, queries):
        rates[asked] = attempt(_named, stage, chosen, columns[:, :asked], stage.host_party())
    counting = stage.host_party(budget=QueryBudget())
    budgeted = attempt(_named, stage, chosen, columns, counting)
    setting = {"people": len(stage.guest.ids), "targets": targets, "queries": queries, "score_bits": SCORE_BITS}
    fewer = {f"named_after_{asked}": found.rate for asked, found in rates.items() if asked < queries}
    return AttackOutcome(rates[queries], budgeted, chance=0.0, setting=setting | {"budget": QUERIES}, rates=fewer)


def _named(stage: AttackSetup, chosen: NDArray[np.intp], columns: NDArray[np.intp], host: HostParty) -> tuple[int, int]:
    """People for whom all records that fit every score make the Host answer alike."""
    compiled, queries = stage.compiled(SCORE_BITS), columns.shape[1]
    people = stage.guest.take(columns.ravel())
    people = type(people)(people.party, tuple(stage.guest.ids[i] for i in np.repeat(chosen, queries)), people.columns)
    released = stage.scored(compiled, people, PlainKeySide(), host)
    silent = np.isin(np.arange(columns.size), list(released.refused))
    constant, entries = compiled.encode(people.columns, columns.size)
    would = stage.keep.astype(np.float64) @ entries.T.astype(np.float64)
    fits = silent | (would == np.array(released.units, dtype=np.float64) - np.array(constant))
    answers = stage.keep.astype(np.float64) @ stage.codes
    return sum(len(np.unique(answers[f])) == 1 for f in fits.reshape(-1, len(chosen), queries).all(axis=2).T), len(
        chosen
    )
