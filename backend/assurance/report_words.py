"""The words of a printed report, from the catalogues in assets/texts that the pages use too; knows no model."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from backend.errors import ParameterError

CATALOGUES = Path(__file__).resolve().parents[2] / "assets" / "texts"
LANGUAGES = ("en", "zh")


class Words:
    """One language's words: ``words("document.title", name=value)``.

    Raises
    ------
    ParameterError
        There is no catalogue in the language.
    """

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            raise ParameterError(f"The language is {language!r}; choose one of {', '.join(LANGUAGES)}.")
        self.language = language
        self._texts = _catalogue(language)

    def __call__(self, key: str, /, **values: object) -> str:
        """Find a text and fill it in."""
        text = self._texts[key]
        return text.format(**values) if values else text

    def named(self, prefix: str, name: str) -> str:
        """The text of a name that comes out of a result, or the name itself where the catalogue has none."""
        return self._texts.get(f"{prefix}{name}", name)

    def either(self, english: str, chinese: str) -> str:
        """The Chinese text where Chinese is chosen and given, else the English one."""
        return chinese if self.language == "zh" and chinese else english


@cache
def _catalogue(language: str) -> dict[str, str]:
    flat: dict[str, str] = {}

    def walk(prefix: str, node: dict[str, Any]) -> None:
        for key, value in node.items():
            if isinstance(value, dict):
                walk(f"{prefix}{key}.", value)
            else:
                flat[prefix + key] = value

    walk("", tomllib.loads((CATALOGUES / f"{language}.toml").read_text(encoding="utf-8")))
    return flat
