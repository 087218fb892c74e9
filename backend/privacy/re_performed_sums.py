"""An auditor with all halves adds up again what Hosts added up by groups of their features; exact, since all are whole numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backend.data.dictionary import Feature, Kind
from backend.i18n import Text
from backend.privacy.halves import Difference, GuestHalf, column_of
from backend.protocols.group_sums.grouping import Grouped, features_of, group, group_together, to_wire
from backend.protocols.group_sums.statement import GroupStatement, name_of_sums
from backend.protocols.group_sums.values import Counts
from backend.protocols.host_half import HostSums
from backend.remark import Remark
from backend.store.accountant import GROUPS


def sums_again(
    guest: GuestHalf, host: str, answered: HostSums, feature: str, marked: Mapping[tuple[str, str, str], HostSums]
) -> Difference | Remark | None:
    """Recompute the sums by one feature's groups.

    Parameters
    ----------
    answered : HostSums
        Of the Host that has added up.
    marked : mapping of (str, str, str) to HostSums
        Host, conversation and feature → whose groups a Host has marked.

    Returns
    -------
    Difference, Remark or None
        What differs; why it cannot be recomputed; None if all is well.
    """
    about = answered.about
    source = about["source"]
    name = name_of_sums(answered.request, host, source, feature, about["most"], about["least"])
    statement = guest.groups.get(name)
    if statement is None:
        return Remark("guest_without_statement")
    if answered.changed:
        return Remark("records_changed_since")
    marks = _marks(guest, answered, statement, marked)
    if isinstance(marks, Remark):
        return marks

    why, by, parties = _compared(answered, statement, marks, feature, host)
    if why is None:
        return None
    at_fault = parties or tuple(dict.fromkeys((guest.guest, source, host)))
    return Difference("", GROUPS, answered.request, 0, "", at_fault, why, by)


def _compared(
    answered: HostSums, statement: GroupStatement, marks: tuple[Counts, ...], feature: str, host: str
) -> tuple[Remark | None, tuple[float, ...], tuple[str, ...]]:
    """Return the difference as a remark, its amounts, and the party at fault if only one can be."""
    grouped = _grouped(answered, feature)
    if to_wire(grouped.groups) != statement.groups:
        return Remark("groups_differ", {"host": host, "feature": feature}), (), (host,)
    expected = np.zeros((len(marks), len(grouped.groups)), dtype=np.int64)
    if expected.shape != statement.sums.shape or any(len(mark) != len(grouped.index) for mark in marks):
        return Remark("sums_of_others"), (), ()
    for number, mark in enumerate(marks):
        np.add.at(expected[number], grouped.index, mark)
    off = (statement.sums - expected).ravel()
    if not off.any():
        return None, (), ()
    largest_difference = int(off[np.argmax(np.abs(off))])
    why = Remark("group_sums_differ", {"feature": feature, "by": f"{largest_difference:+d}"})
    return why, tuple(off.astype(float).tolist()), ()


def _marks(
    guest: GuestHalf, answered: HostSums, statement: GroupStatement, marked: Mapping[tuple[str, str, str], HostSums]
) -> tuple[Counts, ...] | Remark:
    """Return the numbers that were added up: the Guest's, or one of 0 and 1 for each group but the last of a Host's feature."""
    if statement.source == guest.guest:
        return statement.marks
    of_source = marked.get((statement.source, answered.request, statement.marked))
    if of_source is None:
        return Remark("host_without_row")
    if of_source.changed:
        return Remark("records_changed_since")
    grouped = _grouped(of_source, statement.marked)
    return tuple((grouped.index == k).astype(np.int64) for k in range(len(grouped.groups) - 1))


def _grouped(answered: HostSums, feature: str) -> Grouped:
    """Return the groups of a feature, or of two together, as an honest Host makes them."""
    about = answered.about
    smallest = about["smallest"]
    grouped = []
    for name in features_of(feature, about["kinds"]):
        kind = Kind(about["kinds"][name])
        column = column_of(answered.values[name], is_number=kind is not Kind.CATEGORICAL)
        tag, unit = ("age", Text("years", "岁")) if name in about["ages"] else ("", Text(""))
        described = Feature(name=name, meaning=Text(name, name), kind=kind, unit=unit, sensitivity=tag)
        grouped.append(group(described, column, about["most"], smallest))
    if len(grouped) == 1:
        return grouped[0]
    return group_together(grouped[0], grouped[1], smallest)
