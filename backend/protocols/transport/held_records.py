"""A Host's records as its handlers look people up in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.data.table import PartyTable
from backend.protocols.host_session import HostSession
from backend.trees.ensemble import Columns


def look_up(table: PartyTable, session: HostSession, ids: Sequence[str]) -> tuple[Columns, NDArray[np.bool_]]:
    """Columns of some people, ``(n,)`` each, and whether a record of each is held; the rows of the others mean nothing."""
    used = session.played if session.played is not None else table
    rows = np.fromiter((used.row_of.get(i, -1) for i in ids), dtype=np.intp, count=len(ids))
    held = rows >= 0
    return used.take(np.where(held, rows, 0)).columns if len(used.ids) else {}, held
