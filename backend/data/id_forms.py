"""Ids compared with those that the Guest's table has: a sheet whose ids lost their zeros is about other people, or about nobody.

Knows how ids are written, never what is known about people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from backend.data.csv_file import examples, shown
from backend.data.held import RowsOf
from backend.errors import SampleError
from backend.remark import Remark

FEW = 10  # people below which a sheet is not stopped, but marked
KNOWN_SHARE = 0.5  # share of a sheet's ids that the Guest's table has, below which forms are compared
_DECIMALS = re.compile(r"\.0+$")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_SCIENTIFIC = re.compile(r"\d(\.\d+)?[eE]\+?\d{1,2}")
_SIGNS = re.compile(r"[-_./\\·‐-―−]")


def _without_exponent(text: str) -> str:
    return str(int(float(text))) if _SCIENTIFIC.fullmatch(text) else text


# what may have happened to an id, each with the code of its remark; applied in this order
STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("ids_in_scientific_form", _without_exponent),
    ("ids_with_decimals", lambda text: _DECIMALS.sub("", text)),
    ("ids_with_other_spaces", lambda text: "".join(text.split())),
    ("ids_in_other_case", str.casefold),
    ("ids_with_other_signs", lambda text: _SIGNS.sub("", text)),
    ("ids_without_zeros", lambda text: _ZEROS.sub("", text)),
)


def plain_id(text: str) -> str:
    """Return an id without what a spreadsheet or an export changes: zeros before it, ``.0``, case, spaces and dashes.

    Examples
    --------
    >>> [plain_id(text) for text in ("00515", "515.0", "AB-0007", "ab 7", "1.5E+3")]
    ['515', '515', 'ab7', 'ab7', '1500']
    """
    for _, step in STEPS:
        text = step(text)
    return text


class KnownIds:
    """The Guest's ids, and by which other writing they can be found."""

    def __init__(self, ids: Sequence[str], row_of: RowsOf) -> None:
        self._ids = ids
        self._row_of = row_of
        self._alike: RowsOf | None = None

    def absent(self, ids: Sequence[str]) -> list[int]:
        """Return the rows of `ids` whose id the Guest's table does not have."""
        return np.flatnonzero(self._row_of.of(ids) < 0).tolist()

    def alike(self, ids: Sequence[str]) -> list[str]:
        """Return for each id the Guest's id that differs in writing alone; "" if there is none."""
        if self._alike is None:
            self._alike = RowsOf([plain_id(one) for one in self._ids])
        rows = self._alike.of([plain_id(one) for one in ids]).tolist()
        return [self._ids[row] if row >= 0 else "" for row in rows]


def check_ids(ids: Sequence[str], known: KnownIds, *, stop: bool = True) -> dict[int, Remark]:
    """Return a remark for each row whose id the Guest writes otherwise.

    Raises
    ------
    SampleError
        If `stop`, and of ten or more ids fewer than half are the Guest's, and most of the others would be if they were written otherwise,
        or have not the shape of any of the Guest's ids.
    """
    absent = [row for row in known.absent(ids) if ids[row]]
    if not absent:
        return {}
    alike = known.alike([ids[row] for row in absent])
    remarks = {}
    for row, other in zip(absent, alike, strict=True):
        if other:
            values = {"id": shown(ids[row]), "other_id": shown(other), "cause": Remark(cause(ids[row], other))}
            remarks[row] = Remark("id_written_otherwise", values)
    few_known = len(ids) - len(absent) < KNOWN_SHARE * len(ids)
    if stop and few_known and len(ids) >= FEW and 2 * len(remarks) >= len(absent):
        raise _stopped(ids, absent, alike)
    return remarks


def _stopped(ids: Sequence[str], absent: Sequence[int], alike: Sequence[str]) -> SampleError:
    """Return the refusal of a sheet whose ids are written otherwise, with the likely cause and examples."""
    pairs = [(ids[row], other) for row, other in zip(absent, alike, strict=True) if other]
    causes = Counter(cause(written, other) for written, other in pairs)
    likely = causes.most_common(1)[0][0]
    ids_shown = [Remark("id_and_other", {"id": shown(written), "other_id": shown(other)}) for written, other in pairs]
    return SampleError(
        "ids_not_known",
        found=len(ids) - len(absent),
        rows=len(ids),
        alike=len(pairs),
        cause=Remark(likely),
        ids=examples(ids_shown[:3], len(ids_shown)),
        here=_lengths([written for written, _ in pairs]),
        there=_lengths([other for _, other in pairs]),
    )


def _lengths(ids: Sequence[str]) -> str:
    """Return how long ids are: "8", or "1–4"."""
    lengths = sorted({len(one) for one in ids})
    return str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]}–{lengths[-1]}"


def cause(written: str, other: str) -> str:
    """Return the code of what makes an id differ from the Guest's.

    Examples
    --------
    >>> cause("515", "00000515"), cause("515.0", "00515"), cause("ab1", "AB1")
    ('ids_without_zeros', 'ids_with_decimals', 'ids_in_other_case')
    """
    for code, step in STEPS:
        changed = step(written) != written
        other_changed = step(other) != other
        if changed != other_changed:
            return code
        written = step(written)
        other = step(other)
    return "ids_without_zeros"


def ids_alike(ids: Sequence[str]) -> Mapping[str, str]:
    """Return ids of one table that differ in writing alone: the second of them → the first, such as 6 → 00006."""
    first: dict[str, str] = {}
    alike: dict[str, str] = {}
    for one in ids:
        earlier = first.setdefault(plain_id(one), one)
        if earlier != one:
            alike.setdefault(one, earlier)
    return alike
