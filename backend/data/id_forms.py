"""Ids compared with those that the Guest's table has: a sheet whose ids lost their zeros is about other people, or about none.

Knows how ids are written, never what is known about people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from backend.data.csv_file import examples, shown
from backend.data.held import RowsOf
from backend.errors import AmbiguousFile, SampleError
from backend.remark import Remark

MIN_STOPPED_PEOPLE = 10  # people below which a sheet is not stopped, but marked
KNOWN_SHARE = 0.5  # share of a sheet's ids that the Guest's table has, below which forms are compared
_DECIMALS = re.compile(r"\.0+$")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_SCIENTIFIC = re.compile(r"\d(\.\d+)?[eE]\+?\d{1,2}")
_SIGNS = re.compile(r"[-_./\\·‐-―−]")
MAX_SHAPES = 3  # shapes that ids of one system have at most
SHAPE_SHARE = 0.95  # share of the known ids that these shapes cover
JUDGED_IDS = 2_000  # known ids whose shapes are looked at
AS_WRITTEN = "as-written"  # answer of the person who hands in the sheet: these are new people
_DIGITS = re.compile(r"0+")


def _without_exponent(text: str) -> str:
    if _SCIENTIFIC.fullmatch(text):
        return str(int(float(text)))
    return text


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
    """The ids of a table, and by which other writing they can be found."""

    def __init__(self, ids: Sequence[str], row_of: RowsOf | None = None) -> None:
        self._ids = ids
        self._row_of = RowsOf(ids) if row_of is None else row_of
        self._alike: RowsOf | None = None
        self._shapes: tuple[Callable[[str], str], frozenset[str]] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def absent(self, ids: Sequence[str]) -> list[int]:
        """Return the rows of `ids` whose id the table does not have."""
        return np.flatnonzero(self._row_of.of(ids) < 0).tolist()

    def alike(self, ids: Sequence[str]) -> list[str]:
        """Return for each id the table's id that differs in writing alone; "" without one."""
        if self._alike is None:
            self._alike = RowsOf([plain_id(text) for text in self._ids])
        rows = self._alike.of([plain_id(text) for text in ids]).tolist()
        return [self._ids[row] if row >= 0 else "" for row in rows]

    def strangers(self, ids: Sequence[str]) -> list[str]:
        """Return the ids that have not the shape of the table's; empty if the table's have too many shapes to tell."""
        if self._shapes is None:
            self._shapes = _shapes_of(self._ids)
        shape, shapes = self._shapes
        return [text for text in ids if shapes and shape(text) not in shapes]

    def looks(self, ids: Sequence[str]) -> tuple[str, str]:
        """Return the commonest shape of some ids and of the table's."""
        if self._shapes is None:
            self._shapes = _shapes_of(self._ids)
        shape = self._shapes[0]
        given_shape = Counter(shape(text) for text in ids).most_common(1)
        table_shape = Counter(shape(text) for text in self._ids[:JUDGED_IDS]).most_common(1)
        return given_shape[0][0], table_shape[0][0]


def exact_shape(text: str) -> str:
    """Return an id with 0 for each digit, A and a for each letter.

    Examples
    --------
    >>> exact_shape("00515"), exact_shape("AB-07"), exact_shape("515.0")
    ('00000', 'AA-00', '000.0')
    """
    letters = []
    for letter in text:
        if letter.isdigit():
            letters.append("0")
        elif letter.isalpha():
            letters.append("A" if letter.isupper() else "a")
        else:
            letters.append(letter)
    return "".join(letters)


def loose_shape(text: str) -> str:
    """Return the shape of an id with one digit for any number of them: ids that are counted on have it."""
    return _DIGITS.sub("0", exact_shape(text))


def length_shape(text: str) -> str:
    """Return only how long an id is: random ids have nothing else in common."""
    return "?" * len(text)


def _shapes_of(ids: Sequence[str]) -> tuple[Callable[[str], str], frozenset[str]]:
    """Return how shapes are told, and the few shapes that nearly all ids have; no shapes if they have many."""
    step = max(1, len(ids) // JUDGED_IDS)
    sampled = ids[::step]
    for shape in (exact_shape, loose_shape, length_shape):
        counts = Counter(shape(text) for text in sampled)
        common = sum(n for _, n in counts.most_common(MAX_SHAPES))
        if sampled and common >= SHAPE_SHARE * len(sampled):
            return shape, frozenset(counts)
    return length_shape, frozenset()


def check_ids(ids: Sequence[str], known_ids: KnownIds) -> dict[int, Remark]:
    """Return a remark for each row whose id the Guest writes otherwise."""
    absent = [row for row in known_ids.absent(ids) if ids[row]]
    if not absent:
        return {}
    alike = known_ids.alike([ids[row] for row in absent])
    remarks = {}
    for row, other_id in zip(absent, alike, strict=True):
        if other_id:
            values = {"id": shown(ids[row]), "other_id": shown(other_id), "cause": Remark(cause(ids[row], other_id))}
            remarks[row] = Remark("id_written_otherwise", values)
    return remarks


def stop_if_few_held(
    ids: Sequence[str], known_ids: KnownIds, joint_ids: KnownIds, *, name: str, one_host: bool, as_written: bool
) -> None:
    """Refuse a sheet of ten or more people of whom the Hosts cannot have half, as far as the Guest knows before it asks.

    Parameters
    ----------
    known_ids : KnownIds
        The ids of the Guest's table.
    joint_ids : KnownIds
        The ids that alignment found at every party.
    name : str
        Name of the sheet in the question.
    one_host : bool
        Whether there is one Host: an id of the Guest's table that alignment did not find is then not there.
    as_written : bool
        Whether a person said that the ids are meant as they are written.

    Raises
    ------
    SampleError
        Most of the ids that the Guest does not know would be known if they were written otherwise.
    AmbiguousFile
        Most of the ids that the Guest does not know have not the shape of ids that the Hosts have; or alignment did not find most of
        the ids at the only Host. The answer may be that they are meant as they are.
    """
    if len(ids) < MIN_STOPPED_PEOPLE or not len(joint_ids):
        return
    absent = [row for row in known_ids.absent(ids) if ids[row]]
    texts = [ids[row] for row in absent]
    if len(absent) > KNOWN_SHARE * len(ids):
        alike = known_ids.alike(texts)
        if 2 * sum(map(bool, alike)) >= len(absent):
            raise _stopped(ids, absent, alike)
    if as_written:
        return
    strangers = joint_ids.strangers(texts)
    if len(strangers) > KNOWN_SHARE * len(ids):
        sheet_shape, joint_shape = joint_ids.looks(strangers)
        values = {"file": name, "n": len(strangers), "rows": len(ids), "here": sheet_shape, "there": joint_shape}
        raise AmbiguousFile("ids_of_another_shape", "ids", {AS_WRITTEN: (sheet_shape,)}, **values)
    not_held = len(joint_ids.absent(ids)) - len(absent)
    if one_host and not_held > KNOWN_SHARE * len(ids):
        values = {"file": name, "n": len(ids) - not_held, "rows": len(ids)}
        raise AmbiguousFile("ids_not_at_host", "ids", {AS_WRITTEN: ()}, **values)


def _stopped(ids: Sequence[str], absent: Sequence[int], alike: Sequence[str]) -> SampleError:
    """Return the refusal of a sheet whose ids are written otherwise, with the likely cause and examples."""
    pairs = [(ids[row], other_id) for row, other_id in zip(absent, alike, strict=True) if other_id]
    causes = Counter(cause(sheet_id, other_id) for sheet_id, other_id in pairs)
    likely = causes.most_common(1)[0][0]
    ids_shown = [
        Remark("id_and_other", {"id": shown(sheet_id), "other_id": shown(other_id)}) for sheet_id, other_id in pairs
    ]
    return SampleError(
        "ids_not_known",
        found=len(ids) - len(absent),
        rows=len(ids),
        alike=len(pairs),
        cause=Remark(likely),
        ids=examples(ids_shown[:3], len(ids_shown)),
        here=_lengths([sheet_id for sheet_id, _ in pairs]),
        there=_lengths([other_id for _, other_id in pairs]),
    )


def _lengths(ids: Sequence[str]) -> str:
    """Return how long ids are: "8", or "1–4"."""
    lengths = sorted({len(sample_id) for sample_id in ids})
    if len(lengths) == 1:
        return str(lengths[0])
    return f"{lengths[0]}–{lengths[-1]}"


def cause(sheet_id: str, guest_id: str) -> str:
    """Return the code of what makes an id differ from the Guest's.

    Examples
    --------
    >>> cause("515", "00000515"), cause("515.0", "00515"), cause("ab1", "AB1")
    ('ids_without_zeros', 'ids_with_decimals', 'ids_in_other_case')
    """
    for code, step in STEPS:
        changed = step(sheet_id) != sheet_id
        other_changed = step(guest_id) != guest_id
        if changed != other_changed:
            return code
        sheet_id = step(sheet_id)
        guest_id = step(guest_id)
    return "ids_without_zeros"


def ids_alike(ids: Sequence[str]) -> dict[str, str]:
    """Return ids of one table that differ in writing alone: the second of them → the first, such as 6 → 00006.

    Examples
    --------
    >>> ids_alike(["00006", "7", "6"])
    {'6': '00006'}
    """
    first: dict[str, str] = {}
    alike: dict[str, str] = {}
    for text in ids:
        earlier = first.setdefault(plain_id(text), text)
        if text and earlier != text:
            alike.setdefault(text, earlier)
    return alike


def alike_note(ids: Sequence[str]) -> list[Remark]:
    """Return a note on ids of one table that differ in writing alone, if there are any."""
    alike = ids_alike(ids)
    if not alike:
        return []
    pairs = []
    for text, other_id in alike.items():
        pairs.append(Remark("id_and_other", {"id": shown(text), "other_id": shown(other_id)}))
    return [Remark("ids_alike", {"n": len(alike), "ids": examples(pairs[:3], len(pairs))})]
