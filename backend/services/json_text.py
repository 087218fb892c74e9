"""A document as JSON that every reader takes: RFC 8259 knows no NaN and no infinity."""

import json
import math
from typing import Any


def json_text(document: Any, *, indent: int = 2, ascii_only: bool = False) -> str:
    """Return a document as JSON, with null in place of every number that is not finite."""
    return json.dumps(finite(document), ensure_ascii=ascii_only, indent=indent, default=str, allow_nan=False)


def finite(value: Any) -> Any:
    """Return the same with None in place of every number that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
