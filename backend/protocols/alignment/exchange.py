"""The Guest's session with all Hosts of an alignment: which records every party holds. Learns no id that it does not hold itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.jobs import work
from backend.protocols.alignment.ids import joint_rows, knows, mark
from backend.protocols.alignment.messages import AlignmentStarted, HiddenAnswer, HiddenIds, JointRecords, StartAlignment
from backend.protocols.alignment.methods import GuestSide, guest_sides
from backend.protocols.alignment.outcome import Alignment
from backend.protocols.transport.channel import Session

BLINDED = 1 / 3  # of the operations on an id towards one Host: those on the Guest's own side, before the Host has it


def align(session: Session, guest: str, ids: Sequence[str], method: str) -> tuple[NDArray[np.intp], Alignment]:
    """Find the Guest's rows that every Host has, too, and let each Host know which of its rows these are.

    Parameters
    ----------
    method : {"dh", "bloom"}

    Returns
    -------
    rows : ndarray of int
        Joint rows of the Guest in the common order, which every party computes by itself.
    alignment : Alignment

    Raises
    ------
    FederationError
        Repeated ids, or nothing in common.
    SecurityError
        A Host answered out of turn or with another message.
    """
    began = time.perf_counter()
    sides = guest_sides(method, guest, ids, session.hosts)
    # 1 both parties' openings
    for host, side in sides.items():
        session.send(host, StartAlignment(session.name, method, len(ids), side.open()))
    started = session.expect_each(AlignmentStarted, session.hosts)
    # 2 hidden ids, and their answers
    n_missing = {host: side.opened(started[host].records, started[host].opening) for host, side in sides.items()}
    _exchange(session, sides, n_missing)
    # 3 the rows that all parties have; each Host gets its own
    positions = {host: side.positions() for host, side in sides.items()}
    rows = joint_rows(guest, ids, positions)
    proof = knows(session.name, [ids[row] for row in rows.tolist()])
    records = {guest: len(ids)}
    in_common = {}
    for host, position in positions.items():
        records[host] = started[host].records
        in_common[host] = int((position >= 0).sum())
        session.send(host, JointRecords(session.name, mark(position, rows, records[host]), proof))
    return rows, Alignment(
        method=method,
        records=records,
        held=in_common,
        joint=len(rows),
        seconds=time.perf_counter() - began,
    )


def _exchange(session: Session, sides: Mapping[str, GuestSide], n_missing: dict[str, int]) -> None:
    """Send each Host its pieces of hidden ids, one ahead so that both parties work at once; `n_missing` counts the answers to come."""
    pieces = {host: side.pieces() for host, side in sides.items()}
    first = next(iter(sides), "")
    blinded = 0
    pieces_in_all = sum(n_missing.values())
    of_one = n_missing.get(first, 0)

    def ask(host: str) -> None:
        nonlocal blinded
        piece = next(pieces[host], None)
        if piece is not None:
            session.send(host, HiddenIds(session.name, piece))
            blinded += host == first  # once for all Hosts
            report()

    def report() -> None:
        answered = len(sides) * (1 - sum(n_missing.values()) / pieces_in_all)
        work.reached((BLINDED * blinded / of_one + (1 - BLINDED) * answered) / (BLINDED + (1 - BLINDED) * len(sides)))

    for host in sides:
        ask(host)
        ask(host)
    while any(n_missing.values()):
        host, message = session.expect(HiddenAnswer)
        if not n_missing.get(host):
            raise SecurityError("answered_out_of_turn", host=host)
        ask(host)
        sides[host].take(message.answer)
        n_missing[host] -= 1
        report()
