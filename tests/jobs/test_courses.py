"""Time left against courses of real jobs (:mod:`tests.jobs.record`): when each report came, and when the job ended.

``courses.json`` has them by name: a report is (seconds, share, the share that the next one was expected to tell). What is busy was recorded
by the clock beside other work that came and went; the others in seconds of processor time, which other work does not change. "Weighed as
now" are reports of 0.10.0 whose shares were worked out again by today's units. Quiet ones were recorded while nothing else was at work but
idle servers. How often the figure is wrong is a bound that must not rise, not an aim.
"""

import json
from pathlib import Path

import pytest

from backend.jobs.pace import Pace

COURSES = json.loads((Path(__file__).parent / "courses.json").read_text())
FROM, TO, LOOKS = 0.1, 0.95, 200


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def said(course, speed=1.0):
    """(seconds said, seconds to go) from a tenth of the time on, on a machine of another speed where wanted."""
    clock = Clock()
    pace = Pace(clock)
    pace.settles(course.get("settles", 0.0))
    whole, reports = course["seconds"] * speed, list(course["reports"])
    told = []
    for look in range(1, LOOKS + 1):
        until = whole * look / LOOKS
        while reports and reports[0][0] * speed <= until:
            seconds, share, following = reports.pop(0)
            clock.now = seconds * speed
            pace.reached(share, following)
        clock.now = until
        if FROM <= look / LOOKS <= TO:
            told.append((pace.left(), whole - until))
    return told


@pytest.mark.parametrize("speed", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("name", COURSES)
def test_what_is_said_the_first_time_is_right_within_a_third_and_not_by_silence(name, speed):
    course, told = COURSES[name], said(COURSES[name], speed)
    silent = sum(left is None for left, _ in told) / len(told)
    # or within a fortieth of the whole, in the last tenth
    wrong = [
        left is not None and abs(left - to_go) > max(to_go / 3, course["seconds"] * speed / 40) for left, to_go in told
    ]
    assert sum(wrong) / len(told) <= course["wrong_at_most"] and silent <= course["silent_at_most"]
