"""What is made once before the rest of the work goes at a pace of its own, and foretells nothing of it."""

from backend.jobs import work
from backend.jobs.pace import Pace
from tests.jobs.test_courses import Clock


def test_nothing_is_foretold_before_the_work_has_settled_and_nothing_by_what_came_before():
    clock = Clock()
    pace = Pace(clock)
    with work.watched(lambda: None, pace.reached, pace.settles), work.part(0.0, 0.5):
        plan = work.Plan({"once": 1.0, "rest": 3.0})
        plan.settles_after("once")
        for tenth in range(1, 11):  # of what is made once, at a tenth of the pace
            clock.now += 10.0
            plan.reached("once", tenth / 10)
            assert pace.left() is None
        clock.now += 3.0
        plan.reached("rest", 0.9)
        # 0.1125 of the whole in 3 seconds, and 0.7625 of it to come
        assert abs(pace.left() - 0.7625 * 3.0 / 0.1125) < 1e-9
