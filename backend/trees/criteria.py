"""Split criteria of forests and single trees, on counts of classes or sums of values. Sums arrive as integers.

Every criterion has a purity f of a node, so that a split's gain is f(left) + f(right) - f(node), in records times impurity:
Gini's f = Σ c_k²/n (FL-DT eq. 12 and 15), information's f = Σ c_k·log₂(c_k/n) in bits (Yao et al. eq. 3, averaged over a node whose
prediction is its own share), the variance's f = (Σy)²/n (Yao et al. eq. 2, appendix A eq. 4). A split is allowed where gain/n, the
fall of the impurity, is more than ε (FL-DT eq. 16, Yao et al. Alg. 3 line 16). The stored gain is not divided by n, so that a
feature's gains add up as everywhere else.

Sample weights replace a record by its weight in n, c_k and y (scikit-learn's ``sample_weight``), but ``min_samples_split`` and
``min_samples_leaf`` count records: one more channel does, if they ask for more than one record a child.

Monotone constraints are scikit-learn's (``monotonic_cst``): a split by a constrained feature is not allowed where its children's shares, or
means, are in the wrong order or leave the bounds that constrained splits above have set; other splits are judged as ever, and leaves below
are clipped to their bounds, which are passed on as XGBoost does.

For two classes and for numbers some cut of the categories ordered by their means is the best of all subsets (Fisher 1958 for
variances; Breiman et al. 1984, theorem 4.5, for every concave impurity). For more classes no such order is known; ours, by the share of
the node's most frequent class, is a heuristic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from backend.trees.ensemble import Leaf
from backend.trees.growth import BestSplit, Bounds, Histogram, parted, search

IntArray = NDArray[np.int64]
Floats = NDArray[np.float64]
Impurity = Literal["gini", "entropy"]
Gain = Callable[[IntArray, IntArray], Floats]
ROUNDING = 1e-12  # a fall of the impurity below this is rounding: shares and scaled values are of order 1


@dataclass(frozen=True)
class Stops:
    """When a node stays a leaf, besides its depth (Yao et al. §3.1, termination criteria S).

    Attributes
    ----------
    min_gain : float
        ε: the impurity must fall by more than this.
    min_samples_split, min_samples_leaf : int
        Records in a node that is split, and in each of its children.
    """

    min_gain: float = 0.0
    min_samples_split: int = 2
    min_samples_leaf: int = 1

    @property
    def count_records(self) -> bool:
        """Whether sums of weights do not tell if a split may be made. Two children with weight have a record each."""
        return self.min_samples_leaf > 1 or self.min_samples_split > 2

    def allowed(self, gain: Floats, records_left: IntArray, n: int, weight: float, unit: float = 1.0) -> Floats:
        """Return `gain` if a split may be made, else -inf.

        Parameters
        ----------
        records_left : ndarray of int64
            The number of records that go left, of ``n``.
        weight : float
            The weight of all records of the node.
        unit : float
            The unit of the impurity.
        """
        enough = np.minimum(records_left, n - records_left) >= self.min_samples_leaf
        falls = gain > weight * max(self.min_gain, ROUNDING * unit)
        return np.where(enough & falls & (n >= self.min_samples_split), gain, -np.inf)


@dataclass(frozen=True)
class ClassCounts:
    """Channels are the number of records of each class; with sample weights their weight, and then maybe the number of all records.

    Attributes
    ----------
    channels : int
    impurity : {"gini", "entropy"}
    binary : bool
        Whether a leaf is the share of class 1 alone; else it holds every class's share.
    trees : int
        Leaves are divided by this, so that the sum over as many trees is their mean.
    unit : float
        What one unit of the classes' sums weighs, in records.
    counted : bool
        Whether the last channel counts records.
    """

    channels: int
    impurity: Impurity
    stops: Stops
    binary: bool
    trees: int = 1
    unit: float = 1.0
    counted: bool = False

    @property
    def classes(self) -> int:
        """Number of classes, whose channels come first."""
        return self.channels - self.counted

    def best_split(self, histogram: Histogram, direction: int, bounds: Bounds) -> BestSplit | None:
        """Split with the purest children; a direction needs two classes."""
        if self.binary:
            frequent = 1
        else:
            frequent = int(np.argmax(histogram.sums[: self.classes, :-1].sum(axis=1)))
        gain = _in_order(self._gain, direction, bounds, self._share)
        best = search(histogram, gain, lambda sums: _mean(sums[frequent], self._total(sums)), self._total)
        if best is None:
            return None
        return parted(best, histogram, direction, bounds, self._share)

    def leaf(self, sums: IntArray, bounds: Bounds) -> Leaf:
        """Shares of the classes; of two, the second's is clipped to the bounds."""
        total = max(1, int(self._total(sums)))
        shares = tuple(float(c) / total / self.trees for c in sums[: self.classes])
        if not self.binary:
            return Leaf(max(shares), self.cover(sums), shares)
        return Leaf(min(max(shares[1], bounds.low / self.trees), bounds.high / self.trees), self.cover(sums))

    def cover(self, sums: IntArray) -> float:
        """Records, or their weight."""
        return float(self._total(sums)) * self.unit

    def _total(self, sums: IntArray) -> IntArray:
        """Of all classes."""
        total: IntArray = sums[: self.classes].sum(axis=0)
        return total

    def _share(self, sums: IntArray) -> Floats:
        """Of class 1."""
        return np.asarray(sums[1] / np.maximum(self._total(sums), 1))

    def _gain(self, left_sums: IntArray, total: IntArray) -> Floats:
        right = total[:, None, None] - left_sums
        gain = self._purity(left_sums) + self._purity(right) - self._purity(total)
        records = (lambda sums: sums[-1]) if self.counted else self._total
        return self.stops.allowed(gain, records(left_sums), int(records(total)), self.cover(total))

    def _purity(self, sums: IntArray) -> Floats:
        counts = sums[: self.classes] * self.unit
        n = counts.sum(axis=0)
        if self.impurity == "entropy":
            from scipy.special import xlogy  # noqa: PLC0415 - scipy is slow to import

            bits: Floats = (xlogy(counts, counts).sum(axis=0) - xlogy(n, n)) / np.log(2.0)
            return bits
        return _over((counts**2).sum(axis=0), n)


@dataclass(frozen=True)
class Variance:
    """Channels are Σ(y - centre)/span in units of `unit`, and the number of records; with sample weights, see the module.

    Attributes
    ----------
    centre, span : float
        In the label's unit; no training label is farther than `span` from `centre`.
    unit : float
        One unit of the integers, as a share of the span.
    stops : Stops
        ``min_gain`` in the label's unit, squared.
    trees : int
        Leaves are divided by this.
    weight_unit : float
        What one unit of the second channel weighs, in records.
    channels : int
        3 if the last one counts records.
    """

    centre: float
    span: float
    unit: float
    stops: Stops
    trees: int = 1
    weight_unit: float = 1.0
    channels: int = 2

    def best_split(self, histogram: Histogram, direction: int, bounds: Bounds) -> BestSplit | None:
        """Split with the least variance in its children."""
        gain = _in_order(self._gain, direction, bounds, _average)
        best = search(histogram, gain, lambda sums: _mean(sums[0], sums[1]), itemgetter(1))
        if best is None:
            return None
        return parted(best, histogram, direction, bounds, _average)

    def leaf(self, sums: IntArray, bounds: Bounds) -> Leaf:
        """Mean of the labels, clipped to the bounds."""
        inside = min(max(int(sums[0]) / max(1, int(sums[1])), bounds.low), bounds.high)
        mean = self.centre + self.span * (self.unit / self.weight_unit) * inside
        return Leaf(mean / self.trees, self.cover(sums))

    def cover(self, sums: IntArray) -> float:
        """Records, or their weight."""
        return float(sums[1]) * self.weight_unit

    def _gain(self, left_sums: IntArray, total: IntArray) -> Floats:
        right = total[:, None, None] - left_sums
        gain = (self._purity(left_sums) + self._purity(right) - self._purity(total)) * self.span**2
        return self.stops.allowed(gain, left_sums[-1], int(total[-1]), self.cover(total), self.span**2)

    def _purity(self, sums: IntArray) -> Floats:
        return _over((sums[0] * self.unit) ** 2, sums[1] * self.weight_unit)


def _in_order(gain: Gain, direction: int, bounds: Bounds, value: Callable[[IntArray], Floats]) -> Gain:
    """Return `gain` with -inf for cuts whose children's values are in the wrong order or outside the node's bounds."""

    def ordered(left_sums: IntArray, total: IntArray) -> Floats:
        low = value(left_sums)
        high = value(total[:, None, None] - left_sums)
        is_allowed = direction * low <= direction * high
        for side in (low, high):
            is_allowed &= (side >= bounds.low) & (side <= bounds.high)
        return np.where(is_allowed, gain(left_sums, total), -np.inf)

    return ordered if direction else gain


def _over(squares: Floats, n: Floats) -> Floats:
    """Return `squares` over `n`, 0 if there is no record."""
    n = np.asarray(n)
    ratio: Floats = np.divide(squares, n, out=np.zeros(n.shape), where=n > 0)
    return ratio


def _average(sums: IntArray) -> Floats:
    """Of the values, in units of the integers."""
    return np.asarray(sums[0] / np.maximum(sums[1], 1))


def _mean(part: IntArray, n: IntArray) -> Floats:
    """Mean of each category, NaN if no record has it."""
    return np.where(n > 0, part / np.maximum(n, 1), np.nan)
