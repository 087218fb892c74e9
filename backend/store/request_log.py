"""A secret sample of the requests a Host scored, kept for an auditor. The rows are encrypted: the Host itself can read none of them.

The Host draws which rows to keep after they have arrived, so no Guest knows which of its requests will be audited
(docs/decisions/0011-audit.md).
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from backend.errors import SecurityError

RATE = 0.1  # share of the people scored whose row is kept
KEPT = 256  # rows, the newest: some 20 MB at 3,072 bits and 100 entries
FILE = "requests.db"

_TABLE = """
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, day TEXT NOT NULL, model_id TEXT NOT NULL, subject TEXT NOT NULL,
    public_key BLOB NOT NULL, vector BLOB NOT NULL
)
"""


@dataclass(frozen=True)
class LoggedRow:
    """One person's decision vector as the Guest sent it.

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
        """Sample the rows of a request.

        Parameters
        ----------
        ids : sequence of str
            ``n``.
        vectors : bytes
            ``n`` rows of equal length.

        Raises
        ------
        SecurityError
            The rows cannot be stored, so nothing may be answered.
        """
        draw = secrets.SystemRandom()
        kept = [i for i in range(len(ids)) if draw.random() < self._rate]
        if not kept:
            return
        size, day = len(vectors) // len(ids), datetime.now(UTC).date().isoformat()
        rows = [(day, model_id, ids[i], public_key, vectors[i * size : (i + 1) * size]) for i in kept]
        try:
            with self._lock, self._transaction() as database:
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
        """The sampled rows, oldest first."""
        with self._lock, self._transaction() as database:
            found = database.execute(
                "SELECT number, day, model_id, subject, public_key, vector FROM requests ORDER BY number"
            ).fetchall()
        return [LoggedRow(*row) for row in found]

    def forget(self, numbers: Sequence[int]) -> None:
        """Delete rows that were audited."""
        with self._lock, self._transaction() as database:
            database.executemany("DELETE FROM requests WHERE number = ?", [(number,) for number in numbers])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction; a file is opened for it and closed after it, so that no thread keeps a connection."""
        database = self._memory or self._connect()
        try:
            with database:
                yield database
        finally:
            if database is not self._memory:
                database.close()

    def _connect(self) -> sqlite3.Connection:
        if self._folder is None:
            database = self._memory = sqlite3.connect(":memory:", check_same_thread=False)
        else:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            database = sqlite3.connect(self._folder / FILE)
        database.execute(_TABLE)
        return database
