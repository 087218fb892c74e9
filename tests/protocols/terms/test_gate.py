"""No message reads a record but through the gate, and the gate opens what a rule named and nothing else."""

import numpy as np
import pytest
from actors import running
from refused import raises
from worlds import GUEST, random_world

from backend.data.held import HeldColumns
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.approvals.messages import AskApproval, AskTraining
from backend.protocols.audit_head.messages import AskAuditHeads, KeepAuditHead
from backend.protocols.host import _all_kinds, _with_more
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.terms.records import Roster, Rows, open_rows
from backend.protocols.training.messages import ReportWrongAnswer
from backend.protocols.transport.messages import Acknowledge, EndConversation, OfferKey, Refusal
from backend.remark import Remark

# They read no record: a key, a purpose, an operator's decision, heads of a log, the end.
NO_RECORDS = {
    AskApproval,
    AskTraining,
    AskAuditHeads,
    KeepAuditHead,
    StatePurpose,
    Acknowledge,
    EndConversation,
    OfferKey,
    ReportWrongAnswer,
}
TABLE = PartyTable("host", ("a", "b", "c"), {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([4.0, 5.0, 6.0])})


def test_only_the_rows_and_columns_that_a_rule_named_are_opened():
    people = open_rows(TABLE, Rows(ids=("c", "nobody", "a"), columns=("y",)))
    assert set(people.columns) == {"y"} and people.has_record.tolist() == [True, False, True]
    assert people.columns["y"][people.has_record].tolist() == [6.0, 4.0] and np.isnan(people.columns["y"][1])
    spent = np.array([True, False, False])
    fewer = open_rows(TABLE, Rows(ids=("c", "nobody", "a"), columns=("y",), charged=True), spent)
    assert fewer.has_record.tolist() == [False, False, True] and np.isnan(fewer.columns["y"][:2]).all()
    joint = open_rows(TABLE, Rows(rows=np.array([2, 0])))
    assert joint.ids == ("c", "a") and joint.columns["x"].tolist() == [3.0, 1.0]
    assert open_rows(TABLE, Rows(columns=("x",))).columns["x"].tolist() == [1.0, 2.0, 3.0]


def test_a_roster_names_people_and_shows_no_value():
    roster = Roster(TABLE)
    assert roster.held(("a", "z")).tolist() == [True, False] and roster.ids(np.array([1])) == ("b",)
    assert "1.0" not in repr(roster)


@pytest.mark.parametrize("column", ["x", "y"])
def test_the_version_of_a_record_changes_with_every_column_that_is_asked_about_and_with_no_other(column):
    values = TABLE.columns[column].copy()
    values[0] += 1.0
    changed = PartyTable("host", TABLE.ids, {**TABLE.columns, column: values})
    before, after = (Roster(table).versions(("a", "b", "nobody"), ("x", "y")) for table in (TABLE, changed))
    assert set(before) == {"a", "b"} and before["a"] != after["a"] and before["b"] == after["b"]
    other = ({"x", "y"} - {column}).pop()
    assert Roster(TABLE).versions(("a",), (other,)) == Roster(changed).versions(("a",), (other,))


def test_the_version_of_one_record_does_not_read_a_column_to_its_end(monkeypatch):
    held = PartyTable("host", TABLE.ids, HeldColumns(TABLE.columns))
    expected = Roster(TABLE).versions(("b",), ("x", "y"))
    # patched: what must not be called
    monkeypatch.setattr(HeldColumns, "__getitem__", lambda *_: pytest.fail("a whole column was read"))
    assert Roster(held).versions(("b",), ("x", "y")) == expected


def test_a_host_without_any_record_opens_nothing():
    empty = PartyTable("host", (), {"x": np.zeros(0)})
    assert np.isnan(open_rows(empty, Rows(ids=("a",))).columns["x"]).all()


@pytest.fixture
def host():
    world = random_world(1, 1, n=6)
    with running(world) as (_, _, served):
        yield served.hosts["host0"]


def test_every_kind_of_message_that_a_host_takes_has_a_rule_or_reads_no_record(host):
    gated = set(host._gate.kinds)
    other = set(host._handlers)
    assert not gated & other and not gated & NO_RECORDS
    assert other == NO_RECORDS


def test_no_handler_behind_the_gate_has_a_table_or_a_database(host):
    for kind in host._gate.kinds.values():
        for function in (kind.rule, kind.handler):
            held = [cell.cell_contents for cell in function.__closure__ or ()]
            assert not hasattr(function, "__self__") and not held


def test_a_kind_that_nobody_knows_is_refused(host):
    with raises(SecurityError, "kind_not_answered", kind="Refusal"):
        list(host.answer(GUEST, Refusal("c", Remark("host_stops", {}))))


def test_a_further_kind_takes_no_rule_away():
    host_kinds = _all_kinds()
    kind = next(iter(host_kinds))
    with pytest.raises(ValueError, match=kind.__name__):
        _with_more(host_kinds, {kind: host_kinds[kind]})
    assert _with_more(host_kinds, {}) == host_kinds
