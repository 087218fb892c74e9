"""What names and meanings resemble where no phrase is found: character n-grams propose a concept and decide nothing.

They are fitted to the vocabulary's own words at first use, so that the result depends on nothing else. A misspelt or shortened
word is what they find.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from backend.compliance.assessment import texts_of
from backend.compliance.rule_pack import words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

    from backend.data.dictionary import Feature

LEAST = 0.58  # cosine similarity from which a word is proposed; tried on misspelt words of the examples
SHORTEST = 5  # letters of a word that is compared: shorter ones resemble too many


@dataclass(frozen=True, slots=True)
class Proposal:
    """A concept that a feature may be about, for a person to confirm.

    Attributes
    ----------
    concept : str
    word, resembles : str
        The feature's word, and the vocabulary's word that it resembles.
    similarity : float
        Cosine similarity of their character n-grams, 0–1.
    """

    concept: str
    word: str
    resembles: str
    similarity: float


def propose(feature: Feature) -> Proposal | None:
    """The concept whose word is most alike a word of the feature; None where none is alike enough."""
    texts = texts_of(feature)
    vectors, model, known = _model()
    own = sorted({word for text in (texts.name, texts.meaning) for word in text.words.split() if _compared(word)})
    if not own:
        return None
    alike = (model.transform(own) @ vectors.T).toarray()
    row, column = divmod(int(alike.argmax()), alike.shape[1])
    concept, resembles = known[column]
    best = float(alike[row, column])
    if best < LEAST or own[row] in words().affixes.known:
        return None
    return Proposal(concept, own[row], resembles, round(best, 2))


def _compared(word: str) -> bool:
    return len(word) >= SHORTEST and word.isalpha() and word not in _common()


@cache
def _common() -> frozenset[str]:
    """Words that stand in names of every kind."""
    lists = words().lists
    return frozenset(
        word for name in ("filler", "before", "after", "thing", "everyday") for word in lists.get(name, ())
    )


@cache
def _model() -> tuple[csr_matrix, TfidfVectorizer, list[tuple[str, str]]]:
    """The vocabulary's words as vectors, and which concept each belongs to; a word of several concepts belongs to none."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - half a second that most commands do not need

    owners: dict[str, set[str]] = {}
    for concept, pattern in words().patterns.items():
        for phrase in pattern.phrases:
            alone = phrase.source.split()
            if len(alone) == 1:
                for word in filter(_compared, phrase.first):
                    owners.setdefault(word, set()).add(concept)
    known = sorted((min(of), word) for word, of in owners.items() if len(of) == 1)
    model = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True)
    return model.fit_transform([word for _, word in known]), model, known
