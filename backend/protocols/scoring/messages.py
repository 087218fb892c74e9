"""Scoring people with Fed-EINI: vectors forward, one ciphertext a person back."""

from __future__ import annotations

from backend.protocols.transport.message import GUEST, GUEST_KEY, HOST, PEOPLE, WHOLE, Lane, Message


class DecisionVectors(Message, max_bytes=WHOLE, unreadable="vectors", lane=Lane.ONLINE):
    """Guest → first Host, Host → next Host: encrypted decision vectors of some samples (Fed-EINI eq. 8 and 13).

    `request` is the Guest's name for the question, the same when it is repeated (empty: it will not be); `sum_bits` are those of the
    largest score. From Host to Host, `question` is the SHA-256 of the Guest's bytes, `dither` is the widest that was asked for so far,
    units (the last one adds numbers from -dither to dither), and `spent` marks people about whom the budget of an earlier Host is
    exhausted (empty: none): to their empty scores nothing is added.
    """

    HOLDS = (
        "ids to be scored; candidate leaf weights or 0, encrypted; how large a score can be; between Hosts, a hash of the "
        "Guest's message, how wide a dither and who was refused"
    )
    READABLE_BY = "ids: the receiving Host; the numbers: only the Guest (its key)"
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


class MoreVectors(Message, readable_by=GUEST_KEY, max_bytes=WHOLE, unreadable="vectors"):
    """The next piece of the decision vectors that the last `DecisionVectors` of this conversation began."""

    HOLDS = "more candidate leaf weights or 0, encrypted"
    vectors: bytes


class PermuteValues(Message, readable_by=HOST, max_bytes=PEOPLE):
    """Guest → Host: permute your values of these features among these people, and score them so in this conversation."""

    HOLDS = "ids whose values are to be permuted; of which of the Host's features"
    ids: tuple[str, ...]
    features: tuple[str, ...]


class BlankValues(Message, readable_by=HOST, max_bytes=PEOPLE):
    """Guest → Host: score these people, in this conversation, as if you had no value of these features for anybody."""

    HOLDS = "ids who are to be scored without values; of which of the Host's features"
    ids: tuple[str, ...]
    features: tuple[str, ...]


class AssignAges(Message, readable_by=HOST, max_bytes=PEOPLE):
    """Guest → Host: give these people, in this conversation, ages of one class of your records: 0 = elderly, 1 … = younger, upwards."""

    HOLDS = "ids who are to be scored at other ages; by which of the Host's features, in which class of age"
    ids: tuple[str, ...]
    feature: str
    place: int  # the class's index; of this name on the wire


class AgesAssigned(Message, readable_by=GUEST):
    """Host → Guest: how many classes of age there are; 0 = too few records, so that nothing was done."""

    HOLDS = "how many classes the Host divides ages into"
    classes: int


class EncryptedScores(Message, readable_by=GUEST_KEY, max_bytes=WHOLE, unreadable="scores"):
    """Last Host → Guest: one fresh ciphertext per sample (Fed-EINI eq. 10 and 14), moved by at most `dither` units a sum."""

    HOLDS = "one score per sample, encrypted; how far dither may have moved it"
    scores: bytes
    dither: int = 0
