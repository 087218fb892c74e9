"""Lines over two axes as an SVG: a browser draws a page of them in the time that one chart of Plotly's takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.panels import charts, palette
from app.texts import label
from backend.i18n import wide

PLOT = 240  # pixels between the lowest and the highest value
DASHES = {"solid": "", "dot": "3 3", "dash": "9 6", "dashdot": "9 3 3 3", "longdash": "16 6"}


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

    @property
    def look(self) -> str:
        """Its stroke as SVG has it."""
        if self.dash != "solid":
            dashes = f' stroke-dasharray="{DASHES[self.dash]}"'
        else:
            dashes = ""
        return f'stroke="{self.colour}" stroke-width="{self.width}"{dashes}'


@dataclass(frozen=True)
class Bars:
    """Bars from zero on, each from one edge to the next; `gap` is the share of a bar that is left empty."""

    edges: Sequence[float]
    heights: Sequence[float]
    name: str = ""
    colour: str = palette.INK
    gap: float = 0.05


def steps(low: float, high: float) -> list[float]:
    """Round numbers from `low` or below to `high` or above, at most six apart from the ends."""
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
    """Return a share on an axis."""
    return f"{100 * value:g}\u00a0%"


def legend(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a legend: a sample of a stroke, and what it stands for."""
    return [
        f'<line x1="0" x2="28" y1="{charts.LINE * at + 8}" y2="{charts.LINE * at + 8}" {look}/>'
        f'<text x="36" y="{charts.LINE * at + 12}" text-anchor="start">{label(words)}</text>'
        for at, (look, words) in enumerate(rows)
    ]


def drawing(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    sentence: str,
    hover: Sequence[tuple[float, str]] = (),
    bars: Bars | None = None,
) -> str:
    """Lines, and `bars` behind them, as an SVG; `hover` is what is said at a place of the lying axis and around it."""
    if bars is not None and bars.name:
        legend_rows = [(f'stroke="{bars.colour}" stroke-width="10"', bars.name)]
    else:
        legend_rows = []
    legend_rows += [(line.look, line.name) for line in lines if line.name]
    top = charts.LINE * len(legend_rows) + charts.TEXT
    room = 8 + round(charts.LETTER * max(map(wide, y.ticks.values()))) + (charts.BESIDE if y.title else 0)
    plane = _Plane(x, y, top)
    parts = [
        *plane.axes(room),
        *(plane.bars(bars) if bars is not None else ()),
        plane.paths(lines),
        *(mark for line in lines for mark in plane.marks(line)),
        *plane.strips(hover),
        f'<g transform="translate({-room})">{"".join(legend(legend_rows))}</g>',
    ]
    return charts.svg(parts, top + PLOT + charts.TITLED, sentence, room, charts.BESIDE)


@dataclass(frozen=True)
class _Plane:
    """Two axes, `top` pixels below the beginning of the drawing."""

    x: Axis
    y: Axis
    top: int

    def across(self, value: float) -> float:
        """In percent."""
        return 100 * (value - self.x.low) / (self.x.high - self.x.low or 1)

    def down(self, value: float) -> float:
        """In pixels from the plane's top."""
        return PLOT * (self.y.high - value) / (self.y.high - self.y.low or 1)

    def places(self, line: Line) -> list[tuple[float, float]]:
        """Return where its points stand, those left out of which nothing is known."""
        pairs = zip(line.x, line.y, strict=True)
        return [(self.across(a), self.down(b)) for a, b in pairs if math.isfinite(b)]

    def axes(self, room: int) -> Iterator[str]:
        """Levels with their words, words below, and the titles; `room` is that beside the plane."""
        ground = self.top + PLOT
        for value, words in self.y.ticks.items():
            at = self.top + self.down(value)
            yield f'<line x2="100%" y1="{at:.1f}" y2="{at:.1f}" stroke="{palette.FAINT}"/>'
            yield f'<text x="-8" y="{at + 4:.1f}" text-anchor="end">{label(words)}</text>'
        for value, words in self.x.ticks.items():
            yield f'<text x="{self.across(value):.2f}%" y="{ground + charts.LINE}">{label(words)}</text>'
        yield f'<text x="50%" y="{ground + charts.TITLED - 8}">{label(self.x.title)}</text>'
        transform = f"translate({charts.TEXT - room},{self.top + PLOT // 2}) rotate(-90)"
        yield f'<text transform="{transform}">{label(self.y.title)}</text>'

    def bars(self, bars: Bars) -> Iterator[str]:
        """Yield a rectangle a bar."""
        for (low, high), tall in zip(pairwise(map(self.across, bars.edges)), bars.heights, strict=True):
            down = self.down(tall)
            yield (
                f'<rect x="{low:.2f}%" width="{(1 - bars.gap) * (high - low):.2f}%" y="{self.top + down:.1f}" height="{PLOT - down:.1f}" '
                f'fill="{bars.colour}"/>'
            )

    def paths(self, lines: Sequence[Line]) -> str:
        """The lines; points of a path cannot stand in percent, so they have a plane 100 wide, which is drawn out to the page's width."""
        paths = [
            f'<polyline points="{" ".join(f"{a:.2f},{b:.1f}" for a, b in self.places(line))}" fill="none" '
            f'vector-effect="non-scaling-stroke" {line.look}/>'
            for line in lines
        ]
        return (
            f'<svg y="{self.top}" width="100%" height="{PLOT}" viewBox="0 0 100 {PLOT}" preserveAspectRatio="none" overflow="visible">'
            f"{''.join(paths)}</svg>"
        )

    def marks(self, line: Line) -> Iterator[str]:
        """Whiskers, and dots where it has them."""
        for a, ends in zip(line.x, line.ends, strict=False):
            x = self.across(a)
            low, high = (self.top + self.down(end) for end in ends)
            yield f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="{low:.1f}" y2="{high:.1f}" stroke="{line.colour}" stroke-width="1.5"/>'
        for a, b in self.places(line) if line.dots else ():
            yield f'<circle cx="{a:.2f}%" cy="{self.top + b:.1f}" r="4.5" fill="{line.colour}"/>'

    def strips(self, texts: Sequence[tuple[float, str]]) -> Iterator[str]:
        """Yield what is said at each place, from half way to its neighbours."""
        places = sorted((self.across(value), words) for value, words in texts)
        middles = [(first[0] + second[0]) / 2 for first, second in pairwise(places)]
        for (_, words), (low, high) in zip(places, pairwise([0.0, *middles, 100.0]), strict=False):
            if high > low:
                title = f"<title>{label(words)}</title>"
                strip = f'x="{low:.2f}%" width="{high - low:.2f}%" y="{self.top}" height="{PLOT}" fill="transparent"'
                yield f"<rect {strip}>{title}</rect>"
