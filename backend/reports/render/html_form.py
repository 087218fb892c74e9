"""A report as one HTML file that needs nothing else: styles and charts within, the canonical JSON inside it. Knows the report alone.

Drawing is a pure function of report and language, so that a copy is checked by drawing the report inside it again.
"""

from __future__ import annotations

import re
from html import escape

from backend.errors import ModelError
from backend.i18n import Catalogue
from backend.reports.blocks import Bars, Block, Code, Facts, Heading, Outline, Panel, Panels, Table, Text
from backend.reports.document import Report, canonical, read
from backend.reports.sections import outline

COLOURS = ("#3F77C9", "#C17A0F", "#12898A", "#A4559E", "#7B6A3C", "#7A74D6", "#5B8C2A")  # the Guest's, then the Hosts'
PANEL = 350  # pixels: side of a small chart with its words
MANY = 3  # columns; a table of more is scrolled sideways on a phone
TICKS = (0.0, 0.5, 1.0)
INK = "#22303C"
CURVE, AXIS = f'stroke="{INK}" stroke-width="1.8"', 'stroke="#9AA7B2" stroke-width="1"'
EVEN = 'stroke="#9AA7B2" stroke-width="1" stroke-dasharray="4 4"'  # the diagonal
BAR, LABELS, WIDTH = 22, 300, 720  # pixels: height of a row, width of the labels, of the picture
_INSIDE = re.compile(r'<script type="application/json" id="glassleaf-report">(.*?)</script>', re.S)
_LANGUAGE = re.compile(r'<html lang="(\w+)">')
STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{font:15px/1.5 "Source Sans 3","Noto Sans","DejaVu Sans",system-ui,sans-serif;color:#22303C;background:#fff;
max-width:960px;margin:0 auto;padding:32px 20px}
h1{font-size:28px;line-height:1.2;margin:0 0 4px}
h2{font-size:20px;margin:36px 0 10px;padding-top:12px;border-top:1px solid #D8DEE4;break-after:avoid}
h3{font-size:16px;margin:22px 0 6px;break-after:avoid}
p{margin:8px 0;max-width:80ch}
.sub,.note{color:#55606A}
.finding{color:#A3271E}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;margin:10px 0;font-size:13.5px}
th,td{text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid #E4E9ED;overflow-wrap:anywhere}
th{font-weight:600;border-bottom:1px solid #9AA7B2}
tr{break-inside:avoid}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.facts th{width:30%;font-weight:600;border-bottom:1px solid #E4E9ED}
code{display:block;font:12.5px/1.5 ui-monospace,"DejaVu Sans Mono",monospace;background:#F4F6F8;padding:8px 10px;
margin:6px 0;overflow-wrap:anywhere;white-space:pre-wrap}
svg{max-width:100%;height:auto;margin:8px 0}
svg text{font:13px "Source Sans 3","Noto Sans","DejaVu Sans",system-ui,sans-serif;fill:#22303C}
@media (max-width:640px){.many{min-width:620px}.facts th,.facts td{display:block;width:100%;border-bottom:0}.facts td{padding-top:0}}
@media print{body{max-width:none;padding:0;font-size:10.5pt}table{font-size:9pt}h2{margin-top:22px}.wide{overflow:visible}
@page{size:A4;margin:16mm 14mm}}
"""


def to_html(report: Report, language: str) -> str:
    """The report as HTML."""
    inside = canonical(report.body()).replace("<", "\\u003c")  # the same JSON to a parser; no tag can end the script
    script = f'<script type="application/json" id="glassleaf-report">{inside}</script>\n'
    return page(outline(report, language), language, script)


def page(drawn: Outline, language: str, script: str = "") -> str:
    """An outline as one HTML file; `script` stands at its end."""
    body = "\n".join(_block(block, language) for block in drawn.blocks)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(drawn.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(drawn.title)}</h1>\n<p class="sub">{escape(drawn.subtitle)}</p>\n{body}\n</main>\n'
        f"{script}</body>\n</html>\n"
    )


def read_html(text: str) -> Report:
    """The report inside an HTML file, whose visible part must be what is drawn from it.

    Raises
    ------
    ModelError
        There is none, its hashes do not fit, or the visible part was changed.
    """
    inside, language = _INSIDE.search(text), _LANGUAGE.search(text)
    if inside is None or language is None:
        raise ModelError("The HTML file holds no report. Ask for it again.")
    report = read(inside[1])
    if to_html(report, language[1]) != text:
        raise ModelError(
            "The HTML file is not what this version draws from the report inside it: either its visible part was changed, or "
            "another version drew it. Trust the JSON file, or ask for the report again."
        )
    return report


def _block(block: Block, language: str) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level + 1}>{escape(text)}</h{level + 1}>"
        case Text(text, tone):
            return f'<p class="{tone}">{_lines(text)}</p>'
        case Code(text):
            return f"<code>{escape(text)}</code>"
        case Facts(rows):
            told = ((escape(name), _lines(value)) for name, value in rows)
            lines = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in told)
            return f'<table class="facts">{lines}</table>'
        case Table():
            return _table(block)
        case Bars() | Panels():
            return _panels(block) if isinstance(block, Panels) else _bars(block, language)


def _lines(text: str) -> str:
    """Text of one or several lines."""
    return escape(text).replace("\n", "<br>\n")


def _table(table: Table) -> str:
    kind = ['class="n"' if i in table.numeric else "" for i in range(len(table.head))]
    whole = sum(table.widths)
    many = ' class="many"' if len(table.head) > MANY else ""
    columns = "".join(f'<col style="width:{100 * width / whole:.1f}%">' for width in table.widths)
    head = "".join(f'<th scope="col" {k}>{escape(t)}</th>' for t, k in zip(table.head, kind, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td {k}>{_lines(t)}</td>" for t, k in zip(row, kind, strict=True)) + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table{many}><colgroup>{columns}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _bars(bars: Bars, language: str) -> str:
    lines = []
    for i, bar in enumerate(bars.rows):
        y, length = i * BAR, max(2.0, bar.share * (WIDTH - LABELS - 80))
        colour = COLOURS[min(bar.party, len(COLOURS) - 1)]
        lines.append(
            f'<text x="{LABELS - 8}" y="{y + 15}" text-anchor="end">{escape(shortened(bar.label))}</text>'
            f'<rect x="{LABELS}" y="{y + 4}" width="{length:.1f}" height="{BAR - 8}" fill="{colour}"/>'
            f'<text x="{LABELS + length + 6:.1f}" y="{y + 15}">{escape(bar.shown)}</text>'
        )
    legend = " · ".join(
        f'<span style="color:{COLOURS[min(i, len(COLOURS) - 1)]}" aria-hidden="true">■</span> {escape(name)}'
        for i, name in enumerate(bars.parties)
    )
    picture = (
        f'<svg role="img" aria-label="{escape(bars.sentence)}" viewBox="0 0 {WIDTH} {BAR * len(bars.rows)}" '
        f'width="{WIDTH}">{"".join(lines)}</svg>'
    )
    colours = escape(Catalogue(language)("document.colours", listed="\0")).replace("\0", legend)
    return f'<p>{escape(bars.sentence)}</p>\n{picture}\n<p class="note">{colours}</p>'


def _panels(panels: Panels) -> str:
    drawn = "".join(_panel(panel, k * PANEL) for k, panel in enumerate(panels.panels))
    size = f'viewBox="0 0 {PANEL * len(panels.panels)} {PANEL}" width="{PANEL * len(panels.panels)}"'
    return (
        f'<p>{escape(panels.sentence)}</p>\n<svg role="img" aria-label="{escape(panels.sentence)}" {size}>{drawn}</svg>'
    )


def _panel(panel: Panel, left: int) -> str:
    """One chart with its axes, from `left` on."""
    x0, y0, side = left + 54, PANEL - 46, PANEL - 84

    def place(x: float, y: float) -> tuple[float, float]:
        return x0 + side * x, y0 - side * y

    def line(a: tuple[float, float], b: tuple[float, float], look: str) -> str:
        (x, y), (to_x, to_y) = place(*a), place(*b)
        return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" {look}/>'

    parts = [line((0, 0), (1, 0), AXIS), line((0, 0), (0, 1), AXIS), line((0, 0), (1, 1), EVEN)]
    for tick in TICKS:
        (x, _), (_, y) = place(tick, 0), place(0, tick)
        parts.append(f'<text x="{x:.1f}" y="{y0 + 17}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{x0 - 7}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = y0 - side / 2
    parts.append(f'<text x="{x0}" y="20" font-weight="600">{escape(panel.title)}</text>')
    parts.append(f'<text x="{x0 + side / 2}" y="{y0 + 37}" text-anchor="middle">{escape(panel.across)}</text>')
    turned = f'transform="rotate(-90 {left + 14} {middle})"'
    parts.append(f'<text x="{left + 14}" y="{middle}" text-anchor="middle" {turned}>{escape(panel.up)}</text>')
    for (x, _), (low, high) in zip(panel.points, panel.whiskers, strict=False):
        parts.append(line((x, low), (x, high), CURVE))
    spots = [place(*point) for point in panel.points]
    if panel.whiskers:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{INK}"/>' for x, y in spots]
    else:
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{joined}" fill="none" {CURVE}/>')
    return "".join(parts)


def shortened(label: str, most: int = 44) -> str:
    """A bar's label in the runtime that there is; Chinese letters count double."""
    used = 0
    for place, letter in enumerate(label):
        used += 2 if letter > "\u2e80" else 1
        if used > most:
            return label[:place].rstrip() + "…"
    return label
