"""A table of any length scored group by group into a file; what was stopped or killed goes on where it was.

Next to ``scores.csv`` are, until all is done, ``scores.csv.partial`` with the groups that are through and ``scores.csv.progress``, which
says how far they go. A group passes four steps:

1. It is scored as a sheet is, and held in the Guest's journal              (docs/decisions/gate.md)
2. Its lines are put behind those of the groups before, and to disk
3. The progress file is replaced: from here on the group is through
4. The journal forgets the group

Two groups are in step 1 at once; steps 2 to 4 keep the table's order. Killed before 3, the next run cuts the partial file where the
progress file says, and asks for the groups again: the journal has their scores, or the bytes that were sent for them, which no Host
counts twice. Killed before 4, the next run does 4 first.
"""

from __future__ import annotations

import csv
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from backend.crypto.registry import Cipher
from backend.data.cells import csv_text, plain_cell
from backend.data.federation import Federation
from backend.data.row_groups import DatabaseTable, LongFile, Survey, TableSource, sheets, survey
from backend.data.sheet_account import SheetAccount, added_notes
from backend.data.table import SAMPLES, SampleSheet
from backend.data.table_file import AS_IT_IS, OLE, PARQUET, ZIP, Reading, opened
from backend.errors import GlassleafError, ParameterError, SampleError, StoreError
from backend.jobs import Job, work
from backend.jobs.memory import keep_no_large_blocks
from backend.ops.atomic_file import held_alone, write_whole
from backend.policy.bands import Policy
from backend.remark import Remark
from backend.results import (
    ModelRecord,
    Score,
    ScoreBatch,
    Streamed,
    counts_of,
    earlier_rows,
    kept_row,
    remark_codes,
    score_columns,
    scores_head,
    scores_rows,
)
from backend.services.json_text import json_text
from backend.services.policies import policy_of
from backend.services.registry import Registry
from backend.services.samples import Known, understood
from backend.services.score_marks import HeldCount
from backend.services.scoring import KEY_BITS, Scoring, ScoringRequest, failed_score
from backend.services.waiting import LASTING
from backend.services.workspace import Workspace

PARQUET_SUFFIX = ".parquet"
IN_FLIGHT = 2  # groups that are scored at once, so that one's end and another's beginning keep no core idle
POLL_SECONDS = 0.1  # seconds between looks at a group that is being scored
SURVEYED = 0.02  # share of the time that the first reading takes
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # Arrow's columnar format, "IPC Streaming Format"


@dataclass(frozen=True)
class StreamRequest:
    """A table to be scored into a file.

    Attributes
    ----------
    source : Path or str
        A CSV or Parquet file, or the URL of a database as SQLAlchemy has them.
    out : Path
        CSV, or Parquet if it ends in ``.parquet``.
    table : str
        Of the database.
    cipher : Cipher or None
        None = :meth:`backend.services.scoring.Scoring.suited`.
    account : Path or None
        JSON file that says how the table was read (:mod:`backend.data.sheet_account`).
    """

    model_id: str
    source: Path | str
    out: Path
    table: str = ""
    how: Reading = AS_IT_IS
    what_if: float | None = None
    cipher: Cipher | None = None
    key_bits: int = KEY_BITS
    account: Path | None = None


@dataclass(frozen=True)
class _Progress:
    """How far the partial file goes; `plan` tells which scoring it is, `run` the journal's name of the last group.

    `finished`: every group is through, and the file is about to be put in its place, or there.
    """

    plan: str
    groups: int
    size: int
    rows: int
    scored: int
    dither: float
    run: str
    finished: bool = False
    partial: int = 0
    refused: int = 0


_STORED = TypeAdapter(_Progress)


class Streaming:
    """Scores tables of any length. Where Hosts at their own companies are down it pauses, and goes on by itself."""

    def __init__(self, workspace: Workspace, models: Registry, scoring: Scoring) -> None:
        self._workspace = workspace
        self._models = models
        self._scoring = scoring

    def start(self, request: StreamRequest) -> Job[Streamed]:
        """Score in the background; continue from what an earlier run of the same request left next to its file."""
        return Job[Streamed](lambda job: self._stream(request, job), 0).start()

    def _stream(self, request: StreamRequest, job: Job[Streamed]) -> Streamed:
        if request.what_if is not None and not 0.0 <= request.what_if <= 1.0:
            raise ParameterError("cutoff_not_probability", cutoff=request.what_if)
        record = self._models.get(request.model_id)
        # One policy for the whole table, also if another one begins to hold while it is scored.
        today = datetime.now(UTC).date()
        policy = policy_of(self._workspace, record, today)
        federation = self._workspace.federation(record.federation)
        form = form_of(request.out, record.id, record.task == "classes", request.what_if is not None)
        keep_no_large_blocks()
        with held_alone(_beside(request.out, "lock")):
            job.at("read")
            source = source_of(request, federation)
            with work.part(0.0, SURVEYED):
                surveyed = survey(federation, source, request.how)
            cipher = request.cipher or self._scoring.suited(record.id, surveyed.rows)
            partial_file = _Partial(request.out, form, record.id, _plan(request, record, surveyed, cipher, policy))
            resumed = partial_file.progress.rows
            self._hand_over(record, partial_file.progress.run)
            notes = self._groups(record, source, surveyed, cipher, request, today, partial_file, job)
            end = partial_file.progress
            is_written = partial_file.finish()
        if cipher.startswith("paillier"):
            bits = request.key_bits
        else:
            bits = 0
        failed = end.rows - end.scored - end.refused
        return Streamed(
            record.id,
            cipher,
            bits,
            end.rows,
            end.scored,
            failed,
            resumed,
            end.dither,
            job.seconds,
            notes,
            is_written,
            end.partial,
            end.refused,
            policy,
            partial_file.kept,
        )

    def _groups(
        self,
        record: ModelRecord,
        source: TableSource,
        surveyed: Survey,
        cipher: Cipher,
        request: StreamRequest,
        today: date,
        partial_file: _Partial,
        job: Job[Streamed],
    ) -> tuple[Remark, ...]:
        """Steps 1 to 4 for every group that is not through; while the first of :data:`IN_FLIGHT` ends, the next are read and scored."""
        federation = self._workspace.federation(record.federation)
        runtime = self._workspace.runtime(record.federation)
        notes: dict[tuple[str, str, str], Remark] = {}
        job.total = surveyed.rows
        resumed = partial_file.progress.rows
        job.at("score", done=resumed)
        n_before = partial_file.progress.groups
        account = SheetAccount(federation)
        held_count = HeldCount(len(self._models.compiled(record).guest.folding.steps))
        # The account is of the whole table, also if a part of it was scored before.
        first = 0 if request.account else n_before
        source_sheets = sheets(federation, source, surveyed, lambda: runtime.table, first)
        flying: deque[tuple[SampleSheet, Job[ScoreBatch] | None]] = deque()

        def land() -> None:
            work.check()  # a group may be through before anybody has looked whether the whole was stopped
            sheet, inner = flying[0]
            rows_before = partial_file.progress.rows
            count = len(sheet.ids)
            begins, ends = (_share(row, resumed, surveyed) for row in (rows_before, rows_before + count))
            with work.part(begins, ends):
                scores, batch = self._followed(sheet, inner, job)
            run = "" if batch is None else batch.run
            partial_file.add(scores, run, 0.0 if batch is None else batch.dither)
            held_count.add(scores)
            if batch is not None:
                # The note on how many people the Hosts hold is about the whole table.
                added_notes(notes, [note for note in batch.notes if note.code != "few_held"])
            self._hand_over(record, run)
            flying.popleft()
            job.at("score", done=rows_before + count)

        with closing(source_sheets) as read:
            try:
                familiar = Known.of(self._workspace, self._models, record)
                for number, raw in enumerate(read, first):
                    if n_before == 0 and number == 0:
                        familiar.stop(raw.ids, source.name, request.how)
                    sheet = understood(raw, familiar)
                    account.add(sheet)
                    if number < n_before:
                        continue
                    if not sheet.usable:
                        added_notes(notes, sheet.notes)
                    flying.append((sheet, self._begun(record, sheet, cipher, request, today)))
                    if len(flying) == IN_FLIGHT:
                        land()
                while flying:
                    land()
            finally:
                self._stopped([inner for _, inner in flying if inner is not None])
        if request.account:
            write_whole(request.account, json_text(account.document()).encode())
        return (*notes.values(), *held_count.notes())

    @staticmethod
    def _stopped(inner: Sequence[Job[ScoreBatch]]) -> None:
        """Stop groups that are no longer needed: their answers wait in the journal."""
        for group_job in inner:
            group_job.cancel()
        for group_job in inner:
            group_job.wait()

    def _begun(
        self, record: ModelRecord, sheet: SampleSheet, cipher: Cipher, request: StreamRequest, today: date
    ) -> Job[ScoreBatch] | None:
        """Step 1; None if no row of the group can be scored."""
        if not sheet.usable:
            return None
        scoring_request = ScoringRequest(
            record.id,
            sheet,
            request.what_if,
            cipher,
            request.key_bits,
            hold=True,
            timeout=LASTING,
            decided_on=today,
        )
        return self._scoring.start(scoring_request)

    @staticmethod
    def _followed(
        sheet: SampleSheet, inner: Job[ScoreBatch] | None, job: Job[Streamed]
    ) -> tuple[tuple[Score, ...], ScoreBatch | None]:
        """Return the scores of a group, once they are there; a stop is passed on, and so is how far it is."""
        if inner is None:
            failed = []
            for row, sample_id in enumerate(sheet.ids):
                failed.append(failed_score(sample_id, sheet.problems.get(row, ())))
            return tuple(failed), None
        while inner.state == "running":
            inner.wait(POLL_SECONDS)
            job.waits = inner.waits
            job.silence = inner.silence
            if job.cancelled():
                inner.cancel()
            else:
                work.reached(inner.eta.share)
        job.waits = job.silence = None
        batch = inner.get()
        return batch.scores, batch

    def _hand_over(self, record: ModelRecord, run: str) -> None:
        """Step 4."""
        if run:
            self._workspace.journal(record.federation).handed_over(run)


class _Partial:
    """The groups that are through, and how far they go."""

    def __init__(self, out: Path, form: _Form, model_id: str, plan: str) -> None:
        self._out = out
        self._form = form
        self._model_id = model_id
        self.kept = 0  # failed rows that keep their row of the file that was there
        self._file = _beside(out, "partial")
        self._note = _beside(out, "progress")
        self.progress = _Progress(plan, 0, 0, 0, 0, 0.0, "")
        if self._note.exists():
            self.progress = self._read(plan)
        else:
            self._file.unlink(missing_ok=True)
            self._put(form.head, self.progress)

    def _earlier(self) -> dict[str, dict[str, str]]:
        """Return the rows that the file already has about people who failed now."""
        failed = self.progress.rows - self.progress.scored - self.progress.refused
        if not failed or not self._out.is_file():
            return {}
        return earlier_rows(self._out, self._model_id, self._form.failed(self._file))

    def _read(self, plan: str) -> _Progress:
        try:
            progress = _STORED.validate_json(self._note.read_bytes())
        except (OSError, ValidationError) as error:
            raise StoreError("progress_damaged", file=str(self._note), partial=self._file.name) from error
        size = self._file.stat().st_size if self._file.exists() else 0
        if progress.plan != plan:
            raise ParameterError("progress_of_another_scoring", file=str(self._note), partial=self._file.name)
        if size < progress.size and not (progress.finished and not size):
            raise StoreError("partial_file_shortened", file=str(self._file), progress=self._note.name)
        return progress

    def add(self, scores: tuple[Score, ...], run: str, dither: float) -> None:
        """Steps 2 and 3."""
        old = self.progress
        counts = counts_of(scores)
        progress = replace(
            old,
            groups=old.groups + 1,
            rows=old.rows + len(scores),
            scored=old.scored + counts["ok"] + counts["partial"],
            partial=old.partial + counts["partial"],
            refused=old.refused + counts["refused"],
            dither=max(old.dither, dither),
            run=run,
        )
        self._put(self._form.lines(scores), progress)

    def _put(self, lines: bytes, then: _Progress) -> None:
        try:
            with open(self._file, "r+b" if self._file.exists() else "w+b", opener=_private) as file:
                file.truncate(then.size)  # what a run that was killed has left behind
                file.seek(then.size)
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
            self._note_down(replace(then, size=then.size + len(lines)))
        except OSError as error:
            raise GlassleafError("scores_unwritable", file=str(self._out), reason=str(error.strerror)) from error

    def _note_down(self, progress: _Progress) -> None:
        write_whole(self._note, json.dumps(asdict(progress)).encode())
        self.progress = progress

    def finish(self) -> bool:
        """Put the file in its place and delete the helper files; return False if an earlier file is kept since no person was scored."""
        put = self.progress.finished or bool(self.progress.scored) or not self._out.exists()
        if put and self._file.exists():
            self._note_down(replace(self.progress, finished=True))
            with self._file.open("r+b") as file:
                file.truncate(self.progress.size)
            self.kept = self._form.finish(self._file, self._out, self._earlier())
        self._file.unlink(missing_ok=True)
        for draft in [*self._note.parent.iterdir()]:  # what a run that was killed has left behind
            if draft.name.startswith(f"{self._note.name}."):
                draft.unlink(missing_ok=True)
        self._note.unlink()
        return put


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@dataclass(frozen=True)
class _Form:
    """How scores are written: the head, lines behind it, and what is done at the end."""

    head: bytes
    lines: Callable[[tuple[Score, ...]], bytes]
    failed: Callable[[Path], set[str]]
    finish: Callable[[Path, Path, Mapping[str, Mapping[str, str]]], int]


def form_of(out: Path, model_id: str, classes: bool, what_if: bool = False) -> _Form:
    """CSV, or Parquet by way of an Arrow stream, which can be cut and gone on with.

    Raises
    ------
    ParameterError
        Nothing here writes Parquet.
    """
    if out.suffix != PARQUET_SUFFIX:
        return _Form(
            scores_head(classes, what_if),
            partial(scores_rows, model_id=model_id, classes=classes, what_if=what_if),
            _failed,
            _copied,
        )
    try:
        import pyarrow as pa  # noqa: PLC0415 - only who asks for Parquet needs it
    except ImportError:
        raise ParameterError("pyarrow_missing_to_write", file=out.name) from None
    texts = pa.string()
    kinds = dict.fromkeys(("score", "probability", "base", "guest_part", "hosts_part"), pa.float64())
    kinds |= dict.fromkeys(("points", "policy"), pa.int64())
    columns = score_columns(classes, what_if)
    schema = pa.schema([(name, kinds.get(name, texts)) for name in columns])

    def lines(scores: tuple[Score, ...]) -> bytes:
        # a figure that a score has not is NaN there, and null in the file
        columns = []
        for name in schema.names:
            columns.append(pa.array(_column(name, scores, model_id), schema.field(name).type, from_pandas=True))
        return bytes(pa.record_batch(columns, schema=schema).serialize())

    return _Form(bytes(schema.serialize()), lines, _failed_in_batches, _as_parquet)


def _column(name: str, scores: tuple[Score, ...], model_id: str) -> list[Any]:
    """One of the columns of Parquet."""
    if name == "model":
        return [model_id] * len(scores)
    if name in ("not_held_by", "marks"):
        return [" ".join(getattr(score, name)) for score in scores]
    if name == "remarks":
        return [remark_codes(score) for score in scores]
    return list(map(attrgetter("margin" if name == "score" else name), scores))


def _failed(file: Path) -> set[str]:
    """Return the ids of the rows of a partial file that failed."""
    with file.open(encoding="utf-8", newline="") as text:
        return {plain_cell(row["id"]) for row in csv.DictReader(text) if row["status"] == "failed"}


def _failed_in_batches(file: Path) -> set[str]:
    """See :func:`_failed`; of an Arrow stream."""
    import pyarrow as pa  # noqa: PLC0415 (as above)

    ids: set[str] = set()
    with file.open("rb") as lines, pa.ipc.open_stream(lines) as batches:
        for batch in _whole_batches(batches):
            rows = zip(batch.column("id").to_pylist(), batch.column("status").to_pylist(), strict=True)
            ids.update(name for name, status in rows if status == "failed")
    return ids


def _whole_batches(batches: Any) -> Iterator[Any]:
    """Yield the batches of a stream, whether or not its end was written."""
    while True:
        try:
            yield batches.read_next_batch()
        except StopIteration:
            return


def _copied(file: Path, out: Path, earlier: Mapping[str, Mapping[str, str]]) -> int:
    """Put the file in its place; returns how many rows are kept from the earlier one."""
    if out.exists() and not out.is_file():  # a pipe
        with file.open("rb") as lines, out.open("wb") as to:
            while part := lines.read(1 << 20):
                to.write(part)
        return 0
    if not earlier:
        file.replace(out)
        return 0
    draft = _beside(out, "new")
    n_kept = 0
    with (
        file.open(encoding="utf-8", newline="") as text,
        open(draft, "w", encoding="utf-8", newline="", opener=_private) as to,
    ):
        rows = csv.reader(text)
        columns = next(rows)
        to.write(csv_text([columns]))
        for row in rows:
            line = [plain_cell(cell) for cell in row]
            sample_id = line[columns.index("id")]
            if line[columns.index("status")] == "failed" and sample_id in earlier:
                line = kept_row(earlier[sample_id], columns)
                n_kept += 1
            to.write(csv_text([line]))
        to.flush()
        os.fsync(to.fileno())
    draft.replace(out)
    return n_kept


def _as_parquet(file: Path, out: Path, earlier: Mapping[str, Mapping[str, str]]) -> int:
    """Write a row group for each group; return the number of rows that are kept from the earlier file."""
    import pyarrow as pa  # noqa: PLC0415 (as above)
    from pyarrow import parquet  # noqa: PLC0415 (as above)

    draft = _beside(out, "new")
    n_kept = 0
    with file.open("ab") as end:
        end.write(END_OF_STREAM)
    with file.open("rb") as lines, pa.ipc.open_stream(lines) as batches:
        with open(draft, "wb", opener=_private) as to, parquet.ParquetWriter(to, batches.schema) as writer:
            for batch in batches:
                rows = batch.to_pylist() if earlier else []
                lost = [place for place, row in enumerate(rows) if row["status"] == "failed" and row["id"] in earlier]
                for place in lost:
                    rows[place] = _typed(kept_row(earlier[rows[place]["id"]], batches.schema.names), batches.schema)
                n_kept += len(lost)
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=batches.schema) if lost else batch)
        with draft.open("r+b") as finished_file:
            os.fsync(finished_file.fileno())
    draft.replace(out)
    return n_kept


def _typed(cells: Sequence[str], schema: Any) -> dict[str, object]:
    """Return a row's cells as its columns have them."""
    row: dict[str, object] = {}
    for field, cell in zip(schema, cells, strict=True):
        kind = str(field.type)
        if kind == "double":
            row[field.name] = float(cell) if cell else None
        elif kind == "int64":
            row[field.name] = int(cell) if cell else None
        else:
            row[field.name] = cell
    return row


def source_of(request: StreamRequest, federation: Federation) -> TableSource:
    """Return the table that a request names.

    Raises
    ------
    ParameterError
        A database without a table, or a table without a database.
    SampleError
        A workbook, which is read whole or not at all.
    """
    if isinstance(request.source, str):
        if not request.table:
            raise ParameterError("database_table_not_named")
        return DatabaseTable(request.source, request.table, federation.guest.id)
    if request.table:
        raise ParameterError("table_without_database")
    with opened(request.source) as file:
        begins = file.read(len(OLE))
    if begins.startswith((ZIP, OLE)):
        raise SampleError("workbook_not_in_groups", file=request.source.name, limit=SAMPLES.max_rows)
    return LongFile(request.source, request.how.encoding, int(request.how.header or 1))


def in_groups(source: Path | str, out: Path | None) -> bool:
    """Return whether a table is scored in groups: a database, more than a sheet of samples may hold, into Parquet, or going on."""
    if isinstance(source, str) or (
        out is not None and (out.suffix == PARQUET_SUFFIX or _beside(out, "progress").exists())
    ):
        return True
    with opened(source) as file:
        begins = file.read(len(PARQUET))
        if begins.startswith(ZIP):
            return False
        if begins != PARQUET:
            return source.stat().st_size > SAMPLES.max_bytes or file.read().count(b"\n") > SAMPLES.max_rows
    from backend.data.parquet_file import rows_of  # noqa: PLC0415 - slow to import

    return rows_of(source) > SAMPLES.max_rows


def _share(row: int, resumed: int, surveyed: Survey) -> float:
    """Return the share of this run's work that is done once the rows before `row` are, 0..1."""
    return SURVEYED + (1 - SURVEYED) * (row - resumed) / max(1, surveyed.rows - resumed)


def _beside(out: Path, what: str) -> Path:
    return out.with_name(f"{out.name}.{what}")


def _plan(request: StreamRequest, record: ModelRecord, surveyed: Survey, cipher: Cipher, policy: Policy) -> str:
    """Return a hash of all that makes two scorings the same."""
    settings = [request.what_if, policy.plain(), cipher, request.key_bits, request.out.suffix == PARQUET_SUFFIX]
    marks = [surveyed.marks.decimal, surveyed.marks.thousands]
    return sha256(json.dumps([record.content_hash, surveyed.digest, settings, marks]).encode()).hexdigest()
