"""Every message that may leave a party: a frozen dataclass, its schema, and who can read what in it.

A message travels as msgpack with its class's schema, never as pickle. `HOLDS` and `READABLE_BY` are what the transcript and
`docs/threat-model.md` say about a class; a test holds the three together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, get_type_hints

import msgpack
import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from backend.errors import SecurityError

MAX_MESSAGE = 1 << 30  # bytes; gradients of 2**20 rows at 3,072 bits are 0.8 GiB


@dataclass(frozen=True)
class Message:
    """What every message carries: the conversation it belongs to."""

    HOLDS: ClassVar[str] = ""
    READABLE_BY: ClassVar[str] = ""
    conversation: str


@dataclass(frozen=True)
class OfferKey(Message):
    """Guest → Host: the public key of this conversation's ciphertexts."""

    HOLDS: ClassVar[str] = "the Guest's public key and a proof of its form"
    READABLE_BY: ClassVar[str] = "anyone"
    scheme: str
    key: bytes


@dataclass(frozen=True)
class StartAlignment(Message):
    """Guest → Host: begin to find the records that both hold, without showing the others' ids."""

    HOLDS: ClassVar[str] = "how many records the Guest has; how ids are compared; an offer for oblivious transfer"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    method: str
    records: int
    opening: bytes


@dataclass(frozen=True)
class AlignmentStarted(Message):
    """Host → Guest: how many records it has, and its answer to the opening."""

    HOLDS: ClassVar[str] = "how many records the Host has; its reply to the offer and a salt"
    READABLE_BY: ClassVar[str] = "the Guest"
    records: int
    opening: bytes


@dataclass(frozen=True)
class HiddenIds(Message):
    """Guest → Host: some of its ids, hidden (docs/alignment.md)."""

    HOLDS: ClassVar[str] = "the Guest's ids, blinded, or which filter slots it wants, masked"
    READABLE_BY: ClassVar[str] = "nobody"
    piece: bytes


@dataclass(frozen=True)
class HiddenAnswer(Message):
    """Host → Guest: what lets the Guest recognise ids that both hold, and no other."""

    HOLDS: ClassVar[str] = "the Guest's ids under the Host's key and keyed hashes of the Host's, or masked filter slots"
    READABLE_BY: ClassVar[str] = "the Guest, for ids that it holds too"
    answer: bytes


@dataclass(frozen=True)
class JointRecords(Message):
    """Guest → Host: which records of the Host's secret list every party holds (a bitmap)."""

    HOLDS: ClassVar[str] = "which of the Host's records all parties hold"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    joint: bytes


@dataclass(frozen=True)
class StartTraining(Message):
    """Guest → Host: which of the joint records are training rows, how finely to bin, and whether to hide the bins' order."""

    HOLDS: ClassVar[str] = "which joint records are training rows; number of bins; which of its features are left out"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    training: bytes
    bins: int
    exclude: tuple[str, ...]
    hide_order: bool


@dataclass(frozen=True)
class FeatureBins(Message):
    """Host → Guest: its features by name and how many bins each has; no cut and no category."""

    HOLDS: ClassVar[str] = "the Host's feature names and how many bins each has"
    READABLE_BY: ClassVar[str] = "the Guest"
    names: tuple[str, ...]
    bins: tuple[int, ...]
    categorical: tuple[bool, ...]


@dataclass(frozen=True)
class Gradients(Message):
    """Guest → Host: encrypted pairs of training rows, one batch or several: gradient and hessian a tree, or labels once a forest."""

    HOLDS: ClassVar[str] = "which training rows count; their gradients and hessians, or labels, encrypted"
    READABLE_BY: ClassVar[str] = "rows: the receiving Host; the numbers: only the Guest (its key)"
    tree: int
    rows: bytes
    pairs: tuple[bytes, ...]


@dataclass(frozen=True)
class AskBinSums(Message):
    """Guest → Host: for which nodes of which trees it wants sums: which records are in them, by which features, of which batches."""

    HOLDS: ClassVar[str] = "which training rows are in which node; by which of the Host's features"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: tuple[bytes, ...]
    features: tuple[bytes, ...]
    batches: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class BinSums(Message):
    """Host → Guest: per node and batch, and within by feature and bin, the encrypted sum of pairs."""

    HOLDS: ClassVar[str] = "sums of gradients and hessians, or of labels, by bin, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    sums: tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True)
class TakeSplit(Message):
    """Guest → Host: split this node by one of your features; the Host keeps the threshold."""

    HOLDS: ClassVar[str] = "node, the Host's own feature, which of its bins go left"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    tree: int
    node: int
    feature: str
    left_bins: tuple[int, ...]
    default_left: bool
    rows: bytes


@dataclass(frozen=True)
class SplitRows(Message):
    """Host → Guest: which of the node's joint records go left (SecureBoost's own disclosure, in training only)."""

    HOLDS: ClassVar[str] = "which joint records (training, validation, test) go left at a split of the Host"
    READABLE_BY: ClassVar[str] = "the Guest"
    tree: int
    node: int
    left: bytes


@dataclass(frozen=True)
class KeepModel(Message):
    """Guest → Host: the finished model's name and shape, without weights, gains or other parties' features."""

    HOLDS: ClassVar[str] = "the model's name and shape: which party owns which split"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    model_id: str
    guest: str
    hosts: tuple[str, ...]
    skeletons: tuple[tuple[tuple[int, str, int, int], ...], ...]


@dataclass(frozen=True)
class ModelKept(Message):
    """Host → Guest: the Host has stored its half; its content hash."""

    HOLDS: ClassVar[str] = "hash of the Host's half of the model"
    READABLE_BY: ClassVar[str] = "the Guest"
    model_id: str
    content_hash: str


@dataclass(frozen=True)
class DecisionVectors(Message):
    """Guest → first Host, Host → next Host: encrypted decision vectors of some samples (Fed-EINI eq. 8 and 13)."""

    HOLDS: ClassVar[str] = "ids to be scored; candidate leaf weights or 0, encrypted"
    READABLE_BY: ClassVar[str] = "ids: the receiving Host; the numbers: only the Guest (its key)"
    model_id: str
    ids: tuple[str, ...]
    entries: int
    pieces: int
    vectors: bytes


@dataclass(frozen=True)
class MoreVectors(Message):
    """The next piece of the decision vectors that the last `DecisionVectors` of this conversation began."""

    HOLDS: ClassVar[str] = "more candidate leaf weights or 0, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    vectors: bytes


@dataclass(frozen=True)
class HeldRecords(Message):
    """Host → Guest: which of the ids it holds a record for; the others are scored with its features missing.

    `spent` marks those about which it answers no more (empty: none): `budget` questions about a person and model in `days` days.
    """

    HOLDS: ClassVar[str] = "which of the ids the Host holds; about which of them it answers no more"
    READABLE_BY: ClassVar[str] = "the Guest"
    held: bytes
    spent: bytes = b""
    budget: int = 0
    days: int = 0


@dataclass(frozen=True)
class EncryptedScores(Message):
    """Last Host → Guest: one fresh ciphertext per sample (Fed-EINI eq. 10 and 14)."""

    HOLDS: ClassVar[str] = "one score per sample, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    scores: bytes


@dataclass(frozen=True)
class StartWalk(Message):
    """Guest → Host, comparison only: these samples will walk the trees in the clear."""

    HOLDS: ClassVar[str] = "ids to be scored"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    model_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class AskWalk(Message):
    """Guest → Host, comparison only: samples at splits of the Host; it decides one split each, or all of its own in a row."""

    HOLDS: ClassVar[str] = "which samples stand at which splits of the Host, in the clear"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    one_step: bool
    rows: bytes
    nodes: bytes


@dataclass(frozen=True)
class Walked(Message):
    """Host → Guest, comparison only: the nodes that the samples of an `AskWalk` have reached, in its order."""

    HOLDS: ClassVar[str] = "where the Host's splits lead those samples, in the clear"
    READABLE_BY: ClassVar[str] = "the Guest"
    nodes: bytes


@dataclass(frozen=True)
class PassOn(Message):
    """Party → party, comparison only: samples that stand at nodes of the receiver (a leaf is the Guest's), once a round."""

    HOLDS: ClassVar[str] = "which samples stand at which nodes, in the clear"
    READABLE_BY: ClassVar[str] = "the receiving party"
    round: int
    rows: bytes
    nodes: bytes


@dataclass(frozen=True)
class AskCandidates(Message):
    """Guest → Host, for comparisons and the joint audit only: send the candidate leaves of these samples."""

    HOLDS: ClassVar[str] = "ids to be scored"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    model_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class CandidateLeaves(Message):
    """Host → Guest, for comparisons and the joint audit only: a bit per sample, then a bit per sample and leaf (trees in order)."""

    HOLDS: ClassVar[str] = "which of the ids the Host holds; which leaves its own splits leave to each, in the clear"
    READABLE_BY: ClassVar[str] = "the Guest"
    held: bytes
    leaves: bytes


@dataclass(frozen=True)
class StartRanks(Message):
    """Guest → Host, OpBoost: desensitise your features in this way and send their ranks (backend/protocols/training/opboost)."""

    HOLDS: ClassVar[str] = "how values are to be desensitised; which of its features are left out"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    map: str
    mechanism: str
    epsilon: float
    theta: int
    alpha: float
    levels: int
    exclude: tuple[str, ...]


@dataclass(frozen=True)
class Ranks(Message):
    """Host → Guest, OpBoost: per column the rank of every joint record's desensitised value; the number of ranks marks a missing one."""

    HOLDS: ClassVar[str] = "ranks of the joint records' desensitised values; which values are missing"
    READABLE_BY: ClassVar[str] = "the Guest"
    features: tuple[str, ...]
    counts: tuple[int, ...]
    ranks: tuple[bytes, ...]


@dataclass(frozen=True)
class TakeRankSplits(Message):
    """Guest → Host, OpBoost: split these nodes by your columns below these ranks; the Host keeps thresholds on its own scale."""

    HOLDS: ClassVar[str] = "tree, node, the Host's own column, below which rank goes left"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    columns: tuple[int, ...]
    cuts: tuple[int, ...]
    default_left: tuple[bool, ...]


@dataclass(frozen=True)
class KeepAuditHead(Message):
    """Guest → Host: keep where the Guest's audit log stands, so that a later cut at its end shows."""

    HOLDS: ClassVar[str] = "how many entries the Guest's audit log has; the last one's hash"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    number: int
    hash: str


@dataclass(frozen=True)
class AskAuditHead(Message):
    """Guest → Host: what was the last head of the audit log that you were told?"""

    HOLDS: ClassVar[str] = "nothing"
    READABLE_BY: ClassVar[str] = "the receiving Host"


@dataclass(frozen=True)
class AuditHead(Message):
    """Host → Guest: the head of the audit log that the Host keeps (number 0: it was told of none)."""

    HOLDS: ClassVar[str] = "the number and hash of the Guest's audit log that the Host was told last"
    READABLE_BY: ClassVar[str] = "the Guest"
    number: int
    hash: str


@dataclass(frozen=True)
class GroupPairs(Message):
    """Guest → Host, or Host → Host: encrypted pairs of small numbers a record, to be summed by group (backend/protocols/group_sums.py)."""

    HOLDS: ClassVar[str] = "which joint records count; decisions, labels, scores or groups of each, encrypted"
    READABLE_BY: ClassVar[str] = "rows: the receiving Host; the numbers: only the Guest (its key)"
    rows: bytes
    pairs: tuple[bytes, ...]


@dataclass(frozen=True)
class AskGroupSums(Message):
    """Guest → Host: add up the pairs that `source` sent, by the groups of these features."""

    HOLDS: ClassVar[str] = "whose pairs are to be summed, by which of the Host's features, in how many groups"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    source: str
    features: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class GroupSums(Message):
    """Host → Guest: per feature its groups (kind, name, records; small ones merged), and per batch their encrypted sums."""

    HOLDS: ClassVar[str] = "groups of the Host's features and their sizes, small ones merged; sums by group, encrypted"
    READABLE_BY: ClassVar[str] = "groups: the Guest; the sums: only the Guest (its key)"
    source: str
    features: tuple[str, ...]
    groups: tuple[tuple[tuple[str, str, int], ...], ...]
    sums: tuple[bytes, ...]


@dataclass(frozen=True)
class AskGroupPairs(Message):
    """Guest → Host: encrypt which group of your feature each of these joint records is in, for these Hosts to add up."""

    HOLDS: ClassVar[str] = "which joint records count; one of the Host's features, in how many groups; for which Hosts"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    rows: bytes
    feature: str
    most: int
    receivers: tuple[str, ...]


@dataclass(frozen=True)
class GroupPairsSent(Message):
    """Host → Guest: the pairs are with the other Hosts; the groups of the feature (kind, name, records; small ones merged)."""

    HOLDS: ClassVar[str] = "groups of one of the Host's features and their sizes, small ones merged"
    READABLE_BY: ClassVar[str] = "the Guest"
    feature: str
    groups: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class EndConversation(Message):
    """Guest → Host: forget this conversation's key and working data."""

    HOLDS: ClassVar[str] = "nothing"
    READABLE_BY: ClassVar[str] = "the receiving Host"


@dataclass(frozen=True)
class Refusal(Message):
    """Host → Guest: it will not or cannot answer, and why, in words without data."""

    HOLDS: ClassVar[str] = "why a Host did not answer"
    READABLE_BY: ClassVar[str] = "the Guest"
    reason: str


MESSAGES: dict[str, type[Message]] = {cls.__name__: cls for cls in Message.__subclasses__()}
_STRICT = ConfigDict(strict=True)
_SCHEMAS: dict[str, dict[str, TypeAdapter[Any]]] = {
    name: {f.name: TypeAdapter(get_type_hints(cls)[f.name], config=_STRICT) for f in fields(cls)}
    for name, cls in MESSAGES.items()
}


def encode(message: Message) -> bytes:
    """Message → bytes."""
    body = {f.name: getattr(message, f.name) for f in fields(message)}
    packed: bytes = msgpack.packb([type(message).__name__, body], use_bin_type=True)
    return packed


def decode(blob: bytes) -> Message:
    """Bytes → message.

    Raises
    ------
    SecurityError
        The bytes are too long, no message of a known class, or do not fit the class's schema.
    """
    if len(blob) > MAX_MESSAGE:
        raise SecurityError(f"A message of {len(blob):,} bytes came; at most {MAX_MESSAGE:,} are accepted.")
    try:
        name, body = msgpack.unpackb(blob, use_list=False, raw=False, strict_map_key=True)
        schema = _SCHEMAS[name]
        if set(body) != set(schema):
            raise KeyError(name)
        return MESSAGES[name](**{field: schema[field].validate_python(value) for field, value in body.items()})
    except (ValueError, TypeError, KeyError, msgpack.UnpackException, ValidationError) as error:
        raise SecurityError("A message came that is of no known form; it was refused.") from error


def to_bitmap(flags: NDArray[np.bool_]) -> bytes:
    """``(n,)`` flags as ⌈n/8⌉ bytes."""
    return np.packbits(flags).tobytes()


def from_bitmap(blob: bytes, n: int) -> NDArray[np.bool_]:
    """Inverse of :func:`to_bitmap`; raises SecurityError where the length is wrong."""
    if len(blob) != (n + 7) // 8:
        raise SecurityError(
            f"A bitmap of {(n + 7) // 8} bytes was expected, {len(blob)} came; the message was refused."
        )
    return np.unpackbits(np.frombuffer(blob, dtype=np.uint8), count=n).astype(bool)


def to_numbers(values: NDArray[np.intp], below: int) -> bytes:
    """Whole numbers from 0 to below-1, little-endian, each in as few bytes (1, 2 or 4) as the largest one takes."""
    return values.astype(_width(below)).tobytes()


def from_numbers(blob: bytes, below: int) -> NDArray[np.intp]:
    """Inverse of :func:`to_numbers`; raises SecurityError where the length is wrong or a number is too large."""
    width = _width(below)
    if len(blob) % width.itemsize:
        raise SecurityError(
            f"Numbers of {width.itemsize} bytes were expected, {len(blob)} bytes came; they were refused."
        )
    values = np.frombuffer(blob, dtype=width).astype(np.intp)
    if len(values) and values.max() >= below:
        raise SecurityError(f"Numbers below {below:,} were expected, {values.max():,} came; the message was refused.")
    return values


def _width(below: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype("u1" if below <= 1 << 8 else "<u2" if below <= 1 << 16 else "<u4")


def chunks(n: int, size: int) -> Iterator[range]:
    """Ranges of at most `size` that cover 0 … n-1 (so that a message stays small and a job can be cancelled)."""
    return (range(start, min(start + size, n)) for start in range(0, n, size))
