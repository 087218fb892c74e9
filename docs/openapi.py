"""Writes docs/openapi.json, what `glassleaf serve` offers, from its code; `--check` fails where it is stale."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from backend.server.app import Settings, create_app
from backend.services import Glassleaf
from docs.page import write_or_check

TARGET = Path(__file__).with_name("openapi.json")


def render() -> str:
    """The document, as the server shows it at /openapi.json; its version is the interface's, not the program's."""
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home), pools=False) as glassleaf:
        document = create_app(glassleaf, Settings()).openapi()
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, TARGET, render(), "the server"))
