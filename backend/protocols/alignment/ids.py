"""A party's ids on their way into an alignment and out of it: each once, a secret order to speak of them, a common order at the end."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import MAX_ROWS
from backend.errors import FederationError, SecurityError
from backend.protocols.transport.packing import from_bitmap, to_bitmap

MAX_ID = 0xFFFF  # bytes; RFC 9497 §3.3.1 counts an input in two bytes


def encoded(ids: Sequence[str], *, guest: str = "") -> list[bytes]:
    """Return ids as UTF-8, in the given order.

    Parameters
    ----------
    ids : sequence of str, ``(n,)``
    guest : str
        The Guest's name, if the ids are its own: errors may then show an id. A Host's errors travel to the Guest, so they name only
        positions.

    Raises
    ------
    FederationError
        There are no ids or too many, one is too long, or two records share one.
    """
    who = guest or "The Host"
    if not ids:
        raise FederationError("no_records_to_align", party=who)
    if len(ids) > MAX_ROWS:
        raise FederationError("too_many_to_align", party=who, records=len(ids), most=MAX_ROWS)
    data = [value.encode() for value in ids]
    longest = max(range(len(data)), key=lambda row: len(data[row]))
    if len(data[longest]) > MAX_ID:
        raise FederationError("id_too_long", party=who, record=longest + 1, bytes=len(data[longest]), most=MAX_ID)
    first: dict[bytes, int] = {}
    for row, value in enumerate(data):
        first_row = first.setdefault(value, row)
        if first_row != row:
            if guest:
                raise FederationError(
                    "aligned_id_twice_here", party=who, first=first_row + 1, second=row + 1, id=ids[row]
                )
            raise FederationError("aligned_id_twice", party=who, first=first_row + 1, second=row + 1)
    return data


def check_count(records: int) -> None:
    """Refuse a number of records that no party may announce, before anything is set aside for them."""
    if not 1 <= records <= MAX_ROWS:
        raise SecurityError("announced_records_outside", records=records, most=MAX_ROWS)


def secret_order(n: int) -> NDArray[np.intp]:
    """``(n,)`` a permutation of 0 … n-1 by random keys of 128 bits from the operating system: uniform unless two keys are equal."""
    keys = np.frombuffer(os.urandom(16 * n), dtype=np.uint64).reshape(n, 2)
    return np.lexsort((keys[:, 0], keys[:, 1]))


def check_positions(positions: NDArray[np.intp], records: int) -> NDArray[np.intp]:
    """Return positions in the Host's list, ``(n,)``, -1 for none; raises SecurityError for a position outside the list or given twice."""
    listed = positions[positions >= 0]
    if len(listed) and (listed.max() >= records or len(np.unique(listed)) < len(listed)):
        raise SecurityError("unknown_record_listed")
    return positions


def joint_rows(guest: str, ids: Sequence[str], positions: Mapping[str, NDArray[np.intp]]) -> NDArray[np.intp]:
    """Return the Guest's rows that every Host has, too, in the common order.

    Parameters
    ----------
    ids : sequence of str, ``(n,)``
    positions : dict of str to ndarray, each ``(n,)``
        Host → the position of each id in its list, or -1.

    Returns
    -------
    ndarray of int, ``(n_joint,)``

    Raises
    ------
    FederationError
        A Host has none of the ids, or no id is in all parties' lists.
    """
    in_all = np.ones(len(ids), dtype=bool)
    for host, position in positions.items():
        if not (position >= 0).any():
            raise FederationError("host_holds_no_id", host=host, guest=guest, records=len(ids))
        in_all &= position >= 0
    if not in_all.any():
        raise FederationError("no_id_in_common", guest=guest, records=len(ids), hosts=tuple(positions))
    return common_order(ids, np.flatnonzero(in_all))


def common_order(ids: Sequence[str], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """``(n_joint,)`` `rows` sorted by id (code points): every party can do it alone, and no file's order shows."""
    return np.array(sorted(rows.tolist(), key=lambda row: ids[row]), dtype=np.intp)


def mark(positions: NDArray[np.intp], rows: NDArray[np.intp], records: int) -> bytes:
    """The Guest's `rows` as a bitmap over a Host's list of `records`."""
    flags = np.zeros(records, dtype=bool)
    flags[positions[rows]] = True
    return to_bitmap(flags)


def knows(conversation: str, ids: Sequence[str]) -> bytes:
    """SHA-256 over a conversation's name and the ids of joint records in the common order: nobody makes it who does not know them all."""
    return hashlib.sha256(json.dumps([conversation, *ids]).encode()).digest()


class HostIds:
    """A Host's side of an alignment, whichever way: its ids in a secret order, and which of the announced messages have come."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = tuple(ids)
        self._data = encoded(ids)
        self._order = secret_order(len(self._data))
        self._asked = self._answered = self._pieces = 0

    @property
    def records(self) -> int:
        """How many records the Host has."""
        return len(self._data)

    def _next(self) -> int:
        """Number of the message that has come, from 0."""
        if self._answered >= self._pieces:
            raise SecurityError("one_message_too_many", pieces=self._pieces)
        return self._answered

    def rows(self, joint: bytes) -> NDArray[np.intp]:
        """Return the Host's rows that take part, ``(n_joint,)``, which the Guest marked in its list (a bitmap), in the common order.

        Raises SecurityError if the alignment has not finished, no record is marked, or more are marked than were asked about.
        """
        if self._answered < self._pieces or not self._pieces:
            raise SecurityError("marked_before_alignment")
        joint_rows = self._order[from_bitmap(joint, self.records)]
        if not 1 <= len(joint_rows) <= self._asked:
            raise SecurityError("other_records_marked", marked=len(joint_rows), asked=self._asked)
        return common_order(self._ids, joint_rows)
