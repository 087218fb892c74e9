"""Who is drawn in which colour and shape; each colour reads on the light and on the dark page (3:1 or better)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.texts import Texts, markdown

if TYPE_CHECKING:
    from backend.data.federation import Federation

INK = "#6B7C8C"  # lines and bars that belong to no party
FAINT = "rgba(128,140,150,0.28)"
ICONS = "Material Symbols Rounded"  # the icon font that Streamlit serves itself
FINDING = "#D5473D"  # findings only


@dataclass(frozen=True)
class Theme:
    """What differs between charts on the light and on the dark page.

    Attributes
    ----------
    text, warning : str
        Words, and the mark of a finding among them: 4.5:1 or better.
    doubt : str
        Bars of what cannot be decided yet: 3:1.
    quiet : str
        Bars that recede behind others: 3:1.
    ground : str
        Behind words on hover.
    """

    text: str
    warning: str
    doubt: str
    quiet: str
    ground: str


LIGHT = Theme(text="#3C4852", warning="#B3261E", doubt="#B4561F", quiet="#8A949D", ground="#FFFFFF")
DARK = Theme(text="#D3DBE1", warning="#F2877F", doubt="#E69A5C", quiet="#66727D", ground="#1C2228")


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


def mark(federation: Federation, party: str) -> Mark:
    """Return the mark of one party: the Guest's, or a Host's by its position in the federation."""
    if party == federation.guest.name:
        return GUEST
    names = [host.name for host in federation.hosts]
    return HOSTS[names.index(party) % len(HOSTS)]


def name(t: Texts, federation: Federation, party: str) -> str:
    """Return a party's title with its mark in front, as Markdown."""
    sign = mark(federation, party)
    return f':color[{sign.glyph}]{{foreground="{sign.colour}"}} {markdown(t.party(federation, party))}'


def coloured(cell: str) -> str:
    """Return a table's cell as Markdown; a party's mark at its beginning, as :func:`plain` sets it, has its colour.

    Examples
    --------
    >>> coloured("● Linden Bank")
    ':color[●]{foreground="#3F77C9"} Linden Bank'
    """
    glyph, space, words = cell.partition(" ")
    for sign in (GUEST, *HOSTS):
        if space and glyph == sign.glyph:
            return f':color[{glyph}]{{foreground="{sign.colour}"}} {markdown(words)}'
    return markdown(cell)


def plain(t: Texts, federation: Federation, party: str) -> str:
    """Return a party's title with its mark in front, for tables and menus."""
    return f"{mark(federation, party).glyph} {t.party(federation, party)}"
