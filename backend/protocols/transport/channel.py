"""The Guest's end of a conversation: it sends, waits for answers of the kind that is due, and can be stopped at any wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from backend import errors, work
from backend.errors import Cancelled, HostBusy, HostRefused, PartyUnreachable, QuestionRefused, SecurityError
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending, EndConversation, Refusal
from backend.protocols.transport.transcript import TranscriptEntry
from backend.protocols.transport.wire import TranscribedWire

M = TypeVar("M", bound=Message)
POLL = 0.1  # seconds between looks at the cancel flag
TIMEOUT = 300.0  # seconds a party may stay silent before it counts as unreachable


class Session:
    """The Guest's end of one training or scoring: sends, waits, and can be cancelled at any wait.

    Parameters
    ----------
    wire : TranscribedWire
        The Guest's.
    name : str
        Unique per training or scoring (:func:`backend.protocols.transport.wire.new_conversation`).
    hosts : tuple of str
        Whom it may wait for.
    cancelled : callable
        Called at least every 0.1 s while waiting.
    timeout : float
        Seconds without an answer after which the Hosts count as unreachable.
    """

    def __init__(
        self,
        wire: TranscribedWire,
        name: str,
        hosts: tuple[str, ...],
        cancelled: Callable[[], bool] = lambda: False,
        timeout: float = TIMEOUT,
    ) -> None:
        self.name, self.hosts = name, hosts
        self._wire, self._cancelled, self._timeout = wire, cancelled, timeout
        self._met: set[str] = set()
        wire.open(name)

    def send(self, receiver: str, message: Message) -> None:
        """Send one message."""
        self._wire.send(receiver, message)
        self._met.add(receiver)

    def broadcast(self, message: Message) -> None:
        """Send the same message to every Host of the conversation."""
        for host in self.hosts:
            self.send(host, message)

    def expect(self, kind: type[M]) -> tuple[str, M]:
        """Wait for the next message, which must be of class `kind`; returns its sender too.

        Raises
        ------
        Cancelled
            The user stopped the job.
        PartyUnreachable
            A Host went down, or none answered in time.
        HostBusy, HostRefused, QuestionRefused
            A Host refused; ApprovalPending where its operator has not decided yet.
        SecurityError
            It sent something else.
        """
        sender, message = self._next()
        if isinstance(message, Refusal):
            if message.wait > 0:
                raise HostBusy(f"{sender} refused: {message.reason}", message.wait)
            refused = QuestionRefused if message.final else HostRefused
            raise refused(f"{sender} refused: {message.reason}")
        if isinstance(message, ApprovalPending):
            raise errors.ApprovalPending(sender, message.number, _time(message.since))
        if not isinstance(message, kind):
            came = type(message).__name__
            raise SecurityError(f"A {kind.__name__} was expected, a {came} came; the exchange was stopped.")
        return sender, message

    def expect_each(self, kind: type[M], hosts: Collection[str]) -> dict[str, M]:
        """Wait for one message of class `kind` from each of `hosts`, in whatever order they come."""
        answers: dict[str, M] = {}
        while len(answers) < len(hosts):
            sender, message = self.expect(kind)
            if sender in answers or sender not in hosts:
                raise SecurityError(f"{sender} answered out of turn; the exchange was stopped.")
            answers[sender] = message
        return answers

    def check(self) -> None:
        """Raise Cancelled if the user stopped the job."""
        work.check()
        if self._cancelled():
            raise Cancelled("Stopped at your request; nothing half-done was kept.")

    def _next(self) -> tuple[str, Message]:
        deadline = time.monotonic() + self._timeout
        while True:
            self.check()
            self._wire.rest(self.name)
            delivery = self._wire.receive(self.name, timeout=POLL)
            if delivery is not None:
                self._wire.take(delivery)
                return delivery.sender, delivery.message
            down = [h for h in self.hosts if not self._wire.is_up(h)]
            if down:
                raise PartyUnreachable(
                    f"{', '.join(down)} stopped while it was being asked. Start it again and repeat."
                )
            if time.monotonic() > deadline:
                hosts = ", ".join(self.hosts)
                raise PartyUnreachable(
                    f"No answer from {hosts} for {self._timeout:g} s. Check that they run, and repeat."
                )

    def transcript(self) -> tuple[TranscriptEntry, ...]:
        """The messages so far."""
        return self._wire.transcript(self.name)

    def close(self) -> tuple[TranscriptEntry, ...]:
        """End the conversation, however far it got: Hosts forget it too. Returns its transcript."""
        for host in sorted(self._met):
            with suppress(PartyUnreachable):
                self._wire.send(host, EndConversation(self.name))
        transcript = self._wire.transcript(self.name)
        self._wire.close(self.name)
        self._wire.forget(self.name)
        return transcript


def _time(told: str) -> datetime:
    """When something has happened at another party, by its clock."""
    try:
        found = datetime.fromisoformat(told)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise SecurityError("A time came that is none in UTC; the exchange was stopped.")
    return found
