"""Fits the second opinion's weights to all labelled columns: ``python -m tests.compliance.fit_opinion``.

With ``--leave-out`` it fits one list at a time to the others instead and prints what that tells of it, with ``--curves`` for each limit.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression

from backend.compliance.assessment import texts_of
from backend.compliance.feature_list import read_feature_list
from backend.compliance.phrases import FeatureTexts
from backend.compliance.recall import _named
from backend.compliance.rule_pack import words
from backend.compliance.second_opinion import ASK, EVIDENCE, FLAG, UNIT, WEIGHTS, Language, evidence, grams

HERE = Path(__file__).parent
LISTS = (HERE / "opened.csv", HERE / "written.csv")
LEFT_OUT = ("8", "9", "10", "11", "12", "13")
LEARNED = "1-4"  # lists whose first look is not known by row: phrases were written from them
KEPT = {"en": 16000, "zh": 8000}  # grams with the largest weights
INVERSE_PENALTY = 5.0  # of the weights' squares (scikit-learn's C)
PRIOR = 0.1  # columns that each gram is taken to have been in besides, of those that matter and of the others
CONTRAST = {"en": 1.0, "zh": 0.5}  # how far a gram is scaled by how unlike its shares in both are
WRITTEN = 0.5  # what a column of ours counts when evidence of phrases is weighed

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Column:
    """A labelled column: what is said, of which list it is, what it is about, and what phrases found before anybody had read it."""

    texts: FeatureTexts
    written: bool
    of: str
    label: str
    concepts: frozenset[str]
    first: dict[str, str]


def columns(language: Language) -> list[Column]:
    """The labelled columns of a language; a positive one without concepts has those that phrases find."""
    named, found = _named(), []
    for file in LISTS:
        for row in read_feature_list(file, more=("language", "label", "concepts", "list", "first")):
            if row.more["language"] == language:
                texts, label = texts_of(row.feature), row.more["label"]
                own = row.more["concepts"].split() or (words().signs(texts) if label != "neither" else ())
                first = dict(sign.split(":") for sign in row.more["first"].split())
                concepts = frozenset(own) & named
                found.append(Column(texts, file is LISTS[1], row.more["list"], label, concepts, first))
    return found


def fit(every: Sequence[Sequence[str]], matters: Bools, language: Language) -> tuple[float, dict[str, float]]:
    """The intercept and each gram's weight: logistic regression of grams that two columns have, each over the square root of how
    many grams its column has, times how unlike its shares in columns that matter and in others are (Wang and Manning 2012); once
    for all, and once more for those with the largest weights.
    """
    counts = Counter(gram for own in every for gram in own)
    known = sorted(gram for gram, n in counts.items() if n > 1)
    for _ in range(2):
        table = _table(every, known)
        there = table.astype(bool).astype(float)
        of = [np.asarray(there[which].sum(0)).ravel() + PRIOR for which in (matters, ~matters)]
        unlike = np.abs(np.log(of[0] / of[0].sum()) - np.log(of[1] / of[1].sum()))
        scale = 1 - CONTRAST[language] + CONTRAST[language] * unlike
        model = LogisticRegression(C=INVERSE_PENALTY, solver="liblinear", random_state=0)
        model.fit(table @ diags(scale), matters)
        weights = dict(zip(known, (model.coef_[0] * scale).tolist(), strict=True))
        known = sorted(sorted(known, key=lambda gram: (-abs(weights[gram]), gram))[: KEPT[language]])
    return float(model.intercept_[0]), weights


def _table(every: Sequence[Sequence[str]], known: Sequence[str]) -> csr_matrix:
    index = {gram: at for at, gram in enumerate(known)}
    cells = [(row, index[gram], len(own) ** -0.5) for row, own in enumerate(every) for gram in own if gram in index]
    at_row, at_column, value = (np.array(part) for part in zip(*cells, strict=True))
    return csr_matrix((value, (at_row, at_column)), shape=(len(every), len(known)))


def said(every: Sequence[Sequence[str]], base: float, weights: dict[str, float]) -> Floats:
    """Log odds by the texts alone."""
    return base + np.array([sum(weights.get(gram, 0.0) for gram in own) / (len(own) or 1) ** 0.5 for own in every])


def weigh(found: Sequence[Column], scores: Floats, matters: Bools) -> tuple[float, dict[str, float]]:
    """What a unit of the texts' log odds counts, and what each thing counts that phrases found: logistic regression on columns of
    which the texts were scored without their list, and phrases by the words of the day before it was opened.
    """
    known = sorted({part for column in found for part in evidence(column.first)})
    table = np.array([[part in evidence(column.first) for part in known] for column in found], dtype=float)
    model = LogisticRegression(C=1.0, max_iter=1000)
    weight = np.where([column.written for column in found], WRITTEN, 1.0)
    model.fit(np.column_stack([scores, table]), matters, sample_weight=weight)
    slope, *own = model.coef_[0].tolist()
    return slope, {"": float(model.intercept_[0]), **dict(zip(known, own, strict=True))}


def speaks_for(every: Sequence[Sequence[str]], found: Sequence[Column]) -> dict[str, str]:
    """Gram → the concept of most of the columns that have it."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for own, column in zip(every, found, strict=True):
        for gram in own:
            counts[gram].update(column.concepts)
    return {gram: min(of, key=lambda concept: (-of[concept], concept)) for gram, of in counts.items() if of}


@dataclass(frozen=True, slots=True)
class Fitted:
    """The columns of a language, and the texts' log odds of each by the lists that it is not of, with the concept proposed."""

    language: Language
    found: list[Column]
    every: list[list[str]]
    matters: Bools
    of: NDArray[np.str_]
    scores: Floats
    about: list[str]

    @classmethod
    def apart(cls, language: Language) -> Fitted:
        """Fit to all lists but one, for each."""
        found = columns(language)
        every = [sorted(grams(language, column.texts)) for column in found]
        matters, of = (
            np.array([column.label != "neither" for column in found]),
            np.array([column.of for column in found]),
        )
        scores, about = np.zeros(len(found)), [""] * len(found)
        for left in sorted(set(of)):
            rest, out = np.flatnonzero(of != left), np.flatnonzero(of == left)
            base, weights = fit([every[at] for at in rest], matters[rest], language)
            speaks = speaks_for([every[at] for at in rest], [found[at] for at in rest])
            scores[out] = said([every[at] for at in out], base, weights)
            for at in out:
                parts: dict[str, float] = defaultdict(float)
                for gram in every[at]:
                    if weights.get(gram, 0.0) > 0 and gram in speaks:
                        parts[speaks[gram]] += weights[gram]
                about[at] = max(parts, key=lambda concept: (parts[concept], concept), default="")
        return cls(language, found, every, matters, of, scores, about)

    def weighed(self, *without: str) -> tuple[float, dict[str, float]]:
        """What phrases count, by all lists but some."""
        at = np.flatnonzero(~np.isin(self.of, (LEARNED, *without)))
        return weigh([self.found[row] for row in at], self.scores[at], self.matters[at])

    def totals(self) -> Floats:
        """Log odds of each column by the lists that it is not of."""
        total = np.full(len(self.found), np.nan)
        for left in LEFT_OUT:
            slope, own = self.weighed(left)
            for at in np.flatnonzero(self.of == left):
                parts = sum(own.get(part, 0.0) for part in evidence(self.found[at].first))
                total[at] = own[""] + slope * self.scores[at] + parts
        return total


def told(fitted: Fitted, total: Floats, flag: float, ask: float) -> tuple[Bools, Bools]:
    """Which columns are flagged, and which are flagged or asked about, by :func:`backend.compliance.second_opinion.reconsider`."""
    flags, named = [], []
    for column, score in zip(fitted.found, total, strict=True):
        strongest = next((each for each in EVIDENCE if each in column.first.values()), "")
        flags.append(strongest in ("finding", "single", "doubted") and score >= flag)
        named.append(strongest == "finding" or score >= ask)
    return np.array(flags), np.array(named)


def row(fitted: Fitted, flags: Bools, named: Bools, lists: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Hits and columns of each measure."""
    rows = np.isin(fitted.of, lists) & ~np.array([column.written for column in fitted.found])
    label = np.array([column.label for column in fitted.found])
    asked, right = named & ~flags, fitted.matters

    def share(of: Bools, hit: Bools) -> tuple[int, int]:
        return int((rows & of & hit).sum()), int((rows & of).sum())

    return {
        "statute": share(label == "statute", named),
        "flagged alone": share(label == "statute", flags),
        "proxies": share(label == "proxy", named),
        "precision": share(flags, right),
        "questions": share(np.ones_like(rows), asked),
        "questions right": share(asked, right),
    }


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def leave_out(curves: bool) -> None:
    """Print what is found of lists left out, one at a time, and how often the concept of a question is the labelled one."""
    for language in ("en", "zh"):
        fitted = Fitted.apart(language)
        total = fitted.totals()
        flags, named = told(fitted, total, FLAG[language], ASK[language])
        for lists in (*((each,) for each in LEFT_OUT), LEFT_OUT):
            found = row(fitted, flags, named, lists)
            cells = (f"{hits} of {n}, {hits / max(n, 1):.1%}" for hits, n in found.values())
            _say(
                f"| {language}, list{'s 8–13' if len(lists) > 1 else f' {lists[0]}'} | {found['questions'][1]:,} | {' | '.join(cells)} |"
            )
        known = [at for at, column in enumerate(fitted.found) if column.label != "neither" and not column.first]
        known = [at for at in known if fitted.of[at] != LEARNED and fitted.found[at].concepts]
        asked = [at for at in known if fitted.scores[at] >= ASK[language]]
        right = sum(fitted.about[at] in fitted.found[at].concepts for at in asked)
        _say(f"{language}: the concept proposed is a labelled one in {right} of {len(asked)}, {right / len(asked):.1%}")
        if curves:
            _curves(fitted, total)


def _curves(fitted: Fitted, total: Floats) -> None:
    """Mean and worst list for each limit."""
    for ask in np.arange(-4.0, 1.01, 0.2):
        none = np.zeros(len(total), dtype=bool)
        each = [row(fitted, none, told(fitted, total, 99.0, ask)[1], (left,)) for left in LEFT_OUT]
        _say(f"{fitted.language} ask {ask:+.1f}: " + _mean(each, ("statute", "proxies", "questions")))
    for flag in np.arange(0.0, 4.01, 0.2):
        flags = told(fitted, total, flag, 99.0)[0]
        each = [row(fitted, flags, flags, (left,)) for left in LEFT_OUT]
        _say(f"{fitted.language} flag {flag:+.1f}: " + _mean(each, ("flagged alone", "precision")))


def _mean(each: Sequence[dict[str, tuple[int, int]]], names: Sequence[str]) -> str:
    shares = {name: [found[name][0] / max(found[name][1], 1) for found in each] for name in names}
    return ", ".join(f"{name} {np.mean(of):.1%} (worst {min(of):.1%})" for name, of in shares.items())


def main() -> None:
    """Write the table."""
    lines = []
    for language in ("en", "zh"):
        fitted = Fitted.apart(language)
        slope, own = fitted.weighed()
        base, weights = fit(fitted.every, fitted.matters, language)
        about = speaks_for(fitted.every, fitted.found)
        lines.append(f"{language}\t\t{round(UNIT * (own.pop('') + slope * base))}\t\n")
        for gram, weight in (*own.items(), *((gram, slope * weight) for gram, weight in weights.items())):
            if rounded := round(UNIT * weight):
                concept = about.get(gram, "") if rounded > 0 and gram not in own else ""
                lines.append(f"{language}\t{gram}\t{rounded}\t{concept}\n")
    WEIGHTS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    if {"--leave-out", "--curves"} & set(sys.argv):
        leave_out("--curves" in sys.argv)
    else:
        main()
