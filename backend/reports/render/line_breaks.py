"""Where a line of text may end: at spaces, between Chinese letters, and never within a number or a name that fits a line.

Knows no font: the width of a letter is given. After GB/T 15834 and UAX #14, in the part that a report needs.
"""

from __future__ import annotations

from collections.abc import Callable

CHINESE_FROM = "\u2e80"  # and what follows: letters and punctuation between which a line may end
NO_START = frozenset("，。、；：！？）】」』》〉〕〗”’%％·,.;:!?)]}…")  # no line starts with these
NO_END = frozenset("（【「『《〈〔〖“‘([{")  # no line ends with these
SOFT = frozenset("_-/.:;,=&?(")  # after which a word that fits no line is broken first


def broken(text: str, width: Callable[[str], float], room: float) -> list[str]:
    """`text` in lines of at most `room`; its own line breaks stay.

    Parameters
    ----------
    width : callable
        Letter → its width, in the unit of `room`.
    """
    return [line for row in text.split("\n") for line in _row(row, width, room)]


def _row(row: str, width: Callable[[str], float], room: float) -> list[str]:
    lines = []
    line = ""
    line_width = 0.0
    for next_piece in pieces(row):
        piece = next_piece
        bare = piece.rstrip(" ")
        wide = sum(map(width, piece))
        piece_width = wide - sum(map(width, piece[len(bare) :]))
        if line and line_width + piece_width > room:
            lines.append(line.rstrip(" "))
            line = ""
            line_width = 0.0
        while not line and piece_width > room:  # a word longer than a line
            end = _cut(piece, width, room)
            lines.append(piece[:end])
            piece = piece[end:]
            wide = piece_width = sum(map(width, piece))
        line = line + piece
        line_width = line_width + wide
    if line or not lines:
        return [*lines, line.rstrip(" ")]
    return lines


def pieces(row: str) -> list[str]:
    """Return what no line may break, each with the spaces that follow it; together they are the row."""
    pieces_of_row = []
    start = 0
    for i in range(1, len(row)):
        if _may_break(row[i - 1], row[i]):
            pieces_of_row.append(row[start:i])
            start = i
    return [*pieces_of_row, row[start:]] if row else []


def _may_break(left_letter: str, right_letter: str) -> bool:
    if right_letter in NO_START or right_letter == " ":
        return False
    if left_letter == " ":
        return True
    return left_letter not in NO_END and (left_letter > CHINESE_FROM or right_letter > CHINESE_FROM)


def _cut(piece: str, width: Callable[[str], float], room: float) -> int:
    """Return how much of a word too long for a line is on the first: up to a sign that joins its parts, else as much as fits."""
    width_so_far = 0.0
    fits = 0
    soft = 0
    for i, letter in enumerate(piece, start=1):
        width_so_far += width(letter)
        if width_so_far > room:
            break
        fits = i
        soft = i if letter in SOFT else soft
    return soft if 2 * soft > fits else max(1, fits)
