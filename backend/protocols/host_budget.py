"""A Host's budget of questions as its handlers use it: about whom no more is answered, and what the Guest is told of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.protocols.scoring.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.query_budget import QueryBudget

Flags = NDArray[np.bool_]


def spend(budget: QueryBudget | None, model_id: str, ids: Sequence[str], held: Flags, kind: str = "") -> Flags:
    """Count a question about everybody of whom a record is held; whose budget was spent before, ``(n,)``.

    Parameters
    ----------
    budget : QueryBudget, optional
        None = nothing is counted.
    kind : str
        See :meth:`backend.store.query_budget.QueryBudget.take`.
    """
    spent = np.zeros(len(held), dtype=bool)
    if budget is not None:
        asked = np.flatnonzero(held)
        spent[asked] = budget.take(model_id, [ids[i] for i in asked.tolist()], kind)
    return spent


def held_records(budget: QueryBudget | None, conversation: str, held: Flags, spent: Flags) -> HeldRecords:
    """Of whom a record is held and, where somebody's budget is spent, whose it is and how large it was."""
    if budget is None or not spent.any():
        return HeldRecords(conversation, to_bitmap(held))
    return HeldRecords(conversation, to_bitmap(held), to_bitmap(spent), budget.limit, budget.days)
