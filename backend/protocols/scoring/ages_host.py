"""A Host's handler for scores at other ages: it gives people ages of its own records, class by class, and tells nobody which."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host_session import Answer, Handlers, HostSessions
from backend.protocols.scoring.age_classes import age_classes, is_in_years
from backend.protocols.scoring.messages import AgesAssigned, AssignAges
from backend.protocols.scoring.permuted_values_host import PermutedValues, takers_of


class AgesHandler:
    """Has people scored at ages that are not theirs, for one conversation.

    Parameters
    ----------
    table : PartyTable
    features : sequence of Feature
    sessions : HostSessions
    """

    def __init__(self, table: PartyTable, features: Sequence[Feature], sessions: HostSessions) -> None:
        self._table, self._features, self._sessions = table, {f.name: f for f in features}, sessions

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {AssignAges: self._assign_ages}

    def _assign_ages(self, sender: str, asked: AssignAges) -> Answer:
        session = self._sessions.of(asked.conversation)
        if sender != session.guest:
            raise SecurityError("Only the Guest may have people scored at other ages.")
        feature = self._features.get(asked.feature)
        if feature is None or not is_in_years(feature):
            raise SecurityError("People were to be scored at other ages by a feature that is no number of years here.")
        takers = takers_of(self._table, asked.ids)
        classes = age_classes(feature, self._table.columns[feature.name])
        if classes:
            if not 0 <= asked.place < len(classes):
                raise SecurityError(f"Class {asked.place} of {len(classes)} classes of age was asked for.")
            draw, givers = secrets.SystemRandom(), classes[asked.place].tolist()
            chosen = {i: self._table.ids[draw.choice(givers)] for i in takers}
            session.keep(PermutedValues, PermutedValues((feature.name,), chosen))
        yield sender, AgesAssigned(asked.conversation, len(classes))
