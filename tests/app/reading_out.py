"""Everything that a page sends to the browser, as one text."""

from __future__ import annotations

from collections.abc import Iterator

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Element


def elements(at: AppTest) -> Iterator[Element]:
    stack: list[Block | Element] = list(at._tree.children.values())
    while stack:
        node = stack.pop()
        if isinstance(node, Block):
            stack += list(node.children.values())
        else:
            yield node


def everything(at: AppTest) -> str:
    """Texts, labels, menus, help, chart specifications and table cells of the page as it stands."""
    parts = []
    for element in elements(at):
        parts.append(str(element.proto))
        if element.type in ("arrow_data_frame", "dataframe", "table", "arrow_table"):
            parts.append(element.value.to_csv())
    return "\n".join(parts)
