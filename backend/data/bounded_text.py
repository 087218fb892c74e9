"""TOML files that another company may have written, read within bounds: size, parts of a key, depth, digits of a number.

Python's reader takes time and memory that grow with the square of a key's parts, and fails on deep nesting and long numbers.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from backend.errors import FederationError, GlassleafError

MAX_BYTES = 4 << 20  # 5,000 features with meanings in two languages take 2 MB
MAX_PARTS = 16  # of a dotted key or a table's name; our own files have 4
_NAME = rb"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
# more parts than a key may have, before the value of a key or the end of a table's name
_LONG_KEY = re.compile(rb"(?<![A-Za-z0-9_-])%b(?:[ \t]*\.[ \t]*%b){%d}" % (_NAME, _NAME, MAX_PARTS))


def read_toml(
    path: Path, error: type[GlassleafError] = FederationError, *, name: str = "", max_bytes: int = MAX_BYTES
) -> dict[str, Any]:
    """Return what a TOML file holds.

    Raises
    ------
    error
        The file is absent, cannot be read, is too large, is not UTF-8, or is not TOML.
    """
    name = name or path.name
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise error("no_such_text_file", file=name, folder=str(path.absolute().parent)) from None
    except OSError as failure:
        raise error("file_unreadable", file=name, reason=str(failure.strerror)) from None
    return parse_toml(name, data, error, max_bytes)


def parse_toml(
    name: str, data: bytes, error: type[GlassleafError] = FederationError, max_bytes: int = MAX_BYTES
) -> dict[str, Any]:
    """Return what the bytes of a TOML file hold; raises as :func:`read_toml`."""
    if len(data) > max_bytes:
        raise error("text_file_too_large", file=name, limit=max_bytes)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error("toml_not_utf8", file=name) from None
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.count(b".") >= MAX_PARTS and _LONG_KEY.search(line):
            raise error("key_of_too_many_parts", file=name, line=number, limit=MAX_PARTS)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise error("nested_too_deep", file=name) from None
    except (
        ValueError,
        OverflowError,
    ) as failure:  # TOMLDecodeError is one; a number of more than 4,300 digits, another
        raise error("not_toml", file=name, reason=str(failure)[:200]) from None
