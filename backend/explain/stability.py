"""How stable importances are, and which features interact, by a model's structure. From the Guest's partial model alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from backend.errors import ParameterError
from backend.explain.importance import Measure, by_tree
from backend.fairness.intervals import TAILS
from backend.trees.ensemble import GuestModel, GuestTree, Split

RESAMPLES = 1000
SEED = 7
MIN_TREES = 10  # that are resampled; fewer give no useful interval

Floats = NDArray[np.float64]
MEASURES: tuple[Measure, ...] = ("gain", "splits", "cover")


@dataclass(frozen=True)
class SteadyImportance:
    """A feature's or a party's share of gain, splits or cover, and how it varies when the trees are drawn with replacement.

    The trees of a forest are grown alike on random parts of the data, so that this is a bootstrap: about 95 % of other forests of as
    many trees, grown in the same way on these records, would lie inside. Boosted trees follow one another and are no sample; there a
    wide interval means that few trees carry the share. Neither covers what other records would have given.

    Attributes
    ----------
    feature : str
        Empty if the row is all of a party's features together.
    share, low, high : float
        0 … 1; `low` and `high` are None with fewer than :data:`MIN_TREES` trees.
    rank, first, last : int
        Rank by share, from 1, and the ranks between which 95 % of draws lie (None likewise).
    """

    party: str
    feature: str
    share: float
    low: float | None
    high: float | None
    rank: int
    first: int | None
    last: int | None


@dataclass(frozen=True)
class Interaction:
    """Two features that meet on paths: one splits somewhere below the other.

    There a model can let the effect of one depend on the other; the leaves decide whether it does. No threshold is needed.

    Attributes
    ----------
    features : ((party, feature), (party, feature))
        In alphabetical order.
    gain, share : float
        Of all splits that have the other feature above them, and of the model's whole gain. Shares of all pairs may add up to
        more than 1, because a split has several features above it.
    """

    features: tuple[tuple[str, str], tuple[str, str]]
    gain: float
    share: float
    splits: int
    trees: int

    @property
    def across(self) -> bool:
        """Return whether two parties hold them."""
        return self.features[0][0] != self.features[1][0]


def steady_importance(
    model: GuestModel, measure: Measure = "gain", *, by_party: bool = False
) -> tuple[SteadyImportance, ...]:
    """Return every feature offered to the training, or every party, largest share first.

    Raises
    ------
    ParameterError
        The measure is unknown.
    """
    if measure not in MEASURES:
        raise ParameterError("unknown_importance", measure=measure, known=tuple(MEASURES))
    names = [(party, feature.name) for party, feature in model.dictionary]
    totals = by_tree(model, measure)
    if by_party:
        parties = (model.guest, *model.hosts)
        columns = []
        for party in parties:
            of_party = [owner == party for owner, _ in names]
            columns.append(totals[:, of_party].sum(axis=1))
        totals = np.stack(columns, axis=1)
        names = [(party, "") for party in parties]
    return _resampled(totals, names)


def _resampled(totals: Floats, names: Sequence[tuple[str, str]]) -> tuple[SteadyImportance, ...]:
    """Shares of ``(trees, names)`` numbers with their intervals."""
    trees = len(totals)
    shares = totals.sum(axis=0) / (totals.sum() or 1.0)
    ranked: list[int] = np.argsort(-shares, kind="stable").tolist()
    rows = [
        SteadyImportance(names[i][0], names[i][1], float(shares[i]), None, None, rank, None, None)
        for rank, i in enumerate(ranked, start=1)
    ]
    if trees < MIN_TREES:
        return tuple(rows)
    import pandas as pd  # noqa: PLC0415 - slow to import, and few runs need it

    times = np.random.default_rng(SEED).multinomial(trees, np.full(trees, 1 / trees), size=RESAMPLES)
    sampled_shares = times @ totals
    sampled_shares = sampled_shares / np.maximum(sampled_shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    low, high = np.quantile(sampled_shares, TAILS, axis=0)
    ranks = pd.DataFrame(-sampled_shares).rank(axis=1, method="min").to_numpy()
    first, last = np.quantile(ranks, TAILS, axis=0, method="nearest")
    return tuple(
        replace(
            row,
            low=min(float(low[i]), row.share),
            high=max(float(high[i]), row.share),
            first=int(first[i]),
            last=int(last[i]),
        )
        for i, row in zip(ranked, rows, strict=True)
    )


def agreement(model: GuestModel) -> float:
    """Spearman's rank correlation of the features' gains in even and in odd trees, -1 … 1; NaN if fewer than three split.

    Near 1: any part of the trees gives the same ranking. Boosting lowers it by itself, since each tree corrects the ones before.
    """
    gains = by_tree(model, "gain")
    has_gain = gains.sum(axis=0) > 0
    halves = gains[0::2, has_gain].sum(axis=0), gains[1::2, has_gain].sum(axis=0)
    if has_gain.sum() < 3 or any(len(set(half)) < 2 for half in halves):
        return float("nan")
    import pandas as pd  # noqa: PLC0415 - as above

    return float(np.corrcoef(pd.DataFrame(halves).rank(axis=1))[0, 1])


def interactions(model: GuestModel) -> tuple[Interaction, ...]:
    """Pairs of features that meet on paths, the largest gain first."""
    met = []
    total_gain = 0.0
    for t, tree in enumerate(model.trees):
        met += [(pair, t, gain) for pair, gain in _meetings(tree)]
        for split in tree.splits.values():
            total_gain += split.gain
    met.sort()
    total_gain = total_gain or 1.0
    pairs = []
    for pair, group in groupby(met, key=lambda m: m[0]):
        rows = list(group)
        gain = sum(g for _, _, g in rows)
        pairs.append(Interaction(pair, gain, gain / total_gain, len(rows), len({t for _, t, _ in rows})))
    return tuple(sorted(pairs, key=lambda i: (-i.gain, i.features)))


Pair = tuple[tuple[str, str], tuple[str, str]]


def _meetings(tree: GuestTree) -> Iterator[tuple[Pair, float]]:
    """Each split's gain, once for every other feature above it."""
    stack: list[tuple[int, Sequence[tuple[str, str]]]] = [(0, ())]
    while stack:
        i, above = stack.pop()
        node = tree.nodes[i]
        if isinstance(node, Split):
            split_feature = node.owner, node.feature
            for other_feature in {feature for feature in above if feature != split_feature}:
                yield (min(split_feature, other_feature), max(split_feature, other_feature)), node.gain
            stack += [(node.left, (*above, split_feature)), (node.right, (*above, split_feature))]
