"""What a Host's answers have given away, added up over all kinds. Knows the Host's account of answers, no record and no model.

A view for the Host's operator; trainings and what is measured in the simulation are not counted in bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backend.data.rounding import Rounded
from backend.store.accountant import SCORE, Accountant


@dataclass(frozen=True)
class WindowTotal:
    """What the answers of one Host have told within its window, whatever the model; all bits are upper bounds.

    Attributes
    ----------
    days : int
        Of the window.
    people : int or None
        About whom anything was answered; None = the Host has no limit and counts nothing.
    largest : float or None
        What all answers together tell about one of them at most, bits; None as above.
    limit : float or None
        That its operator allows, bits; None = no limit.
    """

    host: str
    days: int
    people: int | None
    largest: Rounded | None
    limit: Rounded | None


@dataclass(frozen=True)
class GivenAway(WindowTotal):
    """The same, with what one model and one person have to do with it.

    Attributes
    ----------
    answers, total : int
        Scores that it gives about a person to one Guest and model, and to all; 0 if it counts nothing.
    costs : mapping of str to float
        Kind of question → what one answer of a model tells about a person at most, bits.
    capacity : float
        What all answers of that model tell at most, bits.
    person : float or None
        What all answers have told about one person at most, bits; None = nobody was named, or nothing is counted.
    """

    answers: int
    total: int
    costs: Mapping[str, float] = field(default_factory=dict)
    capacity: float = 0.0
    person: float | None = None


def given_away(host: str, account: Accountant, person: str = "") -> GivenAway:
    """Read a Host's account.

    Parameters
    ----------
    person : str
        The id of a person whose total is included; empty = none.
    """
    limits = account.limits
    if not limits.counted:
        return GivenAway(host, limits.days, None, None, None, 0, 0)
    people, largest = account.largest_given_away()
    if person:
        bits = account.given_away([person])[person]
    else:
        bits = None
    return GivenAway(host, limits.days, people, largest, limits.bits or None, *limits.of(SCORE), person=bits)
