"""Whom reasons compare a person with: the training records that reach each split, all of them or those that would only just be approved.

The two groups are those of the official commentary to 12 CFR 1002.9(b)(2): all applicants, and applicants whose score was at or slightly
above the minimum passing score. Counts by leaf and band of score are the Guest's, which knows from training which records are at
each node; of a Host's splits it hands out shares alone. Knows no threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from backend.errors import ParameterError

if TYPE_CHECKING:
    from backend.trees.ensemble import GuestModel, GuestTree, NodeKey

Against = Literal["covers", "all", "approved"]
MAX_BANDS = 20
BAND_RECORDS = 200  # in a band at least, so that few records make few bands
MIN_RECORDS = 50  # of a band at a Host's split; of fewer it is told no share, as of groups of fewer people no mean
STEPS = 16  # a Host is told such a share in sixteenths: one record of 50 moves it by less than half of one


@dataclass(frozen=True)
class ScoreBands:
    """Training records by leaf and score.

    Attributes
    ----------
    uppers : tuple of int
        ``(bands,)``, rising: a band's scores are below its upper end and not below the one before; units of 2**-score_bits.
    counts : tuple of tuple of tuple of int
        Per tree and leaf, left to right: ``(bands,)`` records.
    """

    uppers: tuple[int, ...]
    counts: tuple[tuple[tuple[int, ...], ...], ...]

    def records(self, band: int) -> int:
        """Records in a band."""
        if self.counts:
            return sum(leaf[band] for leaf in self.counts[0])
        return 0

    @property
    def total(self) -> int:
        """Training records."""
        return sum(self.records(k) for k in range(len(self.uppers)))


def score_bands(
    trees: Sequence[GuestTree], leaves: Sequence[NDArray[np.integer]], units: NDArray[np.int64]
) -> ScoreBands:
    """Count training records.

    Parameters
    ----------
    leaves : sequence of ndarray of int
        Per tree, ``(n,)``: number of the leaf that each training record has reached.
    units : ndarray of int64
        ``(n,)``: the records' scores as released. Equal scores share a band.
    """
    n_bands = min(MAX_BANDS, max(1, len(units) // BAND_RECORDS))
    ranked = np.sort(units)
    starts = {int(ranked[len(ranked) * k // n_bands]) for k in range(1, n_bands)} - {int(ranked[0])}
    uppers = (*sorted(starts), int(ranked[-1]) + 1)
    band = np.searchsorted(uppers, units, side="right")
    counts = []
    for tree, leaf in zip(trees, leaves, strict=True):
        table = np.zeros((len(tree.nodes), len(uppers)), dtype=np.int64)
        np.add.at(table, (leaf, band), 1)
        counts.append(tuple(tuple(table[i].tolist()) for i in tree.leaves))
    return ScoreBands(uppers, tuple(counts))


def coarser_bands(bands: ScoreBands, bits: int) -> ScoreBands | None:
    """Return the bands of scores that are `bits` binary digits coarser; None if two of them end at one score.

    A record less than a step away from the end of its band may belong to the next one from then on.
    """
    uppers = tuple(math.ceil(upper / (1 << bits)) for upper in bands.uppers)
    if len(set(uppers)) < len(uppers):
        return None
    return ScoreBands(uppers, bands.counts)


@dataclass(frozen=True)
class Background:
    """A group to compare with.

    Attributes
    ----------
    against : {"covers", "all", "approved"}
        Training records weighted as their trees weigh them; all of them alike; those of one band.
    band : int
        The band; -1 unless `against` is "approved".
    """

    against: Against = "covers"
    band: int = -1

    @classmethod
    def of(cls, model: GuestModel, against: str = "", cutoff: float = 0.5) -> Background:
        """The group that a method names; without one all records where they are counted, else covers.

        Parameters
        ----------
        cutoff : float
            Probability at or above which is declined. "approved" is the nearest whole band below it.

        Raises
        ------
        ParameterError
            There is no such method, or the model does not know the group.
        """
        against = against or methods(model)[0]
        if against not in get_args(Against):
            raise ParameterError("unknown_background", background=against, choices=get_args(Against))
        if against == "covers":
            return COVERS
        if model.bands is None:
            raise ParameterError("no_leaf_counts")
        if against == "all":
            return ALL
        return cls("approved", _approved(model, model.bands, cutoff))

    def records(self, model: GuestModel) -> int:
        """Training records in the group; 0 if their number is not known."""
        if model.bands is None or self.against == "covers":
            return 0
        if self.against == "all":
            return model.bands.total
        return model.bands.records(self.band)


COVERS = Background("covers")
ALL = Background("all")


def _approved(model: GuestModel, bands: ScoreBands, cutoff: float) -> int:
    """The nearest band all of whose records score below the cut-off."""
    if "approved" not in methods(model):
        raise ParameterError("none_just_approved")
    at = model.outputs.margin_at(cutoff) * (1 << model.score_bits)
    band = sum(upper - 1 < at for upper in bands.uppers) - 1
    if band < 0:
        raise ParameterError("few_just_approved", records=bands.records(0), total=bands.total, cutoff=cutoff)
    return band


def methods(model: GuestModel) -> tuple[Against, ...]:
    """What a model's reasons can be compared against, the usual one first."""
    if model.bands is None:
        return ("covers",)
    decides = model.outputs.task == "binary" and len(model.bands.uppers) > 1
    if decides:
        return ("all", "approved", "covers")
    return ("all", "covers")


def backgrounds(model: GuestModel) -> Iterator[Background]:
    """Every group that the model knows."""
    yield COVERS
    if model.bands is not None:
        yield ALL
        if "approved" in methods(model):
            yield from (Background("approved", k) for k in range(len(model.bands.uppers)))


def left_shares(model: GuestModel, background: Background = COVERS) -> dict[NodeKey, float]:
    """Return the share of a group that goes left at each split of all parties; 1/2 if no record of the group reaches it.

    For one band, a Host's split has the share in steps of 1/:data:`STEPS`, or the share of all records if fewer than
    :data:`MIN_RECORDS` of the band reach it. A Guest's split has the share of all records if no record of the band reaches it.
    """
    use_covers = background.against == "covers" or model.bands is None
    shares: dict[NodeKey, float] = {}
    for t, tree in enumerate(model.trees):
        if use_covers or model.bands is None:
            for i, split in tree.splits.items():
                left_cover = tree.nodes[split.left].cover
                if split.cover:
                    shares[t, i] = left_cover / split.cover
                else:
                    shares[t, i] = 0.5
            continue
        reached = _reached(tree, model.bands.counts[t])
        for i, split in tree.splits.items():
            is_guest = split.owner == model.guest
            shares[t, i] = _share(reached[split.left], reached[i], background.band, is_guest)
    return shares


def leaf_shares(model: GuestModel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of records that reach each leaf by the covers above it, ``(n_leaves,)`` each, trees in order, leaves left to right.

    Returns
    -------
    of_hosts : ndarray of float64
        Of the records that the Guest's splits lead there: each Host's split goes either way as often as in training.
    of_all : ndarray of float64
        Of all records.
    """
    lefts = left_shares(model)
    shares = []
    for t, tree in enumerate(model.trees):
        stack = [(0, 1.0, 1.0)]
        while stack:
            i, of_hosts, of_all = stack.pop()
            split = tree.splits.get(i)
            if split is None:
                shares.append((of_hosts, of_all))
                continue
            for child, share in ((split.right, 1.0 - lefts[t, i]), (split.left, lefts[t, i])):
                stack.append((child, of_hosts if (t, i) in model.rules else of_hosts * share, of_all * share))
    table = np.array(shares).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _reached(tree: GuestTree, counts: Sequence[Sequence[int]]) -> dict[int, NDArray[np.int64]]:
    """Return the number of records at every node, ``(bands,)``."""
    records = {}
    for leaf, count in zip(tree.leaves, counts, strict=True):
        records[leaf] = np.array(count, dtype=np.int64)

    def add(i: int) -> NDArray[np.int64]:
        if i not in records:
            records[i] = add(tree.splits[i].left) + add(tree.splits[i].right)
        return records[i]

    add(0)
    return records


def _share(left_records: NDArray[np.int64], all_records: NDArray[np.int64], band: int, is_guest: bool) -> float:
    """Return the share of a node's records that go left: of the band, or of all records if the band has too few."""
    min_records = 1 if is_guest else MIN_RECORDS
    if band < 0 or all_records[band] < min_records:
        total = all_records.sum()
        return float(left_records.sum() / total) if total else 0.5
    share = float(left_records[band] / all_records[band])
    if is_guest:
        return share
    return round(share * STEPS) / STEPS


def shares_of(model: GuestModel, shares: Mapping[NodeKey, float], party: str) -> tuple[float, ...]:
    """Return the shares at a party's splits, in the order of tree and node."""
    of_party = []
    for (t, i), share in sorted(shares.items()):
        if model.trees[t].splits[i].owner == party:
            of_party.append(share)
    return tuple(of_party)
