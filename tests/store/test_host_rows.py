"""A Host's half written into another home: what was counted about a person there and here."""

import pytest
from sqlalchemy import select

from backend.errors import ParameterError
from backend.store.accountant import CROWD, GROUPS, Accountant, Limits, Question, crowd_name
from backend.store.database import Database
from backend.store.host_rows import TABLES, host_rows, write_host_rows
from backend.store.model_rows import read_rows, write_rows
from backend.store.schema import AnswerRow


def answer(subject, asked, bits, capacity=0.0):
    about = {"subject": subject, "kind": "score", "structure": "s", "guest": "bank", "day": 5}
    return {**about, "asked": asked, "bits": bits, "capacity": capacity}


def of_answers(*answers):
    return {**{table.__tablename__: [] for table in TABLES}, AnswerRow.__tablename__: list(answers)}


def test_of_what_two_homes_counted_about_a_person_on_a_day_the_larger_holds():
    database = Database(None)
    with database.write() as session:
        write_rows(session, AnswerRow, [answer("a", 3, 1.0, 8.0), answer("b", 1, 2.0)])
        write_host_rows(session, of_answers(answer("a", 1, 4.0, 9.0), answer("c", 2, 2.0)), "m1", str)
    with database.read() as session:
        found = read_rows(session, AnswerRow, AnswerRow.guest == "bank")
    assert found == [answer("a", 3, 4.0, 9.0), answer("b", 1, 2.0), answer("c", 2, 2.0)]


def test_answers_with_columns_of_another_version_are_not_written():
    database = Database(None)
    row = answer("a", 1, 1.0) | {"month": 1}
    with database.write() as session, pytest.raises(ParameterError):
        write_host_rows(session, of_answers(row), "m1", str)
    with database.read() as session:
        assert session.scalars(select(AnswerRow)).all() == []


PEOPLE = tuple(f"p{i}" for i in range(CROWD))


def sums(structure, people=PEOPLE):
    return Question("bank", "", GROUPS, structure, people, 1.0)


def test_a_crowd_moves_with_what_was_answered_about_it():
    old = Accountant(Database(None), Limits())
    old.count(sums("a"))
    old.count(sums("b"))
    new = Database(None)
    with old._database.read() as session:
        rows = host_rows(session, "m1", "s", "bank")
    assert len(rows[AnswerRow.__tablename__]) == 2
    with new.write() as session:
        write_host_rows(session, rows, "m1", str)
    moved = Accountant(new, Limits())
    assert moved.given_away(PEOPLE) == old.given_away(PEOPLE) == dict.fromkeys(PEOPLE, 2.0)
    assert moved.count(sums("a", PEOPLE[:1])).all()


def test_who_was_forgotten_in_the_other_home_is_counted_here_from_then_on():
    old = Accountant(Database(None), Limits())
    old.count(sums("a"))
    old.forget("p0")
    new = Database(None)
    with old._database.read() as session:
        rows = host_rows(session, "m1", "s", "bank")
    with new.write() as session:
        write_host_rows(session, rows, "m1", str)
    moved = Accountant(new, Limits())
    # The same people are another crowd here, of which each is counted.
    moved.count(sums("b"))
    assert moved.given_away(["p0", "p1"]) == {"p0": 1.0, "p1": 2.0}
    assert moved.count(sums("b", ("p0",))).all()
    assert crowd_name(PEOPLE) not in {row["crowd"] for row in rows["crowds"]}
