"""A8: many scores of one person under varied Guest columns. Plays a Guest that knows many people's Host records and queries repeatedly.

Each column that the Guest varies brings other leaves into the sum, so that every score adds information about the same Host record,
however coarsely it is rounded. A Host with a query budget answers the first few; the rest of the queries come back empty.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from backend.crypto.plain import PlainKeySide
from backend.protocols.host import HostParty
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import PEOPLE, AttackSetup, attack_setup
from backend.store.accountant import QUERIES, Accountant
from backend.store.database import Database

SCORE_BITS = 6  # coarse: one score discloses little (A5)
FEWER = (1, 2, 4, 16)  # queries


def run(seed: int, people: int = PEOPLE, targets: int = 60, queries: int = 64) -> AttackOutcome:
    """Identify every answer of the Host about `targets` people, each scored `queries` times with other people's Guest columns."""
    setup = attack_setup(people)
    draw = np.random.default_rng(seed)
    rows = setup.draw_people(draw, targets)
    columns = draw.integers(0, len(setup.guest.ids), (targets, queries))
    columns[:, 0] = rows  # the first score is an honest one
    by_queries = {n: count(_identified, setup, rows, columns[:, :n], setup.host_party()) for n in (*FEWER, queries)}
    counting = setup.host_party(accountant=Accountant(Database()))
    budgeted = count(_identified, setup, rows, columns, counting)
    setting = {"people": len(setup.guest.ids), "targets": targets, "queries": queries, "score_bits": SCORE_BITS}
    fewer = {f"named_after_{n}": success.rate for n, success in by_queries.items() if n < queries}
    return AttackOutcome(by_queries[queries], budgeted, chance=0.0, setting=setting | {"budget": QUERIES}, rates=fewer)


def _identified(
    setup: AttackSetup, rows: NDArray[np.intp], columns: NDArray[np.intp], host: HostParty
) -> tuple[int, int]:
    """People for whom all records that fit every score make the Host answer alike."""
    compiled = setup.compiled(SCORE_BITS)
    queries = columns.shape[1]
    people = setup.guest.take(columns.ravel())
    people = replace(people, ids=tuple(setup.guest.ids[i] for i in np.repeat(rows, queries)))
    released = setup.score(compiled, people, PlainKeySide(), host)
    refused = np.isin(np.arange(columns.size), list(released.refused))
    constant, entries = compiled.encode(people.columns, columns.size)
    expected = setup.keep.astype(np.float64) @ entries.T.astype(np.float64)
    fits = refused | (expected == np.array(released.units, dtype=np.float64) - np.array(constant))
    fits_all = fits.reshape(-1, len(rows), queries).all(axis=2).T
    answers = setup.keep.astype(np.float64) @ setup.codes
    return sum(len(np.unique(answers[fit])) == 1 for fit in fits_all), len(rows)
