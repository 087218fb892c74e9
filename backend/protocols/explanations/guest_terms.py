"""The Guest's part of SHAP values: its own columns, weights and covers as numbers to encrypt. Must not know a Host's 0/1, nor a cipher.

In the notation of :mod:`backend.trees.shap`, at a point x with weight ω: per leaf, ω w_j ∏ over the Guest's features for Host features,
and the same without f, times (1_f - c_f), for each Guest feature f. Leaves with the same Host conditions share an entry; leaves without
any are a constant per Guest feature. The Hosts' factors are all that is missing.

*Drops* are worked out in the same way: by how much the score falls where all features r of one reason and one holder are moved to its
medians, Σ_j w_j (1_r - 1'_r) ∏ 1_i over the other features of the path, 1'_r being r's answer there. That is one point, x = 1, and weights
are rounded as scores are, so that nothing is lost: a drop is the difference of two scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from backend.crypto.fixedpoint import quantise
from backend.data.medians import moved
from backend.errors import ParameterError
from backend.protocols.explanations.shape import COEFFICIENT_BITS, TERM_BITS, ReasonShape, units
from backend.trees.backgrounds import COVERS, Background, left_shares, shares_of
from backend.trees.ensemble import Columns, GuestModel, Leaf
from backend.trees.folding import fold_structure
from backend.trees.shap import Factors, factors_of, leaf_weights, members, merged_factors, paths, quadrature


@dataclass(frozen=True)
class Terms:
    """What is encrypted of `n` people, as integers: multiples of 2^-TERM_BITS of the margin's unit.

    Attributes
    ----------
    base : ndarray of int64
        ``(n, entries · points)``: for the Hosts' features.
    own : ndarray of int64
        ``(n, entries · points, features)``: for the Guest's.
    constant : ndarray of int64
        ``(n, features)``: what leaves without a Host condition give the Guest's.
    """

    base: NDArray[np.int64]
    own: NDArray[np.int64]
    constant: NDArray[np.int64]


class CompiledTerms:
    """Built once a model.

    Parameters
    ----------
    model : GuestModel
        Of one output that is a sum of leaf weights.
    background : Background
        Whose shares at the splits stand for values that are not known.

    Attributes
    ----------
    chain : tuple of str
        Hosts that own a split, in order.
    items : tuple of (str, str)
        Party and name of every feature in use, in the order in which values are ranked.

    Raises
    ------
    ParameterError
        The model has several outputs, takes a median, or no Host owns a split.
    """

    def __init__(self, model: GuestModel, background: Background = COVERS) -> None:
        if model.outputs.count > 1 or model.outputs.aggregation != "sum":
            raise ParameterError("reasons_need_a_sum")
        folding = fold_structure(model.skeletons, model.guest, model.hosts)
        if not folding.steps:
            raise ParameterError("no_host_split_for_reasons")
        self.model = model
        self.background = background
        self._entries = folding.n_entries
        self._points, self._point_weights = quadrature(model.skeletons)
        self.chain = tuple(step.host for step in folding.steps)
        features = {(t, i): s.feature for t, tree in enumerate(model.trees) for i, s in tree.splits.items()}
        self._shares = left_shares(model, background)
        self._owner = {(t, i): s.owner for t, tree in enumerate(model.trees) for i, s in tree.splits.items()}
        features_of_party = {
            party: sorted({f for k, f in features.items() if self._owner[k] == party})
            for party in (model.guest, *self.chain)
        }
        self.items = tuple((party, name) for party, names in features_of_party.items() for name in names)
        self._counts = tuple(len(names) for names in features_of_party.values())
        guest_splits = {key: name for key, name in features.items() if key in model.rules}
        rows = [factors_of(path, guest_splits, self._shares) for path in paths(model.trees)]
        self.factors = Factors(model.rules, rows)
        weights = leaf_weights(model)
        entry = []
        for leaves in folding.entry_of_leaf:
            for e in leaves:
                entry.append(self._entries if e is None else e)
        self._at = np.array(entry), features_of_party[model.guest]
        self._by_entry, self._by_feature = self.matrices(weights, self.factors)
        self._weight_sum = float(np.abs(weights).sum())

    def drops(self, groups: tuple[int, ...] = ()) -> CompiledDrops:
        """Return the drops where features are merged into reasons, a number an item; each is one if there are none."""
        return CompiledDrops(self, groups or tuple(range(len(self.items))))

    def matrices(
        self, weights: NDArray[np.float64], factors: Factors, groups: tuple[int, ...] = ()
    ) -> tuple[csr_array, csr_array]:
        """Return the matrices that sum leaves by entry, and factors by entry and own feature, times the leaves' weights.

        Leaves without an entry come last. A factor is named by its feature, or with `groups` by the reasons of that feature; it counts for
        each of them.
        """
        entry, features = self._at
        row = factors.row
        if groups:
            names = [str(group) for group in groups]
        else:
            names = features
        of, item = members(factors, names)
        size = (self._entries + 1) * len(features), len(row)
        return (
            csr_array((weights, (entry, np.arange(len(entry)))), shape=(self._entries + 1, len(entry))),
            csr_array((weights[row[of]], (entry[row[of]] * len(features) + item, of)), shape=size),
        )

    @property
    def entries(self) -> int:
        """Sets of Host conditions."""
        return self._entries

    @property
    def own(self) -> int:
        """The Guest's features in use."""
        return self._counts[0]

    @property
    def key_rows(self) -> int:
        """As many of one person's numbers a feature as RLWE keys are made for."""
        return self.rows

    @property
    def rows(self) -> int:
        """Numbers of one person that become one feature's value: entries times points, and a constant."""
        return self._entries * len(self._points) + 1

    def shape(self, names: int, groups: tuple[int, ...] = ()) -> ReasonShape:
        """Sizes of a request."""
        bits = TERM_BITS + COEFFICIENT_BITS * len(self.chain)
        # weights of scores are rounded: a drop may be that much larger
        rounding = len(self.model.trees) * 2.0**-self.model.score_bits
        largest = ceil((self._span() + max(self.error_bound, rounding)) * (1 << bits))
        return ReasonShape(self._counts, names, largest.bit_length(), groups)

    def _span(self) -> float:
        """No SHAP value is larger: per tree, its largest leaf weight less its smallest."""
        leaves = []
        for tree in self.model.trees:
            leaves.append([n.weight for n in tree.nodes if isinstance(n, Leaf)])
        return float(sum(max(w) - min(w) for w in leaves))

    @property
    def error_bound(self) -> float:
        """How far a value may be off the exact one, in the margin's unit: every term and every Host's factor is rounded once.

        A product of a term u and factors of at most 1 is off by at most 2^-(TERM_BITS+1) + |u| · Hosts · 2^-(COEFFICIENT_BITS+1).
        There are entries · points of them and a constant, and the |u| add up to at most Σ |w_j|.
        """
        return self.rows * 2.0 ** -(TERM_BITS + 1) + self._weight_sum * len(self.chain) * 2.0 ** -(COEFFICIENT_BITS + 1)

    def shares_of(self, host: str) -> tuple[float, ...]:
        """Shares that go left at a Host's splits, by tree and node: all a Host learns beside the shape of the trees."""
        return shares_of(self.model, self._shares, host)

    def encode(self, columns: Columns, n: int = 1) -> Terms:
        """Return the numbers of `n` people; columns are ``(n,)`` each."""
        size = self._entries + 1, self._counts[0]
        base = np.empty((n, self._entries, len(self._points)))
        by_feature = np.empty((n, size[0], len(self._points), size[1]))
        points = list(enumerate(zip(self._points.tolist(), self._point_weights.tolist(), strict=True)))
        for rows, holds in self.factors.blocks(columns, n):
            for k, (x, weight) in points:
                by_entry = self._by_entry @ self.factors.whole(holds, x)
                base[rows, :, k] = weight * by_entry[:-1].T
                parts = self._by_feature @ self.factors.parts(holds, x)
                by_feature[rows, :, k] = weight * parts.T.reshape(holds.shape[1], *size)
        return Terms(
            units(base.reshape(n, self.rows - 1), TERM_BITS),
            units(by_feature[:, :-1].reshape(n, self.rows - 1, size[1]), TERM_BITS),
            units(by_feature[:, -1].sum(axis=1), TERM_BITS),
        )


class CompiledDrops:
    """By how much the score falls where features of one reason are moved to the medians of their holder; methods as :class:`CompiledTerms`.

    Parameters
    ----------
    groups : tuple of int
        ``(items,)``: the reason that each item belongs to.
    """

    def __init__(self, terms: CompiledTerms, groups: tuple[int, ...]) -> None:
        self._terms = terms
        self.chain = terms.chain
        model = terms.model
        guest_groups = groups[: terms.own]
        names = [feature for _, feature in terms.items[: terms.own]]
        self._factors = merged_factors(model.rules, paths(model.trees), names, guest_groups)
        rounded = quantise(leaf_weights(model), model.score_bits) / float(1 << model.score_bits)
        self._by_entry, self._by_feature = terms.matrices(rounded, self._factors, guest_groups)

    @property
    def rows(self) -> int:
        """Numbers of one person that become one feature's drop: entries at one point, and a constant."""
        return self._terms.entries + 1

    @property
    def key_rows(self) -> int:
        """Under the keys of contributions, which hold more."""
        return self._terms.rows

    def encode(self, columns: Columns, n: int = 1) -> Terms:
        """Return the numbers of `n` people; columns are ``(n,)`` each."""
        terms = self._terms
        size = (self._terms.entries + 1, self._terms.own)
        base = np.empty((n, terms.entries))
        changes = np.empty((n, *size))
        moved_there = self._factors.blocks(moved(columns, terms.model.medians), n)
        for (rows, holds_now), (_, holds_moved) in zip(self._factors.blocks(columns, n), moved_there, strict=True):
            base[rows] = (self._by_entry @ self._factors.whole(holds_now, 1.0))[:-1].T
            changes[rows] = (self._by_feature @ self._factors.changes(holds_now, holds_moved)).T.reshape(
                holds_now.shape[1], *size
            )
        return Terms(units(base, TERM_BITS), units(changes[:, :-1], TERM_BITS), units(changes[:, -1], TERM_BITS))


Compiled = CompiledTerms | CompiledDrops
