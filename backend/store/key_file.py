"""The Guest's secret key on disk: readable by its owner only, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

from backend.atomic_file import write_whole
from backend.errors import SecurityError


def read_key(path: Path) -> dict[str, str] | None:
    """Numbers of a stored key; None where there is none yet.

    Raises
    ------
    SecurityError
        The file can be read by others, or is damaged.
    """
    if not path.exists():
        return None
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise SecurityError(f"The key file {path} can be read by others; run `chmod 600` on it or delete it.")
    try:
        numbers = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise SecurityError(f"The key file {path} is damaged; delete it, and a new key is made.") from error
    if not isinstance(numbers, dict) or not all(isinstance(v, str) for v in numbers.values()):
        raise SecurityError(f"The key file {path} is damaged; delete it, and a new key is made.")
    return numbers


def write_key(path: Path, numbers: dict[str, str]) -> None:
    """Write a key so that nobody else can read it at any moment."""
    write_whole(path, json.dumps(numbers).encode())
