"""Lines over two axes: where points stand, which numbers an axis names, what is said around a place."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from app.panels import charts, lines
from app.panels.lines import Axis, Bars, Line


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "dark", lambda: False)


def drawn(*given: Line, x: Axis | None = None, **more: Any) -> ElementTree.Element:
    """A drawing over 0 to 10 across and 0 to 2 upwards."""
    across, up = x or Axis("a < b", 0, 10, {0: "0", 10: "10"}), Axis("high", 0, 2, {0: "0", 2: "2"})
    svg = lines.drawing(given, across, up, "what it says", **more)
    return ElementTree.fromstring(re.sub(' xmlns="[^"]+"', "", svg))  # noqa: S314 (our own)


def test_points_stand_in_percent_across_and_in_pixels_down() -> None:
    [path] = drawn(Line([0, 5, 10], [0, 1, 2])).iter("polyline")
    assert path.get("points") == f"0.00,{lines.PLOT}.0 50.00,{lines.PLOT / 2} 100.00,0.0"


def test_dots_and_whiskers_stand_where_the_points_do() -> None:
    root = drawn(Line([5], [1], dots=True, ends=[(0, 2)]))
    [dot] = root.iter("circle")
    assert dot.get("cx") == "50.00%"
    top = float(dot.get("cy", "")) - lines.PLOT / 2
    [whisker] = [one for one in root.iter("line") if one.get("x1") == "50.00%"]
    assert (float(whisker.get("y1", "")), float(whisker.get("y2", ""))) == (top + lines.PLOT, top)


def test_only_what_has_a_name_is_in_the_legend_and_words_stay_words() -> None:
    root = drawn(Line([0, 1], [0, 1], "<b>"), Line([0, 1], [1, 0]), bars=Bars([0, 5, 10], [1, 2], "bars"))
    words = [text.text for text in root.iter("text")]
    assert [word for word in words if word in ("<b>", "bars")] == ["bars", "<b>"] and "a < b" in words
    assert [float(bar.get("height", "")) for bar in root.iter("rect")] == [lines.PLOT / 2, lines.PLOT]


def test_what_is_said_reaches_half_way_to_the_next_place_whatever_the_order() -> None:
    said = [(8.0, "late"), (0.0, "first"), (4.0, "middle")]
    strips = list(drawn(Line([0, 10], [0, 2]), hover=said).iter("rect"))
    assert [(s.get("x"), s.get("width"), s[0].text) for s in strips] == [
        ("0.00%", "20.00%", "first"), ("20.00%", "40.00%", "middle"), ("60.00%", "40.00%", "late"),
    ]  # fmt: skip


def test_of_places_that_are_the_same_the_last_is_said() -> None:
    said = [(0.0, "one"), (0.0, "other"), (10.0, "last")]
    strips = list(drawn(Line([0, 10], [0, 2]), hover=said).iter("rect"))
    assert [(s.get("width"), s[0].text) for s in strips] == [("50.00%", "other"), ("50.00%", "last")]


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
