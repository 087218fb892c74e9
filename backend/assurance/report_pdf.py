"""A report as PDF, drawn by fpdf2 from the same outline as the HTML; the canonical JSON is attached inside. Knows the report alone.

Letters come from fonts of this machine: Chinese needs one with Chinese letters, otherwise the PDF is drawn in English. What no font
here can draw is drawn as "?"; the attached JSON holds every letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import TableCellFillMode, WrapMode, XPos, YPos
from fpdf.fonts import FontFace

from backend.assurance.report import Report, canonical, read
from backend.assurance.report_blocks import Bars, Block, Code, Facts, Heading, Outline, Table, Text
from backend.assurance.report_html import COLOURS, shortened
from backend.assurance.report_outline import outline
from backend.assurance.report_words import Words
from backend.errors import ModelError

ATTACHED = "report.json"
SIZE, SMALL, LINE = 9.5, 7.5, 4.6  # points of text and of tables; millimetres of a line
INK, FAINT, RED = (34, 48, 60), (85, 96, 106), (163, 39, 30)
LABELS, BAR = 74.0, 5.4  # millimetres
_NOTO, _DEJAVU = "/usr/share/fonts/opentype/noto/NotoSansCJK", "/usr/share/fonts/truetype/dejavu/DejaVuSans"
_START = re.compile(rb'\{"content":\{.*?\n?(?=\r?\nendstream)', re.S)


@dataclass(frozen=True)
class Font:
    """A family's files; `place` is the face's place in a collection."""

    plain: Path
    bold: Path
    place: int = 0

    def there(self) -> bool:
        """Whether this machine has it."""
        return self.plain.is_file() and self.bold.is_file()


def _fonts(*files: tuple[str, str, int]) -> tuple[Font, ...]:
    return tuple(Font(Path(plain), Path(bold), place) for plain, bold, place in files)


CHINESE = _fonts(
    (f"{_NOTO}-Regular.ttc", f"{_NOTO}-Bold.ttc", 2),  # Debian, Ubuntu: fonts-noto-cjk; 2 = simplified Chinese
    (
        "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc",
        "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Bold.ttc",
        2,
    ),
    ("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", 0),
    ("/System/Library/Fonts/STHeiti Light.ttc", "/System/Library/Fonts/STHeiti Medium.ttc", 0),
    ("C:/Windows/Fonts/msyh.ttc", "C:/Windows/Fonts/msyhbd.ttc", 0),
)
LATIN = _fonts(
    (f"{_DEJAVU}.ttf", f"{_DEJAVU}-Bold.ttf", 0),
    ("/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf", "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans-Bold.ttf", 0),
    ("/Library/Fonts/Arial Unicode.ttf", "/Library/Fonts/Arial Unicode.ttf", 0),
    ("C:/Windows/Fonts/arial.ttf", "C:/Windows/Fonts/arialbd.ttf", 0),
)


def language_of_pdf(language: str) -> str:
    """The language that a PDF can be drawn in here: English where Chinese is asked for and no font has its letters."""
    return language if language != "zh" or _first(CHINESE) else "en"


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
    words = Words(language)
    pdf = _Page(words, time)
    pdf.set_title(drawn.title)
    pdf.add_page()
    pdf.say(drawn.title, 18, bold=True)
    pdf.say(drawn.subtitle, SIZE, colour=FAINT)
    for block in drawn.blocks:
        _draw(pdf, block, words)
    return pdf


def read_pdf(blob: bytes) -> Report:
    """The report attached to a PDF.

    Raises
    ------
    ModelError
        There is none, or its hashes do not fit.
    """
    found = _START.search(blob)
    if found is None:
        raise ModelError("The PDF file holds no report. Ask for it again.")
    return read(found[0].decode("ascii", errors="replace"))


def is_drawn_here(blob: bytes, report: Report) -> bool:
    """Whether this machine draws exactly this file from the report in it; other fonts or another version draw another file."""
    return any(to_pdf(report, language) == blob for language in ("en", "zh"))


class _Page(FPDF):
    """Pages with a number at the foot, in whatever fonts there are."""

    def __init__(self, words: Words, time: datetime) -> None:
        super().__init__(format="A4")
        self._words = words
        self.set_creation_date(time)
        self.set_lang(words.language)
        self.set_margins(16, 16)
        self.set_auto_page_break(True, margin=18)
        latin, chinese = _first(LATIN), _first(CHINESE)
        self.only_latin1 = latin is None and chinese is None
        for name, font in (("latin", latin), ("chinese", chinese)):
            if font is not None:
                self.add_font(name, "", font.plain, collection_font_number=font.place)
                self.add_font(name, "B", font.bold, collection_font_number=font.place)
        first = "chinese" if chinese and (words.language == "zh" or latin is None) else "latin"
        self.family = "helvetica" if self.only_latin1 else first
        if latin and chinese:
            self.set_fallback_fonts(["latin" if first == "chinese" else "chinese"], exact_match=False)

    def footer(self) -> None:
        """The page's number."""
        self.set_y(-13)
        self.face(SMALL, colour=FAINT)
        self.cell(0, 5, self._words("document.page", n=self.page_no(), all="{nb}"), align="C")

    def face(self, size: float, *, bold: bool = False, colour: tuple[int, int, int] = INK) -> None:
        """Choose how letters look."""
        self.set_font(self.family, "B" if bold else "", size)
        self.set_text_color(*colour)

    def drawable(self, text: str) -> str:
        """`text` as the fonts can draw it."""
        return (
            text.encode("cp1252", errors="replace").decode("cp1252").encode("latin-1", "replace").decode("latin-1")
            if self.only_latin1
            else text
        )

    def say(self, text: str, size: float, *, bold: bool = False, colour: tuple[int, int, int] = INK) -> None:
        """A paragraph over the whole width."""
        self.face(size, bold=bold, colour=colour)
        self.multi_cell(
            0,
            size * 0.49,
            self.drawable(text),
            align="L",
            new_x=XPos.LMARGIN,
            new_y=YPos.NEXT,
            wrapmode=self.wrapping(text),
        )
        self.ln(1.2)

    def wrapping(self, text: str) -> WrapMode:
        """Break between letters where there are no words: in Chinese, and in hashes."""
        return WrapMode.CHAR if any(letter > "\u2e80" for letter in text) else WrapMode.WORD


def _draw(pdf: _Page, block: Block, words: Words) -> None:
    match block:
        case Heading(text, level):
            if pdf.will_page_break(30):
                pdf.add_page()
            pdf.ln(4 if level == 1 else 2)
            pdf.start_section(pdf.drawable(text), level - 1)
            pdf.say(text, 14 if level == 1 else 10.5, bold=True)
        case Text(text, tone):
            pdf.say(text, SIZE, colour={"plain": INK, "note": FAINT, "finding": RED}[tone])
        case Code(text):
            pdf.set_fill_color(244, 246, 248)
            pdf.face(SMALL)
            pdf.multi_cell(
                0,
                4,
                pdf.drawable(text),
                fill=True,
                align="L",
                new_x=XPos.LMARGIN,
                new_y=YPos.NEXT,
                wrapmode=WrapMode.CHAR,
            )
            pdf.ln(1.5)
        case Facts(rows):
            _table(pdf, Table((), rows, (3, 7)), SIZE - 1)
        case Table():
            _table(pdf, block, SMALL)
        case Bars():
            _bars(pdf, block, words)


def _table(pdf: _Page, table: Table, size: float) -> None:
    pdf.face(size)
    pdf.set_draw_color(216, 222, 228)
    pdf.set_fill_color(255, 255, 255)
    align = tuple("RIGHT" if i in table.numeric else "LEFT" for i in range(len(table.widths)))
    bold = FontFace(emphasis="BOLD")
    chinese = pdf.family == "chinese"
    with pdf.table(
        col_widths=table.widths,
        text_align=align,
        borders_layout="HORIZONTAL_LINES",
        headings_style=bold,
        first_row_as_headings=bool(table.head),
        line_height=size * 0.5,
        padding=(0.8, 1.2, 0.8, 0),
        cell_fill_mode=TableCellFillMode.NONE,
        wrapmode=WrapMode.CHAR if chinese else WrapMode.WORD,
    ) as grid:
        for row in (table.head, *table.rows) if table.head else table.rows:
            line = grid.row()
            for i, cell in enumerate(row):
                line.cell(pdf.drawable(cell) or " ", style=bold if not table.head and i == 0 else None)
    pdf.ln(2)


def _bars(pdf: _Page, bars: Bars, words: Words) -> None:
    pdf.say(bars.sentence, SIZE)
    room = pdf.epw - LABELS - 22
    for bar in bars.rows:
        if pdf.will_page_break(BAR):
            pdf.add_page()
        y = pdf.get_y()
        pdf.face(SMALL)
        pdf.cell(LABELS, BAR, pdf.drawable(shortened(bar.label)), align="R")
        pdf.set_fill_color(*_rgb(bar.party))
        length = max(0.6, bar.share * room)
        pdf.rect(pdf.l_margin + LABELS + 2, y + 0.9, length, BAR - 1.8, style="F")
        pdf.set_xy(pdf.l_margin + LABELS + 3 + length, y)
        pdf.cell(20, BAR, bar.shown, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(1)
    before, _, after = words("document.colours", listed="\0").partition("\0")
    pdf.face(SMALL, colour=FAINT)
    pdf.cell(pdf.get_string_width(before) + 3, LINE, before)
    for i, name in enumerate(bars.parties):
        pdf.set_fill_color(*_rgb(i))
        pdf.rect(pdf.get_x(), pdf.get_y() + 1.1, 2.4, 2.4, style="F")
        pdf.set_x(pdf.get_x() + 3)
        pdf.cell(pdf.get_string_width(pdf.drawable(name)) + 5, LINE, pdf.drawable(name))
    pdf.cell(5, LINE, after, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(2)


def _rgb(party: int) -> tuple[int, int, int]:
    colour = COLOURS[min(party, len(COLOURS) - 1)]
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _first(fonts: Iterable[Font]) -> Font | None:
    return next((font for font in fonts if font.there()), None)
