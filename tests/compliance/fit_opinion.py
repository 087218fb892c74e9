"""Fits the second opinion's weights to all labelled columns: ``python -m tests.compliance.fit_opinion``."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from backend.compliance.assessment import texts_of
from backend.compliance.feature_list import read_feature_list
from backend.compliance.phrases import FeatureTexts
from backend.compliance.recall import _named
from backend.compliance.rule_pack import words
from backend.compliance.second_opinion import UNIT, WEIGHTS, Language, grams

HERE = Path(__file__).parent
LISTS = (HERE / "opened.csv", HERE / "written.csv")
KEPT = {"en": 16000, "zh": 8000}  # grams with the largest weights; more changed no figure
INVERSE_PENALTY = 8.0  # of the weights' squares (scikit-learn's C); 3 and 20 did no better on lists left out

Column = tuple[FeatureTexts, bool, frozenset[str]]  # what is said, whether it matters, and by which concepts


def columns(language: Language) -> list[Column]:
    """The labelled columns of a language; a positive one without concepts has those that phrases find."""
    named, found = _named(), []
    for file in LISTS:
        for row in read_feature_list(file, more=("language", "label", "concepts")):
            if row.more["language"] == language:
                texts, matters = texts_of(row.feature), row.more["label"] != "neither"
                own = row.more["concepts"].split() or (words().signs(texts) if matters else ())
                found.append((texts, matters, frozenset(own) & named))
    return found


def fit(every: list[list[str]], matters: NDArray[np.bool_], kept: int) -> tuple[float, dict[str, float]]:
    """The intercept and each gram's weight: logistic regression of grams that two columns have, each over the square root of how
    many grams its column has; once for all, and once more for those with the largest weights.
    """
    counts = Counter(gram for own in every for gram in own)
    known = sorted(gram for gram, n in counts.items() if n > 1)
    for _ in range(2):
        index = {gram: at for at, gram in enumerate(known)}
        cells = [(row, index[gram], len(own) ** -0.5) for row, own in enumerate(every) for gram in own if gram in index]
        at_row, at_column, value = (np.array(part) for part in zip(*cells, strict=True))
        table = csr_matrix((value, (at_row, at_column)), shape=(len(every), len(known)))
        model = LogisticRegression(C=INVERSE_PENALTY, solver="liblinear", random_state=0).fit(table, matters)
        weights = dict(zip(known, model.coef_[0].tolist(), strict=True))
        known = sorted(sorted(known, key=lambda gram: (-abs(weights[gram]), gram))[:kept])
    return float(model.intercept_[0]), weights


def speaks_for(every: list[list[str]], concepts: list[frozenset[str]]) -> dict[str, str]:
    """Gram → the concept of most of the columns that have it."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for own, about in zip(every, concepts, strict=True):
        for gram in own:
            counts[gram].update(about)
    return {gram: min(of, key=lambda concept: (-of[concept], concept)) for gram, of in counts.items() if of}


def main() -> None:
    """Write the table."""
    lines = []
    for language in ("en", "zh"):
        found = columns(language)
        every = [sorted(grams(language, texts)) for texts, _, _ in found]
        base, weights = fit(every, np.array([matters for _, matters, _ in found]), KEPT[language])
        about = speaks_for(every, [concepts for _, _, concepts in found])
        lines.append(f"{language}\t\t{round(UNIT * base)}\t\n")
        for gram, weight in weights.items():
            if rounded := round(UNIT * weight):
                lines.append(f"{language}\t{gram}\t{rounded}\t{about.get(gram, '') if rounded > 0 else ''}\n")
    WEIGHTS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
