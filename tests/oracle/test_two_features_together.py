"""Sums by two features of a Host together: no combination of all that it answers is about fewer people than a group has."""

from ast import literal_eval
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from leak_crowd import alone
from leak_scripts import together_then_alone
from leak_worlds import ALL_NAMED, FEWEST, World, toy_floors

from backend.crypto.plain import _load
from backend.protocols.group_sums.host import _Counting

CROSSED = World(people=6, floors=ALL_NAMED)
# A Host does not see who is who, so that tables with the same rows in another order are one.
TABLES = [sum(rows, ()) for rows in combinations_with_replacement(product((0, 1), repeat=2), CROSSED.people)]


@pytest.fixture(autouse=True)
def _toy_floors():
    with toy_floors():
        yield


def told_apart(table, *features):
    """The sets of people that a Host with this table gives sums of: by both features together, then by each of some."""
    found = []
    for reply in alone(CROSSED, table, together_then_alone(CROSSED, *features)):
        for kind, *parts in reply:
            assert kind != "internal", parts
            if kind == "GroupSums":
                groups, sums = map(literal_eval, parts[-2:])
                for of_feature, blob in zip(groups, sums, strict=True):
                    firsts = [int(number) >> 16 for number in _load(blob, (len(of_feature),))]
                    found += [[first >> (2 * person) & 1 for person in range(CROSSED.people)] for first in firsts]
    return np.array(found, dtype=np.int64).reshape(len(found), CROSSED.people)


def fewest(sets):
    """Of how many people the smallest sum or difference of some sets is."""
    weights = np.array(list(product((-1, 0, 1), repeat=len(sets))))
    people = np.count_nonzero(weights @ sets, axis=1)
    return min(people[people > 0], default=CROSSED.people)


@pytest.mark.parametrize("features", [("a", "b"), ("b", "a")])
def test_no_sum_and_no_difference_is_about_fewer_people_than_a_group(features):
    sets = [told_apart(table, *features) for table in TABLES]
    assert sum(len(of_table) > 1 for of_table in sets) > 20
    assert min(fewest(of_table) for of_table in sets) >= FEWEST


def test_a_host_that_answers_about_one_of_the_two_alone_is_caught(monkeypatch):
    """Two in one cell, one in each of two others: the feature's own groups less that cell are one person."""
    sizes = _Counting.sizes

    def of_the_pair_alone(counting, name):
        return [counting._charge(("groups", name), "", charge.question.bits) for charge in sizes(counting, name)][:1]

    # patched: a mutant of what is booked
    monkeypatch.setattr(_Counting, "sizes", of_the_pair_alone)
    assert min(fewest(told_apart(table, "a", "b")) for table in TABLES) == 1
