"""What a printed report is made of: headings, paragraphs, facts, tables, bars. Knows no report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 starts a numbered section, level 2 is within one; `new_page` begins a page in paged formats."""

    text: str
    level: Literal[1, 2] = 1
    new_page: bool = False


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str
    tone: Literal["plain", "note", "finding"] = "plain"


@dataclass(frozen=True)
class Code:
    """A line for a shell, or a hash."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names with their values, which may have several lines."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Rows under a head; `widths` are relative, `numeric` lists the columns aligned to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    numeric: tuple[int, ...] = ()


@dataclass(frozen=True)
class BarRow:
    """One bar: its label, its length from 0 to 1, how that is written, and the index of its party."""

    label: str
    share: float
    figure: str
    party: int


@dataclass(frozen=True)
class Bars:
    """Bars under a sentence that is their text alternative; `parties` names the colours."""

    sentence: str
    parties: tuple[str, ...]
    rows: tuple[BarRow, ...]


@dataclass(frozen=True)
class Panel:
    """One small chart with both axes from 0 to 1: a curve, or dots with whiskers; with the diagonal.

    Attributes
    ----------
    across, up : str
        Names of the axes.
    points : tuple of (float, float)
    whiskers : tuple of (float, float)
        Lower and upper end at each point; empty = the points are joined to a curve.
    """

    title: str
    across: str
    up: str
    points: tuple[tuple[float, float], ...]
    whiskers: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Panels:
    """Small charts side by side under a sentence that is their text alternative; tables below hold their numbers."""

    sentence: str
    panels: tuple[Panel, ...]


Block = Heading | Paragraph | Code | Facts | Table | Bars | Panels


@dataclass(frozen=True)
class Outline:
    """A title, a line below it, and blocks; `head` is at the top of later pages."""

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    head: str = ""
