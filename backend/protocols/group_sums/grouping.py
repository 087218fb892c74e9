"""One party's records in groups by one of its features; small groups are merged. Stays with the party: it holds a group a record."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from backend.data.binning import make_bins
from backend.data.dictionary import Feature, Kind
from backend.errors import SecurityError
from backend.protocols.group_sums.disclosure_bound import EXTRA_GROUPS

MIN_GROUP = 20  # records of the smallest group that another party may learn of
ELDERLY = 62  # years; 12 CFR 1002.2(o)
YEARS = {"a", "y", "yr", "yrs", "year", "years", "岁", "周岁", "年"}  # units in which an age can be held against 62
AGE = re.compile(r"\bage\b|年龄", re.IGNORECASE)
GROUP_LIMITS = (2, 32)  # groups of one feature, beside those who have no value

PAIR = " × "  # between two features, and between their groups

GroupKind = Literal["code", "bin", "elderly", "missing", "rest", "pair", "cell"]
ON_THE_WIRE = ("code", "bin", "elderly", "missing", "rest", "cell")
OF_A_SIDE = ("code", "bin", "elderly", "missing", "rest")
WireGroup = tuple[str, str, int]  # kind, name, records


@dataclass(frozen=True)
class Group:
    """A group as another party may know it.

    Attributes
    ----------
    kind : {"code", "bin", "elderly", "missing", "rest", "pair", "cell"}
        One code of a category (or 0 and 1); one bin of numbers; of an age in years, those aged 62 or more; those who have no value; all
        small groups together; those who are in one group of each of two features, as the Guest puts them together, or as a Host names them.
    name : str
        The code, or the bin's number, 1 being the lowest values; of a cell see :func:`cell_name`; else empty.
    n : int
        Records in it.
    """

    kind: GroupKind
    name: str
    n: int


@dataclass(frozen=True, repr=False)
class Grouped:
    """One feature's groups.

    Attributes
    ----------
    groups : tuple of Group
        Empty if fewer than two groups of the smallest size can be made: then nothing may be disclosed.
    index : ndarray of int
        ``(n,)``: each record's group, as a position in `groups`.
    """

    feature: str
    groups: tuple[Group, ...]
    index: NDArray[np.intp]


def group(feature: Feature, column: NDArray[np.generic], max_groups: int, min_size: int = MIN_GROUP) -> Grouped:
    """Group records by a feature: equal-frequency bins of numbers, codes of categories, and those who have no value.

    An age in years has the law's own group besides, of those aged 62 or more (12 CFR 1002.2(o)); its bins are of the younger ones.

    Merging rather than leaving out: whoever knows the sums over all records gets a group that was left out by subtraction.

    Parameters
    ----------
    column : ndarray
        ``(n,)`` values; NaN or None if missing.
    max_groups : int
        Bins or codes; rarer codes are merged.
    min_size : int
        Records of the smallest group. Smaller bins join a neighbour; smaller codes join each other and, if they are still few, the
        smallest of the other groups; so do those who have no value.
    """
    make = _bins if feature.kind is Kind.NUMERIC else _codes
    runs, index = make(feature, column, max_groups, min_size)
    group_of = np.zeros(index.max(initial=0) + 1, dtype=np.intp)
    for k, (_, _, members) in enumerate(runs):
        group_of[[m for m in members if m < len(group_of)]] = k
    sizes = np.bincount(group_of[index], minlength=len(runs))
    if len(runs) < 2 or sizes.min() < min_size:
        return Grouped(feature.name, (), np.zeros(len(column), dtype=np.intp))
    groups = tuple(Group(kind, name, int(n)) for (kind, name, _), n in zip(runs, sizes, strict=True))
    return Grouped(feature.name, groups, group_of[index])


def features_of(name: str, feature_names: Container[str] = ()) -> tuple[str, ...]:
    """Return the features of a question's or measurement's name: two if it is about both together, else one.

    Examples
    --------
    >>> features_of("age × gender"), features_of("age")
    (('age', 'gender'), ('age',))
    """
    if name in feature_names:
        return (name,)
    return tuple(name.split(PAIR))


def most_groups(name: str, max_groups: int) -> int:
    """Return how many bins or codes a feature can have at most; two features together have as many as make all of their cells.

    Each of two features has at most `max_groups` bins or codes, and beside them those who have no value, and a rest. Small cells that are
    put together make one group of several.
    """
    if PAIR in name:
        return (max_groups + EXTRA_GROUPS) ** 2 - EXTRA_GROUPS
    return max_groups


def group_together(first: Grouped, second: Grouped, min_size: int) -> Grouped:
    """Group records by two features at once: a cell for each group of the one within each group of the other.

    Cells of fewer than `min_size` records are put together. If these are still fewer, the smallest other cell joins them. So every group
    has `min_size` records or more, and no sum or difference of groups is about fewer. The groups of one feature alone would allow
    subtraction, so a Host that counts does not answer both (:mod:`backend.protocols.group_sums.host`).
    """
    together = f"{first.feature}{PAIR}{second.feature}"
    nothing = Grouped(together, (), np.zeros(len(first.index), dtype=np.intp))
    if not first.groups or not second.groups:
        return nothing
    width = len(second.groups)
    cell_of = first.index * width + second.index
    sizes = np.bincount(cell_of, minlength=len(first.groups) * width)
    large = [int(cell) for cell in np.flatnonzero(sizes >= min_size)]
    few = len(cell_of) - int(sizes[large].sum())
    if 0 < few < min_size and large:
        large.remove(min(large, key=lambda cell: sizes[cell]))
        few = len(cell_of) - int(sizes[large].sum())
    groups = []
    for cell in large:
        sides = first.groups[cell // width], second.groups[cell % width]
        name = cell_name((first.groups, second.groups), sides)
        groups.append(Group("cell", name, int(sizes[cell])))
    if few:
        groups.append(Group("rest", "", few))
    if len(groups) < 2:
        return nothing
    place_of = np.full(len(sizes), len(large), dtype=np.intp)  # the rest comes last
    place_of[large] = np.arange(len(large))
    return Grouped(together, tuple(groups), place_of[cell_of])


def cell_name(of_features: tuple[Sequence[Group], Sequence[Group]], sides: tuple[Group, Group]) -> str:
    """Return the name of the people in one group of each of two features; a bin's part states the number of bins, too.

    Examples
    --------
    >>> bins = (Group("bin", "1", 30), Group("bin", "2", 30))
    >>> codes = (Group("code", "f", 40), Group("missing", "", 20))
    >>> cell_name((bins, codes), (bins[1], codes[0]))
    '[["bin", "2/2"], ["code", "f"]]'
    """
    side_names = []
    for groups, side in zip(of_features, sides, strict=True):
        bins = sum(group.kind == "bin" for group in groups)
        side_names.append([side.kind, f"{side.name}/{bins}" if side.kind == "bin" else side.name])
    return json.dumps(side_names, ensure_ascii=False)


def sides_of(cell: Group) -> tuple[Group, Group]:
    """Return the two groups that a cell's people are in: a bin by its number and of how many (``2/5``), all of no known size, 0.

    Raises
    ------
    SecurityError
        If another party has named no such groups.
    """
    try:
        first, second = json.loads(cell.name)
        return _side(*first), _side(*second)
    except (TypeError, ValueError) as error:
        raise SecurityError("cell_names_no_groups") from error


def _side(kind: str, name: str) -> Group:
    """Return a group of one feature as a cell names it; raise ValueError if no group has this name."""
    has_name = kind in ("bin", "code")
    if kind not in OF_A_SIDE or not isinstance(name, str) or has_name != bool(name):
        raise ValueError(kind)
    if kind == "bin":
        place, of = map(int, name.split("/"))
        if not 1 <= place <= of <= max(GROUP_LIMITS) or name != f"{place}/{of}":
            raise ValueError(name)
    return Group(cast(GroupKind, kind), name, 0)


def is_in_years(feature: Feature) -> bool:
    """Return whether a feature is a number of years."""
    return feature.kind is Kind.NUMERIC and feature.unit.en.strip().casefold() in YEARS


def is_age(feature: Feature) -> bool:
    """Return whether a feature is a person's age in years, by its tag or its name and meaning, which all parties may read."""
    words = f"{feature.name} {feature.meaning.en} {feature.meaning.zh}"
    is_named_age = feature.sensitivity.strip().casefold() == "age" or AGE.search(words) is not None
    return is_named_age and is_in_years(feature)


def read_groups(message: Sequence[WireGroup], records: int) -> tuple[Group, ...]:
    """Groups as another party reports them; raises SecurityError if a kind is not known, or their sizes do not add up to `records`."""
    groups = tuple(Group(cast(GroupKind, kind), name, n) for kind, name, n in message)
    if any(g.kind not in ON_THE_WIRE or g.n < 1 for g in groups) or (groups and sum(g.n for g in groups) != records):
        raise SecurityError("groups_of_other_records", records=records)
    return groups


def are_as_asked(groups: Sequence[Group], max_groups: int, min_size: int) -> bool:
    """Return whether a Host could have made these groups of a feature by :func:`group`.

    There are two or more, of `min_size` records each. Bins are numbered from 1, or codes are named once each; there are at most
    `max_groups` of them. The groups of missing values and of the remaining codes follow, once each.

    Examples
    --------
    >>> groups = [Group("bin", "1", 30), Group("bin", "2", 25), Group("missing", "", 20)]
    >>> are_as_asked(groups, max_groups=2, min_size=20)
    True
    >>> are_as_asked([Group("bin", "2", 30), Group("bin", "1", 45)], max_groups=2, min_size=20)
    False
    """
    if len(groups) < 2 or min(g.n for g in groups) < min_size:
        return False
    kinds = [g.kind for g in groups]
    bins_or_codes = [g for g in groups if g.kind in ("bin", "code")]
    names = [g.name for g in bins_or_codes]
    ends = [[], ["missing"]]
    if "bin" in kinds:
        expected = [str(number) for number in range(1, len(bins_or_codes) + 1)]
        ends += [["elderly"], ["elderly", "missing"]]
    else:
        expected = list(dict.fromkeys(names))
        ends += [["rest"], ["missing", "rest"]]
    of_one_kind = len({g.kind for g in bins_or_codes}) <= 1
    return of_one_kind and names == expected and len(names) <= max_groups and kinds[len(bins_or_codes) :] in ends


def are_cells_as_asked(groups: Sequence[Group], max_groups: int, min_size: int) -> bool:
    """Return whether a Host could have made these groups of two features together by :func:`group_together`.

    There are two or more, of `min_size` records each: cells of at most `max_groups` bins or codes of each feature, once each, then
    possibly the remaining cells as one group.

    Raises
    ------
    SecurityError
        As :func:`sides_of`.
    """
    if len(groups) < 2 or min(g.n for g in groups) < min_size:
        return False
    cells = groups[:-1] if groups[-1].kind == "rest" else groups
    if {g.kind for g in cells} != {"cell"} or len({g.name for g in cells}) < len(cells):
        return False
    for side in zip(*map(sides_of, cells), strict=True):
        bins_or_codes = {g for g in side if g.kind in ("bin", "code")}
        ends = {g.name.partition("/")[2] for g in bins_or_codes if g.kind == "bin"}
        if len(bins_or_codes) > max_groups or len({g.kind for g in bins_or_codes}) > 1 or len(ends) > 1:
            return False
    return True


def to_wire(groups: Sequence[Group]) -> tuple[WireGroup, ...]:
    """Inverse of :func:`read_groups`."""
    return tuple((g.kind, g.name, g.n) for g in groups)


def merged(groups: Sequence[Group], max_groups: int) -> tuple[tuple[Group, ...], NDArray[np.intp]]:
    """Merge groups until there are at most `max_groups` bins or codes; return them, and for each old group the index of its new one.

    Sums by the old groups give sums by the new ones: neighbouring bins of equal frequency are merged, and the rarest codes with the rest.
    """
    bins = [k for k, g in enumerate(groups) if g.kind == "bin"]
    codes = sorted((k for k, g in enumerate(groups) if g.kind == "code"), key=lambda k: -groups[k].n)
    few = min(len(bins), max_groups)
    rare = set(codes[max_groups:])
    new_names: list[tuple[str, str]] = []
    for k, g in enumerate(groups):
        if g.kind == "bin":
            new_names.append(("bin", str(bins.index(k) * few // len(bins) + 1)))
        elif k in rare:
            new_names.append(("rest", ""))
        else:
            new_names.append((g.kind, g.name))
    order = sorted(dict.fromkeys(new_names), key=lambda new_name: new_name[0] == "rest")  # stable: the rest comes last
    index = np.array([order.index(new_name) for new_name in new_names], dtype=np.intp)
    sizes = np.bincount(index, weights=[g.n for g in groups], minlength=len(order))
    new_groups = []
    for (kind, name), n in zip(order, sizes, strict=True):
        new_groups.append(Group(cast(GroupKind, kind), name, int(n)))
    return tuple(new_groups), index


Runs = list[tuple[GroupKind, str, list[int]]]  # kind and name of each group, and the bins or codes in it


def _bins(
    feature: Feature, column: NDArray[np.generic], max_groups: int, min_size: int
) -> tuple[Runs, NDArray[np.intp]]:
    """Equal-frequency bins; small ones join their smaller neighbour, few missing values the smallest bin."""
    elderly = np.zeros(len(column), dtype=bool)
    if is_age(feature):
        # One bin less in every table, so that groups of an age reveal no more about a person than those of another number.
        max_groups = max(max_groups - 1, 2)
        elderly = column.astype(np.float64) >= ELDERLY
        if min(elderly.sum(), (column.astype(np.float64) < ELDERLY).sum()) < min_size:
            elderly = np.zeros(len(column), dtype=bool)
    bins = make_bins(feature, column[~elderly], max_groups)
    index = bins.index(column)
    index[elderly] = bins.count + 1
    sizes = np.bincount(index, minlength=bins.count + 2).tolist()
    runs = [[b] for b in range(bins.count)]
    count = sizes[: bins.count]
    while len(runs) > 1 and min(count) < min_size:
        smallest = count.index(min(count))
        neighbours = (i for i in (smallest - 1, smallest + 1) if 0 <= i < len(runs))
        low = min(smallest, min(neighbours, key=lambda i: count[i]))
        runs[low : low + 2] = [runs[low] + runs[low + 1]]
        count[low : low + 2] = [count[low] + count[low + 1]]
    named_runs: Runs = [("bin", str(number), run) for number, run in enumerate(runs, 1)]
    if elderly.any():
        named_runs.append(("elderly", "", [bins.count + 1]))
    if sizes[bins.count] >= min_size:
        named_runs.append(("missing", "", [bins.count]))
    else:
        runs[count.index(min(count))].append(bins.count)
    return named_runs, index


def _codes(
    feature: Feature, column: NDArray[np.generic], max_groups: int, min_size: int
) -> tuple[Runs, NDArray[np.intp]]:
    """A group a code; small and too many ones together, with the smallest of the others where they are still few."""
    texts = _texts(feature, column)
    codes = sorted({text for text in texts if text is not None})
    number_of = {code: i for i, code in enumerate(codes)}
    numbers = (len(codes) if text is None else number_of[text] for text in texts)
    index = np.fromiter(numbers, dtype=np.intp, count=len(texts))
    sizes = np.bincount(index, minlength=len(codes) + 1).tolist()
    commonest = sorted(range(len(codes)), key=lambda i: -sizes[i])[:max_groups]
    large = [i for i in (*commonest, len(codes)) if sizes[i] >= min_size]
    small = [i for i in range(len(sizes)) if i not in large]
    few = sum(sizes[i] for i in small)
    if 0 < few < min_size and large:
        small.append(large.pop(large.index(min(large, key=lambda i: sizes[i]))))
    runs: Runs = [("code", codes[i], [i]) if i < len(codes) else ("missing", "", [i]) for i in sorted(large)]
    return ([*runs, ("rest", "", small)] if few else runs), index


def _texts(feature: Feature, column: NDArray[np.generic]) -> list[str | None]:
    """Codes as text; None if missing."""
    if feature.kind is Kind.CATEGORICAL:
        return [None if value is None else str(value) for value in column]
    return [None if np.isnan(value) else str(int(value)) for value in column.astype(np.float64)]
