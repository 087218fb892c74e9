"""Writes docs/openapi.json, what `glassleaf serve` offers, from its code; `--check` fails where it is stale."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from backend.server.app import Settings, create_app
from backend.services import Glassleaf

TARGET = Path(__file__).with_name("openapi.json")


def main() -> int:
    """Write the document, or compare it with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the document is stale")
    page = render()
    if not parser.parse_args().check:
        TARGET.write_text(page, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == page:
        return 0
    sys.stderr.write("docs/openapi.json does not fit the server. Run `make docs` and commit the result.\n")
    return 1


def render() -> str:
    """The document, as the server shows it at /openapi.json; its version is the interface's, not the program's."""
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home), pools=False) as glassleaf:
        document = create_app(glassleaf, Settings()).openapi()
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
