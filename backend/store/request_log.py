"""A secret sample of what a Host was sent to score with, kept for an auditor. Encrypted rows: the Host itself can read none of them.

Which rows are kept is drawn by the Host after they have come, so that no Guest knows which of its requests will be looked at
(docs/decisions/0011-audit.md).
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from backend.errors import SecurityError

RATE = 0.1  # share of the people scored whose row is kept
KEPT = 256  # rows; the oldest make runtime: some 20 MB at 3,072 bits and 100 entries
FILE = "requests.db"

_TABLE = """
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, day TEXT NOT NULL, model_id TEXT NOT NULL, subject TEXT NOT NULL,
    public_key BLOB NOT NULL, vector BLOB NOT NULL
)
"""


@dataclass(frozen=True)
class LoggedRow:
    """One person's decision vector as it came from the Guest.

    Attributes
    ----------
    number : int
        In the log.
    day : str
        UTC date.
    public_key : bytes
        The modulus, big-endian.
    vector : bytes
        Ciphertexts, entry by entry.
    """

    number: int
    day: str
    model_id: str
    subject: str
    public_key: bytes = field(repr=False)
    vector: bytes = field(repr=False)


class RequestLog:
    """The sample of one Host.

    Parameters
    ----------
    folder : Path, optional
        Where ``requests.db`` lies; none = in memory.
    rate : float
        Probability with which a row is kept, 0 … 1.
    """

    def __init__(self, folder: Path | None = None, rate: float = RATE) -> None:
        self._folder, self._rate, self._lock = folder, rate, threading.Lock()
        self._memory: sqlite3.Connection | None = None

    def __repr__(self) -> str:
        return f"RequestLog(rate {self._rate:g})"

    def note(self, model_id: str, ids: Sequence[str], public_key: bytes, vectors: bytes) -> None:
        """Draw which rows of a request to keep, and keep them.

        Parameters
        ----------
        ids : sequence of str
            ``n``.
        vectors : bytes
            ``n`` rows of equal length.

        Raises
        ------
        SecurityError
            The rows cannot be kept, so that nothing may be answered.
        """
        draw = secrets.SystemRandom()
        kept = [i for i in range(len(ids)) if draw.random() < self._rate]
        if not kept:
            return
        size, day = len(vectors) // len(ids), datetime.now(UTC).date().isoformat()
        rows = [(day, model_id, ids[i], public_key, vectors[i * size : (i + 1) * size]) for i in kept]
        try:
            with self._lock, self._open() as database:
                database.executemany(
                    "INSERT INTO requests (day, model_id, subject, public_key, vector) VALUES (?, ?, ?, ?, ?)", rows
                )
                database.execute("DELETE FROM requests WHERE number <= (SELECT MAX(number) FROM requests) - ?", (KEPT,))
        except (sqlite3.Error, OSError) as error:
            raise SecurityError(
                f"This Host cannot keep requests for its auditor, so it answers nothing ({type(error).__name__}). Its operator "
                f"should check the disk and the file {FILE}."
            ) from error

    def rows(self) -> list[LoggedRow]:
        """What is kept, oldest first."""
        with self._lock, self._open() as database:
            found = database.execute(
                "SELECT number, day, model_id, subject, public_key, vector FROM requests ORDER BY number"
            ).fetchall()
        return [LoggedRow(*row) for row in found]

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop rows that were looked at."""
        with self._lock, self._open() as database:
            database.executemany("DELETE FROM requests WHERE number = ?", [(number,) for number in numbers])

    def _open(self) -> _Opened:
        """One transaction: a file is opened for it and closed after it, so that no thread keeps one."""
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _Opened(_ready(sqlite3.connect(self._folder / FILE)), close=True)
        if self._memory is None:
            self._memory = _ready(sqlite3.connect(":memory:", check_same_thread=False))
        return _Opened(self._memory, close=False)


class _Opened:
    """A database for one transaction."""

    def __init__(self, database: sqlite3.Connection, close: bool) -> None:
        self._database, self._close = database, close

    def __enter__(self) -> sqlite3.Connection:
        return self._database

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        (self._database.commit if kind is None else self._database.rollback)()
        if self._close:
            self._database.close()


def _ready(database: sqlite3.Connection) -> sqlite3.Connection:
    with closing(database.cursor()) as cursor:
        cursor.execute(_TABLE)
    return database
