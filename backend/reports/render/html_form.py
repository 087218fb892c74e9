"""A report as one HTML file that needs nothing else: styles and charts within, the canonical JSON inside it. Knows the report alone.

Drawing is a pure function of report and language, so that a copy is checked by drawing the report inside it again.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files

from backend.errors import ModelError
from backend.i18n import LANGUAGES, Catalogue
from backend.reports.blocks import Bars, Block, Code, Facts, Heading, Outline, Panel, Panels, Paragraph, Table
from backend.reports.document import Report, canonical, parse
from backend.reports.sections import outline

COLOURS = ("#3F77C9", "#C17A0F", "#12898A", "#A4559E", "#7B6A3C", "#7A74D6", "#5B8C2A")  # the Guest's, then the Hosts'
PANEL_PIXELS = 350  # pixels: side of a small chart with its words
SCROLL_FROM_COLUMNS = 3  # columns; a table of more is scrolled sideways on a phone
LONG_CELL_LETTERS = 300  # letters of a cell beside which others need room, too
AXIS_TICKS = (0.0, 0.5, 1.0)
INK = "#22303C"
CURVE = f'stroke="{INK}" stroke-width="1.8"'
AXIS = 'stroke="#9AA7B2" stroke-width="1"'
EVEN = 'stroke="#9AA7B2" stroke-width="1" stroke-dasharray="4 4"'  # the diagonal
MAX_LABEL = 48  # letters before a bar
# pixels: height of a row, width of the labels, of the picture
BAR_PIXELS = 22
LABEL_PIXELS = 330
WIDTH = 720
_INSIDE = re.compile(r'<script type="application/json" id="glassleaf-report">(.*?)</script>', re.S)
_LANGUAGE = re.compile(r'<html lang="(\w+)">')


@cache
def _style() -> str:
    return files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def to_html(report: Report, language: str) -> str:
    """Return the report as HTML."""
    inside = canonical(report.body()).replace("<", "\\u003c")  # the same JSON to a parser; no tag can end the script
    script = f'<script type="application/json" id="glassleaf-report">{inside}</script>\n'
    return page(outline(report, language), language, script)


def page(outline: Outline, language: str, script: str = "") -> str:
    """An outline as one HTML file; `script` comes last."""
    body = "\n".join(_block(block, language) for block in outline.blocks)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(outline.title)}</title>\n<style>\n{_style()}{_head(outline.head)}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(outline.title)}</h1>\n<p class="sub">{escape(outline.subtitle)}</p>\n{body}\n</main>\n'
        f"{script}</body>\n</html>\n"
    )


def _head(text: str) -> str:
    """Return what a printed page has at its head, as the PDF has; every sign but letters and digits is written as its number."""
    if not text:
        return ""
    safe = "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):06x}" for c in text)
    return f'@media print{{@page{{@top-left{{content:"{safe}";font-size:7.5pt;color:#55606A}}}}}}\n'


def read_html(text: str) -> Report:
    """Return the report inside an HTML file, whose visible part must be what is drawn from it.

    Raises
    ------
    ModelError
        There is none, its hashes do not fit, or the visible part was changed.
    """
    inside = _INSIDE.search(text)
    language = _LANGUAGE.search(text)
    if inside is None or language is None:
        raise ModelError("html_without_report")
    report = parse(inside[1])
    if language[1] not in LANGUAGES or to_html(report, language[1]) != text:
        raise ModelError("html_differs")
    return report


def _block(block: Block, language: str) -> str:
    match block:
        case Heading(text, level, new_page):
            style = ' style="break-before:page"' if new_page else ""
            return f"<h{level + 1}{style}>{escape(text)}</h{level + 1}>"
        case Paragraph(text, tone):
            return f'<p class="{tone}">{_lines(text)}</p>'
        case Code(text):
            return f"<code>{escape(text)}</code>"
        case Facts(rows):
            lines = (f'<tr><th scope="row">{escape(name)}</th><td>{_lines(value)}</td></tr>' for name, value in rows)
            return f'<table class="facts">{"".join(lines)}</table>'
        case Table():
            return _table(block)
        case Bars() | Panels():
            return _panels(block) if isinstance(block, Panels) else _bars(block, language)


def _lines(text: str) -> str:
    """Text of one or several lines."""
    return escape(text).replace("\n", "<br>\n")


def _table(table: Table) -> str:
    kinds = ['class="n"' if i in table.numeric else "" for i in range(len(table.head))]
    long = any(len(text) > LONG_CELL_LETTERS for row in table.rows for text in row[:-1])
    if len(table.head) > SCROLL_FROM_COLUMNS or long:
        many = ' class="many"'
    else:
        many = ""
    columns = "".join(f'<col style="width:{100 * width / sum(table.widths):.1f}%">' for width in table.widths)
    head = "".join(f'<th scope="col" {k}>{escape(t)}</th>' for t, k in zip(table.head, kinds, strict=True))
    rows = ("".join(f"<td {k}>{_lines(t)}</td>" for t, k in zip(row, kinds, strict=True)) for row in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="wide"><table{many}><colgroup>{columns}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _bars(bars: Bars, language: str) -> str:
    lines = []
    for i, bar in enumerate(bars.rows):
        y = i * BAR_PIXELS
        length = max(2.0, bar.share * (WIDTH - LABEL_PIXELS - 80))
        lines.append(
            f'<text x="{LABEL_PIXELS - 8}" y="{y + 15}" text-anchor="end">{escape(shortened(bar.label))}</text>'
            f'<rect x="{LABEL_PIXELS}" y="{y + 4}" width="{length:.1f}" height="{BAR_PIXELS - 8}" fill="{colour(bar.party)}"/>'
            f'<text x="{LABEL_PIXELS + length + 6:.1f}" y="{y + 15}">{escape(bar.figure)}</text>'
        )
    legend = " · ".join(
        f'<span style="color:{colour(i)}" aria-hidden="true">■</span> {escape(name)}'
        for i, name in enumerate(bars.parties)
    )
    picture = _picture(bars.sentence, WIDTH, BAR_PIXELS * len(bars.rows), "".join(lines))
    colours = escape(Catalogue(language)("document.colours", listed="\0")).replace("\0", legend)
    return f'{picture}\n<p class="note">{colours}</p>'


def _picture(sentence: str, width: int, height: int, content: str) -> str:
    """Return a picture under the sentence that is its text alternative."""
    box = f'viewBox="0 0 {width} {height}" width="{width}"'
    image = f'<svg role="img" aria-label="{escape(sentence)}" {box}>{content}</svg>'
    return f'<div class="kept"><p>{escape(sentence)}</p>\n{image}</div>'


def _panels(panels: Panels) -> str:
    charts = "".join(_panel(panel, k * PANEL_PIXELS) for k, panel in enumerate(panels.panels))
    return _picture(panels.sentence, PANEL_PIXELS * len(panels.panels), PANEL_PIXELS, charts)


def _panel(panel: Panel, left: int) -> str:
    """Return one chart with its axes, from `left` on."""
    x0 = left + 54
    y0 = PANEL_PIXELS - 46
    side = PANEL_PIXELS - 84

    def at(x: float, y: float) -> tuple[float, float]:
        return x0 + side * x, y0 - side * y

    def line(a: tuple[float, float], b: tuple[float, float], look: str) -> str:
        x, y = at(*a)
        to_x, to_y = at(*b)
        return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" {look}/>'

    parts = [line((0, 0), (1, 0), AXIS), line((0, 0), (0, 1), AXIS), line((0, 0), (1, 1), EVEN)]
    for tick in AXIS_TICKS:
        x, y = at(tick, tick)
        parts.append(f'<text x="{x:.1f}" y="{y0 + 17}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{x0 - 7}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = y0 - side / 2
    turned = f'transform="rotate(-90 {left + 14} {middle})"'
    parts += [
        f'<text x="{x0}" y="20" font-weight="600">{escape(panel.title)}</text>',
        f'<text x="{x0 + side / 2}" y="{y0 + 37}" text-anchor="middle">{escape(panel.across)}</text>',
        f'<text x="{left + 14}" y="{middle}" text-anchor="middle" {turned}>{escape(panel.up)}</text>',
        *(line((x, low), (x, high), CURVE) for (x, _), (low, high) in zip(panel.points, panel.whiskers, strict=False)),
    ]
    spots = [at(*point) for point in panel.points]
    if panel.whiskers:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{INK}"/>' for x, y in spots]
    else:
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{joined}" fill="none" {CURVE}/>')
    return "".join(parts)


def colour(party: int) -> str:
    """Return a party's colour, as ``#RRGGBB``; those past the last share it."""
    return COLOURS[min(party, len(COLOURS) - 1)]


def shortened(label: str) -> str:
    """Return a bar's label in the room that there is; Chinese letters count double."""
    width = 0
    for i, letter in enumerate(label):
        width += 2 if letter > "\u2e80" else 1
        if width > MAX_LABEL:
            return label[:i].rstrip() + "…"
    return label
