"""Charts of the documents as SVG, by matplotlib: lines over evenly spaced steps, the vertical axis linear or logarithmic.

The same input gives the same bytes, so that `python -m bench.readme --check` can compare; colours follow light and dark paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

INCHES = (7.6, 3.8)
INK = "#24292f"
FAINT = "#d0d7de"
PAPER = "#ffffff"
LINE_COLOURS = ("#0f766e", "#b45309", "#7c3aed", "#be185d")
LEVEL_COLOUR = "#57606a"
ON_DARK_PAPER = {
    INK: "#e6edf3",
    FAINT: "#3d444d",
    PAPER: "#0d1117",
    LEVEL_COLOUR: "#9198a1",
    **dict(zip(LINE_COLOURS, ("#2dd4bf", "#fbbf24", "#c4b5fd", "#f9a8d4"), strict=True)),
}
SETTINGS: Any = {
    # without a salt, the ids of markers and clip paths are random
    "svg.hashsalt": "glassleaf",
    # letters stay letters: smaller, searchable, read out by screen readers
    "svg.fonttype": "none",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
}


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes
    ----------
    title, x_title : str
        What is shown, and over what.
    steps : sequence of str
        Labels of the horizontal axis.
    lines : dict of str to sequence of float or None
        Name → a value a step; None if there is none.
    levels : dict of str to float
        Name → a level drawn across, dashed: a reference, or a figure of the paper.
    left_out : dict of str to sequence of int
        Name of a line → indices of steps that were too long to measure; crosses at the height of its last value.
    """

    title: str
    x_title: str
    steps: Sequence[str]
    lines: Mapping[str, Sequence[float | None]]
    levels: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, Sequence[int]] = field(default_factory=dict)
    logarithmic: bool = False

    def svg(self) -> str:
        """The chart; its title is what a screen reader says."""
        with rc_context(SETTINGS):
            drawn = StringIO()
            metadata = {"Title": self.title, "Date": None, "Creator": None}
            self._figure().savefig(drawn, format="svg", metadata=metadata)
        return _follow_paper(re.sub(r" +\n", "\n", drawn.getvalue()))

    def _figure(self) -> Figure:
        figure = Figure(INCHES, layout="constrained")
        axes = figure.subplots()
        for name, level in self.levels.items():
            axes.axhline(level, color=LEVEL_COLOUR, linestyle="--", label=name)
        for colour, (name, values) in zip(LINE_COLOURS, self.lines.items(), strict=False):
            points = [(i, value) for i, value in enumerate(values) if value is not None]
            axes.plot(*zip(*points, strict=True), color=colour, marker="o", markerfacecolor=PAPER, label=name)
            for i in self.left_out.get(name, ()):
                axes.plot(i, points[-1][1], color=colour, marker="x")
        axes.set_title(self.title, loc="left", fontsize="medium")
        axes.set_xlabel(self.x_title, loc="left")
        axes.set_xticks(range(len(self.steps)), self.steps)
        axes.set_xlim(-0.5, len(self.steps) - 0.5)
        if self.logarithmic:
            axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.grid(axis="y")
        named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
        named.sort(key=lambda line: float(np.asarray(line.get_ydata())[-1]), reverse=True)
        figure.legend(handles=named, loc="outside right upper", frameon=False)
        return figure


def _follow_paper(svg: str) -> str:
    """Replace every colour by a CSS variable that a dark page redefines."""
    dark = []
    for light, colour in ON_DARK_PAPER.items():
        svg = svg.replace(light, f"var(--{light[1:]}, {light})")
        dark.append(f"--{light[1:]}: {colour};")
    rule = f"@media (prefers-color-scheme: dark) {{ svg {{ {' '.join(dark)} }} }}"
    return svg.replace("</style>", f"{rule}</style>", 1)
