"""A Guest whose Hosts are at their own companies: the same runtime over links."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from backend.data.federation import Federation
from backend.errors import FederationError, ParameterError, PartyUnreachable
from backend.link.agreement import Agreement, dictionary_hash, floors_of, load_signed
from backend.link.config import LinkOptions
from backend.link.peers import LinkSettings
from backend.link.rpc import require_grpc
from backend.link.shared import LinksElsewhere, SharedLinks
from backend.link.wire import LinkWire
from backend.protocols.guest_runtime import GuestRuntime, HostsOperator
from backend.protocols.transport.message import Message
from backend.protocols.transport.transcript import OwnTranscript
from backend.protocols.transport.wire import Delivery, LinkState, Quiet
from backend.remark import Remark

VARIABLE = "GLASSLEAF_LINKS"
ASK = "ask"
TAKE_OVER = 30.0  # seconds within which a process has the links again
RETRY_SECONDS = 0.1  # seconds


OnLinks = Callable[[Collection[str]], None]
"""Called without a conversation when this process has the links, and with those that another process has left open when it ended."""


def linked_runtime(
    federation: Federation, home: Path, options: dict[str, Any], on_links: OnLinks = lambda conversations: None
) -> GuestRuntime:
    """Return the Guest of a federation file with a table `link`; it listens, or dials, from now on, unless another process of it does.

    Raises
    ------
    FederationError
        The file and the agreement do not name the same parties, or a Host's features are others than it agreed to disclose.
    SecurityError, ParameterError
        See :class:`backend.link.wire.LinkWire`.
    """
    link = federation.link
    if link is None:
        raise FederationError("hosts_are_simulated", federation=federation.name)
    folder = federation.folder
    guest = federation.guest.name
    path = folder / link.agreement
    keys = folder / link.keys
    require_grpc()
    agreement = load_signed(path, guest, datetime.now(UTC))
    check_parties(federation, agreement)
    wire = GuestWire(guest, path, keys, LinkSettings(LinkOptions(bind=link.bind)), on_links)
    try:
        witnesses = {host.name: host.signing for host in agreement.hosts}
        return GuestRuntime(
            federation,
            home,
            OwnTranscript(wire),
            HostsOperator(),
            witnesses=witnesses,
            named_share=floors_of(agreement).named_share,
            on_close=wire.shut_down,
            links=wire.links,
            **options,
        )
    except BaseException:
        wire.shut_down()
        raise


class GuestWire:
    """The Guest's links. Of a home's processes one has them, and the others speak through it.

    The first process has them; when it ends, another one takes them at once. A process with :data:`VARIABLE` = ``ask`` never
    has them.

    Parameters
    ----------
    party, agreement, keys, settings
        See :class:`backend.link.wire.LinkWire`.
    on_links : callable
        See :data:`OnLinks`.
    """

    def __init__(
        self,
        party: str,
        agreement: Path,
        keys: Path,
        settings: LinkSettings,
        on_links: OnLinks = lambda conversations: None,
    ) -> None:
        self.party = party
        self._on_links = on_links
        self._keys = keys
        self._own = partial(LinkWire, party, agreement, keys, settings)
        self._lock = threading.Lock()
        self._wire: LinkWire | LinksElsewhere | None = None
        self._shared: SharedLinks | None = None
        self._closed = threading.Event()
        self._at: dict[str, LinkWire | LinksElsewhere] = {}  # conversation → the links on which it began
        with suppress(PartyUnreachable):
            self._links()

    def _links(self) -> LinkWire | LinksElsewhere:
        """Return the links; raise PartyUnreachable, with what to do, if this process cannot have any."""
        with self._lock:
            if self._closed.is_set():
                raise PartyUnreachable("links_ended", party=self.party)
            if isinstance(self._wire, LinksElsewhere) and self._wire.lost.is_set():
                self._wire.shut_down()
                self._wire = None
            if self._wire is None:
                self._wire = self._taken() or LinksElsewhere(self.party, self._keys, self._take_over)
            return self._wire

    def _taken(self) -> LinkWire | None:
        """Return the links for this process, which answers the others from now on; None if another process has them."""
        if os.environ.get(VARIABLE) == ASK:
            return None
        try:
            wire = self._own()
        except ParameterError as error:
            if error.code == "links_held_by_process":
                return None
            raise PartyUnreachable("links_held_elsewhere", party=self.party, why=error.remarks[0]) from None
        if hasattr(socket, "AF_UNIX") and os.access(self._keys, os.W_OK):
            self._shared = SharedLinks(wire, self._keys, self._on_links)
        self._on_links(())
        return wire

    def _take_over(self) -> None:
        """The process that had the links has ended: have them, or find who has."""
        until = time.monotonic() + TAKE_OVER
        while time.monotonic() < until:
            try:
                self._links()
                return
            except PartyUnreachable:
                if self._closed.wait(RETRY_SECONDS):
                    return

    def open(self, conversation: str = "") -> None:
        """Open a mailbox; raises PartyUnreachable if there are no links to be had."""
        wire = self._links()
        wire.open(conversation)
        self._at[conversation] = wire

    def close(self, conversation: str = "") -> None:
        """Close a mailbox."""
        wire = self._at.pop(conversation, None)
        if wire is not None:
            wire.close(conversation)

    def send(self, receiver: str, message: Message) -> int:
        """Queue a message; raises as :meth:`backend.link.wire.LinkWire.send`."""
        return self._wire_of(message.conversation).send(receiver, message)

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """Return what comes next; raises PartyUnreachable if the links on which the conversation began have ended."""
        return self._wire_of(conversation).receive(conversation, timeout)

    def _wire_of(self, conversation: str) -> LinkWire | LinksElsewhere:
        """Return the links on which a conversation began: it ends with them."""
        return self._at.get(conversation) or self._links()

    def is_up(self, party: str) -> bool:
        """Return whether `party` can be reached; raises PartyUnreachable if there are no links to be had."""
        return self._links().is_up(party)

    def quiet(self, party: str) -> Quiet:
        """Return how long nothing has come from `party`; nothing is known of links that have ended."""
        with suppress(PartyUnreachable):
            if self._wire is None:
                return Quiet()
            return self._wire.quiet(party)
        return Quiet()

    def state(self, party: str) -> Remark | None:
        """Return the state of the link to `party`."""
        return self.links()[party].remark

    def links(self) -> dict[str, LinkState]:
        """Return whether each link is there; raises PartyUnreachable if there are no links to be had."""
        return self._links().links()

    def shut_down(self) -> None:
        """End the links for good."""
        self._closed.set()
        with self._lock:
            if self._shared is not None:
                self._shared.close()
            if self._wire is not None:
                self._wire.shut_down()


def check_parties(federation: Federation, agreement: Agreement) -> None:
    """Raise FederationError if the federation file says something else than what all have signed."""
    agreed = [host.name for host in agreement.hosts]
    host_names = [host.name for host in federation.hosts]
    problems = []
    if agreement.guest.name != federation.guest.name or set(agreed) != set(host_names):
        problems.append(
            Remark(
                "parties_not_agreed",
                {
                    "guest": federation.guest.name,
                    "hosts": tuple(host_names),
                    "agreed_guest": agreement.guest.name,
                    "agreed": tuple(agreed),
                },
            )
        )
    for host in federation.hosts:
        hashes = set()
        for purpose in agreement.purposes:
            if host.name in purpose.dictionaries:
                hashes.add(purpose.dictionaries[host.name])
        if hashes and dictionary_hash(host.features) not in hashes:
            problems.append(Remark("features_not_agreed", {"host": host.name}))
    if problems:
        raise FederationError(problems=problems)
