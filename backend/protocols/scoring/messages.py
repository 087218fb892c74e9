"""Scoring people with Fed-EINI: vectors forward, one ciphertext a person back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import PEOPLE, WHOLE, Lane, Message, lane_of_people


@dataclass(frozen=True)
class DecisionVectors(Message):
    """Guest → first Host, Host → next Host: encrypted decision vectors of some samples (Fed-EINI eq. 8 and 13).

    `request` is the Guest's name for the question, the same when it is repeated (empty: it will not be); `sum_bits` are those of the
    largest score. From Host to Host, `question` is the SHA-256 of the Guest's bytes, `dither` is the widest that was asked for so far,
    units (the last one adds numbers from -dither to dither), and `spent` marks people about whom the budget of an earlier Host is
    exhausted (empty: none): to their empty scores nothing is added.
    """

    HOLDS: ClassVar[str] = (
        "ids to be scored; candidate leaf weights or 0, encrypted; how large a score can be; between Hosts, a hash of the "
        "Guest's message, how wide a dither and who was refused"
    )
    READABLE_BY: ClassVar[str] = "ids: the receiving Host; the numbers: only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    UNREADABLE: ClassVar[str] = "vectors"
    model_id: str
    ids: tuple[str, ...]
    entries: int
    pieces: int
    vectors: bytes
    dither: int = 0
    spent: bytes = b""
    request: str = ""
    question: str = ""
    sum_bits: int = 0

    def lane(self) -> Lane:
        """By how many people it is about."""
        return lane_of_people(self.ids)


@dataclass(frozen=True)
class MoreVectors(Message):
    """The next piece of the decision vectors that the last `DecisionVectors` of this conversation began."""

    HOLDS: ClassVar[str] = "more candidate leaf weights or 0, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    UNREADABLE: ClassVar[str] = "vectors"
    vectors: bytes


@dataclass(frozen=True)
class PermuteValues(Message):
    """Guest → Host: permute your values of these features among these people, and score them so in this conversation."""

    HOLDS: ClassVar[str] = "ids whose values are to be permuted; of which of the Host's features"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    ids: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True)
class BlankValues(Message):
    """Guest → Host: score these people, in this conversation, as if you had no value of these features for anybody."""

    HOLDS: ClassVar[str] = "ids who are to be scored without values; of which of the Host's features"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    ids: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True)
class AssignAges(Message):
    """Guest → Host: give these people, in this conversation, ages of one class of your records: 0 = elderly, 1 … = younger, upwards."""

    HOLDS: ClassVar[str] = (
        "ids who are to be scored at other ages; by which of the Host's features, in which class of age"
    )
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    ids: tuple[str, ...]
    feature: str
    place: int


@dataclass(frozen=True)
class AgesAssigned(Message):
    """Host → Guest: how many classes of age there are; 0 = too few records, so that nothing was done."""

    HOLDS: ClassVar[str] = "how many classes the Host divides ages into"
    READABLE_BY: ClassVar[str] = "the Guest"
    classes: int


@dataclass(frozen=True)
class EncryptedScores(Message):
    """Last Host → Guest: one fresh ciphertext per sample (Fed-EINI eq. 10 and 14), moved by at most `dither` units a sum."""

    HOLDS: ClassVar[str] = "one score per sample, encrypted; how far dither may have moved it"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    UNREADABLE: ClassVar[str] = "scores"
    scores: bytes
    dither: int = 0
