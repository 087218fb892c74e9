"""What names and meanings resemble where no phrase is found and nothing explains them: character n-grams ask, and decide nothing.

They are fitted to the vocabulary's own words at first use, so that the result depends on nothing else. A misspelt or shortened
word is what they find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backend.compliance.concepts import MatchedIn, Sign
from backend.compliance.phrases import FeatureTexts
from backend.compliance.rule_pack import words

LEAST = 0.62  # cosine similarity from which a word is proposed; tried on misspelt words of the examples
SHORTEST = 5  # letters of a word that is compared: shorter ones resemble too many
GRAMS = (2, 3, 4)  # characters of a part of a word that is compared, with a space before and after the word


def propose(texts: FeatureTexts) -> tuple[str, Sign] | None:
    """The concept whose word is most alike a word of the feature, and that word; None where none is alike enough."""
    own = sorted({word for text in (texts.name, texts.meaning) for word in text.words.split() if _compared(word)})
    if not own:
        return None
    alike = np.array([_similarities(word) for word in own])
    row, column = divmod(int(alike.argmax()), alike.shape[1])
    concept, resembles = _vocabulary().known[column]
    best = float(alike[row, column])
    if best < LEAST or own[row] in words().affixes.known:
        return None
    where: MatchedIn = "name" if own[row] in texts.name.has else "meaning"
    return concept, Sign(own[row], where, "spelling", resembles)


def _compared(word: str) -> bool:
    return len(word) >= SHORTEST and word.isalpha() and word not in _common()


@cache
def _common() -> frozenset[str]:
    """Words that stand in names of every kind."""
    lists = words().lists
    return frozenset(
        word for name in ("filler", "before", "after", "thing", "everyday") for word in lists.get(name, ())
    )


class _Vocabulary(NamedTuple):
    """The vocabulary's words, each of one concept, and their n-grams.

    Attributes
    ----------
    known : list of (str, str)
        Concept and word.
    rarity : mapping of str to float
        Of an n-gram: its smoothed inverse document frequency.
    holders : mapping of str to (ndarray of int64, ndarray of float64)
        N-gram → which words hold it, and its part of each word's vector, whose length is 1.
    """

    known: list[tuple[str, str]]
    rarity: Mapping[str, float]
    holders: Mapping[str, tuple[NDArray[np.int64], NDArray[np.float64]]]


def _similarities(word: str) -> NDArray[np.float64]:
    """``(words of the vocabulary,)``: cosine similarity of their n-grams and a word's, 0–1."""
    vocabulary = _vocabulary()
    alike = np.zeros(len(vocabulary.known))
    for gram, weight in _vector(_grams(word), vocabulary.rarity).items():
        held, weights = vocabulary.holders[gram]
        alike[held] += weight * weights
    return alike


def _grams(word: str) -> Counter[str]:
    """How often each n-gram stands in a word."""
    letters = f" {word} "
    return Counter(letters[i : i + n] for n in GRAMS for i in range(len(letters) - n + 1))


def _vector(grams: Mapping[str, int], rarity: Mapping[str, float]) -> dict[str, float]:
    """N-gram → its weight (1 + log tf) · idf in a vector of length 1; n-grams that no word of the vocabulary has are left out."""
    weights = {gram: (1 + log(count)) * rarity[gram] for gram, count in grams.items() if gram in rarity}
    length = sqrt(sum(weight**2 for weight in weights.values())) or 1.0
    return {gram: weight / length for gram, weight in weights.items()}


@cache
def _vocabulary() -> _Vocabulary:
    """The vocabulary's words as vectors; a word of several concepts belongs to none."""
    owners: dict[str, set[str]] = {}
    for concept, pattern in words().patterns.items():
        for phrase in pattern.phrases:
            alone = phrase.source.split()
            if len(alone) == 1:
                for word in filter(_compared, phrase.first):
                    owners.setdefault(word, set()).add(concept)
    known = sorted((min(of), word) for word, of in owners.items() if len(of) == 1)
    grams = [_grams(word) for _, word in known]
    in_words = Counter(gram for of_word in grams for gram in of_word)
    rarity = {gram: log((1 + len(known)) / (1 + count)) + 1 for gram, count in in_words.items()}
    holders: dict[str, list[tuple[int, float]]] = {}
    for i, of_word in enumerate(grams):
        for gram, weight in _vector(of_word, rarity).items():
            holders.setdefault(gram, []).append((i, weight))
    arrays = {
        gram: (np.array([i for i, _ in held], dtype=np.int64), np.array([weight for _, weight in held]))
        for gram, held in holders.items()
    }
    return _Vocabulary(known, rarity, arrays)
