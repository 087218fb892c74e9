"""The README's figure, from what `bench.curves` found: scores a second by samples at once, logarithmic. Standard library alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 200, 34, 58
STYLE = """
    svg { font: 13px system-ui, sans-serif; --ink: #24292f; --faint: #d0d7de; --paper: #ffffff;
          --a: #0f766e; --b: #b45309; --c: #7c3aed; --d: #57606a; }
    @media (prefers-color-scheme: dark) {
      svg { --ink: #e6edf3; --faint: #3d444d; --paper: #0d1117; --a: #2dd4bf; --b: #fbbf24; --c: #c4b5fd; --d: #9198a1; }
    }
    text { fill: var(--ink); }
    .paper { fill: var(--paper); } .grid { stroke: var(--faint); } .small { font-size: 12px; }
    .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; } .reference { stroke-dasharray: 6 4; }
    .a { stroke: var(--a); } .b { stroke: var(--b); } .c { stroke: var(--c); } .d { stroke: var(--d); }
    circle { stroke-width: 2; fill: var(--paper); }
    .mark { stroke-width: 2; fill: none; }
"""
Point = tuple[float, float]


def figure(found: dict[str, Any]) -> str:
    """The figure as SVG."""
    names = {"rlwe": "RLWE, lattice"} | {f"paillier {t['bits']}": f"Paillier {t['bits']:,}" for t in found["textbook"]}
    classes = dict(zip(names, "abc", strict=False))
    curves = {n: [p for p in found["samples"] if p["engine"] == n] for n in names}
    measured = {n: [(p["samples"], p["per_second"]) for p in c if "seconds" in p] for n, c in curves.items()}
    rates = [y for points in measured.values() for _, y in points] + [t["per_second"] for t in found["textbook"]]
    axes = _Axes([p["samples"] for p in found["samples"]], rates)
    parts = [axes.grid()]
    ends = []
    for t in found["textbook"]:
        parts.append(axes.line([(axes.x[0], t["per_second"]), (axes.x[1], t["per_second"])], "d reference"))
        ends.append((t["per_second"], f"phe {t['bits']:,}: {t['per_second']:.2g}"))
    for name, points in measured.items():
        parts.append(axes.line(points, classes[name]))
        parts += [axes.dot(p, classes[name]) for p in points]
        left_out = [p["samples"] for p in curves[name] if "left_out" in p]
        parts += [axes.cross((x, points[-1][1]), classes[name]) for x in left_out]
        best = max(y for _, y in points)
        ends.append((points[-1][1], f"{names[name]}: {best:,.0f}" if best >= 10 else f"{names[name]}: {best:.2g}"))
    parts += axes.labels(ends)
    size = f"{found['sample']['leaves']:,} leaves"
    words = [f"{label} scores a second" for _, label in sorted(ends, reverse=True)]
    note = f"× left out: more than {found['cap_seconds']:.0f} s a point"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title desc">',
            '  <title id="title">Encrypted scores a second by samples scored at once</title>',
            f'  <desc id="desc">One core, both parties, {size}; both axes logarithmic. Best of each: {"; ".join(words)}.</desc>',
            f"  <style>{STYLE}  </style>",
            f'  <rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
            f'  <text x="{LEFT}" y="20">Scores a second on one core, both parties counted ({size})</text>',
            *(f"  {part}" for part in parts),
            f'  <text class="small" x="{LEFT}" y="{HEIGHT - 8}">samples at once · dashed: a phe ciphertext a leaf · {note}</text>',
            "</svg>",
            "",
        ]
    )


class _Axes:
    """Two logarithmic axes of whole decades."""

    def __init__(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        self.x, self.y = _decades(xs), _decades(ys)

    def at(self, point: Point) -> Point:
        """Where a point lies on the page."""
        (x, y), (x0, x1), (y0, y1) = point, self.x, self.y
        across = log10(x / x0) / log10(x1 / x0)
        up = log10(y / y0) / log10(y1 / y0)
        return round(LEFT + across * (WIDTH - LEFT - RIGHT), 1), round(
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 1
        )

    def grid(self) -> str:
        """A line and a number a decade."""
        (x0, x1), (y0, y1) = self.x, self.y
        parts = []
        for k in range(round(log10(x0)), round(log10(x1)) + 1):
            x, bottom = self.at((10.0**k, y0))
            parts.append(f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}"/>')
            parts.append(f'<text class="small" x="{x}" y="{bottom + 18}" text-anchor="middle">{10**k:,}</text>')
        for k in range(round(log10(y0)), round(log10(y1)) + 1):
            left, y = self.at((x0, 10.0**k))
            parts.append(f'<line class="grid" x1="{left}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>')
            number = f"{10**k:,}" if k >= 0 else f"{10.0**k:.{-k}f}"
            parts.append(f'<text class="small" x="{left - 8}" y="{y + 4}" text-anchor="end">{number}</text>')
        return "\n  ".join(parts)

    def line(self, points: Sequence[Point], kind: str) -> str:
        """A polyline."""
        path = " ".join(f"{x},{y}" for x, y in map(self.at, points))
        return f'<polyline class="line {kind}" points="{path}"/>'

    def dot(self, point: Point, kind: str) -> str:
        """A measured point."""
        x, y = self.at(point)
        return f'<circle class="{kind}" cx="{x}" cy="{y}" r="4"/>'

    def cross(self, point: Point, kind: str) -> str:
        """A point that was left out."""
        x, y = self.at(point)
        return f'<path class="mark {kind}" d="M{x - 4},{y - 4} l8,8 m0,-8 l-8,8"/>'

    def labels(self, ends: Sequence[tuple[float, str]]) -> list[str]:
        """Names at the right end of the lines, none over another."""
        parts, above = [], -1e9
        for rate, label in sorted(ends, reverse=True):
            above = max(self.at((self.x[1], rate))[1] + 4, above + 17)
            parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{above}">{label}</text>')
        return parts


def _decades(values: Sequence[float]) -> tuple[float, float]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)
