"""Pages of a PDF with whatever fonts this machine has, numbered at the foot. Knows no report."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import groupby
from typing import Literal

from fpdf import FPDF
from fpdf.fonts import TTFFont

from backend.i18n import Catalogue
from backend.reports.render import fonts
from backend.reports.render.line_breaks import broken

# points of text and of tables; millimetres of a line
SIZE = 9.5
SMALL_POINTS = 7.5
LINE_MM = 4.6
INK = (34, 48, 60)
FAINT = (85, 96, 106)
RED = (163, 39, 30)
PAGES_PLACEHOLDER = "0{nb}0"  # is replaced by the number of pages, and is set apart from Chinese as a number is
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def in_a_row(i: int, n: int) -> int:
    """Return how many of `n` lines, or rows, are on one page from line `i` on, so that the first and the last are on none alone."""
    if i == 0:
        return n if n <= 3 else 2
    return 2 if i == n - 2 else 1


class Page(FPDF):
    """Pages with a number at the foot and, from the second on, what they belong to at the top, in whatever fonts there are.

    Text is measured and broken here, letter by letter from widths that are looked up once: fpdf2's own breaking measures each cell
    many times and breaks Chinese within numbers and names.
    """

    def __init__(self, words: Catalogue, time: datetime, head: str = "") -> None:
        super().__init__(format="A4")
        self._words = words
        self._head = head
        self.set_creation_date(time)
        self.alias_nb_pages(PAGES_PLACEHOLDER)
        self.set_lang(words.language)
        self.set_margins(16, 16)
        self.set_auto_page_break(True, margin=18)
        latin = fonts.first(fonts.LATIN)
        chinese = fonts.first(fonts.CHINESE_FONTS)
        self.only_latin1 = latin is None and chinese is None
        if self.only_latin1 or latin in fonts.SYMBOLS:
            symbols = None
        else:
            symbols = fonts.first(fonts.SYMBOLS)
        candidates = (("latin", latin), ("chinese", chinese), ("symbols", symbols))
        by_name = {name: font for name, font in candidates if font is not None}
        if self.only_latin1:
            self.family = "helvetica"
        elif words.language == "zh" and chinese:
            self.family = "chinese"
        else:
            self.family = next(iter(by_name))
        if by_name:
            self._load(self.family, by_name.pop(self.family))
        self._spare = by_name  # loaded when a letter needs it: reading a font takes longer than drawing a page
        self._families: dict[str, str] = {}
        self._widths: dict[tuple[str, bool], float] = {}
        self._broken: dict[tuple[str, float, bool], list[str]] = {}
        self._bold = False
        self._colour = INK

    def _load(self, family: str, font: fonts.Font) -> None:
        self.add_font(family, "", font.plain, collection_font_number=font.face)
        self.add_font(family, "B", font.bold, collection_font_number=font.face)
        for key in (family, family + "B"):
            loaded = self.fonts[key]
            if isinstance(loaded, TTFFont):
                # Boxes of the letters that are embedded would be drawn to be measured; those of the whole font hold for each part.
                loaded.ttfont.recalcBBoxes = False

    def header(self) -> None:
        """Draw what the pages after the first belong to."""
        if self._head and self.page_no() > 1:
            self.face(SMALL_POINTS, colour=FAINT)
            self.put(self.l_margin, 8, self._fitting(self.one_line(self._head), self.epw), 5)
            self.set_y(self.t_margin)

    def footer(self) -> None:
        """Draw the page's number."""
        self.set_y(-13)
        self.face(SMALL_POINTS, colour=FAINT)
        self.cell(0, 5, self._words("document.page", n=self.page_no(), all=PAGES_PLACEHOLDER), align="C")

    def face(self, size: float, *, bold: bool = False, colour: tuple[int, int, int] = INK) -> None:
        """Choose how letters look."""
        self.set_font(self.family, "B" if bold else "", size)
        self.set_text_color(*colour)
        self._bold = bold
        self._colour = colour

    def drawable(self, text: str) -> str:
        """`text` as the fonts can draw it; control characters but line breaks have no glyph."""
        text = _CONTROL.sub(" ", text)
        if not self.only_latin1:
            return text
        return (
            text.replace("−", "-")
            .encode("cp1252", errors="replace")
            .decode("cp1252")
            .encode("latin-1", "replace")
            .decode("latin-1")
        )

    def one_line(self, text: str) -> str:
        """`text` as the fonts can draw it, without line breaks."""
        return " ".join(self.drawable(text).split())

    def room_below(self) -> float:
        """Millimetres down to the lower margin."""
        return float(self.page_break_trigger - self.get_y())

    def paragraph(self, text: str, size: float, *, bold: bool = False, colour: tuple[int, int, int] = INK) -> None:
        """Draw lines over the whole width."""
        self.face(size, bold=bold, colour=colour)
        self._lines(text, size * 0.49)
        self.ln(1.2)

    def code(self, text: str) -> None:
        """Draw lines for a shell, on a grey ground, on one page."""
        self.face(SMALL_POINTS)
        if self.room_below() < 4 * len(self.lines_of(text)):
            self.add_page()
            self.face(SMALL_POINTS)
        self._lines(text, 4, ground=(244, 246, 248))
        self.ln(1.5)

    def _lines(self, text: str, height: float, ground: tuple[int, int, int] | None = None) -> None:
        """Draw text from the left margin; the next line starts there again."""
        look = self.font_size_pt, self._bold, self._colour
        lines = self.lines_of(text)
        for i, line in enumerate(lines):
            if self.room_below() < height * in_a_row(i, len(lines)):
                self.add_page()
                self.face(look[0], bold=look[1], colour=look[2])
            y = self.get_y()
            if ground is not None:
                self.set_fill_color(*ground)
                self.rect(self.l_margin, y, self.epw, height, style="F")
            self.put(self.l_margin, y, line, height)
            self.set_xy(self.l_margin, y + height)

    def height(self, text: str, size: float, width: float = 0.0) -> float:
        """Millimetres that text takes in a column: its lines of letters of `size` points."""
        self.face(size)
        return len(self.lines_of(text, width)) * size * 0.5

    def lines_of(self, text: str, width: float = 0.0) -> list[str]:
        """`text` in lines of at most `width` millimetres, by default the page's, in the face that was chosen."""
        room = (width or self.epw) * self.k / self.font_size_pt
        key = text, room, self._bold
        if key not in self._broken:  # measured for its height, then drawn
            self._broken[key] = broken(self.drawable(text), self._width, room)
        return self._broken[key]

    def wide(self, text: str) -> float:
        """Millimetres of a line in the face that was chosen."""
        return sum(map(self._width, text)) * self.font_size_pt / self.k

    def _width(self, letter: str) -> float:
        """Of a letter, as a part of the font's size."""
        key = letter, self._bold
        if key not in self._widths:
            font = self.fonts.get(self._family(letter) + "B" * self._bold) or self.current_font
            if font:
                self._widths[key] = font.get_text_width(letter, 1, None)[1]
            else:
                self._widths[key] = 0.0
        return self._widths[key]

    def _family(self, letter: str) -> str:
        """Return the first family that has the letter; the page's own if none has."""
        if self.only_latin1:
            return self.family
        if letter not in self._families:
            if not self._has(self.family, letter) and self._spare:
                for name, font in self._spare.items():
                    self._load(name, font)
                self._spare = {}
            loaded = (
                name for name in ("latin", "chinese", "symbols") if name in self.fonts and self._has(name, letter)
            )
            if self._has(self.family, letter):
                self._families[letter] = self.family
            else:
                self._families[letter] = next(loaded, self.family)
        return self._families[letter]

    def _has(self, family: str, letter: str) -> bool:
        font = self.fonts[family]
        return isinstance(font, TTFFont) and ord(letter) in font.cmap

    def put(
        self, x: float, y: float, line: str, height: float, align: Literal["left", "right", "centre"] = "left"
    ) -> None:
        """Draw one line in the chosen face; its box has its corner, or its upper end at the right or the middle, at `x` and `y`."""
        x -= {"left": 0.0, "right": 1.0, "centre": 0.5}[align] * (self.wide(line) if align != "left" else 0.0)
        size = self.font_size_pt
        style = "B" * self._bold
        for family, letters in groupby(line, self._family):
            run = "".join(letters)
            if family != self.family:
                self.set_font(family, style, size)
            self.text(x, y + 0.5 * height + 0.3 * size / self.k, run)
            if family != self.family:
                self.set_font(self.family, style, size)
            x += self.wide(run)

    def beginning(self, line: str, width: float) -> str:
        """As much of a line as `width` millimetres hold, in the face that was chosen."""
        if self.wide(line) <= width:
            return line
        return self.lines_of(line, width - 4)[0].rstrip() + "…"

    def _fitting(self, line: str, width: float) -> str:
        """Return the end of a line that is too long: the end tells one model from another."""
        if self.wide(line) <= width:
            return line
        return "… " + self.lines_of(line[::-1], width - 6)[0][::-1]
