"""The Guest's journal: written before it is sent, the same words for whoever asks the same again, forgotten once handed over."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from backend.errors import QuestionRefused, StoreError
from backend.store.database import Database
from backend.store.journal import RUN_RETENTION, SENT, Journal


@pytest.fixture
def journal(tmp_path):
    return Journal(Database(tmp_path))


def test_the_same_question_goes_on_where_it_was_left_and_another_one_begins(journal, tmp_path):
    run = journal.run("question")
    request = run.batch(0).request
    assert run.sending(0, 0, b"first") == b"first"
    again = Journal(Database(tmp_path)).run("question")  # after a crash
    assert (again.name, again.batch(0)) == (run.name, run.batch(0))
    assert again.batch(0).sent == (b"first",) and again.batch(0).request == request
    assert again.sending(0, 0, b"other bytes") == b"first"  # what was sent is sent again
    assert journal.run("another question").name != run.name


def test_an_answer_takes_the_place_of_what_was_sent(journal):
    run = journal.run("question")
    run.sending(run.batch(3) and 3, 0, b"sent")
    run.answered(3, b"scores")
    assert run.batch(3).sent == () and run.batch(3).answer == b"scores"


def test_what_was_handed_over_is_forgotten_and_what_nobody_fetched_after_a_day(journal, tmp_path):
    first = journal.run("question")
    first.sending(0, 0, b"sent")
    journal.handed_over(first.name)
    assert journal.run("question").name != first.name
    with Database(tmp_path).write() as session:
        assert session.execute(text("select count(*) from run_pieces")).scalar() == 0
        old = (datetime.now(UTC) - RUN_RETENTION - timedelta(minutes=1)).isoformat()
        session.execute(text("update runs set created = :old"), {"old": old})
    journal.run("any")
    with Database(tmp_path).read() as session:
        assert session.execute(text("select count(*) from runs where question = 'question'")).scalar() == 0


def test_a_batch_that_will_never_be_answered_is_asked_under_another_name(journal):
    run = journal.run("question")
    before = run.batch(0).request
    run.sending(0, 0, b"sent")
    run.drop(0)
    assert run.batch(0).request != before and run.batch(0).sent == ()


def test_two_that_ask_the_same_at_once_send_the_same_bytes(tmp_path):
    def ask(i):
        run = Journal(Database(tmp_path)).run("question")
        return run.name, run.batch(0).request, run.sending(0, 0, f"bytes of {i}".encode())

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(6)))) == 1


def test_an_answer_that_comes_after_the_run_was_handed_over_is_dropped(journal):
    run = journal.run("question")
    run.batch(0)
    journal.handed_over(run.name)
    run.answered(0, b"late")
    assert journal.run("question").name != run.name


def test_two_of_one_process_that_ask_the_same_at_once_are_two_questions(journal):
    first, second = journal.run("question"), journal.run("question")
    assert first.name != second.name
    journal.ended(first)
    assert journal.run("question").name == first.name  # as after a Cancel


def test_a_run_that_another_process_handed_over_in_between_is_refused_in_words(journal, tmp_path):
    mine = journal.run("question")
    Journal(Database(tmp_path)).handed_over(mine.name)
    with pytest.raises(QuestionRefused):
        mine.batch(0)
    with pytest.raises(QuestionRefused):
        mine.sending(0, 0, b"bytes")


def test_messages_lie_whole_beside_the_database_until_their_answer_and_no_longer_than_their_run(
    journal, tmp_path, monkeypatch
):
    folder = tmp_path / SENT
    run = journal.run("question", batches=2)
    assert run.sending(0, 0, b"first") == b"first" and run.sending(0, 1, b"second") == b"second"
    run.sending(1, 0, b"third")
    assert run.batch(0).sent == (b"first", b"second") and journal.kept() == (1, 3, 0)
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
    run.answered(0, b"scores")
    assert [file.read_bytes() for file in folder.iterdir()] == [b"third"]
    (folder / f"{run.name}-1-1.sent.x.new").write_bytes(b"half")  # killed while it wrote
    assert run.batch(1).sent == (b"third",)
    with Database(tmp_path).write() as session:  # as retention does
        session.execute(text("delete from runs"))
    journal.run("any")
    assert len(list(folder.iterdir())) == 2  # what others left is looked for now and then
    monkeypatch.setattr("backend.store.journal.SWEEP_SECONDS", 0.0)
    journal.run("any")
    assert list(folder.iterdir()) == []


def test_messages_that_a_killed_process_left_without_a_run_go_when_another_begins(tmp_path):
    before = Journal(Database(tmp_path))
    run = before.run("question", batches=1)
    run.sending(0, 0, b"sent")
    with Database(tmp_path).write() as session:
        session.execute(text("delete from runs"))  # killed before the file went
    Journal(Database(tmp_path)).run("any")
    assert list((tmp_path / SENT).iterdir()) == []


def test_a_database_that_is_no_file_keeps_messages_itself():
    journal = Journal(Database())
    run = journal.run("question", batches=1)
    assert run.sending(0, 0, b"first") == b"first" and run.sending(0, 0, b"other") == b"first"
    assert run.batch(0).sent == (b"first",) and journal.kept() == (1, 1, 0)


def test_where_a_message_cannot_be_written_nothing_is_sent(journal, tmp_path):
    run = journal.run("question", batches=1)
    (tmp_path / SENT).write_text("no folder")
    with pytest.raises(StoreError):
        run.sending(0, 0, b"first")


def test_what_is_handed_over_soon_is_forgotten_with_the_next_question_or_when_none_comes(journal, tmp_path):
    def asked(question):
        run = journal.run(question, batches=1)
        run.sending(0, 0, b"sent")
        journal.ended(run)
        journal.handed_over_soon(run.name)
        return run.name

    first = asked("question")
    assert journal.waits(first) and journal.kept()[:2] == (1, 1)
    second = asked("question")
    assert second != first and not journal.waits(first) and journal.kept()[:2] == (1, 1)
    journal.settle()
    assert journal.kept() == (0, 0, 0) and not list((tmp_path / SENT).iterdir())


def test_messages_of_what_could_not_be_forgotten_stay_with_it(journal, tmp_path, monkeypatch):
    run = journal.run("question", batches=1)
    run.sending(0, 0, b"sent")
    journal.handed_over_soon(run.name)
    with monkeypatch.context() as broken:
        broken.setattr("backend.store.journal._HANDED_OVER", text("DELETE FROM nothing"))
        with pytest.raises(StoreError):
            journal.settle()
    assert run.batch(0).sent == (b"sent",)
    journal.settle()
    assert journal.kept() == (0, 0, 0)
