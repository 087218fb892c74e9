"""What carries messages between parties, as one party holds it: messages in, messages out.

In a simulation an end of :class:`backend.protocols.transport.network.Network`; between companies a link. A party has one wire, and the
wire knows whose it is: no message says who sent it, and nobody who sends may say so.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from backend.remark import Remark, read_plain

if TYPE_CHECKING:
    from backend.protocols.transport.message import Message

NAME_BYTES = 16  # random bytes of a conversation's name


def new_conversation() -> str:
    """A name that nobody else has and nobody can guess: 128 random bits, in hexadecimal."""
    return secrets.token_hex(NAME_BYTES)


class Delivery(NamedTuple):
    """A message that came.

    Attributes
    ----------
    sender : str
        Whom the wire proves it to be from: the end of a simulated network, the certificate of a link or the signature of an envelope.
    bytes : int
        Length on the wire; 0 of what this party's own link says in the sender's place: that it cannot be reached, or has ended.
    number : int
        Its position in the transcript; 0 if there is none.
    """

    sender: str
    message: Message
    bytes: int = 0
    number: int = 0


class Quiet(NamedTuple):
    """How long nothing has come from a party, with whatever carries its messages taken together.

    Attributes
    ----------
    seconds : float
        Since anything came from it, a sign of life too; 0 if no link lies between.
    owing : float
        Since it was handed a message of which it has not even confirmed that it came, while nothing else came either; 0 if there
        is none.
    """

    seconds: float = 0.0
    owing: float = 0.0


class LinkState(NamedTuple):
    """Whether a link to another company is up.

    Attributes
    ----------
    since : str
        The beginning of this state by this machine's clock: time of day, with the date if that is a day ago.
    remark : Remark
        Party, state and cause as one sentence: `shop: down since 14:02, its certificate expired 3 days ago`.
    """

    up: bool
    since: str
    remark: Remark

    def plain(self) -> tuple[bool, str, dict[str, object]]:
        """Return the state for another process of this party."""
        return self.up, self.since, self.remark.plain()

    @classmethod
    def read(cls, plain: Sequence[Any]) -> LinkState:
        """Read the result of :meth:`plain`; raises ValueError or TypeError if it is not one."""
        up, since, remark = plain
        return cls(bool(up), str(since), read_plain(remark))


class Wire(Protocol):
    """One party's wire. Messages of one conversation and sender come in the order in which they were sent; all methods from any thread."""

    @property
    def party(self) -> str:
        """The party whose wire this is."""

    def open(self, conversation: str = "") -> None:
        """Open a mailbox for all messages, or for a single conversation."""

    def close(self, conversation: str = "") -> None:
        """Close a mailbox; whoever waits at it is woken."""

    def send(self, receiver: str, message: Message) -> int:
        """Hand over a message; returns its bytes once it was taken; raises PartyUnreachable if `receiver` cannot be reached."""

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """What comes next into a mailbox; None when it is closed or `timeout` seconds have passed.

        Raises SecurityError if what came is no message.
        """

    def is_up(self, party: str) -> bool:
        """Whether `party` can be reached at this moment."""

    def quiet(self, party: str) -> Quiet:
        """How long nothing has come from `party`."""

    def state(self, party: str) -> Remark | None:
        """Return how the link to `party` stands, with the cause if it is down; None if no link lies between."""
        return None
