"""Reasons: SHAP values under encryption, of which the Guest gets names for one person, sums for many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from backend.protocols.transport.message import LISTS, NUMBERS, PEOPLE, WHOLE, Lane, Message, lane_of_people

MIN_PEOPLE = 50  # in a cohort


@dataclass(frozen=True)
class AskReasons(Message):
    """Guest → each Host of the chain: people whose reasons are asked for, and what belongs to the public shape.

    `shares` are those that go left at the receiving Host's own splits, by tree and node, of the group that people are compared with;
    `features` says how many features each party has in the model, the Guest first; `groups` which of them are one reason, by their
    meaning; `request` is the Guest's name for the question, the same when it is repeated.
    """

    HOLDS: ClassVar[str] = (
        "ids whose reasons are asked for; shares of training records at the Host's own splits; sizes; what is one reason"
    )
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    model_id: str
    ids: tuple[str, ...]
    names: int
    shares: tuple[float, ...]
    features: tuple[int, ...]
    value_bits: int
    request: str = ""
    groups: tuple[int, ...] = ()

    def lane(self) -> Lane:
        """By how many people it is about."""
        return lane_of_people(self.ids)


@dataclass(frozen=True)
class AskCohort(Message):
    """Guest → each Host of the chain: many people, over whom SHAP values are to be added up; else as :class:`AskReasons`."""

    HOLDS: ClassVar[str] = (
        "ids over whom contributions are added up; shares of training records at the Host's own splits; sizes"
    )
    READABLE_BY: ClassVar[str] = "the receiving Host"
    MAX_BYTES: ClassVar[int] = PEOPLE
    LANE: ClassVar[Lane | None] = Lane.BULK
    model_id: str
    ids: tuple[str, ...]
    shares: tuple[float, ...]
    features: tuple[int, ...]
    value_bits: int


@dataclass(frozen=True)
class ReasonTerms(Message):
    """Guest → first Host, Host → next Host: terms of SHAP values of one person, named by position among the ids.

    Of a cohort, those who follow may share the message: sizes say how many. For names, terms of drops stand behind them. From Host to
    Host, `question` is the SHA-256 of the Guest's bytes, and `sides` say, by two bits a feature of the Hosts so far, on which side of
    the median the person is, each masked by its bit of `HeldRecords.masks`.
    """

    HOLDS: ClassVar[str] = (
        "terms of one person's contributions and drops, encrypted; between Hosts, a hash of the Guest's message and masked bits"
    )
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = WHOLE
    person: int
    terms: bytes
    question: str = ""
    sides: bytes = b""


@dataclass(frozen=True)
class OpenRanking(Message):
    """Guest → last Host: the first step of a ranking (:mod:`backend.protocols.ranking.guest`)."""

    HOLDS: ClassVar[str] = "an offer for oblivious transfer"
    READABLE_BY: ClassVar[str] = "nobody"
    MAX_BYTES: ClassVar[int] = LISTS
    offer: bytes


@dataclass(frozen=True)
class MaskedContributions(Message):
    """Last Host → Guest: the second step."""

    HOLDS: ClassVar[str] = (
        "one person's contributions and drops under masks of the Host, encrypted; its reply to the offer"
    )
    READABLE_BY: ClassVar[str] = "the masked numbers: only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = PEOPLE
    shares: bytes


@dataclass(frozen=True)
class ChooseLabels(Message):
    """Guest → last Host: the third step."""

    HOLDS: ClassVar[str] = "which labels of the garbled circuit the Guest wants, hidden"
    READABLE_BY: ClassVar[str] = "nobody"
    MAX_BYTES: ClassVar[int] = PEOPLE
    choices: bytes


@dataclass(frozen=True)
class GarbledRanking(Message):
    """Last Host → Guest: the fourth step."""

    HOLDS: ClassVar[str] = "a garbled circuit that names the largest contributions, and one label a wire"
    READABLE_BY: ClassVar[str] = "the Guest: the names and a bit of each, nothing else"
    MAX_BYTES: ClassVar[int] = NUMBERS
    circuit: bytes


@dataclass(frozen=True)
class ContributionSums(Message):
    """Last Host → Guest: contributions added up over a cohort."""

    HOLDS: ClassVar[str] = "sums of contributions over a cohort by feature, encrypted"
    READABLE_BY: ClassVar[str] = "only the Guest (its key)"
    MAX_BYTES: ClassVar[int] = PEOPLE
    sums: bytes
