"""A party's database: one schema, opened in one place, changed in transactions. Knows how tables are reached, not what they mean.

SQLite in the party's folder, or a server by URL (PostgreSQL). A writer has the database for itself until the transaction ends,
on both: what is read in it is still so when it is committed. A commit returns once the disk has it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import (
    Connection,
    Engine,
    TextClause,
    TextualSelect,
    column,
    create_engine,
    create_mock_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool, StaticPool

from backend.errors import StoreError
from backend.ops.atomic_file import held_alone
from backend.store.schema import Base, SecretRow

FILE = "store.db"
PRIVATE = 0o600  # mode of its file
OTHERS_MODE_BITS = 0o077  # bits of a mode
# URL of the parties' databases, e.g. postgresql+psycopg://glassleaf@db/{federation}_{party}
VARIABLE = "GLASSLEAF_STORE"
SCHEMA_VERSION = "1.0"  # the newest step of backend.store.migrations
BUSY_SECONDS = 30.0  # seconds to wait for another process that writes
# a row that is never there, of more than a free page
PROBE = "probe"
PROBE_BYTES = 1 << 14
CACHE_SIZE = 512  # answers that are kept in memory
OPENED = "opened"  # of a connection: by which process, and which file
OPEN_CONNECTIONS = 2  # connections to a file that are kept open; threads beyond them open one of their own
_inherited: list[object] = []  # connections of the process that this one was forked from, which closes them
T = TypeVar("T")
# Of PostgreSQL's advisory locks, which hold for a whole database of several schemas: who writes to one, who serves from it
LOCK, SERVING = (f"{number}, hashtext(current_schema())" for number in (7_305_101, 7_305_102))


class Database:
    """One party's database.

    Parameters
    ----------
    where : Path or str, optional
        A folder (SQLite in ``store.db``) or a database URL such as ``postgresql+psycopg://…``; none = in memory.

    Raises
    ------
    StoreError
        It cannot be opened, or another version of Glassleaf wrote it.
    """

    def __init__(self, where: Path | str | None = None) -> None:
        self.folder = where if isinstance(where, Path) else None
        self._name = _shown(where)
        self._lock = threading.RLock()
        self._open = threading.local()
        self._kept: dict[Hashable, tuple[object, object]] = {}
        self._engine = self._connect(where)
        self._writing = self._engine.execution_options(write=True)
        self._shared = where is None
        self._watch: _Watch | None = None
        self._watching = threading.Lock()
        if self._engine.dialect.name == "sqlite" and not self._shared:
            self._watch = _Watch(self._engine, _File(self._engine))
            # nothing stays open behind a store that was not closed
            weakref.finalize(self, self._watch.close)
            weakref.finalize(self, self._engine.dispose)
        try:
            self._settle()
        except SQLAlchemyError as error:
            reason = type(error.__cause__ or error).__name__
            if self._engine.dialect.name == "sqlite":
                code = "database_not_opened"
            else:
                code = "database_server_refuses"
            raise StoreError(code, database=self._name, reason=reason) from error

    def __repr__(self) -> str:
        return f"Database({self._name!r})"

    def _connect(self, where: Path | str | None) -> Engine:
        # hide_parameters: what is stored belongs into no message
        options: dict[str, Any] = {"hide_parameters": True}
        if isinstance(where, str) and not where.startswith("sqlite"):
            engine = create_engine(where, **options)
            event.listen(engine, "begin", _lock_server)
            return engine
        if isinstance(where, Path):
            try:
                where.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                raise StoreError("folder_not_made", folder=str(where), reason=error.strerror or "-") from error
            where = f"sqlite:///{where / FILE}"
        # to open a file and set it up takes as long as a transaction
        pool: dict[str, Any] = {"poolclass": StaticPool}
        if where is not None:
            pool = {"poolclass": QueuePool, "pool_size": OPEN_CONNECTIONS, "max_overflow": -1, "pool_use_lifo": True}
        connect = {"timeout": BUSY_SECONDS, "check_same_thread": False}
        engine = create_engine(where or "sqlite://", connect_args=connect, **pool, **options)
        if engine.url.database not in (None, "", ":memory:"):
            _keep_from_others(Path(engine.url.database))
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _settle(self) -> None:
        """Make the tables of a new database; migrate an older one to today's schema."""
        with self._engine.connect() as connection:
            settled = _version(connection) == SCHEMA_VERSION
        if not settled:
            self._make_or_migrate()
        if self.folder is not None:
            self._engine.dispose()  # the next connection keeps its journal
            event.listen(self._engine, "connect", _keep_journal)

    def _make_or_migrate(self) -> None:
        with self._writing.begin() as connection:
            version = _version(connection)  # again: another process may have been here first
            if version == SCHEMA_VERSION:
                return
            if version is None and not inspect(connection).get_table_names():
                for statement in tables(connection.dialect.name):
                    connection.exec_driver_sql(statement)
                connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)"))
                connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": SCHEMA_VERSION})
                return
            from backend.store.migrations import migrate  # noqa: PLC0415 (alembic is needed for older databases only)

            migrate(connection, self._name)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that changes something; one that is begun within another of the same thread is part of it.

        Raises StoreError if the database cannot be written; nothing of the transaction is kept.
        """
        outer: Session | None = getattr(self._open, "session", None)
        if outer is not None:
            yield outer
            outer.flush()
            return
        try:
            with self._lock, Session(self._writing, expire_on_commit=False) as session, session.begin():
                self._open.session = session
                try:
                    yield session
                finally:
                    self._open.session = None
        except SQLAlchemyError as error:
            raise self._failed("database_not_written", error) from error

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads, part of one that the thread has begun; within one that writes it sees what that wrote."""
        outer: Session | None = getattr(self._open, "session", None) or getattr(self._open, "reading", None)
        if outer is not None:
            yield outer
            return
        alone = self._lock if self._shared else nullcontext()  # one connection for all threads
        try:
            with alone, Session(self._engine) as session:
                self._open.reading = session
                try:
                    yield session
                finally:
                    self._open.reading = None
        except SQLAlchemyError as error:
            raise self._failed("database_not_read", error) from error

    def kept(self, key: Hashable, read: Callable[[Session], T]) -> T:
        """Return what `read` finds, read again once anything was written, here or by another process. For nothing that names a person.

        Every caller gets the same object, which may not be changed.
        """
        within = getattr(self._open, "session", None) or getattr(self._open, "reading", None)
        stamp = None if within is not None else self._stamp()
        if stamp is not None:
            cached = self._kept.get(key)
            if cached is not None and cached[0] == stamp:
                return cast(T, cached[1])
        with self.read() as session:
            value = read(session)
        if stamp is not None:
            if len(self._kept) >= CACHE_SIZE:
                self._kept.clear()
            self._kept[key] = stamp, value
        return value

    def _stamp(self) -> object | None:
        """Return a stamp that changes with each transaction that writes, of any process; None if it is not known."""
        if self._watch is None:
            return None
        try:
            with self._watching:
                return self._watch.stamp()
        except (SQLAlchemyError, sqlite3.Error):  # the reader raises it
            return None

    def _failed(self, code: str, error: SQLAlchemyError) -> StoreError:
        return StoreError(code, database=self._name, reason=type(error.__cause__ or error).__name__)

    def check_writable(self) -> None:
        """Write something and take it back, as a full disk does not allow; raises StoreError if that fails."""
        with self.write() as session:
            row = SecretRow(name=PROBE, value=bytes(PROBE_BYTES))
            session.add(row)
            session.flush()
            session.delete(row)

    @contextmanager
    def served_alone(self) -> Iterator[None]:
        """Context in which no other process serves from this database; the system or the server releases it if this process is killed.

        Raises
        ------
        StoreError
            Another process serves from it.
        """
        with ExitStack() as stack:
            if not self._held(stack):
                raise StoreError("database_served", database=self._name)
            yield

    def _held(self, stack: ExitStack) -> bool:
        if self._engine.dialect.name != "sqlite":
            connection = stack.enter_context(self._engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
            connection.detach()  # closed at the end, which lets go of the lock, and not kept for others
            return bool(connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({SERVING})").scalar())
        if not self._shared:
            try:
                stack.enter_context(held_alone(Path(f"{self._engine.url.database}.serving")))
            except StoreError:
                return False
        return True

    @property
    def in_memory(self) -> bool:
        """Return whether it is forgotten with the process."""
        return self._engine.dialect.name == "sqlite" and self._engine.url.database in (None, "", ":memory:")

    def close(self) -> None:
        """Release the database; using it again opens it again."""
        if self._watch is not None:
            with self._watching:
                self._watch.close()
        if not self._shared:
            self._engine.dispose()


class _File:
    """A file of SQLite to which connections are kept open: one is used as long as it leads to the file that is there."""

    def __init__(self, engine: Engine) -> None:
        self._path = Path(str(engine.url.database))
        event.listen(engine, "connect", self._note)
        event.listen(engine, "checkout", self._check)

    def _opened(self) -> tuple[int, int, int]:
        """By which process, and which file; no file is one that is not there."""
        try:
            status = self._path.stat()
        except OSError:
            return os.getpid(), 0, 0
        return os.getpid(), status.st_dev, status.st_ino

    def _note(self, connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[OPENED] = self._opened()

    def is_there(self, info: Mapping[str, Any]) -> bool:
        """Return whether a connection of which this was noted can be used."""
        return bool(info[OPENED] == self._opened())

    def _check(self, connection: Any, record: Any, proxy: Any) -> None:
        if self.is_there(record.info):
            return
        if record.info[OPENED][0] != os.getpid():  # a fork leaves its parent's connections alone
            _inherited.append(connection)
            record.dbapi_connection = proxy.dbapi_connection = None
        raise DisconnectionError("Another file is in its place.")


class _Watch:
    """Tells whether anybody has written to a file, by a connection that never writes itself; for one thread at a time."""

    def __init__(self, engine: Engine, file: _File) -> None:
        self._engine = engine
        self._file = file
        self._opened = 0
        self._connection: PoolProxiedConnection | None = None

    def stamp(self) -> tuple[int, int]:
        """Another one after every commit (sqlite.org/pragma.html#pragma_data_version)."""
        if self._connection is not None and not self._file.is_there(self._connection.info):
            self.close()
        if self._connection is None:
            self._connection = self._engine.raw_connection()
            self._opened = self._opened + 1
        version = cast(sqlite3.Connection, self._connection.driver_connection).execute("PRAGMA data_version")
        return self._opened, version.fetchone()[0]

    def close(self) -> None:
        """Release the connection."""
        if self._connection is None:
            return
        if self._connection.info[OPENED][0] != os.getpid():  # as above
            _inherited.append(self._connection)
        else:
            self._connection.invalidate()
        self._connection = None


@cache
def tables(dialect: str) -> tuple[str, ...]:
    """Return the statements that make a new database's tables; compiled once, for a process may open many."""
    statements: list[str] = []
    spoken = make_url(f"{dialect}://").get_dialect()()
    engine = create_mock_engine(f"{dialect}://", lambda step, *_: statements.append(str(step.compile(dialect=spoken))))
    Base.metadata.create_all(engine, checkfirst=False)
    return tuple(statements)


def _shown(where: Path | str | None) -> str:
    """Return what a database is called in messages; a URL without its password."""
    if isinstance(where, Path):
        return str(where / FILE)
    if where:
        return make_url(where).render_as_string(hide_password=True)
    return "in memory"


def _version(connection: Connection) -> str | None:
    """Return the schema's version; None if there is no schema."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return version


def _keep_from_others(file: Path) -> None:
    """Let the owner alone read a database, new or old; SQLite gives the files beside it the same mode."""
    with suppress(OSError):  # the process that opens the file reports an error
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
        except FileExistsError:
            if os.name == "posix" and file.stat().st_mode & OTHERS_MODE_BITS:
                file.chmod(PRIVATE)


def _set_up_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy begins them
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")  # erased people are not in free pages either
    connection.execute("PRAGMA synchronous = FULL")  # what was counted is counted after a power cut, too


def _keep_journal(connection: Any, record: object) -> None:
    """A rollback journal that is emptied, and not deleted, costs no write of its folder."""
    connection.execute("PRAGMA journal_mode = TRUNCATE")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("write") else "BEGIN")


def _lock_server(connection: Connection) -> None:
    if connection.get_execution_options().get("write"):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")


def party_database(folder: Path, federation: str, party: str) -> Database:
    """Return a party's database: in its folder, or at the URL that ``GLASSLEAF_STORE`` gives for it.

    Raises StoreError if it cannot be opened, or the variable has other places to fill in than ``{federation}`` and ``{party}``.
    """
    url = os.environ.get(VARIABLE, "").strip()
    if not url:
        return Database(folder)
    try:
        return Database(url.format(federation=federation, party=party))
    except (LookupError, ValueError) as error:
        raise StoreError("store_url_unusable", variable=VARIABLE, reason=str(error)) from error


def prepared(statement: str, *columns: str) -> TextualSelect:
    """Return a query that is put together once, for one that is made many times: to do so each time takes longer than the query."""
    return text(statement).columns(*(column(name) for name in columns))


# Statement and dialect → its text, and the parameters' names in their order; None if the driver takes them by name.
_FOR_DRIVERS: dict[tuple[TextClause, str], tuple[str, list[str] | None]] = {}


def execute_many(session: Session, statement: TextClause, rows: Sequence[Mapping[str, Any]]) -> None:
    """Execute a statement of several parameters with each row.

    The driver does it: SQLAlchemy puts each row's parameters together, which takes longer than to store them.
    """
    connection = session.connection()
    dialect = connection.dialect
    key = statement, dialect.name
    if key not in _FOR_DRIVERS:
        compiled = statement.compile(dialect=dialect)
        _FOR_DRIVERS[key] = str(compiled), compiled.positiontup
    sql, names = _FOR_DRIVERS[key]
    values: Any = rows if names is None else [*map(itemgetter(*names), rows)]
    connection.exec_driver_sql(sql, values)


def column_values(row: DeclarativeBase) -> dict[str, Any]:
    """Column → value of one row."""
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


def timestamp() -> str:
    """Now: UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
