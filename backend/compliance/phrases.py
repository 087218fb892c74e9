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

A phrase with Chinese characters matches anywhere but across words (工会 in 参加工会, not in 化工会展: :class:`Segmenter`); a single
character only where no other stands beside it (男 in 男/女, not in 男装).
Accents are ignored (``état`` is ``etat``), and a code name is also read as the known words that are written together in it
(``custgender``, ``birthyear``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

_WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|\d+")
_LATIN = re.compile("[À-ÿ]")
_HAN = "\u3400-\u9fff"
_CHINESE = re.compile(f"[{_HAN}]")
_ELEMENT = re.compile(r"^(?P<mark>!?)(?P<open>\[?)(?P<words>[^\[\]!]+?)(?P<close>\]?)$")

_NOTHING = re.compile(r"(?!)")
_BEGINS = "(?<= )"  # where an English phrase may begin
_SHORTEST = 4  # letters of a word that may be read out of a longer one; beside an affix one fewer
_SHORTEST_CUT = 5  # letters of a word that may be a longer one cut off
_INITIALS = 2  # letters that are as likely to be initials of something else
_OF = frozenset({"of", "de", "du", "des", "do", "da", "del", "der", "della"})
_COMMON = 0.25  # share of a column's codes that have to speak of a concept, where it is fewer than two

NUMBER = "{number}"

Span = tuple[int, int]
MatchedIn = Literal["name", "meaning", "meaning_zh", "unit", "codes"]
Text = Annotated[str, StringConstraints(min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Lists = dict[str, tuple[Text, ...]]


@dataclass(frozen=True, slots=True)
class Affixes:
    """How a code name is read: words that are known, pieces before and after them, and what is short for what."""

    known: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)
    plain: tuple[str, ...] = ()

    def in_full(self, word: str) -> str:
        """What a word is short for: in the table, or cut off a word with one sense (``pregn``); itself otherwise."""
        if word in self.short:
            return self.short[word]
        if word in self.known or len(word) < _SHORTEST_CUT:
            return word
        return next((plain for plain in self.plain if plain.startswith(word)), word)

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
    has: frozenset[str]  # its words
    # all that the first word of a phrase may be: words, prefixes (``preg*``), Chinese pairs, a number
    keys: frozenset[str]

    @classmethod
    def of(cls, text: str, affixes: Affixes = _NO_AFFIXES, in_full: bool = False) -> PhraseMatch:
        """Tokenise a text; `affixes` are given for a code name, whose abbreviations can be written out."""
        plain = unicodedata.normalize("NFKC", text)
        words, spans = " ", {}
        for found in _WORD.finditer(plain):
            for word in affixes.split(_LATIN.sub(_without_accent, found.group()).lower()):
                if in_full:
                    word = affixes.in_full(word)  # noqa: PLW2901
                spans[len(words)] = found.span()
                words += word + " "
        pairs = (plain[at : at + size] for size in (1, 2) for at in range(len(plain))) if _CHINESE.search(plain) else ()
        own = frozenset(words.split())
        prefixes = (f"{word[:end]}*" for word in own for end in range(1, len(word) + 1))
        number = (NUMBER,) if any(word.isdecimal() for word in own) else ()
        return cls(plain, words, spans, own, frozenset((*own, *pairs, *prefixes, *number)))


@dataclass(frozen=True, slots=True)
class FeatureTexts:
    """All that is disclosed of a feature in words."""

    name: PhraseMatch
    name_in_full: PhraseMatch  # with abbreviations written out
    meaning: PhraseMatch
    meaning_zh: PhraseMatch
    unit: PhraseMatch
    codes: tuple[PhraseMatch, ...]
    keys: frozenset[str]  # of all of them

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
        names = PhraseMatch.of(name, affixes), PhraseMatch.of(name, affixes, in_full=True)
        texts = *names, PhraseMatch.of(meaning), PhraseMatch.of(meaning_zh), PhraseMatch.of(unit)
        of_codes = tuple(map(PhraseMatch.of, codes))
        every = (*texts, *of_codes)
        return cls(*texts, of_codes, frozenset().union(*(text.keys for text in every)))


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
        return [span for span, _, _ in self.find_words(text)]

    def find_words(self, text: PhraseMatch) -> Iterator[tuple[Span, str, str]]:
        """Spans of this phrase in a text, each with what stands before and after it (words in English)."""
        if self.chinese:
            for found in self.pattern.finditer(text.text):
                yield found.span(), text.text[: found.start()], text.text[found.end() :]
            return
        for found in self.pattern.finditer(text.words):
            first = text.spans[found.start()]
            last = text.spans[text.words.rindex(" ", 0, found.end() - 1) + 1]
            yield (first[0], last[1]), text.words[: found.start()], text.words[found.end() :]


class Segmenter:
    """Tells whether a Chinese phrase stands in a text as a word: no division into as few words cuts it.

    Parameters
    ----------
    words, phrases : iterable of str
        What counts as one word; every other character is one by itself. A phrase does not cut another where both divide as well.
    free : iterable of str
        Characters that are often words by themselves: among divisions into as few words, the one that leaves fewer others alone
        is taken (发生|日|余额, not 发|生日|余额).
    """

    def __init__(self, words: Iterable[str] = (), phrases: Iterable[str] = (), free: Iterable[str] = ()) -> None:
        phrases = frozenset(phrases)
        self._others = frozenset(words) - phrases
        self._words = self._others | phrases
        self._free = frozenset(free)
        self._fewest = lru_cache(4096)(self._count)
        self._longest = max(map(len, self._words), default=1)

    def divides(self, text: str, span: Span) -> bool:
        """Whether the divisions into the fewest words have `span` as a piece or within one."""
        start, end = span
        low, high = start, end
        while low and _CHINESE.match(text[low - 1]):
            low -= 1
        while high < len(text) and _CHINESE.match(text[high]):
            high += 1
        before, after = self._fewest(text[low:start]), self._fewest(text[end:high])
        own = before[0] + 1 + after[0], before[1] + after[1]
        if own > self._fewest(text[low:high]):
            return False
        return end - start == 1 or not any(cost <= own for cost in self._across(text, (low, high), span))

    def _across(self, text: str, within: Span, span: Span) -> Iterator[tuple[int, int]]:
        """What divisions cost that have a word across the start or the end of `span`."""
        (low, high), (start, end) = within, span
        for first in range(max(low, start - self._longest + 1), end):
            for last in range(max(first + 2, start + 1), min(high, first + self._longest) + 1):
                crosses = (first < start < last < end) or (start < first < end < last)
                if crosses and text[first:last] in self._others:
                    before, after = self._fewest(text[low:first]), self._fewest(text[last:high])
                    yield before[0] + 1 + after[0], before[1] + after[1]

    def _count(self, text: str) -> tuple[int, int]:
        """How many words the text has at the fewest, and how many of them are single characters that seldom stand alone."""
        fewest = [(0, 0)]
        for end in range(1, len(text) + 1):
            words, alone = fewest[end - 1]
            single = (words + 1, alone + (text[end - 1] not in self._free))
            starts = range(max(0, end - self._longest), end - 1)
            known = ((fewest[at][0] + 1, fewest[at][1]) for at in starts if text[at:end] in self._words)
            fewest.append(min((single, *known)))
        return fewest[-1]


@dataclass(frozen=True)
class Context:
    """What the words around a phrase tell of whose attribute it is: a person's, or an object's.

    Attributes
    ----------
    persons, objects, persons_zh, objects_zh : frozenset of str
        What can have an attribute.
    institutions : frozenset of str
        What has a name: before them a word may be a part of it.
    trades : frozenset of str
        Before these a word names a kind of business, no attribute: "health sector".
    nobody_zh : pattern
        Words that hold a person's and name none: 客户端, 人民币.
    firm_zh, at_firm_zh : pattern
        What a Chinese text without a person is about wherever it stands in it; but not "at the company" (在某公司).
    heads_zh, tails_zh : tuple of str
        At the end of a Chinese text: what it is about, and what may stand behind that (余额).
    plain : frozenset of str
        Words with one sense. Any other word in a code name counts only where the meanings say the same, or nothing
        (nothing but `fillers` and words of the name). None: every word has one sense.
    """

    persons: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    trades: frozenset[str] = frozenset()
    institutions: frozenset[str] = frozenset()
    persons_zh: tuple[str, ...] = ()
    objects_zh: tuple[str, ...] = ()
    trades_zh: tuple[str, ...] = ()
    nobody_zh: re.Pattern[str] = _NOTHING
    firm_zh: re.Pattern[str] = _NOTHING
    at_firm_zh: re.Pattern[str] = _NOTHING
    heads_zh: tuple[str, ...] = ()
    tails_zh: tuple[str, ...] = ()
    fillers: frozenset[str] = frozenset()
    fillers_zh: tuple[str, ...] = ()
    plain: frozenset[str] | None = None
    segmenter: Segmenter = field(default_factory=Segmenter)

    @classmethod
    def of(cls, lists: Lists, *, plain: Iterable[str] | None = None, segmenter: Segmenter | None = None) -> Context:
        """From the lists of a vocabulary."""
        persons, objects, trades = (frozenset(lists.get(name, ())) for name in ("person", "object", "trade"))
        return cls(
            persons,
            objects,
            trades,
            frozenset(lists.get("institution", ())),
            persons_zh=lists.get("person_zh", ()),
            objects_zh=lists.get("object_zh", ()),
            trades_zh=lists.get("trade_zh", ()),
            nobody_zh=_any_of(lists.get("nobody_zh", ())),
            firm_zh=_any_of(lists.get("firm_zh", ())),
            at_firm_zh=_any_of(lists.get("at_zh", ()), then=lists.get("firm_zh", ())),
            heads_zh=lists.get("head_zh", ()),
            tails_zh=lists.get("tail_zh", ()),
            fillers=frozenset(lists.get("filler", ())),
            fillers_zh=tuple(sorted(lists.get("filler_zh", ()), key=len, reverse=True)),
            plain=None if plain is None else frozenset(plain),
            segmenter=segmenter or Segmenter(),
        )

    def person_follows(self, after: str) -> bool:
        """Whether the next words are a person: "director", "s director"."""
        words = after.split(maxsplit=3)[:3]
        return any(word in self.persons for word in (words[1:] if words[:1] == ["s"] else words[:1]))

    def explains(self, before: str, after: str) -> bool:
        """Whether the words around a phrase make it an object's attribute, or the name of a trade."""
        words = after.split(maxsplit=6)[:6]
        if words[:1] and words[0] in self.trades:
            return not self.person_follows(" ".join(words[1:]))
        named = not {*words[:1]} <= self.fillers | self.persons | _OF
        if named and words[1:2] and words[1] in self.institutions:  # "Catholic Syrian Bank"
            return not self.person_follows(" ".join(words[2:]))
        if words[:1] and words[0] in _OF:
            for at, word in enumerate(words[1:5], 2):
                if word in self.persons or word in ("of", "in", "by", "to", "and"):
                    return False
                if word in self.objects:
                    return not self.person_follows(" ".join(words[at:]))
        earlier = before.removesuffix(" s ").split()[-1:]
        return bool(earlier) and earlier[0] in self.objects and not self.person_follows(after)

    def explains_zh(self, before: str, hit: str, after: str) -> bool:
        """The same in Chinese, where the head stands last: 船舶国籍, 医疗设备, 老年理财产品余额, 企业现金流健康指数."""
        if before.removesuffix("的").endswith(self.objects_zh) or after.startswith(self.trades_zh):
            return True
        if self.firm_zh.search(self.at_firm_zh.sub("", f"{before}\n{after}")) and not self.person_in(
            before + hit + after
        ):
            return True
        head = after
        while tail := next((tail for tail in self.tails_zh if head.endswith(tail)), ""):
            head = head.removesuffix(tail)
        return head.endswith(self.heads_zh) and not self.person_in(before + after)

    def person_in(self, chinese: str) -> bool:
        """Whether a Chinese text names a person: 客户, not 客户端."""
        return any(word in self.nobody_zh.sub(" ", chinese) for word in self.persons_zh)

    def of_object(self, texts: FeatureTexts) -> bool:
        """Whether the meanings speak of an object and of no person."""
        chinese = texts.meaning.text + texts.meaning_zh.text
        about = texts.meaning.has & self.objects or any(word in chinese for word in self.objects_zh)
        return bool(about) and not (texts.meaning.has & self.persons or self.person_in(chinese))

    def of_something_else(self, texts: FeatureTexts) -> bool:
        """Whether the meanings say something (:meth:`unsaid`), and neither they nor the name have a person in it."""
        chinese = texts.meaning.text + texts.meaning_zh.text
        person = (texts.meaning.has | texts.name.has) & self.persons or self.person_in(chinese)
        return not person and not self.unsaid(texts)

    def codes_say(self, texts: FeatureTexts) -> bool:
        """Whether texts of codes say something."""
        words = (word for text in texts.codes for word in text.has - self.fillers)
        return any(len(word) > 2 and word.isalpha() for word in words)

    def unsaid(self, texts: FeatureTexts) -> bool:
        """Whether the meanings say nothing that the name does not."""
        if texts.meaning.has - self.fillers - texts.name.has:
            return False
        chinese = texts.meaning.text + texts.meaning_zh.text
        for word in self.fillers_zh:
            chinese = chinese.replace(word, " ")
        return not re.search(f"[{_HAN}]{{2}}", chinese)

    def has_one_sense(self, hit: str) -> bool:
        """Whether a hit in a name counts whatever the meanings say."""
        if self.plain is None or _CHINESE.search(hit):
            return True
        return not self.plain.isdisjoint(PhraseMatch.of(hit).has)


class _Search:
    """Many phrases at once: most texts hold no word that any of them needs."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self._phrases: dict[str, list[Phrase]] = {}
        for phrase in phrases:
            for word in phrase.first:
                self._phrases.setdefault(word, []).append(phrase)
        self._keys = frozenset(self._phrases)

    def may_be_in(self, keys: frozenset[str]) -> bool:
        """Whether texts with these keys can hold one of the phrases at all."""
        return not self._keys.isdisjoint(keys)

    def candidates(self, text: PhraseMatch) -> list[Phrase]:
        """The phrases that may be in a text."""
        return [phrase for key in self._keys & text.keys for phrase in self._phrases[key]]


class Pattern:
    """What one rule looks for, compiled.

    A hit is a phrase that no exclusion covers and that the words around it do not explain (:class:`Context`). An exclusion covers
    nothing where a person follows it: "the company" explains the nationality in "nationality of the company", not in "nationality
    of the company's director".

    Parameters
    ----------
    phrases, exclusions : sequence of Phrase
    names : sequence of str
        Words that a code name may consist of, such as the initials of a Chinese word, beside `before` and `after`.
    codes : sequence of Phrase
        Sought in the texts of codes, beside `phrases`; two codes have to hold one.
    units : sequence of Phrase
    context : Context
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
        context: Context | None = None,
    ) -> None:
        self.phrases = (*phrases, *codes, *units)
        self._phrases, self._exclusions = _Search(phrases), _Search(exclusions)
        self._codes, self._units, self._every = _Search(codes), _Search(units), _Search(self.phrases)
        self._names, self._before, self._after = frozenset(names), frozenset(before), frozenset(after)
        self._context = context or Context()

    def find(self, texts: FeatureTexts) -> tuple[str, MatchedIn] | None:
        """The first hit in what is disclosed of a feature, as it is written there, and where; the name comes first."""
        if not self._every.may_be_in(texts.keys) and self._names.isdisjoint(texts.name.has):
            return None
        in_meaning = self._hit(texts.meaning)
        in_meaning_zh = self._hit(texts.meaning_zh)
        in_codes = self._in_codes(texts)
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
        counts = confirmed or self._context.unsaid(texts)
        hit = self._hit(texts.name)
        if hit and self._counts(hit, texts, counts, confirmed):
            return hit
        if not counts:
            return ""
        whole = self._whole_name(texts.name) if confirmed or not self._context.codes_say(texts) else ""
        in_full = self._hit(texts.name_in_full)
        return whole or (in_full if in_full and self._counts(in_full, texts, counts, confirmed) else "")

    def _counts(self, hit: str, texts: FeatureTexts, counts: bool, confirmed: bool) -> bool:
        """Whether a hit in the name counts. Alone it needs one sense, or meanings that say the same or nothing; among other words
        the meanings must not be of something else, and initials (``ms``) need a second sign.
        """
        if confirmed:
            return True
        one_sense = self._context.has_one_sense(hit)
        own = PhraseMatch.of(hit).has if not _CHINESE.search(hit) else frozenset((hit,))
        others = texts.name.has - own - self._before - self._after - self._context.persons
        alone = not any(word.isalpha() for word in others) and (hit == texts.name.text or not _CHINESE.search(hit))
        if alone:
            return counts or one_sense
        if len(hit) <= _INITIALS and not one_sense:
            return False
        return counts or (one_sense and not self._context.of_something_else(texts))

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

    def _in_codes(self, texts: FeatureTexts) -> str:
        """The first hit in texts of codes, where it stands in two of them or in a good part of them."""
        codes = texts.codes
        strong = [hit for text in codes if (hit := self._hit(text))]
        of_object = self._context.of_object(texts)
        if strong and (len(strong) >= 2 or (len(strong) >= _COMMON * len(codes) and not of_object)):
            return strong[0]
        weak = [hit for text in codes if (hit := next(self._uncovered(text, self._codes), ""))]
        return weak[0] if len(weak) + len(strong) >= 2 and weak and not of_object else ""

    def _hit(self, text: PhraseMatch) -> str:
        return next(self._uncovered(text, self._phrases), "")

    def _excluded(self, text: PhraseMatch) -> list[Span]:
        """What exclusions cover."""
        found = (found for exclusion in self._exclusions.candidates(text) for found in exclusion.find_words(text))
        return [span for span, _, after in found if not self._context.person_follows(after)]

    def _uncovered(self, text: PhraseMatch, search: _Search) -> Iterator[str]:
        """Hits that no exclusion covers, in the order of the text."""
        candidates = search.candidates(text)
        if not candidates:
            return
        excluded = self._excluded(text)
        found = {span for phrase in candidates for span in self._standing(phrase, text)}
        for start, end in sorted(found):
            if not any(low <= start and end <= high for low, high in excluded):
                yield text.text[start:end]

    def _standing(self, phrase: Phrase, text: PhraseMatch) -> Iterator[Span]:
        """Where a phrase stands as a word of its own and is not explained by the words around it."""
        for span, before, after in phrase.find_words(text):
            if phrase.chinese:
                hit = text.text[span[0] : span[1]]
                if self._context.segmenter.divides(text.text, span) and not self._context.explains_zh(
                    before, hit, after
                ):
                    yield span
            elif not self._context.explains(before, after):
                yield span


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

    def pattern(self, lists: Lists, context: Context | None = None) -> Pattern:
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
            context=context or Context(frozenset(lists.get("person", ()))),
        )


class Vocabulary(BaseModel):
    """The concepts that rules can refer to instead of having phrases, and the lists that every phrase may use.

    Attributes
    ----------
    version : str
    lists : dict of str to tuple of str
    plain : tuple of str
        Words with one sense (:class:`Context`).
    short : dict of str to str
        Abbreviations in code names, each with its word.
    concepts : dict of str to Concept
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Text
    lists: Lists
    plain: tuple[Text, ...] = ()
    short: dict[Text, Text] = {}
    concepts: dict[Key, Concept]

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """Concept → its compiled phrases."""
        return {key: concept.pattern(self.lists, self.context) for key, concept in self.concepts.items()}

    @cached_property
    def context(self) -> Context:
        """What the words around a phrase tell."""
        own = (phrase for concept in self.concepts.values() for phrase in concept.phrases_zh if " " not in phrase)
        segmenter = Segmenter(self.lists.get("common_zh", ()), own, self.lists.get("free_zh", ()))
        return Context.of(self.lists, plain=self.plain, segmenter=segmenter)

    @cached_property
    def affixes(self) -> Affixes:
        """How code names are taken apart."""
        known = frozenset(word for pattern in self.patterns.values() for word in pattern.words())
        before, after = (tuple(x for x in self.lists.get(name, ()) if len(x) > 1) for name in ("before", "after"))
        return Affixes(known, before, after, self.short, self.plain)


def _any_of(words: Iterable[str], then: Iterable[str] | None = None) -> re.Pattern[str]:
    """One of the words, the longest first, perhaps with one of `then` after up to four characters; nothing where there are none."""
    first, last = (
        "|".join(re.escape(word) for word in sorted(some, key=len, reverse=True)) for some in (words, then or ())
    )
    if not first or (then is not None and not last):
        return _NOTHING
    return re.compile(f"(?:{first})[{_HAN}]{{0,4}}?(?:{last})" if last else first)


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
