"""The language in which somebody wants a report or a notice; refused if there is no catalogue in it."""

from __future__ import annotations

from backend.errors import ParameterError
from backend.i18n import LANGUAGES, Catalogue


def words_in(language: str) -> Catalogue:
    """Return the words of a language.

    Raises
    ------
    ParameterError
        If there is no catalogue in the language.
    """
    if language not in LANGUAGES:
        raise ParameterError("unknown_language", language=language, known=LANGUAGES)
    return Catalogue(language)
