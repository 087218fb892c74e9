"""Writes docs/glossary.md from assets/glossary.toml, which the help page reads, too.

`python -m docs.glossary`; with `--check` it writes nothing and fails when the page is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.glossary import terms
from docs.page import write_or_check

TARGET = Path(__file__).with_name("glossary.md")
INTRO = """\
# Glossary

One word per idea, in code, pages and documents; the field's or the papers' word if there is one. Written by
`docs/glossary.py` from `assets/glossary.toml` (`make docs`), which the help page of the dashboard reads, too.

| word | Chinese | meaning |
|---|---|---|
"""


def render() -> str:
    """The whole page."""
    return INTRO + "".join(f"| {term.words['en']} | {term.words['zh']} | {term.meanings['en']} |\n" for term in terms())


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, TARGET, render(), "assets/glossary.toml"))
