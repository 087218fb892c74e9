"""What the audit log says of use and traffic, as the report has it."""

from types import SimpleNamespace

from backend.protocols.scoring.messages import PermuteValues
from backend.reports.build.issued import _reasons, traffic_of
from backend.store.audit_log import Entry


def entry(traffic):
    return Entry(1, "2026-01-01T00:00:00", "ann", "operator", "score", {"traffic": traffic}, "", "")


def test_messages_of_one_kind_are_counted_together():
    [line] = traffic_of([entry([["PermuteValues", "bank", "telecom", n, size]]) for n, size in ((2, 30), (1, 5))])
    assert (line.kind, line.messages, line.bytes) == ("PermuteValues", 3, 35)
    assert (line.holds, line.readable_by) == (PermuteValues.HOLDS, PermuteValues.READABLE_BY)


def test_a_kind_that_nobody_knows_is_left_out():
    assert traffic_of([entry([["NoSuchMessage", "bank", "telecom", 1, 5]])]) == ()


def test_reasons_and_notices_are_counted_by_whom_people_were_compared_with():
    def logged(action, model="m", **body):
        return Entry(1, "2026-01-01T00:00:00", "ann", "operator", action, {"model_sha256": model, **body}, "", "")

    entries = [
        logged("reasons", rows=3, failed=1, against="all"),
        logged("reasons", rows=5, failed=0),  # before there was a choice
        logged("reasons", rows=9, failed=0, against="all", model="another"),
        logged("reasons", rows=9, failed=0, against="approved", outcome="QuestionRefused"),
        logged("notice", blocked=False, against="all"),
        logged("notice", blocked=True, against="all"),
    ]
    found = _reasons(SimpleNamespace(record=SimpleNamespace(content_hash="m"), entries=entries))
    assert [(line.against, line.people, line.notices) for line in found] == [("covers", 5, 0), ("all", 2, 1)]
