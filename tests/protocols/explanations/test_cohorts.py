"""Groups whose contributions are added up: whatever is asked, all answers together tell of no few people."""

from contextlib import suppress
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import SecurityError
from backend.protocols.explanations import cohort
from backend.protocols.explanations.cohort import Cohorts


def test_small_groups_and_groups_that_differ_by_a_few_people_are_refused(tmp_path):
    groups, people = Cohorts(tmp_path), [f"p{i}" for i in range(300)]
    with pytest.raises(SecurityError, match="of 49 people"):
        groups.admit("m", people[:49])
    groups.admit("m", people[:100])
    groups.admit("m", people[:100][::-1])  # the same people: nothing new
    for other, apart in ((people[:99], 1), (people[:101], 1), (people[20:160], 20), (people[60:120], 20)):
        with pytest.raises(SecurityError, match=f"set {apart} people apart"):
            groups.admit("m", other)
    groups.admit("m", people[50:150])
    groups.admit("m", people[:50] + people[100:250])  # of three known parts the first and the last, and 100 new people
    groups.admit("another model", people[:99])
    again = Cohorts(tmp_path)  # after a restart
    with pytest.raises(SecurityError, match="set 1 people apart"):
        again.admit("m", people[:99])
    assert "p5" not in (tmp_path / "cohorts.json").read_text()


def test_what_another_process_of_the_host_answered_counts_too(tmp_path):
    dashboard, shell, people = Cohorts(tmp_path), Cohorts(tmp_path), [f"p{i}" for i in range(300)]
    dashboard.admit("m", people[:60])
    shell.admit("m", people[:100][60:] + people[100:160])
    with pytest.raises(SecurityError, match="set 1 people apart"):
        dashboard.admit("m", people[61:160])
    with pytest.raises(SecurityError, match="set 1 people apart"):
        shell.admit("m", people[:59])


def test_three_groups_of_which_any_two_differ_by_many_people_single_nobody_out():
    groups, people = Cohorts(), [f"p{i}" for i in range(200)]
    groups.admit("m", people[:100])
    groups.admit("m", people[100:])
    with pytest.raises(SecurityError, match="set 1 people apart"):
        groups.admit("m", people[1:])  # the first two together less this one: p0


@given(st.lists(st.sets(st.integers(0, 13), min_size=3), min_size=2, max_size=8))
def test_no_sum_over_a_few_people_follows_from_all_answers_together(asked):
    """Linear algebra: nobody's and no two people's indicator lies in the span of the admitted groups' indicators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohort, "MIN_PEOPLE", 3)
        groups, rows = Cohorts(), []
        for members in asked:
            with suppress(SecurityError):
                groups.admit("m", [str(i) for i in members])
                rows.append([float(i in members) for i in range(14)])
    known = np.array(rows)
    rank = np.linalg.matrix_rank(known)
    for few in (*combinations(range(14), 1), *combinations(range(14), 2)):
        wanted = np.isin(np.arange(14), few).astype(float)
        assert np.linalg.matrix_rank(np.vstack([known, wanted])) == rank + 1


def test_a_list_of_groups_that_cannot_be_read_or_written_lets_no_group_through(tmp_path):
    people = [f"p{i}" for i in range(60)]
    (tmp_path / "cohorts.json").write_text("{")
    damaged = Cohorts(tmp_path)
    for _ in range(2):
        with pytest.raises(SecurityError, match="cannot read which groups"):
            damaged.admit("m", people)
    (tmp_path / "file").write_text("")
    unwritable = Cohorts(tmp_path / "file")
    for _ in range(2):
        with pytest.raises(SecurityError, match="cannot note which groups"):
            unwritable.admit("m", people)
