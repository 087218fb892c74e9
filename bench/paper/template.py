"""The prose of docs/paper.md lies in templates/*.md, a page a paper; the figures in it come from the results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("templates")


def fill(name: str, **values: Any) -> str:
    """A template with its values; if one is empty, no blank paragraph is left."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").format(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
