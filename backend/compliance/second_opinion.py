"""A second opinion on what phrases say: a linear model of words and n-grams, and of what phrases found, that decides nothing alone.

It was fitted to labelled columns (``python -m tests.compliance.fit_opinion``) and is a table of weights, by language. Its sums are the
log odds that a column is about an attribute or a proxy, and that it is about an attribute which a statute names. Above one limit of
the first what a phrase says is a finding, below it a question; above another limit of the first or one of the second a column in which
no phrase was found is a question, and below both what one text says among other words is asked no more. So less is asked about what
may be a proxy only. A question names a concept only on evidence of that concept's own: function words and single characters count for
nothing.
Of a feature with meanings in both languages, one is enough to confirm and both have to agree to a proposal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Literal, NamedTuple

from backend.compliance.concepts import MatchedIn, Sign, Strength
from backend.compliance.phrases import HAN, FeatureTexts, PhraseMatch

WEIGHTS = Path(str(files("backend.compliance") / "lists" / "second_opinion.tsv"))
UNIT = 1000  # the table's weights are in thousandths of log odds
LETTERS = (3, 4)  # of a part of an English word, with a mark before and after the word
PART_LENGTHS = (1, 2, 3, 4)  # of a part of a Chinese text
WORDS_SHOWN = 3  # words that weighed most

# Log odds; chosen on lists that were left out of the fit (docs/rule-lists.md).
FLAG = {"en": 1.7, "zh": 2.3}  # from it on what phrases say is a finding
ASK = {"en": -2.0, "zh": -2.2}  # from it on a column is asked about
ASK_STATUTE = {"en": -2.7, "zh": -3.4}  # or from this one on, of the log odds that a statute names it

EVIDENCE: tuple[Strength, ...] = ("finding", "single", "doubted", "weak")  # of phrases, the strongest first
OWN = {
    "en": 0.2,
    "zh": 0.3,
}  # log odds that words of a concept's own have to give before it is proposed; more cost recall
# Words that tell nothing by themselves: they weigh, and are not shown.
_FUNCTION = frozenset(
    """a an and any are as at be by do does for from has have if in is it its no not of on or other per the their this to was were
    which who with within""".split()  # noqa: SIM905
)
# Characters of words such as 是否 (whether), 编号 (number), 户 and 人员 (accounts, staff), 性 (-ity): in every table, whatever it is about.
_FUNCTION_CHARACTERS = frozenset(
    "是否有无没不可能的了和与或在为以及其之本各该每他被将从到由对于给性生体身名称号码户人员类型式数量期次日时间月年金额状态信息标志识别编序项目值率总前后上下"
    "起止单据表件书证内外中大小多少新旧个家"
)

Language = Literal["en", "zh"]
_CHINESE_RUN = re.compile(f"[{HAN}]+")


class Opinion(NamedTuple):
    """What one language's weights say of a feature.

    Attributes
    ----------
    score : float
        Log odds that the feature is an attribute of a person or a proxy of one.
    statute : float
        Log odds that a statute names it.
    weighed : mapping of str to float
        Word of the feature → its part of the score.
    concepts : mapping of str to float
        Concept → its part of the score, by words that tell something; a single Chinese character does not count.
    """

    language: Language
    score: float
    statute: float
    weighed: Mapping[str, float]
    concepts: Mapping[str, float]

    @property
    def flags(self) -> bool:
        """Whether what phrases say is a finding."""
        return self.score >= FLAG[self.language]

    @property
    def asks(self) -> bool:
        """Whether a person is asked."""
        return self.score >= ASK[self.language] or self.statute >= ASK_STATUTE[self.language]


def reconsider(
    texts: FeatureTexts,
    signs: dict[str, Sign],
    *,
    of_nobody: bool = False,
    is_set_aside: Callable[[str], bool] = lambda concept: False,
) -> dict[str, Sign]:
    """Return what phrases found, after the second opinion; if they found nothing, what it proposes.

    It proposes nothing for what is not said of a person, and no concept whose phrases were read and set aside.
    """
    opinions = [_opinion(language, texts, signs) for language in languages(texts)]
    flags = [each.flags for each in opinions]
    asks = [each.asks for each in opinions]
    strongest = next(
        (strength for strength in EVIDENCE if any(sign.strength == strength for sign in signs.values())), ""
    )
    if strongest == "finding":
        return (
            signs
            if any(flags)
            else _as(signs, ("finding",), "disputed", _most(opinions, -1) or next(iter(signs.values())).matched)
        )
    if strongest in ("single", "doubted"):
        if any(flags):
            return _as(signs, ("single", "doubted"), "finding")
        coded = {sign.matched for sign in signs.values() if sign.matched_in == "codes"}
        # Two codes that speak of persons are evidence of their own: "housewife" and "retired" among kinds of employment.
        return signs if any(asks) or len(coded) > 1 else _as(signs, EVIDENCE, "unlikely")
    best = max(opinions, key=lambda each: max(each.concepts.values(), default=0.0))
    concept = max(best.concepts, key=lambda key: (best.concepts[key], key), default="")
    is_own = best.concepts.get(concept, 0.0) >= OWN[best.language]
    telling = [word for word, part in best.weighed.items() if part > 0 and _is_evidence(word)]
    if all(asks) and is_own and telling and not of_nobody and not is_set_aside(concept):
        first = max(telling, key=lambda word: (best.weighed[word], word))
        sign = signs.get(concept) or Sign(first, _where(first, texts), "proposed")
        return {**signs, concept: replace(sign, strength="proposed", weighed=_most([best], 1))}
    return signs if any(asks) else _as(signs, EVIDENCE, "unlikely")


def _as(signs: dict[str, Sign], some: Iterable[Strength], strength: Strength, weighed: str = "") -> dict[str, Sign]:
    """Return the signs, those of some strengths with another one."""
    return {
        concept: replace(sign, strength=strength, weighed=weighed) if sign.strength in some else sign
        for concept, sign in signs.items()
    }


def languages(texts: FeatureTexts) -> tuple[Language, ...]:
    """Chinese where a text has Chinese characters, English if there are none or an English meaning."""
    chinese = any(
        _CHINESE_RUN.search(text.text) for text in (texts.name, texts.meaning, texts.chinese_meaning, *texts.codes)
    )
    english = any(word.isalpha() for word in texts.meaning.has)
    if chinese and english:
        return ("zh", "en")
    if chinese:
        return ("zh",)
    return ("en",)


def grams(language: Language, texts: FeatureTexts) -> dict[str, str]:
    """Return what is weighed of a feature, each with the word that it is shown by: words and pairs of words, parts of words (``~``) in
    English and of texts in Chinese; words of the name (``n:``) and of meanings (``m:``) apart, and those at the start (``^``) and
    end (``$``); of codes and the unit words, marked ``=``.
    """
    words_of: dict[str, str] = {}
    meanings = (texts.meaning, texts.chinese_meaning) if language == "zh" else (texts.meaning,)
    texts_read = (match.text for match in meanings if language == "en" or _CHINESE_RUN.search(match.text))
    for where, text in (("n", texts.name.text), *(("m", text) for text in texts_read)):
        match = PhraseMatch.of(text)
        words = match.words.split()
        for word in words:
            words_of.setdefault(word, word)
            words_of.setdefault(f"{where}:{word}", word)
            if language == "en":
                for part in _parts(f"_{word}_", LETTERS):
                    words_of.setdefault(f"~{part}", word)
        for pair in pairwise(words):
            words_of.setdefault(" ".join(pair), " ".join(pair))
        if language == "zh":
            words_of.update((part, part) for part in _chinese(match.text, PART_LENGTHS))
            for run in _CHINESE_RUN.findall(match.text):
                words_of.update({f"^{run[:n]}": run[:n] for n in PART_LENGTHS[:3]})
                words_of.update({f"{run[-n:]}$": run[-n:] for n in PART_LENGTHS[:3]})
        else:
            words_of.update({f"{where}^{' '.join(words[:n])}": " ".join(words[:n]) for n in (1, 2) if words})
            words_of.update({f"{where}{' '.join(words[-n:])}$": " ".join(words[-n:]) for n in (1, 2) if words})
    for match in (texts.unit, *texts.codes):
        words_of.update((f"={word}", word) for word in match.words.split())
        if language == "zh":
            words_of.update((f"={part}", part) for part in _chinese(match.text, PART_LENGTHS[:3]))
    return words_of


def evidence(strengths: Mapping[str, str]) -> tuple[str, ...]:
    """Return what phrases found (concept → strength), as the table has it: the strongest (``!single``), and each concept, without and with
    its strength (``!!sex``, ``!!sex:single``).
    """
    strongest = next((f"!{strength}" for strength in EVIDENCE if strength in strengths.values()), "!")
    each = (sign for concept, strength in strengths.items() for sign in (f"!!{concept}", f"!!{concept}:{strength}"))
    return (strongest, *each)


def _chinese(text: str, lengths: Iterable[int]) -> Iterator[str]:
    for run in _CHINESE_RUN.findall(text):
        yield from _parts(run, lengths)


def _parts(text: str, lengths: Iterable[int]) -> Iterator[str]:
    return (text[at : at + n] for n in lengths for at in range(len(text) - n + 1))


def _opinion(language: Language, texts: FeatureTexts, signs: Mapping[str, Sign]) -> Opinion:
    (base, base_statute), weights = _weights()[language]
    words_of = grams(language, texts)
    length = UNIT * sqrt(len(words_of) or 1)
    weighed: dict[str, float] = defaultdict(float)
    concepts: dict[str, float] = defaultdict(float)
    statute = 0.0
    for gram, word in words_of.items():
        if gram in weights:
            weight, by_statute, concept = weights[gram]
            weighed[word] += weight / length
            statute += by_statute / length
            if concept and _is_evidence(word):
                concepts[concept] += weight / length
    phrases = evidence({concept: sign.strength for concept, sign in signs.items()})
    phrase_weights = [weights[part] for part in phrases if part in weights]
    score = (base + sum(weight for weight, _, _ in phrase_weights)) / UNIT + sum(weighed.values())
    statute += (base_statute + sum(by_statute for _, by_statute, _ in phrase_weights)) / UNIT
    return Opinion(language, score, statute, weighed, concepts)


def _most(opinions: Iterable[Opinion], sign: int) -> str:
    """Return the words that weighed most for (1) or against (-1) it, of those that tell something; any if none does."""
    parts = [(sign * part, word) for each in opinions for word, part in each.weighed.items() if sign * part > 0]
    telling = [part for part in parts if _is_evidence(part[1])]
    return ", ".join(word for _, word in sorted(telling or parts, key=lambda each: (-each[0], each[1]))[:WORDS_SHOWN])


def _is_evidence(word: str) -> bool:
    """Return whether a piece can speak for a concept.

    It has a word of more than one letter that is no function word; in Chinese two characters in a row, not both of them function
    characters (院 is in 法院, too).
    """
    for piece in word.split():
        if piece.isdecimal() or piece in _FUNCTION or len(piece) < 2:
            continue
        if not _CHINESE_RUN.fullmatch(piece) or not _FUNCTION_CHARACTERS.issuperset(piece):
            return True
    return False


def _where(word: str, texts: FeatureTexts) -> MatchedIn:
    """Return the first place of a word."""
    places: tuple[tuple[MatchedIn, PhraseMatch], ...]
    places = (
        ("name", texts.name),
        ("meaning", texts.meaning),
        ("chinese_meaning", texts.chinese_meaning),
        ("unit", texts.unit),
    )
    for place, text in places:
        if f" {word} " in PhraseMatch.of(text.text).words or (_CHINESE_RUN.match(word) and word in text.text):
            return place
    return "codes"


@cache
def _weights() -> dict[str, tuple[tuple[int, int], dict[str, tuple[int, int, str]]]]:
    """Language → both log odds of a feature without words, and each gram's two weights and the concept that it speaks for, if any."""
    cells = WEIGHTS.read_text(encoding="utf-8").removesuffix("\n").replace("\n", "\t").split("\t")
    languages = cells[::5]
    every = cells[1::5]
    concepts = cells[4::5]
    numbers = list(zip(map(int, cells[2::5]), map(int, cells[3::5]), strict=True))
    tables = {}
    for language in dict.fromkeys(languages):
        first = languages.index(language)
        part = slice(first + 1, first + languages.count(language))
        rows = ((*both, concept) for both, concept in zip(numbers[part], concepts[part], strict=True))
        tables[language] = (numbers[first], dict(zip(every[part], rows, strict=True)))
    return tables
