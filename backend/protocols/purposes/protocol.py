"""A measurement states its purpose before it asks a Host anything; the Host's policy agrees or does not. Knows no record.

What a Guest states is its word: a Host cannot see what sums are used for. So each purpose admits the kinds of message that it takes and no
others, and whatever is asked under it is counted in the Host's account as any question is.
"""

from __future__ import annotations

from collections.abc import Collection

from backend.data.federation import MEASURES, Measure
from backend.errors import NotAgreed, SecurityError
from backend.protocols.group_sums.messages import AskDistinct, AskGroupPairs, AskGroupSums, GroupPairs, MoreGroupPairs
from backend.protocols.purposes.messages import PurposeAnswered, StatePurpose
from backend.protocols.scoring.messages import AssignAges, BlankValues, PermuteValues
from backend.protocols.transport.channel import Session
from backend.protocols.transport.message import Message

ADMITS: dict[Measure, frozenset[type[Message]]] = {
    "screening": frozenset({GroupPairs, MoreGroupPairs, AskGroupSums, AskDistinct}),
    "disparity": frozenset({GroupPairs, MoreGroupPairs, AskGroupSums}),
    "proxies": frozenset({GroupPairs, MoreGroupPairs, AskGroupSums, AskGroupPairs}),
    "curves": frozenset({GroupPairs, MoreGroupPairs, AskGroupSums}),
    "age": frozenset({AssignAges}),
    "shuffles": frozenset({PermuteValues}),
    "validation": frozenset({GroupPairs, MoreGroupPairs, AskGroupSums, PermuteValues, BlankValues}),
    "alternatives": frozenset({GroupPairs, MoreGroupPairs, AskGroupSums}),
    "comparisons": frozenset(),  # scores; what would disclose branches, only a simulated Host answers at all
    "card": frozenset(),  # scores
    "leaks": frozenset(),  # leaves, which only a simulated Host shows
    "serving": frozenset(),  # scores, while a Host is lost
}
MEASURING: frozenset[type[Message]] = frozenset().union(*ADMITS.values())


def state_purpose(session: Session, purpose: Measure) -> None:
    """The Guest asks every Host of a conversation; raises NotAgreed if one of them does not agree."""
    session.broadcast(StatePurpose(session.name, purpose))
    answers = session.expect_each(PurposeAnswered, session.hosts)
    for host in session.hosts:
        if answers[host].purpose != purpose:
            raise SecurityError("answered_another_purpose", host=host)
        if not answers[host].agreed:
            raise NotAgreed(host, purpose)


def answer_purpose(message: StatePurpose, agreed: Collection[str]) -> PurposeAnswered:
    """Return a Host's answer, by the purposes that it agrees to."""
    if message.purpose not in MEASURES:
        raise SecurityError("unknown_purpose", purpose=message.purpose, known=MEASURES)
    return PurposeAnswered(message.conversation, message.purpose, message.purpose in agreed)


def check_purpose(message: Message, purpose: str) -> None:
    """At a Host that does not agree to everything: raise SecurityError if a message measures, and not for the purpose agreed on."""
    admitted = set()
    for measure, kinds in ADMITS.items():
        if measure == purpose:
            for kind in kinds:
                admitted.add(kind)
    if type(message) in MEASURING and type(message) not in admitted:
        raise SecurityError("kind_not_agreed", kind=type(message).__name__)
