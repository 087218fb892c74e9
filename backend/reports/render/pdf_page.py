"""Pages of a PDF with whatever fonts this machine has, numbered at the foot. Knows no report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fpdf import FPDF
from fpdf.enums import WrapMode, XPos, YPos

from backend.i18n import Catalogue

SIZE, SMALL, LINE = 9.5, 7.5, 4.6  # points of text and of tables; millimetres of a line
INK, FAINT, RED = (34, 48, 60), (85, 96, 106), (163, 39, 30)
_NOTO, _DEJAVU = "/usr/share/fonts/opentype/noto/NotoSansCJK", "/usr/share/fonts/truetype/dejavu/DejaVuSans"


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


class Page(FPDF):
    """Pages with a number at the foot, in whatever fonts there are."""

    def __init__(self, words: Catalogue, time: datetime) -> None:
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


def _first(fonts: Iterable[Font]) -> Font | None:
    return next((font for font in fonts if font.there()), None)


def has_chinese() -> bool:
    """Whether a font here has Chinese letters."""
    return _first(CHINESE) is not None
