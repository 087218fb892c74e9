"""What every message has in common, and which kinds there are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, dataclass_transform

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
SMALL = 64 * KIB  # names, numbers and hashes
LISTS = 8 * MIB  # a flag for each of 2**22 records, names of thousands of features, a piece of hidden ids or of pairs
PEOPLE = 64 * MIB  # ids of thousands of people, a tree's shape by the thousand, flags of the records in 32 nodes
NUMBERS = 256 * MIB  # sums of 2**14 bins at 8,192 bits, a garbled circuit of 4,096 features, positions in every tree
WHOLE = GIB  # what no piece bounds: scores and vectors of a batch, ranks and leaves of all records

# who can read most messages
HOST = "the receiving Host"
GUEST = "the Guest"
GUEST_KEY = "only the Guest (its key)"
ONLINE_PEOPLE = 32  # somebody waits for the answer about so many; more are bulk work


class Lane(StrEnum):
    """What kind of work a Host's answer is; each kind is done beside the others."""

    ONLINE = "online"
    BULK = "bulk"
    TRAINING = "training"


SEAL = b"\x5e\xa1\x10"  # how what Microsoft SEAL saved begins: magic number, length of its first header
SEAL_HEADERS = (
    128  # bytes that begin every ciphertext of a Host alike: headers, parameters, the packing's own; 125 in SEAL 4
)
BEFORE = 64  # bytes in which it may begin: a set of parameters may be named before

MESSAGES: dict[str, type[Message]] = {}
"""Name on the wire → class, of every message module that was imported; what is not in it is refused."""


def body(hidden: bytes) -> bytes:
    """A ciphertext or key without the headers that are the same in every one of them."""
    at = hidden.find(SEAL, 0, BEFORE)
    return hidden[at + SEAL_HEADERS :] if at >= 0 else hidden


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Message:
    """What every message carries: the conversation it belongs to.

    A kind of message derives from this one, which makes it a frozen dataclass, and says what it `HOLDS` and who can read it
    (`readable_by`, or `READABLE_BY` where a word is not enough); the transcript and docs/architecture.md show both. No message of
    a kind is longer than its `max_bytes`: longer ones are refused unread. `unreadable` names the field whose first bytes may be shown
    to onlookers: a public key, or what nobody but the holder of the key can read. `lane` says which kind of work the answer is; None =
    the same as what came before it in the conversation.
    """

    HOLDS: ClassVar[str] = ""
    READABLE_BY: ClassVar[str] = ""
    MAX_BYTES: ClassVar[int] = SMALL
    UNREADABLE: ClassVar[str] = ""
    LANE: ClassVar[Lane | None] = None
    conversation: str

    def lane(self) -> Lane | None:
        """Which kind of work the answer to this one is: about many people nobody waits for it."""
        many = self.LANE is Lane.ONLINE and len(getattr(self, "ids", ())) > ONLINE_PEOPLE
        return Lane.BULK if many else self.LANE

    def __init_subclass__(
        cls, readable_by: str = "", max_bytes: int = SMALL, unreadable: str = "", lane: Lane | None = None
    ) -> None:
        if cls.__name__ in MESSAGES:
            raise TypeError(f"Two kinds of message are called {cls.__name__}; the name is what travels on the wire.")
        cls.READABLE_BY = readable_by or cls.READABLE_BY
        cls.MAX_BYTES = max_bytes
        cls.UNREADABLE = unreadable
        cls.LANE = lane
        MESSAGES[cls.__name__] = dataclass(frozen=True)(cls)
