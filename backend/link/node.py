"""What a party does at either end of a link: it greets, checks who a frame is from and what it may be, and hands messages on.

The Guest passes on what one Host sends another only if it is sealed and signed; it has no key that opens it.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cryptography import x509

from backend.errors import PartyUnreachable, SecurityError
from backend.link.agreement import AgreedParty, check_valid, load_signed
from backend.link.envelope import Opener, Sealer, check_relay
from backend.link.frames import (
    ENVELOPE,
    PROTOCOL,
    Assembly,
    DeliveryReceipt,
    Header,
    Lane,
    Memory,
    frames,
    length_in_chunks,
)
from backend.link.handshake import (
    CHECK,
    MAX_SKEW,
    Greeting,
    are_neighbours,
    check_greeting,
    dotted,
    greeting,
    pack_greeting,
    unpack_greeting,
)
from backend.link.identity import PartyKeys, check_chain, load_identity, spiffe_of
from backend.link.inbox import AGAIN, Letter, Mailboxes
from backend.link.outbox import Outgoing, header_of
from backend.link.peers import LANE_SECONDS, LinkSettings, Peer
from backend.link.shown_leaves import ShownLeaves
from backend.link.signatures import Signatures
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import Lane as Line
from backend.protocols.transport.message import Message
from backend.protocols.transport.messages import EndConversation, Refusal
from backend.remark import Remark

_log = logging.getLogger("glassleaf")
_LANES: dict[Line, Lane] = {Line.ONLINE: "online", Line.BULK: "bulk", Line.TRAINING: "training"}
STARTED_AGAIN = Remark("host_restarted")
_MAX_LANES = 16_384  # conversations whose lane is remembered


class Node:
    """One party at its ends of all links.

    Parameters
    ----------
    party : str
        Its name in the agreement.
    agreement : Path
        agreement.toml with its signatures.
    keys : Path
        Folder of its keys, which are read again when a leaf is renewed.

    Raises
    ------
    SecurityError
        This party has not signed the agreement, or the agreement is not valid today; or the keys are not this party's.
    """

    def __init__(self, party: str, agreement: Path, keys: Path, settings: LinkSettings) -> None:
        self.agreement = load_signed(agreement, party, datetime.now(UTC))
        self.signatures = Signatures(agreement, self.agreement)
        self.hash = self.agreement.hash
        self.party = self.agreement.party(party)
        self.settings = settings
        self._keys = keys
        identity = load_identity(keys)
        if identity.spiffe != self.party.spiffe or identity.signing.public != self.party.signing:
            raise SecurityError("keys_of_another_party", folder=str(keys), spiffe=identity.spiffe, party=party)
        self.instance = secrets.token_hex(16)
        self.checking = False
        self.memory = Memory(settings.memory)
        self.mailboxes = Mailboxes(settings.queue, self.memory)
        self._sealer = Sealer(self.agreement, self.party, identity.signing)
        self._opener = Opener(self.agreement, self.party, identity.sealing, time.time())
        self._lanes: dict[str, Lane] = {}
        self._lock = threading.Lock()
        if self.is_guest:
            others = self.agreement.hosts
        else:
            others = (self.agreement.guest,)
        self.peers = {other.name: Peer(other, settings, self.memory, self._hand, self._refused) for other in others}
        self._by_spiffe = {peer.party.spiffe: peer for peer in self.peers.values()}
        self._shown = ShownLeaves(keys)
        for spiffe, peer in self._by_spiffe.items():
            peer.expires = self._shown.end(spiffe)

    @property
    def is_guest(self) -> bool:
        """Whether this party asks."""
        return self.party.role == "guest"

    def identity(self) -> PartyKeys:
        """The keys as they are now."""
        return load_identity(self._keys)

    def leaf_written(self) -> int:
        """When the leaf's file was written last, ns; 0 if it is not there."""
        try:
            return (self._keys / "leaf.pem").stat().st_mtime_ns
        except OSError:
            return 0

    def greeting(self) -> bytes:
        """What this party says first."""
        return pack_greeting(self._greeting())

    def _greeting(self) -> Greeting:
        plain = greeting(self.party.name, self.hash, self.instance, time.time(), self.agreement.previous)
        capabilities = (*plain.capabilities, *self.signatures.packed())
        if self.checking:
            capabilities = (*capabilities, CHECK)
        return replace(plain, capabilities=capabilities)

    def greeted(self, peer: Peer, blob: bytes) -> Greeting:
        """Take a peer's greeting; raises SecurityError, with who has to do what, where they cannot talk."""
        check_valid(self.agreement, datetime.now(UTC))
        theirs = unpack_greeting(blob)
        check_greeting(self._greeting(), theirs, peer.name)
        self.signatures.take(theirs.capabilities)
        self.signatures.check()
        # whoever only looks leaves the conversations of the party that serves alone
        if CHECK not in theirs.capabilities:
            self._begun_again(peer, *peer.greeted(theirs.instance))
        return theirs

    def _begun_again(self, peer: Peer, forgotten: tuple[str, ...], abandoned: tuple[str, ...]) -> None:
        """End the conversations of a peer's previous process: at a Guest those it has forgotten, at a Host those it left open."""
        if self.is_guest:
            for conversation in forgotten:
                if self.mailboxes.is_open(conversation):
                    self._put_own(peer.name, Refusal(conversation, STARTED_AGAIN, wait=AGAIN))
        else:
            for conversation in abandoned:
                self._put_own(peer.name, EndConversation(conversation, broken_off=True))

    def _put_own(self, sender: str, message: Message) -> None:
        kind = type(message).__name__
        self.mailboxes.put_own(Letter(sender, kind, message.conversation, "online", encode(message), is_local=True))

    def peer_of(self, spiffe: str, chain_pem: bytes) -> Peer:
        """Whom a certificate names; raises SecurityError if it is no peer, or another party's root vouches for it."""
        peer = self._by_spiffe.get(spiffe)
        if peer is None:
            raise SecurityError("not_a_peer", spiffe=spiffe or "-", party=self.party.name)
        try:
            chain = x509.load_pem_x509_certificates(chain_pem)
        except ValueError as error:
            raise SecurityError("certificate_unreadable") from error
        check_chain(chain, peer.party.bundle.encode(), spiffe, datetime.now(UTC))
        if spiffe_of(chain[0]) != spiffe:
            raise SecurityError("certificate_of_another", spiffe=spiffe)
        peer.expires = chain[0].not_valid_after_utc
        self._shown.note(spiffe, peer.expires)
        return peer

    def assembly(self) -> Assembly:
        """For a message that comes in pieces."""
        return Assembly(self.memory, self.settings.message)

    def check_clock(self, peer: Peer, clock: float) -> None:
        """Raise SecurityError if a peer's clock has moved away from this one."""
        if abs(clock - time.time()) > MAX_SKEW:
            raise SecurityError("clocks_differ", party=peer.name, own=self.party.name, limit=round(MAX_SKEW))

    def check_header(self, peer: Peer, header: Header) -> None:
        """Raise SecurityError if a frame does not say what the link proves: the stream that it came on ends."""
        if header.sender != peer.party.spiffe:
            raise SecurityError("frame_of_another_sender", party=peer.name, sender=header.sender[:80])
        if header.agreement != self.hash:
            raise SecurityError("frame_of_another_agreement", party=peer.name)
        if not are_neighbours(PROTOCOL, header.protocol):
            raise SecurityError("frame_of_another_protocol", party=peer.name, protocol=dotted(header.protocol))

    def check_kind(self, kind: str) -> None:
        """Raise SecurityError if the agreement is not in force, or no purpose of it allows a kind of message at this moment."""
        self.signatures.check()
        now = datetime.now(UTC)
        check_valid(self.agreement, now)
        if kind not in self.agreement.allowed(now):
            raise SecurityError("kind_not_in_agreement", kind=kind[:64])

    def accept(self, peer: Peer, assembly: Assembly) -> DeliveryReceipt:
        """Take a whole message."""
        header, blob = assembly.whole()
        return peer.inbox.accept(peer.party, header, blob)

    def receive(self, conversation: str, timeout: float | None) -> tuple[Letter, Message] | None:
        """The next letter of a mailbox with what it says; raises SecurityError if what came is no message."""
        letter = self.mailboxes.get(conversation, timeout)
        if letter is None:
            return None
        message = decode(letter.blob)
        kind = type(message).__name__
        if letter.kind not in (kind, ENVELOPE) or message.conversation != letter.conversation:
            raise SecurityError("message_differs_from_frame", party=letter.sender)
        self.check_kind(kind)
        with self._lock:
            self._lanes[letter.conversation] = letter.lane  # answers go back in the lane of the question
            while len(self._lanes) > _MAX_LANES:
                del self._lanes[next(iter(self._lanes))]
        return letter, message

    def use_lane(self, conversation: str, lane: Lane) -> None:
        """Send a conversation's messages in a lane."""
        with self._lock:
            self._lanes[conversation] = lane

    def end(self, conversation: str) -> None:
        """A conversation of this party is over."""
        with self._lock:
            self._lanes.pop(conversation, None)

    def send(self, receiver: str, message: Message) -> int:
        """Queue a message for a peer, or sealed for another Host; returns its bytes.

        Raises
        ------
        PartyUnreachable
            The link is down, or its lane is full.
        SecurityError
            The agreement does not allow it, or it would have to be relayed unsealed.
        """
        self.check_kind(type(message).__name__)
        blob = encode(message)
        kind = type(message).__name__
        to = self.agreement.party(receiver)
        size = len(blob)
        peer = self.peers.get(receiver)
        if peer is None:
            if self.is_guest or to == self.party:
                raise SecurityError("no_link", own=self.party.name, party=receiver)
            peer = self.peers[self.agreement.guest.name]
            blob = self._sealer.seal(to, message.conversation, blob, time.time())
            kind = ENVELOPE
        if self.is_guest and not peer.is_up:  # nobody is counted for a question that does not leave
            raise PartyUnreachable("nothing_sent", why=peer.state())
        lane = self._lane_of(message)
        outgoing = Outgoing(message.conversation, kind, to.spiffe, blob, lane, time.time() + LANE_SECONDS[lane])
        peer.outbox.put(outgoing, timeout=self.settings.grace)
        return size

    def _lane_of(self, message: Message) -> Lane:
        """Return the lane of the message's conversation; if none was chosen, the lane of its kind of message."""
        with self._lock:
            lane = self._lanes.get(message.conversation)
            kind = message.lane()
            if lane is None and kind is not None:
                lane = _LANES[kind]
                self._lanes[message.conversation] = lane
        return lane or "online"

    def outgoing_frames(self, message: Outgoing) -> Iterator[bytes]:
        """A message in frames."""
        digest = sha256(message.blob).hexdigest()
        chunks = length_in_chunks(len(message.blob))
        return frames(header_of(message, PROTOCOL, self.hash, self.party.spiffe, digest, chunks), message.blob)

    def _hand(self, sender: AgreedParty, header: Header, blob: bytes) -> bool:
        """Put a message into its mailbox, or pass it on; False if there is no room."""
        if header.kind != ENVELOPE:
            self.check_kind(header.kind)
        if header.receiver != self.party.spiffe:
            return self._relay(sender, header, blob)
        if not self.mailboxes.reserve(header.lane):
            return False
        name = sender.name
        content = blob
        try:
            if header.kind == ENVELOPE:
                if sender.role != "guest":
                    raise SecurityError("envelope_not_relayed")
                author, content = self._opener.open(blob, header.conversation, time.time())
                name = author.name
                self.memory.give(len(blob) - len(content))
        except SecurityError:
            self.mailboxes.release(header.lane)
            raise
        self.mailboxes.put(Letter(name, header.kind, header.conversation, header.lane, content))
        return True

    def _relay(self, sender: AgreedParty, header: Header, blob: bytes) -> bool:
        receiver = self._by_spiffe.get(header.receiver)
        if not self.is_guest or receiver is None or header.kind != ENVELOPE:
            raise SecurityError("only_envelopes_relayed")
        check_relay(self.hash, blob, sender, receiver.party, header.conversation)
        if not receiver.is_up:
            raise PartyUnreachable("not_relayed", why=receiver.state(), sender=sender.name)
        passed = Outgoing(header.conversation, ENVELOPE, header.receiver, blob, header.lane, header.deadline)
        self.memory.give(len(blob))  # from here on they are the outbox's
        try:
            receiver.outbox.put(passed)
        except PartyUnreachable:
            self.memory.force(len(blob))
            return False
        return True

    def _refused(self, message: Outgoing, cause: Remark, delay: float) -> None:
        """Tell the Guest that a message of this party, or one that it forwarded, will not be delivered."""
        names = {}
        for agreed_party in self.agreement.parties:
            names[agreed_party.spiffe] = agreed_party.name
        party = names.get(message.receiver, "")
        _log.warning("A message of %d bytes was not delivered: %s", len(message.blob), cause, extra={"party": party})
        why = Remark("not_delivered", {"why": cause})
        if self.is_guest:
            self._put_own(self._by_spiffe[message.receiver].name, Refusal(message.conversation, why, wait=delay))
        elif message.kind == ENVELOPE:
            guest = self.peers[self.agreement.guest.name]
            blob = encode(Refusal(message.conversation, why, wait=delay))
            refusal = replace(
                message, kind=Refusal.__name__, receiver=guest.party.spiffe, blob=blob, id=secrets.token_hex(16)
            )
            try:
                guest.outbox.put(refusal)
            except (PartyUnreachable, SecurityError):
                _log.warning("The Guest cannot be told of it.", extra={"party": guest.name})
