"""Records to be scored, as the Guest has them: from its table, typed in, or uploaded. No Host's column is here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from backend.data import table as tables
from backend.data.cells import csv_text
from backend.data.csv_file import shown
from backend.data.dictionary import Feature, Kind
from backend.data.federation import Federation
from backend.data.id_forms import check_ids
from backend.data.known_codes import read_codes
from backend.data.table import SAMPLES, PartyTable, SampleSheet
from backend.data.table_file import AS_IT_IS, SUFFIXES, Reading
from backend.errors import SampleError
from backend.remark import Remark
from backend.results import OUTSIDE
from backend.services.registry import Registry
from backend.services.workspace import Workspace

__all__ = ["SAMPLES", "SUFFIXES", "Reading", "Samples"]
WHOLE = 1e15  # up to here a float is written as a whole number where it is one


class Samples:
    """Sheets of one model's federation."""

    def __init__(self, workspace: Workspace, models: Registry) -> None:
        self._workspace, self._models = workspace, models

    def table(self, model_id: str) -> pd.DataFrame:
        """The Guest's own records with the part they had in training."""
        record = self._models.get(model_id)
        table, part_of = self._workspace.runtime(record.federation).table, self._models.part_of(record)
        frame = pd.DataFrame(dict(table.columns), index=pd.Index(table.ids, name="id", dtype="object"))
        frame["part"] = [part_of.get(i, OUTSIDE) for i in table.ids]
        return frame

    def of_person(self, model_id: str, sample_id: str) -> SampleSheet:
        """The Guest's record of a known id."""
        table = self._workspace.runtime(self._models.get(model_id).federation).table
        if sample_id not in table.row_of:
            raise SampleError("person_not_at_guest", id=shown(sample_id))
        own = table.take(np.array([table.row_of[sample_id]], dtype=np.intp))
        return self._understood(model_id, SampleSheet((sample_id,), own, {}, {}, ()))

    def typed_in(self, model_id: str, sample_id: str, values: Mapping[str, str | float | None]) -> SampleSheet:
        """A typed-in sample: the Guest's features by name."""
        sheet = tables.sample_from_values(self._federation(model_id), sample_id, dict(values))
        return self._understood(model_id, sheet)

    def read(self, model_id: str, source: bytes | Path, name: str = "samples", how: Reading = AS_IT_IS) -> SampleSheet:
        """A sheet that was handed in: CSV, XLSX or Parquet.

        Raises
        ------
        AmbiguousFile
            The file can be read in several ways, and `how` does not say in which.
        SampleError
            The sheet as a whole is not usable, or most of its ids are written otherwise than the Guest's.
        """
        sheet = tables.read_samples(self._federation(model_id), source, name=name, how=how)
        return self._understood(model_id, sheet)

    def _understood(self, model_id: str, sheet: SampleSheet) -> SampleSheet:
        """Return the sheet with its codes and ids compared; see :func:`understood`."""
        record = self._models.get(model_id)
        table = self._workspace.runtime(record.federation).table
        return understood(sheet, table, self._models.compiled(record).known_codes)

    def template(self, model_id: str) -> bytes:
        """A CSV to fill in: the Guest's id and features, and two of its own records, written as people write them."""
        guest, frame = self._federation(model_id).guest, self.table(model_id).drop(columns="part").head(2)
        for feature in guest.features:
            frame[feature.name] = [_written(value, feature) for value in frame[feature.name]]
        rows = [[str(i), *map(str, cells)] for i, cells in zip(frame.index, frame.to_numpy(), strict=True)]
        # with the mark that Excel needs to see UTF-8
        return csv_text([[guest.id, *map(str, frame.columns)], *rows]).encode("utf-8-sig")

    def _federation(self, model_id: str) -> Federation:
        return self._workspace.federation(self._models.get(model_id).federation)


def understood(
    sheet: SampleSheet, table: PartyTable, codes: Mapping[str, frozenset[str]], *, stop: bool = True
) -> SampleSheet:
    """Return a sheet with its codes spelled as the model knows them, and marks on what was not understood.

    Parameters
    ----------
    table : PartyTable
        The Guest's own.
    codes : mapping of str to frozenset of str
        Categorical feature of the Guest → the codes that the model knows.
    stop : bool
        Whether a sheet is refused if most of its ids are written otherwise than the Guest's.

    Raises
    ------
    SampleError
        See :func:`backend.data.id_forms.check_ids`.
    """
    guest, marks = read_codes(sheet.guest, codes)
    problems = dict(sheet.problems)
    for row, remark in check_ids(sheet.ids, table.known_ids, stop=stop).items():
        if row in problems:
            problems[row] = (*problems[row], remark)
        else:
            marks[row] = (remark, *marks.get(row, ()))
    marks = {row: remarks for row, remarks in sorted(marks.items()) if row not in problems}
    counts = _counted(marks)
    return replace(sheet, guest=guest, problems=problems, marks=marks, notes=(*sheet.notes, *counts))


def _counted(marks: Mapping[int, tuple[Remark, ...]]) -> list[Remark]:
    """Return a note for each kind of mark: in how many rows it is, and an example."""
    rows: dict[tuple[str, str], int] = {}
    examples: dict[tuple[str, str], Remark] = {}
    for remarks in marks.values():
        for remark in remarks:
            kind = remark.code, remark.column
            rows[kind] = rows.get(kind, 0) + 1
            examples.setdefault(kind, remark)
    return [Remark("marked_rows", {"n": n, "example": examples[kind]}) for kind, n in rows.items()]


def _written(value: object, feature: Feature) -> str:
    """A value for a cell: yes or no, a number without needless decimals, or a code; empty where it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, float):
        return str(value)
    if feature.kind is Kind.BOOLEAN:
        return "yes" if value else "no"
    return repr(int(value)) if value.is_integer() and abs(value) < WHOLE else repr(value)
