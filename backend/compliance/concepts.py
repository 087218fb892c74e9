"""What a rule looks for in a feature: phrases, code names and units, read by what the words around them say.

A concept is data (words.yaml), compiled to a :class:`Pattern`; how a single phrase is found is :mod:`backend.compliance.phrases`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, takewhile
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from backend.compliance.phrases import CHINESE, HAN, Affixes, FeatureTexts, Phrase, PhraseMatch, Segmenter, Span

_NOTHING = re.compile(r"(?!)")
_OF_WHAT = frozenset({"of", "for"})
_WITHOUT = frozenset({"excluding", "excludes", "excl", "except"})
_OF = frozenset({"of", "de", "du", "des", "do", "da", "del", "der", "della"})
_CLAUSE = re.compile(r"[,;:.?!/()\[\]{}|]|\s[-–—]+\s")  # where what belongs together ends
_CHINESE_CLAUSE = re.compile(r"[,，;；。:：（(\s]")
_NO_WORD = re.compile(r"[\W_]+")
_ENDING = re.compile(r"(?:编号|代码|名称|编码|id|ID)?\s*$")  # after the head of a Chinese text
# One in this many codes has to speak of a concept: two posts of an army among two hundred occupations do not.
_OF_CODES = 8
_BRACKETS = re.compile(r"\([^()]*\)")

MatchedIn = Literal["name", "meaning", "chinese_meaning", "unit", "codes"]
Strength = Literal[
    "finding", "single", "doubted", "disputed", "weak", "proposed", "unlikely"
]  # all but the first and the last are a question
Phrasing = Annotated[str, StringConstraints(min_length=1)]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Lists = dict[str, tuple[Phrasing, ...]]


@dataclass(frozen=True)
class Context:
    """What the words around a phrase tell of whose attribute it is (a person's, or an object's), and whether the value tells it.

    Attributes
    ----------
    persons, objects, chinese_persons, chinese_objects : frozenset of str
        What can have an attribute.
    processes, relations : frozenset of str
        Head nouns of values that do not tell the attribute before them ("gender requirement"), and what ends a head noun's group.
    work : frozenset of str
        What tells that codes are kinds of work.
    trades : frozenset of str
        Before these a word names a kind of business, no attribute: "health sector".
    chinese_firm : pattern
        What a Chinese text without a person is about, at any place in it.
    chinese_heads, chinese_processes : tuple of str
        At the end of a Chinese text: what it is about where it names no person; and what tells no attribute of one even if it does
        (员工子女入学政策, 年龄校验结果).
    record : pattern
        What a column says of a value, not of a person: "imputation flag".
    population : tuple of Phrase
        What tells of many people: "share of persons"; if the text has none of `near` in it (the neighbourhood, the customer), no person's.
    area : pattern
        The neighbourhood: what is said of many people there tells of a place, and of a person only if a concept is one `of_area`.
    plain : frozenset of str
        Words with one sense. Any other word in a code name counts only if the meanings say the same, or nothing
        (nothing but `fillers` and words of the name). None: every word has one sense.
    """

    persons: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    trades: frozenset[str] = frozenset()
    processes: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()
    work: frozenset[str] = frozenset()
    chinese_persons: tuple[str, ...] = ()
    chinese_objects: tuple[str, ...] = ()
    chinese_trades: tuple[str, ...] = ()
    chinese_processes: tuple[str, ...] = ()
    chinese_firm: re.Pattern[str] = _NOTHING
    chinese_heads: tuple[str, ...] = ()
    fillers: frozenset[str] = frozenset()
    chinese_fillers: tuple[str, ...] = ()
    record: re.Pattern[str] = _NOTHING
    population: tuple[Phrase, ...] = ()
    near: re.Pattern[str] = _NOTHING
    area: re.Pattern[str] = _NOTHING
    plain: frozenset[str] | None = None
    segmenter: Segmenter = field(default_factory=Segmenter)

    @classmethod
    def of(cls, lists: Lists, *, plain: Iterable[str] | None = None, segmenter: Segmenter | None = None) -> Context:
        """From the lists of a vocabulary."""
        return cls(
            persons=frozenset(lists.get("person", ())),
            objects=frozenset(lists.get("object", ())),
            trades=frozenset(lists.get("trade", ())),
            processes=frozenset(lists.get("process", ())),
            relations=frozenset(lists.get("relation", ())),
            work=frozenset(lists.get("work", ())),
            chinese_persons=lists.get("person_zh", ()),
            chinese_objects=lists.get("object_zh", ()),
            chinese_trades=lists.get("trade_zh", ()),
            chinese_processes=lists.get("process_zh", ()),
            chinese_firm=_any_of(lists.get("firm_zh", ())),
            chinese_heads=lists.get("head_zh", ()),
            fillers=frozenset(lists.get("filler", ())),
            chinese_fillers=tuple(sorted(lists.get("filler_zh", ()), key=len, reverse=True)),
            record=_any_of(map(_as_word, lists.get("record", ()))),
            population=tuple(Phrase.of(source, lists) for source in lists.get("population", ())),
            near=_any_of(map(_as_word, (*lists.get("near", ()), *lists.get("area", ())))),
            area=_any_of(map(_as_word, lists.get("area", ()))),
            plain=None if plain is None else frozenset(plain),
            segmenter=segmenter or Segmenter(),
        )

    def person_follows(self, next_words: str) -> bool:
        """Return whether the next words are a person: "director", "s director"."""
        words = next_words.split(maxsplit=3)[:3]
        return any(word in self.persons for word in (words[1:] if words[:1] == ["s"] else words[:1]))

    def explains(self, text_before: str, text_after: str) -> bool:
        """Return whether the words around a phrase make it an object's attribute, or the name of a trade."""
        words = text_after.split(maxsplit=6)[:6]
        if words[:1] and words[0] in self.trades:
            return not self.person_follows(" ".join(words[1:]))
        of = next((at for at, word in enumerate(words[:2]) if word in _OF), None)  # "health of", "health score of"
        if of is not None and words[0] not in self.persons:
            for at, word in enumerate(words[of + 1 : 5], of + 2):
                if word in self.persons or word in ("of", "in", "by", "to", "and"):
                    return False
                if word in self.objects:
                    return not self.person_follows(" ".join(words[at:]))
        earlier = text_before.removesuffix(" s ").split()[-1:]
        return bool(earlier) and earlier[0] in self.objects and not self.person_follows(text_after)

    def chinese_explains(self, text_before: str, hit: str, text_after: str) -> bool:
        """Return the same in Chinese, whose head comes last: 船舶国籍, 医疗设备, 老年理财产品余额, 企业现金流健康指数."""
        if text_before.removesuffix("的").endswith(self.chinese_objects) or text_after.startswith(self.chinese_trades):
            return True
        head = _ENDING.sub("", _CHINESE_CLAUSE.split(text_after, 1)[0])
        if head.endswith(self.chinese_processes):
            return True
        if self.chinese_firm.search(f"{text_before}\n{text_after}") and not self.person_in(
            text_before + hit + text_after
        ):
            return True
        return text_after.endswith(self.chinese_heads) and not self.person_in(text_before + text_after)

    def person_in(self, chinese: str) -> bool:
        """Return whether a Chinese text names a person."""
        return any(word in chinese for word in self.chinese_persons)

    def of_object(self, texts: FeatureTexts) -> bool:
        """Return whether the meanings speak of an object and of no person."""
        chinese = texts.meaning.text + texts.chinese_meaning.text
        objects = (word for word in self.chinese_objects if word not in self.chinese_fillers)
        about = texts.meaning.has & self.objects or any(word in chinese for word in objects)
        return bool(about) and not (texts.meaning.has & self.persons or self.person_in(chinese))

    def of_something_else(self, texts: FeatureTexts) -> bool:
        """Return whether the meanings say something (:meth:`unsaid`), and neither they nor the name have a person in it."""
        chinese = texts.meaning.text + texts.chinese_meaning.text
        person = (texts.meaning.has | texts.name.has) & self.persons or self.person_in(chinese)
        return not person and not self.unsaid(texts)

    def tells_otherwise(self, text: PhraseMatch, span: Span) -> bool:
        """Whether the value tells a process instead: by the head of the group of words ("gender requirement"), or of the group before
        "of" ("role of the person's address"); or what it leaves out ("collections excluding medical ones").
        """
        if (self.processes | _WITHOUT).isdisjoint(text.has):
            return False
        text_before, text_after = _clause(text, span)
        if not _WITHOUT.isdisjoint(text_before.split()[-2:]):
            return True
        group = list(takewhile(lambda word: word not in self.relations, text_after.split()))
        heads = [word for word in group if word.isalpha() and word not in self.fillers]
        if heads and heads[-1] in self.processes:
            return True
        earlier = text_before.split()
        while earlier and (earlier[-1] == "s" or earlier[-1] in self.persons or earlier[-1] in self.fillers - _OF_WHAT):
            earlier.pop()
        if not earlier or earlier.pop() not in _OF_WHAT:
            return False
        return bool(earlier) and earlier[-1] in self.processes

    def of_jobs(self, texts: FeatureTexts) -> bool:
        """Return whether the meanings speak of kinds of work: codes are names of such, and "Armed forces" one of many."""
        return bool(texts.meaning.has & self.work) or any(word in texts.chinese_meaning.text for word in self.work)

    def of_nobody(self, texts: FeatureTexts, *, of_area: bool = False) -> bool:
        """Whether the meanings speak of how a value came about ("imputation flag of sex"), or a text of a population ("share of women").

        A statement about the customer's neighbourhood is a person's if the concept is one `of_area`, and a place's otherwise.
        """
        meanings = texts.meaning, texts.chinese_meaning
        if any(self.record.search(text.words if text is texts.meaning else text.text) for text in meanings):
            return True
        both_languages = texts.name.words + texts.meaning.words, texts.chinese_meaning.text
        is_near = any(map(self.near.search, both_languages))
        if is_near and (of_area or not any(map(self.area.search, both_languages))):
            return False
        every = (texts.name, *meanings)
        return any(phrase.may_be_in(text.keys) and phrase.find(text) for text in every for phrase in self.population)

    def codes_say(self, texts: FeatureTexts) -> bool:
        """Return whether texts of codes say something."""
        words = (word for text in texts.codes for word in text.has - self.fillers)
        return any(len(word) > 2 and word.isalpha() for word in words)

    def unsaid(self, texts: FeatureTexts) -> bool:
        """Return whether the meanings say nothing that the name does not."""
        if any(not word.isdecimal() for word in texts.meaning.has - self.fillers - texts.name.has):
            return False
        chinese = texts.meaning.text + texts.chinese_meaning.text
        for word in self.chinese_fillers:
            chinese = chinese.replace(word, " ")
        return not re.search(f"[{HAN}]{{2}}", chinese)

    def stands_alone(self, hit: str, text: PhraseMatch, weak: frozenset[str]) -> bool:
        """Whether a text holds, outside brackets, nothing but a hit, other weak ones ("city or district") and words that say nothing."""
        if not CHINESE.search(hit):
            if "(" in text.text:
                words = PhraseMatch.of(_BRACKETS.sub(" ", text.text)).has
            else:
                words = text.has
            return not words - PhraseMatch.of(hit).has - self.fillers - weak
        remaining = text.text.replace(hit, "", 1)
        for word in (*sorted(weak, key=len, reverse=True), *self.chinese_fillers):
            remaining = remaining.replace(word, "")
        return not CHINESE.search(remaining)

    def repeats(self, texts: FeatureTexts) -> bool:
        """Return whether all that is said besides the name are words of the name."""
        if texts.chinese_meaning.text or CHINESE.search(texts.meaning.text):
            return not texts.meaning.text and texts.chinese_meaning.text == texts.name.text
        return texts.meaning.has <= texts.name.has | self.fillers

    def alone(self, spans: Sequence[Span], text: PhraseMatch) -> bool:
        """Return whether a text holds nothing besides these spans but persons and words that say nothing."""
        within = []
        for at in text.spans.values():
            within.append(any(start <= at[0] and at[1] <= end for start, end in spans))
        remaining = (word for word, hit in zip(text.words.split(), within, strict=True) if not hit and word.isalpha())
        if any(word not in self.fillers | self.persons for word in remaining):
            return False
        chinese = text.text
        for start, end in sorted(spans, reverse=True):
            chinese = f"{chinese[:start]} {chinese[end:]}"
        for word in (*self.chinese_fillers, *sorted(self.chinese_persons, key=len, reverse=True)):
            chinese = chinese.replace(word, "")
        return not CHINESE.search(chinese)

    def has_one_sense(self, hit: str) -> bool:
        """Return whether a hit in a name counts whatever the meanings say."""
        if self.plain is None or CHINESE.search(hit):
            return True
        return not self.plain.isdisjoint(PhraseMatch.of(hit).has)


@dataclass(frozen=True)
class Sign:
    """What speaks for a concept: the words as they are written, their place, and whether that is a finding or asked about.

    Attributes
    ----------
    strength : {"finding", "single", "doubted", "disputed", "weak", "proposed", "unlikely"}
        Asked about is what one text alone says among other words, a concept whose words were often about something else, what
        a second opinion disputes or proposes (:mod:`backend.compliance.second_opinion`), and a word with several senses;
        not what it holds for unlikely.
    weighed : str
        The words that weighed most in that.
    """

    matched: str
    matched_in: MatchedIn
    strength: Strength
    weighed: str = ""

    @property
    def match(self) -> tuple[str, MatchedIn]:
        """Return the words, and their place."""
        return self.matched, self.matched_in


class _Search:
    """Many phrases at once: most texts hold no word that any of them needs."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self._phrases: dict[str, list[Phrase]] = {}
        for phrase in phrases:
            for word in phrase.first:
                self._phrases.setdefault(word, []).append(phrase)
        self._keys = frozenset(self._phrases)

    def may_be_in(self, keys: frozenset[str]) -> bool:
        """Return whether texts with these keys can hold one of the phrases at all."""
        return any(phrase.may_be_in(keys) for key in self._keys & keys for phrase in self._phrases[key])

    def candidates(self, text: PhraseMatch) -> list[Phrase]:
        """Return the phrases that may be in a text."""
        phrases = (phrase for key in self._keys & text.keys for phrase in self._phrases[key])
        return [phrase for phrase in phrases if phrase.may_be_in(text.keys)]


class Pattern:
    """What one rule looks for, compiled.

    A hit is a phrase that no exclusion covers and that the words around it do not explain (:class:`Context`). An exclusion covers
    nothing if a person follows it: "the company" explains the nationality in "nationality of the company", not in "nationality
    of the company's director".

    Parameters
    ----------
    names : sequence of str
        Words that a code name may consist of, such as the initials of a Chinese word, in addition to `before` and `after`.
    codes : sequence of Phrase
        Sought in the texts of codes, in addition to `phrases`; two codes have to hold one.
    weak : sequence of str
        Hits that are as likely about something else: they count if they are alone, and ask elsewhere.
    asked : sequence of Phrase
        What readers take for different things (a year of graduation): it asks, and never counts.
    trusted, doubted : bool
        Whether one text is enough for a finding (:meth:`sign`), or nothing is.
    of_area : bool
        Whether what is said of the neighbourhood counts, as the race of its residents does.
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
        weak: Sequence[str] = (),
        asked: Sequence[Phrase] = (),
        context: Context | None = None,
        trusted: bool = False,
        doubted: bool = False,
        of_area: bool = True,
    ) -> None:
        self.phrases = (*phrases, *codes, *units)
        self._asked = _Search(asked)
        self._phrases = _Search(phrases)
        self._exclusions = _Search(exclusions)
        self._codes = _Search(codes)
        self._units = _Search(units)
        self._every = _Search(self.phrases)
        self._names = frozenset(names)
        self._before = frozenset(before)
        self._after = frozenset(after)
        self._weak = frozenset(weak)
        self._context = context or Context()
        self._trusted = trusted
        self._doubted = doubted
        self._of_area = of_area

    def sign(self, texts: FeatureTexts) -> Sign | None:
        """Return what speaks for it, and how strongly.

        A finding needs two of name, meanings, codes and unit (a meaning that only repeats the name is no second), or one that speaks of
        nothing else: a name or a meaning without other words, a name's word with one sense, most of the codes, a unit.
        """
        match = self.find(texts)
        if match is None:
            weak_match = self.asks(texts)
            return weak_match and Sign(*weak_match, "weak")
        if self._doubted:
            return Sign(*match, "doubted")
        return Sign(*match, "finding" if self._trusted or self._stands(texts) else "single")

    def _stands(self, texts: FeatureTexts) -> bool:
        """Return whether two texts speak of it, or one of nothing else."""
        names = (texts.name, texts.name_in_full)
        meanings = (texts.meaning, texts.chinese_meaning)
        full_name = self._whole_name(texts.name)
        in_unit = any(True for _ in self._uncovered(texts.unit, self._units))
        in_name = next((hit for text in names if (hit := self._hit(text))), full_name)
        in_meanings = any(map(self._hit, meanings)) and not (in_name and self._context.repeats(texts))
        if in_meanings and not in_name:
            in_name = self._kept_by(texts.name)
        places = (in_name, in_meanings, self._in_codes(texts), in_unit)
        if sum(map(bool, places)) > 1 or in_unit:
            return True
        if in_name:
            alone = any(self._alone(text) for text in names) or (
                full_name and not texts.name.has - {full_name.casefold()}
            )
            return bool(alone) or (not CHINESE.search(in_name) and self._context.has_one_sense(in_name))
        n_codes = 0  # codes whose text has a hit
        for text in texts.codes:
            hits = (hit for search in (self._phrases, self._codes) for hit in self._uncovered(text, search))
            n_codes += any(True for _ in hits)
        return any(map(self._alone, meanings)) or 2 * n_codes > len(texts.codes)

    def _kept_by(self, name: PhraseMatch) -> str:
        """A hit in a code name behind a thing's word, which tells who keeps the column where a meaning says the same: `platform_gender`."""
        matches = (each for phrase in self._phrases.candidates(name) for each in phrase.find_words(name))
        spans = (
            span for span, text_before, _ in matches if not self._context.objects.isdisjoint(text_before.split()[-1:])
        )
        return next((name.text[start:end] for start, end in spans), "")

    def _alone(self, text: PhraseMatch) -> bool:
        """Return whether a text speaks of it and of nothing else."""
        spans = self._spans(text, self._phrases)
        return bool(spans) and self._context.alone(spans, text)

    def asks(self, texts: FeatureTexts) -> tuple[str, MatchedIn] | None:
        """Return a weak hit, or one that is asked about, in a name or meaning, and where: a question to the owner, no finding."""
        every: tuple[tuple[MatchedIn, PhraseMatch], ...]
        every = (("name", texts.name), ("meaning", texts.meaning), ("chinese_meaning", texts.chinese_meaning))
        may_be_asked = self._asked.may_be_in(texts.keys)
        weak = bool(self._weak) and self._every.may_be_in(texts.keys)
        if not may_be_asked and not weak:
            return None
        for where, text in every:
            spans = []
            for phrase in self._asked.candidates(text):
                for span in self._standing(phrase, text):
                    spans.append(span)
            hits = (text.text[start:end] for start, end in spans)
            of_weak = (hit for hit in self._uncovered(text, self._phrases) if _plain(hit) in self._weak)
            if hit := next(chain(hits, of_weak), ""):
                return None if self._of_nobody(texts) else (hit, where)
        return None

    def sets_aside(self, texts: FeatureTexts) -> bool:
        """Return whether Chinese phrases are in the name or a meaning, each part of another word or explained by the words around."""
        is_found = False
        for text in (texts.name, texts.meaning, texts.chinese_meaning):
            for phrase in self._phrases.candidates(text):
                if not phrase.chinese:
                    continue
                if next(self._standing(phrase, text), None) is not None:
                    return False
                is_found = is_found or next(iter(phrase.find(text)), None) is not None
        return is_found

    def find(self, texts: FeatureTexts) -> tuple[str, MatchedIn] | None:
        """Return the first hit in what is disclosed of a feature, as it is written there, and where; the name comes first."""
        if not self._every.may_be_in(texts.keys) and self._names.isdisjoint(texts.name.has):
            return None
        match = self._first(texts)
        return None if match and self._of_nobody(texts) else match

    def _first(self, texts: FeatureTexts) -> tuple[str, MatchedIn] | None:
        """Return the first hit, about any subject."""
        in_meaning = self._hit(texts.meaning)
        in_chinese_meaning = self._hit(texts.chinese_meaning)
        in_codes = self._in_codes(texts)
        confirmed = bool(in_meaning or in_chinese_meaning or in_codes)
        in_name = self._in_name(texts, confirmed)
        if in_name and (confirmed or not self._denied(texts)):
            return in_name, "name"
        if in_meaning and not self._only_repeats(texts):
            return in_meaning, "meaning"
        if in_chinese_meaning:
            return in_chinese_meaning, "chinese_meaning"
        in_unit = next(self._uncovered(texts.unit, self._units), "")
        if in_unit and not any(self._excluded(text) for text in (texts.name, texts.meaning, texts.chinese_meaning)):
            return in_unit, "unit"
        return (in_codes, "codes") if in_codes else None

    def _of_nobody(self, texts: FeatureTexts) -> bool:
        """Return whether what is said is no person's: see :meth:`Context.of_nobody`."""
        return self._context.of_nobody(texts, of_area=self._of_area)

    def words(self) -> Iterator[str]:
        """Yield the English words that its phrases begin with, without prefixes."""
        yield from self._names
        for phrase in self.phrases:
            yield from (word for word in phrase.first if word.isascii() and word.isalpha())

    def _denied(self, texts: FeatureTexts) -> bool:
        """Return whether the meanings speak of it among other words, and say that it is something else's: "first name of the provider"."""
        for text in (texts.meaning, texts.chinese_meaning):
            spans = []
            for phrase in self._phrases.candidates(text):
                for span in phrase.find(text):
                    spans.append(span)
            others = (
                text.text[:start] + text.text[end:]
                for start, end in spans
                if self._is_the_names(text, (start, end), texts)
            )
            if (
                any(words_around.strip(" .") for words_around in others)
                and next(self._uncovered(text, self._phrases), None) is None
            ):
                return True
        return False

    def _only_repeats(self, texts: FeatureTexts) -> bool:
        """Whether the name says that it is something else's, and the meaning repeats words of the name: `employer_address`, "Address"."""
        name = texts.name
        if texts.chinese_meaning.text or not texts.meaning.has <= name.has | self._context.fillers:
            return False
        in_name = any(True for phrase in self._phrases.candidates(name) for _ in phrase.find(name))
        return in_name and next(self._uncovered(name, self._phrases), None) is None

    def _is_the_names(self, text: PhraseMatch, span: Span, texts: FeatureTexts) -> bool:
        """Return whether a hit in a meaning has a word of the name in it, or is Chinese: "Gender-neutral" denies no `sex`."""
        hit = text.text[span[0] : span[1]]
        in_name = tuple(texts.name.has)  # "lat" is short for "latitude"
        return bool(CHINESE.search(hit)) or any(word.startswith(in_name) for word in PhraseMatch.of(hit).has)

    def _in_name(self, texts: FeatureTexts, confirmed: bool) -> str:
        counts = confirmed or self._context.unsaid(texts)
        hit = self._hit(texts.name)
        if hit and self._counts(hit, texts, counts, confirmed):
            return hit
        if not counts:
            return ""
        if confirmed or not self._context.codes_say(texts):
            full_name = self._whole_name(texts.name)
        else:
            full_name = ""
        in_full = self._hit(texts.name_in_full)
        return full_name or (in_full if in_full and self._counts(in_full, texts, counts, confirmed) else "")

    def _counts(self, hit: str, texts: FeatureTexts, counts: bool, confirmed: bool) -> bool:
        """Return whether a hit in the name counts. Alone it needs one sense, or meanings that say the same or nothing; among other words
        the meanings must not be of something else.
        """
        if confirmed:
            return True
        one_sense = self._context.has_one_sense(hit)
        if not CHINESE.search(hit):
            hit_words = PhraseMatch.of(hit).has
        else:
            hit_words = frozenset((hit,))
        others = texts.name.has - hit_words - self._before - self._after - self._context.persons
        alone = not any(word.isalpha() for word in others) and (hit == texts.name.text or not CHINESE.search(hit))
        if alone:
            return counts or one_sense
        return counts or (one_sense and not self._context.of_something_else(texts))

    def _whole_name(self, name: PhraseMatch) -> str:
        """Return one of the names, if the rest is affixes and digits alone."""
        if self._names.isdisjoint(name.has):
            return ""
        words = name.words.split()
        for at, word in enumerate(words):
            affixes_follow = (later in self._after or later.isdecimal() for later in words[at + 1 :])
            if word in self._names and all(first in self._before for first in words[:at]) and all(affixes_follow):
                start, end = list(name.spans.values())[at]
                return name.text[start:end]
        return ""

    def _in_codes(self, texts: FeatureTexts) -> str:
        """Return the first hit in texts of codes, if it is in two of them (or the only one) and in a good part of them."""
        codes = texts.codes
        if not codes:
            return ""
        strong = [hit for text in codes if (hit := self._hit(text))]
        weak = [hit for text in codes if (hit := next(self._uncovered(text, self._codes), ""))]
        min_hits = max(min(len(codes), 2), len(codes) // _OF_CODES)
        if len(strong) >= min_hits:
            first_hit = strong[0]
        elif weak and len(weak) + len(strong) >= max(min_hits, 2):
            first_hit = weak[0]
        else:
            return ""
        if self._context.of_jobs(texts) or self._context.of_object(texts):
            return ""
        return first_hit

    def one_code(self, texts: FeatureTexts) -> str:
        """The text of one of a few codes that speaks of it and of nothing else: "retired" among kinds of employment; empty if none does."""
        codes = texts.codes
        if not 1 < len(codes) <= _OF_CODES or self._context.of_jobs(texts) or self._context.of_object(texts):
            return ""
        if not self._every.may_be_in(texts.keys) or self._of_nobody(texts):
            return ""
        return next((text.text for text in codes if self._alone(text) or self._is_code(text)), "")

    def _is_code(self, text: PhraseMatch) -> bool:
        """Return whether a code's text is one of the phrases for codes, and nothing else."""
        spans = self._spans(text, self._codes)
        return bool(spans) and self._context.alone(spans, text)

    def _hit(self, text: PhraseMatch) -> str:
        return next((hit for hit in self._uncovered(text, self._phrases) if self._is_sign(hit, text)), "")

    def _is_sign(self, hit: str, text: PhraseMatch) -> bool:
        """Return whether a hit is a sign by itself: not a weak one among other words."""
        return _plain(hit) not in self._weak or self._context.stands_alone(hit, text, self._weak)

    def _excluded(self, text: PhraseMatch) -> list[Span]:
        """Return what exclusions cover."""
        spans = (span for exclusion in self._exclusions.candidates(text) for span in exclusion.find(text))
        return [span for span in spans if not self._context.person_follows(_clause(text, span)[1])]

    def _uncovered(self, text: PhraseMatch, search: _Search) -> Iterator[str]:
        """Hits that no exclusion covers, in the order of the text."""
        return (text.text[start:end] for start, end in self._spans(text, search))

    def _spans(self, text: PhraseMatch, search: _Search) -> list[Span]:
        """Return where the phrases of a search are in a text."""
        candidates = search.candidates(text)
        if not candidates:
            return []
        excluded = self._excluded(text)
        spans = {span for phrase in candidates for span in self._standing(phrase, text)}
        return [
            (start, end)
            for start, end in sorted(spans)
            if not any(low <= start and end <= high for low, high in excluded)
        ]

    def _standing(self, phrase: Phrase, text: PhraseMatch) -> Iterator[Span]:
        """Yield where a phrase is a separate word and is not explained by the words around it."""
        for span, text_before, text_after in phrase.find_words(text):
            if phrase.chinese:
                hit = text.text[span[0] : span[1]]
                if self._context.segmenter.divides(text.text, span) and not self._context.chinese_explains(
                    text_before, hit, text_after
                ):
                    yield span
            elif not self._context.explains(text_before, text_after) and not self._context.tells_otherwise(text, span):
                yield span


class Concept(BaseModel):
    """What to look for in names, meanings, units and codes.

    Attributes
    ----------
    sensitivity : tuple of str
        The dictionary tags that mean it.
    phrases, chinese_phrases, exclusions, chinese_exclusions : tuple of str
        English (and other languages in Latin letters) and Chinese; an exclusion cancels the phrases that it covers.
    names : tuple of str
        Whole code names, but for what may come before and after (`lists`: ``before``, ``after``).
    codes, units : tuple of str
        Phrases for the texts of codes and for units.
    weak : tuple of str
        What phrases hit and is as likely about something else ("street", 社区): no finding among other words, but a question.
    asked : tuple of str
        Phrases of what readers take for different things (a year of graduation): a question and never a finding.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensitivity: tuple[Key, ...] = ()
    phrases: tuple[Phrasing, ...] = ()
    chinese_phrases: tuple[Phrasing, ...] = ()
    exclusions: tuple[Phrasing, ...] = ()
    chinese_exclusions: tuple[Phrasing, ...] = ()
    names: tuple[Phrasing, ...] = ()
    codes: tuple[Phrasing, ...] = ()
    units: tuple[Phrasing, ...] = ()
    weak: tuple[Phrasing, ...] = ()
    asked: tuple[Phrasing, ...] = ()

    def pattern(
        self,
        lists: Lists,
        context: Context | None = None,
        *,
        trusted: bool = True,
        doubted: bool = False,
        of_area: bool = True,
    ) -> Pattern:
        """Compile; raises `ValueError` at a badly written phrase."""

        def compiled(*sources: str) -> tuple[Phrase, ...]:
            return tuple(Phrase.of(source, lists) for source in sources)

        return Pattern(
            compiled(*self.phrases, *self.chinese_phrases),
            compiled(*self.exclusions, *self.chinese_exclusions),
            names=self.names,
            before=lists.get("before", ()),
            after=lists.get("after", ()),
            codes=compiled(*self.codes),
            units=compiled(*self.units),
            weak=self.weak,
            asked=compiled(*self.asked),
            context=context or Context(frozenset(lists.get("person", ()))),
            trusted=trusted,
            doubted=doubted,
            of_area=of_area,
        )


class Vocabulary(BaseModel):
    """The concepts that rules can refer to instead of having phrases, and the lists that every phrase may use.

    Attributes
    ----------
    plain : tuple of str
        Words with one sense (:class:`Context`).
    short : dict of str to str
        Abbreviations in code names, each with its word.
    trusted, doubted : tuple of str
        Concepts of which at first looks one text among other words was right in nine of ten columns, and those of which even what
        stands alone or twice was wrong in one of five (tests/compliance/first_looks.csv).
    of_persons : tuple of str
        Concepts of a person alone: what is said of the people of a neighbourhood is no sign of them. The race of the neighbours is one
        (official interpretation of 12 CFR 1002.2(z), comment 1).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Phrasing
    lists: Lists
    plain: tuple[Phrasing, ...] = ()
    short: dict[Phrasing, Phrasing] = {}
    trusted: tuple[Key, ...] = ()
    doubted: tuple[Key, ...] = ()
    of_persons: tuple[Key, ...] = ()
    concepts: dict[Key, Concept]

    @cached_property
    def patterns(self) -> dict[str, Pattern]:
        """Concept → its compiled phrases."""
        return {
            key: concept.pattern(
                self.lists,
                self.context,
                trusted=key in self.trusted,
                doubted=key in self.doubted,
                of_area=key not in self.of_persons,
            )
            for key, concept in self.concepts.items()
        }

    def signs(self, texts: FeatureTexts) -> dict[str, Sign]:
        """Concept → what speaks for it in what is disclosed of a feature; beside one finding all that was found is one."""
        signs_found = {key: sign for key, pattern in self.patterns.items() if (sign := pattern.sign(texts))}
        if not signs_found:
            return self._by_single_codes(texts)
        if all(sign.strength != "finding" for sign in signs_found.values()):
            return signs_found
        return {key: replace(sign, strength="finding") for key, sign in signs_found.items() if sign.strength != "weak"}

    def _by_single_codes(self, texts: FeatureTexts) -> dict[str, Sign]:
        """Concepts that one code each speaks of, where two codes or more do: "housewife" and "retired" among kinds of employment."""
        codes = {key: code for key, pattern in self.patterns.items() if (code := pattern.one_code(texts))}
        if len(set(codes.values())) < 2:
            return {}
        return {key: Sign(code, "codes", "single") for key, code in codes.items()}

    @cached_property
    def context(self) -> Context:
        """What the words around a phrase tell."""
        chinese_phrases = (
            phrase for concept in self.concepts.values() for phrase in concept.chinese_phrases if " " not in phrase
        )
        segmenter = Segmenter(self.lists.get("common_zh", ()), chinese_phrases, self.lists.get("free_zh", ()))
        return Context.of(self.lists, plain=self.plain, segmenter=segmenter)

    def explained(self, texts: FeatureTexts) -> bool:
        """Whether anything tells what a column holds: a meaning that does not just repeat the name, codes, a Chinese name, or a name of
        the trade's words alone. Of a column that is not explained, a rule's silence says nothing.
        """
        has_words = any(word.isalpha() for word in texts.meaning.has - self.context.fillers)
        described = has_words and texts.meaning.has != texts.name.has
        if (
            described
            or not self.context.unsaid(texts)
            or self.context.codes_say(texts)
            or CHINESE.search(texts.name.text)
        ):
            return True
        words = frozenset(word for word in texts.name_in_full.has if word.isalpha())
        return bool(words & self._trade) and words <= self._trade | self._around

    @cached_property
    def _trade(self) -> frozenset[str]:
        return frozenset(self.lists.get("business", ()))

    @cached_property
    def _around(self) -> frozenset[str]:
        """Words that may accompany a word of the trade and say nothing."""
        return frozenset(word for name in ("before", "after", "filler", "measure") for word in self.lists.get(name, ()))

    @cached_property
    def affixes(self) -> Affixes:
        """How code names are taken apart."""
        separable = frozenset(word for pattern in self.patterns.values() for word in pattern.words())
        phrases = (phrase for pattern in self.patterns.values() for phrase in pattern.phrases)
        inseparable = frozenset(word for phrase in phrases for need in phrase.needs for word in need)
        prefixes = tuple(word for word in self.lists.get("before", ()) if len(word) > 1)
        suffixes = tuple(word for word in self.lists.get("after", ()) if len(word) > 1)
        return Affixes(separable, prefixes, suffixes, self.short, self.plain, inseparable)


def _clause(text: PhraseMatch, span: Span) -> tuple[str, str]:
    """Return the words before and after a hit that no mark parts from it."""
    text_before = _CLAUSE.split(text.text[: span[0]])[-1]
    text_after = _CLAUSE.split(text.text[span[1] :], 1)[0]
    return PhraseMatch.of(text_before).words, PhraseMatch.of(text_after).words


def _plain(hit: str) -> str:
    """Return a hit without its marks and capitals."""
    return _NO_WORD.sub(" ", hit.casefold())


def _as_word(word: str) -> str:
    """Return a word with a space on both sides in English, where texts are taken apart."""
    return f" {word} " if word.isascii() else word


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return one of the words, the longest first; nothing if there are none."""
    choice = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(choice) if choice else _NOTHING
