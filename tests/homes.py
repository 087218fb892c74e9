"""Homes that are copied or unpacked. Until 0.2 the folders of their federations were kept as absolute paths."""

import json
import shutil
from pathlib import Path


def copied_home(home: Path, into: Path) -> Path:
    """Copy a home, so that a test may change what is in it."""
    shutil.copytree(home, into)
    return into


def settled(home: Path) -> Path:
    """Have a home of 0.2 or earlier that was moved find its federations, which lie in it."""
    file = home / "federations.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps({name: str(home / Path(folder).name) for name, folder in known.items()}))
    return home
