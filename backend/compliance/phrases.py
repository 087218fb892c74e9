"""Finds phrases in feature names and meanings, word by word in English and by characters in Chinese.

A name is taken apart first: ``applicantGender``, ``gender_code`` and ``GENDER2`` all hold the word *gender*; ``page`` and
``Sussex`` hold neither *age* nor *sex*.

A phrase is written as words between spaces:

=============  =========================================================
``sex``        this word
``a|b``        one of these
``[a|b]``      one of these, or nothing
``widow*``     every word that begins so
``{number}``   a number in digits
``{thing}``    one of a named list's entries; also inside ``|`` and ``[]``
``!a|b``       not followed by one of these
``^``, ``$``   the text begins, ends here
=============  =========================================================

A phrase with Chinese characters is matched wherever they stand; a single character only where no other stands beside it
(男 in 男/女, not in 男装).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

_WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|\d+")
_HAN = "\u3400-\u9fff"
_ELEMENT = re.compile(r"^(?P<mark>!?)(?P<open>\[?)(?P<words>[^\[\]!]+?)(?P<close>\]?)$")

_BEGINS = "(?<= )"  # where an English phrase may begin
_NEVER = "(?!)"  # stands nowhere

NUMBER = "{number}"

Span = tuple[int, int]
Place = Literal["name", "meaning", "meaning_zh"]
Text = Annotated[str, StringConstraints(min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Lists = dict[str, tuple[Text, ...]]


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A text taken apart: itself with unified characters, and its words in small letters with their places."""

    text: str
    words: str  # " word word " with one space around each
    spans: dict[int, Span]  # where a word begins in `words` → its place in `text`

    @classmethod
    def of(cls, text: str) -> PhraseMatch:
        """Take a text apart."""
        plain = unicodedata.normalize("NFKC", text)
        words, spans = " ", {}
        for found in _WORD.finditer(plain):
            spans[len(words)] = found.span()
            words += found.group().lower() + " "
        return cls(plain, words, spans)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A compiled phrase."""

    source: str
    pattern: re.Pattern[str]
    chinese: bool

    @classmethod
    def of(cls, source: str, lists: Mapping[str, Sequence[str]]) -> Phrase:
        """Compile a phrase; raises `ValueError` where it is not written as the table above says."""
        elements = source.split()
        if all(element[0] in "[!^$" for element in elements):
            raise ValueError(f"found the phrase {source!r}, expected at least one word that must be there")
        chinese = bool(re.search(f"[{_HAN}]", source))
        body = "".join(_element(source, element, lists, "" if chinese else " ") for element in elements)
        if not chinese:
            body = f"{_BEGINS}{body}"
        elif len(source) == 1:
            body = f"(?<![{_HAN}]){body}(?![{_HAN}])"
        return cls(source, re.compile(body), chinese)

    def find(self, reading: PhraseMatch) -> list[Span]:
        """The places of this phrase in the reading's text."""
        if self.chinese:
            return [found.span() for found in self.pattern.finditer(reading.text)]
        spans = []
        for found in self.pattern.finditer(reading.words):
            first = reading.spans[found.start()]
            last = reading.spans[reading.words.rindex(" ", 0, found.end() - 1) + 1]
            spans.append((first[0], last[1]))
        return spans


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one rule looks for.

    Attributes
    ----------
    phrases, exclusions : tuple of Phrase
        An exclusion takes back what it covers.
    meaning_decides : bool
        For words with other senses: a hit in the name counts for nothing where a meaning holds an exclusion, no hit.
    english, chinese : re.Pattern
        All phrases in one; most texts hold none, and one search tells.
    """

    phrases: tuple[Phrase, ...]
    exclusions: tuple[Phrase, ...]
    meaning_decides: bool
    english: re.Pattern[str]
    chinese: re.Pattern[str]

    @classmethod
    def of(cls, phrases: tuple[Phrase, ...], exclusions: tuple[Phrase, ...], meaning_decides: bool = False) -> Pattern:
        """Make ready."""
        english = "|".join(p.pattern.pattern.removeprefix(_BEGINS) for p in phrases if not p.chinese)
        chinese = "|".join(p.pattern.pattern for p in phrases if p.chinese)
        return cls(
            phrases,
            exclusions,
            meaning_decides,
            re.compile(f"{_BEGINS}(?:{english})" if english else _NEVER),
            re.compile(chinese or _NEVER),
        )

    def find(self, name: PhraseMatch, meaning: PhraseMatch, meaning_zh: PhraseMatch) -> tuple[str, Place] | None:
        """What stands in a feature's name or meanings, as it is written there, and where; the name comes first."""
        in_name, in_meaning, in_meaning_zh = (self._uncovered(text) for text in (name, meaning, meaning_zh))
        if in_name and self.meaning_decides and not (in_meaning or in_meaning_zh):
            in_name = "" if any(e.find(text) for text in (meaning, meaning_zh) for e in self.exclusions) else in_name
        places: tuple[tuple[str, Place], ...] = (
            (in_name, "name"),
            (in_meaning, "meaning"),
            (in_meaning_zh, "meaning_zh"),
        )
        return next((match for match in places if match[0]), None)

    def _uncovered(self, reading: PhraseMatch) -> str:
        """The first place where a phrase stands and no exclusion covers it; empty where there is none."""
        if not self.english.search(reading.words) and not self.chinese.search(reading.text):
            return ""
        found = sorted(span for phrase in self.phrases for span in phrase.find(reading))
        covers = [span for exclusion in self.exclusions for span in exclusion.find(reading)]
        for start, end in found:
            if not any(cover[0] <= start and end <= cover[1] for cover in covers):
                return reading.text[start:end]
        return ""


class Concept(BaseModel):
    """What to look for in names and meanings.

    Attributes
    ----------
    sensitivity : tuple of str
        The dictionary tags that name it.
    phrases, phrases_zh : tuple of str
        English and Chinese; written as the table above says.
    exclusions, exclusions_zh : tuple of str
        What takes a phrase back.
    meaning_decides : bool
        See `Pattern`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensitivity: tuple[Key, ...] = ()
    phrases: tuple[Text, ...] = ()
    phrases_zh: tuple[Text, ...] = ()
    exclusions: tuple[Text, ...] = ()
    exclusions_zh: tuple[Text, ...] = ()
    meaning_decides: bool = False

    def pattern(self, lists: Lists) -> Pattern:
        """Ready to be looked for; raises `ValueError` at a badly written phrase."""
        return Pattern.of(
            tuple(Phrase.of(phrase, lists) for phrase in (*self.phrases, *self.phrases_zh)),
            tuple(Phrase.of(phrase, lists) for phrase in (*self.exclusions, *self.exclusions_zh)),
            self.meaning_decides,
        )


class Vocabulary(BaseModel):
    """The concepts that rules name instead of phrases of their own, and the lists that every phrase may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Text
    lists: Lists
    concepts: dict[Key, Concept]

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """Concept → what it looks for."""
        return {key: concept.pattern(self.lists) for key, concept in self.concepts.items()}


def _element(source: str, element: str, lists: Mapping[str, Sequence[str]], gap: str) -> str:
    """One element of a phrase as a regular expression; each word is followed by `gap`."""
    if element == "^":
        return r"(?<=\A )" if gap else r"\A"
    if element == "$":
        return r"\Z"
    parts = _ELEMENT.match(element)
    if parts is None or (parts["open"] == "[") != (parts["close"] == "]"):
        raise ValueError(f"found {element!r} in the phrase {source!r}, expected a word, a|b, [a|b], {{list}} or !a|b")
    words: list[str] = []
    for word in parts["words"].split("|"):
        if word != NUMBER and word.startswith("{") and word.endswith("}"):
            if word[1:-1] not in lists:
                raise ValueError(f"found {word} in the phrase {source!r}, expected one of the lists {sorted(lists)}")
            words += lists[word[1:-1]]
        else:
            words.append(word)
    if not all(words):
        raise ValueError(f"found an empty choice in the phrase {source!r}, expected a word on both sides of '|'")
    choice = f"(?:{'|'.join(_word(source, word, gap) for word in words)})"
    if parts["mark"]:
        return f"(?!{choice}{gap})"
    return f"(?:{choice}{gap})?" if parts["open"] else f"{choice}{gap}"


def _word(source: str, word: str, gap: str) -> str:
    """A word as a regular expression; in English it must be one that `PhraseMatch` can yield."""
    if not gap:
        return re.escape(word)
    if word == NUMBER:
        return r"\d+"
    stem = word.removesuffix("*")
    if stem != stem.lower() or not all(_WORD.fullmatch(piece) for piece in stem.split()):
        raise ValueError(f"found {word!r} in the phrase {source!r}, expected small letters or digits alone")
    return re.escape(stem) + (r"[^ ]*" if word.endswith("*") else "")
