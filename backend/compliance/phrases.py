"""Finds phrases in feature names and meanings, word by word in English and by characters in Chinese.

A name is tokenised first: ``applicantGender``, ``gender_code`` and ``GENDER2`` all hold the word *gender*; ``page`` and
``Sussex`` hold neither *age* nor *sex*.

Syntax of a phrase, words between spaces:

=============  =========================================================
``sex``        this word
``a|b``        one of these
``[a|b]``      one of these, or nothing
``widow*``     every word with this prefix
``{number}``   a number in digits
``{thing}``    one of a named list's entries; also inside ``|`` and ``[]``
``!a|b``       not followed by one of these
``^``, ``$``   start, end of the text
=============  =========================================================

A phrase with Chinese characters matches anywhere; a single character only where no other stands beside it (男 in 男/女, not in 男装).
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
_NEVER = "(?!)"  # matches nothing

NUMBER = "{number}"

Span = tuple[int, int]
MatchedIn = Literal["name", "meaning", "meaning_zh"]
Text = Annotated[str, StringConstraints(min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Lists = dict[str, tuple[Text, ...]]


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A tokenised text: itself with normalised characters, and its words in lower case with their positions."""

    text: str
    words: str  # " word word " with one space around each
    spans: dict[int, Span]  # where a word begins in `words` → its span in `text`

    @classmethod
    def of(cls, text: str) -> PhraseMatch:
        """Tokenise a text."""
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
        """Compile a phrase; raises `ValueError` where it breaks the syntax above."""
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

    def find(self, text: PhraseMatch) -> list[Span]:
        """Spans of this phrase in a text."""
        if self.chinese:
            return [found.span() for found in self.pattern.finditer(text.text)]
        spans = []
        for found in self.pattern.finditer(text.words):
            first = text.spans[found.start()]
            last = text.spans[text.words.rindex(" ", 0, found.end() - 1) + 1]
            spans.append((first[0], last[1]))
        return spans


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one rule looks for.

    Attributes
    ----------
    phrases, exclusions : tuple of Phrase
        An exclusion cancels the hits that it covers.
    meaning_decides : bool
        For words with several senses: a hit in the name is ignored where a meaning holds an exclusion and no hit.
    english, chinese : re.Pattern
        All phrases in one: a single search rules out most texts.
    """

    phrases: tuple[Phrase, ...]
    exclusions: tuple[Phrase, ...]
    meaning_decides: bool
    english: re.Pattern[str]
    chinese: re.Pattern[str]

    @classmethod
    def of(cls, phrases: tuple[Phrase, ...], exclusions: tuple[Phrase, ...], meaning_decides: bool = False) -> Pattern:
        """Combine the phrases."""
        english = "|".join(p.pattern.pattern.removeprefix(_BEGINS) for p in phrases if not p.chinese)
        chinese = "|".join(p.pattern.pattern for p in phrases if p.chinese)
        return cls(
            phrases,
            exclusions,
            meaning_decides,
            re.compile(f"{_BEGINS}(?:{english})" if english else _NEVER),
            re.compile(chinese or _NEVER),
        )

    def find(self, name: PhraseMatch, meaning: PhraseMatch, meaning_zh: PhraseMatch) -> tuple[str, MatchedIn] | None:
        """The first hit in a feature's name or meanings, as it is written there, and where; the name comes first."""
        in_name, in_meaning, in_meaning_zh = (self._uncovered(text) for text in (name, meaning, meaning_zh))
        if in_name and self.meaning_decides and not (in_meaning or in_meaning_zh):
            in_name = "" if any(e.find(text) for text in (meaning, meaning_zh) for e in self.exclusions) else in_name
        if in_name:
            return in_name, "name"
        if in_meaning:
            return in_meaning, "meaning"
        return (in_meaning_zh, "meaning_zh") if in_meaning_zh else None

    def _uncovered(self, text: PhraseMatch) -> str:
        """The first hit that no exclusion covers; empty where there is none."""
        if not self.english.search(text.words) and not self.chinese.search(text.text):
            return ""
        excluded = [span for exclusion in self.exclusions for span in exclusion.find(text)]
        for start, end in sorted(span for phrase in self.phrases for span in phrase.find(text)):
            if not any(low <= start and end <= high for low, high in excluded):
                return text.text[start:end]
        return ""


class Concept(BaseModel):
    """What to look for in names and meanings.

    Attributes
    ----------
    sensitivity : tuple of str
        The dictionary tags that stand for it.
    phrases, phrases_zh, exclusions, exclusions_zh : tuple of str
        English and Chinese; an exclusion cancels the phrases that it covers.
    meaning_decides : bool
        See :class:`Pattern`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensitivity: tuple[Key, ...] = ()
    phrases: tuple[Text, ...] = ()
    phrases_zh: tuple[Text, ...] = ()
    exclusions: tuple[Text, ...] = ()
    exclusions_zh: tuple[Text, ...] = ()
    meaning_decides: bool = False

    def pattern(self, lists: Lists) -> Pattern:
        """Compile; raises `ValueError` at a badly written phrase."""
        return Pattern.of(
            tuple(Phrase.of(phrase, lists) for phrase in (*self.phrases, *self.phrases_zh)),
            tuple(Phrase.of(phrase, lists) for phrase in (*self.exclusions, *self.exclusions_zh)),
            self.meaning_decides,
        )


class Vocabulary(BaseModel):
    """The concepts that rules can refer to instead of having phrases, and the lists that every phrase may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Text
    lists: Lists
    concepts: dict[Key, Concept]

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """Concept → its compiled phrases."""
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
    """A word as a regular expression; in English it must be one that :class:`PhraseMatch` can yield."""
    if not gap:
        return re.escape(word)
    if word == NUMBER:
        return r"\d+"
    stem = word.removesuffix("*")
    if stem != stem.lower() or not all(_WORD.fullmatch(piece) for piece in stem.split()):
        raise ValueError(f"found {word!r} in the phrase {source!r}, expected lower-case letters or digits only")
    return re.escape(stem) + (r"[^ ]*" if word.endswith("*") else "")
