"""The two ways to align behind one form: what a Guest and a Host send each other, whichever way they chose. Moves no bytes itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.protocols.alignment.dh import BlindedIds, DhGuest, DhHost
from backend.protocols.alignment.garbled_bloom import BloomGuest, BloomHost

METHODS = ("dh", "bloom")


class GuestSide(Protocol):
    """The Guest towards one Host: open, opened, then for each piece an answer to take, then places."""

    def open(self) -> bytes:
        """What goes first, with the number of the Guest's records."""
        ...

    def opened(self, records: int, opening: bytes) -> int:
        """What the Host says to that, with the number of its records; returns how many pieces follow."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """What the Guest sends; may be sent ahead of the answers."""
        ...

    def take(self, blob: bytes) -> None:
        """The Host's answer to the next piece."""
        ...

    def places(self) -> NDArray[np.intp]:
        """``(n,)`` place of each own id in the Host's secret list, -1 where the Host does not hold it."""
        ...


class HostSide(Protocol):
    """A Host: open, then an answer to each piece, then rows."""

    @property
    def records(self) -> int:
        """How many records the Host has."""
        ...

    def open(self, records: int, opening: bytes) -> bytes:
        """Answer the Guest's opening."""
        ...

    def take(self, blob: bytes) -> bytes:
        """Answer one piece."""
        ...

    def rows(self, joint: bytes) -> NDArray[np.intp]:
        """Own rows that take part, in the common order, from the Guest's bitmap over the secret list."""
        ...


def guest_sides(method: str, guest: str, ids: Sequence[str], hosts: Sequence[str]) -> dict[str, GuestSide]:
    """One side a Host; raises FederationError where the ids cannot be aligned."""
    if method == "dh":
        blinded = BlindedIds(guest, ids)
        return {host: DhGuest(blinded) for host in hosts}
    return {host: BloomGuest(guest, ids) for host in hosts}


def host_side(method: str, ids: Sequence[str]) -> HostSide:
    """A Host's side of the method that the Guest asks for."""
    if method not in METHODS:
        raise SecurityError(f"An alignment by {', '.join(METHODS)} was expected, another was asked for; refused.")
    return DhHost(ids) if method == "dh" else BloomHost(ids)
