"""A second opinion on what phrases say: a linear model of words and n-grams that may propose and dispute, and decides nothing alone.

It was fitted to labelled columns (``python -m tests.compliance.fit_opinion``) and is a table of weights, by language. A finding that it
holds for wrong becomes a question, what a phrase says among other words a finding where it agrees, and a column in which no
phrase was found a question where it is for it. Of a feature with meanings in both languages, both have to agree to the last two.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Literal, NamedTuple

from backend.compliance.concepts import MatchedIn, Sign
from backend.compliance.phrases import HAN, FeatureTexts, PhraseMatch

WEIGHTS = Path(str(files("backend.compliance") / "lists" / "second_opinion.tsv"))
UNIT = 1000  # the table's weights are in thousandths of log odds
LETTERS = (3, 4)  # of a part of an English word, with a mark before and after the word
CHARACTERS = (1, 2, 3, 4)  # of a part of a Chinese text
SHOWN = 3  # words that weighed most

# Log odds that a column is about an attribute or a proxy; chosen on lists that were left out of the fit (docs/rules.md).
KEEP = {"en": -1.0, "zh": 0.5}  # below it a finding is disputed
SURE = {"en": 0.75, "zh": 0.75}  # from it on one phrase among other words is a finding
ASK = {"en": 0.0, "zh": -0.4}  # from it on a column without a phrase is asked about

Language = Literal["en", "zh"]
_CHINESE_RUN = re.compile(f"[{HAN}]+")


class Opinion(NamedTuple):
    """What one language's weights say of a feature.

    Attributes
    ----------
    score : float
        Log odds that the feature is an attribute of a person or a proxy of one.
    weighed : mapping of str to float
        Word of the feature → its part of the score.
    concepts : mapping of str to float
        Concept → its part of the score.
    """

    language: Language
    score: float
    weighed: Mapping[str, float]
    concepts: Mapping[str, float]


def reconsider(texts: FeatureTexts, signs: dict[str, Sign]) -> dict[str, Sign]:
    """What phrases found, after the second opinion; where they found nothing, what it proposes."""
    opinions = [_opinion(language, texts) for language in languages(texts)]
    strengths = {sign.strength for sign in signs.values()}
    if "finding" in strengths:
        if any(each.score >= KEEP[each.language] for each in opinions):
            return signs
        against = _most(opinions, -1)
        return {
            concept: sign._replace(strength="disputed", weighed=against) if sign.strength == "finding" else sign
            for concept, sign in signs.items()
        }
    if strengths & {"single", "doubted"}:
        sure = all(each.score >= SURE[each.language] for each in opinions)
        return {
            concept: sign._replace(strength="finding") if sure and sign.strength in ("single", "doubted") else sign
            for concept, sign in signs.items()
        }
    best = max(opinions, key=lambda each: each.score)
    if any(each.score < ASK[each.language] for each in opinions) or not best.concepts:
        return signs
    concept = max(best.concepts, key=lambda key: (best.concepts[key], key))
    if concept in signs:  # a weak word of the same concept: it shows what is meant
        return {**signs, concept: signs[concept]._replace(strength="proposed", weighed=_most([best], 1))}
    first = max(best.weighed, key=lambda word: (best.weighed[word], word))
    return {**signs, concept: Sign(first, _where(first, texts), "proposed", _most([best], 1))}


def languages(texts: FeatureTexts) -> tuple[Language, ...]:
    """Chinese where a text has Chinese characters, English where there are none or an English meaning."""
    chinese = any(
        _CHINESE_RUN.search(text.text) for text in (texts.name, texts.meaning, texts.meaning_zh, *texts.codes)
    )
    english = any(word.isalpha() for word in texts.meaning.has)
    return ("zh", "en") if chinese and english else ("zh",) if chinese else ("en",)


def grams(language: Language, texts: FeatureTexts) -> dict[str, str]:
    """What is weighed of a feature, each with the word that it is shown by: words and pairs of words, parts of words (``~``) in
    English and of texts in Chinese; of codes and the unit words, marked ``=``.
    """
    found: dict[str, str] = {}
    meanings = (texts.meaning, texts.meaning_zh) if language == "zh" else (texts.meaning,)
    said = (match.text for match in meanings if language == "en" or _CHINESE_RUN.search(match.text))
    for text in (texts.name.text, *said):
        match = PhraseMatch.of(text)
        words = match.words.split()
        for word in words:
            found.setdefault(word, word)
            if language == "en":
                for part in _parts(f"_{word}_", LETTERS):
                    found.setdefault(f"~{part}", word)
        for pair in pairwise(words):
            found.setdefault(" ".join(pair), " ".join(pair))
        if language == "zh":
            found.update((part, part) for part in _chinese(match.text, CHARACTERS))
    for match in (texts.unit, *texts.codes):
        found.update((f"={word}", word) for word in match.words.split())
        if language == "zh":
            found.update((f"={part}", part) for part in _chinese(match.text, CHARACTERS[:3]))
    return found


def _chinese(text: str, lengths: Iterable[int]) -> Iterator[str]:
    for run in _CHINESE_RUN.findall(text):
        yield from _parts(run, lengths)


def _parts(text: str, lengths: Iterable[int]) -> Iterator[str]:
    return (text[at : at + n] for n in lengths for at in range(len(text) - n + 1))


def _opinion(language: Language, texts: FeatureTexts) -> Opinion:
    base, weights = _weights()[language]
    found = grams(language, texts)
    length = UNIT * sqrt(len(found) or 1)
    weighed: dict[str, float] = defaultdict(float)
    concepts: dict[str, float] = defaultdict(float)
    for gram, word in found.items():
        if gram in weights:
            weight, concept = weights[gram]
            weighed[word] += weight / length
            if concept:
                concepts[concept] += weight / length
    return Opinion(language, base / UNIT + sum(weighed.values()), weighed, concepts)


def _most(opinions: Iterable[Opinion], sign: int) -> str:
    """The words that weighed most for (1) or against (-1) it."""
    parts = [(sign * part, word) for each in opinions for word, part in each.weighed.items() if sign * part > 0]
    return ", ".join(word for _, word in sorted(parts, key=lambda each: (-each[0], each[1]))[:SHOWN])


def _where(word: str, texts: FeatureTexts) -> MatchedIn:
    """Where a word stands first."""
    places: tuple[tuple[MatchedIn, PhraseMatch], ...]
    places = (("name", texts.name), ("meaning", texts.meaning), ("meaning_zh", texts.meaning_zh), ("unit", texts.unit))
    for place, text in places:
        if f" {word} " in PhraseMatch.of(text.text).words or (_CHINESE_RUN.match(word) and word in text.text):
            return place
    return "codes"


@cache
def _weights() -> dict[str, tuple[int, dict[str, tuple[int, str]]]]:
    """Language → the log odds of a feature without words, and each gram's weight and the concept that it speaks for, if any."""
    cells = WEIGHTS.read_text(encoding="utf-8").removesuffix("\n").replace("\n", "\t").split("\t")
    languages, every, numbers, concepts = cells[::4], cells[1::4], [int(cell) for cell in cells[2::4]], cells[3::4]
    tables = {}
    for language in dict.fromkeys(languages):
        first = languages.index(language)
        part = slice(first + 1, first + languages.count(language))
        weights = dict(zip(every[part], zip(numbers[part], concepts[part], strict=True), strict=True))
        tables[language] = (numbers[first], weights)
    return tables
