"""Messages of training: sums under encryption, or ranks with noise. None holds a cut or a category."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from backend.protocols.training.growth_record import ROOT
from backend.protocols.training.opboost.noise_terms import NoiseTerms
from backend.protocols.transport.codec import RemarkOnWire
from backend.protocols.transport.message import GUEST, GUEST_KEY, HOST, LISTS, NUMBERS, PEOPLE, WHOLE, Lane, Message


class StartTraining(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host: which of the joint records are training rows, how finely to bin, and whether to hide the bins' order.

    `request` is the Guest's name for the training, the same when it goes on after a break; empty = it will not.
    """

    HOLDS = "which joint records are training rows; number of bins; which of its features are left out"
    training: bytes
    bins: int
    exclude: tuple[str, ...]
    hide_order: bool
    request: str = ""


class FeatureBins(Message, readable_by=GUEST, max_bytes=LISTS):
    """Host → Guest: its features by name and how many bins each has; no cut and no category.

    Also the Host's floors: `least` people in a node whose sums it answers, and the share of them whom sums may name (`named`; 0 = any).
    """

    HOLDS = "the Host's feature names and how many bins each has; the fewest people in a node that it answers about"
    names: tuple[str, ...]
    bins: tuple[int, ...]
    categorical: tuple[bool, ...]
    least: int = 1
    named: float = 0.0


class Gradients(Message, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host: encrypted pairs of the first of these training rows, one batch or several: gradient and hessian a tree, or labels
    once a forest.
    """

    HOLDS = "which training rows count; their gradients and hessians, or labels, encrypted"
    READABLE_BY = "rows: the receiving Host; the numbers: only the Guest (its key)"
    tree: int
    rows: bytes
    pairs: tuple[bytes, ...]


class MoreGradients(Message, readable_by=GUEST_KEY, max_bytes=LISTS, lane=Lane.TRAINING):
    """The next piece of the pairs that the last `Gradients` of this conversation began."""

    HOLDS = "more gradients and hessians, or labels, encrypted"
    pairs: tuple[bytes, ...]


class AskBinSums(Message, readable_by=HOST, max_bytes=PEOPLE, lane=Lane.TRAINING):
    """Guest → Host: request sums of nodes: which records are in them, by which features, of which batches.

    `parents` are the nodes above, -1 of a root.
    """

    HOLDS = "which training rows are in which node; by which of the Host's features"
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: tuple[bytes, ...]
    features: tuple[bytes, ...]
    batches: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]


class AskNodeSums(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host, RLWE: request sums of one node, whose rows come next in blocks of `block` rows of `numbers` numbers each."""

    HOLDS = "which training rows are in which node; by which of the Host's features"
    tree: int
    node: int
    rows: bytes
    features: bytes
    block: int
    numbers: int
    parent: int = ROOT


class NodePairs(Message, readable_by=GUEST_KEY, max_bytes=PEOPLE, lane=Lane.TRAINING):
    """Guest → Host, RLWE: the next piece of the rows of the node that the last `AskNodeSums` of this conversation named."""

    HOLDS = "gradients and hessians, or labels, of rows of one node, encrypted"
    pairs: bytes


class BinSums(Message, readable_by=GUEST_KEY, max_bytes=NUMBERS):
    """Host → Guest: per node and batch, and within by feature and bin, the encrypted sum of pairs."""

    HOLDS = "sums of gradients and hessians, or of labels, by bin, encrypted"
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    sums: tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True)
class ChosenSplit:
    """A split of a node, by one of a party's features."""

    tree: int
    node: int
    feature: str
    left_bins: tuple[int, ...]
    default_left: bool


class TakeSplit(ChosenSplit, Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host: split this node by one of your features; the Host keeps the threshold."""

    HOLDS = "node, the Host's own feature, which of its bins go left"
    rows: bytes
    parent: int = ROOT


class SplitRows(Message, readable_by=GUEST, max_bytes=LISTS):
    """Host → Guest: which of the node's joint records go left (a disclosure inherent in SecureBoost, in training only)."""

    HOLDS = "which joint records (training, validation, test) go left at a split of the Host"
    tree: int
    node: int
    left: bytes


class StartRanks(NoiseTerms, Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host, OpBoost: desensitise your features in this way and send their ranks (backend/protocols/training/opboost)."""

    HOLDS = "how values are to be desensitised; which of its features are left out"
    _: KW_ONLY
    exclude: tuple[str, ...]


class Ranks(Message, readable_by=GUEST, max_bytes=WHOLE):
    """Host → Guest, OpBoost: per column the rank of every joint record's desensitised value; the number of ranks marks a missing one."""

    HOLDS = "ranks of the joint records' desensitised values; which values are missing"
    features: tuple[str, ...]
    counts: tuple[int, ...]
    ranks: tuple[bytes, ...]


class TakeRankSplits(Message, readable_by=HOST, max_bytes=LISTS, lane=Lane.TRAINING):
    """Guest → Host, OpBoost: split these nodes by your columns below these ranks; the Host keeps thresholds on its own scale."""

    HOLDS = "tree, node, the Host's own column, below which rank goes left"
    trees: tuple[int, ...]
    nodes: tuple[int, ...]
    columns: tuple[int, ...]
    cuts: tuple[int, ...]
    default_left: tuple[bool, ...]


class ReportWrongAnswer(Message, readable_by=HOST, lane=Lane.TRAINING):
    """Guest → Host: your answer contradicts what the Guest holds, so the training has ended; the Host logs it for its operator."""

    HOLDS = "which check the Host's answer failed, about which of its features"
    why: RemarkOnWire


# Its layout is four plain numbers: they are a layout only once the Host has checked them.
class KeepModel(Message, readable_by=HOST, max_bytes=PEOPLE, lane=Lane.TRAINING):
    """Guest → Host: the finished model's name and shape, without weights, gains or other parties' features.

    `score_bits`, `slots`, `slot_bits` and `scale` are the layout of released sums (:class:`backend.trees.ensemble.Layout`); an auditor
    compares `guest_hash`, of the Guest's partial model, with the weights that were sent. With `most_named` the half is kept sealed until
    no larger share of scores than that was found to fit one path only; -1 = nobody can measure it, and it is open.
    """

    HOLDS = (
        "the model's name and shape: which party owns which split; layout of scores; hash of the Guest's partial model; "
        "which share of scores may fit one path before it is opened"
    )
    model_id: str
    guest: str
    hosts: tuple[str, ...]
    skeletons: tuple[tuple[tuple[int, str, int, int], ...], ...]
    score_bits: int
    slots: int
    slot_bits: int
    scale: int
    guest_hash: str
    most_named: float = -1.0


class ModelKept(Message, readable_by=GUEST):
    """Host → Guest: the Host has stored its partial model; its content hash."""

    HOLDS = "hash of the Host's partial model"
    model_id: str
    content_hash: str
