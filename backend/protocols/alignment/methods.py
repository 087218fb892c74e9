"""The two ways to align behind one form: what a Guest and a Host send each other, whichever way they chose. Moves no bytes itself.

The Guest's side towards one Host: `open`, `opened`, for each of `pieces` an answer to `take`, then `positions`. A Host's side: `open`, an
answer to each piece by `take`, then `rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.errors import SecurityError
from backend.protocols.alignment.dh import BlindedIds, DhGuest, DhHost
from backend.protocols.alignment.garbled_bloom import BloomGuest, BloomHost
from backend.protocols.alignment.outcome import METHODS

GuestSide = DhGuest | BloomGuest
HostSide = DhHost | BloomHost


def guest_sides(method: str, guest: str, ids: Sequence[str], hosts: Sequence[str]) -> dict[str, GuestSide]:
    """One side a Host; raises FederationError if the ids cannot be aligned."""
    if method == "dh":
        blinded = BlindedIds(guest, ids)
        return {host: DhGuest(blinded) for host in hosts}
    return {host: BloomGuest(guest, ids) for host in hosts}


def host_side(method: str, ids: Sequence[str]) -> HostSide:
    """A Host's side of the method that the Guest asks for."""
    if method not in METHODS:
        raise SecurityError("unknown_alignment", methods=tuple(METHODS))
    return DhHost(ids) if method == "dh" else BloomHost(ids)
