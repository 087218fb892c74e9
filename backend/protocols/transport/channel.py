"""The Guest's end of a conversation: it sends, waits for answers of the kind that is due, and can be stopped at any wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import TypeVar

from backend import errors
from backend.errors import Cancelled, PartyUnreachable, SecurityError
from backend.jobs import work
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import ApprovalPending, ConversationReceipt, EndConversation, Refusal
from backend.protocols.transport.receipts import is_genuine, whole
from backend.protocols.transport.refusals import refused
from backend.protocols.transport.transcript import TranscribedWire, TranscriptEntry

_log = logging.getLogger("glassleaf")
M = TypeVar("M", bound=Message)
OnClose = Callable[[str, Sequence[TranscriptEntry], Mapping[str, ConversationReceipt]], None]
POLL_SECONDS = 0.05  # seconds between looks at whether links are up
POLL = 0.1  # seconds between looks at the cancel flag
RECEIPT_TIMEOUT = 2.0  # seconds that Hosts get to state what they sent and took
QUIET_SECONDS = 5.0  # seconds without an answer after which it is said of whom
TIMEOUT = 300.0  # seconds a party may stay silent before it counts as unreachable


class Session:
    """The Guest's end of one training or scoring: sends, waits, and can be cancelled at any wait.

    Parameters
    ----------
    name : str
        Unique per training or scoring (:func:`backend.protocols.transport.wire.new_conversation`).
    cancelled : callable
        Called at least every 0.1 s while waiting.
    timeout : float
        Seconds without an answer after which the Hosts count as unreachable.
    witnesses : mapping of str to str
        Host → public key under which it signs what it sent and took; those are waited for at the end.
    on_close : callable
        Called at the end with the transcript as the wire has it, and the receipts; if these are waited for, without them before.

    Attributes
    ----------
    receipts : dict of str to ConversationReceipt
        By Host, once the conversation is over.
    """

    def __init__(
        self,
        wire: TranscribedWire,
        name: str,
        hosts: tuple[str, ...],
        cancelled: Callable[[], bool] = lambda: False,
        timeout: float = TIMEOUT,
        witnesses: Mapping[str, str] = MappingProxyType({}),
        on_close: OnClose = lambda conversation, transcript, receipts: None,
    ) -> None:
        self.name = name
        self.hosts = hosts
        self.receipts = dict[str, ConversationReceipt]()
        self._witnesses = witnesses
        self._on_close = on_close
        self._wire = wire
        self._cancelled = cancelled
        self._timeout = timeout
        self._met: set[str] = set()
        self._unanswered: set[str] = set()
        wire.open(name)

    def send(self, receiver: str, message: Message) -> None:
        """Send one message."""
        self._wire.send(receiver, message)
        self._met.add(receiver)

    def broadcast(self, message: Message) -> None:
        """Send the same message to every Host of the conversation."""
        for host in self.hosts:
            self.send(host, message)

    def expect(self, kind: type[M], at_work: Collection[str] = ()) -> tuple[str, M]:
        """Wait for the next message, which must be of class `kind`; returns its sender too.

        `at_work` are the Hosts that work for it now, if not every one of the conversation does.

        Raises
        ------
        Cancelled
            The user stopped the job.
        PartyUnreachable
            A Host went down, or none answered in time.
        HostBusy, HostRefused, QuestionRefused
            A Host refused; ApprovalPending if its operator has not decided yet, ApprovalDenied if the operator was against it.
        SecurityError
            It sent something else.
        """
        sender, message = self._next(at_work or self.hosts)
        if isinstance(message, Refusal):
            raise refused(sender, message)
        if isinstance(message, ApprovalPending):
            raise errors.ApprovalPending(sender, message.number, _time(message.since))
        if not isinstance(message, kind):
            came = type(message).__name__
            raise SecurityError("other_message_expected", host=sender, kind=kind.__name__, got=came)
        return sender, message

    def expect_each(self, kind: type[M], hosts: Collection[str], at_work: Collection[str] = ()) -> dict[str, M]:
        """Wait for one message of class `kind` from each of `hosts`, in whatever order they come.

        `at_work` are the Hosts that work for it now, where they are others than those that have not answered.
        """
        answers: dict[str, M] = {}
        while len(answers) < len(hosts):
            sender, message = self.expect(kind, at_work or [host for host in hosts if host not in answers])
            if sender in answers or sender not in hosts:
                raise SecurityError("answered_out_of_turn", host=sender)
            answers[sender] = message
        return answers

    def check(self) -> None:
        """Raise Cancelled if the user stopped the job."""
        work.check()
        if self._cancelled():
            raise Cancelled("stopped_at_request")

    def _next(self, at_work: Collection[str]) -> tuple[str, Message]:
        try:
            return self._awaited(at_work)
        finally:
            work.silent(None)

    def _awaited(self, at_work: Collection[str]) -> tuple[str, Message]:
        began = time.monotonic()
        deadline = began + self._timeout
        while True:
            self.check()
            self._wire.rest(self.name)
            delivery = self._wire.receive(self.name, timeout=POLL)
            if delivery is not None:
                self._wire.take(delivery)
                return delivery.sender, delivery.message
            down = [h for h in self.hosts if not self._wire.is_up(h)]
            if down:
                why = self._wire.state(down[0])
                if why is not None:
                    raise PartyUnreachable("link_down_while_asked", why=why)
                raise PartyUnreachable("host_stopped", hosts=tuple(down))
            self._tell_of_silence(at_work, time.monotonic() - began)
            if time.monotonic() > deadline:
                self._unanswered |= set(at_work)
                raise PartyUnreachable("no_answer_in_time", hosts=tuple(self.hosts), seconds=self._timeout)

    def _tell_of_silence(self, at_work: Collection[str], waited: float) -> None:
        """Report the Hosts that have not answered: those that have not confirmed a message, else those at work."""
        if waited < QUIET_SECONDS:
            return
        quiet = {host: self._wire.quiet(host) for host in self.hosts}
        silent = {host: state.owing for host, state in quiet.items() if state.owing >= QUIET_SECONDS}
        silent = silent or {host: quiet[host].seconds for host in at_work if host in quiet}
        seconds = min([waited, *silent.values()])
        work.silent(work.Silence(tuple(silent), seconds) if seconds >= QUIET_SECONDS else None)

    def transcript(self) -> tuple[TranscriptEntry, ...]:
        """The messages so far."""
        return self._wire.transcript(self.name)

    def close(self) -> tuple[TranscriptEntry, ...]:
        """End the conversation at any point, also at the Hosts. Return its transcript, with the Hosts' statements of their messages."""
        notified = set()
        for host in sorted(self._met):
            # A Host that has not answered in time would send no statement either.
            gone = host in self._unanswered or self._wire.quiet(host).owing >= RECEIPT_TIMEOUT
            with suppress(PartyUnreachable):
                self._wire.send(host, EndConversation(self.name))
                notified |= set() if gone else {host}
        transcript = guest_transcript = self._wire.transcript(self.name)
        if expected := notified & self._witnesses.keys():
            # A process that is killed while it waits for the Hosts has stated its own side.
            self._on_close(self.name, guest_transcript, {})
            with suppress(PartyUnreachable):  # the links have ended
                self._take_receipts(expected)
            transcript = whole(transcript, self._wire.party, self.receipts)
        self._wire.close(self.name)
        self._wire.forget(self.name)
        self._on_close(self.name, guest_transcript, self.receipts)
        return transcript

    def _take_receipts(self, hosts: Collection[str]) -> None:
        """Wait a moment for the Hosts' receipts; a receipt that is not genuine, and any other late message, is dropped."""
        deadline = time.monotonic() + RECEIPT_TIMEOUT
        self._wire.rest(self.name)
        while len(self.receipts) < len(hosts) and time.monotonic() < deadline:
            try:
                delivery = self._wire.receive(self.name, timeout=POLL)
            except SecurityError:
                continue
            if delivery is None:
                if not any(self._wire.is_up(host) for host in hosts if host not in self.receipts):
                    break
                continue
            host = delivery.sender
            receipt = delivery.message
            if isinstance(receipt, ConversationReceipt) and host in hosts:
                if is_genuine(receipt, host, self._witnesses[host]):
                    self.receipts[host] = receipt
                else:
                    _log.warning("%s signed no receipt of its own messages; it was dropped", host)
                    hosts = [witness for witness in hosts if witness != host]


def await_links(down: Callable[[], tuple[str, ...]], until: float, cancelled: Callable[[], bool]) -> None:
    """Wait until nobody is `down` any more, at most to this time of the monotonic clock; whoever stays so for a while is named."""
    began = time.monotonic()
    try:
        while (now := time.monotonic()) < until and not cancelled() and (hosts := down()):
            work.silent(work.Silence(hosts, now - began) if now - began >= QUIET_SECONDS else None)
            work.check()
            time.sleep(POLL_SECONDS)
    finally:
        work.silent(None)


def _time(stated: str) -> datetime:
    """Read a time that another party stated by its clock; raises SecurityError if it has no time zone."""
    try:
        time_stated = datetime.fromisoformat(stated)
    except ValueError:
        time_stated = None
    if time_stated is None or time_stated.tzinfo is None:
        raise SecurityError("time_not_utc")
    return time_stated
