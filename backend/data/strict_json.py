"""JSON that says one thing to every reader: no name stands twice in an object. Knows no document."""

from __future__ import annotations

import json
from typing import Any


class RepeatedNameError(ValueError):
    """An object names a key twice: readers differ in which of the two they believe."""


def loads(text: str) -> Any:
    """JSON as Python's own values.

    Raises
    ------
    JSONDecodeError, ValueError
        It is none.
    RepeatedNameError
        An object names a key twice.
    RecursionError
        It is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise RepeatedNameError(f"the name {twice[:40]!r} stands twice in one object")
    return found
