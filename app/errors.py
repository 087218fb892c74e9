"""What went wrong, in the reader's language.

An error is English wherever it is raised, written down or sent by another party. The sections ``error`` and ``sheet`` of the catalogues
hold what errors say: a line that reads as the English text does is shown in Chinese, with its own values; of another line Chinese readers
are told that it is English. In both languages a known line calls Hosts by their titles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from string import Formatter

from app.texts import UNBROKEN, Texts
from backend.errors import GlassleafError
from backend.i18n import catalogue, listed_in
from backend.remark import Remark, known

SECTIONS = ("error.", "sheet.")
PLACES = ("sheet.at_cell", "sheet.at_row", "sheet.at_column")  # no sentence: they stand before one
WITHIN, PAST = "why", "past"  # values: an error itself; how long ago, a number and a unit
HOSTS = ("host", "hosts")  # values: a Host's name, or several
MAYBE = ("purpose",)  # values that may be empty: not every question is for a named purpose
Problem = GlassleafError | Remark | str  # what a page explains; a text is in the reader's language already
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")  # three words in a row


def worded(t: Texts, why: Problem, title: Callable[[str], str] = str) -> str:
    """Return what an error or a remark says in the language of `t`; `title` gives the title of a Host by its name."""
    if isinstance(why, str):
        return said(t, why, title)  # TODO(issue 34): a sentence without a code
    if not known(why.code):
        return said(t, why.code, title)  # TODO(issue 34): a sentence without a code
    return why.sentence(t.language, title)


def said(t: Texts, text: str, title: Callable[[str], str] = str) -> str:
    """An error's text, line by line, in the language of `t`; `title` gives what a Host is called there."""
    lines = text.splitlines()
    found = [_line(t, title, line) for line in lines]
    unknown = any(new is None and _in_english(old) for new, old in zip(found, lines, strict=True))
    shown = "\n".join(old if new is None else new for new, old in zip(found, lines, strict=True))
    return f"{t('frame.in_english')}\n{shown}" if unknown and t.language != "en" else shown


def _in_english(line: str) -> bool:
    """Whether a line is to be announced as English: a Chinese name in it, such as a column's, makes it no Chinese one."""
    return not _CHINESE.search(line) or _ENGLISH.search(line) is not None


def _line(t: Texts, title: Callable[[str], str], line: str) -> str | None:
    """One line in the language of `t`; None where the catalogue does not know it."""
    for key in PLACES[:2]:
        found = _at(t, title, line, key)
        if found is not None:
            return found
    known = _known(t, title, line)
    return _at(t, title, line, PLACES[2]) if known is None else known


def _at(t: Texts, title: Callable[[str], str], line: str, key: str) -> str | None:
    """A line that says where before it says what."""
    match = re.match(_pattern(catalogue("en")[key]), line)
    rest = None if match is None else _known(t, title, line[match.end() :])
    return None if match is None or rest is None else t(key, **match.groupdict()) + rest


def _known(t: Texts, title: Callable[[str], str], line: str) -> str | None:
    """The same, where no place stands before it."""
    for key, pattern in _patterns():
        match = pattern.fullmatch(line)
        if match is None:
            continue
        values = match.groupdict()
        if WITHIN in values:
            within = _line(t, title, values[WITHIN])
            if within is None:
                continue
            values[WITHIN] = within
        if PAST in values:
            values[PAST] = _past(t, values[PAST])
        for name in values.keys() & HOSTS:
            values[name] = t.listed([title(host) for host in values[name].split(", ")])
        return t(key, **{name: listed_in(t.language, value) for name, value in values.items()})
    return None


def _past(t: Texts, text: str) -> str:
    """How long ago, with its unit, if it has one, in words."""
    many, _, unit = text.partition(" ")
    if not unit or t.language == "en":
        return text
    return t("words.days", days=many) if unit == "d" else f"{many}{UNBROKEN}{t(f'words.{unit}')}"


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Key → how its English text reads, those with most words of their own first."""
    texts = {key: text for key, text in catalogue("en").items() if key.startswith(SECTIONS) and key not in PLACES}
    order = sorted(texts, key=lambda key: -sum(len(literal) for literal, *_ in Formatter().parse(texts[key])))
    return tuple((key, re.compile(_pattern(texts[key]))) for key in order)


def _pattern(text: str) -> str:
    parts, seen = [], set[str]()
    for literal, name, _, _ in Formatter().parse(text):
        parts.append(re.escape(literal))
        if name:
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>.{'*' if name in MAYBE else '+'}?)")
            seen.add(name)
    return "".join(parts)
