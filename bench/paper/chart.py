"""Small charts for docs/paper.md: lines over evenly spaced steps, the vertical axis linear or logarithmic. Standard library alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from bench.plot import STYLE

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 34, 54
KINDS = "abcd"
APART = 16  # between two names at the right end
SWATCH = 18  # length of the piece of line before a name


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes
    ----------
    title, steps_title : str
        What is shown, and over what.
    steps : sequence of str
        Labels of the horizontal axis.
    lines : dict of str to sequence of float or None
        Name → a value a step; None where there is none.
    levels : dict of str to float
        Name → a level drawn across, dashed: a figure of the paper.
    logarithmic : bool
    """

    title: str
    steps_title: str
    steps: Sequence[str]
    lines: Mapping[str, Sequence[float | None]]
    levels: Mapping[str, float] = field(default_factory=dict)
    logarithmic: bool = False

    def svg(self) -> str:
        """The chart as SVG, readable on light and dark paper."""
        values = [v for line in self.lines.values() for v in line if v is not None] + list(self.levels.values())
        ticks = _decades(values) if self.logarithmic else _even(values)
        parts = [self._tick(tick, ticks) for tick in ticks]
        for i, step in enumerate(self.steps):
            x = self._x(i)
            parts.append(
                f'<text class="small" x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(step)}</text>'
            )
        ends: list[tuple[float, str, str]] = []
        for name, level in self.levels.items():
            y = self._y(level, ticks)
            parts.append(f'<polyline class="line d reference" points="{LEFT},{y} {WIDTH - RIGHT},{y}"/>')
            ends.append((y, name, "d reference"))
        for kind, (name, line) in zip(KINDS, self.lines.items(), strict=False):
            points = [(self._x(i), self._y(v, ticks)) for i, v in enumerate(line) if v is not None]
            path = " ".join(f"{x},{y}" for x, y in points)
            parts.append(f'<polyline class="line {kind}" points="{path}"/>')
            parts += [f'<circle class="{kind}" cx="{x}" cy="{y}" r="4"/>' for x, y in points]
            if points:
                ends.append((points[-1][1], name, kind))
        return self._page(parts + _names(ends))

    def _page(self, parts: Sequence[str]) -> str:
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">',
                f"  <style>{STYLE}  </style>",
                f'  <rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
                f'  <text id="title" x="{LEFT}" y="20">{escape(self.title)}</text>',
                *(f"  {part}" for part in parts),
                f'  <text class="small" x="{LEFT}" y="{HEIGHT - 8}">{escape(self.steps_title)}</text>',
                "</svg>",
                "",
            ]
        )

    def _x(self, i: int) -> float:
        return round(LEFT + (i + 0.5) / len(self.steps) * (WIDTH - LEFT - RIGHT), 1)

    def _y(self, value: float, ticks: Sequence[float]) -> float:
        low, high, at = ticks[0], ticks[-1], value
        if self.logarithmic:
            low, high, at = log10(low), log10(high), log10(value)
        return round(HEIGHT - BOTTOM - (at - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def _tick(self, tick: float, ticks: Sequence[float]) -> str:
        y = self._y(tick, ticks)
        grid = f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'
        return f'{grid}<text class="small" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:,.10g}</text>'


def _decades(values: Sequence[float]) -> list[float]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return [10.0**k for k in range(low, max(high, low + 1) + 1)]


def _even(values: Sequence[float]) -> list[float]:
    """Four to ten round ticks around the values."""
    low, high = min(values), max(values)
    runtime = (high - low) or abs(high) or 1.0
    unit = 10.0 ** floor(log10(runtime))
    step = next(unit * f for f in (0.1, 0.2, 0.5, 1.0, 2.0) if runtime / (unit * f) <= 8)
    first, last = floor(round(low / step, 6)), ceil(round(high / step, 6))
    return [round(k * step, 10) for k in range(first, max(last, first + 1) + 1)]


def _names(ends: Sequence[tuple[float, str, str]]) -> list[str]:
    """Names right of the lines, in the order of their ends and each with a piece of its line, none over another."""
    parts, y, x = [], -1e9, WIDTH - RIGHT + 10
    for end, name, kind in sorted(ends):
        y = max(end, y + APART)
        parts.append(f'<polyline class="line {kind}" points="{x},{y} {x + SWATCH},{y}"/>')
        parts.append(f'<text class="small" x="{x + SWATCH + 6}" y="{y + 4}">{escape(name)}</text>')
    return parts
