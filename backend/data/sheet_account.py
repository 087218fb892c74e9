"""How a sheet of people was read, column by column, as a document for a machine: what `score`, `monitor` and `validate` write on request.

Holds counts, codes and ranges of the sheet that a user handed in; so it is for that user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from backend.data.dictionary import Kind
from backend.data.federation import Federation
from backend.data.table import PartyTable, SampleSheet
from backend.remark import Remark

MAX_CODES = 100  # of a column that are listed, the commonest
UNKNOWN_CODES = ("code_unseen", "code_written_otherwise")
ANOTHER_FORM = ("numbers_in_another_form", "numbers_with_commas", "numbers_with_thousands")


@dataclass
class ColumnAccount:
    """How the cells of one column were read.

    Attributes
    ----------
    values, missing, unreadable : int
        Cells with a value, without one, and such that are no value of this column; together all rows.
    in_another_form : int
        Numbers that were read without a sign, spaces or brackets, or with a comma.
    low, high : float or None
        Of the numbers.
    codes, unknown_codes : dict of str to int
        Code → rows; the unknown ones are those that the model was not trained on, as remarks quote them.
    """

    party: str
    name: str
    kind: str
    unit: str
    values: int = 0
    missing: int = 0
    unreadable: int = 0
    in_another_form: int = 0
    low: float | None = None
    high: float | None = None
    codes: Counter[str] = field(default_factory=Counter)
    unknown_codes: Counter[str] = field(default_factory=Counter)


class SheetAccount:
    """The account of a sheet, or of a long table's groups one after the other."""

    def __init__(self, federation: Federation) -> None:
        self._columns: dict[str, ColumnAccount] = {}
        self._features = {feature.name: (party, feature) for party, feature in federation.features()}
        self._rows = 0
        self._usable = 0
        self._problems: Counter[str] = Counter()
        self._remarks: Counter[str] = Counter()
        self._notes: dict[tuple[str, str, str], Remark] = {}

    def add(self, sheet: SampleSheet) -> None:
        """Count the rows of a sheet whose ids and codes were compared."""
        self._rows += len(sheet.ids)
        self._usable += sheet.usable
        for table in (sheet.guest, *sheet.hosts.values()):
            for name in table.columns:
                self._add_column(table, name)
        for counts, remarks_of in ((self._problems, sheet.problems), (self._remarks, sheet.marks)):
            for remarks in remarks_of.values():
                counts.update({remark.code for remark in remarks})
        for remark in _all_of(sheet.problems.values()):
            if remark.column in self._columns:
                self._columns[remark.column].unreadable += 1
                self._columns[remark.column].missing -= 1
        for remark in _all_of(sheet.marks.values()):
            if remark.code in UNKNOWN_CODES and remark.column in self._columns:
                self._columns[remark.column].unknown_codes[str(remark.values["cell"])] += 1
        added_notes(self._notes, sheet.notes)
        for note in sheet.notes:
            if note.code in ANOTHER_FORM and note.column in self._columns:
                self._columns[note.column].in_another_form += int(str(note.values["n"]))

    def _add_column(self, table: PartyTable, name: str) -> None:
        party, feature = self._features[name]
        account = self._columns.setdefault(name, ColumnAccount(party, name, feature.kind.value, feature.unit.en))
        column = table.columns[name]
        if feature.kind is Kind.CATEGORICAL:
            values = [code for code in column.tolist() if code is not None]
            account.codes.update(values)
        else:
            numbers = column.astype(np.float64)
            values = numbers[~np.isnan(numbers)].tolist()
            if values:
                if account.low is None:
                    account.low = min(values)
                else:
                    account.low = min(account.low, *values)
                if account.high is None:
                    account.high = max(values)
                else:
                    account.high = max(account.high, *values)
        account.values += len(values)
        account.missing += len(column) - len(values)

    def document(self) -> dict[str, Any]:
        """Return the account, with the notes on the table as a whole."""
        columns = []
        for account in self._columns.values():
            document = asdict(account)
            document["codes"] = dict(account.codes.most_common(MAX_CODES))
            document["unknown_codes"] = dict(account.unknown_codes.most_common(MAX_CODES))
            columns.append(document)
        return {
            "rows": self._rows,
            "usable": self._usable,
            "columns": columns,
            "rows_by_problem": dict(self._problems),
            "rows_by_remark": dict(self._remarks),
            "notes": [{**note.plain(), "sentence": note.sentence()} for note in self._notes.values()],
        }


def added_notes(notes: dict[tuple[str, str, str], Remark], more: Sequence[Remark]) -> None:
    """Add the notes on another group of rows to those on earlier ones: what is counted is summed."""
    for note in more:
        example = note.values.get("example")
        if isinstance(example, Remark):
            kind = (example.code, example.column)
        else:
            kind = ("", "")
        key = note.code, note.column or kind[1], kind[0]
        if key in notes and "n" in note.values:
            values = dict(notes[key].values)
            for name in {"n", "rows"} & note.values.keys():
                values[name] = int(str(values[name])) + int(str(note.values[name]))
            notes[key] = replace(notes[key], values=values)
        notes.setdefault(key, note)


def _all_of(remarks: Iterable[tuple[Remark, ...]]) -> list[Remark]:
    return [remark for row_remarks in remarks for remark in row_remarks]
