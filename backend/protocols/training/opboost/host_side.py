"""A Host under OpBoost: desensitises its columns once, sends ranks, keeps thresholds on its own scale. Knows no label, no gradient.

A numeric feature is one column of ranks, a boolean one has two ranks. Categories have no order that ranks could preserve, so a
categorical feature becomes boolean columns, one per category (one-hot, as in the paper), in a random order.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind
from backend.data.medians import Medians
from backend.data.table import PartyTable
from backend.errors import ParameterError, SecurityError
from backend.protocols.terms.records import Records
from backend.protocols.training.messages import Ranks, StartRanks, TakeRankSplits
from backend.protocols.training.opboost.maps import MAPS, MECHANISMS, MISSING, Noise, ValueMap
from backend.protocols.training.opboost.noise_terms import NoiseTerms
from backend.protocols.training.opboost.sampling import IntArray
from backend.protocols.transport.packing import to_numbers
from backend.trees.ensemble import NodeKey, SplitRule

INDICATORS = 32  # commonest categories of a feature that get a column; the others are False everywhere
YES_OR_NO = ValueMap(0.0, 1.0, 2)


@dataclass(frozen=True, repr=False)
class NoisyColumn:
    """A desensitised column of the Host.

    Attributes
    ----------
    levels : ndarray of int16
        ``(n_rows,)`` noisy levels, MISSING if there is no value.
    mapping : ValueMap
        Between true values and levels; of an indicator: 1 is yes.
    category : str, optional
        The category that an indicator stands for.
    categories : frozenset of str
        All that the column has.
    """

    feature: str
    levels: NDArray[np.int16]
    mapping: ValueMap
    category: str | None = None
    categories: frozenset[str] = frozenset()

    def rule(self, level: int, default_left: bool) -> SplitRule:
        """Return the rule that sends values below `level`, 0 … levels, to the left."""
        if self.category is None:
            return SplitRule(self.feature, default_left, self.mapping.threshold(level))
        sides = (frozenset[str](), self.categories - {self.category}, self.categories)
        left_categories = sides[min(level, 2)]
        return SplitRule(self.feature, default_left, None, left_categories, self.categories - left_categories)


class NoisyColumns:
    """A Host's noisy columns: noise follows from the Host's stored secret and the setting, so that nothing averages it out.

    Another training, another conversation or a restart gets the same noise. What does nothing under a map is no part of the setting.

    Parameters
    ----------
    table : PartyTable or Records
        All records of the Host.
    secret : bytes
        The Host's, stored for good.
    """

    def __init__(self, table: PartyTable | Records, features: Sequence[Feature], secret: bytes) -> None:
        self._table = table
        self._features = {f.name: f for f in features}
        self._secret = secret
        self._drawn: dict[tuple[str, Noise], tuple[NoisyColumn, ...]] = {}

    def names(self, exclude: Sequence[str]) -> list[str]:
        """The Host's features without the excluded ones."""
        return [name for name in self._features if name not in exclude]

    def of(self, name: str, noise: Noise) -> tuple[NoisyColumn, ...]:
        """The columns that a feature becomes."""
        setting = noise.canonical
        if (name, setting) not in self._drawn:
            self._drawn[name, setting] = tuple(self._draw(self._features[name], setting))
        return self._drawn[name, setting]

    def _words(self, *names: object) -> SecretWords:
        """Return the words that a column's noise is drawn with."""
        return SecretWords(self._secret, names, self._table.ids)

    def _draw(self, feature: Feature, noise: Noise) -> list[NoisyColumn]:
        column = self._table.columns[feature.name]
        if feature.kind is Kind.CATEGORICAL:
            return self._indicators(feature.name, column, noise)
        values = column.astype(np.float64)
        if feature.kind is Kind.BOOLEAN:
            return [
                NoisyColumn(
                    feature.name,
                    _noisy(YES_OR_NO.level(values), noise, self._words(feature.name, noise), flags=True),
                    YES_OR_NO,
                )
            ]
        lower, upper = feature.bounds or _extremes(values[~np.isnan(values)])
        mapping = ValueMap(lower, upper, noise.levels)  # to the common domain
        return [
            NoisyColumn(feature.name, _noisy(mapping.level(values), noise, self._words(feature.name, noise)), mapping)
        ]

    def _indicators(self, name: str, column: NDArray[np.generic], noise: Noise) -> list[NoisyColumn]:
        counts = Counter(str(v) for v in column if v is not None)
        categories = [category for category, _ in counts.most_common(INDICATORS)]
        # A random order, the same every time.
        categories.sort(key=lambda category: hmac.digest(self._secret, f"order {name} {category}".encode(), "sha256"))
        missing = np.array([v is None for v in column], dtype=bool)
        out = []
        for category in categories:
            flags = np.where(missing, MISSING, column == category).astype(np.int64)
            levels = _noisy(flags, noise, self._words(name, noise, category), flags=True)
            out.append(NoisyColumn(name, levels, YES_OR_NO, category, frozenset(counts)))
        return out


def _extremes(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and the largest value: the bounds of a feature without declared bounds.

    One person can move them, and with them the level of each other person. No ε covers that, but the bits booked for a training do
    (:func:`backend.protocols.terms.prices.column_bits`).
    """
    if not len(values):
        return 0.0, 0.0
    return float(values.min()), float(values.max())


class SecretWords:
    """Uniform words that follow from a secret: one for each record by its id, then more in the order in which they are asked for.

    Parameters
    ----------
    names : sequence
        What they are for.
    ids : sequence of str
        ``(n,)``: whose noise is drawn.
    """

    def __init__(self, secret: bytes, names: Sequence[object], ids: Sequence[str]) -> None:
        self._key = hmac.digest(secret, repr(names).encode(), "sha256")
        self._ids = ids
        self._calls = 0

    def of_records(self) -> NDArray[np.uint64]:
        """Return ``(n,)`` words, one for each record."""
        digests = []
        for i in self._ids:
            digests.append(hashlib.blake2b(i.encode(errors="surrogatepass"), key=self._key, digest_size=8))
        return np.frombuffer(b"".join(digest.digest() for digest in digests), dtype="<u8")

    def stream(self, count: int) -> NDArray[np.uint64]:
        """Return ``(count,)`` further words."""
        self._calls += 1
        block = hashlib.shake_256(self._key + self._calls.to_bytes(8, "big")).digest(8 * count)
        return np.frombuffer(block, dtype="<u8")


def _noisy(levels: IntArray, noise: Noise, words: SecretWords, *, flags: bool = False) -> NDArray[np.int16]:
    noisy = levels.astype(np.int16)
    has_value = levels != MISSING
    draw = noise.desensitise_flags if flags else noise.desensitise
    first: list[NDArray[np.uint64]] = [words.of_records()[has_value]]

    def drawn(count: int) -> NDArray[np.uint64]:
        """Return one word a record in the first call; ties and second steps take further words."""
        if first and len(first[0]) == count:
            return first.pop()
        return words.stream(count)

    noisy[has_value] = draw(levels[has_value], drawn)
    return noisy


def noise_of(start: NoiseTerms) -> Noise:
    """The setting in a Guest's request; raises SecurityError if it is invalid."""
    try:
        map_ = next(m for m in MAPS if m == start.map)
        mechanism = next(m for m in MECHANISMS if m == start.mechanism)
        return Noise(map_, mechanism, start.epsilon, start.theta, start.alpha, start.levels)
    except (StopIteration, ParameterError) as error:
        raise SecurityError("unknown_noise") from error


class HostRanks:
    """One OpBoost training at one Host.

    Parameters
    ----------
    rows : ndarray of int
        The Host's joint rows, in the common order.

    Attributes
    ----------
    rules : mapping of (tree, node) to SplitRule
        Of the splits that the Guest has named.
    medians : Medians
        None: a Host is not told which of the joint records are training records.
    """

    def __init__(self, columns: NoisyColumns, rows: NDArray[np.intp], start: StartRanks) -> None:
        noise = noise_of(start)
        self._columns = [c for name in columns.names(start.exclude) for c in columns.of(name, noise)]
        self._joint = [c.levels[rows].astype(np.int64) for c in self._columns]
        self._distinct = [np.unique(levels[levels != MISSING]) for levels in self._joint]
        self.rules: Mapping[NodeKey, SplitRule] = {}
        self.medians: Medians = {}

    def ranks(self, conversation: str) -> Ranks:
        """Each joint record's rank among the distinct noisy values of a column; nothing else leaves the Host."""
        blobs = []
        # the training process: desensitised values are replaced by their ranks before they are sent
        for levels, distinct in zip(self._joint, self._distinct, strict=True):
            rank = np.where(levels == MISSING, len(distinct), np.searchsorted(distinct, levels))
            blobs.append(to_numbers(rank, len(distinct) + 1))
        names = tuple(c.feature for c in self._columns)
        return Ranks(conversation, names, tuple(len(d) for d in self._distinct), tuple(blobs))

    def take_splits(self, message: TakeRankSplits) -> None:
        """Rank → desensitised value → threshold on the true scale (half-way between two ranks where values lie between them)."""
        parts = (message.trees, message.nodes, message.columns, message.cuts, message.default_left)
        if len({len(part) for part in parts}) > 1:
            raise SecurityError("rank_splits_do_not_fit")
        rules = {}
        for tree, node, column, cut, default_left in zip(*parts, strict=True):
            if not 0 <= column < len(self._columns) or not 0 <= cut <= len(self._distinct[column]):
                raise SecurityError("unknown_rank_split")
            rules[tree, node] = self._columns[column].rule(self._level(column, cut), default_left)
        self.rules = rules

    def _level(self, column: int, cut: int) -> int:
        """The level below which the ranks below `cut` lie."""
        distinct = self._distinct[column]
        if cut == 0:
            return 0
        if cut == len(distinct):
            return self._columns[column].mapping.levels
        return int(distinct[cut - 1] + distinct[cut]) // 2 + 1
