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
from fpdf.enums import TableCellFillMode, WrapMode, XPos, YPos
from fpdf.fonts import FontFace

from backend.errors import ModelError
from backend.i18n import Catalogue
from backend.reports.blocks import Bars, Block, Code, Facts, Heading, Outline, Panel, Panels, Table, Text
from backend.reports.document import Report, canonical, read
from backend.reports.render.html_form import TICKS, colour, shortened
from backend.reports.render.pdf_page import FAINT, INK, LINE, RED, SIZE, SMALL, Page, has_chinese
from backend.reports.sections import outline

ATTACHED = "report.json"
LABELS, BAR = 74.0, 5.4  # millimetres
KEPT, BEGINNING = (
    140.0,
    45.0,
)  # millimetres: a block up to this is kept with its heading; of a longer one at least so much
PANEL = 78.0  # millimetres: side of a small chart with its words
# Millimetres of room for the name of an upright axis: a position left of the page would be counted from its right.
UP = 36.0


def language_of_pdf(language: str) -> str:
    """The language that a PDF can be drawn in here: English where Chinese is asked for and no font has its letters."""
    return language if language != "zh" or has_chinese() else "en"


def to_pdf(report: Report, language: str) -> bytes:
    """The report as PDF, in `language_of_pdf(language)`; the same bytes for the same report, language, fonts and fpdf2."""
    shown = language_of_pdf(language)
    pdf = pages(outline(report, shown), shown, datetime.fromisoformat(report.issued.time))
    pdf.embed_file(
        bytes=canonical(report.body()).encode(), basename=ATTACHED, mime_type="application/json", compress=False
    )
    return bytes(pdf.output())


def pages(drawn: Outline, language: str, time: datetime) -> FPDF:
    """An outline drawn on pages, in a language that this machine has letters for."""
    words = Catalogue(language)
    pdf = Page(words, time, drawn.head)
    pdf.set_title(drawn.title)
    pdf.add_page()
    pdf.paragraph(drawn.title, 18, bold=True)
    pdf.paragraph(drawn.subtitle, SIZE, colour=FAINT)
    for i, block in enumerate(drawn.blocks):
        if isinstance(block, Heading) and pdf.will_page_break(_together(pdf, drawn.blocks[i:])):
            pdf.add_page()
        _draw(pdf, block, words)
    return pdf


def _together(pdf: Page, blocks: Sequence[Block]) -> float:
    """Millimetres of what has to stand on one page with a heading: headings below it, and what they head, at least its beginning."""
    height = 0.0
    for block in blocks:
        if not isinstance(block, Heading):
            whole = _height(pdf, block)
            return height + (whole if whole <= KEPT or isinstance(block, Bars | Panels) else BEGINNING)
        height += 16 if block.level == 1 else 11
    return height


def _height(pdf: Page, block: Block) -> float:
    """Millimetres that a block takes, about."""
    match block:
        case Text(text):
            return pdf.height(text, SIZE)
        case Facts(rows):
            return _rows(pdf, rows, (3, 7), SIZE - 1)
        case Table():
            return _rows(pdf, (block.head, *block.rows), block.widths, SMALL)
        case Bars():
            return pdf.height(block.sentence, SIZE) + BAR * len(block.rows) + 10
        case Panels():
            return pdf.height(block.sentence, SIZE) + PANEL + 4
        case _:
            return BEGINNING


def _rows(pdf: Page, rows: Sequence[Sequence[str]], widths: Sequence[int], size: float) -> float:
    units = [pdf.epw * width / sum(widths) - 3 for width in widths]
    tallest = (max(map(lambda cell, room: pdf.height(cell, size, room), row, units), default=0.0) for row in rows)
    return sum(height + 1.6 for height in tallest) + 2


def read_pdf(blob: bytes) -> Report:
    """The report attached to a PDF: the one file in its tree of embedded files, as readers of PDF find it, written as it is.

    Raises
    ------
    ModelError
        There is none, it is not the only one, or its hashes do not fit.
    """
    from pypdf import PdfReader  # noqa: PLC0415 (whoever writes a report reads none)

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what is broken is said once, by the error
    try:
        root: Any = PdfReader(BytesIO(blob), strict=True).root_object
        names = root["/Names"]["/EmbeddedFiles"]
        name, file = names["/Names"]
        streams = [stream.get_object() for stream in file.get_object()["/EF"].values()]
        alone = name == ATTACHED and "/Kids" not in names and all(stream is streams[0] for stream in streams)
        attached = streams[0].get_data() if alone and "/Filter" not in streams[0] else b""  # nothing is unpacked
    except Exception as error:  # a file can be broken in every way
        raise ModelError(
            f"The PDF file has no {ATTACHED} attached that can be read ({type(error).__name__}), or more than that. Ask for it again."
        ) from error
    if not attached:
        raise ModelError(f"The PDF file has not {ATTACHED} alone attached, unpacked. Ask for it again.")
    return read(attached.decode("utf-8", errors="replace") + "\n")


def is_drawn_here(blob: bytes, report: Report) -> bool:
    """Whether this machine draws exactly this file from the report in it; other fonts or another version draw another file."""
    return any(to_pdf(report, language) == blob for language in ("en", "zh"))


def _draw(pdf: Page, block: Block, words: Catalogue) -> None:
    match block:
        case Heading(text, level):
            pdf.ln(4 if level == 1 else 2)
            pdf.start_section(pdf.one_line(text), level - 1)
            pdf.paragraph(text, 14 if level == 1 else 10.5, bold=True)
        case Text(text, tone):
            pdf.paragraph(text, SIZE, colour={"plain": INK, "note": FAINT, "finding": RED}[tone])
        case Code(text):
            pdf.code(text)
        case Facts(rows):
            _table(pdf, Table((), rows, (3, 7)), SIZE - 1)
        case Table():
            _table(pdf, block, SMALL)
        case Bars():
            _bars(pdf, block, words)
        case Panels():
            _panels(pdf, block)


def _table(pdf: Page, table: Table, size: float) -> None:
    pdf.face(size)
    pdf.set_draw_color(216, 222, 228)
    pdf.set_fill_color(255, 255, 255)
    bold = FontFace(emphasis="BOLD")
    with pdf.table(
        col_widths=table.widths,
        text_align=tuple("RIGHT" if i in table.numeric else "LEFT" for i in range(len(table.widths))),
        borders_layout="HORIZONTAL_LINES",
        headings_style=bold,
        first_row_as_headings=bool(table.head),
        line_height=size * 0.5,
        padding=(0.8, 1.2, 0.8, 0),
        cell_fill_mode=TableCellFillMode.NONE,
        wrapmode=WrapMode.CHAR if pdf.family == "chinese" else WrapMode.WORD,
    ) as grid:
        for row in (table.head, *table.rows) if table.head else table.rows:
            line = grid.row()
            for i, cell in enumerate(row):
                line.cell(pdf.drawable(cell) or " ", style=bold if not table.head and i == 0 else None)
    pdf.ln(2)


def _bars(pdf: Page, bars: Bars, words: Catalogue) -> None:
    pdf.paragraph(bars.sentence, SIZE)
    room = pdf.epw - LABELS - 22
    for bar in bars.rows:
        if pdf.will_page_break(BAR):
            pdf.add_page()
        y = pdf.get_y()
        pdf.face(SMALL)
        pdf.cell(LABELS, BAR, pdf.one_line(shortened(bar.label)), align="R")
        _fill(pdf, bar.party)
        length = max(0.6, bar.share * room)
        pdf.rect(pdf.l_margin + LABELS + 2, y + 0.9, length, BAR - 1.8, style="F")
        pdf.set_xy(pdf.l_margin + LABELS + 3 + length, y)
        pdf.cell(20, BAR, bar.shown, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(1)
    before, _, after = words("document.colours", listed="\0").partition("\0")
    pdf.face(SMALL, colour=FAINT)
    pdf.cell(pdf.get_string_width(before) + 3, LINE, before)
    for i, name in enumerate(bars.parties):
        _fill(pdf, i)
        pdf.rect(pdf.get_x(), pdf.get_y() + 1.1, 2.4, 2.4, style="F")
        pdf.set_x(pdf.get_x() + 3)
        pdf.cell(pdf.get_string_width(pdf.one_line(name)) + 5, LINE, pdf.one_line(name))
    pdf.cell(5, LINE, after, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(2)


def _panels(pdf: Page, panels: Panels) -> None:
    if pdf.will_page_break(_height(pdf, panels)):
        pdf.add_page()
    pdf.paragraph(panels.sentence, SIZE)
    top = pdf.get_y()
    for k, panel in enumerate(panels.panels):
        _panel(pdf, panel, pdf.l_margin + k * (PANEL + 6), top)
    pdf.set_xy(pdf.l_margin, top + PANEL)
    pdf.ln(2)


def _panel(pdf: Page, panel: Panel, left: float, top: float) -> None:
    """One chart with its axes, its corner at `left` and `top`."""
    x0, y0, side = left + 13, top + PANEL - 13, PANEL - 21

    def at(x: float, y: float) -> tuple[float, float]:
        return x0 + side * x, y0 - side * y

    def line(a: tuple[float, float], b: tuple[float, float]) -> None:
        pdf.line(*at(*a), *at(*b))

    def label(text: str, x: float, y: float, width: float) -> None:
        pdf.set_xy(x, y)
        pdf.cell(width, 4, pdf.one_line(text), align="C")

    pdf.face(SMALL)
    label(panel.title, x0, top, side)
    label(panel.across, left, y0 + 6, PANEL)
    with pdf.rotation(90, left + 3, y0 - side / 2):
        label(panel.up, left + 3 - UP / 2, y0 - side / 2 - 2, UP)
    for tick in TICKS:
        x, y = at(tick, tick)
        label(f"{tick:g}", x - 5, y0 + 1.5, 10)
        label(f"{tick:g}", x0 - 9, y - 2, 8)
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
