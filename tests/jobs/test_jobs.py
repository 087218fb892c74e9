"""Jobs: the time left by a simulated clock, shares of the work, stopping, and what is made beside."""

import math
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import Cancelled, ParameterError
from backend.jobs import Job, work
from backend.jobs.eta import Eta


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def follow(pieces, setup, look):
    """Simulate work of these seconds a piece, each reported at its end; calls look(done seconds, seconds to go, left) often."""
    clock = Clock()
    eta = Eta(clock)
    whole = sum(pieces)
    clock.now += setup
    eta.reached(0.0)
    done = 0.0
    for number, seconds in enumerate(pieces, start=1):
        for tick in range(5):
            clock.now += seconds / 5
            done += seconds / 5
            if tick == 4:
                eta.reached(number / len(pieces))
            look(done, whole - done, eta.left())


@settings(deadline=None, max_examples=50)
@given(
    n=st.integers(10, 200),
    second=st.floats(0.01, 60.0),
    uneven=st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=7),
    setup=st.floats(0.0, 100.0),
)
def test_time_left_of_even_pieces_is_right_within_a_third_if_it_is_said(n, second, uneven, setup):
    pieces = [second * (1 + uneven[i % len(uneven)]) for i in range(n)]
    said = []

    def look(done, to_go, left):
        if left is not None:
            said.append(left)
            assert abs(left - to_go) <= to_go / 3 + 1.5 * second

    follow(pieces, setup, look)
    assert len(said) > 2.5 * n  # of five looks a piece


def run_of(clock, eta, course):
    """Let work go by: seconds until each share is reached."""
    for seconds, share in course:
        clock.now += seconds
        eta.reached(share)


def test_nothing_is_said_before_a_pace_is_known():
    clock = Clock()
    eta = Eta(clock)
    clock.now += 5
    assert eta.left() is None
    eta.reached(0.09)
    assert eta.left() is None
    eta.reached(0.1)
    assert eta.left() == pytest.approx(45.0)


@pytest.mark.parametrize("later", [[10.0] * 5, [80.0] * 3], ids=["faster", "slower"])
def test_nothing_is_said_of_an_unsteady_pace(later):
    clock = Clock()
    eta = Eta(clock)
    run_of(clock, eta, [(40.0, 0.1), (40.0, 0.2), (40.0, 0.3)])
    assert eta.left() == pytest.approx(280.0)
    run_of(clock, eta, [(seconds, 0.3 + 0.1 * n) for n, seconds in enumerate(later, 1)])
    assert eta.left() is None


def test_nothing_is_said_if_a_report_is_overdue():
    clock = Clock()
    eta = Eta(clock)
    run_of(clock, eta, [(10.0, 0.1), (10.0, 0.2)])
    clock.now += 20.0
    assert eta.left() == pytest.approx(60.0)
    clock.now += 10.0
    assert eta.left() is None


def test_the_seconds_of_the_last_run_count_down_from_the_start():
    clock = Clock()
    eta = Eta(clock)
    eta.last_run_seconds = 100.0
    assert eta.left() == pytest.approx(100.0)
    clock.now += 10.0
    assert eta.left() == pytest.approx(90.0)


def test_the_last_run_counts_for_little_once_the_work_has_a_pace_of_its_own():
    clock = Clock()
    eta = Eta(clock)
    eta.last_run_seconds = 110.0
    run_of(clock, eta, [(10.0, 0.1), (10.0, 0.2), (10.0, 0.3), (10.0, 0.4), (10.0, 0.5)])
    # (0.05 × 110 + 50) / 0.55 - 50
    assert eta.left() == pytest.approx(50.909, abs=0.001)


def test_a_last_run_of_another_length_makes_the_pace_unsteady():
    clock = Clock()
    eta = Eta(clock)
    eta.last_run_seconds = 1000.0
    run_of(clock, eta, [(10.0, 0.1)])
    assert eta.left() is None


def test_a_share_that_goes_back_changes_nothing():
    clock = Clock()
    eta = Eta(clock)
    clock.now += 1
    eta.reached(0.5)
    eta.reached(0.2)
    assert eta.share == 0.5


def test_pieces_of_equal_weight_are_counted_and_a_stage_that_counts_again_takes_nothing_back():
    clock = Clock()
    job = Job(lambda job: None, 10, clock)
    for done in (0, 4, 2):
        clock.now += 1
        job.at("mask", "host", done)
    assert (job.done, job.through, job.eta.share) == (2, 4, 0.4)


def test_shares_that_the_work_reports_count_instead_of_pieces_and_parts_are_parts_of_parts():
    shares = []

    def run(job):
        with work.part(0.0, 0.5), work.part(0.5, 1.0):
            work.reached(0.5)
            shares.append(job.eta.share)
            job.at("tree", "", 9)
        shares.append(job.eta.share)
        with work.part(0.5, 1.0):
            work.reached(0.2)
        shares.append(job.eta.share)

    Job(run, 10).start().wait(5)
    assert shares == [pytest.approx(0.375), pytest.approx(0.5), pytest.approx(1.0)]


def test_a_part_that_begins_again_leaves_what_came_before_it_and_the_whole_begins_at_nothing():
    def run(job):
        for start, done in ((0.0, 0.0), (0.5, 0.75)):
            with work.part(start, start + 0.5):
                work.reached(0.5)
                job.begin_again()
                assert job.eta.share == done

    Job(run, 1).start().get()


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


def test_what_cannot_look_is_made_beside_the_work_which_ends_within_a_second_once_stopped():
    made, go = threading.Event(), threading.Event()

    def long():
        go.wait(60)
        made.set()

    job = Job(lambda job: work.beside(long), 1).start()
    while job.state != "running":
        time.sleep(0.01)
    asked = time.monotonic()
    job.cancel()
    assert job.wait(30).state == "cancelled" and time.monotonic() - asked < 1 and not made.is_set()
    go.set()
    assert made.wait(30)


def test_what_is_made_beside_the_work_comes_back_or_raises_there():
    def refuses():
        raise ParameterError("No.")

    assert Job(lambda job: work.beside(lambda: 7), 1).start().get() == 7 == work.beside(lambda: 7)
    with pytest.raises(ParameterError, match=r"^No\.$"):
        Job(lambda job: work.beside(refuses), 1).start().get()
