"""Writes a page that a program makes, or with `--check` compares it with what would be written."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def write_or_check(description: str | None, target: Path, page: str, source: str) -> int:
    """Exit status: 1 if `--check` is given and the page does not fit what it is made from, else 0."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is stale")
    if not parser.parse_args().check:
        target.write_text(page, encoding="utf-8")
        return 0
    if target.exists() and target.read_text(encoding="utf-8") == page:
        return 0
    sys.stderr.write(f"docs/{target.name} does not fit {source}. Run `make docs` and commit the result.\n")
    return 1
