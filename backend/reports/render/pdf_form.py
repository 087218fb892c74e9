"""A report as PDF, drawn by fpdf2 from the same outline as the HTML; the canonical JSON is attached inside. Knows the report alone.

Letters come from fonts of this machine: Chinese needs one with Chinese letters, otherwise the PDF is drawn in English. What no font
here can draw is drawn as "?"; the attached JSON holds every letter.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from itertools import pairwise
from typing import Any

from fpdf import FPDF

from backend.errors import ModelError
from backend.i18n import LANGUAGES, Catalogue
from backend.jobs import work
from backend.reports.blocks import Bars, Block, Code, Facts, Heading, Outline, Panel, Panels, Paragraph, Table
from backend.reports.document import Report, canonical, read
from backend.reports.render.fonts import language_of_pdf
from backend.reports.render.html_form import AXIS_TICKS, colour
from backend.reports.render.pdf_page import FAINT, INK, LINE_MM, RED, SIZE, SMALL_POINTS, Page, in_a_row
from backend.reports.sections import outline

ATTACHED = "report.json"
# shares of the work that are done once the process has begun that draws, and once the pages are drawn; the rest is to write them, and their
# letters, in a file
BEGUN = 0.57
DRAWN_SHARE = 0.8
# millimetres
LABEL_MM = 74.0
BAR_MM = 5.4
# millimetres: a block up to this is kept with its heading; of a longer one at least so much
KEPT_TOGETHER_MM = 140.0
BEGINNING = 45.0
PANEL_MM = 78.0  # millimetres: side of a small chart with its words
# Millimetres of a table: right of a cell's text, above and below it.
BESIDE = 2.4
ABOVE = 0.8


def to_pdf(report: Report, language: str) -> bytes:
    """Return the report as PDF, in `language_of_pdf(language)`; the same bytes for the same report, language, fonts and fpdf2."""
    pdf_language = language_of_pdf(language)
    pdf = pages(outline(report, pdf_language), pdf_language, datetime.fromisoformat(report.issued.time))
    pdf.embed_file(
        bytes=canonical(report.body()).encode(), basename=ATTACHED, mime_type="application/json", compress=False
    )
    return bytes(pdf.output())


def pages(outline: Outline, language: str, time: datetime) -> FPDF:
    """Return an outline drawn on pages, in a language that this machine has letters for."""
    words = Catalogue(language)
    pdf = Page(words, time, outline.head)
    pdf.set_title(outline.title)
    pdf.add_page()
    pdf.paragraph(outline.title, 18, bold=True)
    pdf.paragraph(outline.subtitle, SIZE, colour=FAINT)
    for i, block in enumerate(outline.blocks):
        begins = isinstance(block, Heading) and block.new_page
        if begins or (isinstance(block, Heading | Paragraph) and pdf.room_below() < _together(pdf, outline.blocks[i:])):
            pdf.add_page()
        _draw(pdf, block, words, _remark(pdf, outline.blocks[i + 1 : i + 2]))
        work.reached(BEGUN + (DRAWN_SHARE - BEGUN) * (i + 1) / len(outline.blocks))
    return pdf


def _remark(pdf: Page, following: Sequence[Block]) -> float:
    """Millimetres of the remark that comes next, which is on one page with the end of what it is about; 0 if none does."""
    match following:
        case [Paragraph(text, "note")] if (height := pdf.height(text, SIZE)) <= BEGINNING:
            return height
    return 0.0


def _together(pdf: Page, blocks: Sequence[Block]) -> float:
    """Return the millimetres of what is on one page with a heading: headings and sentences below it, and what they head, or its beginning.

    Of a sentence that comes first likewise, if a table or code follows; else 0.
    """
    headings = 0.0
    below = 0.0
    level = 0
    if not any(isinstance(block, Heading) for block in blocks[:1]) and not any(
        isinstance(block, Table | Facts | Code) for block in blocks[1:2]
    ):
        return 0.0
    for block in blocks:
        if isinstance(block, Heading):
            if below and block.level <= level:  # the next heading's own; a part's is kept with the sentences before it
                break
            level = block.level
            headings += 16 if block.level == 1 else 11
            continue
        height = _height(pdf, block)
        below += height if height <= KEPT_TOGETHER_MM or isinstance(block, Bars | Panels) else BEGINNING
        # however many headings are above, so that the last of them does not go to another page than the first
        if not isinstance(block, Paragraph) or below > BEGINNING:
            break
    return headings + below


def _height(pdf: Page, block: Block) -> float:
    """Millimetres that a block takes, about."""
    match block:
        case Paragraph(text):
            return pdf.height(text, SIZE)
        case Facts(rows):
            return _rows(pdf, rows, (3, 7), SIZE - 1)
        case Table():
            return _rows(pdf, (block.head, *block.rows), block.widths, SMALL_POINTS)
        case Bars():
            return pdf.height(block.sentence, SIZE) + BAR_MM * len(block.rows) + 10
        case Panels():
            return pdf.height(block.sentence, SIZE) + PANEL_MM + 4
        case _:
            return BEGINNING


def _rows(pdf: Page, rows: Sequence[Sequence[str]], widths: Sequence[int], size: float) -> float:
    units = [pdf.epw * width / sum(widths) - BESIDE for width in widths]
    tallest = (max(map(lambda cell, room: pdf.height(cell, size, room), row, units), default=0.0) for row in rows)
    return sum(height + 2 * ABOVE for height in tallest) + 2


def read_pdf(blob: bytes) -> Report:
    """Return the report attached to a PDF: the one file in its tree of embedded files, as readers of PDF find it, written as it is.

    Raises
    ------
    ModelError
        There is none, it is not the only one, or its hashes do not fit.
    """
    from pypdf import PdfReader  # noqa: PLC0415 (writing a report reads none)

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is broken is said once, by the error
    try:
        root: Any = PdfReader(BytesIO(blob), strict=True).root_object
        names = root["/Names"]["/EmbeddedFiles"]
        name, file = names["/Names"]
        streams = [stream.get_object() for stream in file.get_object()["/EF"].values()]
        alone = name == ATTACHED and "/Kids" not in names and all(stream is streams[0] for stream in streams)
        attached = streams[0].get_data() if alone and "/Filter" not in streams[0] else b""  # nothing is unpacked
    except Exception as error:  # a file can be broken in every way
        raise ModelError("pdf_attachment_unreadable", name=ATTACHED, why=type(error).__name__) from error
    if not attached:
        raise ModelError("pdf_without_attachment", name=ATTACHED)
    return read(attached.decode("utf-8", errors="replace") + "\n")


def is_drawn_here(blob: bytes, report: Report) -> bool:
    """Return whether this machine draws exactly this file from the report in it; other fonts or another version draw another file."""
    # drawing takes a second
    likely = sorted(LANGUAGES, key=lambda language: f"/Lang ({language})".encode() not in blob)
    return any(to_pdf(report, language) == blob for language in likely)


def _draw(pdf: Page, block: Block, words: Catalogue, remark: float = 0.0) -> None:
    match block:
        case Heading(text, level):
            pdf.ln(4 if level == 1 else 2)
            pdf.start_section(pdf.one_line(text), level - 1)
            pdf.paragraph(text, 14 if level == 1 else 10.5, bold=True)
        case Paragraph(text, tone):
            pdf.paragraph(text, SIZE, colour={"plain": INK, "note": FAINT, "finding": RED}[tone])
        case Code(text):
            pdf.code(text)
        case Facts(rows):
            _table(pdf, Table((), rows, (3, 7)), SIZE - 1, remark)
        case Table():
            _table(pdf, block, SMALL_POINTS, remark)
        case Bars():
            _bars(pdf, block, words)
        case Panels():
            _panels(pdf, block)


def _table(pdf: Page, table: Table, size: float, remark: float = 0.0) -> None:
    """Draw rows with a line below each; one that fits no page goes on on the next, and the head is on every page.

    A remark of `remark` millimetres is on one page with the last row.
    """
    widths = [pdf.epw * width / sum(table.widths) for width in table.widths]
    bolds = [[bool(not table.head and i == 0) for i in range(len(widths))], [True] * len(widths)]
    if table.head:
        head = _cells(pdf, table.head, widths, bolds[1], size)
    else:
        head = None
    rows = [_cells(pdf, row, widths, bolds[0], size) for row in table.rows or [()]]
    for k, cells_of_row in enumerate(rows):
        begins = k == 0
        row_group = sum(_tall(row, size) for row in rows[k : k + in_a_row(k, len(rows))])
        height = row_group if row_group <= BEGINNING else _tall(cells_of_row, size)  # tall rows may stand alone
        height += remark if k + in_a_row(k, len(rows)) >= len(rows) else 0.0
        height += _tall(head, size) if head and begins else 0.0
        if pdf.room_below() < min(height, KEPT_TOGETHER_MM):
            pdf.add_page()
            begins = True
        if head and begins:
            _row(pdf, head, table, bolds[1], size)
        cells = cells_of_row
        while _tall(cells, size) > pdf.room_below():
            fit = max(1, int((pdf.room_below() - 2 * ABOVE) / (size * 0.5)))
            _row(pdf, [lines[:fit] for lines in cells], table, bolds[0], size)
            cells = [lines[fit:] for lines in cells]
            pdf.add_page()
            if head:
                _row(pdf, head, table, bolds[1], size)
        _row(pdf, cells, table, bolds[0], size)
    pdf.ln(2)


def _cells(
    pdf: Page, row: Sequence[str], widths: Sequence[float], bolds: Sequence[bool], size: float
) -> list[list[str]]:
    """Return a row's cells in lines."""
    cells = []
    for text, width, bold in zip(row, widths, bolds, strict=False):
        pdf.face(size, bold=bold)
        cells.append(pdf.lines_of(text, width - BESIDE))
    return cells


def _tall(cells: Sequence[Sequence[str]], size: float) -> float:
    return max(map(len, cells), default=0) * size * 0.5 + 2 * ABOVE


def _row(pdf: Page, cells: Sequence[Sequence[str]], table: Table, bolds: Sequence[bool], size: float) -> None:
    top = pdf.get_y()
    x = pdf.l_margin
    height = size * 0.5
    for i, (lines, bold) in enumerate(zip(cells, bolds, strict=False)):
        right = i in table.numeric
        width = pdf.epw * table.widths[i] / sum(table.widths)
        pdf.face(size, bold=bold)
        for j, line in enumerate(lines):
            y = top + ABOVE + j * height
            pdf.put(x + width - BESIDE if right else x, y, line, height, "right" if right else "left")
        x += width
    bottom = top + _tall(cells, size)
    pdf.set_draw_color(216, 222, 228)
    pdf.line(pdf.l_margin, bottom, pdf.l_margin + pdf.epw, bottom)
    pdf.set_xy(pdf.l_margin, bottom)


def _bars(pdf: Page, bars: Bars, words: Catalogue) -> None:
    pdf.paragraph(bars.sentence, SIZE)
    room = pdf.epw - LABEL_MM - 22
    for k, bar in enumerate(bars.rows):
        # The last bar and the legend stay together.
        if pdf.room_below() < (BAR_MM if k + 1 < len(bars.rows) else BAR_MM + 8):
            pdf.add_page()
        y = pdf.get_y()
        pdf.face(SMALL_POINTS)
        pdf.put(pdf.l_margin + LABEL_MM, y, pdf.beginning(pdf.one_line(bar.label), LABEL_MM), BAR_MM, "right")
        _fill(pdf, bar.party)
        length = max(0.6, bar.share * room)
        pdf.rect(pdf.l_margin + LABEL_MM + 2, y + 0.9, length, BAR_MM - 1.8, style="F")
        pdf.put(pdf.l_margin + LABEL_MM + 4 + length, y, bar.figure, BAR_MM)
        pdf.set_xy(pdf.l_margin, y + BAR_MM)
    pdf.ln(1)
    lead, _, tail = words("document.colours", listed="\0").partition("\0")
    pdf.face(SMALL_POINTS, colour=FAINT)
    x = pdf.l_margin
    y = pdf.get_y()
    pdf.put(x, y, lead, LINE_MM)
    x += pdf.wide(lead) + 1
    for i, name in enumerate(map(pdf.one_line, bars.parties)):
        _fill(pdf, i)
        pdf.rect(x, y + 1.1, 2.4, 2.4, style="F")
        pdf.put(x + 3.5, y, name, LINE_MM)
        x += pdf.wide(name) + 7
    pdf.put(x - 2.5, y, tail, LINE_MM)
    pdf.set_xy(pdf.l_margin, y + LINE_MM)
    pdf.ln(2)


def _panels(pdf: Page, panels: Panels) -> None:
    if pdf.room_below() < _height(pdf, panels):
        pdf.add_page()
    pdf.paragraph(panels.sentence, SIZE)
    top = pdf.get_y()
    for k, panel in enumerate(panels.panels):
        _panel(pdf, panel, pdf.l_margin + k * (PANEL_MM + 6), top)
    pdf.set_xy(pdf.l_margin, top + PANEL_MM)
    pdf.ln(2)


def _panel(pdf: Page, panel: Panel, left: float, top: float) -> None:
    """Draw one chart with its axes, its corner at `left` and `top`."""
    x0 = left + 13
    y0 = top + PANEL_MM - 13
    side = PANEL_MM - 21

    def at(x: float, y: float) -> tuple[float, float]:
        return x0 + side * x, y0 - side * y

    def line(a: tuple[float, float], b: tuple[float, float]) -> None:
        pdf.line(*at(*a), *at(*b))

    def label(text: str, x: float, y: float) -> None:
        pdf.put(x, y, pdf.one_line(text), 4, "centre")

    pdf.face(SMALL_POINTS)
    label(panel.title, x0 + side / 2, top)
    label(panel.across, x0 + side / 2, y0 + 6)
    with pdf.rotation(90, left + 3, y0 - side / 2):
        label(panel.up, left + 3, y0 - side / 2 - 2)
    for tick in AXIS_TICKS:
        x, y = at(tick, tick)
        label(f"{tick:g}", x, y0 + 1.5)
        label(f"{tick:g}", x0 - 5, y - 2)
    pdf.set_draw_color(154, 167, 178)
    line((0, 0), (1, 0))
    line((0, 0), (0, 1))
    with pdf.local_context():
        pdf.set_dash_pattern(dash=1, gap=1)
        line((0, 0), (1, 1))
    pdf.set_draw_color(*INK)
    for (x, _), (low, high) in zip(panel.points, panel.whiskers, strict=False):
        line((x, low), (x, high))
    pdf.set_fill_color(*INK)
    if panel.whiskers:
        for point in panel.points:
            pdf.circle(*at(*point), 0.8, style="F")
    else:
        for a, b in pairwise(panel.points):
            line(a, b)


def _fill(pdf: Page, party: int) -> None:
    """Take a party's colour for what is drawn next."""
    pdf.set_fill_color(*bytes.fromhex(colour(party)[1:]))
