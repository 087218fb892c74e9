"""How often one person was scored with one model, as a Host counts it. Knows ids and dates; no column, no score.

Every score of a person under other Guest columns discloses more about the same Host record to the Guest (docs/attacks.md, A8). The count
outlives a restart and is kept per id and model, whoever asks, since several Guests could collude.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from backend.data.federation import MAX_QUERIES
from backend.errors import ParameterError, SecurityError

# per person and model: a second score identifies the Host's answers about 36 % of people, a first one nobody's (A8, 6 bits)
QUERIES = 1
QUERIES_SYNTHETIC = 1000  # synthetic people need no protection
DAYS = 28  # so that scoring on the same day of every month always fits
VARIABLE = "GLASSLEAF_BUDGET"
FILE = "queries.db"
TIMEOUT = 30.0  # seconds to wait for another process that is counting

_TABLE = """
CREATE TABLE IF NOT EXISTS queries (
    model_id TEXT NOT NULL, subject TEXT NOT NULL, day INTEGER NOT NULL, asked INTEGER NOT NULL,
    PRIMARY KEY (model_id, subject, day)
) WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS queries_day ON queries (day)"
_USED = "SELECT COALESCE(SUM(asked), 0) FROM queries WHERE model_id = ? AND subject = ?"
_COUNT = """
INSERT INTO queries VALUES (?, ?, ?, ?) ON CONFLICT (model_id, subject, day) DO UPDATE SET asked = asked + excluded.asked
"""


class QueryBudget:
    """The count of one Host.

    Parameters
    ----------
    folder : Path, optional
        Where ``queries.db`` lies; none = in memory, forgotten when the Host stops.
    limit : int
        Answers about a person and model within `days`; 0 = unlimited.
    days : int
        Rolling window, in whole UTC days.
    today : callable
        The UTC date.

    Raises
    ------
    ParameterError
        `limit` is out of range.
    """

    def __init__(
        self,
        folder: Path | None = None,
        limit: int = QUERIES,
        days: int = DAYS,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        if not 0 <= limit <= MAX_QUERIES:
            raise ParameterError(
                f"A budget of {limit:,} was asked for; choose 1 to {MAX_QUERIES:,}, or 0 for no limit."
            )
        self.limit, self.days, self._today = limit, days, today
        self._folder, self._lock = folder, threading.Lock()
        self._database: sqlite3.Connection | None = None

    def __repr__(self) -> str:
        return f"QueryBudget({self.limit} in {self.days} days)"

    def take(self, model_id: str, ids: Sequence[str], kind: str = "") -> NDArray[np.bool_]:
        """Count one question about each of `ids`; those beyond the budget must not be answered and are not counted.

        Parameters
        ----------
        ids : sequence of str
            ``(n,)``; a person who is listed twice is asked about twice.
        kind : str
            What is asked for beside a score (``reasons``): each kind has its own count, so that a scored person can get reasons.

        Returns
        -------
        ndarray of bool
            ``(n,)``: True = the budget was exhausted before this question.

        Raises
        ------
        SecurityError
            The count cannot be stored, so nothing may be answered.
        """
        exhausted = np.zeros(len(ids), dtype=bool)
        if not self.limit or not ids:
            return exhausted
        with self._lock, _database_errors():
            if self._database is None:
                self._database = _open(self._folder)
                weakref.finalize(self, self._database.close)
            database = self._database
            database.execute("BEGIN IMMEDIATE")  # no other process counts between reading and writing
            try:
                granted = self._granted(database, f"{model_id} {kind}".strip(), Counter(ids))
                database.execute("COMMIT")
            except sqlite3.Error:
                database.execute("ROLLBACK")
                raise
        for i, subject in enumerate(ids):
            granted[subject] -= 1
            exhausted[i] = granted[subject] < 0
        return exhausted

    def close(self) -> None:
        """Release the file; the next question opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database = None

    def _granted(self, database: sqlite3.Connection, model_id: str, asked: Mapping[str, int]) -> dict[str, int]:
        """Forget expired days, then count as many of the questions about each person as the budget leaves."""
        day, granted = self._today().toordinal(), {}
        database.execute("DELETE FROM queries WHERE day <= ?", (day - self.days,))
        for subject, times in asked.items():
            used: int = database.execute(_USED, (model_id, subject)).fetchone()[0]
            granted[subject] = min(times, max(0, self.limit - used))
        database.executemany(_COUNT, [(model_id, s, day, times) for s, times in granted.items() if times])
        return granted


@contextmanager
def _database_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise SecurityError(
            "This Host cannot count how often a person was asked about, so it answers nothing "
            f"({type(error).__name__}). Its operator should check the disk and the file {FILE}."
        ) from error


def _open(folder: Path | None) -> sqlite3.Connection:
    """A database with explicit transactions, usable from another thread than the one that opens it.

    Commits do not wait for the disk, so that a power cut (not a crash of the Host) may forget the last questions.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    where = ":memory:" if folder is None else folder / FILE
    database = sqlite3.connect(where, timeout=TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        _use_write_ahead_log(database)
        for statement in ("PRAGMA synchronous = NORMAL", _TABLE, _INDEX):
            database.execute(statement)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _use_write_ahead_log(database: sqlite3.Connection) -> None:
    """Readers then do not wait for writers; SQLite's own timeout does not apply to this statement, so it is repeated here."""
    until = time.monotonic() + TIMEOUT
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.005)


def usual_limit(synthetic: bool) -> int:
    """The budget where neither the federation file nor the caller names one: ``GLASSLEAF_BUDGET``, else the default.

    Raises
    ------
    ParameterError
        The variable holds no number.
    """
    asked = os.environ.get(VARIABLE, "").strip()
    if not asked:
        return QUERIES_SYNTHETIC if synthetic else QUERIES
    if not asked.isdecimal():
        raise ParameterError(f"{VARIABLE} is {asked!r}; set it to a whole number, 0 for no limit, or remove it.")
    return int(asked)
