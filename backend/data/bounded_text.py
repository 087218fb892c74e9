"""TOML, YAML and JSON that another company may have written, read within bounds: size, depth, parts of a key, digits of a number.

Python's TOML reader takes time and memory that grow with the square of a key's parts; all readers fail on deep nesting and long numbers.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend.errors import FederationError, GlassleafError
from backend.remark import Remark

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 4 << 20  # 5,000 features with meanings in two languages take 2 MB
MAX_PARTS = 16  # of a dotted key or a table's name; our own files have 4
MAX_BITS = 64  # of a whole number, as TOML has it
MAX_YAML_DEPTH = 10  # a rule pack needs four: pack, rules, rule, phrases
_NAME = rb"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
# more parts than a key may have, before the value of a key or the end of a table's name
_LONG_KEY = re.compile(rb"(?<![A-Za-z0-9_-])%b(?:[ \t]*\.[ \t]*%b){%d}" % (_NAME, _NAME, MAX_PARTS))

Kind = type[GlassleafError]


class RepeatedNameError(ValueError):
    """An object names a key twice: readers differ in which of the two they believe.

    Attributes
    ----------
    name : str
        The key's beginning.
    """

    def __init__(self, name: str) -> None:
        self.name = name[:40]
        super().__init__(f"the name {self.name!r} stands twice in one object")


def read_bounded(path: Path, error: Kind = FederationError, *, name: str = "", max_bytes: int = MAX_BYTES) -> bytes:
    """Return a file's bytes.

    Raises
    ------
    error
        The file is absent, cannot be read, or is too large.
    """
    name = name or path.name
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise error("no_such_text_file", file=name, folder=str(path.absolute().parent)) from None
    except OSError as failure:
        raise error("file_unreadable", file=name, reason=str(failure.strerror)) from None
    _check_size(name, data, error, max_bytes)
    return data


def read_toml(
    path: Path, error: Kind = FederationError, *, name: str = "", max_bytes: int = MAX_BYTES
) -> dict[str, Any]:
    """Return what a TOML file holds; raises as :func:`read_bounded` and :func:`parse_toml`."""
    data = read_bounded(path, error, name=name, max_bytes=max_bytes)
    return parse_toml(name or path.name, data, error, max_bytes)


def parse_toml(name: str, data: bytes, error: Kind = FederationError, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return what the bytes of a TOML file hold.

    Raises
    ------
    error
        They are too many, not UTF-8, or not TOML.
    """
    _check_size(name, data, error, max_bytes)
    text = _decoded(name, data, error)
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.count(b".") >= MAX_PARTS and _LONG_KEY.search(line):
            raise error("key_of_too_many_parts", file=name, line=number, limit=MAX_PARTS)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise error("nested_too_deep", file=name) from None
    except (ValueError, OverflowError) as failure:  # TOMLDecodeError is one; a number of 4,300 digits, another
        raise error("not_toml", file=name, reason=str(failure)[:200]) from None
    if _has_long_number(document):
        raise error("number_too_long", file=name, limit=MAX_BITS)
    return document


def parse_json(name: str, data: bytes | str, error: Kind = FederationError, max_bytes: int = MAX_BYTES) -> Any:
    """Return what the bytes or the text of a JSON file hold.

    Raises
    ------
    error
        They are too many, not UTF-8, not JSON, or name a key twice.
    """
    _check_size(name, data, error, max_bytes)
    if isinstance(data, str):
        text = data
    else:
        text = _decoded(name, data, error)
    try:
        return json_values(text)
    except RecursionError:
        raise error("nested_too_deep", file=name) from None
    except ValueError as failure:  # JSONDecodeError is one; a number of 4,300 digits and a repeated name, others
        raise error("not_json", file=name, reason=str(failure)[:200]) from None


def json_values(text: str) -> Any:
    """Return JSON as Python's own values.

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


def parse_yaml(
    name: str, data: bytes, error: Kind = FederationError, max_bytes: int = MAX_BYTES
) -> tuple[yaml.Node | None, Any]:
    """Return a YAML file's nodes, which know their lines, and what they hold: texts, lists and tables alone.

    Raises
    ------
    error
        The bytes are too many, not UTF-8, not YAML, nested deeply, or refer to one another, which costs more than it weighs.
    """
    import yaml  # noqa: PLC0415 - only who hands in YAML needs it

    _check_size(name, data, error, max_bytes)
    text = _decoded(name, data, error)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml_loader()):
            if isinstance(event, yaml.AliasEvent):
                raise error("yaml_alias", file=name, alias=event.anchor)
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_YAML_DEPTH:
                raise error("nested_too_deep", file=name)
        node = yaml.compose(text, Loader=yaml_loader())
        values = {} if node is None else yaml.load(text, Loader=yaml_loader())  # noqa: S506 - makes texts, lists and tables only
    except yaml.YAMLError as failure:
        mark = getattr(failure, "problem_mark", None)
        where = Remark("line_of_file", {"file": name, "line": mark.line + 1}) if mark else name
        raise error("not_yaml", where=where, reason=str(getattr(failure, "problem", failure))[:200]) from None
    return node, values


@cache
def yaml_loader() -> Any:
    """Return the loader that reads every value as text; the fields' types decide."""
    import yaml  # noqa: PLC0415 (as above)

    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def _check_size(name: str, data: bytes | str, error: Kind, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise error("text_file_too_large", file=name, limit=max_bytes)


def _decoded(name: str, data: bytes, error: Kind) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error("text_not_utf8", file=name) from None


def _has_long_number(document: object) -> bool:
    """Return whether a number is longer than TOML's: as a text it would take long, or be refused by Python."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, int) and value.bit_length() > MAX_BITS:
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = set()
        for name, _ in pairs:
            if name in names:
                raise RepeatedNameError(name)
            names.add(name)
    return fields
