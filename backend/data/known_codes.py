"""Codes of a table compared with those that a model was trained on: one code has one spelling, and an unknown one a remark."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from backend.data.csv_file import shown
from backend.data.table import PartyTable
from backend.data.whole_codes import WHOLE, whole_code
from backend.remark import Remark

_SPACES = re.compile(r"[\s_\-]+")


def like_code(text: str) -> str:
    """Return a text without what two spellings of one code may differ in: case, spaces, dashes and decimals."""
    return _SPACES.sub("", whole_code(text).casefold())


def read_codes(
    table: PartyTable, known_codes: Mapping[str, frozenset[str]]
) -> tuple[PartyTable, dict[int, tuple[Remark, ...]]]:
    """Return a table with its codes spelled as a model knows them, and remarks on codes that the model does not know.

    ``1``, ``1.0`` and ``01`` are one code if all codes of the feature are whole numbers. Nothing else is taken for a known code: what
    differs in case or spaces alone is marked as such.

    Parameters
    ----------
    known_codes : mapping of str to frozenset of str
        Categorical feature → the codes that the model's splits name.

    Returns
    -------
    PartyTable
    dict of int to tuple of Remark
        Row → its unknown codes.
    """
    columns = dict(table.columns)
    remarks: dict[int, tuple[Remark, ...]] = {}
    for name, codes in known_codes.items():
        column = columns.get(name)
        if column is None or not codes or column.dtype != object:
            continue
        texts = {value for value in column.tolist() if value is not None}
        spelled = {text: _known_spelling(text, codes) for text in texts}
        if any(spelling != text for text, spelling in spelled.items()):
            column = np.array([spelled.get(value, value) for value in column.tolist()], dtype=object)
            columns[name] = column
        unknown = {text for text in spelled.values() if text not in codes}
        if not unknown:
            continue
        remark_of = {text: _unknown_code(name, text, codes) for text in unknown}
        for row, value in enumerate(column.tolist()):
            if value in unknown:
                remarks[row] = (*remarks.get(row, ()), remark_of[value])
    return PartyTable(table.party, table.ids, columns), remarks


def _known_spelling(text: str, codes: frozenset[str]) -> str:
    """Return the known code that is the same whole number, if all known codes are whole numbers; else the text."""
    if text in codes or not all(WHOLE.fullmatch(code.strip()) for code in codes):
        return text
    same = [code for code in codes if whole_code(code) == whole_code(text)]
    return same[0] if len(same) == 1 else text


def _unknown_code(feature: str, text: str, codes: frozenset[str]) -> Remark:
    """Return what is to be said about a code that the model does not know."""
    alike = sorted(code for code in codes if like_code(code) == like_code(text))
    if alike:
        return Remark("code_written_otherwise", {"cell": shown(text), "known": shown(alike[0])}, column=feature)
    return Remark("code_unseen", {"cell": shown(text)}, column=feature)
