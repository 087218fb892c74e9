"""The Guest has a Host deal its values of some features out anew among some people, before they are scored.

What a feature of a Host is worth to a model shows when its link with everything else is cut. Only the Host can do that, and it draws the
permutation itself and keeps it, so that the Guest never knows whose value stood in for whose.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.crypto.cipher import KeySide
from backend.protocols.channel import Conversation
from backend.protocols.messages import DealValues, OfferKey


def have_dealt(talk: Conversation, host: str, key: KeySide, ids: Sequence[str], features: Sequence[str]) -> None:
    """Ask a Host for it; what is scored in this conversation from then on, is scored so. A refusal comes in place of the scores."""
    talk.send(host, OfferKey(talk.name, key.scheme, key.offer()))
    talk.send(host, DealValues(talk.name, tuple(ids), tuple(features)))
