"""Reviews and sign-offs: what was decided stays, and the last review of a finding stands."""

import sqlite3
from datetime import UTC, datetime

import pytest

from backend.errors import ParameterError, SecurityError, StoreError
from backend.store.database import Database
from backend.store.reviews import Reviews

MODEL, OTHER, REPORT = "a" * 64, "b" * 64, "c" * 64
BY = ("key", lambda *fields: "|".join(fields))
FINDING = {"rule": "ecoa_sex", "feature": "gender"}
REASON = "Kept for the disparity test only."


@pytest.fixture
def reviews(tmp_path):
    return Reviews(Database(tmp_path))


def test_a_review_keeps_reason_person_and_time(reviews):
    before = datetime.now(UTC).replace(microsecond=0)
    written = reviews.review(MODEL, **FINDING, verdict="overridden", reason=f"  {REASON} ", person="ana")
    assert (written.number, written.model, written.rule, written.feature) == (1, MODEL, "ecoa_sex", "gender")
    assert (written.verdict, written.reason, written.person) == ("overridden", REASON, "ana")
    assert before <= datetime.fromisoformat(written.time) <= datetime.now(UTC)
    assert reviews.history(MODEL) == (written,)


def test_a_later_review_stands_and_the_earlier_one_stays(reviews):
    first = reviews.review(MODEL, **FINDING, verdict="overridden", reason=REASON, person="ana")
    other = reviews.review(MODEL, "ecoa_age", "age", "confirmed", "It lowers the score of the old.", "ana")
    last = reviews.review(MODEL, **FINDING, verdict="confirmed", reason="The test moved elsewhere.", person="ben")
    assert reviews.standing(MODEL) == {("ecoa_sex", "gender"): last, ("ecoa_age", "age"): other}
    assert reviews.history(MODEL) == (first, other, last)


def test_a_review_belongs_to_one_model_only(reviews):
    reviews.review(MODEL, **FINDING, verdict="overridden", reason=REASON, person="ana")
    assert reviews.history(OTHER) == () and reviews.standing(OTHER) == {} and reviews.sign_offs(OTHER) == ()


def test_a_sign_off_names_person_role_statement_and_the_report_that_was_read(reviews):
    first = reviews.sign_off(MODEL, "ana", "validator", "  I read the findings and the limits.", REPORT, *BY)
    second = reviews.sign_off(MODEL, "ben", "owner", "In use from Monday on.", REPORT, *BY)
    assert reviews.sign_offs(MODEL) == (first, second)
    fields = (MODEL, "ana", "validator", "I read the findings and the limits.", REPORT, first.time)
    assert (first.public_key, first.signature) == ("key", "|".join(fields))  # what is signed is what is kept
    assert (first.person, first.role, first.report_hash) == ("ana", "validator", REPORT)
    assert datetime.fromisoformat(first.time).tzinfo is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reason": "too short"}, "reason has 9 characters; expected 10 to 4,000"),
        ({"reason": "  padded    "}, "reason has 6"),
        ({"reason": "无需保留"}, "reason has 4"),
        ({"reason": "x" * 4001}, "reason has 4,001"),
        ({"person": " "}, "name has 0 characters; expected 1 to 120"),
        ({"rule": ""}, "rule has 0"),
        ({"feature": "x" * 121}, "feature has 121"),
        ({"verdict": "ignored"}, "decision is ignored. Choose one of overridden, confirmed"),
        ({"model": "m12345"}, "model has the hash m12345, expected 64 hexadecimal digits"),
    ],
)
def test_a_review_without_what_it_needs_is_refused_and_nothing_is_written(reviews, changes, message):
    whole = {"model": MODEL, **FINDING, "verdict": "overridden", "reason": REASON, "person": "ana"}
    with pytest.raises(ParameterError, match=message):
        reviews.review(**(whole | changes))
    assert reviews.history(MODEL) == ()


def test_ten_characters_or_five_chinese_ones_are_a_reason(reviews):
    assert reviews.review(MODEL, **FINDING, verdict="confirmed", reason="属禁止依据", person="ana").reason
    assert reviews.review(MODEL, **FINDING, verdict="confirmed", reason="x" * 10, person="ana").number == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statement": "Fine."}, "statement has 5 characters; expected 10 to 4,000"),
        ({"role": ""}, "role has 0"),
        ({"report_hash": "C" * 64}, "report has the hash"),
    ],
)
def test_a_sign_off_without_what_it_needs_is_refused(reviews, changes, message):
    whole = {
        "model": MODEL,
        "person": "ana",
        "role": "owner",
        "statement": "In use from Monday.",
        "report_hash": REPORT,
        "public_key": "key",
        "sign": BY[1],
    }
    with pytest.raises(ParameterError, match=message):
        reviews.sign_off(**(whole | changes))
    assert reviews.sign_offs(MODEL) == ()


def test_what_was_written_is_there_after_reopening(tmp_path, reviews):
    written = reviews.review(MODEL, **FINDING, verdict="overridden", reason=REASON, person="ana")
    again = Reviews(Database(tmp_path))
    assert again.history(MODEL) == (written,)
    assert {file.name for file in tmp_path.iterdir()} <= {"store.db", "store.db-journal"}


def test_a_sign_off_that_cannot_be_signed_is_not_written(reviews):
    def broken(*fields):
        raise SecurityError("The key is gone.")

    with pytest.raises(SecurityError):
        reviews.sign_off(MODEL, "ana", "owner", "In use from Monday.", REPORT, "key", broken)
    assert reviews.sign_offs(MODEL) == ()


def test_a_sign_off_of_before_signatures_stays_without_one(tmp_path, reviews):
    reviews.sign_off(MODEL, "ana", "owner", "In use from Monday.", REPORT, *BY)
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("update signoffs set public_key = '', signature = ''")
    database.close()
    [found] = reviews.sign_offs(MODEL)
    assert (found.person, found.public_key, found.signature) == ("ana", "", "")


def test_there_is_no_way_to_change_or_delete():
    public = {name for name in vars(Reviews) if not name.startswith("_")}
    assert public == {"review", "sign_off", "history", "standing", "answers", "sign_offs"}


def test_a_damaged_database_is_reported(tmp_path):
    (tmp_path / "store.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        Reviews(Database(tmp_path))


def test_a_table_that_is_gone_is_reported(tmp_path, reviews):
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("drop table reviews")
    database.close()
    with pytest.raises(StoreError, match="cannot be read"):
        reviews.history(MODEL)
    with pytest.raises(StoreError, match="cannot be written"):
        reviews.review(MODEL, **FINDING, verdict="confirmed", reason=REASON, person="ana")
