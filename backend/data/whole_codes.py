"""Codes that are whole numbers: 1 and 1.0 are one code, however a program has written the column."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

WHOLE = re.compile(r"[+-]?\d{1,15}(\.0*)?")
_DECIMALS = re.compile(r"\.0*$")


def whole_code(text: str) -> str:
    """Return a whole number as the shortest text of its value; any other text as it is.

    Examples
    --------
    >>> [whole_code(text) for text in ("1", "1.0", " 1", "01", "1.5", "own")]
    ['1', '1', '1', '1', '1.5', 'own']
    """
    bare = text.strip()
    if WHOLE.fullmatch(bare):
        return str(int(float(bare)))
    return text


def without_decimals(column: NDArray[np.generic], described: Collection[str] = ()) -> NDArray[np.generic]:
    """Return a column of codes without decimals if all its codes are whole numbers; zeros at the start stay, as of a zip code.

    Parameters
    ----------
    described : collection of str
        Codes that a dictionary names: what it writes with decimals stays so.

    Examples
    --------
    >>> without_decimals(np.array(["1", "2.0", None], dtype=object)).tolist()
    ['1', '2', None]
    """
    codes = {text for text in column.tolist() if text is not None}
    with_decimals = [text for text in codes if "." in text]
    if not with_decimals or any("." in text for text in described):
        return column
    if not all(WHOLE.fullmatch(text) for text in codes):
        return column
    spelled = {text: _DECIMALS.sub("", text) for text in codes}
    return np.array([None if text is None else spelled[text] for text in column.tolist()], dtype=object)
