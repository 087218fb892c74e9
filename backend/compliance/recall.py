"""How much of what a list of labelled columns holds is found: counts and intervals, never a row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal, cast

from backend.compliance.assessment import texts_of
from backend.compliance.feature_list import read_feature_list
from backend.compliance.rule_pack import load_packs, words
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
        All rows, those with a meaning, those with a name alone, or those whose meaning stands in no earlier list.
    statute, proxies : WilsonShare
        Of the rows that a statute names, and of proxies: those found as what they are.
    precision : WilsonShare
        Of the flagged rows: those that are about a person's protected attribute or a proxy of it.
    silent : WilsonShare
        Of the rows that a statute names or that are proxies: those neither flagged nor listed as not understood.
    asked : WilsonShare
        Of the rows that are neither: those listed as not understood.
    """

    language: str
    part: Part
    rows: int
    statute: WilsonShare
    proxies: WilsonShare
    precision: WilsonShare
    silent: WilsonShare
    asked: WilsonShare


@dataclass(frozen=True, slots=True)
class RecallTotals:
    """The totals of a list, by language and part, its hash and the vocabulary's version."""

    sha256: str
    words: str
    parts: tuple[Recall, ...]


def measure(file: Path = UNSEEN) -> RecallTotals:
    """Totals of a list with the further columns language, label and concepts (several apart by spaces; none: any that is found counts,
    as where whoever labelled the list had not read the rules).

    A column `seen` marks rows whose meaning (or, without one, name) stands in an earlier list, under another name.

    Raises
    ------
    GlassleafError
        The list cannot be read, or a label or concept is none.
    """
    counts: dict[tuple[str, Part], Counter[str]] = {}
    patterns = {concept: words().patterns[concept] for concept in _named()}
    for row in read_feature_list(file, more=("language", "label", "concepts"), may=("seen",)):
        label, concepts = _label(row.line, row.more["label"]), row.more["concepts"].split()
        unknown = [concept for concept in concepts if concept not in words().concepts]
        if unknown:
            raise RulePackError(
                f"{file.name}, line {row.line}: found the concept {unknown[0]}, which there is none of."
            )
        texts = texts_of(row.feature)
        found = {concept for concept, pattern in patterns.items() if pattern.find(texts)}
        met: list[str] = [label, f"{label} found"] if found & set(concepts or found) else [label]
        if found:
            met += ["flagged", "flagged rightly"] if label != "neither" else ["flagged"]
        elif not words().explained(texts):
            met.append(f"{label} asked")
        elif label != "neither":
            met.append("silent")
        described = row.feature.described or row.feature.meaning_zh or row.feature.categories
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
        _share(n["statute found"], n["statute"]),
        _share(n["proxy found"], n["proxy"]),
        _share(n["flagged rightly"], n["flagged"]),
        silent=_share(n["silent"], n["statute"] + n["proxy"]),
        asked=_share(n["neither asked"], n["neither"]),
    )


def _named() -> set[str]:
    """Concepts that a rule names."""
    return {concept for pack in load_packs() for rule in pack.rules for concept in rule.looks_for}


def _label(line: int, label: str) -> Label:
    if label not in ("statute", "proxy", "neither"):
        raise RulePackError(f"line {line}: found the label {label!r}, expected statute, proxy or neither. Correct it.")
    return cast(Label, label)


def _share(hits: int, n: int) -> WilsonShare:
    if not n:
        return WilsonShare(0, 0, float("nan"), 0.0, 1.0)
    return WilsonShare(hits, n, hits / n, *wilson(hits / n, n))
