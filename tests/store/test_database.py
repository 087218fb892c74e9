"""A party's database: one schema, transactions that hold together, older homes taken over whole or not at all."""

import gc
import json
import os
import shutil
import sqlite3
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

from backend.errors import StoreError
from backend.store.accountant import COHORT, EVERYBODY, SCORE, Accountant, Limits, Question
from backend.store.audit_log import AuditLog
from backend.store.database import BEFORE, FILE, HEAD, Database
from backend.store.migrations import configuration
from backend.store.party_store import PartyStore
from backend.store.schema import Base

HOMES = Path(__file__).parents[1] / "services" / "homes"


def unpacked(version, into):
    with zipfile.ZipFile(HOMES / f"{version}.zip") as archive:
        archive.extractall(into)
    return into


def differences(database):
    with database._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, Base.metadata)


def test_a_new_database_is_what_the_migrations_make_and_stamped_with_the_newest_of_them(tmp_path):
    assert differences(Database(tmp_path / "new")) == []
    assert differences(Database(unpacked("0.2.0", tmp_path) / "parties" / "demo" / "bank")) == []
    assert ScriptDirectory.from_config(configuration()).get_current_head() == HEAD


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


def test_a_new_database_is_made_at_once_and_no_other_than_the_steps_make_of_an_older_one(tmp_path, monkeypatch):
    older = unpacked("0.2.0", tmp_path) / "parties" / "demo" / "bank"
    Database(older)
    monkeypatch.setattr("backend.store.migrations.migrate", None)
    Database(tmp_path / "new")
    assert made(tmp_path / "new") == made(older)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_what_an_older_home_kept_in_many_files_is_in_one(version, tmp_path):
    home = unpacked(version, tmp_path)
    guest, host = (home / "parties" / "demo" / party for party in ("bank", "telecom"))
    files = {file.name: sqlite3.connect(file) for file in (*guest.glob("*.db"), host / "queries.db")}
    before = {
        "records": files["store.db"].execute("select count(*) from records").fetchone()[0],
        "audit": files["audit.db"].execute("select count(*) from audit").fetchone()[0],
        "reviews": files["reviews.db"].execute("select count(*) from reviews").fetchone()[0],
        "measurements": files["measurements.db"].execute("select count(*) from measurements").fetchone()[0],
    }
    counted = dict(files["queries.db"].execute("select subject, sum(asked) from queries group by subject").fetchall())
    for file in files.values():
        file.close()
    database = Database(guest)
    with database.read() as session:
        after = {
            table: session.execute(text(f"select count(*) from {table}")).scalar()  # noqa: S608
            for table in before
        }
    assert before == after and all(after.values()) and AuditLog(database).verify({}).holds
    assert PartyStore(database).artefact(json.loads(PartyStore(database).records()[0])["id"])
    Database(host)
    for folder in (guest, host):
        assert {file.name for file in folder.iterdir()} & {FILE, *BEFORE} == {FILE}
    one = Accountant(Database(host), Limits())
    for person, times in counted.items():  # what was counted by model id counts for everything now
        assert times and one.count(Question("bank", "", SCORE, "any", (person,))).all()


def test_models_of_a_home_of_0_3_0_become_drafts_of_whoever_made_them(tmp_path):
    database = Database(tmp_path)
    with database.write() as session:
        for model in ("made", "found"):
            session.execute(text("insert into artefacts values (:m, 'hash', 'text')"), {"m": model})
            session.execute(text("insert into records values (:m, 'then', '{}')"), {"m": model})
        for table in ("trainings", "receipts", "approval_uses", "approvals", "jobs", "model_steps", "model_states"):
            session.execute(text(f"drop table {table}"))
        session.execute(text("drop index kept_replies"))
        session.execute(text("update alembic_version set version_num = '0001'"))
    AuditLog(database).add("train", {"model": "made"}, "ana", "operator")
    AuditLog(database).add("score", {"model": "found"}, "ben", "analyst")
    with database.write() as session:
        session.execute(text("update audit set text = 'tampered with' where number = 2"))
    migrated = Database(tmp_path)
    assert differences(migrated) == []
    with migrated.read() as session:
        rows = session.execute(text("select model_id, owner, maker, state from model_states order by model_id")).all()
    assert rows == [("found", "", "", "draft"), ("made", "ana", "ana", "draft")]


def test_the_database_itself_refuses_a_second_model_in_use(tmp_path):
    database = Database(tmp_path)

    def used(model):
        with database.write() as session:
            session.execute(text("insert into artefacts values (:m, 'hash', 'text')"), {"m": model})
            session.execute(text("insert into records values (:m, 'then', '{}')"), {"m": model})
            session.execute(text("insert into model_states values (:m, '', '', '', '', 'in_use')"), {"m": model})

    used("one")
    with pytest.raises(StoreError):
        used("two")


def test_groups_that_an_older_host_answered_about_count_for_everybody(tmp_path):
    host = Database(unpacked("0.2.0", tmp_path) / "parties" / "demo" / "telecom")
    assert Accountant(host, Limits()).spent(Question("bank", "", COHORT, "any", ("whoever",))).all()
    with host.read() as session:
        assert session.execute(text("select subject from answers where kind = 'cohort'")).scalar() == EVERYBODY


def test_a_home_that_could_not_be_taken_over_is_as_it_was(tmp_path):
    folder = unpacked("0.2.0", tmp_path) / "parties" / "demo" / "bank"
    (folder / "audit.db").write_bytes(b"no database" * 100)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(StoreError):
        Database(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_files_that_were_taken_over_are_removed_even_if_the_first_time_was_broken_off(tmp_path):
    folder = unpacked("0.2.0", tmp_path) / "parties" / "demo" / "bank"
    shutil.copy(folder / "audit.db", tmp_path / "kept")
    Database(folder)
    shutil.copy(tmp_path / "kept", folder / "audit.db")  # as if the process had ended right after the commit
    entries = AuditLog(Database(folder)).head().number
    assert not (folder / "audit.db").exists() and AuditLog(Database(folder)).head().number == entries


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path):
    with Database(tmp_path).write() as session:
        session.execute(text("update alembic_version set version_num = '9999'"))
    with pytest.raises(StoreError):
        Database(tmp_path)


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
    with pytest.raises(StoreError, match="cannot be opened") as refused:
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
