"""A party's database: one schema, transactions that hold together."""

import gc
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, event, text

from backend.errors import StoreError
from backend.store.audit_log import AuditLog
from backend.store.database import FILE, SCHEMA_VERSION, Database
from backend.store.migrations import configuration
from backend.store.party_store import PartyStore
from backend.store.schema import Base


def differences(database):
    with database._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, Base.metadata)


def made(folder):
    """Of every table its columns and keys, and every index, as SQLite has them."""
    with closing(sqlite3.connect(folder / FILE)) as database:
        named = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        tables = [name for (name,) in named if name != "alembic_version"]  # which is Alembic's own
        parts = ("table_info", "foreign_key_list")
        found = {
            (table, part): sorted((row[1:] for row in database.execute(f"PRAGMA {part}({table})")), key=str)
            for table in tables
            for part in parts
        }
        other = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL"
        return found, sorted((kind, name, "".join(sql.split())) for kind, name, sql in database.execute(other))


def test_the_database_itself_refuses_a_second_model_in_use(tmp_path):
    database = Database(tmp_path)

    def used(model):
        with database.write() as session:
            session.execute(text("insert into artefacts values (:m, 'hash', 'text')"), {"m": model})
            session.execute(text("insert into records values (:m, 'then', '{}')"), {"m": model})
            session.execute(
                text("insert into model_states values (:m, '', '', '', '', 'in_use', '', '')"), {"m": model}
            )

    used("one")
    with pytest.raises(StoreError):
        used("two")


def migrated(folder):
    """Have the first step make the tables, as an upgrade from nothing would."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.execute("create table alembic_version (version_num varchar(32) primary key)")
    with create_engine(f"sqlite:///{folder / FILE}").begin() as connection:
        config = configuration()
        config.attributes.update(connection=connection)
        command.upgrade(config, "head")


def test_a_new_database_is_what_the_migrations_make_and_stamped_with_the_newest_of_them(tmp_path):
    assert differences(Database(tmp_path / "new")) == []
    migrated(tmp_path / "migrated")
    assert made(tmp_path / "new") == made(tmp_path / "migrated")
    assert ScriptDirectory.from_config(configuration()).get_current_head() == SCHEMA_VERSION


def test_a_new_database_is_made_without_alembic(tmp_path, monkeypatch):
    monkeypatch.setattr("backend.store.migrations.migrate", None)
    Database(tmp_path)


@pytest.mark.parametrize("version", ["9999", "0006", None])
def test_a_database_of_another_version_is_refused_and_left_alone(version, tmp_path):
    with Database(tmp_path).write() as session:
        session.execute(text("delete from alembic_version"))
        if version is not None:
            session.execute(text("insert into alembic_version values (:version)"), {"version": version})
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(StoreError) as refused:
        Database(tmp_path)
    assert refused.value.code == "unknown_schema" and refused.value.values["version"] == (version or "-")
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("damage", [b"this is no database, and long enough to be looked at" * 100, None])
def test_a_damaged_one_and_a_folder_in_its_place_are_named(damage, tmp_path):
    if damage is None:
        (tmp_path / "store.db").mkdir()
    else:
        (tmp_path / "store.db").write_bytes(damage)
    with pytest.raises(StoreError):
        Database(tmp_path)


def test_a_home_that_is_a_file_is_named(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError):
        Database(tmp_path / "home")


def test_many_that_open_a_new_database_at_once_all_get_it(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: AuditLog(Database(tmp_path / "new")).add("a", {"i": i}, "x", "y"), range(16)))
    assert AuditLog(Database(tmp_path / "new")).head().number == 16


@pytest.mark.parametrize("where", ["file", "memory"])
def test_what_belongs_together_is_kept_together_or_not_at_all(where, tmp_path):
    database = Database(tmp_path if where == "file" else None)
    store, log = PartyStore(database), AuditLog(database)
    with pytest.raises(ZeroDivisionError), database.write():
        store.put_artefact("m", "text")
        log.add("train", {}, "a", "b")
        assert store.artefact("m") == "text"  # seen within the transaction
        raise ZeroDivisionError
    assert log.head().number == 0 and store.records() == []
    with database.write():
        store.put_artefact("m", "text")
        log.add("train", {}, "a", "b")
    assert log.head().number == 1 and store.artefact("m") == "text"


def test_no_value_stands_in_an_error(tmp_path):
    database = Database(tmp_path)
    with database.write() as session:
        session.execute(text("drop table artefacts"))
    with pytest.raises(StoreError) as error:
        PartyStore(database).put_artefact("m", "a Host's threshold")
    chain = [str(error.value), str(error.value.__cause__)]
    assert not any("threshold" in words for words in chain)


def test_what_is_read_within_a_reading_is_part_of_it(tmp_path):
    for where in (None, tmp_path):
        database = Database(where)
        with database.read() as outer, database.read() as inner:
            assert inner is outer
        with database.read() as after:
            assert after is not outer


def test_a_disk_that_is_full_is_noticed_though_it_can_be_read():
    database = Database()  # without a free page
    with database.read() as session:
        pages = session.execute(text("PRAGMA page_count")).scalar()
        session.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StoreError, match="cannot be written"):
        database.check_writable()
    with database.read() as session:
        assert session.execute(text("select count(*) from secrets")).scalar() == 0
        session.execute(text("PRAGMA max_page_count = 100000"))
    database.check_writable()


@pytest.mark.parametrize("place", [str, lambda folder: f"sqlite:///{folder / 'shop.db'}"], ids=["folder", "url"])
def test_only_one_serves_from_a_database_at_a_time(tmp_path, place):
    where = place(tmp_path)
    one, two = (Database(where if "://" in where else tmp_path) for _ in range(2))
    with one.served_alone(), pytest.raises(StoreError, match="already"), two.served_alone():
        pass
    with two.served_alone():
        two.check_writable()
    assert not list(tmp_path.glob("*.serving"))


def test_a_password_in_a_url_is_in_no_message():
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    with pytest.raises(StoreError, match="does not answer") as refused:
        Database("postgresql+psycopg://ana:secret-word@127.0.0.1:1/bank?connect_timeout=5")
    assert "secret-word" not in str(refused.value)


def records_of(database, asked):
    def read(session):
        asked.append(True)
        return tuple(session.scalars(text("select model_id from records order by model_id")))

    return database.kept("all", read)


def add_record(database, name):
    with database.write() as session:
        session.execute(text("insert into artefacts values (:m, 'hash', 'text')"), {"m": name})
    PartyStore(database).put_record(name, {"created": "then"})


def test_what_was_read_is_read_again_once_anybody_has_written_and_not_before(tmp_path):
    database, another_process, asked = Database(tmp_path), Database(tmp_path), []
    for number, (writer, name) in enumerate([(database, "first"), (another_process, "other")], start=1):
        add_record(writer, name)
        before = len(asked)
        assert [len(records_of(database, asked)) for _ in range(5)] == [number] * 5
        assert len(asked) == before + 1


def test_connections_are_kept_open_and_none_after_the_database_is_closed_or_forgotten(tmp_path):
    opened, closed = [], []
    for forgotten in (False, True):
        database = Database(tmp_path)
        event.listen(database._engine, "connect", lambda connection, _: opened.append(connection))
        event.listen(database._engine, "close", lambda connection, _: closed.append(connection))
        for number in range(3):
            add_record(database, f"{forgotten} {number}")
            records_of(database, [])
        assert len(opened) == 2 and not closed  # one that tells what was written, and one for the rest
        if not forgotten:
            database.close()
        del database
        gc.collect()
        assert len(closed) == 2
        opened.clear()
        closed.clear()


def test_a_file_that_takes_the_place_of_another_is_read_and_written_at_once(tmp_path):
    database, other = Database(tmp_path / "one"), Database(tmp_path / "other")
    for known, name in ((database, "first"), (other, "restored")):
        add_record(known, name)
        assert records_of(known, []) == (name,)
    other.close()
    (tmp_path / "other" / FILE).replace(tmp_path / "one" / FILE)
    assert records_of(database, []) == ("restored",)
    add_record(database, "written")
    assert set(records_of(Database(tmp_path / "one"), [])) == {"restored", "written"}


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_opens_connections_of_its_own_and_closes_none_of_its_parent(tmp_path):
    database, closed = Database(tmp_path), []
    add_record(database, "before")
    assert records_of(database, []) == ("before",)
    with database._engine.connect() as one, database._engine.connect() as another:
        assert one is not another  # so that one is idle while the other writes
    event.listen(database._engine, "close", lambda connection, _: closed.append(connection))
    with database.write() as session:
        session.execute(text("insert into artefacts values ('half', 'hash', 'text')"))
        child = os.fork()
        if not child:
            code = 1
            with suppress(BaseException):
                other = Database(tmp_path)  # a lock that another thread held at the fork would never be let go
                other._engine, other._watch = database._engine, database._watch
                code = 0 if records_of(other, []) == ("before",) and not closed else 1
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with database.read() as session:
        assert session.scalar(text("select count(*) from artefacts")) == 2


def test_a_transaction_reads_what_it_wrote_and_nobody_else_does_before_it_ends(tmp_path):
    database, asked = Database(tmp_path), []
    assert records_of(database, asked) == ()
    with pytest.raises(RuntimeError), database.write() as session:
        session.execute(text("insert into artefacts values ('new', 'hash', 'text')"))
        session.execute(text("insert into records values ('new', 'then', '{}')"))
        assert records_of(database, asked) == ("new",)
        raise RuntimeError
    assert records_of(database, asked) == ()


def test_in_memory_nothing_is_kept_besides():
    database, asked = Database(), []
    assert [records_of(database, asked) for _ in range(2)] == [(), ()] and len(asked) == 2
