"""Groups of two features of one Host together: cells that are large enough, and the small ones put together."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from refused import raises

from backend.errors import SecurityError
from backend.protocols.group_sums.disclosure_bound import least_size
from backend.protocols.group_sums.grouping import (
    Group,
    Grouped,
    are_cells_as_asked,
    group_together,
    most_groups,
    sides_of,
)

CELLS = "c × x"


def grouped(name, index, count):
    sizes = np.bincount(index, minlength=count)
    return Grouped(name, tuple(Group("code", "abc"[k], int(n)) for k, n in enumerate(sizes)), np.array(index))


def test_cells_of_few_people_are_put_together_and_the_smallest_of_the_others_joins_if_they_are_still_few():
    first = grouped("f", [0] * 6 + [1] * 6, 2)
    second = grouped("s", [0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1], 2)
    made = group_together(first, second, 3)
    # Two people of (a, b) are too few, so that three of (b, a) join them.
    assert [(g.kind, g.n) for g in made.groups] == [("cell", 4), ("cell", 3), ("rest", 5)]
    assert [tuple(side.name for side in sides_of(g)) for g in made.groups[:2]] == [("a", "a"), ("b", "b")]
    assert made.index.tolist() == [0] * 4 + [2] * 5 + [1] * 3 and made.feature == "f × s"
    assert are_cells_as_asked(made.groups, 2, 3)


@pytest.mark.parametrize("size", [2, 3])
def test_whatever_people_have_no_group_is_smaller_than_asked_for(size):
    for cells in product(range(4), repeat=6):
        one, other = np.array(cells) // 2, np.array(cells) % 2
        made = group_together(grouped("f", one, 2), grouped("s", other, 2), size)
        sizes = np.bincount(made.index, minlength=len(made.groups))
        assert [g.n for g in made.groups] == sizes.tolist()[: len(made.groups)]
        assert not made.groups or (len(made.groups) > 1 and sizes.min() >= size and sizes.sum() == 6)


def test_where_one_feature_makes_no_groups_two_together_make_none():
    nothing = Grouped("f", (), np.zeros(4, dtype=np.intp))
    some = grouped("s", [0, 0, 1, 1], 2)
    assert group_together(nothing, some, 2).groups == group_together(some, nothing, 2).groups == ()


NAMED = Group("cell", '[["bin", "2/3"], ["code", "f"]]', 30)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "[]",
        "null",
        '[["bin", "2/3"]]',
        '[["bin", "4/3"], ["code", "f"]]',
        '[["bin", "0/3"], ["code", "f"]]',
        '[["bin", "2"], ["code", "f"]]',
        '[["bin", "02/3"], ["code", "f"]]',
        '[["cell", "x"], ["code", "f"]]',
        '[["missing", "x"], ["code", "f"]]',
        '[["code", ""], ["code", "f"]]',
        '[["code", 5], ["code", "f"]]',
        '[["code", "f", 1], ["code", "f"]]',
    ],
)
def test_a_cell_that_names_no_groups_is_refused(name):
    assert sides_of(NAMED) == (Group("bin", "2/3", 0), Group("code", "f", 0))
    with raises(SecurityError, "cell_names_no_groups"):
        sides_of(replace(NAMED, name=name))


@pytest.mark.parametrize(
    "groups",
    [
        [NAMED],
        [NAMED, NAMED],
        [NAMED, Group("rest", "", 19)],
        [Group("rest", "", 30), NAMED],
        [NAMED, Group("code", "f", 30)],
        [NAMED, Group("cell", '[["bin", "2/4"], ["code", "f"]]', 30)],
        [NAMED, Group("cell", '[["code", "m"], ["code", "f"]]', 30)],
    ],
)
def test_cells_that_no_host_could_have_made_are_known(groups):
    assert are_cells_as_asked([NAMED, Group("rest", "", 20)], 3, 20)
    assert not are_cells_as_asked(groups, 3, 20)


def test_of_many_groups_smaller_ones_are_asked_for_only_as_their_sums_can_bear():
    """As many groups as both features make together are all the more that could be named."""
    assert most_groups("c", 4) == 4 and most_groups(CELLS, 4) == 34
    assert least_size(200, 6000, most_groups(CELLS, 4), 0.5) > least_size(200, 6000, 4, 0.5)
