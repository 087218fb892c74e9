"""Everything that a page sends to the browser, as one text, and whether a text of the catalogue is in it."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

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
    shown = (at if isinstance(at, str) else "\n".join([*prose(at), everything(at)])).replace("\\", "")
    tight = language == "zh"  # there spaces stand between scripts, whatever the text says
    patterns = (_pattern(text, known) for text in _versions(language, key, known))
    return any(
        re.search(pattern.replace("\\ ", "").replace(" ", ""), shown.replace(" ", ""))
        if tight
        else re.search(pattern, shown)
        for pattern in patterns
    )


def _versions(language: str, key: str, known: dict[str, object]) -> list[str]:
    """Return the page's text or the error's sentence; its singular and plural, or the one that ``n`` asks for."""
    texts = {code: text.in_language(language) for code, text in errors().items()} | catalogue(language)
    if key in texts:
        return [texts[key]]
    if "n" in known:
        return [texts[f"{key}.{'one' if known['n'] in (1, '1') else 'other'}"]]
    return [texts[f"{key}.one"], texts[f"{key}.other"]]


def _pattern(text: str, known: dict[str, object]) -> str:
    return "".join(
        re.escape(words)
        + ("" if name is None else re.escape(str(known[name]).replace(BACKSLASH, "")) if name in known else "(?:.*?)")
        for words, name, _, _ in string.Formatter().parse(text)
    )
