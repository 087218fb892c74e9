"""A code with values becomes a sentence in the reader's language, and survives another party's wire."""

import pickle
import string
from datetime import UTC, datetime, timedelta

import pytest

from backend import errors
from backend.errors import ApprovalDenied, ApprovalPending, FederationError, HostBusy
from backend.i18n import Text
from backend.remark import LISTED, Remark, catalogue, read_plain


def test_both_languages_name_the_same_values() -> None:
    for key, text in catalogue().items():
        names = [
            {name for _, name, _, _ in string.Formatter().parse(sentence) if name} for sentence in (text.en, text.zh)
        ]
        assert names[0] - {"n"} == names[1] - {"n"}, key


def test_values_are_shown_in_the_language_of_the_reader() -> None:
    waits = ApprovalPending("shop", 3, datetime.now(UTC) - timedelta(hours=5))
    assert "5 hours" in waits.sentence("en")
    assert "5 小时" in waits.sentence("zh")
    assert "Rowan Shop" in waits.sentence("en", {"shop": "Rowan Shop"}.get)
    meaning = Remark("at_column", {"column": Text("Age", "年龄")})
    assert [meaning.sentence("en"), meaning.sentence("zh")] == ["Age: ", "年龄："]


def test_a_long_list_says_how_many_are_left_out() -> None:
    items = tuple(f"c{i}" for i in range(LISTED + 2))
    shown = Remark("at_column", {"column": items})
    assert shown.sentence("en").endswith("c9 and 2 more: ")
    assert "另有 2 项" in shown.sentence("zh")


def test_a_place_stands_before_the_sentence() -> None:
    remark = Remark("not_agreed", {"host": "shop", "purpose": "scores"}, row=3, column="age")
    assert remark.sentence("en").startswith("Row 3, age: Not measured")


def test_a_remark_passes_the_wire_and_a_log_names_no_person() -> None:
    inner = Remark("at_column", {"column": Text("Age", "年龄")})
    remark = Remark(
        "at_column", {"column": (inner, 3, 2.5, timedelta(seconds=7), datetime(2026, 1, 2, tzinfo=UTC)), "id": "p-1"}
    )
    assert read_plain(remark.plain()) == remark
    assert "p-1" not in str(remark.loggable())


@pytest.mark.parametrize(
    "plain",
    [
        None,
        {"code": 3},
        {"code": "at_column", "values": []},
        {"code": "at_column", "values": {"column": object()}},
        {"code": "at_column", "values": {"column": {"time": "yesterday"}}},
        {"code": "at_column", "values": {"column": {"seconds": 1e300}}},
        {"code": "at_column", "values": {"column": ["x"] * 1000}},
        {"code": "at_column", "values": {"column": [[[[[["x"]]]]]]}},
    ],
)
def test_what_is_not_a_remark_is_refused(plain: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_plain(plain)


def test_a_code_of_another_version_or_a_sentence_without_its_values_is_said_to_be_unknown() -> None:
    for plain in ({"code": "from_the_future", "values": {}}, {"code": "at_column", "values": {}}):
        assert read_plain(plain).code == "unknown_remark"
    hostile = read_plain({"code": "at_column", "values": {"column": "a\x1b[31m\u202eb" + "c" * 9_000}}).sentence("en")
    assert "\x1b" not in hostile and "\u202e" not in hostile and len(hostile) < 3_000


@pytest.mark.parametrize(
    "error",
    [
        HostBusy("at_column", 1.0, "shop", column="x"),
        ApprovalDenied("shop", "withdrawn", "2026-01-02", "no more"),
        FederationError(problems=[Remark("at_column", {"column": "a"}), Remark("at_column", {"column": "b"})]),
    ],
)
def test_an_error_survives_a_process_of_its_own(error: errors.GlassleafError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - as joblib does within one party
    assert (str(again), again.code, vars(again)) == (str(error), error.code, vars(error))
