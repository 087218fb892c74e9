"""Who is drawn in which colour and shape; each colour reads on the light and on the dark page (3:1 or better)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.texts import Texts, markdown

if TYPE_CHECKING:
    from backend.data.federation import Federation

INK = "#6B7C8C"  # lines and bars that belong to nobody
LIGHT_TEXT = "#55606A"  # chart text on the light page, 6:1; the dark page keeps its own
FAINT = "rgba(128,140,150,0.28)"
ICONS = "Material Symbols Rounded"  # the icon font that Streamlit serves itself
FINDING = "#D5473D"  # findings only
SHADES = ((0.0, "rgba(107,124,140,0.06)"), (1.0, "rgba(52,72,92,1)"))  # squares of no party, on the light page
SHADES_DARK = ((0.0, "rgba(160,174,188,0.06)"), (1.0, "rgba(214,223,231,1)"))
WHISKERS = "#1F2A33", "#E8ECEF"  # on a party's bar, on the light and the dark page


@dataclass(frozen=True)
class Mark:
    """A party's colour, its shape in charts and the same shape as a letter."""

    colour: str
    symbol: str
    glyph: str


NOBODY = Mark(INK, "circle", "")
GUEST = Mark("#3F77C9", "circle", "●")
HOSTS = (
    Mark("#C17A0F", "square", "■"),
    Mark("#12898A", "diamond", "◆"),
    Mark("#A4559E", "triangle-up", "▲"),
    Mark("#7B6A3C", "hexagon", "⬢"),
    Mark("#7A74D6", "pentagon", "⬟"),
    Mark("#5B8C2A", "star", "★"),
)


def whisker(dark: bool) -> str:
    """The colour of an interval that is drawn on a party's bar."""
    return WHISKERS[dark]


def mark(federation: Federation, party: str) -> Mark:
    """The mark of one party: the Guest's, or a Host's by its position in the federation."""
    if party == federation.guest.name:
        return GUEST
    names = [host.name for host in federation.hosts]
    return HOSTS[names.index(party) % len(HOSTS)]


def name(t: Texts, federation: Federation, party: str) -> str:
    """A party's title with its mark in front, as Markdown."""
    sign = mark(federation, party)
    return f':color[{sign.glyph}]{{foreground="{sign.colour}"}} {markdown(t.party(federation, party))}'


def plain(t: Texts, federation: Federation, party: str) -> str:
    """A party's title with its mark in front, for tables and menus."""
    return f"{mark(federation, party).glyph} {t.party(federation, party)}"
