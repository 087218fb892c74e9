"""What the audit log says of use and traffic, as the report has it."""

from backend.protocols.scoring.messages import PermuteValues
from backend.reports.build.issued import traffic_of
from backend.store.audit_log import Entry


def entry(traffic):
    return Entry(1, "2026-01-01T00:00:00", "ann", "operator", "score", {"traffic": traffic}, "", "")


def test_messages_that_an_earlier_version_logged_are_counted_under_todays_name():
    found = traffic_of(
        [entry([["DealValues", "bank", "telecom", 2, 30]]), entry([["PermuteValues", "bank", "telecom", 1, 5]])]
    )
    [line] = found
    assert (line.kind, line.messages, line.bytes) == ("PermuteValues", 3, 35)
    assert (line.holds, line.readable_by) == (PermuteValues.HOLDS, PermuteValues.READABLE_BY)


def test_a_kind_that_nobody_knows_is_left_out():
    assert traffic_of([entry([["NoSuchMessage", "bank", "telecom", 1, 5]])]) == ()
