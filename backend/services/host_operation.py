"""State of a Host's process for the people who run it: whether it can answer and how much it does; no person and no feature is named."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import partial

from backend.errors import SecurityError, StoreError
from backend.link.agreement import check_valid
from backend.link.kinds import ALWAYS, all_kinds, kinds_of
from backend.link.wire import LinkWire
from backend.ops.health import OpsServer
from backend.ops.metrics import HostMetrics
from backend.ops.open_files import nearly_all_open
from backend.protocols.host import HostParty, Served
from backend.protocols.transport.message import Lane
from backend.protocols.transport.messages import EndConversation
from backend.remark import Remark
from backend.store.approvals import ApprovalBook
from backend.store.database import Database

OPEN_SECONDS = 60.0  # seconds without a message after which a conversation is not shown as open
_log = logging.getLogger("glassleaf")


class HostOperation:
    """One Host, as its machine's operator has it.

    Parameters
    ----------
    database : Database
        The Host's.
    """

    def __init__(self, wire: LinkWire, database: Database) -> None:
        self._wire = wire
        self._book = ApprovalBook(database)
        self._database = database
        self._metrics = HostMetrics((*all_kinds(), *kinds_of(ALWAYS)))
        self._guest = wire.peer(wire.agreement.guest.name)
        self._party: HostParty | None = None
        self._server: OpsServer | None = None

    def watch(self, party: HostParty) -> None:
        """From now on this is whose figures are shown."""
        self._party = party
        for lane in Lane:
            self._metrics.watch_queue(lane, partial(party.waiting, lane))
        self._metrics.watch("approvals_waiting", "Requests that wait for the operator", self._waiting)
        self._metrics.watch("conversations", "Conversations that are open", lambda: party.open_work(OPEN_SECONDS))
        self._metrics.watch("link_up", "Whether the link to the Guest is there", lambda: self._guest.is_attached)

    def _waiting(self) -> float:
        try:
            return self._book.waiting()
        except StoreError:
            return float("nan")

    def served(self, message: Served) -> None:
        """Count a message, and log what an operator looks for: refusals, and how conversations end."""
        self._metrics.count_message(message.kind, message.seconds, refused=bool(message.refused))
        self._metrics.count_people(*message.people)
        extra = {"conversation": message.conversation, "seconds": round(message.seconds, 6)}
        if message.refused:
            _log.info("A message was refused: %s", message.refused, extra=extra)
        elif any(message.people):
            _log.info(
                "Decisions were made: %d answered, %d without a record, %d over a limit.", *message.people, extra=extra
            )
        elif message.kind == EndConversation.__name__:
            _log.info("A conversation has ended.", extra=extra)

    def not_ready(self) -> tuple[str, ...]:
        """Return why the Host answers nothing new now, a sentence each; empty if it does."""
        reasons = []
        if self._party is None or self._party.draining:
            reasons.append("The Host takes on nothing new.")
        try:
            self._book.waiting()
            self._database.check_writable()
        except StoreError:
            reasons.append("The store cannot be reached or written.")
        try:
            check_valid(self._wire.agreement, datetime.now(UTC))
        except SecurityError:
            reasons.append("The agreement is not valid today.")
        if nearly_all_open():
            reasons.append(Remark("too_many_open").sentence())
        if not self._guest.is_attached:
            reasons.append(self._guest.link().remark.sentence())
        return tuple(reasons)

    def show(self, where: str) -> None:
        """Answer ``/live``, ``/ready`` and ``/metrics`` at host:port until :meth:`close`; empty = nowhere.

        Raises
        ------
        ParameterError
            The port is taken.
        """
        if where:
            address, _, port = where.rpartition(":")
            self._server = OpsServer(int(port), self.not_ready, self._metrics.text, address)

    @property
    def port(self) -> int:
        """Return the port at which it answers; 0 if it does not."""
        return 0 if self._server is None else self._server.port

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
            self._server = None
