"""The words of the glossary in both languages, which the help page shows and docs/glossary.md is written from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from backend.i18n import LANGUAGES

_SEE = re.compile(r"[:;：；] ?(?:see|见) \[[^\]]+\]\(\w+\.md\)")  # another document


@dataclass(frozen=True)
class Term:
    """One idea: its word and its meaning (Markdown, which may end in "see another document") by language."""

    words: Mapping[str, str]
    meanings: Mapping[str, str]

    def meaning(self, language: str) -> str:
        """Return what it means, for a reader without the other documents."""
        return _SEE.sub("", self.meanings[language])

    def has(self, typed: str) -> bool:
        """Return whether the typed text is in its word or its meaning, in either language."""
        return any(typed.casefold() in text.casefold() for text in (*self.words.values(), *self.meanings.values()))


@cache
def terms() -> tuple[Term, ...]:
    """Return all words, in the English order."""
    rows = tomllib.loads((files("assets") / "glossary.toml").read_text(encoding="utf-8"))["term"]
    every_term = []
    for row in rows:
        words = {name: row[name] for name in LANGUAGES}
        meanings = {name: row[f"meaning_{name}"] for name in LANGUAGES}
        every_term.append(Term(words, meanings))
    return tuple(every_term)
