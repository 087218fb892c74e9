"""The time left as a person reads it, against courses of real jobs (:mod:`tests.jobs.record`): when shares were reported.

``courses.json`` holds the runs of each kind by name. A later run knows how long the one before it took. "Busy" and "bursts" were recorded
beside other work that came and went, "processor" is in seconds of processor time.
"""

import json
from pathlib import Path

import pytest

from backend.jobs.eta import LESS, SHOWN_SECONDS, SOON, Eta, rounded

COURSES = json.loads((Path(__file__).parent / "courses.json").read_text())
FIRST_LOOK = 0.1  # of the time
LOOKS = 200


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def looks_at(run, clock, eta, speed):
    """Return (seconds left, seconds to go) at even times, on a machine of another speed."""
    began = clock.now
    whole = run["seconds"] * speed
    reports = [(seconds * speed, share) for seconds, share in run["reports"]]
    looks = []
    for look in range(1, LOOKS + 1):
        until = whole * look / LOOKS
        while reports and reports[0][0] <= until:
            seconds, share = reports.pop(0)
            clock.now = began + seconds
            eta.reached(share)
        clock.now = began + until
        if FIRST_LOOK <= look / LOOKS < 1:
            looks.append((eta.left(), whole - until))
    return looks


def is_wrong(left, to_go):
    """Whether what is said of `left` seconds does not hold."""
    if left < SOON:
        return to_go >= LESS
    return abs(rounded(left) - to_go) > to_go / 3


def judged(runs, speed=1.0):
    """Return for each run the share of looks at which something wrong is said, and the share at which nothing is said."""
    clock = Clock()
    last_run_seconds = 0.0
    shares = []
    for run in runs:
        eta = Eta(clock)
        eta.last_run_seconds = last_run_seconds
        looks = looks_at(run, clock, eta, speed)
        last_run_seconds = run["seconds"] * speed
        said = [look for look in looks if look[0] is not None]
        wrong = sum(is_wrong(*look) for look in said)
        shares.append((wrong / len(looks), 1 - len(said) / len(looks)))
    return shares


# speed of the machine → share of what is said that may be wrong; a slower one says more than "less than 10 s"
@pytest.mark.parametrize(("speed", "wrong_at_most"), [(0.4, 0.07), (1.0, 0.11), (3.0, 0.20)])
def test_what_is_said_of_recorded_jobs_is_seldom_wrong_and_seldom_nothing(speed, wrong_at_most):
    shares = [one for runs in COURSES.values() for one in judged(runs, speed)]
    wrong = sum(one for one, _ in shares)
    silent = sum(one for _, one in shares)
    assert wrong <= wrong_at_most * (len(shares) - silent)
    assert silent <= 0.33 * len(shares)


def test_twice_the_true_time_is_wrong_and_soon_holds_for_ten_seconds():
    assert is_wrong(40.0, 20.0) and is_wrong(40.0, 80.0) and not is_wrong(40.0, 45.0)
    assert is_wrong(7.0, 10.0) and not is_wrong(7.0, 0.5) and is_wrong(8.0, 0.5)


def test_what_is_said_is_coarse_and_within_a_quarter_of_what_is_known():
    assert [rounded(seconds) for seconds in (7, 8, 9, 13, 47, 48, 118, 400)] == [10, 8, 8, 12, 40, 50, 120, 360]
    left = SOON
    while left < 2 * SHOWN_SECONDS[-1]:
        assert abs(rounded(left) - left) <= left / 4
        left *= 1.01
