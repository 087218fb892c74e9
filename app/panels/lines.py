"""Lines and bars over two axes as specifications for Vega-Lite: a browser loads it in a quarter of the time that Plotly takes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from app.panels import charts, palette
from app.texts import label

DOT_AREA = 80  # square pixels of a point
PLOT_PIXELS = 240  # pixels between the lowest and the highest value
DASHES = {
    "solid": [1, 0],
    "dot": [3, 3],
    "dash": [9, 6],
    "dashdot": [9, 3, 3, 3],
    "longdash": [16, 6],
}  # pixels drawn and left out


@dataclass(frozen=True)
class Axis:
    """An axis between two values, its title, and the words at some of them."""

    title: str
    low: float
    high: float
    ticks: Mapping[float, str] | Mapping[int, str]


@dataclass(frozen=True)
class Line:
    """A line through points; a `name` is for the legend, `ends` are those of a whisker at each point."""

    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    colour: str = palette.INK
    width: float = 2
    dash: str = "solid"
    dots: bool = False
    ends: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Bars:
    """Bars from zero on, each from one edge to the next; `gap` is the share of a bar that is left empty."""

    edges: Sequence[float]
    heights: Sequence[float]
    name: str = ""
    colour: str = palette.INK
    gap: float = 0.05


def steps(low: float, high: float) -> list[float]:
    """Return round numbers from `low` or below to `high` or above, at most six apart from the ends."""
    rough = (high - low) / 5 or abs(low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * many for many in (1, 2, 5, 10) if power * many >= rough)
    first = math.floor(low / step)
    last = math.ceil(high / step)
    return [step * at for at in range(first, max(last, first + 1) + 1)]


def rounded(title: str, values: Sequence[float], words: Callable[[float], str]) -> Axis:
    """Return an axis from a round number at or below all values to one at or above them."""
    ticks = steps(min(values), max(values))
    return Axis(title, ticks[0], ticks[-1], {tick: words(tick) for tick in ticks})


def between(title: str, low: float, high: float, words: Callable[[float], str]) -> Axis:
    """Return an axis from `low` to `high`, with the round numbers between them."""
    return Axis(title, low, high, {tick: words(tick) for tick in steps(low, high) if low <= tick <= high})


def share(value: float) -> str:
    """Return a share as the words on an axis."""
    return f"{100 * value:g}\u00a0%"


def legend(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return the entries of a legend: a sample of each stroke, and its meaning."""
    return [
        f'<line x1="0" x2="28" y1="{charts.LINE * at + 8}" y2="{charts.LINE * at + 8}" {look}/>'
        f'<text x="36" y="{charts.LINE * at + 12}" text-anchor="start">{label(words)}</text>'
        for at, (look, words) in enumerate(rows)
    ]


def hover(places: Sequence[float], texts: Mapping[str, Sequence[str]]) -> list[tuple[float, str]]:
    """Return for each of the `places` on the lying axis a line of text for each name, from `texts` in the order of the places."""
    hovers = []
    for i, place in enumerate(places):
        rows = [f"{name}: {row[i]}" for name, row in texts.items()]
        hovers.append((place, "\n".join(rows)))
    return hovers


def drawing(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    sentence: str,
    hover: Sequence[tuple[float, str]] = (),
    bars: Bars | None = None,
) -> charts.Drawing:
    """Return a chart of lines, and of `bars` behind them; `hover` is what is said at a place of the lying axis and around it."""
    layers = []
    if bars is not None:
        layers.append(_bars_layer(bars))
    for line in lines:
        layers += _line_layers(line)
    layers.append(_hover_layer(hover, x, y))
    if bars is not None and bars.name:
        entries = [(bars.name, bars.colour, 10.0, "solid")]
    else:
        entries = []
    entries += [(line.name, line.colour, line.width, line.dash) for line in lines if line.name]
    spec = {
        "height": PLOT_PIXELS + charts.TITLED + charts.LINE * len(entries),
        "padding": {"left": 0, "right": 8, "top": 4, "bottom": 0},
        "layer": layers,
        "encoding": {
            "x": {"type": "quantitative", **_scaled(x, grid=False)},
            "y": {"type": "quantitative", **_scaled(y, grid=True)},
        },
        "config": charts.vega_looks(),
    }
    if entries:
        layers.append(_legend_layer(entries))
    for layer in layers:
        layer["mark"]["aria"] = False  # the chart as a whole has the text alternative
    return charts.Drawing(sentence, spec)


def _scaled(axis: Axis, *, grid: bool) -> dict[str, Any]:
    """Return a scale from end to end of an axis, with the axis's words at its ticks."""
    near = (axis.high - axis.low or 1) / 1000
    words = "''"
    for value, text in axis.ticks.items():
        words = f"abs(datum.value - {value!r}) < {near!r} ? {json.dumps(text)} : {words}"
    return {
        "scale": {"domain": [axis.low, axis.high], "nice": False, "zero": False},
        "title": axis.title or None,
        "axis": {"values": list(axis.ticks), "labelExpr": words, "grid": grid, "labelOverlap": True},
    }


def _line_layers(line: Line) -> list[dict[str, Any]]:
    """Return the line, its whiskers and its dots; points with an unknown value are left out."""
    points = [{"x": a, "y": b} for a, b in zip(line.x, line.y, strict=True) if math.isfinite(b)]
    places = {"x": {"field": "x"}, "y": {"field": "y"}}
    look = {"color": line.colour, "strokeWidth": line.width, "strokeDash": DASHES[line.dash]}
    ordered = [{**point, "order": place} for place, point in enumerate(points)]
    layers = [
        {
            "data": {"values": ordered},
            "mark": {"type": "line", **look},
            "encoding": {**places, "order": {"field": "order", "type": "quantitative"}},
        }
    ]
    if line.ends:
        whiskers = [{"x": a, "y": low, "y2": high} for a, (low, high) in zip(line.x, line.ends, strict=False)]
        layers.append(
            {
                "data": {"values": whiskers},
                "mark": {"type": "rule", "color": line.colour, "strokeWidth": 1.5},
                "encoding": {**places, "y2": {"field": "y2"}},
            }
        )
    if line.dots:
        mark = {"type": "point", "filled": True, "size": DOT_AREA, "color": line.colour, "opacity": 1}
        layers.append({"data": {"values": points}, "mark": mark, "encoding": places})
    return layers


def _bars_layer(bars: Bars) -> dict[str, Any]:
    """Return a rectangle from zero for each bar."""
    values = []
    for (low, high), height in zip(pairwise(bars.edges), bars.heights, strict=True):
        values.append({"x": low, "x2": low + (1 - bars.gap) * (high - low), "y": height})
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "color": bars.colour},
        "encoding": {"x": {"field": "x"}, "x2": {"field": "x2"}, "y": {"field": "y"}, "y2": {"datum": 0}},
    }


def _hover_layer(hover: Sequence[tuple[float, str]], x: Axis, y: Axis) -> dict[str, Any]:
    """Return the text of each place, shown from half way to its neighbours; of several texts of a place, the last."""
    places = sorted(dict(hover).items())
    middles = [(first[0] + second[0]) / 2 for first, second in pairwise(places)]
    values = []
    for (_, words), (low, high) in zip(places, pairwise([x.low, *middles, x.high]), strict=False):
        values.append({"x": low, "x2": high, "y": y.low, "y2": y.high, "said": words})
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "opacity": 0},
        "encoding": {
            "x": {"field": "x"},
            "x2": {"field": "x2"},
            "y": {"field": "y"},
            "y2": {"field": "y2"},
            "tooltip": {"field": "said", "type": "nominal"},
        },
    }


def _legend_layer(entries: Sequence[tuple[str, str, float, str]]) -> dict[str, Any]:
    """Return a legend of names with their colours, widths and dashes, a line each; it draws nothing in the plane."""
    names = [name for name, _, _, _ in entries]
    look = {"title": None, "orient": "top", "direction": "vertical", "symbolType": "stroke"}
    scales = {
        "stroke": [colour for _, colour, _, _ in entries],
        "strokeWidth": [width for _, _, width, _ in entries],
        "strokeDash": [DASHES[dash] for _, _, _, dash in entries],
    }
    encoding = {}
    for channel, values in scales.items():
        scale = {"domain": names, "range": values}
        encoding[channel] = {"field": "name", "type": "ordinal", "scale": scale, "legend": look}
    # A line of one point is no line.
    return {"data": {"values": [{"name": name} for name in names]}, "mark": {"type": "line"}, "encoding": encoding}
