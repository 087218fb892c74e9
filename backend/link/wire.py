"""The wire of a party whose peers are at other companies: what :mod:`backend.protocols` sends and receives goes over links."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from backend.errors import ParameterError, SecurityError, StoreError
from backend.link.frames import Lane
from backend.link.node import Node
from backend.link.peers import LinkSettings, Peer
from backend.link.rpc import require_grpc
from backend.ops.atomic_file import held_alone
from backend.protocols.transport.message import Message
from backend.protocols.transport.wire import Delivery, LinkState, Quiet
from backend.remark import Remark

if TYPE_CHECKING:
    from backend.link.agreement import Agreement
    from backend.link.dialler import Dialler
    from backend.link.listener import Listener

HELD = "links.lock"  # beside the keys of whoever has the links
LEAVE = 5.0  # seconds for what waits when a party stops


class LinkWire:
    """One party's :class:`backend.protocols.transport.wire.Wire` over links, which are up from the beginning and renewed for ever.

    One process has the links of a party: to its peers a second one would be the first begun again, and end what that has open.

    Parameters
    ----------
    party : str
        Its name in the agreement.
    agreement : Path
        agreement.toml, signed by all.
    keys : Path
        Folder of its keys.

    Raises
    ------
    SecurityError
        The agreement is not in force, or the keys are another party's.
    ParameterError
        The extra `link` is not installed, another process has the links, or the port is taken.
    """

    def __init__(self, party: str, agreement: Path, keys: Path, settings: LinkSettings | None = None) -> None:
        require_grpc()
        from backend.link.dialler import Dialler  # noqa: PLC0415 - extra link
        from backend.link.listener import Listener  # noqa: PLC0415

        self._node = Node(party, agreement, keys, settings or LinkSettings())
        if not self._node.is_guest:
            self.open()  # before a link stands: a question that comes before the Host answers waits for it
        guest = self._node.agreement.guest
        listens = self._node.party.address and (self._node.is_guest or not guest.address)
        with ExitStack() as resources:  # released if a later step fails
            self._hold(resources, keys)
            if listens:
                address = self._node.settings.listens_at(self._node.party.address)
            else:
                address = ""
            self._listener: Listener | None = Listener(self._node, address) if listens else None
            if listens and not self._node.is_guest:
                dialled = []
            else:
                dialled = self._dialled()
            self._diallers: list[Dialler] = [Dialler(self._node, peer) for peer in dialled]
            self._held = resources.pop_all()

    def _hold(self, resources: ExitStack, keys: Path) -> None:
        """Lock the keys' folder for this process, before a peer hears of it."""
        if not os.access(keys, os.W_OK):
            return
        try:
            resources.enter_context(held_alone(keys / HELD))
        except StoreError:
            raise ParameterError("links_held_by_process", party=self.party) from None

    def _dialled(self) -> list[Peer]:
        """Whom this side has to dial: by default the Guest listens, and Hosts dial out."""
        if not self._node.is_guest:
            return list(self._node.peers.values())
        if self._node.party.address:
            return []
        return list(self._node.peers.values())

    def __repr__(self) -> str:
        return f"LinkWire({self.party})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    @property
    def party(self) -> str:
        """Whose it is."""
        return self._node.party.name

    @property
    def agreement(self) -> Agreement:
        """The one in force."""
        return self._node.agreement

    @property
    def port(self) -> int:
        """Where it listens; 0 if it does not."""
        return self._listener.port if self._listener else 0

    def open(self, conversation: str = "") -> None:
        """Open a mailbox."""
        self._node.mailboxes.open(conversation)

    def close(self, conversation: str = "") -> None:
        """Close a mailbox."""
        self._node.mailboxes.close(conversation)
        if conversation:
            self._node.end(conversation)

    def use_lane(self, conversation: str, lane: Lane) -> None:
        """Send a conversation's messages in a lane; answers come back in it."""
        self._node.use_lane(conversation, lane)

    def send(self, receiver: str, message: Message) -> int:
        """Queue a message for delivery; returns its bytes.

        Raises
        ------
        PartyUnreachable
            The link is down, or its lane is full.
        SecurityError
            The agreement does not allow this kind of message.
        """
        return self._node.send(receiver, message)

    def receive(self, conversation: str = "", timeout: float | None = None) -> Delivery | None:
        """Return the next message; None once the mailbox is closed or `timeout` seconds have passed.

        Raises
        ------
        SecurityError
            The bytes are not a message, or another message than their frame states.
        """
        delivery = self._node.receive(conversation, timeout)
        if delivery is None:
            return None
        letter, message = delivery
        return Delivery(letter.sender, message, letter.bytes_on_wire)

    def receive_bytes(self, conversation: str, timeout: float | None) -> tuple[str, bytes, int] | None:
        """Return the next message for another process: the sender, the message's bytes, and its length on the wire."""
        delivery = self._node.receive(conversation, timeout)
        if delivery is None:
            return None
        letter, _ = delivery
        return letter.sender, letter.blob, letter.bytes_on_wire

    def is_up(self, party: str) -> bool:
        """Whether `party` can be reached; of another Host, whether the Guest can, who passes on."""
        if party == self.party:
            return self._node.mailboxes.is_open("")
        peer = self._node.peers.get(party) or (
            None if self._node.is_guest else self._node.peers[self.agreement.guest.name]
        )
        if peer is None:
            raise SecurityError("not_a_party", party=party)
        return peer.is_up

    def quiet(self, party: str) -> Quiet:
        """How long nothing has come over the link to `party`."""
        return self._node.peers[party].quiet

    def state(self, party: str) -> Remark | None:
        """How the link to `party` stands."""
        return self._node.peers[party].state()

    def links(self) -> dict[str, LinkState]:
        """Return each link's state, by peer."""
        return {name: peer.link() for name, peer in self._node.peers.items()}

    def peer(self, name: str) -> Peer:
        """A peer's link: whether it is attached, its latency, what waits for it."""
        return self._node.peers[name]

    def shut_down(self) -> None:
        """Deliver what waits, as far as peers take it within :data:`LEAVE` seconds, take leave of them and stop."""
        until = time.monotonic() + LEAVE
        while any(self._waits(peer) for peer in self._node.peers.values()) and time.monotonic() < until:
            time.sleep(0.01)
        for dialler in self._diallers:
            dialler.close()
        if self._listener is not None:
            self._listener.close()
        for peer in self._node.peers.values():
            peer.outbox.close()
        self._node.mailboxes.close_all()
        self._held.close()

    @staticmethod
    def _waits(peer: Peer) -> bool:
        return peer.is_attached and any(peer.outbox.depth().values())
