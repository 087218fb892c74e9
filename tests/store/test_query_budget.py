"""A Host's count of questions about a person: kept over restarts, forgotten after four weeks, safe between processes."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest

from backend.errors import ParameterError, SecurityError
from backend.store.query_budget import DAYS, QUERIES, QUERIES_SYNTHETIC, VARIABLE, QueryBudget, usual_limit


def spent(budget, *ids, model="m"):
    return budget.take(model, ids).tolist()


def test_a_person_is_answered_about_as_often_as_the_budget_says_and_no_more():
    budget = QueryBudget(limit=2)
    assert spent(budget, "a", "b") == [False, False]
    assert spent(budget, "a") == [False]
    assert spent(budget, "a", "b", "c") == [True, False, False]
    assert spent(budget, "a", "b", "c") == [True, True, False]


def test_each_kind_of_question_is_counted_for_itself():
    budget = QueryBudget(limit=1)
    assert spent(budget, "a") == [False]
    assert budget.take("m", ["a"], "reasons").tolist() == [False]
    assert spent(budget, "a") == [True] and budget.take("m", ["a"], "reasons").tolist() == [True]


def test_somebody_who_stands_in_a_batch_twice_is_asked_about_twice():
    assert spent(QueryBudget(limit=2), "a", "b", "a", "a", "b") == [False, False, False, True, False]


def test_models_are_counted_apart():
    budget = QueryBudget(limit=1)
    assert [spent(budget, "a", model=m)[0] for m in ("m", "n", "m", "n")] == [False, False, True, True]


def test_the_count_outlives_a_restart(tmp_path):
    spent(QueryBudget(tmp_path, limit=1), "a")
    assert spent(QueryBudget(tmp_path, limit=1), "a", "b") == [True, False]


def test_a_question_is_forgotten_when_its_four_weeks_are_over_and_no_day_before(tmp_path):
    day = date(2026, 2, 1)
    budget = QueryBudget(tmp_path, limit=1, today=lambda: day)
    assert spent(budget, "a") == [False]
    day += timedelta(days=DAYS - 1)
    assert spent(budget, "a") == [True]
    day = date(2026, 3, 1)  # the same day of the next month, even of the shortest
    assert spent(budget, "a") == [False]
    kept = sqlite3.connect(tmp_path / "queries.db")
    assert kept.execute("select subject, asked from queries").fetchall() == [("a", 1)]
    kept.close()


def test_a_refused_question_is_not_counted_so_that_asking_on_does_not_shut_a_person_out():
    day = date(2026, 1, 1)
    budget = QueryBudget(limit=1, today=lambda: day)
    spent(budget, "a")
    day += timedelta(days=DAYS - 1)
    assert spent(budget, "a") == [True]
    day += timedelta(days=1)
    assert spent(budget, "a") == [False]


def test_a_budget_of_zero_limits_nothing_and_writes_nothing(tmp_path):
    budget = QueryBudget(tmp_path, limit=0)
    assert spent(budget, *["a"] * 50) == [False] * 50
    assert not list(tmp_path.iterdir())


def test_many_that_open_and_count_at_once_do_not_grant_twice(tmp_path):
    for attempt in range(10):  # opening is where two may get into each other's way
        budgets = [QueryBudget(tmp_path / str(attempt), limit=10) for _ in range(8)]
        start = threading.Barrier(len(budgets))

        def ask(budget, start=start):
            start.wait()
            return [not budget.take("m", ["a"])[0] for _ in range(4)]

        with ThreadPoolExecutor(len(budgets)) as pool:
            granted = [answer for answers in pool.map(ask, budgets) for answer in answers]
        assert sum(granted) == 10 and len(granted) == 32


def test_a_count_that_cannot_be_kept_answers_nothing(tmp_path):
    (tmp_path / "queries.db").write_bytes(b"this is no database, and long enough to be looked at" * 20)
    with pytest.raises(SecurityError, match=r"answers nothing \(DatabaseError\)\. .* check the disk"):
        QueryBudget(tmp_path).take("m", ["a"])


def test_a_budget_that_was_closed_goes_on_counting(tmp_path):
    budget = QueryBudget(tmp_path, limit=1)
    assert not list(tmp_path.iterdir())  # nothing is written before the first question
    spent(budget, "a")
    budget.close()
    assert [f.name for f in tmp_path.iterdir()] == ["queries.db"]
    assert spent(budget, "a") == [True]


@pytest.mark.parametrize("limit", [-1, 10**7])
def test_a_budget_out_of_range_is_refused(limit):
    with pytest.raises(ParameterError, match="choose 1 to 1,000,000, or 0"):
        QueryBudget(limit=limit)


def test_the_usual_budget_is_the_variable_s_or_depends_on_whether_there_is_anybody_to_protect(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert (usual_limit(False), usual_limit(True)) == (QUERIES, QUERIES_SYNTHETIC)
    monkeypatch.setenv(VARIABLE, " 7 ")
    assert (usual_limit(False), usual_limit(True)) == (7, 7)
    monkeypatch.setenv(VARIABLE, "many")
    with pytest.raises(ParameterError, match="GLASSLEAF_BUDGET is 'many'"):
        usual_limit(False)
