"""Messages of training: sums under encryption, or ranks with noise. None holds a cut or a category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import LISTS, NUMBERS, PEOPLE, WHOLE, Lane, Message


@dataclass(frozen=True)
class StartTraining(Message):
    """Guest → Host: which of the joint records are training rows, how finely to bin, and whether to hide the bins' order.

    `request` is the Guest's name for the training, the same when it goes on after a break; empty = it will not.
    """

    HOLDS: ClassVar[str] = "which joint records are training rows; number of bins; which of its features are left out"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    training: bytes
    bins: int
    exclude: tuple[str, ...]
    hide_order: bool
    request: str = ""


@dataclass(frozen=True)
class FeatureBins(Message):
    """Host → Guest: its features by name and how many bins each has; no cut and no category."""

    HOLDS: ClassVar[str] = "the Host's feature names and how many bins each has"
    READABLE_BY: ClassVar[str] = "the Guest"
    MAX_BYTES: ClassVar[int] = LISTS
    names: tuple[str, ...]
    bins: tuple[int, ...]
    categorical: tuple[bool, ...]


@dataclass(frozen=True)
class Gradients(Message):
    """Guest → Host: encrypted pairs of training rows, one batch or several: gradient and hessian a tree, or labels once a forest."""

    HOLDS: ClassVar[str] = "which training rows count; their gradients and hessians, or labels, encrypted"
    READABLE_BY: ClassVar[str] = "rows: the receiving Host; the numbers: only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    tree: int
    rows: bytes
    pairs: tuple[bytes, ...]


@dataclass(frozen=True)
class AskBinSums(Message):
    """Guest → Host: request sums of nodes: which records are in them, by which features, of which batches."""

    HOLDS: ClassVar[str] = "which training rows are in which node; by which of the Host's features"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: tuple[bytes, ...]
    features: tuple[bytes, ...]
    batches: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class AskNodeSums(Message):
    """Guest → Host, RLWE: request sums of one node, whose rows come next in blocks of `block` rows of `numbers` numbers each."""

    HOLDS: ClassVar[str] = "which training rows are in which node; by which of the Host's features"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    tree: int
    node: int
    rows: bytes
    features: bytes
    block: int
    numbers: int


@dataclass(frozen=True)
class NodePairs(Message):
    """Guest → Host, RLWE: the next piece of the rows of the node that the last `AskNodeSums` of this conversation named."""

    HOLDS: ClassVar[str] = "gradients and hessians, or labels, of rows of one node, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = PEOPLE
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    pairs: bytes


@dataclass(frozen=True)
class BinSums(Message):
    """Host → Guest: per node and batch, and within by feature and bin, the encrypted sum of pairs."""

    HOLDS: ClassVar[str] = "sums of gradients and hessians, or of labels, by bin, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = NUMBERS
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    sums: tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True)
class TakeSplit(Message):
    """Guest → Host: split this node by one of your features; the Host keeps the threshold."""

    HOLDS: ClassVar[str] = "node, the Host's own feature, which of its bins go left"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    tree: int
    node: int
    feature: str
    left_bins: tuple[int, ...]
    default_left: bool
    rows: bytes


@dataclass(frozen=True)
class SplitRows(Message):
    """Host → Guest: which of the node's joint records go left (a disclosure inherent in SecureBoost, in training only)."""

    HOLDS: ClassVar[str] = "which joint records (training, validation, test) go left at a split of the Host"
    READABLE_BY: ClassVar[str] = "the Guest"
    MAX_BYTES: ClassVar[int] = LISTS
    tree: int
    node: int
    left: bytes


@dataclass(frozen=True)
class StartRanks(Message):
    """Guest → Host, OpBoost: desensitise your features in this way and send their ranks (backend/protocols/training/opboost)."""

    HOLDS: ClassVar[str] = "how values are to be desensitised; which of its features are left out"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
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
    MAX_BYTES: ClassVar[int] = WHOLE
    features: tuple[str, ...]
    counts: tuple[int, ...]
    ranks: tuple[bytes, ...]


@dataclass(frozen=True)
class TakeRankSplits(Message):
    """Guest → Host, OpBoost: split these nodes by your columns below these ranks; the Host keeps thresholds on its own scale."""

    HOLDS: ClassVar[str] = "tree, node, the Host's own column, below which rank goes left"
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = LISTS
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    columns: tuple[int, ...]
    cuts: tuple[int, ...]
    default_left: tuple[bool, ...]


@dataclass(frozen=True)
class KeepModel(Message):
    """Guest → Host: the finished model's name and shape, without weights, gains or other parties' features.

    `score_bits`, `slots`, `slot_bits` and `scale` are the layout of released sums (:class:`backend.trees.ensemble.Layout`); an auditor
    compares `guest_hash`, of the Guest's partial model, with the weights that were sent.
    """

    HOLDS: ClassVar[str] = (
        "the model's name and shape: which party owns which split; layout of scores; hash of the Guest's partial model"
    )
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    LANE: ClassVar[Lane | None] = Lane.TRAINING
    model_id: str
    guest: str
    hosts: tuple[str, ...]
    skeletons: tuple[tuple[tuple[int, str, int, int], ...], ...]
    score_bits: int
    slots: int
    slot_bits: int
    scale: int
    guest_hash: str


@dataclass(frozen=True)
class ModelKept(Message):
    """Host → Guest: the Host has stored its partial model; its content hash."""

    HOLDS: ClassVar[str] = "hash of the Host's partial model"
    READABLE_BY: ClassVar[str] = "the Guest"
    model_id: str
    content_hash: str
