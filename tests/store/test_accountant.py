"""A Host's account of its answers: kept over restarts, forgotten after four weeks, safe between processes, a question counted once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest
from sqlalchemy import select, text

from backend.errors import ParameterError, QuestionRefused, StoreError
from backend.store import accountant
from backend.store.accountant import (
    COHORT,
    EVERYBODY,
    LIMITS,
    QUERIES,
    QUERIES_SYNTHETIC,
    REASONS,
    SCORE,
    TABLE,
    VARIABLE,
    WINDOW_DAYS,
    Accountant,
    Limits,
    Question,
    usual_limit,
)
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.store.schema import QuestionRow


def account(limit=1, where=None, **more):
    return Accountant(Database(where), Limits(limit), **more)


def asked(*people, kind=SCORE, structure="s", guest="bank", request="", bits=0.0, capacity=0.0):
    return Question(guest, request, kind, structure, people, bits, capacity)


def spent(accountant, *people, **more):
    return accountant.count(asked(*people, **more)).tolist()


def test_a_person_is_answered_about_as_often_as_the_budget_says_and_no_more():
    two = account(2)
    assert spent(two, "a", "b") == [False, False]
    assert spent(two, "a") == [False]
    assert spent(two, "a", "b", "c") == [True, False, False]
    assert spent(two, "a", "b", "c") == [True, True, False]


def test_each_kind_of_question_is_counted_for_itself():
    one = account()
    assert [spent(one, "a", kind=kind) for kind in (SCORE, REASONS, COHORT)] == [[False]] * 3
    assert [spent(one, "a", kind=kind) for kind in (SCORE, REASONS, COHORT)] == [[True]] * 3


def test_somebody_who_stands_in_a_batch_twice_is_asked_about_twice():
    assert spent(account(2), "a", "b", "a", "a", "b") == [False, False, False, True, False]


def test_another_structure_or_another_guest_is_no_new_budget():
    one = account()
    assert spent(one, "a") == [False]
    assert spent(one, "a", structure="one tree more") == [True]
    assert spent(one, "a", guest="another bank") == [True]


def test_an_operator_may_allow_more_over_all_structures_than_for_one():
    several = Accountant(Database(), Limits(1, total=2))
    assert [spent(several, "a", structure=s)[0] for s in "stsu"] == [False, False, True, True]


def test_sums_over_a_group_are_answered_once_however_large_the_budget_of_people_is():
    assert (
        Limits(5).of(COHORT) == (1, 1)
        and Limits(QUERIES_SYNTHETIC, synthetic=True).of(COHORT) == (QUERIES_SYNTHETIC,) * 2
    )


def test_a_group_is_counted_whole_or_not_at_all():
    one = account()
    group = asked("a", "b", kind=COHORT)
    assert not one.count(group, all_or_none=True).any()
    assert one.count(asked("b", "c", kind=COHORT), all_or_none=True).tolist() == [True, False]
    assert not one.count(asked("c", "d", kind=COHORT), all_or_none=True).any()


def test_what_reads_all_records_counts_for_everybody():
    one = account()
    assert spent(one, EVERYBODY, kind=COHORT) == [False]
    assert spent(one, "a", kind=COHORT) == [True]
    assert [spent(one, EVERYBODY, kind=TABLE) for _ in range(3)] == [[False]] * 3


def test_the_count_outlives_a_restart(tmp_path):
    spent(account(where=tmp_path), "a")
    assert spent(account(where=tmp_path), "a", "b") == [True, False]


def test_a_question_is_forgotten_when_its_four_weeks_are_over_and_no_day_before(tmp_path):
    day = date(2026, 2, 1)
    one = account(where=tmp_path, today=lambda: day)
    assert spent(one, "a", request="r") == [False]
    day += timedelta(days=WINDOW_DAYS - 1)
    assert spent(one, "a") == [True]
    day = date(2026, 3, 1)  # the same day of the next month, even of the shortest
    assert spent(one, "a") == [False]
    with Database(tmp_path).read() as session:
        assert session.execute(text("select subject, asked from answers")).all() == [("a", 1)]
        assert session.execute(text("select count(*) from questions where request = 'r'")).scalar() == 0


def test_what_is_outside_the_window_stands_in_nobodys_way_and_in_no_figure_before_it_is_cleared_away():
    day = date(2026, 1, 1)
    one = account(today=lambda: day)
    spent(one, "a", kind=COHORT, bits=3.0)
    assert one.spent(asked("a", kind=COHORT)).all() and one.largest_given_away() == (1, 3.0)
    day += timedelta(days=WINDOW_DAYS)
    assert not one.spent(asked("a", kind=COHORT)).any()
    assert one.largest_given_away() == (0, 0.0) and one.given_away(["a"]) == {"a": 0.0}


def test_a_refused_question_is_not_counted_so_that_asking_on_does_not_shut_a_person_out():
    day = date(2026, 1, 1)
    one = account(today=lambda: day)
    spent(one, "a")
    day += timedelta(days=WINDOW_DAYS - 1)
    assert spent(one, "a") == [True]
    day += timedelta(days=1)
    assert spent(one, "a") == [False]


def test_a_budget_of_zero_limits_nothing():
    assert spent(account(0), *["a"] * 50) == [False] * 50


def test_many_that_open_and_count_at_once_do_not_grant_twice(tmp_path):
    for attempt in range(5):  # opening is where two may get into each other's way
        start = threading.Barrier(8)

        def ask(_, start=start, attempt=attempt):
            start.wait()
            mine = account(10, tmp_path / str(attempt))
            return [not spent(mine, "a")[0] for _ in range(4)]

        with ThreadPoolExecutor(8) as pool:
            granted = [answer for answers in pool.map(ask, range(8)) for answer in answers]
        assert sum(granted) == 10 and len(granted) == 32


def test_a_count_that_cannot_be_kept_answers_nothing(tmp_path):
    one = account(where=tmp_path)
    (tmp_path / "store.db").write_bytes(b"this is no database, and long enough to be looked at" * 200)
    with pytest.raises(StoreError):
        spent(one, "a")


def test_a_question_that_is_repeated_is_counted_once_and_tells_the_same():
    one = account()
    spent(one, "b")
    assert spent(one, "a", "b", request="r") == [False, True]
    assert spent(one, "a", "b", request="r") == [False, True]
    assert spent(one, "a") == [True]


def test_a_question_about_nobody_who_is_held_can_be_repeated_like_any_other():
    one = account()
    for _ in range(2):
        assert spent(one, request="r") == []
        assert one.reply_to("bank", "r", "digest") is None


def test_a_request_id_stands_for_one_question():
    one = account()
    spent(one, "a", request="r")
    with pytest.raises(QuestionRefused):
        spent(one, "b", request="r")
    assert spent(one, "b", request="r", guest="another bank") == [False]


def test_the_same_bytes_get_the_same_answer_and_other_bytes_none():
    one = account()
    spent(one, "a", request="r")
    assert one.reply_to("bank", "r", "digest") is None
    one.keep_reply("bank", "r", b"answer")
    assert one.reply_to("bank", "r", "digest") == b"answer"
    with pytest.raises(QuestionRefused):
        one.reply_to("bank", "r", "another digest")
    with pytest.raises(QuestionRefused):
        one.reply_to("another bank", "r", "digest")
    one.acknowledged_soon("bank", ["r"])
    one.settle()
    assert one.reply_to("bank", "r", "digest") is None  # made again: equal bytes tell nothing new
    with pytest.raises(QuestionRefused):
        one.reply_to("bank", "never counted", "digest")


def test_a_question_whose_bytes_are_all_there_is_bound_to_them_when_it_is_counted(tmp_path):
    one = account(where=tmp_path)
    question = Question("bank", "r", SCORE, "trees", ("a",), 1.0, 1.0)
    one.count(question, digest="digest")
    again = account(where=tmp_path)  # after a crash
    assert not again.count(question, digest="digest").any()
    with pytest.raises(QuestionRefused):
        again.reply_to("bank", "r", "another digest")
    assert again.reply_to("bank", "r", "digest") is None


def test_answers_that_were_acknowledged_go_with_the_next_question_or_at_the_end():
    one = account()
    for request, person in (("r", "a"), ("s", "b")):
        spent(one, person, request=request)
        one.reply_to("bank", request, "digest")
        one.keep_reply("bank", request, b"answer")
        one.acknowledged_soon("bank", [request])
        assert one.reply_to("bank", request, "digest") == b"answer"
    assert one.reply_to("bank", "r", "digest") is None
    one.settle()
    assert one.reply_to("bank", "s", "digest") is None


def test_when_records_change_a_count_is_given_back_only_where_no_answer_was_made(tmp_path):
    before, after = (account(where=tmp_path, records=version) for version in ("v1", "v2"))
    spent(before, "a", request="unanswered")
    spent(before, "b", request="answered")
    before.reply_to("bank", "answered", "digest")
    assert spent(after, "a", request="unanswered") == [False]  # counted again, about the new records
    assert spent(after, "a") == [True]
    with pytest.raises(QuestionRefused):
        spent(after, "b", request="answered")


def test_bits_add_up_over_kinds_to_what_a_structure_can_tell_at_most():
    one = account(3)
    spent(one, "a", "b", bits=10.0, capacity=16.0)
    spent(one, "a", kind=REASONS, bits=5.0, capacity=16.0)
    spent(one, "a", bits=10.0, capacity=16.0)
    spent(one, "a", structure="another", bits=2.0, capacity=16.0)
    assert one.given_away(["a", "b", "c"]) == {"a": 18.0, "b": 10.0, "c": 0.0}
    assert one.largest_given_away() == (2, 18.0)


def test_an_operator_limits_what_a_person_s_answers_may_tell():
    limited = Accountant(Database(), Limits(10, bits=15.0))
    assert [spent(limited, "a", bits=7.0)[0] for _ in range(3)] == [False, False, True]
    assert spent(limited, "b", "b", "b", bits=7.0) == [False, False, True]


def test_a_limit_holds_where_the_budget_is_not_limited():
    in_bits, in_total = (Accountant(Database(), limits) for limits in (Limits(0, bits=15.0), Limits(0, total=2)))
    for limited in (in_bits, in_total):
        assert [spent(limited, "a", bits=7.0)[0] for _ in range(3)] == [False, False, True]


def test_a_total_below_the_budget_holds_and_one_of_zero_limits_nothing():
    assert [spent(Accountant(Database(), Limits(5, total=1)), *"aa")] == [[False, True]]
    unlimited = Accountant(Database(), Limits(1, total=0))
    assert [spent(unlimited, "a", structure=s)[0] for s in "stus"] == [False, False, False, True]


def test_which_limit_is_reached_is_said_of_each_person():
    one = Accountant(Database(), Limits(2, total=3, bits=8.0))
    spent(one, "a", "a", "b", "c", bits=2.0)
    spent(one, "c", bits=2.0, structure="t")
    spent(one, "c", bits=2.0, structure="u")
    spent(one, "d", bits=7.0, structure="u")
    found = one.reached(asked("a", "b", "c", "d", bits=2.0)).tolist()
    assert [LIMITS[limit] for limit in found] == ["budget", "", "total", "bits"]


@pytest.mark.parametrize("limit", [-1, 10**7])
def test_a_budget_out_of_range_is_refused(limit):
    with pytest.raises(ParameterError):
        Limits(limit)


def test_the_usual_budget_is_the_variable_s_or_depends_on_whether_there_is_anybody_to_protect(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert (usual_limit(False), usual_limit(True)) == (QUERIES, QUERIES_SYNTHETIC)
    monkeypatch.setenv(VARIABLE, " 7 ")
    assert (usual_limit(False), usual_limit(True)) == (7, 7)
    monkeypatch.setenv(VARIABLE, "many")
    with pytest.raises(ParameterError):
        usual_limit(False)


def test_who_is_asked_about_twice_in_one_question_is_told_of_twice():
    one = Accountant(Database(), Limits(5, bits=9.0))
    assert spent(one, "a", "a", "b", bits=4.0) == [False, False, False]
    assert one.given_away(["a", "b"]) == {"a": 8.0, "b": 4.0}
    assert spent(one, "a", "b", bits=4.0) == [True, False]


def test_who_is_forgotten_gets_no_new_budget_and_keeps_what_was_given_away():
    one = account()
    assert spent(one, "a", "b", bits=2.0, capacity=9.0) == [False, False]
    before = one.given_away(["a"])
    assert one.forget("a") == (1, 0) and one.forget("a") == (0, 0) and one.forget("nobody") == (0, 0)
    assert spent(one, "a", "b") == [True, True]
    assert spent(one, "a", structure="another") == [True]  # nor for other trees
    assert one.given_away(["a"]) == before == {"a": 2.0}
    assert one.largest_given_away() == (2, 2.0)


def test_who_is_forgotten_is_forgotten_with_the_window_too():
    today = [date(2026, 5, 1)]
    one = account(today=lambda: today[0])
    spent(one, "a")
    one.forget("a")
    today[0] += timedelta(days=WINDOW_DAYS)
    assert spent(one, "a") == [False] and one.about("b") == []
    assert [answer.under for answer in one.about("a")] == ["id"]


def test_answers_before_and_after_a_forgetting_add_up_and_are_one_person():
    two = account(2)
    spent(two, "a", bits=3.0, capacity=4.0)
    two.forget("a")
    assert spent(two, "a", bits=3.0, capacity=4.0) == [False]
    # one structure tells no more than its capacity, under however many names
    assert two.largest_given_away() == (1, 4.0)
    assert spent(two, "a") == [True]
    assert [(answer.under, answer.times) for answer in two.about("a")] == [("pseudonym", 1), ("id", 1)]
    two.forget("a")  # on the same day: the rows become one
    assert [(answer.under, answer.times) for answer in two.about("a")] == [("pseudonym", 2)]
    assert spent(two, "a") == [True]


def test_a_bound_in_bits_holds_over_a_forgetting():
    bound = Accountant(Database(), Limits(9, bits=5.0))
    assert bound.spent(asked("a", bits=3.0)).tolist() == [False]
    assert spent(bound, "a", bits=3.0) == [False]
    bound.forget("a")
    assert spent(bound, "a", bits=3.0) == [True]


def test_what_is_given_back_after_a_forgetting_is_given_back_to_the_same_person(tmp_path):
    spent(account(where=tmp_path), "a", "b", request="r")
    other = account(where=tmp_path, records="other records")
    other.forget("a")
    # nothing was answered yet: given back and counted again
    assert spent(other, "a", "b", request="r") == [False, False]
    assert spent(other, "a", "b") == [True, True]


def test_a_question_about_a_forgotten_person_alone_goes_and_no_other(tmp_path):
    one = account(where=tmp_path)
    spent(one, "a", request="alone")
    spent(one, "b", "a", request="together", kind=REASONS)
    spent(one, "b", request="another")
    one.keep_reply("bank", "alone", b"a score")
    assert one.questions("a") == ([("bank", "alone")], 2)
    assert one.forget("a") == (2, 1)
    assert one.questions("a") == ([], 2)
    assert spent(one, "a", request="alone") == [True]  # repeating it is asking again


def test_no_byte_of_a_forgotten_id_stays_in_the_file(tmp_path):
    database, person = Database(tmp_path), "customer-0815-of-the-bank"
    one = Accountant(database, Limits(1))
    spent(one, person, *(f"p{i}" for i in range(500)))
    assert person.encode() in (tmp_path / "store.db").read_bytes()
    one.forget(person)
    database.close()
    assert all(person.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_two_hosts_have_two_pseudonyms_of_one_person():
    names = {PartyStore(Database()).pseudonym("a") for _ in range(2)}
    assert len(names) == 2 and all(name.startswith(" ") and name != "a" for name in names)


def test_forgetting_beside_questions_loses_no_count(tmp_path):
    """Whoever is first: two processes' databases, one forgets while the other asks."""
    asking, forgetting = account(20, where=tmp_path), account(20, where=tmp_path)
    granted = []

    def ask():
        granted.extend(not spent(asking, "a")[0] for _ in range(30))

    worker = threading.Thread(target=ask)
    worker.start()
    while worker.is_alive():
        forgetting.forget("a")
    worker.join()
    assert sum(granted) == 20


def test_an_answer_that_nobody_acknowledged_is_kept_for_a_day_and_within_a_quota(monkeypatch):
    day = [date(2027, 1, 1)]
    one = account(today=lambda: day[0])
    monkeypatch.setattr(accountant, "REPLY_BYTES", 10)
    for request, reply, kept in (("r", b"eight by", b"eight by"), ("s", b"three", None)):
        spent(one, request, request=request)
        one.reply_to("bank", request, "digest")
        assert one.keep_reply("bank", request, reply) == reply
        assert one.reply_to("bank", request, "digest") == kept
    day[0] += timedelta(days=2)
    assert spent(one, "r", request="r") == [False]  # what was counted stays counted
    assert one.reply_to("bank", "r", "digest") is None


def test_how_much_is_kept_of_a_guests_answers_is_known_without_reading_all_questions_of_the_month():
    with Database().read() as session:
        plan = session.execute(
            text(f"EXPLAIN QUERY PLAN {accountant._REPLY_BYTES.element.text}"), {"guest": "bank"}
        ).all()
    assert [row.detail for row in plan] == ["SEARCH questions USING INDEX kept_replies (guest=?)"]


def test_every_request_is_one_row_with_kind_people_structure_cost_state_and_receipt():
    database = Database()
    account = Accountant(database, Limits(9))

    def rows():
        row = QuestionRow
        columns = row.request, row.kind, row.people, row.structure, row.cost, row.state, row.receipt, row.reply
        with database.read() as session:
            return [tuple(found) for found in session.execute(select(*columns).order_by(row.request))]

    account.count(Question("bank", "r", "score", "s", ("a", "b"), 3.0, 9.0, "c1"), digest="d")
    assert rows() == [("r", "score", 2, "s", 6.0, "booked", "c1", None)]
    account.keep_reply("bank", "r", b"answer")
    assert rows()[0][5:] == ("answered", "c1", b"answer")
    account.acknowledged_soon("bank", ("r",))
    account.settle()
    assert rows()[0][5:] == ("acknowledged", "c1", None)
    account.count(Question("bank", "", "cohort", "s", ("c",), 2.0, 9.0, "c2"))
    unnamed, _ = rows()
    assert unnamed[0].startswith("-") and unnamed[1:7] == ("cohort", 1, "s", 2.0, "booked", "c2")


def test_what_was_given_is_added_up_by_day_and_person():
    day = date(2026, 3, 10)
    database = Database()
    now = [day]
    account = Accountant(database, Limits(0), today=lambda: now[0])
    spent(account, "a", "b", bits=2.0, capacity=20.0)
    spent(account, "a", bits=3.0, capacity=20.0, structure="t")
    now[0] = day + timedelta(days=1)
    spent(account, "c", bits=4.0, capacity=20.0)
    spent(account, EVERYBODY, kind=TABLE, bits=1.5, capacity=20.0)
    found = account.given_by_day(3)
    assert [one.day for one in found] == [day - timedelta(days=1), day, day + timedelta(days=1)]
    # of a: 2 + 3 bits on the first day; everybody: 1.5 more on the second
    # All answers about one structure tell no more than it can, as in the account of the whole window.
    spent(account, "d", bits=15.0, capacity=20.0)
    spent(account, "d", bits=15.0, capacity=20.0)
    assert account.given_by_day(1)[0].bits == 20.0 + 1.5 == account.given_away(["d"])["d"]
    assert [(one.people, one.bits) for one in found] == [(0, 0.0), (2, 5.0), (1, 5.5)]
    now[0] = day + timedelta(days=30)
    assert [one.people for one in account.given_by_day(7)] == [0] * 7
