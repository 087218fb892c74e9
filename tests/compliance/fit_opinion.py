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
from backend.compliance.second_opinion import ASK, ASK_STATUTE, EVIDENCE, FLAG, UNIT, WEIGHTS, Language, evidence, grams

HERE = Path(__file__).parent
LISTS = (HERE / "opened.csv", HERE / "written.csv")
LEFT_OUT = ("8", "9", "10", "11", "12", "13", "14")
LATER = ("16",)  # lists that were opened after the last fit, which knows nothing of them
LEARNED = "1-4"  # lists whose first look is not known by row: phrases were written from them
KEPT = {"en": 16000, "zh": 8000}  # grams with the largest weights
INVERSE_PENALTY = 5.0  # of the weights' squares (scikit-learn's C)
PRIOR = 0.1  # columns that each gram is taken to have been in besides, of those that matter and of the others
CONTRAST = {"en": 1.0, "zh": 0.5}  # how far a gram is scaled by how unlike its shares in both are
WRITTEN = 0.5  # what a column of ours counts
# Of the columns that have a gram, the share that has to be about a concept, and how many at least; more cost recall in English.
SPEAKS = {"en": (0.0, 1), "zh": (0.25, 2)}
ALIKE, TWICE = (
    ("12", "13", "14"),
    2.0,
)  # lists of whole tables, labelled by the rules that the next is labelled by, and what a column counts

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Weights = tuple[float, dict[str, float]]  # of a column without words, and by gram or by what phrases found


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
            if row.more["language"] == language and row.more["list"] not in LATER:
                texts, label = texts_of(row.feature), row.more["label"]
                own = row.more["concepts"].split() or (words().signs(texts) if label != "neither" else ())
                first = dict(sign.split(":") for sign in row.more["first"].split())
                concepts = frozenset(own) & named
                found.append(Column(texts, file is LISTS[1], row.more["list"], label, concepts, first))
    return found


def fit(every: Sequence[Sequence[str]], matters: Bools, counts_as: Floats, language: Language) -> Weights:
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
        model.fit(table @ diags(scale), matters, sample_weight=counts_as)
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


def weigh(found: Sequence[Column], scores: Floats, matters: Bools) -> tuple[list[float], Weights]:
    """What a unit of each of the texts' log odds counts, and what each thing counts that phrases found: logistic regression on columns
    of which the texts were scored without their list, and phrases by the words of the day before it was opened.
    """
    known = sorted({part for column in found for part in evidence(column.first)})
    table = np.array([[part in evidence(column.first) for part in known] for column in found], dtype=float)
    model = LogisticRegression(C=1.0, max_iter=2000)
    weight = np.where([column.written for column in found], WRITTEN, 1.0)
    model.fit(np.column_stack([scores, table]), matters, sample_weight=weight)
    slopes, own = np.split(model.coef_[0], [scores.shape[1]])
    return slopes.tolist(), (float(model.intercept_[0]), dict(zip(known, own.tolist(), strict=True)))


def speaks_for(every: Sequence[Sequence[str]], found: Sequence[Column], language: Language) -> dict[str, str]:
    """Return gram → the concept of most of the columns that have it, over the square root of how many columns have the concept at all.

    A gram speaks for no concept if too few of the columns that have it are about it (:data:`SPEAKS`): 频率 for no religion because of
    one column on how often somebody prays.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for own, column in zip(every, found, strict=True):
        for gram in own:
            counts[gram].update(column.concepts)
    columns_with = Counter(gram for own in every for gram in own)
    all_of = Counter(concept for column in found for concept in column.concepts)
    share, least = SPEAKS[language]
    about = {}
    for gram, of in counts.items():
        if not of:
            continue
        concept = min(of, key=lambda each: (-of[each] / all_of[each] ** 0.5, each))
        if of[concept] >= max(least, share * columns_with[gram]):
            about[gram] = concept
    return about


@dataclass(frozen=True, slots=True)
class Fitted:
    """The columns of a language, and the texts' log odds of each by the lists that it is not of, with the concept proposed.

    Attributes
    ----------
    answers : (2, n)
        Whether a column is about an attribute or a proxy, and whether a statute names it.
    scores : (n, 2)
        The texts' log odds of both.
    """

    language: Language
    found: list[Column]
    every: list[list[str]]
    answers: Bools
    counts_as: Floats
    of: NDArray[np.str_]
    scores: Floats
    about: list[str]

    @classmethod
    def apart(cls, language: Language) -> Fitted:
        """Fit to all lists but one, for each."""
        found = columns(language)
        every = [sorted(grams(language, column.texts)) for column in found]
        of = np.array([column.of for column in found])
        label = np.array([column.label for column in found])
        answers = np.array([label != "neither", label == "statute"])
        written = [column.written for column in found]
        counts_as = np.where(written, WRITTEN, np.where(np.isin(of, ALIKE), TWICE, 1.0))
        scores, about = np.zeros((len(found), 2)), [""] * len(found)
        for left in sorted(set(of)):
            rest, out = np.flatnonzero(of != left), np.flatnonzero(of == left)
            speaks = speaks_for([every[at] for at in rest], [found[at] for at in rest], language)
            for which, answer in enumerate(answers):
                base, weights = fit([every[at] for at in rest], answer[rest], counts_as[rest], language)
                scores[out, which] = said([every[at] for at in out], base, weights)
                if which:
                    continue
                for at in out:
                    parts: dict[str, float] = defaultdict(float)
                    for gram in every[at]:
                        if weights.get(gram, 0.0) > 0 and gram in speaks:
                            parts[speaks[gram]] += weights[gram]
                    about[at] = max(parts, key=lambda concept: (parts[concept], concept), default="")
        return cls(language, found, every, answers, counts_as, of, scores, about)

    def weighed(self, answer: Bools, *without: str) -> tuple[list[float], Weights]:
        """What texts and phrases count, by all lists but some."""
        at = np.flatnonzero(~np.isin(self.of, (LEARNED, *without)))
        return weigh([self.found[row] for row in at], self.scores[at], answer[at])

    def totals(self) -> Floats:
        """Both log odds of each column by the lists that it is not of."""
        total = np.full((2, len(self.found)), np.nan)
        for which, answer in enumerate(self.answers):
            for left in LEFT_OUT:
                slopes, (base, own) = self.weighed(answer, left)
                for at in np.flatnonzero(self.of == left):
                    parts = sum(own.get(part, 0.0) for part in evidence(self.found[at].first))
                    total[which, at] = base + self.scores[at] @ slopes + parts
        return total

    def fitted(self) -> list[str]:
        """The table's lines."""
        texts = [fit(self.every, answer, self.counts_as, self.language) for answer in self.answers]
        tables: list[dict[str, float]] = []
        for answer in self.answers:
            slopes, (base, own) = self.weighed(answer)
            table = {"": base, **own}
            for slope, (text_base, weights) in zip(slopes, texts, strict=True):
                table[""] += slope * text_base
                for gram, weight in weights.items():
                    table[gram] = table.get(gram, 0.0) + slope * weight
            tables.append(table)
        about = speaks_for(self.every, self.found, self.language)
        lines = []
        for gram in dict.fromkeys((*tables[0], *tables[1])):
            first, second = (round(UNIT * table.get(gram, 0.0)) for table in tables)
            if first or second or not gram:
                concept = about.get(gram, "") if first > 0 else ""
                lines.append(f"{self.language}\t{gram}\t{first}\t{second}\t{concept}\n")
        return lines


def told(fitted: Fitted, total: Floats, flag: float, ask: float, ask_statute: float) -> tuple[Bools, Bools]:
    """Which columns are flagged, and which are flagged or asked about, by :func:`backend.compliance.second_opinion.reconsider`."""
    strongest = [next((each for each in EVIDENCE if each in column.first.values()), "") for column in fitted.found]
    flags = np.isin(strongest, ("finding", "single", "doubted")) & (total[0] >= flag)
    return flags, flags | (np.array(strongest) == "finding") | (total[0] >= ask) | (total[1] >= ask_statute)


def row(fitted: Fitted, flags: Bools, named: Bools, lists: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Hits and columns of each measure."""
    rows = np.isin(fitted.of, lists) & ~np.array([column.written for column in fitted.found])
    label = np.array([column.label for column in fitted.found])
    asked, right = named & ~flags, fitted.answers[0]

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
        flags, named = told(fitted, total, FLAG[language], ASK[language], ASK_STATUTE[language])
        every = [row(fitted, flags, named, (left,)) for left in LEFT_OUT]
        for name, found in zip((*LEFT_OUT, "s 8–14"), (*every, row(fitted, flags, named, LEFT_OUT)), strict=True):
            cells = (f"{hits} of {n}, {hits / max(n, 1):.1%}" for hits, n in found.values())
            list_name = f"list{name}" if name.startswith("s") else f"list {name}"
            _say(f"| {language}, {list_name} | {found['questions'][1]:,} | {' | '.join(cells)} |")
        _say(f"{language}, mean: {_mean(every, tuple(every[0]))}")
        known = [at for at, column in enumerate(fitted.found) if column.label != "neither" and not column.first]
        known = [at for at in known if fitted.of[at] != LEARNED and fitted.found[at].concepts and named[at]]
        right = sum(fitted.about[at] in fitted.found[at].concepts for at in known)
        _say(f"{language}: the concept proposed is a labelled one in {right} of {len(known)}, {right / len(known):.1%}")
        if curves:
            _curves(fitted, total)


def _curves(fitted: Fitted, total: Floats) -> None:
    """Mean and worst list for each limit."""
    flag = FLAG[fitted.language]
    for ask_statute in np.arange(-4.0, -0.99, 0.2):
        for ask in np.arange(-3.0, 1.01, 0.5):
            flags, named = told(fitted, total, flag, ask, ask_statute)
            each = [row(fitted, flags, named, (left,)) for left in LEFT_OUT]
            _say(
                f"{fitted.language} ask {ask:+.1f} {ask_statute:+.1f}: "
                + _mean(each, ("statute", "proxies", "questions"))
            )
    for flag in np.arange(0.0, 4.01, 0.1):
        flags, named = told(fitted, total, flag, 99.0, 99.0)
        each = [row(fitted, flags, named, (left,)) for left in LEFT_OUT]
        _say(f"{fitted.language} flag {flag:+.1f}: " + _mean(each, ("flagged alone", "precision")))


def _mean(each: Sequence[dict[str, tuple[int, int]]], names: Sequence[str]) -> str:
    shares = {name: [found[name][0] / max(found[name][1], 1) for found in each] for name in names}
    return ", ".join(f"{name} {np.mean(of):.1%} (worst {min(of):.1%})" for name, of in shares.items())


def main() -> None:
    """Write the table."""
    WEIGHTS.write_text("".join(line for each in ("en", "zh") for line in Fitted.apart(each).fitted()), encoding="utf-8")


if __name__ == "__main__":
    if {"--leave-out", "--curves"} & set(sys.argv):
        leave_out("--curves" in sys.argv)
    else:
        main()
