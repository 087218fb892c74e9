"""A chart has its lines, levels and names, is the same whenever it is drawn, and follows dark paper."""

import re
from xml.etree import ElementTree

from bench.charts import INK, ON_DARK_PAPER, Chart

CHART = Chart(
    "title <b>",
    "over",
    ["1", "10", "100"],
    {"a < b": [1.0, 2.0, 40.0], "c": [1.5, None, None]},
    {"level": 1.2},
    {"c": [1, 2]},
    logarithmic=True,
)


def drawn(chart):
    root = ElementTree.fromstring(chart.svg())  # noqa: S314 (our own)
    return [re.sub("{.*}", "", node.tag) for node in root.iter()], [
        text for text in map(str.strip, root.itertext()) if text
    ]


def test_a_chart_names_its_lines_by_their_last_values_and_labels_every_step():
    _, words = drawn(CHART)
    assert words[0] == "title <b>"
    assert [word for word in words if word in {"a < b", "c", "level"}] == ["a < b", "c", "level"]
    assert [word for word in words if word in CHART.steps][:3] == ["1", "10", "100"]
    assert "over" in words


def test_every_value_and_every_step_that_was_left_out_has_a_mark():
    def marks(chart):
        return drawn(chart)[0].count("use")

    without = Chart(CHART.title, CHART.x_title, CHART.steps, CHART.lines, CHART.levels, logarithmic=True)
    fewer = Chart(CHART.title, CHART.x_title, CHART.steps, CHART.lines | {"c": [1.5, 1.5, None]}, logarithmic=True)
    assert marks(CHART) - marks(without) == 2
    assert marks(fewer) - marks(without) == 1


def test_the_axis_is_linear_or_has_whole_decades():
    linear = Chart("", "", ["1", "2"], {"a": [81.6, 82.1]})
    assert {"81.6", "82", "82.1"} <= set(drawn(linear)[1])
    assert {"1", "10"} <= set(drawn(CHART)[1])


def test_the_same_chart_is_the_same_bytes_and_has_no_date():
    assert CHART.svg() == CHART.svg()
    assert "dc:date" not in CHART.svg()


def test_every_colour_changes_on_dark_paper():
    svg = CHART.svg()
    assert "prefers-color-scheme: dark" in svg and f"--{INK[1:]}: {ON_DARK_PAPER[INK]}" in svg
    assert set(re.findall(r"(?:fill|stroke): (#\w+)", svg)) == set()
