"""The same stores on a real PostgreSQL server: nothing is granted twice, chains hold, a score goes through and is counted."""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from companies import free_port

from backend.data.demo import write_demo
from backend.errors import QuestionRefused, StoreError
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.store.accountant import SCORE, Accountant, Limits, Question
from backend.store.audit_log import AuditLog
from backend.store.database import VARIABLE, Database
from backend.store.journal import Journal
from backend.store.request_log import RequestLog
from backend.store.retention import expire
from backend.store.schema import Base

pytest.importorskip("psycopg", reason="psycopg is not installed; PostgreSQL cannot be reached")
DatabaseJanitor = pytest.importorskip(
    "pytest_postgresql.janitor", reason="pytest-postgresql is not there"
).DatabaseJanitor
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))


@pytest.fixture(scope="session")
def server():
    """Port of a server of our own. Root may not run one, so it runs as Debian's user ``postgres`` then.

    Its folder is outside pytest's, which each new run of pytest closes to other users.
    """
    if not BINARIES:
        pytest.skip("PostgreSQL's server is not installed here; Debian: apt-get install postgresql")
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    run_as = []
    if os.geteuid() == 0:
        run_as = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    control, data = BINARIES[-1], folder / "data"

    def run(*words, check=True):
        subprocess.run([*run_as, *map(str, words)], check=check, capture_output=True, cwd="/")

    run(control.with_name("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    run(control, "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    yield port
    run(control, "-D", data, "-m", "immediate", "stop", check=False)  # the tests are over: what it says of them is said
    shutil.rmtree(folder)


@pytest.fixture
def url(server):
    """Name of a database → its URL; made when it is first named, dropped at the end."""
    prefix = f"glassleaf_{os.urandom(4).hex()}"
    with ExitStack() as made:

        def url_of(name):
            where = {"user": "postgres", "host": "127.0.0.1", "port": server, "dbname": f"{prefix}_{name}"}
            made.enter_context(DatabaseJanitor(**where))
            return f"postgresql+psycopg://postgres@127.0.0.1:{server}/{prefix}_{name}"

        yield url_of


@pytest.fixture
def opened():
    """Databases by URL, closed at the end."""
    databases = []

    def open_(place):
        databases.append(Database(place))
        return databases[-1]

    yield open_
    for database in databases:
        database.close()


def test_the_schema_is_the_same(url, opened):
    database = opened(url("shop"))
    with database._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_many_that_open_a_new_database_and_count_at_once_do_not_grant_twice(url, opened):
    place, people = url("shop"), tuple(f"p{i}" for i in range(200))

    def ask(_):
        database = opened(place)
        spent = Accountant(database, Limits(1)).count(Question("bank", "", SCORE, "s", people))
        return int((~spent).sum())

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == len(people)


def test_only_one_serves_from_a_database_at_a_time(url, opened):
    place = url("shop")
    one, two, other = opened(place), opened(place), opened(url("bank"))
    with one.served_alone(), other.served_alone(), pytest.raises(StoreError, match="already"), two.served_alone():
        pass
    with two.served_alone():
        one.check_writable()
        two.close()  # as a Host does at its end
        with pytest.raises(StoreError, match="already"), one.served_alone():
            pass
    with one.served_alone():
        pass
    with one._engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA third")
    third = opened(f"{place}?options=-csearch_path%3Dthird")
    with one.served_alone(), third.served_alone(), one.write():
        third.check_writable()  # two schemas of one database are two parties'


def test_a_question_is_counted_once_and_answered_with_the_same_bytes(url, opened):
    one = Accountant(opened(url("shop")), Limits(1))
    question = Question("bank", "r", SCORE, "s", ("a",), bits=3.0)
    assert not one.count(question).any() and not one.count(question).any()
    assert one.reply_to("bank", "r", "d") is None
    one.keep_reply("bank", "r", b"\x00answer")
    assert one.reply_to("bank", "r", "d") == b"\x00answer"
    with pytest.raises(QuestionRefused):
        one.reply_to("bank", "r", "other bytes")
    assert one.given_away(["a"]) == {"a": 3.0}


def test_a_log_that_many_write_at_once_is_one_chain(url, opened):
    place = url("bank")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda i: AuditLog(opened(place)).add("score", {"i": i}, "a", "b"), range(24)))
    log = AuditLog(opened(place))
    assert log.verify({}).holds and log.head().number == 24


def test_the_journal_and_the_sample_of_requests_keep_their_word(url, opened):
    database = opened(url("bank"))
    run = Journal(database).run("question")
    assert run.sending(0, 0, b"first") == run.sending(0, 0, b"other") == b"first"
    Journal(database).handed_over(run.name)
    log = RequestLog(database, rate=1.0, max_rows=5)
    log.note("m", [f"p{i}" for i in range(20)], b"key", [bytes([i]) for i in range(20)])
    assert len(log.rows()) == 5


def test_who_is_forgotten_gets_no_new_budget_and_old_rows_go(url, opened):
    database = opened(url("shop"))
    one, two = (Accountant(database, Limits(2)) for _ in range(2))
    log = RequestLog(database, rate=1.0)
    for account in (one, two):
        assert not account.count(Question("bank", "", SCORE, "s", ("a", "b"), bits=3.0)).any()
        assert account.forget("a") == (1, 0)
    assert one.count(Question("bank", "r", SCORE, "s", ("a", "b"))).all() and one.given_away(["a"]) == {"a": 6.0}
    assert [(answer.under, answer.times) for answer in one.about("a")] == [("pseudonym", 2)]
    log.note("m", ["a"], b"key", [b"body"])
    assert [row[4] for row in log.about("a")] == [4]
    assert expire(database) == {}
    gone = expire(database, datetime.now(UTC) + timedelta(days=1000))
    assert gone == {"answers": 2, "questions": 3, "requests": 1}


def test_people_are_scored_and_counted_with_every_party_on_the_server(url, tmp_path, monkeypatch):
    federation = write_demo(tmp_path / "demo", rows=150)
    for party in federation.parties:
        url(f"demo_{party.name}")
    place = url("x").removesuffix("_x")
    monkeypatch.setenv(VARIABLE, place + "_{federation}_{party}")
    with Glassleaf(tmp_path / "home", key_floor=512, pools=False) as glassleaf:
        glassleaf.federations.add(tmp_path / "demo")
        few = SecureBoostParameters(trees=2, depth=2, cipher="none")
        record = glassleaf.training.start(TrainingRequest("demo", few)).get()
        sheet = glassleaf.samples.of_person(record.id, glassleaf.models.test_ids(record)[0])
        batch = glassleaf.scoring.start(ScoringRequest(record.id, sheet, key_bits=512)).get()
        assert batch.scores[0].status == "ok" and glassleaf.audit.verify("demo").holds
        [person] = sheet.ids
        glassleaf.people.forget("demo", person, "asked to be erased")
        assert person not in glassleaf.models.test_ids(record) and glassleaf.people.expire("demo") == {}
    assert not list((tmp_path / "home" / "parties").rglob("store.db"))
    monkeypatch.setenv(VARIABLE, "postgresql://{nobody}")
    with Glassleaf(tmp_path / "home", key_floor=512, pools=False) as glassleaf, pytest.raises(StoreError):
        glassleaf.audit.entries("demo")
