"""Everything that a page sends to the browser, as one text, and whether a text of the catalogue is in it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Element

from app.texts import catalogue
from backend.remark import catalogue as errors

BACKSLASH = "\\"
TEXTS = ("markdown", "caption", "info", "warning", "success", "error")


def elements(at: AppTest) -> Iterator[Element]:
    stack: list[Block | Element] = list(at._tree.children.values())
    while stack:
        node = stack.pop()
        if isinstance(node, Block):
            stack += list(node.children.values())
        else:
            yield node


def heading_levels(at: AppTest) -> list[int]:
    """Levels of the headings of the page's main part, from top to bottom."""
    levels: list[int] = []

    def walk(node: Block | Element) -> None:
        if isinstance(node, Block):
            for key in sorted(node.children):
                walk(node.children[key])
        elif node.type in ("title", "header", "subheader"):
            levels.append(int(node.proto.tag[1:]))
        elif node.type == "markdown":
            levels.extend(len(mark) for mark in re.findall(r"^(#+) ", node.value, re.MULTILINE))

    walk(at.main)
    return levels


def everything(at: AppTest) -> str:
    """Texts, labels, menus, help, chart specifications and table cells of the page as it stands."""
    parts = []
    for element in elements(at):
        parts.append(str(element.proto))
        if element.type in ("arrow_data_frame", "dataframe", "table", "arrow_table"):
            parts.append(element.value.to_csv())
    return "\n".join(parts)


def prose(at: AppTest) -> list[str]:
    """The sentences of the page, as Markdown."""
    return [element.value for kind in TEXTS for element in getattr(at, kind)]


def says(at: AppTest | str, key: str, language: str = "en", **known: object) -> bool:
    """Whether a text of the catalogue is on the page, with the `known` values filled in and any value elsewhere.

    What Markdown escapes is compared without the backslashes.
    """
    shown = (at if isinstance(at, str) else "\n".join([*prose(at), everything(at)])).replace(BACKSLASH, "")
    tight = language == "zh"  # there spaces stand between scripts, whatever the text says
    if tight:
        shown = shown.replace(" ", "")
    for text in _versions(language, key, known):
        pieces = _pieces(text, known)
        if tight:
            pieces = [piece.replace(" ", "") for piece in pieces]
        if in_this_order(pieces, shown):
            return True
    return False


def in_this_order(pieces: list[str], shown: str) -> bool:
    """Return whether a text has these pieces one after another, on one line.

    A regular expression took the square of a line's length and more: lines that hold a chart have some 100,000 letters.
    """
    first, *others = pieces
    start = shown.find(first)
    while start >= 0:
        after = start + len(first)
        if _follow(others, shown, after):
            return True
        # behind a later place of the same line stands less
        following = start + 1 if "\n" in first else _line_end(shown, after) + 1
        start = shown.find(first, following) if following <= len(shown) else -1
    return False


def _follow(pieces: list[str], shown: str, at: int) -> bool:
    for piece in pieces:
        at = shown.find(piece, at, _line_end(shown, at) + len(piece))
        if at < 0:
            return False
        at += len(piece)
    return True


def _line_end(shown: str, at: int) -> int:
    end = shown.find("\n", at)
    return len(shown) if end < 0 else end


def _versions(language: str, key: str, known: dict[str, object]) -> list[str]:
    """Return the page's text or the error's sentence; its singular and plural, or the one that ``n`` asks for."""
    texts = _texts(language)
    if key in texts:
        return [texts[key]]
    if "n" in known:
        return [texts[f"{key}.{'one' if known['n'] in (1, '1') else 'other'}"]]
    return [texts[f"{key}.one"], texts[f"{key}.other"]]


@cache
def _texts(language: str) -> dict[str, str]:
    """Return the pages' texts and the errors' sentences."""
    return {code: text.in_language(language) for code, text in errors().items()} | catalogue(language)


def _pieces(text: str, known: dict[str, object]) -> list[str]:
    """Return what stands between the values that may be any, known values filled in."""
    pieces = [""]
    for words, name, _, _ in string.Formatter().parse(text):
        pieces[-1] += words
        if name is None:
            continue
        if name in known:
            pieces[-1] += str(known[name]).replace(BACKSLASH, "")
        else:
            pieces.append("")
    return pieces
