"""Frames damaged at random, sent by a party with a good certificate: each stream is answered or refused in time, and the door stays open.

`make fuzz` sends 10,000 streams that nobody has seen before; else 200, always the same.
"""

import os
import time
from collections.abc import Iterator
from hashlib import sha256

import grpc
import pytest
from companies import Links, make_companies, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.errors import SecurityError
from backend.link.frames import CHUNK, PROTOCOL, Beat, DeliveryReceipt, Header, frames, pack_control, unpack
from backend.link.handshake import greeting, pack_greeting
from backend.link.identity import host_name
from backend.link.rpc import ATTACH, DELIVER, HELLO, INSTANCE
from backend.protocols.transport.codec import encode
from backend.protocols.transport.messages import EndConversation, OfferKey
from backend.protocols.transport.wire import new_conversation
from tests.fuzz.mutations import changed

SEEN_BEFORE = 120
INPUTS = int(os.environ.get("FUZZ_INPUTS", SEEN_BEFORE))
ME = "f" * 32
REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
QUIETLY = settings(
    max_examples=INPUTS,
    deadline=None,
    derandomize=INPUTS == SEEN_BEFORE,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    made = Links(make_companies(tmp_path_factory.mktemp("fuzz")))
    yield made
    made.shut_down()


@pytest.fixture(scope="module")
def door(links) -> Iterator[tuple]:
    """The bank, and a channel on which shop's certificate sends whatever it likes."""
    bank = links.bank()
    bank.open()
    shop, guest = links.companies.identity("shop"), bank.agreement.guest
    credentials = grpc.ssl_channel_credentials(guest.bundle.encode(), shop.key, shop.chain)
    options = [("grpc.ssl_target_name_override", host_name(guest.spiffe)), ("grpc.enable_retries", 0)]
    with grpc.secure_channel(f"localhost:{bank.port}", credentials, options=options) as channel:
        hello = pack_greeting(greeting("shop", bank.agreement.hash, ME, time.time()))
        channel.unary_unary(HELLO)(hello, timeout=120)
        yield bank, channel.stream_unary(DELIVER), channel.stream_stream(ATTACH)


def stream(bank, size: int) -> list[bytes]:
    name = new_conversation()
    blob = encode(OfferKey(name, "rlwe", b"k" * size))
    shop, guest = bank.agreement.party("shop"), bank.agreement.guest
    head = Header(
        PROTOCOL, bank.agreement.hash, shop.spiffe, guest.spiffe, name, 1, new_conversation(), "OfferKey", 0,
        -(-len(blob) // CHUNK), len(blob), sha256(blob).hexdigest(), time.time() + 600, "bulk",
    )  # fmt: skip
    return list(frames(head, blob))


@given(data=st.data())
@QUIETLY
def test_damaged_frames_are_refused_and_the_door_stays_open(door, data):
    bank, deliver, attach = door
    sent = stream(bank, data.draw(st.sampled_from((0, 200, CHUNK + 5))))
    which = data.draw(st.integers(0, len(sent)))
    if which < len(sent):
        sent[which] = data.draw(changed(sent[which]))
    else:
        sent.insert(data.draw(st.integers(0, len(sent))), data.draw(changed(pack_control(Beat(1.0)))))
    how = {"timeout": 60, "metadata": ((INSTANCE, ME),)}
    try:
        if data.draw(st.booleans()):
            assert isinstance(unpack(deliver(iter(sent), **how)), DeliveryReceipt)
        else:
            assert {type(unpack(answer)) for answer in attach(iter(sent), **how)} <= {Beat, DeliveryReceipt}
    except grpc.RpcError as error:
        assert error.code() in REFUSED, error
    until(lambda: emptied(bank))


def emptied(bank):
    """Whether nothing of it is left, once what was sound has been taken."""
    while bank._node.mailboxes.get("", 0.0) is not None:
        pass
    return bank._node.memory.used == 0


def test_afterwards_shop_is_served(links, door):
    bank, *_ = door
    shop = links.host("shop")
    links.up(shop)
    shop.send("bank", EndConversation("c"))
    assert bank.receive(timeout=120).message == EndConversation("c")
    until(lambda: bank._node.memory.used == 0)


@given(
    st.binary(max_size=400)
    | st.builds(lambda a, b: b"\1" + a.to_bytes(2, "big") + b, st.integers(0, 65535), st.binary())
)
@QUIETLY
def test_any_bytes_are_a_frame_or_refused(blob):
    try:
        found = unpack(blob)
    except SecurityError:
        return
    assert isinstance(found, tuple | DeliveryReceipt | Beat)
