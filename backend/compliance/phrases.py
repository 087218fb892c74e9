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
Accents are ignored (``état`` is ``etat``), and a code name is also read as the known words that are written together in it
(``custgender``, ``birthyear``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

_WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|\d+")
_LATIN = re.compile("[À-ÿ]")
_HAN = "\u3400-\u9fff"
_CHINESE = re.compile(f"[{_HAN}]")
_ELEMENT = re.compile(r"^(?P<mark>!?)(?P<open>\[?)(?P<words>[^\[\]!]+?)(?P<close>\]?)$")

_BEGINS = "(?<= )"  # where an English phrase may begin
_SHORTEST = 4  # letters of a word that may be read out of a longer one; beside an affix one fewer
_COMMON = 0.25  # share of a column's codes that have to speak of a concept, where it is fewer than two

NUMBER = "{number}"

Span = tuple[int, int]
MatchedIn = Literal["name", "meaning", "meaning_zh", "unit", "codes"]
Text = Annotated[str, StringConstraints(min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Lists = dict[str, tuple[Text, ...]]


@dataclass(frozen=True, slots=True)
class Affixes:
    """What a word of a code name may be taken apart by: words that are known, and pieces before and after them."""

    known: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def split(self, word: str) -> tuple[str, ...]:
        """The words that are written together in one; itself where it is known or cannot be taken apart."""
        if word in self.known or len(word) <= _SHORTEST:
            return (word,)
        endings = ("", *(after for after in self.after if word.endswith(after)))
        for before in ("", *(before for before in self.before if word.startswith(before))):
            for after in endings:
                inner = word[len(before) : len(word) - len(after)]
                if inner in self.known and len(inner) >= _SHORTEST - 1 and (before or after):
                    return tuple(piece for piece in (before, inner, after) if piece)
                pieces = self._pieces(inner)
                if pieces:
                    return tuple(piece for piece in (before, *pieces, after) if piece)
        return (word,)

    def _pieces(self, word: str) -> tuple[str, ...]:
        """`word` as two known words, perhaps with "of" between."""
        for at in range(_SHORTEST, len(word) - _SHORTEST + 1):
            first, second = word[:at], word[at:]
            if first in self.known and second in self.known:
                return first, second
            if first in self.known and second.startswith("of") and second[2:] in self.known:
                return first, "of", second[2:]
        return ()


_NO_AFFIXES = Affixes()


@dataclass(frozen=True, slots=True)
class PhraseMatch:
    """A tokenised text: itself with normalised characters, and its words in lower case with their positions."""

    text: str
    words: str  # " word word " with one space around each
    spans: dict[int, Span]  # where a word begins in `words` → its span in `text`
    has: frozenset[str]  # its words; its characters and pairs of characters where it has Chinese ones

    @classmethod
    def of(cls, text: str, affixes: Affixes = _NO_AFFIXES) -> PhraseMatch:
        """Tokenise a text; `affixes` are given for a code name."""
        plain = unicodedata.normalize("NFKC", text)
        words, spans = " ", {}
        for found in _WORD.finditer(plain):
            for word in affixes.split(_LATIN.sub(_without_accent, found.group()).lower()):
                spans[len(words)] = found.span()
                words += word + " "
        pairs = (plain[at : at + size] for size in (1, 2) for at in range(len(plain))) if _CHINESE.search(plain) else ()
        return cls(plain, words, spans, frozenset((*words.split(), *pairs)))


@dataclass(frozen=True, slots=True)
class FeatureTexts:
    """All that is disclosed of a feature in words."""

    name: PhraseMatch
    meaning: PhraseMatch
    meaning_zh: PhraseMatch
    unit: PhraseMatch
    codes: tuple[PhraseMatch, ...]
    words: str  # of all of them
    has: frozenset[str]

    @classmethod
    def of(
        cls,
        name: str,
        meaning: str = "",
        meaning_zh: str = "",
        unit: str = "",
        codes: Iterable[str] = (),
        affixes: Affixes = _NO_AFFIXES,
    ) -> FeatureTexts:
        """Tokenise each."""
        texts = PhraseMatch.of(name, affixes), PhraseMatch.of(meaning), PhraseMatch.of(meaning_zh), PhraseMatch.of(unit)
        of_codes = tuple(map(PhraseMatch.of, codes))
        every = (*texts, *of_codes)
        return cls(*texts, of_codes, "".join(text.words for text in every), frozenset().union(*(t.has for t in every)))


@dataclass(frozen=True)
class Phrase:
    """A phrase as a regular expression, compiled when it is first sought: most never are.

    Attributes
    ----------
    source, body : str
    chinese : bool
    first : frozenset of str
        What a text that matches has one of: words, of which one that ends in ``*`` is a prefix; in Chinese a pair of characters.
    """

    source: str
    body: str
    chinese: bool
    first: frozenset[str]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.body)

    @classmethod
    def of(cls, source: str, lists: Mapping[str, Sequence[str]]) -> Phrase:
        """Compile a phrase; raises `ValueError` where it breaks the syntax above."""
        elements = source.split()
        needed = next((element for element in elements if element[0] not in "[!^$"), None)
        if needed is None:
            raise ValueError(f"found the phrase {source!r}, expected at least one word that must be there")
        chinese = bool(_CHINESE.search(source))
        body = "".join(_element(source, element, lists, "" if chinese else " ") for element in elements)
        if not chinese:
            body = f"{_BEGINS}{body}"
        elif len(source) == 1:
            body = f"(?<![{_HAN}]){body}(?![{_HAN}])"
        first = (word[:2] if chinese else word.split()[0] for word in _choices(source, needed, lists))
        return cls(source, body, chinese, frozenset(first))

    def find(self, text: PhraseMatch) -> list[Span]:
        """Spans of this phrase in a text."""
        return [span for span, _ in self.find_words(text)]

    def find_words(self, text: PhraseMatch) -> Iterator[tuple[Span, str]]:
        """Spans of this phrase in a text, each with the words that follow it (English)."""
        if self.chinese:
            yield from ((found.span(), "") for found in self.pattern.finditer(text.text))
            return
        for found in self.pattern.finditer(text.words):
            first = text.spans[found.start()]
            last = text.spans[text.words.rindex(" ", 0, found.end() - 1) + 1]
            yield (first[0], last[1]), text.words[found.end() :]


class _Search:
    """Many phrases at once: most texts hold no word that any of them needs."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self._phrases: dict[str, list[Phrase]] = {}
        for phrase in phrases:
            for word in phrase.first:
                self._phrases.setdefault(word, []).append(phrase)
        self._words = frozenset(self._phrases)
        self._prefixes = {
            word: r" \d+ " if word == NUMBER else f" {re.escape(word[:-1])}"
            for word in self._words
            if word.endswith("*") or word == NUMBER
        }
        self._any_prefix = re.compile("|".join(self._prefixes.values())) if self._prefixes else None

    def may_be_in(self, words: str, has: frozenset[str]) -> bool:
        """Whether texts of these words can hold one of the phrases at all."""
        return not self._words.isdisjoint(has) or (
            self._any_prefix is not None and bool(self._any_prefix.search(words))
        )

    def candidates(self, text: PhraseMatch) -> list[Phrase]:
        """The phrases that may be in a text."""
        words = [*(self._words & text.has)]
        words += [word for word, seen in self._prefixes.items() if re.search(seen, text.words)]
        return [phrase for word in words for phrase in self._phrases[word]]


class Pattern:
    """What one rule looks for, compiled.

    A hit is a phrase that no exclusion covers. An exclusion covers nothing where a person follows it: "the company" explains the
    nationality in "nationality of the company", not in "nationality of the company's director".

    Parameters
    ----------
    phrases, exclusions : sequence of Phrase
    names : sequence of str
        Words that a code name may consist of, such as the initials of a Chinese word, beside `before` and `after`.
    codes : sequence of Phrase
        Sought in the texts of codes, beside `phrases`; two codes have to hold one.
    units : sequence of Phrase
    persons : frozenset of str
        Words for people.
    homonyms, fillers : frozenset of str
        A hit in the name that consists of words with several senses counts only where the meanings say the same, or nothing
        (nothing but `fillers` and words of the name).
    """

    def __init__(
        self,
        phrases: Sequence[Phrase],
        exclusions: Sequence[Phrase] = (),
        *,
        names: Sequence[str] = (),
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        codes: Sequence[Phrase] = (),
        units: Sequence[Phrase] = (),
        persons: frozenset[str] = frozenset(),
        homonyms: frozenset[str] = frozenset(),
        fillers: frozenset[str] = frozenset(),
    ) -> None:
        self.phrases = (*phrases, *codes, *units)
        self._phrases, self._exclusions = _Search(phrases), _Search(exclusions)
        self._codes, self._units, self._every = _Search(codes), _Search(units), _Search(self.phrases)
        self._names, self._before, self._after = frozenset(names), frozenset(before), frozenset(after)
        self._persons, self._homonyms, self._fillers = persons, homonyms, fillers

    def find(self, texts: FeatureTexts) -> tuple[str, MatchedIn] | None:
        """The first hit in what is disclosed of a feature, as it is written there, and where; the name comes first."""
        if not self._every.may_be_in(texts.words, texts.has) and self._names.isdisjoint(texts.name.has):
            return None
        in_meaning = self._hit(texts.meaning)
        in_meaning_zh = self._hit(texts.meaning_zh)
        in_codes = self._in_codes(texts.codes)
        in_name = self._in_name(texts, bool(in_meaning or in_meaning_zh or in_codes))
        if in_name:
            return in_name, "name"
        if in_meaning:
            return in_meaning, "meaning"
        if in_meaning_zh:
            return in_meaning_zh, "meaning_zh"
        in_unit = next(self._uncovered(texts.unit, self._units), "")
        if in_unit and not any(self._excluded(text) for text in (texts.name, texts.meaning, texts.meaning_zh)):
            return in_unit, "unit"
        return (in_codes, "codes") if in_codes else None

    def words(self) -> Iterator[str]:
        """The English words that its phrases begin with, without prefixes."""
        yield from self._names
        for phrase in self.phrases:
            yield from (word for word in phrase.first if word.isascii() and word.isalpha())

    def _in_name(self, texts: FeatureTexts, confirmed: bool) -> str:
        hit = self._hit(texts.name)
        if hit and (confirmed or not (self._ambiguous(hit) and self._explained(texts))):
            return hit
        return self._whole_name(texts.name) if confirmed or not self._explained(texts) else ""

    def _ambiguous(self, hit: str) -> bool:
        """Whether a hit consists of words with several senses, but for affixes."""
        words = PhraseMatch.of(hit).has
        return bool(words & self._homonyms) and words <= self._homonyms | self._before | self._after

    def _whole_name(self, name: PhraseMatch) -> str:
        """One of the names, where nothing but affixes and digits stands beside it."""
        if self._names.isdisjoint(name.has):
            return ""
        words = name.words.split()
        for at, word in enumerate(words):
            rest = (later in self._after or later.isdecimal() for later in words[at + 1 :])
            if word in self._names and all(first in self._before for first in words[:at]) and all(rest):
                start, end = list(name.spans.values())[at]
                return name.text[start:end]
        return ""

    def _explained(self, texts: FeatureTexts) -> bool:
        """Whether the meanings say something that the name does not."""
        left = texts.meaning.has - self._fillers - texts.name.has
        return bool(left) or bool(re.search(f"[{_HAN}]{{2}}", texts.meaning.text + texts.meaning_zh.text))

    def _in_codes(self, codes: Sequence[PhraseMatch]) -> str:
        """The first hit in texts of codes, where it stands in two of them or in a good part of them."""
        strong = [hit for text in codes if (hit := self._hit(text))]
        weak = [hit for text in codes if (hit := next(self._uncovered(text, self._codes), ""))]
        if strong and (len(strong) >= 2 or len(strong) >= _COMMON * len(codes)):
            return strong[0]
        return weak[0] if len(weak) + len(strong) >= 2 and weak else ""

    def _hit(self, text: PhraseMatch) -> str:
        return next(self._uncovered(text, self._phrases), "")

    def _excluded(self, text: PhraseMatch) -> list[Span]:
        """What exclusions cover."""
        found = (found for exclusion in self._exclusions.candidates(text) for found in exclusion.find_words(text))
        return [span for span, after in found if not self._person_follows(after)]

    def _person_follows(self, after: str) -> bool:
        words = after.split(maxsplit=3)[:3]
        return any(word in self._persons for word in (words[1:] if words[:1] == ["s"] else words[:1]))

    def _uncovered(self, text: PhraseMatch, search: _Search) -> Iterator[str]:
        """Hits that no exclusion covers, in the order of the text."""
        candidates = search.candidates(text)
        if not candidates:
            return
        excluded = self._excluded(text)
        for start, end in sorted({span for phrase in candidates for span in phrase.find(text)}):
            if not any(low <= start and end <= high for low, high in excluded):
                yield text.text[start:end]


class Concept(BaseModel):
    """What to look for in names, meanings, units and codes.

    Attributes
    ----------
    sensitivity : tuple of str
        The dictionary tags that stand for it.
    phrases, phrases_zh, exclusions, exclusions_zh : tuple of str
        English (and other languages in Latin letters) and Chinese; an exclusion cancels the phrases that it covers.
    names : tuple of str
        Whole code names, but for what may stand before and after (`lists`: ``before``, ``after``).
    codes, units : tuple of str
        Phrases for the texts of codes and for units.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensitivity: tuple[Key, ...] = ()
    phrases: tuple[Text, ...] = ()
    phrases_zh: tuple[Text, ...] = ()
    exclusions: tuple[Text, ...] = ()
    exclusions_zh: tuple[Text, ...] = ()
    names: tuple[Text, ...] = ()
    codes: tuple[Text, ...] = ()
    units: tuple[Text, ...] = ()

    def pattern(self, lists: Lists, homonyms: Sequence[str] = ()) -> Pattern:
        """Compile; raises `ValueError` at a badly written phrase."""

        def compiled(*sources: str) -> tuple[Phrase, ...]:
            return tuple(Phrase.of(source, lists) for source in sources)

        return Pattern(
            compiled(*self.phrases, *self.phrases_zh),
            compiled(*self.exclusions, *self.exclusions_zh),
            names=self.names,
            before=lists.get("before", ()),
            after=lists.get("after", ()),
            codes=compiled(*self.codes),
            units=compiled(*self.units),
            persons=frozenset(lists.get("person", ())),
            homonyms=frozenset(homonyms),
            fillers=frozenset(lists.get("filler", ())),
        )


class Vocabulary(BaseModel):
    """The concepts that rules can refer to instead of having phrases, and the lists that every phrase may use.

    Attributes
    ----------
    version : str
    lists : dict of str to tuple of str
    homonyms : tuple of str
        Words with several senses (:class:`Pattern`).
    concepts : dict of str to Concept
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Text
    lists: Lists
    homonyms: tuple[Text, ...] = ()
    concepts: dict[Key, Concept]

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """Concept → its compiled phrases."""
        return {key: concept.pattern(self.lists, self.homonyms) for key, concept in self.concepts.items()}

    @cached_property
    def affixes(self) -> Affixes:
        """How code names are taken apart."""
        known = frozenset(word for pattern in self.patterns.values() for word in pattern.words())
        before, after = (tuple(x for x in self.lists.get(name, ()) if len(x) > 1) for name in ("before", "after"))
        return Affixes(known, before, after)


def _without_accent(letter: re.Match[str]) -> str:
    """One letter for one, so that positions stay."""
    return unicodedata.normalize("NFKD", letter.group())[0]


def _element(source: str, element: str, lists: Mapping[str, Sequence[str]], gap: str) -> str:
    """One element of a phrase as a regular expression; each word is followed by `gap`."""
    if element == "^":
        return r"(?<=\A )" if gap else r"\A"
    if element == "$":
        return r"\Z"
    parts = _ELEMENT.match(element)
    if parts is None or (parts["open"] == "[") != (parts["close"] == "]"):
        raise ValueError(f"found {element!r} in the phrase {source!r}, expected a word, a|b, [a|b], {{list}} or !a|b")
    words = _choices(source, parts["words"], lists)
    choice = f"(?:{'|'.join(_word(source, word, gap) for word in words)})"
    if parts["mark"]:
        return f"(?!{choice}{gap})"
    return f"(?:{choice}{gap})?" if parts["open"] else f"{choice}{gap}"


def _choices(source: str, element: str, lists: Mapping[str, Sequence[str]]) -> list[str]:
    """The words that an element stands for, lists written out."""
    words: list[str] = []
    for word in element.split("|"):
        if word != NUMBER and word.startswith("{") and word.endswith("}"):
            if word[1:-1] not in lists:
                raise ValueError(f"found {word} in the phrase {source!r}, expected one of the lists {sorted(lists)}")
            words += lists[word[1:-1]]
        else:
            words.append(word)
    if not all(words):
        raise ValueError(f"found an empty choice in the phrase {source!r}, expected a word on both sides of '|'")
    return words


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
