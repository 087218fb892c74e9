"""What a Host remembers of its conversations; a conversation that ends is forgotten whole."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import PublicSide
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.transport.message import Message

SESSIONS_KEPT = 64  # conversations remembered; older ones are dropped

Answer = Iterator[tuple[str, Message]]  # messages, each with its receiver
Handlers = dict[type[Message], Callable[[str, Any], Answer]]  # by class of message: sender and message → answer
Work = TypeVar("Work")


@dataclass
class HostSession:
    """One conversation.

    Attributes
    ----------
    guest : str
        Who opened it.
    cipher : PublicSide, optional
        The key that was offered.
    rows : ndarray of int, optional
        The joint records as rows of the Host's table, once ids were aligned.
    played : PartyTable, optional
        What stands in for the Host's records (simulation).
    """

    guest: str
    cipher: PublicSide | None = None
    rows: NDArray[np.intp] | None = field(default=None, repr=False)
    played: PartyTable | None = field(default=None, repr=False)
    _work: dict[type, object] = field(default_factory=dict, repr=False)

    def keep(self, kind: type[Work], work: Work) -> Work:
        """Remember the state of one kind of work; returns it."""
        self._work[kind] = work
        return work

    def kept(self, kind: type[Work]) -> Work | None:
        """The state of that kind of work, if any was begun."""
        return cast("Work | None", self._work.get(kind))

    def drop(self, kind: type) -> None:
        """Forget that kind of work."""
        self._work.pop(kind, None)

    def need(self, kind: type[Work], what: str) -> Work:
        """The state of that kind of work; raises SecurityError, which says `what`, where none was begun."""
        work = self.kept(kind)
        if work is None:
            raise SecurityError(what)
        return work


class HostSessions:
    """The open conversations of a Host."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, HostSession] = OrderedDict()
        self.uncounted: set[str] = set()  # conversations outside the budget (simulation)

    def __len__(self) -> int:
        return len(self._open)

    def of(self, conversation: str, guest: str = "") -> HostSession:
        """The conversation of that name; one that is not open is opened where `guest` is given.

        Raises
        ------
        SecurityError
            It is not open and nobody opens it.
        """
        if conversation not in self._open:
            if not guest:
                raise SecurityError("This conversation was not opened with a key; start it again.")
            self._open[conversation] = HostSession(guest)
            while len(self._open) > SESSIONS_KEPT:
                self.end(next(iter(self._open)))
        return self._open[conversation]

    def find(self, conversation: str) -> HostSession | None:
        """The conversation of that name, if it is open."""
        return self._open.get(conversation)

    def counts(self, conversation: str) -> bool:
        """Whether its questions count: neither the simulation's measuring nor about people that the user made up."""
        return self.of(conversation).played is None and conversation not in self.uncounted

    def end(self, conversation: str) -> None:
        """Forget a conversation."""
        self._open.pop(conversation, None)
        self.uncounted.discard(conversation)
