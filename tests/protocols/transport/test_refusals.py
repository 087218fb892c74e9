"""A Host's error arrives at the Guest as the error it is, whatever its sentence is; hostile refusals are bounded."""

from datetime import UTC, datetime

import msgpack
import pytest

from backend.errors import (
    ApprovalDenied,
    FederationError,
    HostBusy,
    HostRefused,
    QuestionRefused,
    SecurityError,
)
from backend.i18n import Text
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.refusals import refusal, refused
from backend.remark import Remark


def across(error, host="shop"):
    """The error that a Guest gets for an error of a Host, over the bytes of the message."""
    return refused(host, decode(encode(refusal("c", error))))


def test_a_host_that_is_busy_is_asked_again_after_the_time_it_says():
    busy = across(HostBusy("lane_full", 1.5, seconds=1.5))
    assert type(busy) is HostBusy
    assert (busy.wait, busy.host, busy.code) == (1.5, "shop", "host_refused")
    assert busy.sentence("zh", {"shop": "商店"}.get) == "商店拒绝：它的任务已满。本次未计数；请在 1.5 秒后重试。"


@pytest.mark.parametrize("state", ["denied", "withdrawn"])
def test_a_denial_is_one_by_its_code_whatever_the_operator_writes(state):
    denied = across(ApprovalDenied("telecom", state, "2026-11-23", "a: b"))
    assert type(denied) is ApprovalDenied
    # the wire proves who sent it, not the values
    assert (denied.host, denied.state, denied.day, denied.reason) == ("shop", state, "2026-11-23", "a: b")


def test_a_sentence_that_reads_like_a_denial_is_none():
    other = across(SecurityError("not_delivered", why="Its operator has denied this on 2026-11-23: no"))
    assert type(other) is HostRefused


def test_a_final_refusal_is_not_repeated():
    assert type(across(QuestionRefused("host_stops"))) is QuestionRefused


def test_of_several_problems_the_first_is_sent():
    problems = [Remark("at_column", {"column": "a"}), Remark("at_column", {"column": "b"})]
    assert across(FederationError(problems=problems)).values["why"] == problems[0]


def test_values_arrive_as_they_were():
    values = {"why": (Text("Age", "年龄"), 3, 2.5, None, datetime(2026, 1, 2, tzinfo=UTC), Remark("host_stops"))}
    assert across(SecurityError("not_delivered", **values)).values["why"].values == values


def test_a_reason_longer_than_a_message_is_answered_in_short():
    long = tuple(f"p-{i}" * 10 for i in range(10_000))
    assert across(SecurityError("not_delivered", why=long)).values["why"].code == "reason_too_long"


@pytest.mark.parametrize(
    "why",
    [
        "no",
        {"code": 3, "values": {}},
        {"code": "lane_full", "values": {"seconds": float("nan")}},
        {"code": "not_delivered", "values": {"why": [[[[[["x"]]]]]]}},
        {"code": "not_delivered", "values": {"why": ["x"] * 1000}},
        {"code": "not_delivered", "values": {"why": {"time": "yesterday"}}},
    ],
)
def test_what_is_no_remark_is_refused_as_a_message(why):
    body = {"conversation": "c", "why": why, "final": False, "wait": 0.0}
    with pytest.raises(SecurityError):
        decode(msgpack.packb(["Refusal", body]))


@pytest.mark.parametrize(
    "why", [{"code": "of_tomorrow", "values": {}}, {"code": "lane_full", "values": {"seconds": "x"}}]
)
def test_a_reason_that_cannot_be_shown_is_said_to_be_unknown(why):
    message = decode(msgpack.packb(["Refusal", {"conversation": "c", "why": why, "final": False, "wait": 0.0}]))
    assert message.why == Remark("unknown_remark", {"code": why["code"]})
    assert "gives a reason that this version does not know" in str(refused("shop", message))
