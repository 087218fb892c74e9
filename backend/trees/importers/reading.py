"""A model file's bytes as a checked document. Says which file, where in it, what was found and what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from backend.data.bounded_text import json_values
from backend.data.csv_file import shown
from backend.errors import ModelError
from backend.remark import Remark

MAX_FILE = 1 << 29  # bytes; 1,000 trees of depth 8 take 40 MiB as XGBoost's JSON

Schema = TypeVar("Schema", bound=BaseModel)


def damaged(where: str, found: object, expected: object) -> ModelError:
    """Return the error for a model's file with a wrong value.

    Parameters
    ----------
    where : str
        File, and the path to the value in the file's own words, such as ``model.json, learner.objective``.
    found, expected : object
        Texts of the file, numbers, or remarks.
    """
    return ModelError("model_damaged", where=where, found=found, expected=expected)


def read_bytes(path: Path) -> bytes:
    """Read a model file; raises ModelError if it is absent, unreadable or too large."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise ModelError("model_too_large", file=path.name, found=path.stat().st_size, limit=MAX_FILE)
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelError("no_such_model_file", file=path.name, folder=str(path.absolute().parent)) from None
    except OSError as error:
        raise ModelError("file_unreadable", file=path.name, reason=str(error.strerror)) from None


def parse_json(name: str, data: bytes) -> Any:
    """JSON as Python's own values; raises ModelError if it is none, or nested too deeply."""
    try:
        return json_values(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise damaged(f"{name}, byte {error.start:,}", Remark("found_no_utf8"), "UTF-8") from None
    except json.JSONDecodeError as error:
        raise damaged(f"{name}, {error.lineno}:{error.colno}", error.msg, "JSON") from None
    except (ValueError, RecursionError) as error:
        raise damaged(name, type(error).__name__, "JSON") from None


def checked(name: str, schema: type[Schema], data: object) -> Schema:
    """Check `data` against `schema`; raises ModelError with the first problem and its place."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "missing":
            value: object = Remark("found_nothing")
        else:
            value = shown(str(first["input"]))
        path = ".".join(str(step) for step in first["loc"])
        expected = first["msg"][:1].lower() + first["msg"][1:]
        raise damaged(f"{name}, {path}", value, expected) from None
