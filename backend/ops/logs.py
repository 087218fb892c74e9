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
"""Field of an event that holds a word → what it has to look like."""
OWN = ("glassleaf", "uvicorn.error")  # loggers whose words are fixed; of others it is not known what is in them
NUMBERS = ("people", "failed", "seconds", "code", "bytes")
ERRORS = frozenset(
    name
    for module in (builtins, errors)
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, BaseException)
)
TRACE = '  File "'  # how lines of a traceback begin, which quote the code alone


class JsonLines(logging.Formatter):
    """One event as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.msg if record.name in OWN and isinstance(record.msg, str) else "of a library",
        }
        given = record.args.values() if isinstance(record.args, dict) else record.args or ()
        numbers = [one for one in given if isinstance(one, int | float)]
        types = [one for one in given if isinstance(one, str) and one in ERRORS]
        traces = [one for one in given if isinstance(one, str) and one.startswith(TRACE)]
        types += [type(one).__name__ for one in given if isinstance(one, BaseException)]
        if record.exc_info and record.exc_info[0] is not None:
            types.append(record.exc_info[0].__name__)
            traces.append("".join(traceback.format_tb(record.exc_info[2])))
        codes = [code for one in given for code in _codes(one)]
        causes = [code for code in codes if known(code)]
        line |= {"cause": causes[0]} if causes else {}
        line |= {"numbers": numbers} if numbers else {}
        line |= {"error": types[0]} if types else {}
        line |= {"trace": traces[0]} if traces else {}
        line |= {name: found for name in NUMBERS if isinstance(found := getattr(record, name, None), int | float)}
        for name, form in FIELDS.items():
            found = getattr(record, name, None)
            if isinstance(found, str) and re.fullmatch(form, found):
                line[name] = found
        return json.dumps(line, ensure_ascii=False)


def _codes(given: object) -> list[str]:
    """Return the codes of a remark, or of the remarks of an error."""
    if isinstance(given, Remark):
        return [given.code]
    if isinstance(given, errors.GlassleafError):
        return [remark.code for remark in given.remarks]
    return []


def log_as_json() -> None:
    """From now on this process logs lines of JSON to standard error; of libraries, warnings and errors alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in OWN:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(True)
