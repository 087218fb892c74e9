"""The Guest has a Host permute values among some people, leave values out, or give other ages, before they are scored.

How much a model relies on a Host's feature shows when the feature's link with everything else is cut (permutation importance). Only the
Host can do that; it draws the permutation and keeps it, so that the Guest never knows whose value stood in for whose.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.crypto.interface import KeySide
from backend.errors import SecurityError
from backend.protocols.scoring.age_classes import YOUNGER
from backend.protocols.scoring.messages import AgesAssigned, AssignAges, BlankValues, PermuteValues
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey


def have_permuted(session: Session, host: str, key: KeySide, ids: Sequence[str], features: Sequence[str]) -> None:
    """Have people scored with permuted values in this conversation from now on. A refusal comes instead of the scores."""
    session.send(host, OfferKey(session.name, key.scheme, key.offer()))
    session.send(host, PermuteValues(session.name, tuple(ids), tuple(features)))


def have_blanked(session: Session, host: str, key: KeySide, ids: Sequence[str], features: Sequence[str]) -> None:
    """Have people scored without a Host's values of some features from now on; of all its features = as if it were out."""
    session.send(host, OfferKey(session.name, key.scheme, key.offer()))
    session.send(host, BlankValues(session.name, tuple(ids), tuple(features)))


def have_ages(session: Session, host: str, key: KeySide, ids: Sequence[str], feature: str, index: int) -> int:
    """Have people scored at ages of class `index` (:func:`backend.protocols.scoring.age_classes.age_classes`) from now on.

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
    session.send(host, AssignAges(session.name, tuple(ids), feature, index))
    classes = session.expect_each(AgesAssigned, [host])[host].classes
    if classes and not 2 <= classes <= 1 + YOUNGER:
        raise SecurityError("wrong_number_of_age_classes", host=host, got=classes, most=1 + YOUNGER)
    return classes
