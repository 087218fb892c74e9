"""Time left, as a person is told it, against courses of real jobs (:mod:`tests.jobs.record`): when reports came, and when the job ended.

``courses.json`` has them by name; a report is (seconds, share, the share that the next one was expected to tell). Of a kind that was done
several times, a later run knows how the one before it went. What is busy was recorded by the clock beside other work that came and went;
"processor" is in seconds of processor time. Quiet ones were recorded while nothing else was at work but idle servers. "Weighed as now" are
reports whose shares were worked out again by later units. How often what is said is wrong or missing is a bound that must not rise, not an
aim.
"""

import json
from pathlib import Path

import pytest

from backend.jobs.pace import LESS, ROUND, SOON, Pace, rounded

COURSES = json.loads((Path(__file__).parent / "courses.json").read_text())
FROM, LOOKS = 0.1, 200


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def told(run, clock, pace, speed=1.0):
    """(seconds left, seconds to go) from a tenth of the time on, on a machine of another speed where wanted."""
    began, whole, reports, looks = clock.now, run["seconds"] * speed, list(run["reports"]), []
    if run["once"]:
        pace.once()
    for look in range(1, LOOKS + 1):
        until = whole * look / LOOKS
        while reports and reports[0][0] * speed <= until:
            seconds, share, following = reports.pop(0)
            clock.now = began + seconds * speed
            pace.reached(share, following)
        clock.now = began + until
        if FROM <= look / LOOKS < 1:
            looks.append((pace.left(), whole - until))
    return looks


def is_wrong(left, to_go):
    """Whether what is said of `left` seconds does not hold."""
    return to_go >= LESS if left < SOON else abs(rounded(left) - to_go) > to_go / 3


def judged(course, speed=1.0):
    """Share of looks at which something wrong is said, and at which nothing is, run by run; each but the first knows the one before."""
    clock, before, found = Clock(), {}, []
    for run in course["runs"]:
        pace = Pace(clock, weighed=course["weighed"])
        pace.expect_course(before)
        looks = told(run, clock, pace, speed)
        before |= pace.course()
        said = [(left, to_go) for left, to_go in looks if left is not None]
        found.append((sum(is_wrong(*one) for one in said) / len(looks), 1 - len(said) / len(looks)))
    return found


@pytest.mark.parametrize("speed", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("name", COURSES)
def test_what_is_said_is_right_within_a_third_and_not_by_silence(name, speed):
    course = COURSES[name]
    bounds = zip(course["wrong_at_most"], course["silent_at_most"], strict=True)
    for (wrong, silent), (most_wrong, most_silent) in zip(judged(course, speed), bounds, strict=True):
        assert wrong <= most_wrong and silent <= most_silent


def test_a_pace_of_twice_the_true_one_is_wrong_and_one_that_says_soon_too_soon():
    assert is_wrong(40.0, 20.0) and is_wrong(40.0, 80.0) and not is_wrong(40.0, 45.0)
    assert is_wrong(7.0, 10.0) and not is_wrong(7.0, 0.5) and is_wrong(8.0, 0.5)


def test_what_is_said_is_coarse_and_within_a_quarter_of_what_is_known():
    assert [rounded(seconds) for seconds in (7, 8, 9, 13, 47, 48, 118, 400)] == [10, 8, 8, 12, 40, 50, 120, 360]
    left = SOON
    while left < 2 * ROUND[-1]:
        assert abs(rounded(left) - left) <= left / 4
        left *= 1.01
