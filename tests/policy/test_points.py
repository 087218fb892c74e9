"""Points, worked by hand: 600 at 50 to 1, 20 double the odds."""

import pytest

from backend.errors import ParameterError
from backend.policy.points import PointScale

SCALE = PointScale(600, 50.0, 20)


@pytest.mark.parametrize(
    ("probability", "points"),
    [
        (1 / 51, 600),  # odds 50
        (1 / 101, 620),  # odds 100
        (1 / 201, 640),  # odds 200
        (1 / 26, 580),  # odds 25
        (0.5, 487),  # odds 1: 600 - 20 * log2(50) = 600 - 112.877
        (0.2, 527),  # odds 4: 487.123 + 40
        (0.8, 447),  # odds 1/4: 487.123 - 40
    ],
)
def test_points_follow_the_odds(probability: float, points: int) -> None:
    assert SCALE.points(probability) == points


def test_halves_are_rounded_up() -> None:
    two = PointScale(600, 1.0, 1)  # points = 600 + log2(odds)
    assert two.points(1 / (1 + 2**0.5)) == 601  # 600.5
    assert two.points(1 / (1 + 2**-0.5)) == 600  # 599.5


def test_more_points_are_a_lower_risk_and_certainty_has_points_too() -> None:
    points = [SCALE.points(share / 100) for share in range(101)]
    assert points == sorted(points, reverse=True)
    assert points[0] == SCALE.points(1e-6) and points[-1] == SCALE.points(1 - 1e-6)


def test_a_probability_is_found_again_from_its_points() -> None:
    for points in (400, 487, 600, 655):
        assert SCALE.points(SCALE.probability(points)) == points
    assert SCALE.probability(600) == pytest.approx(1 / 51)


@pytest.mark.parametrize(
    ("scale", "code"),
    [
        (PointScale(600, 0.0, 20), "base_odds_out_of_range"),
        (PointScale(600, float("nan"), 20), "base_odds_out_of_range"),
        (PointScale(600, 50, 0), "points_out_of_range"),
        (PointScale(-1, 50, 20), "points_out_of_range"),
    ],
)
def test_a_scale_outside_its_range_is_refused(scale: PointScale, code: str) -> None:
    with pytest.raises(ParameterError) as error:
        scale.check()
    assert error.value.code == code
