"""Records in groups: by hand, and for any column: no group that is told is small, and none is left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.data.dictionary import Feature, Kind
from backend.errors import SecurityError
from backend.protocols.group_sums.disclosure_bound import leaves_unknown, smallest_size, spread_of
from backend.protocols.group_sums.grouping import (
    ELDERLY,
    MIN_GROUP,
    Group,
    are_as_asked,
    group,
    merged,
    read_groups,
    to_wire,
)
from backend.protocols.terms.prices import grouping_bits


def feature(kind):
    return Feature(name="f", meaning="f", kind=kind)


def coded(**counts):
    """So many of each code; `none` = missing."""
    values = [None if code == "none" else code for code, n in counts.items() for _ in range(n)]
    return np.array(values, dtype=object)


def codes(column, most=8, least=3):
    return [(g.kind, g.name, g.n) for g in group(feature(Kind.CATEGORICAL), column, most, least).groups]


def test_large_codes_are_groups_of_their_own_in_alphabetical_order():
    assert codes(coded(b=4, a=5, none=3)) == [("code", "a", 5), ("code", "b", 4), ("missing", "", 3)]


def test_small_codes_are_put_together_without_their_names():
    assert codes(coded(a=5, b=1, c=2, d=4)) == [("code", "a", 5), ("code", "d", 4), ("rest", "", 3)]


def test_what_is_still_small_joins_the_smallest_group_so_that_no_difference_gives_it_away():
    assert codes(coded(a=9, b=4, c=1)) == [("code", "a", 9), ("rest", "", 5)]
    assert codes(coded(a=9, b=4, none=2)) == [("code", "a", 9), ("rest", "", 6)]


def test_codes_beyond_the_most_are_put_together_even_if_large():
    assert codes(coded(a=6, b=5, c=4), most=2) == [("code", "a", 6), ("code", "b", 5), ("rest", "", 4)]


def test_two_values_are_told_as_zero_and_one():
    grouped = group(feature(Kind.BOOLEAN), np.array([1.0, 0, 0, 1, 1, np.nan, np.nan]), 8, 2)
    assert to_wire(grouped.groups) == (("code", "0", 2), ("code", "1", 3), ("missing", "", 2))
    assert grouped.index.tolist() == [1, 0, 0, 1, 1, 2, 2]


def test_numbers_are_bins_of_equal_frequency_the_lowest_first_and_no_edge_is_told():
    grouped = group(feature(Kind.NUMERIC), np.array([50.0, 10, 30, 20, 60, 40]), 3, 2)
    assert to_wire(grouped.groups) == (("bin", "1", 2), ("bin", "2", 2), ("bin", "3", 2))
    assert grouped.index.tolist() == [2, 0, 1, 0, 2, 1]


AGE_IN_YEARS = Feature(name="AGE", meaning="Age of the client", unit="years")


def test_of_an_age_those_aged_62_or_more_are_a_group_of_their_own_and_no_other_edge_is_told():
    ages = np.array([20.0, 30, 40, 50, 61, 61.9, 62, 70, 80, np.nan, np.nan, np.nan])
    found = group(AGE_IN_YEARS, ages, 3, 3)
    expected = [("bin", "1", 3), ("bin", "2", 3), ("elderly", "", 3), ("missing", "", 3)]
    assert [(g.kind, g.name, g.n) for g in found.groups] == expected
    assert found.index.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert are_as_asked(found.groups, 3, 3) and read_groups(to_wire(found.groups), 12) == found.groups
    few = [(g.kind, g.n) for g in group(AGE_IN_YEARS, ages, 3, 4).groups]
    assert not any(kind == "elderly" for kind, _ in few) and sum(n for _, n in few) == 12


@pytest.mark.parametrize(
    ("name", "meaning", "unit", "kind"),
    [
        ("tenure", "Years at the address", "years", Kind.NUMERIC),
        ("age_months", "Age of the account", "months", Kind.NUMERIC),
        ("page", "Pages read", "years", Kind.NUMERIC),
        ("age", "Age class", "years", Kind.CATEGORICAL),
    ],
)
def test_what_is_no_age_in_years_has_no_group_of_the_elderly(name, meaning, unit, kind):
    other = Feature(name=name, meaning=meaning, unit=unit, kind=kind)
    column = np.arange(90.0) if kind is Kind.NUMERIC else coded(a=45, b=45)
    assert "elderly" not in [g.kind for g in group(other, column, 4, 3).groups]


def test_a_small_bin_joins_its_smaller_neighbour_and_few_missing_values_the_smallest_bin():
    values = np.array([1.0] * 5 + [2] + [3] * 3 + [4] * 6 + [np.nan])
    grouped = group(feature(Kind.NUMERIC), values, 8, 3)
    # 1 | 2 and 3, and missing | 4
    assert to_wire(grouped.groups) == (("bin", "1", 5), ("bin", "2", 5), ("bin", "3", 6))
    assert grouped.index[-1] == 1
    many = group(feature(Kind.NUMERIC), np.append(values, [np.nan, np.nan]), 8, 3)
    assert to_wire(many.groups)[-1] == ("missing", "", 3)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (Kind.CATEGORICAL, coded(a=30)),
        (Kind.CATEGORICAL, coded(a=30, b=2)),
        (Kind.CATEGORICAL, coded(a=2, b=2, none=2)),
        (Kind.NUMERIC, np.full(30, np.nan)),
        (Kind.NUMERIC, np.array([5.0] * 30 + [6.0] * 2)),
        (Kind.BOOLEAN, np.zeros(40)),
        (Kind.NUMERIC, np.empty(0)),
        (Kind.CATEGORICAL, np.empty(0, dtype=object)),
    ],
)
def test_where_two_groups_cannot_be_made_nothing_is_told(kind, column):
    assert group(feature(kind), column, 8, 3).groups == ()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_group_is_small_and_together_they_hold_every_record(data):
    kind = data.draw(st.sampled_from(list(Kind)))
    values = {
        Kind.CATEGORICAL: st.one_of(st.none(), st.sampled_from("abcdefgh")),
        Kind.BOOLEAN: st.sampled_from([0.0, 1.0, np.nan]),
        Kind.NUMERIC: st.one_of(st.just(np.nan), st.integers(-9, 9).map(float)),
    }[kind]
    drawn = data.draw(st.lists(values, max_size=120))
    column = np.array(drawn, dtype=object if kind is Kind.CATEGORICAL else float)
    least, most = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 12))
    grouped = group(feature(kind), column, most, least)
    if grouped.groups:
        assert len(grouped.groups) >= 2
        sizes = np.bincount(grouped.index, minlength=len(grouped.groups))
        assert sizes.tolist() == [g.n for g in grouped.groups] and sizes.min() >= least and sizes.sum() == len(column)
        assert read_groups(to_wire(grouped.groups), len(column)) == grouped.groups
        assert are_as_asked(grouped.groups, most, least)
    if kind is Kind.NUMERIC and grouped.groups:  # a bin is a run of values: none of another lies between two of it
        order = column.argsort(kind="stable")
        known = [int(k) for k in grouped.index[order] if grouped.groups[int(k)].kind == "bin"]
        present = known[: int((~np.isnan(column)).sum())]
        assert present == sorted(present)


def test_the_smallest_group_is_twenty_records():
    assert MIN_GROUP == 20
    twenty = group(feature(Kind.CATEGORICAL), coded(a=20, b=20), 8)
    assert [g.n for g in twenty.groups] == [20, 20]
    assert group(feature(Kind.CATEGORICAL), coded(a=20, b=19), 8).groups == ()


@pytest.mark.parametrize("wrong", [(("code", "a", 5),), (("place", "a", 9),), (("code", "a", 10), ("code", "b", -1))])
def test_groups_that_are_not_those_of_the_records_are_refused(wrong):
    with pytest.raises(SecurityError, match="not groups of 9 records"):
        read_groups(wrong, 9)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [("bin", "1", 75)],
        [("bin", "1", 56), ("bin", "2", 19)],
        [("bin", "1", 25), ("bin", "2", 25), ("bin", "3", 25)],
        [("bin", "2", 35), ("bin", "1", 40)],
        [("bin", "1", 35), ("code", "2", 40)],
        [("bin", "1", 35), ("rest", "", 40)],
        [("bin", "1", 35), ("missing", "", 20), ("missing", "", 20)],
        [("code", "a", 35), ("code", "a", 40)],
        [("code", "a", 20), ("code", "b", 20), ("code", "c", 35)],
        [("rest", "", 35), ("code", "a", 40)],
        [("code", "a", 35), ("rest", "", 20), ("rest", "", 20)],
    ],
)
def test_groups_that_no_host_makes_of_a_feature_are_told_apart(wrong):
    assert not are_as_asked([Group(*one) for one in wrong], max_groups=2, min_size=20)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_groups_put_together_have_the_sums_of_their_records_and_leave_as_much_unknown(data):
    """Whoever has the finer table is told nothing by the coarser one; the check of disclosure_bound says so of it, too."""
    n, kind = data.draw(st.integers(40, 400)), data.draw(st.sampled_from([Kind.NUMERIC, Kind.CATEGORICAL]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    drawn = rng.integers(0, data.draw(st.integers(2, 40)), n)
    column = np.where(rng.random(n) < data.draw(st.sampled_from([0.0, 0.1, 0.4])), np.nan, drawn.astype(np.float64))
    if kind is Kind.CATEGORICAL:
        column = np.array([None if np.isnan(v) else f"{v:.0f}" for v in column], dtype=object)
    marks = [rng.integers(0, high + 1, n) for high in (1, 1, 100)]
    size = smallest_size(spread_of(marks), n, 10, MIN_GROUP)
    fine = group(feature(kind), column, 10, size)
    most = data.draw(st.integers(2, 10))
    groups, index = merged(fine.groups, most)
    assert sum(one.kind in ("bin", "code") for one in groups) <= most
    assert len({(one.kind, one.name) for one in groups}) == len(groups)
    if not fine.groups:
        assert not groups
        return
    of_record = index[fine.index]
    table = np.array([np.bincount(fine.index, weights=mark) for mark in marks])
    for k, one in enumerate(groups):
        assert one.n == (of_record == k).sum() >= size >= MIN_GROUP
        assert [mark[of_record == k].sum() for mark in marks] == table[:, index == k].sum(axis=1).tolist()
        if one.kind == "code":
            assert set(column[of_record == k]) == {one.name}
        if one.kind == "missing":
            assert set(map(str, column[of_record == k])) <= {"None", "nan"}
    assert len(groups) > 1 and leaves_unknown(spread_of(marks), [one.n for one in groups])
    if most == 10:
        assert groups == fine.groups


@pytest.mark.parametrize("kind", [Kind.NUMERIC, Kind.CATEGORICAL, "age"])
@pytest.mark.parametrize("most", [2, 3, 5])
@pytest.mark.parametrize("least", [2, 3])
def test_the_price_of_groups_is_never_below_what_they_tell_about_one_person(kind, most, least):
    """By enumeration: one value moves over a fine grid and over missing; the others stay, some of them missing; sums follow from groups."""
    draw = np.random.default_rng(10 * most + least)
    asked = AGE_IN_YEARS if kind == "age" else feature(kind)
    shift = ELDERLY - 6 if kind == "age" else 0  # so that half are elderly
    kind = Kind.NUMERIC if kind == "age" else kind
    grid = [*np.arange(-1.0, 12.0, 0.25), np.nan] if kind is Kind.NUMERIC else [*"abcdefghijklyz", None]
    most_told = 0
    for _ in range(120):
        n = int(draw.integers(5, 16))
        drawn = draw.integers(0, int(draw.integers(2, 12)), n - 1)
        missing = draw.random(n - 1) < draw.choice([0.0, 0.2])
        named = drawn if kind is Kind.NUMERIC else ["abcdefghijkl"[i] for i in drawn]
        others = [grid[-1] if gone else value for value, gone in zip(named, missing, strict=True)]
        told = set()
        for value in grid:
            values = [*others, value]
            column = np.array(values, dtype=float) + shift if kind is Kind.NUMERIC else np.array(values, dtype=object)
            made = group(asked, column, most, least)
            told.add((made.groups, tuple(made.index.tolist())))
        bits = grouping_bits(n, most, least, numeric=kind is Kind.NUMERIC)
        assert np.log2(len(told)) <= bits
        most_told = max(most_told, len(told))
    # A price far above all that was ever told would prove nothing.
    assert most_told >= (most + 2 if kind is Kind.NUMERIC else 4)
