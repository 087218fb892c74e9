"""Time left: within a third from a tenth of the work on, counting down between reports; a simulated clock."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend import work
from backend.errors import Cancelled
from backend.jobs import Job, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def follow(pieces, setup, look):
    """Simulate work of these seconds a piece, each reported at its end; calls look(done seconds, seconds to go, left) often."""
    clock = Clock()
    pace = Pace(clock)
    whole = sum(pieces)
    clock.now += setup
    pace.reached(0.0)
    done = 0.0
    for number, seconds in enumerate(pieces, start=1):
        for tick in range(5):
            clock.now += seconds / 5
            done += seconds / 5
            if tick == 4:
                pace.reached(number / len(pieces))
            look(done, whole - done, pace.left())
    return pace


@settings(deadline=None, max_examples=50)
@given(
    n=st.integers(10, 200),
    second=st.floats(0.01, 60.0),
    uneven=st.lists(st.floats(-0.15, 0.15), min_size=1, max_size=7),
    setup=st.floats(0.0, 100.0),
    first=st.floats(1.0, 3.0),
)
def test_time_left_is_right_within_a_third_from_a_tenth_of_the_work_on(n, second, uneven, setup, first):
    pieces = [second * (1 + uneven[i % len(uneven)]) for i in range(n)]
    extra = second * (first - 1) if n >= 40 else 0.0  # a slow first piece counts for little among many
    pieces[0] += extra
    whole = sum(pieces)

    def look(done, to_go, left):
        if done >= 0.1 * whole + 2 * second + extra:
            assert left is not None
            assert abs(left - to_go) <= to_go / 3 + 1.5 * second

    follow(pieces, setup, look)


def test_two_chunks_whose_stages_are_weighed_count_down_and_never_grow_with_the_time_that_passed():
    """3,000 rows in two batches, of which nobody heard anything for seven seconds each."""
    clock = Clock()
    pace = Pace(clock)
    pace.reached(0.0)
    began, seen = clock.now, []
    for batch in range(2):
        for piece in range(1, 11):
            clock.now += 1.0
            pace.reached(0.5 * batch + 0.03 * piece)
        for _ in range(7):
            clock.now += 1.0
            seen.append((34 - (clock.now - began), pace.left()))
        pace.reached(0.5 * (batch + 1))
    assert all(abs(left - to_go) <= max(to_go / 3, 1.0) for to_go, left in seen)
    assert all(later <= before + 0.1 for (_, before), (_, later) in pairwise(seen))
    assert pace.share == 1.0 and pace.left() == 0.0


def test_nothing_is_said_before_a_pace_is_known():
    clock = Clock()
    pace = Pace(clock)
    clock.now += 5
    assert pace.left() is None
    pace.reached(0.01)
    assert pace.left() is None


def test_a_share_that_goes_back_changes_nothing():
    clock = Clock()
    pace = Pace(clock)
    clock.now += 1
    pace.reached(0.5)
    pace.reached(0.2)
    assert pace.share == 0.5


def test_what_took_a_minute_the_last_time_counts_down_from_it_and_then_admits_that_it_does_not_know():
    clock = Clock()
    pace = Pace(clock)
    pace.expect(60.0)
    clock.now += 45
    assert pace.left() == pytest.approx(15.0)
    clock.now += 20
    assert pace.left() is None


def test_pieces_of_equal_weight_are_counted_and_a_stage_that_counts_again_takes_nothing_back():
    clock = Clock()
    job = Job(lambda job: None, 10, clock)
    for done in (0, 4, 2):
        clock.now += 1
        job.at("mask", "host", done)
    assert (job.done, job.through, job.pace.share) == (2, 4, 0.4)


def test_weighed_work_counts_instead_of_pieces_and_parts_are_parts_of_parts():
    shares = []

    def run(job):
        with work.part(0.0, 0.5), work.part(0.5, 1.0):
            work.reached(0.5)
            shares.append(job.pace.share)
            job.at("tree", "", 9)
        shares.append(job.pace.share)
        with work.part(0.5, 1.0):
            work.reached(0.2)
        shares.append(job.pace.share)

    Job(run, 10).start().wait(5)
    assert shares == [pytest.approx(0.375), pytest.approx(0.5), pytest.approx(1.0)]


def test_work_that_nobody_follows_reports_to_nobody():
    work.check()
    work.reached(0.5)
    with work.part(0.0, 1.0):
        work.check()


def test_a_stopped_job_ends_at_the_next_check_anywhere_in_its_thread():
    def run(job):
        job.cancel()
        work.check()
        raise AssertionError

    job = Job(run, 1).start().wait(5)
    assert job.state == "cancelled" and isinstance(job.failure, Cancelled)


def test_whoever_waits_for_the_end_is_told_once_it_has_come_and_at_once_afterwards():
    told = []
    job = Job(lambda job: 1, 1)
    job.then(lambda: told.append(job.state))
    job.start().wait(5)
    job.then(lambda: told.append("later"))
    assert told == ["done", "later"] and math.isfinite(job.seconds_ago)
