"""What one Host sends another through the Guest: sealed for the receiver (HPKE, RFC 9180), signed by the sender, opened once.

The Guest holds the key of what Hosts compute, so it must not read what one Host hands to the next (docs/threat-model.md). It sees who
sends to whom in which conversation, when, and how much; the kind of message is inside.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, defaultdict
from dataclasses import asdict, dataclass
from typing import Annotated

import msgpack
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter

from backend.crypto.signing import SigningKey, is_signed
from backend.errors import SecurityError
from backend.link.agreement import AgreedParty, Agreement
from backend.link.frames import MALFORMED, read_as
from backend.link.handshake import MAX_SKEW

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
KIND = "envelope"  # of what is signed
MAX_MARKS = 65_536  # conversations of a sender of which the last sequence is remembered
SKEW = 2 * MAX_SKEW  # seconds that two Hosts' clocks may be apart, each as far from the Guest's as is accepted
_Name = Annotated[str, StringConstraints(max_length=300)]
_Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Address:
    """What stands on an envelope, open and signed.

    Attributes
    ----------
    sender, receiver : str
        SPIFFE ids.
    sequence : int
        Place among the sender's envelopes to the receiver in the conversation, from 1.
    sent : float
        Seconds since 1970.
    """

    agreement: _Hash
    sender: _Name
    receiver: _Name
    conversation: _Name
    sequence: Annotated[int, Field(ge=1, lt=1 << 53)]
    sent: Annotated[float, Field(ge=0, lt=1e12)]


_Parts = tuple[bytes, bytes, Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]]
_PARTS: TypeAdapter[_Parts] = TypeAdapter(_Parts, config=ConfigDict(strict=True))


def _info(address: bytes, agreement: str) -> bytes:
    """What both sides bind the key to: agreement and address (RFC 9180 §8.1: with one message a key, `info` serves as associated data)."""
    return bytes.fromhex(agreement) + hashlib.sha256(address).digest()


class Sealer:
    """Seals what one Host sends the others.

    Parameters
    ----------
    party : AgreedParty
        The Host.
    """

    def __init__(self, agreement: Agreement, party: AgreedParty, signing: SigningKey) -> None:
        self._hash = agreement.hash
        self._party = party
        self._signing = signing
        self._sequences: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def seal(self, receiver: AgreedParty, conversation: str, blob: bytes, now: float) -> bytes:
        """Return an envelope around `blob` that the receiver alone can open."""
        with self._lock:
            key = (receiver.spiffe, conversation)
            sequence = self._sequences.pop(key, 0) + 1
            self._sequences[key] = sequence
            while len(self._sequences) > MAX_MARKS:
                self._sequences.popitem(last=False)
        address = Address(self._hash, self._party.spiffe, receiver.spiffe, conversation, sequence, now)
        header: bytes = msgpack.packb(asdict(address), use_bin_type=True)
        public = X25519PublicKey.from_public_bytes(bytes.fromhex(receiver.sealing))
        sealed = SUITE.encrypt(blob, public, _info(header, self._hash))
        signature = self._signing.sign(KIND, _digest(header), _digest(sealed))
        packed: bytes = msgpack.packb((header, sealed, signature), use_bin_type=True)
        return packed


class Opener:
    """Opens envelopes for one Host, each once, in their order; what was sent before it began is refused.

    Parameters
    ----------
    party : AgreedParty
        The Host.
    began : float
        Seconds since 1970.
    """

    def __init__(self, agreement: Agreement, party: AgreedParty, sealing: X25519PrivateKey, began: float) -> None:
        self._agreement = agreement
        self._hash = agreement.hash
        self._party = party
        self._sealing = sealing
        # by sender, so that none can have another's refused: what is older was opened before, or by an earlier process
        self._floors: defaultdict[str, float] = defaultdict(lambda: began - SKEW)
        self._marks: defaultdict[str, OrderedDict[str, tuple[int, float]]] = defaultdict(OrderedDict)
        self._lock = threading.Lock()

    def open(self, envelope: bytes, conversation: str, now: float) -> tuple[AgreedParty, bytes]:
        """Return the sender, proved by its signature, and the bytes inside.

        Raises
        ------
        SecurityError
            The envelope is damaged, for another Host, of another conversation or agreement, not signed by the sender that it names, or
            was opened before.
        """
        address, header, sealed, signature = _parts(envelope)
        sender = self._agreement.party_of(address.sender)
        if sender.role != "host" or address.receiver != self._party.spiffe or sender.spiffe == self._party.spiffe:
            raise SecurityError("envelope_not_between_hosts")
        if not is_signed(sender.signing, signature, KIND, _digest(header), _digest(sealed)):
            raise SecurityError("envelope_not_signed", party=sender.name)
        if address.agreement != self._hash or address.conversation != conversation:
            raise SecurityError("envelope_of_another_conversation", party=sender.name)
        self._check_fresh(address, now)
        try:
            return sender, SUITE.decrypt(sealed, self._sealing, _info(header, self._hash))
        except (InvalidTag, ValueError) as error:
            raise SecurityError("envelope_not_opened", party=sender.name) from error

    def _check_fresh(self, address: Address, now: float) -> None:
        sender = address.sender
        conversation = address.conversation
        with self._lock:
            marks = self._marks[sender]
            last = marks.get(conversation, (0, 0.0))[0]
            if address.sequence != last + 1 or not self._floors[sender] < address.sent <= now + SKEW:
                raise SecurityError("envelope_out_of_order", got=address.sequence, expected=last + 1)
            marks.pop(conversation, None)
            marks[conversation] = (address.sequence, address.sent)
            while len(marks) > MAX_MARKS:
                # of what is forgotten nothing may come again
                self._floors[sender] = max(self._floors[sender], marks.popitem(last=False)[1][1])


def check_relay(agreement: str, envelope: bytes, sender: AgreedParty, receiver: AgreedParty, conversation: str) -> None:
    """Raise SecurityError unless a relay may forward this: sealed, between two Hosts, and signed by the Host on whose link it arrived.

    `agreement` is the hash of the agreement in force.
    """
    address, header, sealed, signature = _parts(envelope)
    between_hosts = sender.role == receiver.role == "host" and sender != receiver
    if not between_hosts or (address.sender, address.receiver) != (sender.spiffe, receiver.spiffe):
        raise SecurityError("only_envelopes_relayed")
    if address.agreement != agreement or address.conversation != conversation:
        raise SecurityError("envelope_of_another_conversation", party=sender.name)
    if not is_signed(sender.signing, signature, KIND, _digest(header), _digest(sealed)):
        raise SecurityError("envelope_not_signed", party=sender.name)


def _parts(envelope: bytes) -> tuple[Address, bytes, bytes, str]:
    try:
        header, sealed, signature = _PARTS.validate_python(
            msgpack.unpackb(envelope, use_list=False, raw=False, max_ext_len=0)
        )
        address = read_as(Address, header)
    except MALFORMED as error:
        raise SecurityError("not_an_envelope") from error
    return address, header, sealed, signature


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()
