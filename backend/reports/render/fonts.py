"""Which fonts this machine has for a PDF. Knows no page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_NOTO = "/usr/share/fonts/opentype/noto/NotoSansCJK"
_LATIN = "/usr/share/fonts/truetype/noto/NotoSans"
_DEJAVU = "/usr/share/fonts/truetype/dejavu/DejaVuSans"
_FEDORA = "/usr/share/fonts"


class Font(NamedTuple):
    """A family's files; `face` is the index of the face in a collection."""

    plain: str
    bold: str
    face: int = 0

    def installed(self) -> bool:
        """Return whether this machine has it."""
        return Path(self.plain).is_file() and Path(self.bold).is_file()


CHINESE_FONTS = (
    Font(f"{_NOTO}-Regular.ttc", f"{_NOTO}-Bold.ttc", 2),  # Debian, Ubuntu: fonts-noto-cjk; 2 = simplified Chinese
    Font(f"{_FEDORA}/google-noto-cjk/NotoSansCJK-Regular.ttc", f"{_FEDORA}/google-noto-cjk/NotoSansCJK-Bold.ttc", 2),
    Font("/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"),
    Font("/System/Library/Fonts/STHeiti Light.ttc", "/System/Library/Fonts/STHeiti Medium.ttc"),
    Font("C:/Windows/Fonts/msyh.ttc", "C:/Windows/Fonts/msyhbd.ttc"),
)
SYMBOLS = (
    Font(f"{_DEJAVU}.ttf", f"{_DEJAVU}-Bold.ttf"),
    Font(f"{_FEDORA}/dejavu-sans-fonts/DejaVuSans.ttf", f"{_FEDORA}/dejavu-sans-fonts/DejaVuSans-Bold.ttf"),
)
LATIN = (
    Font(f"{_LATIN}-Regular.ttf", f"{_LATIN}-Bold.ttf"),  # Debian, Ubuntu: fonts-noto-core
    Font(f"{_FEDORA}/google-noto/NotoSans-Regular.ttf", f"{_FEDORA}/google-noto/NotoSans-Bold.ttf"),
    *SYMBOLS,
    Font("/Library/Fonts/Arial Unicode.ttf", "/Library/Fonts/Arial Unicode.ttf"),
    Font("C:/Windows/Fonts/arial.ttf", "C:/Windows/Fonts/arialbd.ttf"),
)


def first(fonts: Iterable[Font]) -> Font | None:
    """Return the first that is installed."""
    return next((font for font in fonts if font.installed()), None)


def language_of_pdf(language: str) -> str:
    """Return the language that a PDF can be drawn in here: English where Chinese is asked for and no font has its letters."""
    if language != "zh" or first(CHINESE_FONTS) is not None:
        return language
    return "en"
