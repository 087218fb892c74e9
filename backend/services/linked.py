"""A Guest whose Hosts are at their own companies: the same runtime over links."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backend.data.federation import Federation
from backend.errors import FederationError, ParameterError, PartyUnreachable
from backend.link.agreement import Agreement, dictionary_hash, floors_of, load_in_force
from backend.link.peers import LinkSettings
from backend.link.rpc import require_grpc
from backend.link.wire import LinkWire
from backend.protocols.guest_runtime import GuestRuntime, HostsOperator
from backend.protocols.transport.message import Message
from backend.protocols.transport.transcript import OwnTranscript
from backend.protocols.transport.wire import Delivery, LinkState, Quiet
from backend.remark import Remark


def linked_runtime(federation: Federation, home: Path, options: dict[str, Any]) -> GuestRuntime:
    """The Guest of a federation file with a table `link`; it listens, or dials, from now on unless another process of it does.

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
    agreement = load_in_force(path, guest, datetime.now(UTC))
    check_parties(federation, agreement)
    wire = GuestWire(lambda: LinkWire(guest, path, keys, LinkSettings(bind=link.bind)), guest)
    try:
        witnesses = {host.name: host.signing for host in agreement.hosts}
        return GuestRuntime(
            federation,
            home,
            OwnTranscript(wire),
            HostsOperator(),
            witnesses=witnesses,
            named=floors_of(agreement).named_share,
            on_close=wire.shut_down,
            links=wire.links,
            **options,
        )
    except BaseException:
        wire.shut_down()
        raise


class GuestWire:
    """The Guest's links, opened at once where they can be, else when they are first used.

    Of a home's processes one has them: the dashboard, say. Another one can do meanwhile what needs no Host, and says so of the rest.

    Parameters
    ----------
    connect : callable
        Opens the links; ParameterError if the port is taken.
    party : str
        The Guest's name.
    """

    def __init__(self, connect: Callable[[], LinkWire], party: str) -> None:
        self.party = party
        self._connect = connect
        self._lock = threading.Lock()
        self._wire: LinkWire | None = None
        self._closed = False
        with suppress(PartyUnreachable):
            self._links()

    def _links(self) -> LinkWire:
        """The links; raises PartyUnreachable, with what to do, if another process has them."""
        with self._lock:
            if self._closed:
                raise PartyUnreachable("links_ended", party=self.party)
            if self._wire is None:
                try:
                    self._wire = self._connect()
                except ParameterError as error:
                    raise PartyUnreachable("links_held_elsewhere", party=self.party, why=error.remarks[0]) from None
            return self._wire

    def open(self, conversation: str = "") -> None:
        """Open a mailbox; raises PartyUnreachable if another process has the links."""
        self._links().open(conversation)

    def close(self, conversation: str = "") -> None:
        """Close a mailbox."""
        if self._wire is not None:
            self._wire.close(conversation)

    def send(self, receiver: str, message: Message) -> int:
        """Queue a message; raises as :meth:`backend.link.wire.LinkWire.send`."""
        return self._links().send(receiver, message)

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """What comes next."""
        return None if self._wire is None else self._wire.receive(conversation, timeout)

    def is_up(self, party: str) -> bool:
        """Whether `party` can be reached; raises PartyUnreachable if another process has the links."""
        return self._links().is_up(party)

    def quiet(self, party: str) -> Quiet:
        """How long nothing has come from `party`."""
        return Quiet() if self._wire is None else self._wire.quiet(party)

    def links(self) -> dict[str, LinkState]:
        """Return whether each link is there; raises PartyUnreachable if another process has the links."""
        return self._links().links()

    def shut_down(self) -> None:
        """End the links for good."""
        with self._lock:
            self._closed = True
        if self._wire is not None:
            self._wire.shut_down()


def check_parties(federation: Federation, agreement: Agreement) -> None:
    """Raise FederationError if the federation file says something else than what all have signed."""
    agreed = [host.name for host in agreement.hosts]
    named = [host.name for host in federation.hosts]
    problems = []
    if agreement.guest.name != federation.guest.name or set(agreed) != set(named):
        problems.append(
            Remark(
                "parties_not_agreed",
                {
                    "guest": federation.guest.name,
                    "hosts": tuple(named),
                    "agreed_guest": agreement.guest.name,
                    "agreed": tuple(agreed),
                },
            )
        )
    for host in federation.hosts:
        hashes = {
            purpose.dictionaries[host.name] for purpose in agreement.purposes if host.name in purpose.dictionaries
        }
        if hashes and dictionary_hash(host.features) not in hashes:
            problems.append(Remark("features_not_agreed", {"host": host.name}))
    if problems:
        raise FederationError(problems=problems)
