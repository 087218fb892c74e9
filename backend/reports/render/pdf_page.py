"""Pages of a PDF with whatever fonts this machine has, numbered at the foot. Knows no report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from fpdf import FPDF
from fpdf.enums import WrapMode, XPos, YPos

from backend.i18n import Catalogue

SIZE, SMALL, LINE = 9.5, 7.5, 4.6  # points of text and of tables; millimetres of a line
INK, FAINT, RED = (34, 48, 60), (85, 96, 106), (163, 39, 30)
_NOTO, _DEJAVU = "/usr/share/fonts/opentype/noto/NotoSansCJK", "/usr/share/fonts/truetype/dejavu/DejaVuSans"
_FEDORA = "/usr/share/fonts"


class Font(NamedTuple):
    """A family's files; `face` is the index of the face in a collection."""

    plain: str
    bold: str
    face: int = 0

    def installed(self) -> bool:
        """Whether this machine has it."""
        return Path(self.plain).is_file() and Path(self.bold).is_file()


CHINESE = (
    Font(f"{_NOTO}-Regular.ttc", f"{_NOTO}-Bold.ttc", 2),  # Debian, Ubuntu: fonts-noto-cjk; 2 = simplified Chinese
    Font(f"{_FEDORA}/google-noto-cjk/NotoSansCJK-Regular.ttc", f"{_FEDORA}/google-noto-cjk/NotoSansCJK-Bold.ttc", 2),
    Font("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"),
    Font("/System/Library/Fonts/STHeiti Light.ttc", "/System/Library/Fonts/STHeiti Medium.ttc"),
    Font("C:/Windows/Fonts/msyh.ttc", "C:/Windows/Fonts/msyhbd.ttc"),
)
LATIN = (
    Font(f"{_DEJAVU}.ttf", f"{_DEJAVU}-Bold.ttf"),
    Font(f"{_FEDORA}/dejavu-sans-fonts/DejaVuSans.ttf", f"{_FEDORA}/dejavu-sans-fonts/DejaVuSans-Bold.ttf"),
    Font("/Library/Fonts/Arial Unicode.ttf", "/Library/Fonts/Arial Unicode.ttf"),
    Font("C:/Windows/Fonts/arial.ttf", "C:/Windows/Fonts/arialbd.ttf"),
)


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Page(FPDF):
    """Pages with a number at the foot and, from the second on, what they belong to at the top, in whatever fonts there are."""

    def __init__(self, words: Catalogue, time: datetime, head: str = "") -> None:
        super().__init__(format="A4")
        self._words, self._head = words, head
        self.set_creation_date(time)
        self.set_lang(words.language)
        self.set_margins(16, 16)
        self.set_auto_page_break(True, margin=18)
        latin, chinese = _first(LATIN), _first(CHINESE)
        self.only_latin1 = latin is None and chinese is None
        for name, font in (("latin", latin), ("chinese", chinese)):
            if font is not None:
                self.add_font(name, "", font.plain, collection_font_number=font.face)
                self.add_font(name, "B", font.bold, collection_font_number=font.face)
        first = "chinese" if chinese and (words.language == "zh" or latin is None) else "latin"
        self.family = "helvetica" if self.only_latin1 else first
        if latin and chinese:
            self.set_fallback_fonts(["latin" if first == "chinese" else "chinese"], exact_match=False)

    def header(self) -> None:
        """What the pages after the first belong to."""
        if self._head and self.page_no() > 1:
            self.set_y(8)
            self.face(SMALL, colour=FAINT)
            self.cell(0, 5, self.one_line(self._head), new_x=XPos.LMARGIN, new_y=YPos.NEXT)
            self.set_y(self.t_margin)

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

    def paragraph(self, text: str, size: float, *, bold: bool = False, colour: tuple[int, int, int] = INK) -> None:
        """Lines over the whole width."""
        self.face(size, bold=bold, colour=colour)
        self.lines(text, size * 0.49, _wrapping(text))
        self.ln(1.2)

    def code(self, text: str) -> None:
        """Lines for a shell, on a grey ground, on one page."""
        if self.will_page_break(4 * len(text.splitlines())):
            self.add_page()
        self.set_fill_color(244, 246, 248)
        self.face(SMALL)
        self.lines(text, 4, WrapMode.CHAR, fill=True)
        self.ln(1.5)

    def height(self, text: str, size: float, width: float = 0.0) -> float:
        """Millimetres that text takes in a column, about: its lines of letters of `size` points."""
        self.face(size)
        room = width or self.epw
        rows = sum(max(1, -(-self.get_string_width(self.one_line(row)) // room)) for row in text.split("\n"))
        return float(rows) * size * 0.5

    def lines(self, text: str, height: float, wrapping: WrapMode, *, fill: bool = False) -> None:
        """Text from the left margin; the next line starts there again."""
        ends: dict[str, Any] = {"new_x": XPos.LMARGIN, "new_y": YPos.NEXT}
        self.multi_cell(0, height, self.drawable(text), align="L", fill=fill, wrapmode=wrapping, **ends)


def _wrapping(text: str) -> WrapMode:
    """Break between letters where there are no spaces between words: in Chinese."""
    return WrapMode.CHAR if any(letter > "\u2e80" for letter in text) else WrapMode.WORD


def _first(fonts: Iterable[Font]) -> Font | None:
    return next((font for font in fonts if font.installed()), None)


def has_chinese() -> bool:
    """Whether a font here has Chinese letters."""
    return _first(CHINESE) is not None
