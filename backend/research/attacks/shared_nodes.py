"""T4: a Host infers labels from which records share a node in training (ID2Graph, arXiv 2307.10318). Plays an honest-but-curious Host.

Records of one label come together in a tree's nodes, and a Host is told which records are in them. It draws a graph of who shares a node
how often, finds its two communities (the second eigenvector of the normalised graph) and clusters the records by them and by its own
columns. What it could do without the training is the same clustering on its own columns alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.data.federation import Federation
from backend.data.table import PartyTable
from backend.jobs import work
from backend.protocols.training.messages import AskBinSums, AskNodeSums, SplitRows, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import unpack_rows
from backend.protocols.transport.message import Message
from backend.protocols.transport.network import Network
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import HOST, PARAMETERS, synthetic_people, train
from backend.store.party_store import memory_store
from backend.trees.metrics import auc

Floats = NDArray[np.float64]
PEOPLE = 8000  # more than elsewhere, for what they look like by themselves already tells something
BOUND = 0.02  # bits that a set may tell, with the defence
STARTS = 10  # of a clustering


def run(seed: int, people: int = PEOPLE) -> AttackOutcome:
    """Tell a positive from a negative label, pair by pair of training records; the Host is told which cluster is which."""
    federation, tables, labels = synthetic_people(people)
    watched: dict[str, Watched] = {}
    figures: dict[str, Figures] = {}

    def infer(name: str, view: Watched) -> tuple[int, int]:
        watched[name] = view
        guess = clustered(view, seed)
        figures[name] = figures_of(guess, view.labels)
        return pairs_right(guess, view.labels, seed)

    def train_and_infer(name: str, bound: float) -> tuple[int, int]:
        return infer(name, watch(federation, tables, labels, replace(PARAMETERS, label_bound=bound)))

    off = count(train_and_infer, "off", 0.0)
    on = count(train_and_infer, "on", BOUND)
    right, trials = infer("own", replace(watched["off"], cells=()))
    positive = float(watched["off"].labels.mean())
    return AttackOutcome(
        off,
        on,
        chance=max(0.5, right / trials),
        setting={"people": len(watched["off"].labels), "trees": PARAMETERS.trees},
        rates={"prior": max(positive, 1 - positive)}
        | {f"accuracy_{name}": figures_of_run.accuracy for name, figures_of_run in figures.items()},
        numbers={f"nmi_{name}": figures_of_run.nmi for name, figures_of_run in figures.items()}
        | {f"model_auc_{name}": watched[name].model_auc for name in ("off", "on")}
        | {f"bits_{name}": watched[name].label_bits for name in ("off", "on")},
        optional=True,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """What a Host has of the training records, and what it is after.

    Attributes
    ----------
    host_columns : ndarray of float64
        ``(n, columns)``: its own columns, standardised.
    cells : sequence of ndarray of int
        Per tree, ``(n,)``: records that were together in every node it was told of have the same number.
    labels : ndarray of float64
        ``(n,)``: 0 or 1; the Guest's.
    model_auc : float
        Of the model on its test records.
    label_bits : float
        Most that one set tells, as the model's record states it.
    """

    host_columns: Floats
    cells: Sequence[NDArray[np.intp]]
    labels: Floats
    model_auc: float
    label_bits: float


@dataclass(frozen=True)
class Figures:
    """How well a guess finds labels: AUC and accuracy, whichever cluster is taken for positive; normalised mutual information."""

    auc: float
    accuracy: float
    nmi: float


class HostRecorder(Network):
    """A network that records what reaches and leaves the Host."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []

    def send(self, sender: str, receiver: str, message: Message) -> int:
        """Deliver, and record."""
        if HOST in (sender, receiver):
            self.messages.append(message)
        return super().send(sender, receiver, message)


def watch(
    federation: Federation, tables: Mapping[str, PartyTable], labels: Floats, parameters: SecureBoostParameters
) -> Watched:
    """Train on plaintext, and record the Host's view."""
    view = HostRecorder()
    trained = train(federation, tables, labels, parameters, view, memory_store())
    ids = list(trained.part_of)
    training = np.array([part == "training" for part in trained.part_of.values()])
    members = []
    for name, in_training in zip(ids, training.tolist(), strict=True):
        if in_training:
            members.append(name)
    of_guest = tables[federation.guest.name].row_of
    return Watched(
        _standardised(tables[HOST].take(np.array([tables[HOST].row_of[i] for i in members]))),
        cells_of(view.messages, training),
        labels[[of_guest[i] for i in members]],
        trained.metrics.auc,
        trained.label_bits or 0.0,
    )


def cells_of(messages: Sequence[Message], training: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Return by tree which training records no set in these messages separates; `training` marks them among the joint records."""
    n = len(training)
    sets = defaultdict[int, list[NDArray[np.bool_]]](list)
    inside: dict[tuple[int, int], NDArray[np.bool_]] = {}
    for message in messages:
        if isinstance(message, AskBinSums):
            for tree, rows in zip(message.trees, message.rows, strict=True):
                sets[tree].append(unpack_rows(rows, n))
        elif isinstance(message, AskNodeSums):
            sets[message.tree].append(unpack_rows(message.rows, n))
        elif isinstance(message, TakeSplit):
            inside[message.tree, message.node] = unpack_rows(message.rows, n)
            sets[message.tree].append(inside[message.tree, message.node])
        elif isinstance(message, SplitRows):
            rows_of = np.flatnonzero(inside[message.tree, message.node])
            goes_left = np.zeros(n, dtype=bool)
            goes_left[rows_of[unpack_rows(message.left, len(rows_of))]] = True
            sets[message.tree].append(goes_left)
    return [
        np.unique(np.array(sets_of_tree)[:, training], axis=1, return_inverse=True)[1].ravel()
        for _, sets_of_tree in sorted(sets.items())
    ]


def clustered(view: Watched, seed: int) -> Floats:
    """Return how much nearer each record is to one of two clusters, ``(n,)``, by the Host's columns and, if given, cells."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import

    columns = view.host_columns / np.sqrt(view.host_columns.shape[1])
    coordinates = np.column_stack([columns, *_communities(view.cells)])
    work.check()
    distances = KMeans(2, n_init=STARTS, random_state=seed).fit(coordinates).transform(coordinates)
    work.check()
    nearer: Floats = distances[:, 0] - distances[:, 1]
    return nearer


def figures_of(guess: Floats, labels: Floats) -> Figures:
    """What :func:`clustered` is worth."""
    from sklearn.metrics import normalized_mutual_info_score  # noqa: PLC0415 - slow to import

    auc_of_guess = float(auc(labels, guess, np.ones((1, len(labels))))[0])
    right = float(((guess > 0) == labels).mean())
    mutual = float(normalized_mutual_info_score(labels, guess > 0))
    return Figures(max(auc_of_guess, 1 - auc_of_guess), max(right, 1 - right), mutual)


def pairs_right(guess: Floats, labels: Floats, seed: int) -> tuple[int, int]:
    """Of pairs of a positive and a negative record, each record in one: how many the guess tells apart, whichever cluster is positive."""
    draw = np.random.default_rng(seed)
    positive, negative = (draw.permutation(np.flatnonzero(labels == label)) for label in (1, 0))
    trials = min(len(positive), len(negative))
    apart = guess[positive[:trials]] - guess[negative[:trials]]
    right = int(np.count_nonzero(np.where(apart == 0, draw.random(trials) < 0.5, apart > 0)))
    return max(right, trials - right), trials


def _communities(cells: Sequence[NDArray[np.intp]]) -> list[Floats]:
    """Return the second eigenvector, with variance 1, of the graph that joins two records of a cell of m by 1/m; empty without a graph."""
    divided = [tree for tree in cells if tree.max()]
    if not divided:
        return []
    incidence = np.column_stack(
        [(tree[:, None] == np.arange(tree.max() + 1)) / np.sqrt(np.bincount(tree)) for tree in divided]
    )
    work.check()
    _, vectors = np.linalg.eigh(incidence.T @ incidence)  # ascending; the last one is the same for everybody
    second = incidence @ vectors[:, -2]
    return [second / second.std()]


def _standardised(table: PartyTable) -> Floats:
    columns: list[Floats] = []
    for column in table.columns.values():
        if column.dtype == object:
            columns += [(column == value).astype(np.float64) for value in sorted({v for v in column if v is not None})]
        else:
            numbers: Floats = column.astype(np.float64)
            filled = np.where(np.isnan(numbers), np.nanmedian(numbers), numbers)
            columns.append((filled - filled.mean()) / (filled.std() or 1.0))
    return np.column_stack(columns)
