"""Writes docs/glossary.md from assets/glossary.toml, which the help page reads, too.

`python -m docs.glossary`; with `--check` it writes nothing and fails when the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.glossary import terms

TARGET = Path(__file__).with_name("glossary.md")
INTRO = """\
# Glossary

One word per idea, in code, pages and documents; the field's or the papers' word where there is one. Written by
`docs/glossary.py` from `assets/glossary.toml` (`make docs`), which the help page of the dashboard reads, too.

| word | Chinese | meaning |
|---|---|---|
"""


def render() -> str:
    """The whole page."""
    return INTRO + "".join(f"| {term.words['en']} | {term.words['zh']} | {term.meanings['en']} |\n" for term in terms())


def main() -> int:
    """Write the page, or compare it with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is stale")
    if not parser.parse_args().check:
        TARGET.write_text(render(), encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == render():
        return 0
    sys.stderr.write("docs/glossary.md does not fit assets/glossary.toml. Run `make docs` and commit the result.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
