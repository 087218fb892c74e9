"""Text catalogues in English and Chinese (assets/texts), which the pages and the printed reports share; knows no model."""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

CATALOGUES = files("assets") / "texts"
LANGUAGES = ("en", "zh")
# Names and reasons that the demo brings along.
DEMO_WORDS = ("document.demo_name", "document.demo_owner", "document.demo_approver", "document.demo_reason")
NO_MEANING = "(no meaning given)"  # ends a meaning that was made from the column's name
AGE = "年龄"  # in a meaning: its years have a word of their own in Chinese
LONG = 40  # letters of a meaning that is shortened
_ENDED = ("。", "！", "？", "；", "：")  # after these nothing stands between two sentences
_EXPLAINED = re.compile(r":\s|\s\(|：|（")  # after these a meaning explains its values
_BEFORE = re.compile(r"(?<=[\u4e00-\u9fff]) ?(\**|<b>)$")  # Chinese before a value, and what may open an emphasis
_AFTER = re.compile(r"^(\**|</b>) ?(?=[\u4e00-\u9fff])")  # what may close it, and Chinese after
_SPACED = "%°±−+$€£≤≥:●■◆▲⬢⬟★"  # set apart from Chinese as letters and digits are; ":" begins Markdown's coloured marks
# nouns that stand behind a number in the catalogues; a sentence whose verb changes, too, has forms of its own (`.one`, `.other`)
SINGULAR = {
    "alternatives": "alternative",
    "answers": "answer",
    "bands": "band",
    "batches": "batch",
    "bins": "bin",
    "bits": "bit",
    "bytes": "byte",
    "cells": "cell",
    "characters": "character",
    "ciphertexts": "ciphertext",
    "classes": "class",
    "codes": "code",
    "columns": "column",
    "trials": "trial",
    "combinations": "combination",
    "comparisons": "comparison",
    "conversations": "conversation",
    "days": "day",
    "digests": "digest",
    "elements": "element",
    "entries": "entry",
    "features": "feature",
    "findings": "finding",
    "gradients": "gradient",
    "groups": "group",
    "hours": "hour",
    "ids": "id",
    "items": "item",
    "keys": "key",
    "labels": "label",
    "laws": "law",
    "leaves": "leaf",
    "letters": "letter",
    "levels": "level",
    "messages": "message",
    "models": "model",
    "names": "name",
    "nodes": "node",
    "numbers": "number",
    "outputs": "output",
    "pairs": "pair",
    "parties": "party",
    "parts": "part",
    "people": "person",
    "pieces": "piece",
    "points": "point",
    "ranks": "rank",
    "reasons": "reason",
    "records": "record",
    "reports": "report",
    "requests": "request",
    "roots": "root",
    "rounds": "round",
    "rows": "row",
    "rules": "rule",
    "samples": "sample",
    "scores": "score",
    "shares": "share",
    "sheets": "sheet",
    "slots": "slot",
    "splits": "split",
    "steps": "step",
    "sums": "sum",
    "targets": "target",
    "tests": "test",
    "texts": "text",
    "thresholds": "threshold",
    "times": "time",
    "trees": "tree",
    "units": "unit",
    "values": "value",
}
_NOUN = re.compile(
    rf"^(\*{{0,2}} (?:(?:more|other|different|new|joint|test|training|known) )?)({'|'.join(SINGULAR)})\b( were| are| have)?\b"
)
_VERBS = {" were": " was", " are": " is", " have": " has"}


@dataclass(frozen=True)
class Text:
    """What has two languages: a meaning, a unit, what a code stands for, a title, a reason.

    Parameters
    ----------
    en, zh : str
        English; Chinese, "" if nobody wrote it.

    Examples
    --------
    >>> Text("Age", "年龄").in_language("zh")
    '年龄'
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - of a file that has another key beside the two languages

    en: str = ""
    zh: str = ""

    def in_language(self, language: str) -> str:
        """Return the Chinese text if Chinese is chosen and written, else the English one."""
        return self.zh if language == "zh" and self.zh else self.en

    def __bool__(self) -> bool:
        """Return whether something was written."""
        return bool(self.en or self.zh)

    def __str__(self) -> str:
        """Return the English text."""
        return self.en


NO_TEXT = Text()


class Catalogue:
    """One language's words: ``words("document.title", name=value)``.

    Raises
    ------
    ValueError
        If there is no catalogue in the language. Doors check what users choose against :data:`LANGUAGES`.
    """

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            raise ValueError(f"there is no catalogue in {language!r}")
        self.language = language
        self._texts = catalogue(language)

    def __call__(self, key: str, /, **values: object) -> str:
        """Find a text and fill it in; see :func:`template` for its plural forms."""
        return fill(template(self._texts, key, values), self.language, values)

    def named(self, prefix: str, name: str) -> str:
        """The text of a name that comes out of a result, or the name itself where the catalogue has none."""
        return self._texts.get(f"{prefix}{name}", name)

    def jurisdiction(self, name: str) -> str:
        """Where a rule pack applies; as the pack has it where the catalogue knows no such place."""
        return jurisdiction_in(self._texts, name)

    def text(self, text: Text) -> str:
        """Return a text in the catalogue's language."""
        return text.in_language(self.language)

    def unit(self, unit: Text, meaning: Text) -> str:
        """Return the unit of something with that meaning, in the catalogue's language."""
        return unit_in(self.language, unit, meaning)

    def model(self, name: str) -> str:
        """What a model is called in the chosen language."""
        return demo_in(self.language, name)

    def written(self, words: str) -> str:
        """What somebody wrote, as it is; what the demo brings along, in the chosen language."""
        return demo_in(self.language, words)

    def texts(self, texts: Mapping[str, Text]) -> dict[str, str]:
        """Return a table of texts, such as what codes stand for, in the catalogue's language."""
        return texts_in(self.language, texts)


def in_both(key: str, /, **values: object) -> Text:
    """Return a text of the catalogues in both languages."""
    return Text(Catalogue("en")(key, **values), Catalogue("zh")(key, **values))


def template(texts: Mapping[str, str], key: str, values: Mapping[str, object]) -> str:
    """Return a text of a catalogue; a value called `n` chooses between `.zero`, `.one` and `.other` if the text has these forms.

    Raises
    ------
    KeyError
        If the catalogue has no such text.
    """
    text = texts.get(key)
    if text is None:
        form = {"0": "zero", "1": "one"}.get(str(values.get("n")), "other")
        text = texts.get(f"{key}.{form}") or texts[f"{key}.other"]
    return text


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, which is given in the plural.

    Examples
    --------
    >>> counted(1, "features"), counted(2_000, "people")
    ('1 feature', '2,000 people')
    """
    return f"{n:,} {SINGULAR[noun] if n == 1 else noun}"


def fill(text: str, language: str, values: Mapping[str, object]) -> str:
    """`text` with `values` filled in, whole numbers with thousands separated.

    In English a noun behind the number 1 has no plural, if it is one of :data:`SINGULAR`. In Chinese a Latin value is set apart by spaces,
    and a Chinese one is not.

    Examples
    --------
    >>> fill("{n} features in {trees} trees", "en", {"n": 1, "trees": 20})
    '1 feature in 20 trees'
    """
    if not values:
        return text
    filled = ""
    last = ""
    for literal, name, spec, _ in string.Formatter().parse(text):
        value = _formatted(values[name], spec or "") if name else ""
        between = literal
        if language == "zh":
            between = _set_apart(last.rstrip("*")[-1:], literal, value.lstrip("*")[:1])
        elif last.strip("*") == "1":
            between = _NOUN.sub(_of_one, literal, count=1)
        filled += between + value
        last = value
    return filled


def _of_one(found: re.Match[str]) -> str:
    """Return what stands behind the number 1: the noun in the singular, and so the verb that follows it."""
    return f"{found[1]}{SINGULAR[found[2]]}{_VERBS.get(found[3], '')}"


def _formatted(value: object, spec: str) -> str:
    """Return a value by its format; a whole number without one (a port may ask for `:d`) has thousands separated."""
    if type(value) is int and not spec:
        return f"{value:,}"
    return format(value, spec)


def _set_apart(before: str, between: str, after: str) -> str:
    """What stands between two values, with the spaces that their nearest letters need."""
    if before and (found := _AFTER.match(between)):
        between = found[1] + _gap(before, found[1]) + between[found.end() :]
    if after and (found := _BEFORE.search(between)):
        between = between[: found.start()] + _gap(after, found[1]) + found[1]
    return between


def jurisdiction_in(texts: Mapping[str, str], name: str) -> str:
    """A rule pack's jurisdiction by a catalogue, or its own words."""
    return texts.get(f"jurisdiction.{name.lower().replace(',', '').replace(' ', '_')}", name)


def unit_in(language: str, unit: Text, meaning: Text) -> str:
    """Return the unit of something with that meaning.

    In Chinese it is the owner's word, else the catalogue's for a common unit; years of an age have a word of their own.
    """
    if language != "zh" or unit.zh or not unit.en:
        return unit.in_language(language)
    common = unit.en.strip().casefold()
    if common == "years" and AGE in meaning.zh:
        common = "years_of_age"
    return catalogue(language).get(f"unit.{common}", unit.en)


def demo_in(language: str, words: str) -> str:
    """Return words as somebody wrote them; those of the demo, which nobody wrote, in the chosen language."""
    english = catalogue("en")
    for key in DEMO_WORDS:
        if words == english[key]:
            return catalogue(language)[key]
    return words


def texts_in(language: str, texts: Mapping[str, Text]) -> dict[str, str]:
    """Return a table of texts, such as what codes stand for, in a language."""
    return {key: text.in_language(language) for key, text in texts.items()}


def _gap(letter: str, mark: str) -> str:
    """What stands between a Chinese character and the edge of a value; Markdown's marks need a space beside punctuation."""
    latin = letter in _SPACED or (letter.isalnum() and letter < "\u2e80")
    return " " if latin or (mark and not letter.isalnum()) else ""


def joined(*sentences: str) -> str:
    """Sentences one after the other, without a space after a Chinese full stop; empty ones are left out."""
    text = ""
    for sentence in filter(None, sentences):
        text += ("" if not text or text.endswith(_ENDED) else " ") + sentence
    return text


def wide(text: str) -> int:
    """Letters that `text` is wide (Chinese ones count double)."""
    return len(text) + sum(letter > "\u2e80" for letter in text)


def brief(meaning: str) -> str:
    """A feature's meaning without what explains its values, where it is long: for charts and sentences."""
    if wide(meaning) > LONG:
        return _EXPLAINED.split(meaning)[0] or meaning
    return meaning


@cache
def catalogue(language: str) -> dict[str, str]:
    """All texts of one language: ``section.key`` → text; plurals as ``section.key.one`` and ``section.key.other``."""
    flat: dict[str, str] = {}

    def walk(prefix: str, node: dict[str, Any]) -> None:
        for key, value in node.items():
            if isinstance(value, dict):
                walk(f"{prefix}{key}.", value)
            else:
                flat[prefix + key] = value.replace(" %", "\u00a0%")  # no line ends between a figure and its unit

    walk("", tomllib.loads((CATALOGUES / f"{language}.toml").read_text(encoding="utf-8")))
    return flat
