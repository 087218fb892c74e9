"""Records to be scored, as the Guest has them: from its table, typed in, or uploaded. No Host's column is here."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from backend.data import table as tables
from backend.data.cells import csv_text
from backend.data.csv_file import shown
from backend.data.dictionary import Feature, Kind
from backend.data.federation import Federation
from backend.data.id_forms import AS_WRITTEN, KnownIds, alike_note, check_ids, stop_if_few_held
from backend.data.known_codes import read_codes
from backend.data.sheet_account import SheetAccount
from backend.data.table import SAMPLES, SampleSheet
from backend.data.table_file import AS_IT_IS, SUFFIXES, Reading
from backend.errors import SampleError
from backend.remark import Remark
from backend.results import OUTSIDE, ModelRecord
from backend.services.registry import Registry
from backend.services.score_marks import seen_of
from backend.services.workspace import Workspace

__all__ = ["AS_WRITTEN", "SAMPLES", "SUFFIXES", "Reading", "Samples"]
MAX_WHOLE_NUMBER = 1e15  # up to here a float without decimals is written as a whole number


class Samples:
    """Sheets of one model's federation."""

    def __init__(self, workspace: Workspace, models: Registry) -> None:
        self._workspace = workspace
        self._models = models

    def table(self, model_id: str) -> pd.DataFrame:
        """Return the Guest's own records with the part they had in training."""
        record = self._models.get(model_id)
        table = self._workspace.runtime(record.federation).table
        part_of = self._models.part_of(record)
        frame = pd.DataFrame(dict(table.columns), index=pd.Index(table.ids, name="id", dtype="object"))
        frame["part"] = [part_of.get(i, OUTSIDE) for i in table.ids]
        return frame

    def of_person(self, model_id: str, sample_id: str) -> SampleSheet:
        """Return the Guest's record of a known id."""
        table = self._workspace.runtime(self._models.get(model_id).federation).table
        if sample_id not in table.row_of:
            raise SampleError("person_not_at_guest", id=shown(sample_id))
        person_table = table.take(np.array([table.row_of[sample_id]], dtype=np.intp))
        return self._understood(model_id, SampleSheet((sample_id,), person_table, {}, {}, ()))

    def typed_in(self, model_id: str, sample_id: str, values: Mapping[str, str | float | None]) -> SampleSheet:
        """Return a typed-in sample: the Guest's features by name."""
        sheet = tables.sample_from_values(self._federation(model_id), sample_id, dict(values))
        return self._understood(model_id, sheet)

    def read(self, model_id: str, source: bytes | Path, name: str = "samples", how: Reading = AS_IT_IS) -> SampleSheet:
        """Return a sheet that was handed in: CSV, XLSX or Parquet.

        Raises
        ------
        AmbiguousFile
            The file can be read in several ways, or its ids are not such as the Hosts have, and `how` does not say in which.
        SampleError
            The sheet as a whole is not usable, or most of its ids are written otherwise than the Guest's.
        """
        sheet = tables.read_samples(self._federation(model_id), source, name=name, how=how)
        known_values = self._known(model_id)
        known_values.stop(sheet.ids, source.name if isinstance(source, Path) else name, how)
        return understood(sheet, known_values)

    def account(self, model_id: str, sheet: SampleSheet | None = None) -> dict[str, Any]:
        """Return how a sheet was read, or the Guest's own table if none is given, as a document (:mod:`backend.data.sheet_account`)."""
        if sheet is None:
            table = self._workspace.runtime(self._models.get(model_id).federation).table
            sheet = self._understood(model_id, SampleSheet(table.ids, table, {}, {}, ()))
        account = SheetAccount(self._federation(model_id))
        account.add(sheet)
        return account.document()

    def _understood(self, model_id: str, sheet: SampleSheet) -> SampleSheet:
        """Return the sheet with its codes and ids compared; see :func:`understood`."""
        return understood(sheet, self._known(model_id))

    def _known(self, model_id: str) -> Known:
        return Known.of(self._workspace, self._models, self._models.get(model_id))

    def template(self, model_id: str) -> bytes:
        """Return a CSV to fill in: the Guest's id and features, and two of its own records, written as people write them."""
        guest = self._federation(model_id).guest
        frame = self.table(model_id).drop(columns="part").head(2)
        for feature in guest.features:
            frame[feature.name] = [_written(value, feature) for value in frame[feature.name]]
        rows = []
        for i, cells in zip(frame.index, frame.to_numpy(), strict=True):
            rows.append([str(i), *map(str, cells)])
        # with the mark that Excel needs to see UTF-8
        return csv_text([[guest.id, *map(str, frame.columns)], *rows]).encode("utf-8-sig")

    def _federation(self, model_id: str) -> Federation:
        return self._workspace.federation(self._models.get(model_id).federation)


@dataclass(frozen=True)
class Known:
    """The ids and codes that the Guest compares a sheet with before any Host is asked.

    Attributes
    ----------
    ids : KnownIds
        Of the Guest's table.
    joint_ids : KnownIds
        That alignment found at every party.
    codes : mapping of str to frozenset of str
        Categorical feature of the Guest that the model uses → the codes that the model was trained on.
    one_host : bool
        Whether the model has one Host.
    """

    ids: KnownIds
    joint_ids: KnownIds
    codes: Mapping[str, frozenset[str]]
    one_host: bool

    @classmethod
    def of(cls, workspace: Workspace, models: Registry, record: ModelRecord) -> Known:
        """Return what is known of a model's people and codes."""
        table = workspace.runtime(record.federation).table
        codes = dict(models.compiled(record).known_codes)
        seen_categories = seen_of(workspace, models, record).categories
        codes.update({name: seen_categories[name] for name in codes if name in seen_categories})
        return cls(table.known_ids, models.joint_ids(record), codes, len(record.hosts) == 1)

    def stop(self, ids: Sequence[str], name: str, how: Reading = AS_IT_IS) -> None:
        """Refuse a sheet of which the Hosts cannot have half the people; see :func:`stop_if_few_held`."""
        as_written = how.ids == AS_WRITTEN
        stop_if_few_held(ids, self.ids, self.joint_ids, name=name, one_host=self.one_host, as_written=as_written)


def understood(sheet: SampleSheet, known_values: Known) -> SampleSheet:
    """Return a sheet with its codes spelled as the model knows them, and marks on what was not understood."""
    guest, marks = read_codes(sheet.guest, known_values.codes)
    problems = dict(sheet.problems)
    for row, remark in check_ids(sheet.ids, known_values.ids).items():
        if row in problems:
            problems[row] = (*problems[row], remark)
        else:
            marks[row] = (remark, *marks.get(row, ()))
    marks = {row: remarks for row, remarks in sorted(marks.items()) if row not in problems}
    notes = (*sheet.notes, *table_notes(sheet.ids, marks, problems, known_values))
    return replace(sheet, guest=guest, problems=problems, marks=marks, notes=notes)


def table_notes(
    ids: Sequence[str], marks: Mapping[int, tuple[Remark, ...]], problems: Collection[int], known_values: Known
) -> tuple[Remark, ...]:
    """Return what is said about a table as a whole: new people, ids that are alike, and each kind of mark with its count.

    Parameters
    ----------
    marks : mapping of int to tuple of Remark
        Row → what was not understood in it.
    problems : collection of int
        Rows that cannot be scored.
    """
    notes: list[Remark] = []
    new = []
    for row in known_values.ids.absent(ids):
        otherwise = any(remark.code == "id_written_otherwise" for remark in marks.get(row, ()))
        if row not in problems and not otherwise:
            new.append(row)
    if new:
        examples = tuple(shown(ids[row]) for row in new[:3])
        notes.append(Remark("ids_new_to_guest", {"n": len(new), "rows": len(ids), "ids": examples}))
    return (*notes, *alike_note(ids), *_counted(marks))


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
    """Return a value for a cell: yes or no, a number without needless decimals, or a code; empty if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, float):
        return str(value)
    if feature.kind is Kind.BOOLEAN:
        return "yes" if value else "no"
    if value.is_integer() and abs(value) < MAX_WHOLE_NUMBER:
        return repr(int(value))
    return repr(value)
