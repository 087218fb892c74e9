"""People who are asked about together are written down once, as a crowd: nothing that an account says depends on it."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from backend.store import accountant
from backend.store.accountant import GROUPS, KINDS, SCORE, Accountant, Limits, Question
from backend.store.database import Database
from backend.store.retention import expire
from backend.store.schema import AnswerRow, CrowdRow

PEOPLE = "abcd"
ALL = tuple(PEOPLE)
START = date(2026, 5, 1)

questions = st.builds(
    Question,
    guest=st.sampled_from(["bank", "shop"]),
    request=st.sampled_from(["", "", "r"]),
    kind=st.sampled_from([SCORE, GROUPS]),
    structure=st.sampled_from(["s", "t"]),
    people=st.one_of(st.just(ALL), st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=5).map(tuple)),
    bits=st.sampled_from([0.0, 1.5, 2.0]),
    capacity=st.sampled_from([0.0, 3.0]),
)
everybody = questions.map(lambda asked: Question(asked.guest, "", "table", "all", (accountant.EVERYBODY,), 1.0, 1.5))
steps = st.one_of(
    st.tuples(st.just("count"), questions),
    st.tuples(st.just("count"), questions),
    st.tuples(st.just("count"), everybody),
    st.tuples(st.just("whole"), questions),
    st.tuples(st.just("forget"), st.sampled_from(PEOPLE)),
    st.tuples(st.just("days"), st.sampled_from([1, 27])),
)


class Home:
    """An account whose crowds have so many people at least."""

    def __init__(self, crowd, limits):
        self.crowd = crowd
        self.days = 0
        today = lambda: START + timedelta(days=self.days)  # noqa: E731 - it is read at each call
        self.account = Accountant(Database(), limits, "records", today)

    def does(self, step, monkeypatch):
        monkeypatch.setattr(accountant, "CROWD", self.crowd)
        what, about = step
        if what == "days":
            self.days += about
        elif what == "forget":
            self.account.forget(about)
        else:
            try:
                return self.account.count(about, all_or_none=what == "whole").tolist()
            except accountant.QuestionRefused as error:
                return error.code
        return None

    def says(self, monkeypatch):
        """All that an account is asked for."""
        monkeypatch.setattr(accountant, "CROWD", self.crowd)
        one = self.account
        asked = [Question("bank", "", kind, "s", ALL, 1.0) for kind in KINDS]
        about = {
            person: sorted((a.kind, a.structure, a.guest, a.day, a.under, a.times, a.bits) for a in one.about(person))
            for person in PEOPLE
        }
        return {
            "given": one.given_away((*ALL, accountant.EVERYBODY)),
            "largest": one.largest_given_away(),
            "by day": one.given_by_day(30),
            "reached": [one.reached(question).tolist() for question in asked],
            "until": [one.last_until(question) for question in asked],
            "about": about,
        }


@settings(max_examples=25, deadline=None)
@given(st.lists(steps, min_size=2, max_size=8), st.sampled_from([Limits(2, bits=5.0), Limits(2, total=3)]))
def test_an_account_says_the_same_with_crowds_as_without(script, limits):
    with pytest.MonkeyPatch.context() as patch:
        homes = [Home(2, limits), Home(1000, limits)]
        for step in script:
            crowded, plain = (home.does(step, patch) for home in homes)
            assert crowded == plain
        crowded, plain = (home.says(patch) for home in homes)
        assert summed(crowded) == summed(plain)


def summed(said):
    """A person may stand under two names on one day: what counts is their sum."""
    about = {}
    for person, answers in said["about"].items():
        of_person = about.setdefault(person, {})
        for *what, times, bits in answers:
            before = of_person.get(tuple(what), (0, 0.0))
            of_person[tuple(what)] = before[0] + times, before[1] + bits
    return {**said, "about": about}


def rows(database, table):
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(table))


def test_a_crowd_is_written_down_once_and_goes_with_its_last_answer():
    database = Database()
    people = tuple(f"p{i}" for i in range(accountant.CROWD))
    today = [START]
    one = Accountant(database, Limits(), today=lambda: today[0])
    for feature in ("a", "b", "c"):
        assert not one.count(Question("bank", "", GROUPS, feature, people, 1.0)).any()
    assert (rows(database, AnswerRow), rows(database, CrowdRow)) == (3, len(people))
    assert one.given_away(people) == dict.fromkeys(people, 3.0)
    # One person more or less is another crowd; of both, one answer is left to nobody who is in one of them.
    assert one.count(Question("bank", "", GROUPS, "a", (*people, "more"), 1.0)).tolist() == [True] * 100 + [False]
    today[0] += timedelta(days=40)
    one.count(Question("bank", "", GROUPS, "a", ("z",), 1.0))
    assert (rows(database, AnswerRow), rows(database, CrowdRow)) == (1, 0)


def test_a_crowd_goes_with_retention_too():
    database = Database()
    people = tuple(f"p{i}" for i in range(accountant.CROWD))
    Accountant(database, Limits()).count(Question("bank", "", GROUPS, "a", people, 1.0))
    with database.write() as session:
        session.execute(text("UPDATE answers SET day = 1"))
    expire(database)
    assert rows(database, CrowdRow) == 0


def test_who_is_forgotten_is_in_no_crowd_under_the_id_and_has_no_new_budget():
    database = Database()
    people = tuple(f"p{i}" for i in range(accountant.CROWD))
    one = Accountant(database, Limits())
    one.count(Question("bank", "", SCORE, "s", people, 1.0))
    assert one.forget("p7") == (1, 0)
    with database.read() as session:
        assert "p7" not in session.scalars(select(CrowdRow.subject)).all()
    assert one.count(Question("bank", "", SCORE, "s", ("p7", "new"), 1.0)).tolist() == [True, False]
    assert [answer.under for answer in one.about("p7")] == ["pseudonym"]
    # The same people are asked about again: the crowd is known, and nobody enters it a second time.
    one.count(Question("bank", "", GROUPS, "s", people, 2.0))
    assert one.given_away(["p7", "p8"]) == {"p7": 3.0, "p8": 3.0}
