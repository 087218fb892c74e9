"""Finds phrases in feature names and meanings, word by word in English and by characters in Chinese.

A name is tokenised first: ``applicantGender``, ``gender_code`` and ``GENDER2`` all hold the word *gender*; ``page`` and
``Sussex`` hold neither *age* nor *sex*.

Syntax of a phrase, words between spaces:

=============  =========================================================
``sex``        this word
``a|b``        one of these
``[a|b]``      one of these, or nothing
``widow*``     every word with this prefix
``*ectomy``    every word with this suffix
``{number}``   a number in digits
``{thing}``    one of a named list's entries; also inside ``|`` and ``[]``
``!a|b``       not followed by one of these
``^``, ``$``   start, end of the text
=============  =========================================================

A phrase with Chinese characters matches anywhere but across words (工会 in 参加工会, not in 化工会展: :class:`Segmenter`); a single
character only if no other is next to it (男 in 男/女, not in 男装).
Accents are ignored (``état`` is ``etat``), traditional characters are read as simplified ones (性別 is 性别), and a code name is also
read as the known words that are written together in it (``custgender``, ``birthyear``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import groupby
from typing import Literal

from backend.data.strict_model import FieldError

_WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]{2,}s?(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ](?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|\d+")
_LATIN = re.compile("[À-ÿ]")
HAN = "\u3400-\u9fff"
CHINESE = re.compile(f"[{HAN}]")
# Traditional characters, each with the simplified one that it is read as, one for one.
_TRADITIONAL = files("backend.compliance") / "lists" / "traditional.txt"
_SIMPLIFIED = str.maketrans({pair[0]: pair[1] for pair in _TRADITIONAL.read_text(encoding="utf-8").split()})
_ELEMENT = re.compile(r"^(?P<mark>!?)(?P<open>\[?)(?P<words>[^\[\]!]+?)(?P<close>\]?)$")

# Of whom a value is there, at the end of a meaning: " - Adults 20+", "(women aged 15 to 49)". It does not tell a person's attribute.
_UNIVERSE = re.compile(
    r"(?:\s[-–—]\s*|\()(?:all\s+)?(?:adults?|children|youths?|women|men|males|females|persons?|people|individuals|respondents|members)\b"
    r"(?:[\s\d+/,<>=≥≤-]|aged?|years?|old|and|over|older|under|or|to|of|more|less|than|above|below|only|children|youths?|adults?)*\)?\s*$",
    re.IGNORECASE,
)

_LONG = 15  # words of a meaning above which what follows its first sentence explains and does not define
_SENTENCE = re.compile(r"[.:;]\s+(?!this\b|it\b)", re.IGNORECASE)  # its end; "Country Code. This field stores …" is one

# Codes written into a Chinese meaning: "借款用途 1、购物 2、装修 3、结婚". So many in a row are codes.
_CHINESE_CODE = re.compile(
    rf"(?:(?<=^)|(?<=[\s,，;；。:：、（(]))\d{{1,3}}(?:\s*[-—－:：.、=＝]\s*|\s*(?![个月天年岁日期次笔元万周级]))(?=[{HAN}])"
)
_CODES = 3

# Codes written into an English meaning: "region of residence, a factor with levels north, south", "one of north, south, west".
_LEVELS = re.compile(
    r"^(?:(?=.*\b(?:factor|with)\b)(?P<said>.*?)(?:\bwith\s)?(?:\(alphabetical\)\s)?\blevels[\s:(]+(?!corresponding|encoding|for\b|of\b)"
    r"|one of (?=[^.,]+,[^.,]+,))(?P<codes>.+?)[\s).]*$",
    re.IGNORECASE,
)

_SHORTEST = 4  # letters of a word that may be read out of a longer one; beside an affix one fewer
_SHORTEST_CUT = 5  # letters of a word that may be a longer one cut off

NUMBER = "{number}"

Span = tuple[int, int]
MAX_ELEMENTS = 40  # of a phrase; the longest of ours has a dozen


@dataclass(frozen=True, slots=True)
class Affixes:
    """How a code name is read: words that are known, pieces before and after them, and what is short for what.

    Attributes
    ----------
    separable : frozenset of str
        Words that may be read out of a longer one.
    inseparable : frozenset of str
        Words that are not taken apart: *pressure* holds neither *pres* nor *sure*.
    """

    separable: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)
    plain: tuple[str, ...] = ()
    inseparable: frozenset[str] = frozenset()

    def in_full(self, word: str) -> str:
        """Return what a word is short for: in the table, or cut off a word with one sense (``pregn``); itself otherwise."""
        if word in self.short:
            return self.short[word]
        if word in self.separable or len(word) < _SHORTEST_CUT:
            return word
        return next((plain for plain in self.plain if plain.startswith(word)), word)

    def split(self, word: str) -> tuple[str, ...]:
        """Return the words that are written together in one; itself where it is known or cannot be taken apart."""
        if word in self.separable or word in self.inseparable or len(word) <= _SHORTEST:
            return (word,)
        endings = ("", *(suffix for suffix in self.suffixes if word.endswith(suffix)))
        for prefix in ("", *(prefix for prefix in self.prefixes if word.startswith(prefix))):
            for suffix in endings:
                inner = word[len(prefix) : len(word) - len(suffix)]
                if inner in self.separable and len(inner) >= _SHORTEST - 1 and (prefix or suffix):
                    return tuple(piece for piece in (prefix, inner, suffix) if piece)
                pieces = self._pieces(inner)
                if pieces:
                    return tuple(piece for piece in (prefix, *pieces, suffix) if piece)
        return (word,)

    def _pieces(self, word: str) -> tuple[str, ...]:
        """`word` as two known words, perhaps with "of" between."""
        for at in range(_SHORTEST, len(word) - _SHORTEST + 1):
            first = word[:at]
            second = word[at:]
            if first in self.separable and second in self.separable:
                return first, second
            if first in self.separable and second.startswith("of") and second[2:] in self.separable:
                return first, "of", second[2:]
        return ()


_NO_AFFIXES = Affixes()


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A tokenised text: itself with normalised characters, and its words in lower case with their positions."""

    text: str
    words: str  # " word word " with one space around each
    spans: dict[int, Span]  # where a word begins in `words` → its span in `text`
    has: frozenset[str]  # its words
    # all that the first word of a phrase may be: words, prefixes (``preg*``), suffixes (``*itis``), Chinese pairs, a number
    keys: frozenset[str]

    @classmethod
    def of(cls, text: str, affixes: Affixes = _NO_AFFIXES, in_full: bool = False) -> PhraseMatch:
        """Tokenise a text; `affixes` are given for a code name, whose abbreviations can be written out."""
        plain = unicodedata.normalize("NFKC", text).translate(_SIMPLIFIED)
        words = " "
        spans = {}
        for token in _WORD.finditer(plain):
            for word in affixes.split(_LATIN.sub(_without_accent, token.group()).lower()):
                if in_full:
                    word = affixes.in_full(word)  # noqa: PLW2901
                spans[len(words)] = token.span()
                words += word + " "
        pairs = (plain[at : at + size] for size in (1, 2) for at in range(len(plain))) if CHINESE.search(plain) else ()
        word_set = frozenset(words.split())
        return cls(plain, words, spans, word_set, frozenset(pairs).union(*map(_keys, word_set)))


@dataclass(frozen=True, slots=True)
class FeatureTexts:
    """All that is disclosed of a feature in words."""

    name: PhraseMatch
    name_in_full: PhraseMatch  # with abbreviations written out
    meaning: PhraseMatch
    chinese_meaning: PhraseMatch
    unit: PhraseMatch
    codes: tuple[PhraseMatch, ...]
    keys: frozenset[str]  # of all of them

    @classmethod
    def of(
        cls,
        name: str,
        meaning: str = "",
        chinese_meaning: str = "",
        unit: str = "",
        codes: Iterable[str] = (),
        affixes: Affixes = _NO_AFFIXES,
    ) -> FeatureTexts:
        """Tokenise each."""
        names = PhraseMatch.of(name, affixes), PhraseMatch.of(name, affixes, in_full=True)
        meaning, levels = _levels(meaning)
        meaning = _lead(_UNIVERSE.sub("", meaning) if re.search(r"\d", meaning) else meaning)
        chinese_meaning, more = _apart(chinese_meaning)
        texts = *names, PhraseMatch.of(meaning), PhraseMatch.of(chinese_meaning), PhraseMatch.of(unit)
        of_codes = tuple(map(PhraseMatch.of, (*codes, *levels, *more)))
        every = (*texts, *of_codes)
        return cls(*texts, of_codes, frozenset().union(*(text.keys for text in every)))


@dataclass(frozen=True, slots=True)
class _Step:
    """An element of a phrase.

    Attributes
    ----------
    kind : str
        ``word``; ``optional``, a word or nothing; ``not``, no such word here; ``start``, ``start_of_words`` and ``end`` of the text;
        ``alone_before`` and ``alone_after``, no Chinese letter on that side.
    choices : tuple of str
        Regular expressions, in the order in which they are tried. All that one of them matches at a place ends at the same place.
    """

    kind: Literal["word", "optional", "not", "start", "start_of_words", "end", "alone_before", "alone_after"]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phrase:
    """A phrase as steps through a text.

    Attributes
    ----------
    needs : tuple of frozenset of str
        What a text that matches has one of, for each element that must be there: words, of which one that ends in ``*`` is a
        prefix and one that begins with it a suffix; in Chinese a pair of characters.
    """

    source: str
    steps: tuple[_Step, ...]
    chinese: bool
    needs: tuple[frozenset[str], ...]

    @property
    def first(self) -> frozenset[str]:
        """What a text that matches has one of at its start."""
        return self.needs[0]

    def may_be_in(self, keys: frozenset[str]) -> bool:
        """Return whether a text with these keys can hold this phrase at all."""
        return not any(need.isdisjoint(keys) for need in self.needs)

    @cached_property
    def compiled(self) -> tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]:
        """Kind and expressions of each step, compiled when the phrase is first sought: most never are."""
        return tuple((step.kind, tuple(map(re.compile, step.choices))) for step in self.steps)

    @classmethod
    def of(cls, source: str, lists: Mapping[str, Sequence[str]]) -> Phrase:
        """Compile a phrase; raises `ValueError` if it breaks the syntax above."""
        elements = source.split()
        required = [element for element in elements if element[0] not in "[!^$"]
        if not required:
            raise FieldError("phrase_without_word", phrase=source[:60])
        if len(elements) > MAX_ELEMENTS:
            raise FieldError("phrase_too_long", phrase=source[:60], found=len(elements), limit=MAX_ELEMENTS)
        chinese = bool(CHINESE.search(source))
        steps = [_step(source, element, lists, "" if chinese else " ") for element in elements]
        if chinese and len(source) == 1:
            steps = [_Step("alone_before"), *steps, _Step("alone_after")]
        needs = []
        for element in required:
            words = _choices(source, element, lists)
            needs.append(frozenset(word[:2] if chinese else word.split()[0] for word in words))
        return cls(source, tuple(steps), chinese, tuple(needs))

    def find(self, text: PhraseMatch) -> list[Span]:
        """Spans of this phrase in a text."""
        return [span for span, _, _ in self.find_words(text)]

    def find_words(self, text: PhraseMatch) -> Iterator[tuple[Span, str, str]]:
        """Spans of this phrase in a text, each with what is before and after it (words in English)."""
        if self.chinese:
            for start, end in self._matches(text.text, range(len(text.text))):
                yield (start, end), text.text[:start], text.text[end:]
            return
        for start, end in self._matches(text.words, text.spans):
            first = text.spans[start]
            last = text.spans[text.words.rindex(" ", 0, end - 1) + 1]
            yield (first[0], last[1]), text.words[:start], text.words[end:]

    def _matches(self, text: str, starts: Iterable[int]) -> Iterator[Span]:
        """Yield where the phrase begins and ends; none overlaps the one before."""
        failed: set[tuple[int, int]] = set()
        last_end = 0
        for start in starts:
            if start < last_end:
                continue
            end = self._end(text, start, 0, failed)
            if end is not None:
                yield start, end
                last_end = end

    def _end(self, text: str, at: int, number: int, failed: set[tuple[int, int]]) -> int | None:
        """Return where the steps from this one on end in the text, or None if they do not match at this place.

        What failed once is not tried again, so that a search takes no longer than steps times places.
        """
        if number == len(self.compiled):
            return at
        if (number, at) in failed:
            return None
        kind, choices = self.compiled[number]
        if kind in ("word", "optional"):
            for choice in choices:
                match = choice.match(text, at)
                if match is None:
                    end = None
                else:
                    end = self._end(text, match.end(), number + 1, failed)
                if end is not None:
                    return end
        if kind == "optional" or (kind != "word" and _holds(kind, choices, text, at)):
            end = self._end(text, at, number + 1, failed)
            if end is not None:
                return end
        failed.add((number, at))
        return None


def _holds(kind: str, choices: Sequence[re.Pattern[str]], text: str, at: int) -> bool:
    """Return whether what a step asks about a place is so; it takes no letters."""
    if kind == "not":
        return not any(choice.match(text, at) for choice in choices)
    if kind == "start":
        return at == 0
    if kind == "start_of_words":
        return at == len(" ")
    if kind == "end":
        return at == len(text)
    if kind == "alone_before":
        return at == 0 or not CHINESE.match(text[at - 1])
    return at == len(text) or not CHINESE.match(text[at])


class Segmenter:
    """Tells whether a Chinese phrase is a word of a text: no division into as few words cuts it.

    Parameters
    ----------
    words, phrases : iterable of str
        What counts as one word; every other character is one by itself. A phrase does not cut another where both divide as well.
    free : iterable of str
        Characters that are often words by themselves: among divisions into as few words, the one that leaves fewer others alone
        is taken (发生|日|余额, not 发|生日|余额).
    """

    def __init__(self, words: Iterable[str] = (), phrases: Iterable[str] = (), free: Iterable[str] = ()) -> None:
        self._phrases = frozenset(phrases)
        self._others = frozenset(words) - self._phrases
        self._words = self._others | self._phrases
        self._free = frozenset(free)
        self._fewest = lru_cache(4096)(self._count)
        self._longest = max(map(len, self._words), default=1)

    def divides(self, text: str, span: Span) -> bool:
        """Return whether a division into the fewest words has `span` as a piece, or in a longer phrase (残疾证 in 残疾证号)."""
        return self._is_piece(text, span) or any(self._is_piece(text, longer) for longer in self._around(text, span))

    def _around(self, text: str, span: Span) -> Iterator[Span]:
        """Yield the places of longer phrases that hold `span`."""
        start, end = span
        for first in range(max(0, end - self._longest), start + 1):
            for last in range(end, min(len(text), first + self._longest) + 1):
                if last - first > end - start and text[first:last] in self._phrases:
                    yield first, last

    def _is_piece(self, text: str, span: Span) -> bool:
        start, end = span
        low = start
        high = end
        while low and CHINESE.match(text[low - 1]):
            low -= 1
        while high < len(text) and CHINESE.match(text[high]):
            high += 1
        words_before = self._fewest(text[low:start])
        words_after = self._fewest(text[end:high])
        cost_as_piece = words_before[0] + 1 + words_after[0], words_before[1] + words_after[1]
        if cost_as_piece > self._fewest(text[low:high]):
            return False
        return end - start == 1 or not any(cost <= cost_as_piece for cost in self._across(text, (low, high), span))

    def _across(self, text: str, within: Span, span: Span) -> Iterator[tuple[int, int]]:
        """Yield what divisions cost that have a word across the start or the end of `span`."""
        low, high = within
        start, end = span
        for first in range(max(low, start - self._longest + 1), end):
            for last in range(max(first + 2, start + 1), min(high, first + self._longest) + 1):
                crosses = (first < start < last < end) or (start < first < end < last)
                if crosses and text[first:last] in self._others:
                    words_before = self._fewest(text[low:first])
                    words_after = self._fewest(text[last:high])
                    yield words_before[0] + 1 + words_after[0], words_before[1] + words_after[1]

    def _count(self, text: str) -> tuple[int, int]:
        """Return how many words the text has at the fewest, and how many of them are single characters that seldom stand alone."""
        fewest = [(0, 0)]
        for end in range(1, len(text) + 1):
            words, alone = fewest[end - 1]
            single = (words + 1, alone + (text[end - 1] not in self._free))
            starts = range(max(0, end - self._longest), end - 1)
            by_words = ((fewest[at][0] + 1, fewest[at][1]) for at in starts if text[at:end] in self._words)
            fewest.append(min((single, *by_words)))
        return fewest[-1]


def _lead(meaning: str) -> str:
    """The first sentence of a long meaning, if it has three words."""
    if len(meaning.split()) <= _LONG:
        return meaning
    ends = (match.start() for match in _SENTENCE.finditer(meaning))
    return next((meaning[:end] for end in ends if len(meaning[:end].split()) > 2), meaning)


def _levels(meaning: str) -> tuple[str, list[str]]:
    """Return an English meaning and the codes that are written into it as levels."""
    levels = _LEVELS.match(meaning)
    if levels is None:
        return meaning, []
    mark = next((mark for mark in (";", ",") if mark in levels["codes"]), r"\band\b|\bor\b|\s")
    codes = [code.strip() for code in re.split(mark, levels["codes"]) if code.strip()]
    if len(codes) > 1:
        return (levels["said"] or "", codes)
    return (meaning, [])


def _apart(chinese_meaning: str) -> tuple[str, list[str]]:
    """Return a Chinese meaning and the codes that are written into it."""
    codes_found = list(_CHINESE_CODE.finditer(chinese_meaning))
    if len(codes_found) < _CODES or not CHINESE.search(chinese_meaning[: codes_found[0].start()]):
        return chinese_meaning, []
    ends = (*(each.start() for each in codes_found[1:]), len(chinese_meaning))
    codes = [
        chinese_meaning[each.end() : end].strip(" ,，;；、)）") for each, end in zip(codes_found, ends, strict=True)
    ]
    return chinese_meaning[: codes_found[0].start()].rstrip(" ,，:：（("), codes


def _without_accent(letter: re.Match[str]) -> str:
    """Return one letter for one, so that positions stay."""
    return unicodedata.normalize("NFKD", letter.group())[0]


def _step(source: str, element: str, lists: Mapping[str, Sequence[str]], gap: str) -> _Step:
    """Return one element of a phrase; each word is followed by `gap`."""
    if element == "^":
        return _Step("start_of_words" if gap else "start")
    if element == "$":
        return _Step("end")
    parts = _ELEMENT.match(element)
    if parts is None or (parts["open"] == "[") != (parts["close"] == "]"):
        raise FieldError("phrase_element_unreadable", element=element[:60], phrase=source[:60])
    words = _choices(source, parts["words"], lists)
    patterns = [_word(word, gap) for word in words]
    if not all(patterns):
        word = words[patterns.index("")]
        raise FieldError("phrase_word_unreadable", word=word[:60], phrase=source[:60])
    # neighbours that end at the same place are one expression: in English as many words, in Chinese as many letters
    groups = groupby(zip(words, patterns, strict=True), key=lambda pair: len(pair[0].split()) if gap else len(pair[0]))
    choices = tuple(f"(?:{'|'.join(pattern for _, pattern in group)}){gap}" for _, group in groups)
    if parts["mark"]:
        return _Step("not", choices)
    return _Step("optional" if parts["open"] else "word", choices)


def _choices(source: str, element: str, lists: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the words that an element means, lists written out."""
    words: list[str] = []
    for word in element.split("|"):
        if word != NUMBER and word.startswith("{") and word.endswith("}"):
            if word[1:-1] not in lists:
                raise FieldError("phrase_unknown_list", list=word[:60], phrase=source[:60], known=tuple(sorted(lists)))
            words += lists[word[1:-1]]
        else:
            words.append(word)
    if not all(words):
        raise FieldError("phrase_empty_choice", phrase=source[:60])
    return words


@lru_cache(1 << 14)
def _keys(word: str) -> frozenset[str]:
    """Return all that an element of a phrase may be that a word is: itself, its prefixes and suffixes, a number."""
    prefixes = (f"{word[:end]}*" for end in range(1, len(word) + 1))
    suffixes = (f"*{word[start:]}" for start in range(1, len(word) - 1))
    return frozenset((word, *prefixes, *suffixes, *((NUMBER,) if word.isdecimal() else ())))


@lru_cache(1 << 14)
def _word(word: str, gap: str) -> str:
    """Return a word as a regular expression; empty if it is not a word that :class:`PhraseMatch` can yield, in English."""
    if not gap:
        return re.escape(word)
    if word == NUMBER:
        return r"\d+"
    stem = word.removesuffix("*").removeprefix("*")
    if stem != stem.lower() or not all(_WORD.fullmatch(piece) for piece in stem.split()):
        return ""
    prefix = r"[^ ]+" if word.startswith("*") else ""
    suffix = r"[^ ]*" if word.endswith("*") else ""
    return prefix + re.escape(stem) + suffix
