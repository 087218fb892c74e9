"""Lines over two axes: which points are drawn, which numbers an axis names, what is said around a place."""

from typing import Any

import pytest

from app.panels import charts, lines
from app.panels.lines import Axis, Bars, Line


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "dark", lambda: False)


def drawn(*given: Line, **more: Any) -> dict[str, Any]:
    """The specification of a drawing over 0 to 10 across and 0 to 2 upwards."""
    across = Axis("a < b", 0, 10, {0: "0", 10: "'ten'"})
    up = Axis("high", 0, 2, {0: "0", 2: "2"})
    return lines.drawing(given, across, up, "what it says", **more).spec


def marks(spec: dict[str, Any], kind: str) -> list[list[dict[str, Any]]]:
    """The values of each layer with marks of a kind, those of the legend left out."""
    return [
        layer["data"]["values"] for layer in spec["layer"] if layer["mark"]["type"] == kind and "x" in layer["encoding"]
    ]


def test_a_line_has_its_points_in_their_order_but_those_of_which_nothing_is_known() -> None:
    [points] = marks(drawn(Line([5, 0, 10, 7], [1, 0, 2, float("nan")])), "line")
    assert [(point["order"], point["x"], point["y"]) for point in points] == [(0, 5, 1), (1, 0, 0), (2, 10, 2)]


def test_dots_and_whiskers_stand_where_the_points_do() -> None:
    spec = drawn(Line([5], [1], dots=True, ends=[(0, 2)]))
    assert marks(spec, "point") == [[{"x": 5, "y": 1}]]
    assert marks(spec, "rule") == [[{"x": 5, "y": 0, "y2": 2}]]


def test_only_what_has_a_name_is_in_the_legend() -> None:
    spec = drawn(Line([0, 1], [0, 1], "one", dash="dot"), Line([0, 1], [1, 0]), bars=Bars([0, 5, 10], [1, 2], "bars"))
    legend = spec["layer"][-1]["encoding"]["strokeDash"]["scale"]
    assert legend == {"domain": ["bars", "one"], "range": [lines.DASHES["solid"], lines.DASHES["dot"]]}
    assert [bar["y"] for bar in marks(spec, "rect")[0]] == [1, 2]


def test_an_axis_goes_from_end_to_end_and_its_words_stay_words() -> None:
    across = drawn(Line([0, 1], [0, 1]))["encoding"]["x"]
    assert across["scale"]["domain"] == [0, 10] and across["title"] == "a < b"
    assert across["axis"]["values"] == [0, 10]
    assert across["axis"]["labelExpr"] == (
        """abs(datum.value - 10) < 0.01 ? "'ten'" : abs(datum.value - 0) < 0.01 ? "0" : ''"""
    )


def test_what_is_said_reaches_half_way_to_the_next_place_whatever_the_order() -> None:
    said = [(8.0, "late"), (0.0, "first"), (4.0, "middle")]
    [strips] = marks(drawn(Line([0, 10], [0, 2]), hover=said), "rect")
    found = [(strip["x"], strip["x2"], strip["said"]) for strip in strips]
    assert found == [(0, 2.0, "first"), (2.0, 6.0, "middle"), (6.0, 10, "late")]


def test_of_places_that_are_the_same_the_last_is_said() -> None:
    said = [(0.0, "one"), (0.0, "other"), (10.0, "last")]
    [strips] = marks(drawn(Line([0, 10], [0, 2]), hover=said), "rect")
    assert [(strip["x2"], strip["said"]) for strip in strips] == [(5.0, "other"), (10, "last")]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-3, 12, [-5, 0, 5, 10, 15]), (0, 0, [0, 1]), (7, 7, [6, 8])],
)
def test_an_axis_ends_at_round_numbers(low: float, high: float, expected: list[float]) -> None:
    axis = lines.rounded("", [high, low], str)
    assert (axis.low, axis.high) == (expected[0], expected[-1])
    assert list(axis.ticks) == pytest.approx(expected)


def test_an_axis_between_two_values_names_the_round_ones() -> None:
    axis = lines.between("", 0.03, 0.9, lines.share)
    assert (axis.low, axis.high) == (0.03, 0.9)
    assert list(axis.ticks.values()) == [f"{n}\u00a0%" for n in (20, 40, 60, 80)]
