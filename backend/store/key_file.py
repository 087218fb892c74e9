"""The Guest's secret key on disk: readable by its owner only, replaced atomically."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from backend.atomic_file import write_whole
from backend.errors import SecurityError

_NUMBERS = TypeAdapter(dict[str, str])


def read_key(path: Path) -> dict[str, str] | None:
    """The numbers of a stored key; None where there is no file.

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
        return _NUMBERS.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise SecurityError(f"The key file {path} is damaged; delete it, and a new key is made.") from error


def write_key(path: Path, numbers: dict[str, str]) -> None:
    """Write a key with mode 0600 from the start."""
    write_whole(path, json.dumps(numbers).encode())
