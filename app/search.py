"""What can be found from anywhere: pages, features, findings, trees, models and words; knows no widget.

People are left out: a link would put the id into an address. A user who may score finds one by the whole id (app/panels/finder.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app import view_models
from app.texts import Texts, code, markdown

if TYPE_CHECKING:
    from app.glossary import Term
    from app.view_models import View

BOTH = tuple(Texts(language) for language in ("en", "zh"))  # in whichever language a user types


Groups = Mapping[str, Iterable["Hit"]]


@dataclass(frozen=True)
class Hit:
    """Something found: its words as Markdown, what it is found by, and its place."""

    words: str
    text: str
    page: str
    place: Mapping[str, str] = field(default_factory=dict)


def everything(
    t: Texts, names: Iterable[str], models: Mapping[str, str], view: View | None, terms: Iterable[Term]
) -> Groups:
    """Kind → all that can be found; `models` is id → name, `view` the chosen one."""
    groups = {"pages": tuple(_pages(t, names)), "models": tuple(_models(models))}
    if view is not None:
        groups |= {
            "features": tuple(_features(t, view)),
            "findings": tuple(_findings(t, view)),
            "trees": tuple(_trees(t, view)),
        }
    return groups | {"terms": tuple(_terms(t, terms))}


def hits(groups: Groups, typed: str) -> dict[str, list[Hit]]:
    """Return kind → the entries that match all typed words; those that begin with the first word come first."""
    typed_words = typed.casefold().split()
    if not typed_words:
        return {}
    by_kind = {}
    for kind, group in groups.items():
        matching = [hit for hit in group if _matches(typed_words, hit.text)]
        if matching:
            by_kind[kind] = sorted(matching, key=lambda hit: not _begins(typed_words, hit))
    return by_kind


def _matches(typed_words: list[str], text: str) -> bool:
    """Return whether a text has all words, at the beginning of a word ("late" is not in "simulated"); 3 does not find 30."""
    return all(re.search(_pattern(word), text) for word in typed_words)


def _pattern(word: str) -> str:
    begins = r"(?<![a-z0-9])" if word[0].isascii() else ""
    return begins + re.escape(word) + (r"(?!\d)" if word.isdecimal() else "")


def _begins(typed_words: list[str], hit: Hit) -> bool:
    return hit.text.startswith(typed_words[0])


def _text(*parts: str) -> str:
    return " ".join(parts).casefold()


def _pages(t: Texts, names: Iterable[str]) -> Iterator[Hit]:
    """Pages, by title and question."""
    for name in names:
        yield Hit(
            t(f"{name}.title"),
            _text(*(write(f"{name}.{part}") for write in BOTH for part in ("title", "question"))),
            name,
        )


def _features(t: Texts, view: View) -> Iterator[Hit]:
    """Features of the model's dictionary, by column name and meaning."""
    for _, feature in view.model.dictionary:
        words = f"{markdown(t.brief(feature))} · {code(feature.name)}"
        place = {"feature": feature.name, "search": feature.name}
        yield Hit(words, _text(feature.name, feature.meaning.en, feature.meaning.zh), "features", place)


def _findings(t: Texts, view: View) -> Iterator[Hit]:
    """Findings, by rule, law and feature."""
    for finding in view.compliance.findings:
        title = t.text(finding.title)
        meaning = t.text(finding.meaning)
        names = [finding.feature, finding.rule_id]
        for text in (finding.title, finding.meaning, finding.citation, finding.pack):
            names += [text.en, text.zh]
        place = {"finding": view_models.key_of(finding)}
        yield Hit(markdown(t("words.says", who=title, said=meaning)), _text(*names), "compliance", place)


def _trees(t: Texts, view: View) -> Iterator[Hit]:
    """Trees, by number."""
    for number in range(1, len(view.model.trees) + 1):
        names = (write("structure.tree", tree=number) for write in BOTH)
        yield Hit(t("structure.tree", tree=number), _text(*names), "structure", {"tree": str(number)})


def _models(names: Mapping[str, str]) -> Iterator[Hit]:
    """Models, by name and id; `names` is id → name."""
    for model_id, name in names.items():
        yield Hit(f"{markdown(name)} · `{model_id[:8]}`", _text(model_id, name), "overview", {"model": model_id})


def _terms(t: Texts, glossary: Iterable[Term]) -> Iterator[Hit]:
    """Words of the glossary, by either language's word."""
    for term in glossary:
        yield Hit(
            markdown(term.words[t.language]), _text(*term.words.values()), "help", {"term": term.words[t.language]}
        )
