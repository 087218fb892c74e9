"""A federation made from one's own table, step by step; what is half done stays in the home until it is finished or discarded.

Nothing of a draft is a federation: that is written at the end, whole or not at all, as ``glassleaf init`` writes it.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backend.data.column_kinds import alike_texts, guess, label_numbers, readable
from backend.data.csv_file import FileLimits, TableText, repeated_columns
from backend.data.dictionary import ExpectedDirection, Kind
from backend.data.dictionary_file import cells_of, features_from, parse_dictionary
from backend.data.federation import Federation
from backend.data.label import MAX_CLASSES, MIN_CLASSES
from backend.data.missing import is_no_outcome
from backend.data.oddities import MEND_BY_ORDER, Mend, Oddity, oddities
from backend.data.overview import Overview, overview
from backend.data.split import (
    GUEST,
    LEFT_OUT,
    SAME_SIGN,
    SHARES,
    Division,
    lines_of,
    odd_rows,
    plan_table,
    slug,
    with_one_spelling,
    without_rows,
)
from backend.data.table_file import AS_IT_IS, Reading, read_table_file, with_marks, with_plain_numbers
from backend.errors import FederationError
from backend.i18n import NO_MEANING, Text
from backend.jobs import Job
from backend.ops.atomic_file import write_whole
from backend.remark import Remark
from backend.services.federations import FOLDER, Federations

if TYPE_CHECKING:
    from backend.services.audit import Auditor
    from backend.services.workspace import Workspace

__all__ = ["UPLOAD", "Column", "Draft", "Mend", "Oddity", "Outcomes", "OwnData", "OwnHost"]

UPLOAD = FileLimits(max_bytes=50_000_000, max_rows=1 << 20, max_columns=1_000, max_cells=10_000_000)
"""Of a table from a browser; a larger one is for ``glassleaf init``."""
DRAFTS = "drafts"
DRAFT_RETENTION = timedelta(
    days=30
)  # a draft holds a whole table about people; one that was not changed for so long is deleted
KINDS = tuple(kind.value for kind in Kind)
DIRECTIONS = tuple(direction.value for direction in ExpectedDirection)
SHOWN_VALUES = 4  # of a column
MOSTLY_IDS = 0.9  # different texts a row, from which on a column called id has the ids
MAX_OUTCOMES = 40  # different texts of a label that are counted one by one
NUMBERS_BESIDE = ("among_numbers", "signs", "percents")  # oddities whose other cells are numbers
_NAMED_ID = re.compile(r"(^|[^a-z0-9])id$|编号$|客户号$")
_ID = re.compile(r"[0-9a-f]{16}")


class OwnHost(BaseModel):
    """A Host to be: what people call it, and its columns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    columns: tuple[str, ...] = ()


class Draft(BaseModel):
    """A federation to be.

    Attributes
    ----------
    id : str
        Of its folder in the home.
    owner : str
        Whose it is: the account that was signed in.
    file : str
        What the user called the table.
    step : int
        How far it is, from 1.
    id_column : str
        Empty if rows are numbered.
    task, positive : str
        Empty if nobody said.
    entries : dict of str to dict of str to str
        Column → what its user said about it, by the names of a dictionary's columns.
    leave_out, one_spelling, days, signs : tuple of str, dict of str to str
        As :class:`backend.data.split.Division` has them.
    before : dict of str to dict of str to str
        Column → what its user had said about it before it was mended, by the names of a dictionary's columns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    owner: str
    file: str
    reading: Reading = AS_IT_IS
    step: int = 1
    id_column: str = ""
    label: str = ""
    task: str = ""
    positive: str = ""
    label_meaning: Text = Text()
    guest_title: str = ""
    guest: tuple[str, ...] = ()
    hosts: tuple[OwnHost, ...] = Field(default=(), max_length=10)
    title: str = ""
    name: str = ""
    entries: dict[str, dict[str, str]] = {}
    leave_out: tuple[str, ...] = ()
    one_spelling: tuple[str, ...] = ()
    days: dict[str, str] = {}
    signs: dict[str, str] = {}
    before: dict[str, dict[str, str]] = {}

    def holder(self, column: str) -> int | None:
        """Return who holds a column: 0 for the Guest, 1 for the first Host; None if nobody does."""
        for place, columns in enumerate((self.guest, *(host.columns for host in self.hosts))):
            if column in columns:
                return place
        return None

    def given(self, columns: Collection[str], place: int | None) -> Draft:
        """Return the draft with some columns held by one party, or by nobody."""
        guest = tuple(column for column in self.guest if column not in columns)
        hosts = []
        for host in self.hosts:
            remaining = tuple(column for column in host.columns if column not in columns)
            hosts.append(host.model_copy(update={"columns": remaining}))
        if place == 0:
            guest = (*guest, *columns)
        elif place is not None:
            host = hosts[place - 1]
            hosts[place - 1] = host.model_copy(update={"columns": (*host.columns, *columns)})
        return self.model_copy(update={"guest": guest, "hosts": tuple(hosts)})

    def missing(self, column: str) -> tuple[str, ...]:
        """Return the texts of a column that were said to mean a missing value."""
        return _texts(self.entries.get(column, {}).get("missing", ""))

    def kind(self, column: Column) -> str:
        """Return what a column is read as: what its user says, else what it looks like."""
        if column.name in self.days or column.name in self.signs:
            return Kind.NUMERIC.value
        stated_kind = self.entries.get(column.name, {}).get("kind", "")
        numbers = any(
            oddity.code in NUMBERS_BESIDE and self.mended(column.name, oddity) == "missing" for oddity in column.odd
        )
        return stated_kind or (Kind.NUMERIC.value if numbers else column.kind)

    def saying(self, column: str, **cells: str) -> Draft:
        """Return the draft with what its user says about a column."""
        entry = {**self.entries.get(column, {}), **cells}
        return self.model_copy(update={"entries": {**self.entries, column: entry}})

    def mended(self, column: str, oddity: Oddity) -> Mend | None:
        """Return how something odd about a column was mended; None if it was not."""
        missing = self.missing(column)
        if "missing" in oddity.mends and oddity.cells and all(cell in missing for cell in oddity.cells):
            return "missing"
        if "one_spelling" in oddity.mends and column in self.one_spelling:
            return "one_spelling"
        for mend in oddity.mends:
            if mend in MEND_BY_ORDER.values() and MEND_BY_ORDER.get(self.days.get(column, "")) == mend:
                return mend
        if self.signs.get(column) in oddity.mends:
            return cast("Mend", self.signs[column])
        if "codes" in oddity.mends and self.entries.get(column, {}).get("kind") == Kind.CATEGORICAL.value:
            return "codes"
        return None

    def mend(self, column: str, oddity: Oddity, mend: Mend) -> Draft:
        """Return the draft with something odd about a column mended in one of its ways."""
        if mend == "one_spelling":
            return self.model_copy(update={"one_spelling": (*self.one_spelling, column)})
        if mend == "leave_out":
            return self.given((column,), None)
        if mend == "missing":
            texts = dict.fromkeys((*self.missing(column), *oddity.cells))
            return self._mending(column, missing=";".join(texts))
        if mend == "codes":
            return self._mending(column, kind=Kind.CATEGORICAL.value)
        mended = self._mending(column, kind="")
        if mend in (SHARES, SAME_SIGN):
            return mended.model_copy(update={"signs": {**self.signs, column: mend}})
        order = next(order for order, name in MEND_BY_ORDER.items() if name == mend)
        return mended.model_copy(update={"days": {**self.days, column: order}})

    def unmend(self, column: str, oddity: Oddity) -> Draft:
        """Return the draft with something odd about a column as it was, and with what its user had said before."""
        mend = self.mended(column, oddity)
        old_cells = self.before.get(column, {})
        if mend == "missing":
            stated_texts = _texts(old_cells.get("missing", ""))
            texts = [text for text in self.missing(column) if text not in oddity.cells or text in stated_texts]
            if len(texts) == len(self.missing(column)):  # all were said before, so that no press had mended it
                texts = [text for text in texts if text not in oddity.cells]
            return self.saying(column, missing=";".join(texts))
        if mend == "one_spelling":
            return self.model_copy(update={"one_spelling": tuple(name for name in self.one_spelling if name != column)})
        if mend is None:
            return self
        kind = old_cells.get("kind", "")
        if mend == "codes" and kind == Kind.CATEGORICAL.value:
            kind = ""  # it was said before, so that no press had mended it
        undone = self.saying(column, kind=kind)
        return undone.model_copy(update={"days": _without(self.days, column), "signs": _without(self.signs, column)})

    def _mending(self, column: str, **cells: str) -> Draft:
        """Return the draft with cells of a column's entry changed by a mend, and with what they were before."""
        entry = self.entries.get(column, {})
        old_cells = dict(self.before.get(column, {}))
        for field in cells:
            if field != "missing" or field not in old_cells:  # several mends may add to what is missing
                old_cells[field] = entry.get(field, "")
        return self.saying(column, **cells).model_copy(update={"before": {**self.before, column: old_cells}})


def _texts(cell: str) -> tuple[str, ...]:
    """Return the texts of a dictionary's cell that has several."""
    return tuple(text.strip() for text in cell.split(";") if text.strip())


def _without(mends: dict[str, str], column: str) -> dict[str, str]:
    return {name: mend for name, mend in mends.items() if name != column}


@dataclass(frozen=True)
class Column:
    """A column of the table, as it looks.

    Attributes
    ----------
    kind : str
        What it is taken for, if nobody says otherwise.
    distinct : int
        Different values.
    values : tuple of str
        The commonest.
    odd : tuple of Oddity
        What is odd about it, what has to be mended first.
    read : int
        Cells that are read as numbers without their sign, spaces or brackets.
    """

    name: str
    kind: str
    distinct: int
    values: tuple[str, ...]
    odd: tuple[Oddity, ...] = ()
    read: int = 0


@dataclass(frozen=True)
class Outcomes:
    """What a column says, if it is what shall be predicted.

    Attributes
    ----------
    counts : dict of str to int
        Text → records, in the order of the texts; empty if there are too many.
    tasks : tuple of str
        What it can be, the likeliest first; empty if it can be nothing.
    empty : int
        Records without a value; training needs one in every record.
    alike : tuple of tuple of str
        Texts that differ in case or spaces alone, one tuple a spelling; none if they were taken as one.
    """

    counts: dict[str, int]
    tasks: tuple[str, ...]
    empty: int
    alike: tuple[tuple[str, ...], ...] = ()


class OwnData:
    """Drafts of a home, and the federations that come of them."""

    def __init__(self, workspace: Workspace, auditor: Auditor, federations: Federations) -> None:
        self._home = workspace.home
        self._owner = auditor.actor
        self._federations = federations
        self._auditor = auditor

    def drafts(self) -> list[Draft]:
        """Return this user's drafts, the newest first; drafts of any user that are older than :data:`DRAFT_RETENTION` are deleted."""
        for file in (self._home / DRAFTS).glob("*/draft.json"):
            if time.time() - file.stat().st_mtime > DRAFT_RETENTION.total_seconds():
                shutil.rmtree(file.parent, ignore_errors=True)
        files = sorted((self._home / DRAFTS).glob("*/draft.json"), key=lambda file: -file.stat().st_mtime)
        all_drafts = (self._read(file) for file in files)
        return [draft for draft in all_drafts if draft is not None and draft.owner == self._owner]

    def draft(self, draft_id: str) -> Draft | None:
        """One draft of this user's; None if there is none."""
        if _ID.fullmatch(draft_id):
            draft = self._read(self._folder(draft_id) / "draft.json")
        else:
            draft = None
        if draft is not None and draft.owner == self._owner:
            return draft
        return None

    def begin(self, name: str, data: bytes, how: Reading = AS_IT_IS) -> Draft:
        """Keep a table that was handed in, and begin a federation of it.

        Raises
        ------
        AmbiguousFile
            The file can be read in several ways, and `how` does not say in which.
        FederationError
            It is no table that could be used.
        """
        self._auditor.require("own-data")
        text = read_table_file(data, name, how, UPLOAD)
        with_marks(text, text.header, how.decimal)
        if not text.rows:
            raise FederationError("sheet_without_rows", file=name)
        draft = Draft(
            id=secrets.token_hex(8), owner=self._owner, file=name, reading=how, title=readable(Path(name).stem)
        )
        ids = []
        for column in _usable(text):
            cells = text.cells(column)
            # An id may be repeated in some rows, which can be left out.
            if _NAMED_ID.search(column.casefold()) and len(set(cells)) >= MOSTLY_IDS * len(text.rows):
                ids.append(column)
        folder = self._folder(draft.id)
        try:
            write_whole(folder / "table", data)
            return self.save(draft.model_copy(update={"id_column": ids[0] if ids else "", "step": 2}))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def save(self, draft: Draft) -> Draft:
        """Keep what was said so far."""
        write_whole(self._folder(draft.id) / "draft.json", draft.model_dump_json().encode())
        return draft

    def discard(self, draft: Draft) -> None:
        """Delete a draft and its table."""
        shutil.rmtree(self._folder(draft.id), ignore_errors=True)

    def columns(self, draft: Draft) -> tuple[Column, ...]:
        """Return the table's columns, in its order."""
        return _columns(self._folder(draft.id) / "table", draft.file, draft.reading)

    def rows(self, draft: Draft) -> int:
        """Return how many records the table has."""
        return len(self._text(draft).rows)

    def outcomes(self, draft: Draft, column: str) -> Outcomes:
        """Return what can be predicted, if `column` is the label."""
        text = _plain_text(self._folder(draft.id) / "table", draft.file, draft.reading)
        text, _ = without_rows(text, draft.id_column or None, column, draft.positive or None, draft.leave_out)
        if column in draft.one_spelling:
            text, _ = with_one_spelling(text, (column,), (column,))
        cells = text.cells(column)
        counts = Counter(cell for cell in cells if not is_no_outcome(cell))
        numbers = label_numbers(list(counts), text.marks) is not None
        tasks = ["binary"] if len(counts) == 2 else []
        tasks += ["number"] if numbers and len(counts) > 2 else []
        if MIN_CLASSES <= len(counts) <= MAX_CLASSES:
            tasks.insert(0 if len(counts) <= MAX_OUTCOMES // 4 else len(tasks), "classes")
        if len(counts) <= MAX_OUTCOMES:
            listed_counts = sorted(counts.items())
        else:
            listed_counts = []
        alike = () if numbers else tuple(alike_texts(counts))
        return Outcomes(dict(listed_counts), tuple(tasks), len(cells) - counts.total(), alike)

    def odd_rows(self, draft: Draft) -> dict[str, tuple[int, Remark]]:
        """Return the rows that have to be mended or left out: reason → their number, and a sentence with their lines."""
        text = self._text(draft)
        odd = odd_rows(text, draft.id_column or None, draft.label or None, draft.positive or None, LEFT_OUT)
        by_reason = {}
        for reason, rows in odd.items():
            values = {"n": len(rows), "why": Remark(LEFT_OUT[reason]), "lines": lines_of(text, rows)}
            by_reason[reason] = (len(rows), Remark("rows_to_leave_out", values))
        return by_reason

    def with_dictionary(self, draft: Draft, name: str, data: bytes, how: Reading = AS_IT_IS) -> Draft:
        """Return the draft with the meanings of a dictionary file; raises FederationError if that is not usable."""
        column_names = {column.name for column in self.columns(draft)}
        features = parse_dictionary(read_table_file(data, name, how, UPLOAD))
        entries = {
            column: cells_of(feature) for column, feature in features.items() if column in column_names - {draft.label}
        }
        for column, cells in entries.items():
            if "kind" not in features[column].model_fields_set:  # the cells decide
                del cells["kind"]
        # What the file leaves empty stays as it was said or mended.
        for column, cells in entries.items():
            filled_cells = {field: cell for field, cell in cells.items() if cell}
            entries[column] = {**draft.entries.get(column, {}), **filled_cells}
        label = features.get(draft.label)
        if label:
            label_values = {"label_meaning": label.meaning}
        else:
            label_values = {}
        return draft.model_copy(update={"entries": {**draft.entries, **entries}, **label_values})

    def overview(self, draft: Draft) -> tuple[Federation, Overview]:
        """Return the federation as it would be, and how its columns are read; raises FederationError with every problem."""
        return _overview(self._folder(draft.id) / "table", draft.model_dump_json())

    def make(self, draft: Draft) -> Federation:
        """Write the federation into the home, remember it, and delete the draft; raises FederationError if nothing was written."""
        self._auditor.require("own-data")
        division = _division(draft)
        name = division.name or slug(Path(draft.file).stem)
        out = self._home / FOLDER / name
        if out.exists():
            raise FederationError("federation_exists", federation=name)
        federation = self._federations.init(self._folder(draft.id) / "table", division, out, draft.file)
        self.discard(draft)
        return federation

    def start(self, draft: Draft) -> Job[Federation]:
        """As :meth:`make`, in the background."""

        def run(job: Job[Federation]) -> Federation:
            job.at("split")
            return self.make(draft)

        return Job[Federation](run, 0, size="own").start()

    def _folder(self, draft_id: str) -> Path:
        return self._home / DRAFTS / draft_id

    def _text(self, draft: Draft) -> TableText:
        return _table(self._folder(draft.id) / "table", draft.file, draft.reading)

    def _read(self, file: Path) -> Draft | None:
        """Return a draft as it was kept; None if it is of another version, or gone."""
        try:
            return Draft.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            return None


@lru_cache(maxsize=1)
def _table(file: Path, name: str, how: Reading) -> TableText:
    """Return a draft's table; the file of a draft never changes."""
    text = read_table_file(file, name, how, UPLOAD)
    return with_marks(text, text.header, how.decimal)


@lru_cache(maxsize=1)
def _plain_text(file: Path, name: str, how: Reading) -> TableText:
    """Return a draft's table with plain numbers; what cannot be made plain is said when the table is divided."""
    return with_plain_numbers(_table(file, name, how), _usable(_table(file, name, how)))[0]


def _usable(text: TableText) -> list[str]:
    """Return the columns that can be used: they have a name, and no other column has it."""
    repeated = repeated_columns(text.header)
    return [column for column in text.header if column and column not in repeated]


@lru_cache(maxsize=4)
def _columns(file: Path, name: str, how: Reading) -> tuple[Column, ...]:
    table = _table(file, name, how)
    text, forms, _ = with_plain_numbers(table, _usable(table))
    columns = []
    for column in _usable(text):
        counts = Counter(cell for cell in text.cells(column) if cell)
        original_counts = Counter(filter(None, table.cells(column)))
        values = tuple(cell for cell, _ in original_counts.most_common(SHOWN_VALUES))
        kind = guess(text, column, (), numbers=column in forms).kind
        if column in forms:
            read = sum(original_counts[cell] for cell in forms[column].numbers)
        else:
            read = 0
        odd = oddities(counts, kind, text.marks)
        columns.append(Column(column, kind.value, len(counts), values, odd, read))
    return tuple(columns)


@lru_cache(maxsize=1)
def _overview(file: Path, draft_json: str) -> tuple[Federation, Overview]:
    draft = Draft.model_validate_json(draft_json)
    planned = plan_table(_table(file, draft.file, draft.reading), _division(draft))
    return planned.federation, overview(planned.federation, planned.text, planned.ids, planned.notes)


def _division(draft: Draft) -> Division:
    """Return what was said, as `glassleaf init` is told it."""
    names = host_names(draft)
    entries = {column: _entry(column, cells) for column, cells in draft.entries.items()}
    meaning = draft.label_meaning
    if draft.label and meaning:
        entries[draft.label] = {"meaning": meaning.en or meaning.zh, "meaning_zh": meaning.zh}
    assigned = {*draft.guest, *(column for host in draft.hosts for column in host.columns), draft.label}
    return Division(
        draft.label,
        draft.guest,
        {name: host.columns for name, host in zip(names, draft.hosts, strict=True)},
        draft.id_column or None,
        draft.positive or None,
        draft.task or None,
        name=draft.name or None,
        meanings=features_from({column: cells for column, cells in entries.items() if column in assigned}),
        title=draft.title,
        titles={GUEST: draft.guest_title} | {n: host.title for n, host in zip(names, draft.hosts, strict=True)},
        reading=draft.reading,
        leave_out=draft.leave_out,
        one_spelling=tuple(column for column in draft.one_spelling if column in assigned),
        days={column: order for column, order in draft.days.items() if column in assigned and column != draft.label},
        signs={column: way for column, way in draft.signs.items() if column in assigned and column != draft.label},
    )


def host_names(draft: Draft) -> list[str]:
    """Return short names of the Hosts, made from their titles if possible."""
    names: list[str] = []
    for number, host in enumerate(draft.hosts, start=1):
        if re.match(r"[A-Za-z]{2}", host.title):
            short_name = slug(host.title)
        else:
            short_name = ""
        names.append(short_name if short_name and short_name not in (GUEST, *names) else f"host_{number}")
    return names


def _entry(column: str, cells: dict[str, str]) -> dict[str, str]:
    """Return what was said about a column; its name stands in for a meaning that nobody gave in any language."""
    return {**cells, "meaning": cells.get("meaning") or cells.get("meaning_zh") or f"{readable(column)} {NO_MEANING}"}
