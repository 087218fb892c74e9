"""A simulated Host's handler for the protocols that Fed-EINI is compared with: they disclose the branches that a record takes."""

from __future__ import annotations

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.baselines.host_answers import HostWalk
from backend.protocols.baselines.messages import AskCandidates, AskWalk, CandidateLeaves, PassOn, StartWalk
from backend.protocols.host_state import Answer, Handlers, HostModels, HostSession, HostSessions, ServedModel
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap


class WalkHandler:
    """Answers in the clear, which only a simulated Host does."""

    def __init__(self, table: PartyTable, partial_models: HostModels, sessions: HostSessions, simulated: bool) -> None:
        self._table, self._partial_models, self._sessions, self._simulated = table, partial_models, sessions, simulated

    def handlers(self) -> Handlers:
        """Message class → answer."""
        return {
            StartWalk: self._start_walk,
            AskWalk: self._ask_walk,
            PassOn: self._pass_on,
            AskCandidates: self._ask_candidates,
        }

    def _open(self, sender: str, request: StartWalk | AskCandidates) -> tuple[HostSession, ServedModel]:
        session = self._sessions.of(request.conversation, sender)
        if not self._simulated:
            raise SecurityError("asked_in_the_clear", kind=type(request).__name__)
        partial_model = self._partial_models.get(request.model_id)
        if sender != partial_model.model.guest:
            raise SecurityError("scored_by_other_than_guest")
        return session, partial_model

    def _start_walk(self, sender: str, request: StartWalk) -> Answer:
        session, partial_model = self._open(sender, request)
        columns, held = session.look_up(self._table, request.ids)
        session.keep(HostWalk, partial_model.paths.start(columns, held))
        yield sender, HeldRecords(request.conversation, to_bitmap(held))

    def _walk(self, message: Message) -> HostWalk:
        return self._sessions.of(message.conversation).need(HostWalk, "Samples came before the walk was begun.")

    def _ask_walk(self, sender: str, asked: AskWalk) -> Answer:
        yield sender, self._walk(asked).walked(asked)

    def _pass_on(self, sender: str, passed: PassOn) -> Answer:
        yield from self._walk(passed).take(sender, passed)

    def _ask_candidates(self, sender: str, request: AskCandidates) -> Answer:
        session, partial_model = self._open(sender, request)
        columns, held = session.look_up(self._table, request.ids)
        leaves = partial_model.paths.candidates(columns, held)
        yield sender, CandidateLeaves(request.conversation, to_bitmap(held), leaves)
