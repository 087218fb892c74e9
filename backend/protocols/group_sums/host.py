"""A Host's handler for sums over groups of people (disparity, proxies): adds up what it cannot read, merges small groups."""

from __future__ import annotations

from collections.abc import Sequence

from backend.crypto.interface import PairPublicSide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.group_sums.host_sums import HostGroups
from backend.protocols.group_sums.messages import AskGroupPairs, AskGroupSums, GroupPairs
from backend.protocols.host_session import Answer, Handlers, HostSessions
from backend.protocols.transport.message import Message


class GroupSumsHandler:
    """Answers questions about groups.

    Parameters
    ----------
    name : str
        The Host.
    table : PartyTable
    features : sequence of Feature
    sessions : HostSessions
    """

    def __init__(self, name: str, table: PartyTable, features: Sequence[Feature], sessions: HostSessions) -> None:
        self._name, self._table, self._features, self._sessions = name, table, tuple(features), sessions

    def handlers(self) -> Handlers:
        """What this handler answers."""
        return {
            GroupPairs: self._group_pairs,
            AskGroupSums: self._group_sums,
            AskGroupPairs: self._ask_group_pairs,
        }

    def _groups(self, message: Message) -> HostGroups:
        session = self._sessions.of(message.conversation)
        if session.rows is None or not isinstance(session.cipher, PairPublicSide):
            raise SecurityError("Groups were asked about before ids were aligned under a key that can add up pairs.")
        return session.kept(HostGroups) or session.keep(
            HostGroups, HostGroups(self._table, self._features, session.rows, session.cipher)
        )

    def _group_pairs(self, sender: str, pairs: GroupPairs) -> Answer:
        self._groups(pairs).take_pairs(sender, pairs)
        return iter(())

    def _group_sums(self, sender: str, asked: AskGroupSums) -> Answer:
        yield sender, self._groups(asked).sums(asked)

    def _ask_group_pairs(self, sender: str, asked: AskGroupPairs) -> Answer:
        groups = self._groups(asked)
        if sender in asked.receivers:
            raise SecurityError("Encrypted groups were to be sent to the Guest, who could read them; that was refused.")
        pairs, sent = groups.pairs(asked)
        for receiver in asked.receivers:
            if receiver == self._name:
                groups.take_pairs(self._name, pairs)
            else:
                yield receiver, pairs
        yield sender, sent
