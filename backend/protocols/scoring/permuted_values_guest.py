"""The Guest has a Host permute values among some people, or give them other ages, before they are scored.

What a feature of a Host is worth to a model shows when its link with everything else is cut. Only the Host can do that, and it draws the
permutation itself and keeps it, so that the Guest never knows whose value stood in for whose.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.crypto.interface import KeySide
from backend.errors import SecurityError
from backend.protocols.scoring.age_classes import YOUNGER
from backend.protocols.scoring.messages import AgesAssigned, AssignAges, PermuteValues
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey


def have_permuted(session: Session, host: str, key: KeySide, ids: Sequence[str], features: Sequence[str]) -> None:
    """Ask a Host for it; what is scored in this conversation from then on, is scored so. A refusal comes in place of the scores."""
    session.send(host, OfferKey(session.name, key.scheme, key.offer()))
    session.send(host, PermuteValues(session.name, tuple(ids), tuple(features)))


def have_ages(session: Session, host: str, key: KeySide, ids: Sequence[str], feature: str, place: int) -> int:
    """Have a Host give people ages of one class (:func:`backend.protocols.scoring.age_classes.age_classes`) before
    they are scored in this conversation.

    Returns
    -------
    int
        How many classes there are, the elderly included; 0 = too few records, and people keep their own ages.

    Raises
    ------
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    session.send(host, OfferKey(session.name, key.scheme, key.offer()))
    session.send(host, AssignAges(session.name, tuple(ids), feature, place))
    classes = session.expect_each(AgesAssigned, [host])[host].classes
    if classes and not 2 <= classes <= 1 + YOUNGER:
        raise SecurityError(
            f"{host} told of {classes} classes of age; 2 to {1 + YOUNGER} can be. The exchange was stopped."
        )
    return classes
