"""The language in which a reader wants a report or a notice, and how texts that are alike are said at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from backend.data.dates import MONTHS
from backend.errors import ParameterError
from backend.i18n import LANGUAGES, Catalogue

# a word with the blank behind it; of Chinese a letter; a number whole
WORD_PIECES = re.compile(r"[0-9]+|[^\W\d]*[a-zA-Z]\S*\s*|\s+|.", re.DOTALL)


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


def said_at_once(texts: Sequence[str], words: Callable[..., str]) -> str:
    """Return several texts as one where they differ in one place alone, such as a month; else one behind the other.

    Months and numbers are in their order.

    Parameters
    ----------
    words : callable
        A catalogue, or what a page has of it.

    Examples
    --------
    >>> said_at_once(["Bill of May 2005: higher", "Bill of June 2005: higher"], Catalogue("en"))
    'Bill of May and June 2005: higher'
    >>> said_at_once(["2005 年 10 月账单：偏高", "2005 年 9 月账单：偏高"], Catalogue("zh"))
    '2005 年 9、10 月账单：偏高'
    """
    texts = list(dict.fromkeys(texts))
    pieces = [WORD_PIECES.findall(text) for text in texts]
    shortest = min(len(words_of_text) for words_of_text in pieces)
    ahead = 0
    while ahead < shortest and len({words_of_text[ahead] for words_of_text in pieces}) == 1:
        ahead += 1
    behind = 0
    while behind < shortest - ahead and len({words_of_text[-1 - behind] for words_of_text in pieces}) == 1:
        behind += 1
    differ = ["".join(words_of_text[ahead : len(words_of_text) - behind]) for words_of_text in pieces]
    alike = ahead + behind
    if (
        len(texts) == 1
        or not all(part.strip() for part in differ)
        or alike < max(len(words_of_text) for words_of_text in pieces) - alike
    ):
        return words("notice.between").join(texts)
    first = "".join(pieces[0][:ahead])
    last = "".join(pieces[0][len(pieces[0]) - behind :])
    room = " " if differ[0].endswith(" ") else ""
    return first + _listed(_in_order([part.strip() for part in differ]), words) + room + last


def _in_order(parts: Sequence[str]) -> list[str]:
    """Return months and numbers, the earliest and the smallest first; anything else as it is."""
    if all(part.lower() in MONTHS for part in parts):
        return sorted(parts, key=lambda month: int(MONTHS[month.lower()]))
    if all(part.isdecimal() for part in parts):
        return sorted(parts, key=int)
    return list(parts)


def _listed(parts: Sequence[str], words: Callable[..., str]) -> str:
    """Return "May, June and July"."""
    *others, last = parts
    return words("notice.and", first=words("words.comma").join(others), last=last)
