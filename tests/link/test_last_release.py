"""What an earlier version said is understood by this one, and answered as it was then; the next minor version is served."""

import subprocess
import sys
import time
from dataclasses import replace
from functools import cache

import pytest
from actors import MODEL_ID, federation_of
from companies import IN_TIME
from link.recording import FEW, FOLDER, KEY, MANY, Recording, Sent, world
from worlds import GUEST

from backend.link.frames import PROTOCOL, Beat, DeliveryReceipt, unpack
from backend.link.handshake import are_neighbours, check_greeting, greeting, unpack_greeting
from backend.link.kinds import schemas_hash
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import OfferKey, Refusal
from backend.protocols.transport.transcript import OwnTranscript
from backend.protocols.transport.wire import Delivery, Quiet, new_conversation
from backend.remark import Remark
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host

VERSIONS = sorted(FOLDER.glob("*.json.gz"))
AGAIN = "A message has changed: before 1.0 record it again (CONTRIBUTING.md), later raise PROTOCOL"
DRAWN = ("ContributionSums",)  # masked at random
NEXT = (PROTOCOL[0], PROTOCOL[1] + 1)
HOST_OF_NEXT_VERSION = """
import sys
from pathlib import Path
import backend.link.frames as frames
frames.PROTOCOL = ({major}, {minor})
import backend.link.handshake as handshake
handshake.schemas_hash = lambda: "1" * 64
from backend.link.config import LinkOptions
from backend.link.peers import LinkSettings
from backend.link.wire import LinkWire
from backend.protocols.transport.messages import Refusal
from backend.remark import Remark

agreement, keys, bank = sys.argv[1:]
shop = LinkWire("shop", Path(agreement), Path(keys), LinkSettings(LinkOptions(connect={{"bank": bank}})))
shop.open()
came = shop.receive(timeout=120)
shop.send("bank", Refusal(came.message.conversation, Remark("host_stops")))
shop.shut_down()
"""
"""A Host whose messages and protocol are those of the next minor version."""


@cache
def recording(path):
    return Recording.load(path)


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name.removesuffix(".json.gz"))
def left(request):
    """What a version left behind."""
    return recording(request.param)


def test_the_recorded_version_is_this_one_or_its_neighbour(left):
    assert are_neighbours(PROTOCOL, left.protocol)
    if left.protocol == PROTOCOL:
        assert schemas_hash() == left.schemas, AGAIN


def test_every_recorded_message_is_read_and_written_as_it_was(left):
    for name, talk in left.talks.items():
        for sent in talk:
            message = decode(sent.blob)
            assert (type(message).__name__, encode(message)) == (sent.kind, sent.blob), (name, sent.kind, AGAIN)


def content(sent):
    """A message's bytes, or their number if they are drawn anew each time."""
    return sent.receiver, sent.kind, len(sent.blob) if sent.kind in DRAWN else sent.blob


@pytest.mark.parametrize(("talk", "people", "trees"), [("scores", FEW, 2), ("cohort", MANY, 1)])
def test_todays_hosts_answer_what_was_asked_then_in_the_same_bytes(left, talk, people, trees):
    parties = world(people, trees)
    for name, half in parties.hosts.items():
        features = federation_of(parties).party(name).features
        store = memory_store({MODEL_ID: dump_host(half)})
        host = HostParty(name, parties.tables[name], features, store, simulated=True, key_floor=512)
        answers = []
        for sent in left.talks[talk]:
            if sent.receiver == name:
                for receiver, answer in host.answer(sent.sender, decode(sent.blob)):
                    answers.append(Sent(name, receiver, type(answer).__name__, encode(answer)))
        expected = [sent for sent in left.talks[talk] if sent.sender == name]
        assert expected and list(map(content, answers)) == list(map(content, expected))


class Told:
    """A wire on which the Guest hears what Hosts answered then, whatever it sends."""

    party = GUEST

    def __init__(self, talk):
        self.sent = []
        self._heard = iter([sent for sent in talk if sent.receiver == GUEST])

    def open(self, conversation=""):
        pass

    def close(self, conversation=""):
        pass

    def send(self, receiver, message):
        self.sent.append((receiver, type(message).__name__, encode(message)))
        return len(self.sent[-1][2])

    def receive(self, conversation="", timeout=None):
        sent = next(self._heard)
        return Delivery(sent.sender, replace(decode(sent.blob), conversation=conversation), len(sent.blob))

    def is_up(self, party):
        return True

    def quiet(self, party):
        return Quiet()


def test_todays_guest_asks_in_the_same_bytes_and_reads_the_answers_of_then(left):
    parties = world(FEW)
    wire = Told(left.talks["scores"])
    session = Session(OwnTranscript(wire), "scores", parties.model.hosts, timeout=20)
    own = parties.tables[GUEST]
    scored = GuestParty(federation_of(parties), lambda: own).score(
        MODEL_ID, CompiledGuest(parties.model), own, KEY, session
    )
    session.close()
    assert list(scored.units) == [parties.oracle(parties.row(person)) for person in own.ids]
    asked = [(sent.receiver, sent.kind, sent.blob) for sent in left.talks["scores"] if sent.sender == GUEST]
    assert wire.sent == asked


@pytest.mark.parametrize("protocol", [PROTOCOL, NEXT])
def test_its_greeting_and_its_frames_are_read_by_this_version_and_by_the_next(left, protocol):
    theirs = unpack_greeting(left.link["greeting"])
    mine = replace(greeting("bank", theirs.agreement, "0" * 32, theirs.clock), protocol=protocol)
    check_greeting(mine, replace(theirs, schemas=mine.schemas), "shop")
    header, piece = unpack(left.link["frame"])
    assert are_neighbours(protocol, header.protocol) and piece == b"key"
    assert (unpack(left.link["beat"]), unpack(left.link["receipt"]).result) == (Beat(1.5), "busy")
    assert isinstance(unpack(left.link["receipt"]), DeliveryReceipt)


def test_a_host_of_the_next_minor_version_is_served(links):
    bank = links.bank()
    major, minor = NEXT
    code = HOST_OF_NEXT_VERSION.format(major=major, minor=minor)
    words = (links.companies.path, links.companies.keys("shop"), f"localhost:{bank.port}")
    with subprocess.Popen([sys.executable, "-c", code, *map(str, words)]) as shop:
        until = time.monotonic() + IN_TIME
        while not bank.is_up("shop") and shop.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        name = new_conversation()
        bank.open(name)
        bank.send("shop", OfferKey(name, "rlwe", b"key"))
        came = bank.receive(name, timeout=IN_TIME)
        assert came.message == Refusal(name, Remark("host_stops"))
    assert shop.returncode == 0
