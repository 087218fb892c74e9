"""How much of what a list of labelled columns holds is found: counts and intervals, never a row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal, cast

from backend.compliance.assessment import is_asked, signs_of, texts_of
from backend.compliance.feature_list import read_feature_list
from backend.compliance.rule_pack import load_packs, words
from backend.data.validation import place
from backend.errors import RulePackError
from backend.fairness.intervals import wilson

UNSEEN = Path(str(files("backend.compliance") / "lists" / "unseen.csv"))
Label = Literal["statute", "proxy", "neither"]
Part = Literal["all", "meaning", "name", "new"]


@dataclass(frozen=True, slots=True)
class WilsonShare:
    """A share with its 95 % interval (Wilson)."""

    hits: int
    n: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Recall:
    """What was found of one language's rows.

    Attributes
    ----------
    language : {"en", "zh"}
    part : {"all", "meaning", "name", "new"}
        All rows, those with a meaning, those with a name alone, or those whose meaning is in no earlier list.
    statute, proxies : WilsonShare
        Of the rows that a statute names, and of proxies: those flagged as what they are, or asked about.
    statute_flagged, proxies_flagged : WilsonShare
        Of the same rows: those flagged.
    precision : WilsonShare
        Of the flagged rows: those that are about a person's protected attribute or a proxy of it.
    precision_asked : WilsonShare
        The same of all that are flagged or asked about.
    questions : WilsonShare
        Of all rows: those that are asked about, and not flagged.
    questions_right : WilsonShare
        Of these: those that are about a person's protected attribute or a proxy of it.
    silent : WilsonShare
        Of the rows that a statute names or that are proxies: those neither flagged, asked about nor listed as not understood.
    not_understood : WilsonShare
        Of the rows that are neither: those listed as not understood.
    """

    language: str
    part: Part
    rows: int
    statute: WilsonShare
    statute_flagged: WilsonShare
    proxies: WilsonShare
    proxies_flagged: WilsonShare
    precision: WilsonShare
    precision_asked: WilsonShare
    questions: WilsonShare
    questions_right: WilsonShare
    silent: WilsonShare
    not_understood: WilsonShare


@dataclass(frozen=True, slots=True)
class RecallTotals:
    """The totals of a list, by language and part, its hash and the vocabulary's version."""

    sha256: str
    words: str
    parts: tuple[Recall, ...]


def measure(file: Path = UNSEEN) -> RecallTotals:
    """Totals of a list with the further columns language, label and concepts (several apart by spaces; none: any that is found counts,
    as if the labeller of the list had not read the rules).

    A column `seen` marks rows whose meaning (or, without one, name) is in an earlier list, under another name.

    Raises
    ------
    GlassleafError
        The list cannot be read, or a label or concept is unknown.
    """
    counts: dict[tuple[str, Part], Counter[str]] = {}
    concepts_named = _named()
    for row in read_feature_list(file, more=("language", "label", "concepts"), may=("seen",)):
        label = _label(row.line, row.more["label"])
        concepts = row.more["concepts"].split()
        unknown = [concept for concept in concepts if concept not in words().concepts]
        if unknown:
            raise RulePackError("list_unknown_concept", where=place(file.name, row.line), concept=unknown[0])
        texts = texts_of(row.feature)
        signs = {concept: sign for concept, sign in signs_of(texts).items() if concept in concepts_named}
        flags = {concept for concept, sign in signs.items() if sign.strength == "finding"}
        questions = {concept for concept, sign in signs.items() if is_asked(concept, sign)}
        met: list[str] = [label]
        for what, hits in (("flagged", flags), ("named", flags | questions)):
            if hits & set(concepts or hits):
                met.append(f"{label} {what}")
            if hits:
                met.append(what)
            if hits and label != "neither":
                met.append(f"{what} rightly")
        if not flags | questions:
            passed = words().explained(texts) and all(s.strength not in ("weak", "unlikely") for s in signs.values())
            met.append(f"{label} passed" if passed else f"{label} not understood")
        described = row.feature.described or row.feature.meaning.zh or row.feature.categories
        new: tuple[Part, ...] = () if row.more["seen"] else ("new",)
        parts: tuple[Part, ...] = ("all", "meaning" if described else "name", *new)
        for part in parts:
            counts.setdefault((row.more["language"], part), Counter()).update(met)
    recalls = tuple(_recall(language, part, n) for (language, part), n in sorted(counts.items()))
    return RecallTotals(sha256(file.read_bytes()).hexdigest(), words().version, recalls)


def _recall(language: str, part: Part, n: Counter[str]) -> Recall:
    return Recall(
        language,
        part,
        n["statute"] + n["proxy"] + n["neither"],
        statute=_share(n["statute named"], n["statute"]),
        statute_flagged=_share(n["statute flagged"], n["statute"]),
        proxies=_share(n["proxy named"], n["proxy"]),
        proxies_flagged=_share(n["proxy flagged"], n["proxy"]),
        precision=_share(n["flagged rightly"], n["flagged"]),
        precision_asked=_share(n["named rightly"], n["named"]),
        questions=_share(n["named"] - n["flagged"], n["statute"] + n["proxy"] + n["neither"]),
        questions_right=_share(n["named rightly"] - n["flagged rightly"], n["named"] - n["flagged"]),
        silent=_share(n["statute passed"] + n["proxy passed"], n["statute"] + n["proxy"]),
        not_understood=_share(n["neither not understood"], n["neither"]),
    )


def _named() -> set[str]:
    """Concepts that a rule names."""
    return {concept for pack in load_packs() for rule in pack.rules for concept in rule.looks_for}


def _label(line: int, label: str) -> Label:
    if label not in ("statute", "proxy", "neither"):
        raise RulePackError("list_unknown_label", line=line, label=label)
    return cast(Label, label)


def _share(hits: int, n: int) -> WilsonShare:
    if not n:
        return WilsonShare(0, 0, float("nan"), 0.0, 1.0)
    return WilsonShare(hits, n, hits / n, *wilson(hits / n, n))
