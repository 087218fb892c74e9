"""Sums over groups of 20 and more that name everybody in a group: found by solvers, and bounded by what is asked for."""

from collections import Counter
from itertools import combinations
from math import comb, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joints import Asking, joined
from scipy.optimize import Bounds, LinearConstraint, milp
from worlds import GUEST

from backend.data.dictionary import Feature, Kind
from backend.errors import HostRefused
from backend.fairness.marking import Marking, mark
from backend.protocols.group_sums.contingency import ContingencyTable
from backend.protocols.group_sums.disclosure_bound import (
    UNKNOWN,
    disclosed_bits,
    least_size,
    leaves_unknown,
    log2_divisions,
    smallest_size,
    spread_of,
)
from backend.protocols.group_sums.grouping import group
from backend.protocols.group_sums.guest import GroupQuestions
from backend.store.accountant import Limits


def sets_that_fit(marks, sums, size):
    """Sets of `size` of 40 records whose marks have these sums, by meeting in the middle; of each its 40 flags."""
    draw = np.random.default_rng(9)
    rows = np.vstack([*marks, np.ones(40, dtype=np.int64)])
    factors = draw.integers(1, 1 << 62, len(rows), dtype=np.int64)
    with np.errstate(over="ignore"):
        hashed = (rows * factors[:, None]).sum(axis=0)
        wanted = (np.append(sums, size) * factors).sum()
        halves = []
        for own in (hashed[:20], hashed[20:]):
            total = np.zeros(1, dtype=np.int64)
            for value in own:
                total = np.concatenate([total, total + value])
            halves.append(total)
        order = np.argsort(halves[1])
        first, after = (np.searchsorted(halves[1][order], wanted - halves[0], side) for side in ("left", "right"))
    found = [(a, order[k]) for a in np.flatnonzero(after > first) for k in range(first[a], after[a])]
    return [[bool(half >> i & 1) for half in pair for i in range(20)] for pair in found]


@pytest.fixture(scope="module")
def forty():
    """Probabilities and labels of 40 people, half of them in a group of a Host's."""
    draw = np.random.default_rng(3)
    labels, members = (np.isin(np.arange(40), draw.permutation(40)[:20]) for _ in range(2))
    return 1 / (1 + np.exp(-draw.normal(-1.2, 1.1, 40))), labels, members


def test_sums_of_scores_and_errors_of_forty_people_name_everybody_in_a_group_of_twenty(forty):
    probabilities, labels, members = forty
    whole = Marking(0.97, (), False, 0.3, 0.5, decisions=False)
    marks, _ = whole.marks(labels, probabilities)
    [found] = sets_that_fit(marks, [mark[members].sum() for mark in marks], 20)
    assert found == members.tolist()


def test_what_is_marked_of_forty_people_fits_many_sets(forty):
    probabilities, labels, members = forty
    chosen = mark(0.97, labels, probabilities, own_groups=False, undecided=True)
    marks, _ = chosen.marks(labels, probabilities)
    assert len(sets_that_fit(marks, [mark[members].sum() for mark in marks], 20)) > 100
    assert mark(0.97, labels, probabilities, own_groups=True).labels, "of its own groups the Guest leaves nothing out"


def solved(marks, members):
    """Who a solver says is in the group: 0/1 unknowns whose sums of marks are those of the group."""
    rows = np.vstack([*marks, np.ones(len(members))])
    sums = rows @ members
    fits = LinearConstraint(rows, sums, sums)
    none = np.zeros(len(members))
    found = milp(none, constraints=fits, integrality=none + 1, bounds=Bounds(0, 1), options={"time_limit": 60.0})
    return None if found.x is None else found.x > 0.5


def test_cross_tables_with_many_features_name_a_group_of_few_records_and_are_not_asked_for():
    draw, n = np.random.default_rng(5), 240
    members = np.isin(np.arange(n), draw.permutation(n)[:24])
    features = draw.integers(0, 8, (20, n))
    marks = [(column == k).astype(np.int64) for column in features for k in range(7)]
    assert solved(marks, members).tolist() == members.tolist()
    spread, sizes = spread_of(marks), [24, n - 24]
    assert not leaves_unknown(spread, sizes)
    few = next(count for count in range(len(marks), 0, -1) if leaves_unknown(spread[:count], sizes))
    guessed = solved(marks[:few], members)
    assert few >= 14 and (guessed & members).sum() < 20


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=4, max_size=11), st.data())
def test_no_sum_tells_more_than_the_bound(values, data):
    """Against the entropy of the sum over all sets of k, counted one by one."""
    k = data.draw(st.integers(1, len(values) - 1))
    counts = Counter(map(sum, combinations(values, k))).values()
    entropy = -sum(c / comb(len(values), k) * log2(c / comb(len(values), k)) for c in counts)
    assert entropy <= disclosed_bits(spread_of([np.array(values)]), len(values), k) + 1e-9


def test_ways_by_hand():
    assert log2_divisions(4, [2]) == pytest.approx(log2(6)) and log2_divisions(6, [2, 2]) == pytest.approx(log2(90))
    assert disclosed_bits([0.0, 0.0], 100, 20) == 0.0, "who all are marked alike are not told apart"


def test_the_smallest_size_leaves_enough_unknown_and_one_less_does_not():
    spread = (0.09,) * 118  # the groups of a dozen features
    size = smallest_size(spread, 5000, 5, 20)
    assert 20 < size < 100 and log2_divisions(5000, [size]) >= disclosed_bits(spread, 5000, size) + UNKNOWN
    assert log2_divisions(5000, [size - 1]) < disclosed_bits(spread, 5000, size - 1) + UNKNOWN
    assert smallest_size((0.25,) * 3, 5000, 5, 20) == 20
    assert smallest_size(spread, 300, 5, 20) == 151, "no two groups of 300 can bear so much"


def test_of_many_marks_a_host_is_asked_for_larger_groups():
    with joined(1, n=300) as parties:
        questions = GroupQuestions(parties.joint.conversation, GUEST, parties.joint.key, np.ones(300, dtype=bool))
        draw = np.random.default_rng(2)
        for count in (1, 30, 150):
            marks = [draw.integers(0, 2, 300) for _ in range(count)]
            questions.send(marks, ["host0"])
            tables = questions.ask({"host0": ["host0_x", "host0_c"]}, 8)
            least = smallest_size(spread_of(marks), 300, 8, 20)
            assert bool(tables) == (count < 150)
            for table in tables.values():
                assert min(group.n for group in table.groups) >= least and (least > 20) == (count > 1)
                assert leaves_unknown(spread_of(marks), [group.n for group in table.groups])


@pytest.mark.parametrize("named", [0.0, 0.5])
def test_a_guest_asks_real_hosts_for_groups_that_bear_its_sums_and_is_refused_where_it_does_not(named):
    with joined(4, n=400, gaps=0.0, limits=Limits(1)) as parties:
        joint = parties.joint
        questions = GroupQuestions(joint.conversation, GUEST, joint.key, np.ones(400, dtype=bool), named)
        others = [(GUEST, f) for f in joint.features[GUEST]] * 2
        made = ContingencyTable(Asking(questions), GUEST, joint.table.columns, others, max_groups=4, bins=8)
        if not named:
            with pytest.raises(HostRefused, match=r"could name more|can bear"):
                made.tables("host0", joint.features["host0"][0])
            return
        groups, tables = made.tables("host0", joint.features["host0"][0])
        assert 20 < made._least <= min(g.n for g in groups) and 0 < len(made._bearing) < len(others) and tables


def test_sums_that_no_half_can_bear_are_not_asked_for():
    with joined(1, n=100, limits=Limits(1)) as parties:
        joint = parties.joint
        questions = GroupQuestions(joint.conversation, GUEST, joint.key, np.ones(100, dtype=bool), 0.5)
        assert questions.borne_by([1] * 40, 4) > 50 >= questions.borne_by([1] * 3, 4)
        questions.send([np.arange(100) % 2] * 40, ["host0"])
        assert questions.ask({"host0": ["host0_x"]}, 4) == {}
        assert not [kind for *_, kind, _ in parties.sent if kind == "AskGroupSums"]


def test_the_bits_of_sums_are_a_share_of_what_it_takes_to_name_a_group():
    """Of 40 people 2^37.0 sets of 20, so half of that is 18.5 bits; of 6,000 the sums of 16 marks want groups of 65."""
    assert [least_size(bits, 40, 2, 0.5) for bits in (18, 19)] == [17, 21]
    assert least_size(10**6, 40, 2, 0.0) == 1
    assert least_size(254, 6000, 5, 0.5) == 65 and 0.5 * log2_divisions(6000, [64]) < 254 <= 0.5 * log2_divisions(
        6000, [65]
    )


def test_those_without_a_value_and_rare_codes_together_are_groups_that_count():
    codes = [*"aabbccdd", *"xyz", None, None, None]
    feature = Feature(name="c", meaning="c", kind=Kind.CATEGORICAL)
    kinds = [one.kind for one in group(feature, np.array(codes, dtype=object), 4, 2).groups]
    assert kinds == ["code"] * 4 + ["missing", "rest"]
    size = least_size(214, 1000, 4, 0.5)
    others = [size] * 5  # of six groups all but one, from which its sums follow
    assert 0.5 * log2_divisions(1000, others) >= 214 * len(others)


def test_features_that_would_name_a_group_are_left_out_of_its_tables():
    with joined(4, n=60, gaps=0.0) as parties:
        joint, rows = parties.joint, np.ones(60, dtype=bool)
        questions = GroupQuestions(joint.conversation, GUEST, joint.key, rows)
        others = [(GUEST, f) for f in joint.features[GUEST]] * 9
        feature = joint.features["host0"][0]
        made = ContingencyTable(Asking(questions), GUEST, joint.table.columns, others, max_groups=2, bins=2)
        groups, _ = made.tables("host0", feature)
        borne = made._borne(groups)
        assert 0 < len(borne) < len(made._own)
