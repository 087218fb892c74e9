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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|\d+")
_HAN = "\u3400-\u9fff"
_ELEMENT = re.compile(r"^(?P<mark>!?)(?P<open>\[?)(?P<words>[^\[\]!]+?)(?P<close>\]?)$")

NUMBER = "{number}"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text taken apart: itself with unified characters, and its words in small letters with their places."""

    text: str
    words: str  # " word word " with one space around each
    spans: dict[int, Span]  # where a word begins in `words` → its place in `text`

    @classmethod
    def of(cls, text: str) -> Reading:
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
            body = f"(?<= ){body}"
        elif len(source) == 1:
            body = f"(?<![{_HAN}]){body}(?![{_HAN}])"
        return cls(source, re.compile(body), chinese)

    def find(self, reading: Reading) -> list[Span]:
        """The places of this phrase in the reading's text."""
        if self.chinese:
            return [found.span() for found in self.pattern.finditer(reading.text)]
        spans = []
        for found in self.pattern.finditer(reading.words):
            first = reading.spans[found.start()]
            last = reading.spans[reading.words.rindex(" ", 0, found.end() - 1) + 1]
            spans.append((first[0], last[1]))
        return spans


def find_uncovered(reading: Reading, phrases: Iterable[Phrase], exclusions: Iterable[Phrase]) -> tuple[str, bool]:
    """The first place where a phrase stands and no exclusion covers it.

    Returns
    -------
    str
        The text as it is written there; empty where there is none.
    bool
        Whether any exclusion was found in the text.
    """
    covers = [span for exclusion in exclusions for span in exclusion.find(reading)]
    found = sorted(span for phrase in phrases for span in phrase.find(reading))
    for start, end in found:
        if not any(cover[0] <= start and end <= cover[1] for cover in covers):
            return reading.text[start:end], bool(covers)
    return "", bool(covers)


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
    """A word as a regular expression; in English it must be one that `Reading` can yield."""
    if not gap:
        return re.escape(word)
    if word == NUMBER:
        return r"\d+"
    stem = word.removesuffix("*")
    if stem != stem.lower() or not all(_WORD.fullmatch(piece) for piece in stem.split()):
        raise ValueError(f"found {word!r} in the phrase {source!r}, expected small letters or digits alone")
    return re.escape(stem) + (r"[^ ]*" if word.endswith("*") else "")
