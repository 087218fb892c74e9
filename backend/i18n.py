"""Text catalogues in English and Chinese (assets/texts), which the pages and the printed reports share; knows no model."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from backend.errors import ParameterError

CATALOGUES = files("assets") / "texts"
LANGUAGES = ("en", "zh")
LONG = 40  # letters of a meaning that is shortened
_EXPLAINED = re.compile(r":\s|\s\(|：|（")  # after these a meaning explains its values


class Catalogue:
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
        self._texts = catalogue(language)

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


def brief(meaning: str) -> str:
    """A feature's meaning without what explains its values, where it is long: for charts and sentences."""
    letters = len(meaning) + sum(letter > "\u2e80" for letter in meaning)  # Chinese ones are twice as wide
    return (_EXPLAINED.split(meaning)[0] or meaning) if letters > LONG else meaning


@cache
def catalogue(language: str) -> dict[str, str]:
    """All texts of one language: ``section.key`` → text; plurals as ``section.key.one`` and ``section.key.other``."""
    flat: dict[str, str] = {}

    def walk(prefix: str, node: dict[str, Any]) -> None:
        for key, value in node.items():
            if isinstance(value, dict):
                walk(f"{prefix}{key}.", value)
            else:
                flat[prefix + key] = value

    walk("", tomllib.loads((CATALOGUES / f"{language}.toml").read_text(encoding="utf-8")))
    return flat
