"""Reasons: SHAP values under encryption, of which the Guest gets names for one person, sums for many."""

from __future__ import annotations

from dataclasses import dataclass

from backend.protocols.transport.message import GUEST_KEY, HOST, LISTS, NUMBERS, PEOPLE, WHOLE, Lane, Message

MIN_PEOPLE = 50  # in a cohort


@dataclass(frozen=True)
class ContributionsQuestion:
    """Whose contributions are asked for, and the sizes that a Host answers by."""

    model_id: str
    ids: tuple[str, ...]
    shares: tuple[float, ...]
    features: tuple[int, ...]
    value_bits: int


class AskReasons(ContributionsQuestion, Message, readable_by=HOST, max_bytes=PEOPLE, lane=Lane.ONLINE):
    """Guest → each Host of the chain: people whose reasons are asked for, and what belongs to the public shape.

    `shares` are those that go left at the receiving Host's own splits, by tree and node, of the group that people are compared with;
    `features` says how many features each party has in the model, the Guest first; `groups` which of them are one reason, by their
    meaning; `request` is the Guest's name for the question, the same when it is repeated.
    """

    HOLDS = "ids whose reasons are asked for; shares of training records at the Host's own splits; sizes; what is one reason"
    names: int
    request: str = ""
    groups: tuple[int, ...] = ()


class AskCohort(ContributionsQuestion, Message, readable_by=HOST, max_bytes=PEOPLE, lane=Lane.BULK):
    """Guest → each Host of the chain: many people, over whom SHAP values are to be added up; else as :class:`AskReasons`."""

    HOLDS = "ids over whom contributions are added up; shares of training records at the Host's own splits; sizes"
    request: str = ""


class ReasonTerms(Message, readable_by=GUEST_KEY, max_bytes=WHOLE):
    """Guest → first Host, Host → next Host: terms of SHAP values of one person, named by position among the ids.

    Of a cohort, those who follow may share the message: sizes say how many. For names, terms of drops stand behind them. From Host to
    Host, `question` is the SHA-256 of the Guest's bytes, and `sides` say, by two bits a feature of the Hosts so far, on which side of
    the median the person is, each masked by its bit of `HeldRecords.masks`.
    """

    HOLDS = "terms of one person's contributions and drops, encrypted; between Hosts, a hash of the Guest's message and masked bits"
    person: int
    terms: bytes
    question: str = ""
    sides: bytes = b""


class OpenRanking(Message, max_bytes=LISTS):
    """Guest → last Host: the first step of a ranking (:mod:`backend.protocols.ranking.guest`)."""

    HOLDS = "an offer for oblivious transfer"
    READABLE_BY = "nobody"
    offer: bytes


class MaskedContributions(Message, max_bytes=PEOPLE):
    """Last Host → Guest: the second step."""

    HOLDS = "one person's contributions and drops under masks of the Host, encrypted; its reply to the offer"
    READABLE_BY = "the masked numbers: only the Guest (its key)"
    shares: bytes


class ChooseLabels(Message, max_bytes=PEOPLE):
    """Guest → last Host: the third step."""

    HOLDS = "which labels of the garbled circuit the Guest wants, hidden"
    READABLE_BY = "nobody"
    choices: bytes


class GarbledRanking(Message, max_bytes=NUMBERS):
    """Last Host → Guest: the fourth step."""

    HOLDS = "a garbled circuit that names the largest contributions, and one label a wire"
    READABLE_BY = "the Guest: the names, nothing else"
    circuit: bytes


class ContributionSums(Message, readable_by=GUEST_KEY, max_bytes=PEOPLE):
    """Last Host → Guest: contributions added up over a cohort."""

    HOLDS = "sums of contributions over a cohort by feature, encrypted"
    sums: bytes


def of_person(request: str, index: int) -> str:
    """Return the name of the question about one of the people of a request; empty if it has none."""
    return request and f"{request}.{index}"
