"""No message reads a record but through the gate, and the gate opens what a rule named and nothing else."""

import numpy as np

from backend.data.table import PartyTable
from backend.protocols.approvals.messages import AskApproval, AskTraining
from backend.protocols.audit_head.messages import AskAuditHeads, KeepAuditHead
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.terms.records import Roster, Rows, open_rows
from backend.protocols.transport.messages import Acknowledge, EndConversation, OfferKey

NO_RECORDS = {
    AskApproval,
    AskTraining,
    AskAuditHeads,
    KeepAuditHead,
    StatePurpose,
    Acknowledge,
    EndConversation,
    OfferKey,
}
TABLE = PartyTable("host", ("a", "b", "c"), {"x": np.array([1.0, 2.0, 3.0]), "y": np.array([4.0, 5.0, 6.0])})


def test_only_the_rows_and_columns_that_a_rule_named_are_opened():
    people = open_rows(TABLE, Rows(ids=("c", "nobody", "a"), columns=("y",)))
    assert set(people.columns) == {"y"} and people.held.tolist() == [True, False, True]
    assert people.columns["y"][people.held].tolist() == [6.0, 4.0]
    joint = open_rows(TABLE, Rows(rows=np.array([2, 0])))
    assert joint.ids == ("c", "a") and joint.columns["x"].tolist() == [3.0, 1.0]
    assert open_rows(TABLE, Rows(columns=("x",))).columns["x"].tolist() == [1.0, 2.0, 3.0]


def test_a_roster_names_people_and_shows_no_value():
    roster = Roster(TABLE)
    assert roster.held(("a", "z")).tolist() == [True, False] and roster.ids(np.array([1])) == ("b",)
    assert "1.0" not in repr(roster)


def test_a_host_without_any_record_opens_nothing():
    empty = PartyTable("host", (), {"x": np.zeros(0)})
    assert open_rows(empty, Rows(ids=("a",))).columns == {}
