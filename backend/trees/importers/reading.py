"""A model file's bytes as a checked document. Says which file, where in it, what was found and what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from backend.data import strict_json
from backend.data.csv_file import shown
from backend.errors import ModelError

MAX_FILE = 1 << 29  # bytes; 1,000 trees of depth 8 take 40 MiB as XGBoost's JSON

Schema = TypeVar("Schema", bound=BaseModel)


def damaged(where: str, found: str, expected: str) -> ModelError:
    """The error for a file that does not say what a model's file must say; `where` begins with the file's name."""
    return ModelError(f"{where}: found {found}, expected {expected}. The file is damaged; save the model again.")


def read_bytes(path: Path) -> bytes:
    """Read a model file; raises ModelError where it is absent, unreadable or too large."""
    try:
        if path.stat().st_size > MAX_FILE:
            raise ModelError(
                f"{path.name}: found {path.stat().st_size:,} bytes, expected at most {MAX_FILE:,}. Import fewer trees."
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise ModelError(
            f"{path.name}: no such file in {path.absolute().parent}; expected a model file. Correct its path."
        ) from None
    except OSError as error:
        raise ModelError(
            f"{path.name}: cannot be read ({error.strerror}); expected a readable model file. Check its permissions."
        ) from None


def parse_json(name: str, data: bytes) -> Any:
    """JSON as Python's own values; raises ModelError where it is none, or nested too deeply."""
    try:
        return strict_json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise damaged(f"{name}, byte {error.start:,}", "a byte that is not UTF-8", "UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise damaged(f"{name}, line {error.lineno}, column {error.colno:,}", error.msg, "JSON") from None
    except (ValueError, RecursionError) as error:
        raise damaged(name, f"{type(error).__name__} while reading it", "JSON") from None


def checked(name: str, schema: type[Schema], data: object) -> Schema:
    """Check `data` against `schema`; raises ModelError with the first problem and its place."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        found = "nothing" if first["type"] == "missing" else shown(str(first["input"]))
        where = ", ".join([name, ".".join(str(step) for step in first["loc"])])
        raise damaged(where, found, first["msg"][:1].lower() + first["msg"][1:]) from None
