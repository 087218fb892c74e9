"""Logs as lines of JSON (RFC 8259), one an event.

A line holds the event's fixed words, numbers, codes of causes, names of parties, types of errors and places in the code. Everything else
that would be filled into the words stays out, and so does an error's text: they may name a person or hold a value.
"""

from __future__ import annotations

import builtins
import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from backend import errors
from backend.remark import Remark, known

FIELDS = {
    "run": r"[0-9a-f]{32}",
    "conversation": r"[0-9a-f]{32}|c\d{1,9}",
    "stage": r"[a-z]{1,20}",
    "lane": r"[a-z]{1,20}",
    "party": r"[a-z][a-z0-9_]{0,30}",
}
"""Field of an event that holds a word → the pattern of its words."""
OWN_LOGGERS = ("glassleaf", "uvicorn.error")  # loggers with fixed words; the words of others may hold data
NUMBER_FIELDS = ("people", "failed", "seconds", "code", "bytes")
ERRORS = frozenset(
    name
    for module in (builtins, errors)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
TRACE = '  File "'  # how lines of a traceback begin, which quote the code alone


class JsonLines(logging.Formatter):
    """One event as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break at its end."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.msg if record.name in OWN_LOGGERS and isinstance(record.msg, str) else "of a library",
        }
        if isinstance(record.args, dict):
            arguments = tuple(record.args.values())
        else:
            arguments = tuple(record.args or ())
        numbers = [argument for argument in arguments if isinstance(argument, int | float)]
        texts = [argument for argument in arguments if isinstance(argument, str)]
        types = [text for text in texts if text in ERRORS]
        traces = [text for text in texts if text.startswith(TRACE)]
        types += [type(argument).__name__ for argument in arguments if isinstance(argument, BaseException)]
        if record.exc_info and record.exc_info[0] is not None:
            types.append(record.exc_info[0].__name__)
            traces.append("".join(traceback.format_tb(record.exc_info[2])))
        codes = [code for argument in arguments for code in _codes(argument)]
        causes = [code for code in codes if known(code)]
        if causes:
            line["cause"] = causes[0]
        if numbers:
            line["numbers"] = numbers
        if types:
            line["error"] = types[0]
        if traces:
            line["trace"] = traces[0]
        for name in NUMBER_FIELDS:
            value = getattr(record, name, None)
            if isinstance(value, int | float):
                line[name] = value
        for name, form in FIELDS.items():
            value = getattr(record, name, None)
            if isinstance(value, str) and re.fullmatch(form, value):
                line[name] = value
        return json.dumps(line, ensure_ascii=False)


def _codes(argument: object) -> list[str]:
    """Return the codes of a remark, or of the remarks of an error."""
    if isinstance(argument, Remark):
        return [argument.code]
    if isinstance(argument, errors.GlassleafError):
        return [remark.code for remark in argument.remarks]
    return []


def log_as_json() -> None:
    """Make this process log lines of JSON to standard error; libraries log warnings and errors alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(True)
