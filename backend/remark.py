"""What is to be said as a code with values; the sentence is made where somebody reads it, in their language.

The sentences stand in `assets/errors`, one file for each folder of the backend, every code with its English and its Chinese.
"""

from __future__ import annotations

import errno
import string
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from importlib.resources import files
from math import isfinite

from backend.i18n import LANGUAGES, Text, fill

SENTENCES = files("assets") / "errors"
LISTED = 10  # items of a list that a sentence names
PEOPLE = frozenset({"id", "ids"})  # values that name people: no log holds them
HOSTS = frozenset({"host", "hosts"})  # values that name Hosts: a reader sees their titles
MAX_TEXT = 2_000  # letters of a text that another party sent
MAX_ITEMS = 200  # items of a list, or values of a remark, that another party sent
MAX_SPAN = 1e10  # seconds of a time span from another party, some 300 years
MAX_DEPTH = 4  # remarks and lists within each other, from another party
_UNITS = (
    ("day", 86_400, 2),
    ("hour", 3600, 1),
    ("minute", 60, 1),
)  # unit, seconds, from how many of them on it is used
_SYSTEM_REASONS = {
    errno.ENOENT: "no_such_file",
    errno.EACCES: "no_permission",
    errno.EPERM: "no_permission",
    errno.ENOSPC: "full_disk",
    errno.EROFS: "read_only_disk",
    errno.EISDIR: "is_a_folder",
    errno.ENOTDIR: "not_a_folder",
    errno.EADDRINUSE: "address_in_use",
}

Title = Callable[[str], str]


@dataclass(frozen=True)
class Remark:
    """A code with the values of its sentence, and where in a table it applies.

    Parameters
    ----------
    code : str
        A key of the catalogue.
    values : mapping of str to object
        Text, number, :class:`Text`, date, time span, :class:`Remark`, or a tuple of these.
    row, column : int, str
        The row (1 is the first) and the column that the remark is about; 0 and "" if it is not about one.

    Examples
    --------
    >>> Remark("unknown_federation", {"federation": "cards", "known": ("demo", "loans")}).sentence("en")[:29]
    'There is no federation cards;'
    """

    code: str
    values: Mapping[str, object] = field(default_factory=dict)
    row: int = 0
    column: str = ""

    def sentence(self, language: str = "en", title: Title = str) -> str:
        """Return the sentence in a language. `title` gives the title of a Host by its name."""
        shown = {}
        for name, value in self.values.items():
            shown[name] = _shown(value, language, title if name in HOSTS else str, title)
        return self._place(language) + fill(template(self.code, language, self.values), language, shown)

    def both(self) -> Text:
        """Return the sentence in both languages."""
        return Text(self.sentence("en"), self.sentence("zh"))

    def __str__(self) -> str:
        """Return code and values for a line of a log, without what names a person."""
        return _logged(self.loggable())

    def loggable(self) -> dict[str, object]:
        """Return code and values for a log, without what names a person or quotes a cell."""
        values = {}
        for name, value in self.values.items():
            if name not in PEOPLE:
                values[name] = value.loggable() if isinstance(value, Remark) else value
        return {"code": self.code, **values}

    def plain(self) -> dict[str, object]:
        """Return code, values and place as texts, numbers, lists and tables, for a message or a database."""
        values = {name: plain_value(value) for name, value in self.values.items()}
        if self.row or self.column:
            place = {"row": self.row, "column": self.column}
        else:
            place = {}
        return {"code": self.code, "values": values, **place}

    def _place(self, language: str) -> str:
        """Return how the sentence starts: "Row 3, age: "."""
        if self.row and self.column:
            return fill(template("at_cell", language), language, {"row": self.row, "column": self.column})
        if self.row:
            return fill(template("at_row", language), language, {"row": self.row})
        if self.column:
            return fill(template("at_column", language), language, {"column": self.column})
        return ""


def reason_of(error: Exception) -> Remark | str:
    """Return why the system could not open or write a file, in both languages if the reason is a common one."""
    if isinstance(error, UnicodeDecodeError):
        return Remark("not_utf8_at", {"byte": error.start})
    if not isinstance(error, OSError):
        return one_line(str(error))
    code = _SYSTEM_REASONS.get(error.errno or 0)
    if code is None:
        return error.strerror or one_line(str(error))
    return Remark(code)


def read_plain(plain: object, depth: int = 0) -> Remark:
    """Return the remark that :meth:`Remark.plain` made, whoever sent it.

    Text that another party wrote is cut to :data:`MAX_TEXT` letters on one line. A code that this version does not know, that lacks
    a value, or whose values do not fit its sentence, becomes the remark `unknown_remark`.

    Raises
    ------
    ValueError
        If it is not such a table.
    """
    if not isinstance(plain, dict) or not isinstance(plain.get("code"), str) or depth > MAX_DEPTH:
        raise ValueError("a remark is a table of code and values")
    values = plain.get("values", {})
    row = plain.get("row", 0)
    column = plain.get("column", "")
    if not isinstance(values, dict) or len(values) > MAX_ITEMS or type(row) is not int or not isinstance(column, str):
        raise ValueError("a remark's values are a table, its row is a number and its column a text")
    read = {}
    for name, value in values.items():
        read[str(name)] = _read(value, depth + 1)
    code = plain["code"]
    if not known(code) or not fields(code) <= read.keys():
        return Remark("unknown_remark", {"code": one_line(code)[:60]})
    remark = Remark(code, read, row, one_line(column)[:MAX_TEXT])
    try:
        for language in LANGUAGES:
            remark.sentence(language)
    except (ValueError, TypeError):  # a text for a number, say: the sentence cannot be made of such values
        return Remark("unknown_remark", {"code": one_line(code)[:60]})
    return remark


def read_text(plain: object) -> Text:
    """Return the text in two languages that :func:`plain_value` made, whoever sent it; its letters are cut as a remark's are.

    Raises
    ------
    ValueError
        If it is not such a table.
    """
    match plain:
        case {"en": str(english), "zh": str(chinese)}:
            return Text(one_line(english)[:MAX_TEXT], one_line(chinese)[:MAX_TEXT])
    raise ValueError("a text in two languages is a table of en and zh")


def one_line(text: str) -> str:
    """Return a text on one line, without letters that steer a terminal or turn the direction of writing."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def known(code: str) -> bool:
    """Return whether the catalogue has a sentence for a code."""
    return code in catalogue() or f"{code}.other" in catalogue()


def template(code: str, language: str, values: Mapping[str, object] | None = None) -> str:
    """Return the catalogue's text of a code; a value called `n` chooses between `.one` and `.other` if the catalogue has both."""
    texts = catalogue()
    if code in texts:
        return texts[code].in_language(language)
    form = "one" if (values or {}).get("n") == 1 else "other"
    return texts[f"{code}.{form}"].in_language(language)


@cache
def fields(code: str) -> frozenset[str]:
    """Return the names of the values that a code's sentences have, in either language and either number."""
    names = set()
    for key in (code, f"{code}.one", f"{code}.other"):
        text = catalogue().get(key)
        if text is None:
            continue
        for sentence in (text.en, text.zh):
            names |= {name for _, name, _, _ in string.Formatter().parse(sentence) if name}
    return frozenset(names)


@cache
def catalogue() -> dict[str, Text]:
    """Return all sentences: code → English and Chinese.

    Raises
    ------
    ValueError
        If a code is in two files, or lacks a language.
    """
    found: dict[str, Text] = {}
    for file in sorted(SENTENCES.iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".toml"):
            continue
        for code, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if "en" in entry:
                forms = {code: entry}
            else:
                forms = {f"{code}.{form}": entry[form] for form in entry}
            for key, both in forms.items():
                if key in found or not both.get("en") or not both.get("zh"):
                    raise ValueError(f"{file.name}: {key} is in another file, too, or lacks a language")
                found[key] = Text(both["en"], both["zh"])
    return found


def plain_value(value: object) -> object:
    """Return a value of a remark as text, number, list or table."""
    if isinstance(value, Remark):
        return value.plain()
    if isinstance(value, Text):
        return {"en": value.en, "zh": value.zh}
    if isinstance(value, timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, date):
        return {"time": value.isoformat()}
    if isinstance(value, (tuple, list)):
        return [plain_value(item) for item in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def _read(plain: object, depth: int) -> object:
    """Return the value that :func:`plain_value` made."""
    if isinstance(plain, str):
        return one_line(plain)[:MAX_TEXT]
    if isinstance(plain, (list, tuple)) and len(plain) <= MAX_ITEMS and depth <= MAX_DEPTH:
        return tuple(_read(item, depth + 1) for item in plain)
    if isinstance(plain, dict):
        return _read_table(plain, depth)
    if plain is None or (isinstance(plain, (int, float)) and isfinite(plain)):
        return plain
    raise ValueError("a remark's value is a text, a number, a list, two languages, a time, or a remark")


def _read_table(plain: dict[str, object], depth: int) -> object:
    """Return the remark, the text in two languages or the time that a table holds."""
    match plain:
        case {"code": str()}:
            return read_plain(plain, depth)
        case {"en": str(), "zh": str()}:
            return read_text(plain)
        case {"seconds": int() | float() as seconds} if abs(seconds) < MAX_SPAN:
            return timedelta(seconds=seconds)
        case {"time": str(time)}:
            if "T" in time:
                return datetime.fromisoformat(time)
            return date.fromisoformat(time)
    raise ValueError("a remark's table is two languages, a time, or a remark")


def _logged(values: Mapping[str, object]) -> str:
    """Return what :meth:`Remark.loggable` gives on one line: `link_down (host=shop, why=link_cut)`."""
    shown = []
    for name, value in values.items():
        shown.append(f"{name}={_logged(value) if isinstance(value, dict) else value}")
    code, *rest = shown
    text = code.removeprefix("code=")
    return one_line(f"{text} ({', '.join(rest)})" if rest else text)


def _shown(value: object, language: str, name: Title, title: Title) -> object:
    """Return a value as a sentence shows it: `name` of a text, and nested remarks in the same language."""
    match value:
        case Remark():
            shown: object = value.sentence(language, title)
        case Text():
            shown = value.in_language(language)
        case tuple() | list():
            shown = _listed([str(_shown(item, language, name, title)) for item in value], language)
        case timedelta():
            shown = _span(value, language)
        case datetime():
            shown = value.strftime("%Y-%m-%d %H:%M UTC")
        case date():
            shown = value.isoformat()
        case str():
            shown = name(value)
        case _:
            shown = value
    return shown


def _listed(items: list[str], language: str) -> str:
    """Return a list as a sentence shows it: the first :data:`LISTED` items, and how many more there are."""
    text = ("、" if language == "zh" else ", ").join(items[:LISTED])
    rest = len(items) - LISTED
    if rest <= 0:
        return text
    return fill(template("and_more", language), language, {"items": text, "rest": rest})


def _span(span: timedelta, language: str) -> str:
    """Return a time span in its largest unit: "3 hours"."""
    seconds = max(0, int(span.total_seconds()))
    for unit, size, least in _UNITS:
        n = seconds // size
        if n >= least:
            return fill(template(unit, language, {"n": n}), language, {"n": n})
    return template("moments", language)
