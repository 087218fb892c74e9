"""How charts look: the same Plotly settings for all of them, and the shapes that several panels draw."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import plotly.graph_objects as go
import streamlit as st

from app.panels import palette
from app.texts import Texts, label, wrap
from backend.i18n import wide
from backend.services.cache import Cache

TEXT = 12  # pixels; no chart writes smaller, so that a phone shows what can be read
LINE = 16  # pixels that a line of words above a bar takes
LYING = 40  # pixels of a bar with its words
EDGE = 14  # percent of a drawing's width, at either end, where words do not fit around a place
BAR_PIXELS = 14  # that a bar is high
MAX_BAR_LINES = 2  # that a bar's words take at most
BAR_LINE_LETTERS = 56  # letters of a bar's words that a phone shows in one line
NOTE_STYLE = {"showarrow": False, "xanchor": "left", "align": "left"}  # words on a chart
LETTER = 6.6  # pixels that a letter of TEXT takes at most, on average over a label (a Chinese one twice as many)
TICKS = 24  # pixels that an axis' numbers take below the plot
TITLED = 48  # the same with its title
BESIDE = 22  # pixels that the title of a standing axis takes
NO_MARGIN = {"l": 0, "r": 0, "t": 0, "b": 0}
P = ParamSpec("P")
_charts: Cache[tuple[object, go.Figure]] = Cache(64)  # what is shown, so that it stays itself, and the chart


def _settings(theme: palette.Theme) -> dict[str, Any]:
    axis = {
        "fixedrange": True,
        "automargin": True,
        "zeroline": False,
        "gridcolor": palette.FAINT,
        "ticks": "",
        "title": {"standoff": 10},
    }
    return {
        "template": "none",  # not Streamlit's, see `figure`
        "datarevision": 1,  # nor are data taken for changed: a chart of others is another chart
        "font": {"family": "Source Sans, sans-serif", "size": TEXT, "color": theme.text},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "x": 0,
            "itemclick": False,
            "itemdoubleclick": False,
        },
        "xaxis": {**axis, "showgrid": False},
        "yaxis": {**axis, "ticklabelstandoff": 6},
        "dragmode": False,
        "hoverlabel": {
            "align": "left",
            "bgcolor": theme.ground,
            "bordercolor": palette.INK,
            "font": {"color": theme.text, "size": TEXT},
        },
        "modebar": {"bgcolor": theme.ground, "color": theme.text, "activecolor": theme.text},
    }


def theme() -> palette.Theme:
    """Return how charts look on the page as it is."""
    return palette.DARK if dark() else palette.LIGHT


def background() -> str:
    """Return the colour of the page, as .streamlit/config.toml has it."""
    return "#0E1114" if dark() else "#FFFFFF"


def halo() -> str:
    """Return a halo in the colour of the page for words on a line, so that they can be read."""
    return ", ".join(f"{x}px {y}px 1px {background()}" for x in (-2, 0, 2) for y in (-1, 0, 1))


def figure(height: float, top: int = 0, **layout: Any) -> go.Figure:
    """Return an empty chart of `height` pixels, `top` of them above the plot for a legend; `layout` is Plotly's."""
    chart = go.Figure(layout={**_settings(theme()), "height": height, "margin": {**NO_MARGIN, "t": top}})
    # Plotly takes a template for changed whenever it is handed a copy, as Streamlit does: all would be drawn a second time.
    chart.layout.template = None
    return chart.update_layout(**layout)


@dataclass(frozen=True)
class Drawing:
    """A chart for Vega-Lite, and the sentence that says what to see in it."""

    sentence: str
    spec: dict[str, Any] = field(repr=False)


def vega_looks() -> dict[str, Any]:
    """How charts of Vega-Lite look: its ``config``."""
    text = theme().text
    words = {"labelFontSize": TEXT, "labelColor": text}
    axis = {"titleFontSize": TEXT, "titleFontWeight": "normal", "titleColor": text, "gridColor": palette.FAINT}
    return {
        "background": "transparent",
        "font": "Source Sans, sans-serif",
        "axis": {**words, **axis, "ticks": False, "domain": False},
        "legend": {**words, "labelLimit": 0, "symbolSize": 400},
        "text": {"fontSize": TEXT, "align": "left", "baseline": "alphabetic"},
        "view": {"stroke": None},
    }


def svg(parts: Sequence[str], height: float, sentence: str, left_margin: int = 0, right_margin: int = 0) -> str:
    """Return a drawing of the page's width; `sentence` is its text alternative.

    Across, its parts are placed in percent of what `left_margin` and `right_margin` leave, pixels for words next to it; down, in pixels.
    """
    about = html.escape(sentence.replace("**", "").replace("\\", ""))
    if left_margin or right_margin:
        room = f'style="box-sizing: border-box; padding: 0 {right_margin}px 0 {left_margin}px" overflow="visible" '
    else:
        room = ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{about}" width="100%" height="{height:.0f}" '
        f'{room}fill="currentColor" font-size="{TEXT}" text-anchor="middle">{"".join(parts)}</svg>'
    )


def lying(
    rows: Sequence[tuple[str, float, str]], end: float, sentence: str, at: tuple[float, str] | None = None
) -> str:
    """Bars from zero on, each under its words, as an SVG.

    Parameters
    ----------
    rows : sequence of (str, float, str)
        Words, value and colour.
    end : float
        The value whose bar is as long as the drawing is wide.
    at : (float, str), optional
        A value to compare with, as a dotted line, and the words below it.
    """
    parts = []
    for row, (words, value, colour) in enumerate(rows):
        top = LYING * row
        parts.append(f'<text x="0" y="{top + TEXT}" text-anchor="start">{label(words)}</text>')
        parts.append(
            f'<rect y="{top + LINE + 2}" width="{100 * value / end:.2f}%" height="14" fill="{colour}">'
            f"<title>{label(words)}</title></rect>"
        )
    height = LYING * len(rows)
    if at is not None:
        value, words = at
        x = 100 * value / end
        for row in range(len(rows)):  # not through the words above a bar
            y = LYING * row + LINE - 2
            parts.append(
                f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="{y}" y2="{y + 22}" stroke="currentColor" stroke-width="2" '
                'stroke-dasharray="3 3"/>'
            )
        parts.append(annotation(x, height + TEXT - 2, label(words)))
        height += LINE
    return svg(parts, height, sentence)


def annotation(x: float, y: float, words: str) -> str:
    """Words at a place of a drawing, in percent and pixels, that never leave it."""
    if x < EDGE:
        anchor = "start"
    elif x > 100 - EDGE:
        anchor = "end"
    else:
        anchor = "middle"
    return f'<text x="{x:.2f}%" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def cached(draw: Callable[Concatenate[Texts, P], go.Figure]) -> Callable[Concatenate[Texts, P], go.Figure]:
    """Have a chart drawn once for a language, a theme and what it shows: the same words and numbers, and the very same objects.

    Plotly checks each setting, which is most of a page's time. What is drawn must not be changed by the caller.
    """

    @wraps(draw)
    def drawn(t: Texts, /, *data: P.args, **options: P.kwargs) -> go.Figure:
        arguments = (*data, *options.values())
        same = (
            argument if isinstance(argument, str | int | float | None) else ("object", id(argument))
            for argument in arguments
        )
        key = (draw, t.language, dark(), *options, *same)
        return _charts.get(key, lambda: (arguments, draw(t, *data, **options)))[1]

    return drawn


def whisker(
    values: Sequence[float], low: Sequence[float | None], high: Sequence[float | None], colour: str = palette.INK
) -> Mapping[str, object]:
    """Error bars from `low` to `high` around `values`; an end that is not known stays at its value."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [0 if end is None else end - value for end, value in zip(high, values, strict=True)],
        "arrayminus": [0 if end is None else value - end for end, value in zip(low, values, strict=True)],
        "color": colour,
        "thickness": 1.5,
        "width": 4,
    }


@dataclass(frozen=True)
class Bar:
    """A bar from `start` to a value, the words above it, what is said on hover, and its whisker; the mark is its party's, or empty."""

    words: str
    figures: str
    value: float
    mark: palette.Mark = palette.NOBODY
    hover: str = ""
    low: float | None = None
    high: float | None = None
    warning: str = ""
    start: float = 0.0


def bars(rows: Sequence[Bar], sentence: str, at: float | None = None) -> Drawing:
    """Return bars under their words, to both sides of 0 if a value is negative.

    Words take two lines at most; the table twin has them whole.

    Parameters
    ----------
    at : float, optional
        A value to compare with, as a dotted line.
    """
    ends = [end for bar in rows for end in (bar.start, bar.value, bar.low, bar.high, at) if end is not None]
    start = min([0.0, *ends])
    stop = max([1e-9, *ends])
    words: dict[str, list[dict[str, Any]]] = {}
    boxes = []
    whiskers = []
    uprights = []
    depth = 0
    for bar in rows:
        for line, colour in _words(bar):
            words.setdefault(colour, []).append({"y": depth + TEXT, "words": line})
            depth += LINE
        top = depth + 2
        ends_of_bar = {"x": min(bar.start, bar.value), "x2": max(bar.start, bar.value)}
        boxes.append({**ends_of_bar, "y": top, "y2": top + BAR_PIXELS, "colour": bar.mark.colour, "said": bar.hover})
        if bar.low is not None and bar.high is not None:
            middle = top + BAR_PIXELS // 2
            whiskers.append({"x": bar.low, "x2": bar.high, "y": middle})
            for end in (bar.low, bar.high):
                uprights.append({"x": end, "y": middle - 4, "y2": middle + 4, "width": 1.5, "dash": [1, 0]})
        if start < 0:
            uprights.append({"x": 0.0, "y": top, "y2": top + BAR_PIXELS, "width": 1.0, "dash": [1, 0]})
        if at is not None:
            uprights.append({"x": at, "y": top - 4, "y2": top + BAR_PIXELS + 4, "width": 2.0, "dash": [3, 3]})
        depth = top + BAR_PIXELS + LINE - 4
    ink = theme().text
    places = {"x": {"field": "x"}, "y": {"field": "y"}}
    areas = {**places, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": boxes},
            "mark": {"type": "rect"},
            "encoding": {
                **areas,
                "color": {"field": "colour", "type": "nominal", "scale": None},
                "tooltip": {"field": "said", "type": "nominal"},
            },
        },
        {
            "data": {"values": whiskers},
            "mark": {"type": "rule", "color": ink, "strokeWidth": 1.5},
            "encoding": {**places, "x2": {"field": "x2"}},
        },
    ]
    for words_colour, lines in words.items():
        mark = {"type": "text", "color": words_colour}
        layers.append(
            {
                "data": {"values": lines},
                "mark": mark,
                "encoding": {"x": {"value": 0}, "y": {"field": "y"}, "text": {"field": "words"}},
            }
        )
    for upright in uprights:
        rule = {"type": "rule", "color": ink, "strokeWidth": upright.pop("width"), "strokeDash": upright.pop("dash")}
        encoding = {**places, "y2": {"field": "y2"}}
        layers.append({"data": {"values": [upright]}, "mark": rule, "encoding": encoding})
    for layer in layers:
        layer["mark"]["aria"] = False  # the chart as a whole has the text alternative
    scales = {"x": [start, stop], "y": [depth, 0]}  # down, in pixels
    axes: dict[str, Any] = {}
    for channel, domain in scales.items():
        scale = {"domain": domain, "nice": False, "zero": False}
        axes[channel] = {"type": "quantitative", "axis": None, "scale": scale}
    padding = {"left": 0, "right": 8, "top": 0, "bottom": 0}
    spec = {"height": depth, "padding": padding, "layer": layers, "encoding": axes, "config": vega_looks()}
    return Drawing(sentence, spec)


def write(chart: go.Figure, words: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Words onto a chart, all at once: each one that Plotly adds alone has it look at all those before it again."""
    chart.layout.annotations = (*chart.layout.annotations, *({**NOTE_STYLE, **note} for note in words))
    return chart


def _words(bar: Bar) -> list[tuple[str, str]]:
    """Return the lines of words above a bar, each with its colour."""
    ink = theme().text
    lines = [
        html.unescape(line)
        for line in f"{bar.mark.glyph} {wrap(bar.words, BAR_LINE_LETTERS, MAX_BAR_LINES)}".strip().split("<br>")
    ]
    if _full(lines[-1], bar.figures):
        lines.append(bar.figures)
    else:
        lines[-1] = f"{lines[-1]}  {bar.figures}".rstrip()
    found = [(line, ink) for line in lines]
    if bar.warning:
        found.append((f"⚠ {bar.warning}", theme().warning))
    return found


def _full(text: str, more: str) -> bool:
    """Return whether `more` would make a line of `text` too long (Chinese letters count double)."""
    return wide(text + more) > BAR_LINE_LETTERS + 4


def dark() -> bool:
    """Whether the page is the dark one."""
    return bool(st.context.theme.type == "dark")
