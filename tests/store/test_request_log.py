"""Which questions a Host keeps for an auditor: a sample of people, every question about sums."""

from backend.store.accountant import COHORT, SCORE
from backend.store.database import Database
from backend.store.request_log import RequestLog, packed_question, question_of


def test_every_question_about_sums_is_kept_and_is_about_each_of_its_people():
    log = RequestLog(Database(), rate=0.0)
    log.note("m", ("a",), b"", (b"",), SCORE, request="r")
    log.note("m", ("",), b"", (packed_question(("a", "b"), shares=[0.5]),), COHORT, request="c", records="v1")
    [row] = log.rows()
    assert (row.kind, row.subject, row.request, row.records) == (COHORT, "", "c", "v1")
    assert question_of(row) == {"people": ["a", "b"], "shares": [0.5]}
    [(number, _, kind, *_)] = log.about("b")
    assert kind == COHORT and log.about("z") == []
    log.forget([number])
    assert log.rows() == []
