"""Time left: within a third from a tenth of the work on, counting down between reports; a simulated clock."""

import math
import threading
import time
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import Cancelled, ParameterError
from backend.jobs import Job, work
from backend.jobs.pace import EARLIEST, Pace


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
        if done >= 0.1 * whole + 2 * second + 3 * extra:
            assert left is not None
            assert abs(left - to_go) <= to_go / 3 + 1.5 * second

    follow(pieces, setup, look)


def test_a_step_whose_size_is_known_counts_down_and_one_that_is_late_makes_the_whole_longer():
    """After 10 of 100 seconds a Host begins with 60 of them, of which nobody hears anything; it takes 90."""
    clock, seen = Clock(), []
    pace = Pace(clock)
    pace.reached(0.0)
    for done in (0.05, 0.1):
        clock.now += 5.0
        pace.reached(done, 0.7)
    for _ in range(90):
        clock.now += 1.0
        seen.append(pace.left())
    assert seen[:60] == pytest.approx([90.0 - n for n in range(1, 61)])
    assert seen[60:77] == pytest.approx([(10 + n) / 0.7 - (10 + n) for n in range(61, 78)])
    assert seen[77:] == [None] * 13  # a quarter later than expected, nobody knows
    pace.reached(0.7)
    assert pace.left() == pytest.approx(100 / 0.7 * 0.3)


def test_where_no_step_is_known_twice_the_longest_so_far_may_come_without_a_report():
    clock = Clock()
    pace = Pace(clock)
    pace.reached(0.0)
    for done in range(1, 5):
        clock.now += 10.0
        pace.reached(0.1 * done)
    clock.now += 20.0
    assert pace.left() == pytest.approx(40.0)
    clock.now += 10.0
    assert pace.left() == pytest.approx(70 / 0.6 - 70)


def test_nothing_is_said_before_a_pace_is_known():
    clock = Clock()
    pace = Pace(clock)
    clock.now += 5
    assert pace.left() is None
    pace.reached(0.09)
    assert pace.left() is None
    pace.reached(0.1)
    assert pace.left() == pytest.approx(45.0)


@pytest.mark.parametrize(
    "later", [[5.0] * 5, [20.0] * 5, [40.0, 10.0, 10.0, 10.0]], ids=["faster", "slower", "faster lately"]
)
def test_nothing_is_said_where_a_later_part_of_the_time_went_at_another_speed(later):
    clock = Clock()
    pace = Pace(clock)
    run_of(clock, pace, [(40.0, 0.1), (40.0, 0.2), (40.0, 0.3)])
    assert pace.left() == pytest.approx(280.0)
    run_of(clock, pace, [(seconds, 0.3 + 0.1 * n) for n, seconds in enumerate(later, 1)])
    assert pace.left() is None


def test_a_share_that_goes_back_changes_nothing():
    clock = Clock()
    pace = Pace(clock)
    clock.now += 1
    pace.reached(0.5)
    pace.reached(0.2)
    assert pace.share == 0.5


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


def test_a_part_that_begins_again_leaves_what_came_before_it_and_the_whole_begins_at_nothing():
    def run(job):
        for start, done in ((0.0, 0.0), (0.5, 0.75)):
            with work.part(start, start + 0.5):
                work.reached(0.5)
                job.begin_again()
                assert job.pace.share == done

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


def run_of(clock, pace, course, speed=1.0, at=lambda seconds, left: None):
    """Let work go by: shares with the seconds until each is reached; `at` is called every tenth of a second of usual speed."""
    passed = 0.0
    for seconds, share in course:
        ticks = round(seconds * 10)
        for _ in range(ticks):
            clock.now += 0.1 * speed
            passed += 0.1 * speed
            at(passed, pace.left())
        pace.reached(share)


# what every kind of job did in a real run: seconds until each share is reported; the shares do not follow the time
COURSES = {
    "evidence: sums by group": [(0.7, 0.3), (5.0, 0.6), (11.0, 0.7), (11.0, 0.8), (11.5, 0.95), (2.3, 1.0)],
    "monitoring: sums a feature at a time": [
        *[(0.6, 0.49), (0.6, 0.58), (0.7, 0.61), (0.8, 0.7), (1.7, 0.73), (0.8, 0.77), (0.7, 0.81)],
        *[(1.0, 0.86), (0.6, 0.89), (0.5, 0.93), (0.5, 0.97), (0.3, 1.0)],
    ],
    "mean contributions: the Hosts come last": [(3.2, 0.1), (5.0, 0.33), (12.0, 0.99), (12.0, 1.0)],
    "leak meter: each width takes longer": [(2.5, 0.26), (3.7, 0.6), (6.3, 0.82), (6.2, 0.91), (6.3, 1.0)],
    "training: ids first, then trees": [(5.6, 0.37), *[(2.5, 0.37 + 0.05 * n) for n in range(1, 11)], (3.5, 1.0)],
    "scoring: a first batch that takes most": [(12.7, 0.18), (86.0, 0.47), (15.0, 0.68), (15.0, 1.0)],
}


@pytest.mark.parametrize("speed", [0.7, 1.0, 1.6])
@pytest.mark.parametrize("course", COURSES.values(), ids=list(COURSES))
def test_from_the_second_time_on_time_left_is_right_within_a_third(course, speed):
    """At the speed of the first time from a tenth of the time on; at another one from the first report after that on."""
    clock, before = Clock(), Clock()
    first, second = Pace(before, weighed=False), Pace(clock, weighed=False)
    run_of(before, first, course)
    second.expect_course(first.course())
    whole = speed * sum(seconds for seconds, _ in course)
    ends = [speed * sum(seconds for seconds, _ in course[: n + 1]) for n in range(len(course))]
    known = 0.1 * whole if speed == 1.0 else next(end for end in ends if end >= 0.1 * whole)
    seen = []

    def look(passed, left):
        if left is not None and known + 0.1 < passed < whole - 0.05 * whole:
            seen.append((passed, left, whole - passed))

    run_of(clock, second, course, speed, look)
    wrong = [one for one in seen if abs(one[1] - one[2]) > max(one[2] / 3, 0.04 * whole)]
    assert len(seen) > 5 and not wrong


def test_the_first_time_work_of_unlike_parts_says_nothing():
    clock, seen = Clock(), []
    run_of(
        clock,
        Pace(clock, weighed=False),
        COURSES["leak meter: each width takes longer"],
        at=lambda *at: seen.append(at[1]),
    )
    assert set(seen) == {None}


def test_work_of_another_course_is_not_compared():
    clock = Clock()
    pace = Pace(clock, weighed=False, course="rlwe")
    pace.expect_course({**Pace(clock, weighed=False, course="paillier").course(), "A1": 3.0})
    run_of(clock, pace, [(5.0, 0.25), (5.0, 0.5), (5.0, 0.75)])
    assert pace.left() is None


def test_what_is_weighed_is_foretold_the_first_time_and_like_all_else_as_the_last_time_afterwards():
    clock = Clock()
    before = Pace(clock)
    run_of(clock, before, [(1.0, 0.5), (9.0, 1.0)])
    first, second = Pace(clock), Pace(clock)
    second.expect_course(before.course())
    run_of(clock, first, [(1.2, 0.5)])
    assert first.left() == pytest.approx(1.2) and second.left() == pytest.approx(1.2 * 9, rel=0.2)


def test_the_seconds_of_the_last_time_are_said_from_the_start():
    clock = Clock()
    before = Pace(clock, weighed=False)
    run_of(clock, before, [(30.0, 1.0)])
    pace = Pace(clock, weighed=False)
    pace.expect_course(before.course())
    assert pace.left() == pytest.approx(30.0)
    clock.now += 10.0
    assert pace.left() == pytest.approx(20.0)


def test_work_in_which_things_are_made_once_goes_as_no_other():
    """Neither does the last time foretell it, nor it the next."""
    clock = Clock()
    before = Pace(clock)
    run_of(clock, before, [(1.0, 0.5), (9.0, 1.0)])
    pace = Pace(clock)
    pace.expect_course(before.course())
    with work.watched(lambda: None, pace.reached, pace.once):
        work.once()
    run_of(clock, pace, [(5.0, 0.5)])
    assert pace.left() == pytest.approx(5.0) and pace.course() == {}


# what sums by group were planned to take, part by part: scores, alignment, marks of a Host, pairs of the Guest, sums
PLANS = {
    "disparity of 60,000 records": (7.0, 60.0, 0.0, 336.0, 23.0),
    "means of 20,000": (3.0, 60.0, 0.0, 42.0, 6.0),
    "proxies of a Host's feature": (0.0, 120.0, 80.0, 280.0, 90.0),
}
SPEEDS = ((1.0, 1.0, 1.0, 1.0, 1.0), (2.5, 2.3, 2.6, 2.4, 2.5), (0.5, 0.4, 0.5, 0.45, 0.5), (1.2, 0.9, 1.0, 1.1, 1.2))


@pytest.mark.parametrize("speeds", SPEEDS)
@pytest.mark.parametrize("planned", PLANS.values(), ids=list(PLANS))
def test_the_first_time_a_plan_of_units_and_their_cost_is_right_within_a_third(planned, speeds):
    """On machines of other speed, too, and where the parts' speeds differ; from a tenth of the work on."""
    clock, seen = Clock(), []
    pace = Pace(clock)
    ends, course = [end / sum(planned) for end in accumulate(planned)], []
    for part, (seconds, speed) in enumerate(zip(planned, speeds, strict=True)):
        begins = ends[part - 1] if part else 0.0
        pieces = 10 if part < len(planned) - 1 else 1  # a Host adds up and says nothing meanwhile
        for piece in range(1, pieces + 1):
            course.append((round(seconds * speed / pieces, 1), begins + (ends[part] - begins) * piece / pieces))
    whole = sum(seconds for seconds, _ in course)

    def look(passed, left):
        if pace.share >= EARLIEST and passed < 0.95 * whole:
            seen.append((passed, left, whole - passed))

    run_of(clock, pace, course, at=look)
    said = [(left, to_go) for _, left, to_go in seen if left is not None]
    assert not [one for one in said if abs(one[0] - one[1]) > max(one[1] / 3, 0.05 * whole)]
    assert len(said) > 0.9 * len(seen)


def test_parts_of_a_plan_that_go_on_beside_each_other_add_up_and_say_what_comes_next():
    shares = []

    def run(job):
        plan = work.Plan({"encrypt": 10.0, "mask": 30.0})
        plan.reached("encrypt", 5.0)
        plan.reached("mask", 0.0, 30.0)
        shares.append((job.pace.share, job.pace._following))
        plan.reached("mask", 15.0)
        plan.reached("encrypt", 10.0)
        shares.append((job.pace.share, job.pace._following))

    Job(run, 0).start().wait(5)
    assert shares == [(pytest.approx(5 / 40), pytest.approx(35 / 40)), (pytest.approx(25 / 40), None)]


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
