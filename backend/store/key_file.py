"""A party's secret keys on disk: readable by their owner only, written once, never replaced.

One that is rotated is renamed, ``paillier-3072.key`` to ``paillier-3072.FINGERPRINT.retired``: what was encrypted can still be opened.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from backend.errors import SecurityError
from backend.ops.atomic_file import drafted

RETIRED = ".retired"
_NUMBERS = TypeAdapter(dict[str, str])


def fingerprint(public: bytes) -> str:
    """Return the fingerprint of a public key: the first half of its SHA-256, in hexadecimal."""
    return hashlib.sha256(public).hexdigest()[:32]


def retired(path: Path, mark: str) -> Path:
    """Return the path of a key after its rotation; `mark` is its fingerprint."""
    return path.with_name(f"{path.stem}.{mark}{RETIRED}")


def retired_keys(folder: Path) -> tuple[str, ...]:
    """Names of the files of keys that were rotated, sorted."""
    return tuple(sorted(file.name for file in folder.glob(f"*{RETIRED}")))


def read_key(path: Path) -> dict[str, str] | None:
    """Return the numbers of a stored key; None if there is no file.

    Raises SecurityError if the file can be read by others, or is damaged.
    """
    if not path.exists():
        return None
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise SecurityError("secret_readable_by_others", file=str(path))
    try:
        return _NUMBERS.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise SecurityError("stored_key_damaged", file=str(path)) from error


def kept_key(path: Path, make: Callable[[], dict[str, str]]) -> tuple[dict[str, str], bool]:
    """Return the numbers of the one key in `path`, and whether this call made it: of several first uses at once, one does.

    Raises SecurityError as :func:`read_key`, or if no key can be written there.
    """
    stored = read_key(path)
    if stored is not None:
        return stored, False
    numbers = make()
    new = True
    try:
        with drafted(path, json.dumps(numbers).encode()) as draft:
            try:
                path.hardlink_to(draft)  # whole, and only if there is no file: a rename would replace another's key
            except FileExistsError:
                new = False
    except OSError as error:
        raise SecurityError("key_file_not_written", file=str(path), reason=error.strerror or "-") from error
    key_numbers = numbers if new else read_key(path)
    if key_numbers is None:
        raise SecurityError("stored_key_damaged", file=str(path))
    return key_numbers, new
