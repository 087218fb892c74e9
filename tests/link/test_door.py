"""Bad input at the door: strangers, forged names, other agreements and versions, endless and oversized streams. Each is refused, in words
and in time; the memory is bounded, and whoever belongs here is served afterwards.
"""

import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import grpc
import pytest
from companies import IN_TIME, PATIENT, until
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from link.crowded import FILES

from backend.errors import SecurityError
from backend.link import identity as identities
from backend.link.causes import packed, unpacked
from backend.link.frames import (
    CHUNK,
    MAX_CONTROL,
    MAX_FRAME,
    PROTOCOL,
    Beat,
    DeliveryReceipt,
    Header,
    Memory,
    frames,
    pack,
    pack_control,
    unpack,
)
from backend.link.handshake import greeting, pack_greeting
from backend.link.identity import host_name, load_identity, make_identity, renew
from backend.link.node import Node
from backend.link.outbox import Outbox, Outgoing
from backend.link.peers import MAX_CALLS, MIB
from backend.link.rpc import ATTACH, DELIVER, HELLO, INSTANCE, MAX_BEGUN, Inflow, Outflow
from backend.ops.logs import JsonLines
from backend.protocols.transport.codec import encode
from backend.protocols.transport.messages import EndConversation, OfferKey
from backend.protocols.transport.wire import new_conversation
from backend.remark import Remark

ME = "f" * 32
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bank(links):
    wire = links.bank()
    wire.open()
    yield wire
    # whatever was tried: nothing is kept of it, and shop is served
    until(lambda: wire._node.memory.used == 0)
    shop = links.host("shop")
    links.up(shop)
    shop.send("bank", EndConversation("c"))
    assert wire.receive(timeout=IN_TIME).message == EndConversation("c")


@contextmanager
def channel(bank, identity, roots=b""):
    guest = bank.agreement.guest
    credentials = grpc.ssl_channel_credentials(roots or guest.bundle.encode(), identity.key, identity.chain)
    options = [
        ("grpc.ssl_target_name_override", host_name(guest.spiffe)),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
    ]
    with grpc.secure_channel(f"localhost:{bank.port}", credentials, options=options) as made:
        yield made


def said(bank, party="shop", **changes):
    return replace(greeting(party, bank.agreement.hash, ME, time.time()), **changes)


def greet(made, greeting_):
    return made.unary_unary(HELLO)(pack_greeting(greeting_), timeout=IN_TIME)


def cause(wire, peer):
    """Why a link is down."""
    return wire.links()[peer].remark.values.get("why", Remark("link_up"))


def refusal(call):
    """Code and words of a call that is refused."""
    with pytest.raises(grpc.RpcError) as refused:
        answer = call()
        if not isinstance(answer, bytes):
            list(answer)
    assert refused.value.code() != grpc.StatusCode.DEADLINE_EXCEEDED
    return refused.value.code(), refused.value.details()


@pytest.fixture
def shop(bank, links):
    """Shop's certificate, in the hands of somebody who sends whatever he likes."""
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank))
        yield made


def header(bank, blob, **changes):
    agreement = bank.agreement
    whole = Header(
        PROTOCOL,
        agreement.hash,
        agreement.party("shop").spiffe,
        agreement.guest.spiffe,
        new_conversation(),
        1,
        new_conversation(),
        "OfferKey",
        0,
        max(1, -(-len(blob) // CHUNK)),
        len(blob),
        sha256(blob).hexdigest(),
        time.time() + 60,
        "online",
    )
    return replace(whole, **changes)


def deliver(made, stream, **options):
    return made.stream_unary(DELIVER)(stream, timeout=IN_TIME, metadata=((INSTANCE, ME),), **options)


def sound(bank, **changes):
    name = new_conversation()
    blob = encode(OfferKey(name, "rlwe", b"k" * 100))
    return header(bank, blob, **{"conversation": name, **changes}), blob


def test_a_sound_message_is_taken(bank, shop):
    head, blob = sound(bank)
    assert unpack(deliver(shop, frames(head, blob))) == DeliveryReceipt(head.id, "taken")
    assert bank.receive(timeout=IN_TIME).sender == "shop"
    assert unpack(deliver(shop, frames(head, blob))).result == "taken", "delivered again, it is acknowledged"
    assert bank.receive(timeout=0.1) is None, "and not taken again"


def test_a_strangers_certificate_does_not_pass_the_handshake(bank, tmp_path):
    stranger = make_identity(tmp_path / "stranger", "shop.example", "host")
    with channel(bank, stranger) as made:
        assert refusal(lambda: greet(made, said(bank)))[0] == grpc.StatusCode.UNAVAILABLE


def test_no_certificate_and_no_encryption_do_not_pass(bank):
    guest = bank.agreement.guest
    bare = grpc.ssl_channel_credentials(guest.bundle.encode())
    options = [("grpc.ssl_target_name_override", host_name(guest.spiffe)), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.secure_channel(f"localhost:{bank.port}", bare, options=options) as made:
        assert refusal(lambda: greet(made, said(bank)))[0] == grpc.StatusCode.UNAVAILABLE
    with grpc.insecure_channel(f"localhost:{bank.port}") as made:
        assert refusal(lambda: greet(made, said(bank)))[0] == grpc.StatusCode.UNAVAILABLE


def forged(companies, tmp_path, root_of, spiffe):
    """A leaf that names anybody, issued by a party's root."""
    keys = companies.keys(root_of)
    key = load_pem_private_key((keys / "root" / "root.key.pem").read_bytes(), None)
    above = x509.load_pem_x509_certificate((keys / "root.pem").read_bytes())
    folder = tmp_path / "forged"
    make_identity(folder, "forged.example", "host")
    identities._issue(folder, key, above, spiffe, 30)
    return load_identity(folder)


def test_one_partys_root_does_not_vouch_for_another(bank, links, tmp_path):
    """Telecom's root is known to the bank; it issues a certificate with shop's name."""
    thief = forged(links.companies, tmp_path, "telecom", bank.agreement.party("shop").spiffe)
    with channel(bank, thief) as made:
        code, details = refusal(lambda: greet(made, said(bank)))
        assert code == grpc.StatusCode.UNAUTHENTICATED and unpacked(details).code == "certificate_of_another_root"
        assert refusal(lambda: deliver(made, iter(())))[0] == grpc.StatusCode.UNAUTHENTICATED
        attach = made.stream_stream(ATTACH)
        assert refusal(lambda: attach(iter(()), timeout=IN_TIME))[0] == grpc.StatusCode.UNAUTHENTICATED


def test_a_name_that_is_no_party_is_refused(bank, links, tmp_path):
    stranger = forged(links.companies, tmp_path, "telecom", "spiffe://telecom.example/glassleaf/other")
    with channel(bank, stranger) as made:
        assert refusal(lambda: greet(made, said(bank)))[0] == grpc.StatusCode.UNAUTHENTICATED


def test_the_guests_own_certificate_is_no_peers(bank, links, tmp_path):
    with channel(bank, links.companies.identity("bank")) as made:
        assert refusal(lambda: greet(made, said(bank)))[0] == grpc.StatusCode.UNAVAILABLE


def causes_logged(caplog):
    """Party and cause of each line."""
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    return {(line.get("party"), line.get("cause")) for line in lines}


def test_an_expired_certificate_is_refused_and_both_sides_and_their_logs_say_whose_it_is(links, caplog, monkeypatch):
    """The bank has not seen another one of shop's: it says what a caller does, and whom to ask."""
    monkeypatch.setattr("backend.link.listener.GREETING_SECONDS", 0.05)
    bank = links.bank()
    renew(links.companies.keys("shop"), days=-3.1)
    shop = links.host("shop")
    until(lambda: cause(shop, "bank").code == "own_certificate_refused")
    assert "expired 3 days ago" in shop.links()["bank"].remark.sentence()
    assert "已于 3 天前到期" in shop.links()["bank"].remark.sentence("zh")
    until(lambda: cause(bank, "shop").code == "link_not_proven")
    assert "If it is shop" in bank.links()["shop"].remark.sentence()
    assert {("bank", "own_certificate_refused"), ("shop", "link_not_proven")} <= causes_logged(caplog)
    renew(links.companies.keys("shop"))
    links.up(shop)
    # Whoever calls no longer is no longer spoken of.
    monkeypatch.setattr("backend.link.listener.UNPROVEN_SECONDS", 0.1)
    until(lambda: cause(bank, "telecom").code == "link_not_called")


def test_a_host_whose_certificate_has_expired_since_it_was_here_is_named_by_the_bank_after_a_restart_too(links, caplog):
    renew(links.companies.keys("shop"), days=-3.1)
    ended = links.companies.identity("shop").expires
    renew(links.companies.keys("shop"))
    bank = links.bank()
    shop = links.host("shop")
    links.up(shop)
    shop.shut_down()
    until(lambda: not bank.peer("shop").is_attached)
    # Three days after its end.
    bank.peer("shop").expires = ended
    bank._node._shown.note(bank.peer("shop").party.spiffe, ended)
    until(lambda: cause(bank, "shop").code == "shown_certificate_expired")
    bank.shut_down()
    links.wires.remove(bank)
    bank = links.bank()
    assert cause(bank, "shop").code == "shown_certificate_expired"
    assert "expired 3 days ago" in bank.links()["shop"].remark.sentence()
    assert "已于 3 天前到期" in bank.links()["shop"].remark.sentence("zh")
    assert ("shop", "shown_certificate_expired") in causes_logged(caplog)
    assert cause(bank, "telecom").code == "link_not_called"
    links.up(links.host("shop"))


def test_what_peers_have_shown_is_kept_once_and_a_damaged_file_stops_nobody(links):
    bank = links.bank()
    links.up(links.host("shop"))
    file = links.companies.keys("bank") / "peers.json"
    assert list(json.loads(file.read_text())) == [bank.peer("shop").party.spiffe]
    file.write_text("{")
    bank.shut_down()
    links.wires.remove(bank)
    bank = links.bank()
    assert cause(bank, "shop").code == "link_not_called"


def test_a_bank_whose_own_certificate_has_expired_says_so_on_both_sides_and_in_its_log(links, caplog, monkeypatch):
    monkeypatch.setattr("backend.link.listener.LEAF_SECONDS", 0.05)
    renew(links.companies.keys("bank"), days=-3.1)
    bank = links.bank()
    assert cause(bank, "shop").code == "own_certificate_refused"
    assert "keys renew" in bank.links()["shop"].remark.sentence()
    assert ("shop", "own_certificate_refused") in causes_logged(caplog)
    shop = links.host("shop")
    until(lambda: cause(shop, "bank").code == "peer_certificate_expired")
    renew(links.companies.keys("bank"))
    until(lambda: cause(bank, "telecom").code == "link_not_called")
    links.up(shop)


def test_a_leaf_that_begins_later_by_this_sides_clock_is_refused_and_the_clock_is_named(links, monkeypatch):
    """As a machine sees it whose clock is a day behind, once the other side has renewed its leaf."""

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=1)

    with monkeypatch.context() as patched:
        patched.setattr(identities, "datetime", Tomorrow)
        renew(links.companies.keys("bank"))
    bank = links.bank()
    shop = links.host("shop")
    until(lambda: cause(shop, "bank").code == "peer_certificate_not_valid_yet")
    chain = x509.load_pem_x509_certificates(links.companies.identity("bank").chain)
    with pytest.raises(SecurityError) as refused:
        identities.check_chain(
            chain, bank.agreement.guest.bundle.encode(), bank.agreement.guest.spiffe, datetime.now(UTC)
        )
    assert refused.value.code == "certificate_not_valid_yet"


@pytest.mark.parametrize(("days", "code"), [(-1, "clock_behind"), (1, "clock_ahead")])
def test_a_clock_that_is_a_day_off_is_said_on_both_sides_until_it_is_set(links, days, code, monkeypatch):
    off = {"shop": days * 86_400.0}

    def greeting_of(party, agreement, instance, clock, *more):
        return greeting(party, agreement, instance, clock + off.get(party, 0.0), *more)

    monkeypatch.setattr("backend.link.node.greeting", greeting_of)
    bank = links.bank()
    shop = links.host("shop")
    until(lambda: cause(shop, "bank").code == cause(bank, "shop").code == code)
    assert cause(shop, "bank").values["party"] == "shop" and 86_000 < cause(shop, "bank").values["seconds"] < 87_000
    assert not bank.is_up("shop") and not shop.is_up("bank")
    off.clear()
    links.up(shop)


def test_a_host_refuses_a_bank_that_is_not_the_agreements(links, tmp_path):
    """Somebody else listens at the bank's address."""
    companies = links.companies
    links.bank(keys=companies.keys("bank"))
    other = make_identity(tmp_path / "other", "bank.example", "guest")
    (companies.keys("bank") / "leaf.pem").write_bytes((tmp_path / "other" / "leaf.pem").read_bytes())
    assert other.spiffe == companies.agreement.guest.spiffe
    shop = links.host("shop")
    until(lambda: cause(shop, "bank").code == "peer_certificate_of_another")


def test_another_agreement_another_version_and_another_clock_are_refused_in_words(bank, links):
    major, minor = PROTOCOL
    cases = {
        "agreements_differ": {"agreement": "0" * 64},
        "protocols_differ": {"protocol": (major - 1, minor)},
        "messages_differ": {"schemas": "0" * 64},
        "clock_behind": {"clock": time.time() - 86_400},
        "clock_ahead": {"clock": time.time() + 86_400},
        "greeting_of_another_party": {"party": "telecom"},
    }
    with channel(bank, links.companies.identity("shop")) as made:
        for expected, changes in cases.items():
            code, details = refusal(lambda changes=changes: greet(made, said(bank, **changes)))
            assert code == grpc.StatusCode.FAILED_PRECONDITION and unpacked(details).code == expected
        newer = refusal(lambda: greet(made, said(bank, protocol=(major, minor + 2))))[1]
        assert unpacked(newer).values["older"] == "bank"
        for blob in (b"", b"\xc1", b"x" * 20_000, pack_greeting(said(bank))[:-1]):
            code, _ = refusal(lambda blob=blob: made.unary_unary(HELLO)(blob, timeout=IN_TIME))
            assert code == grpc.StatusCode.FAILED_PRECONDITION
        head, text = sound(bank)
        code, details = refusal(lambda: deliver(made, frames(head, text)))
        assert code == grpc.StatusCode.FAILED_PRECONDITION and unpacked(details).code == "greet_first"


def test_the_version_before_and_the_one_after_are_served(bank, links):
    major, minor = PROTOCOL
    with channel(bank, links.companies.identity("shop")) as made:
        for neighbour in {max(minor - 1, 0), minor, minor + 1}:
            assert greet(made, said(bank, protocol=(major, neighbour), schemas=said(bank).schemas))


def test_an_agreement_that_ends_while_the_link_is_up_is_answered_no_more(bank, shop, monkeypatch):
    head, blob = sound(bank)
    ended = bank.agreement.model_copy(update={"valid_until": (datetime.now(UTC) - timedelta(days=2)).date()})
    bank._node.agreement = ended
    receipt = unpack(deliver(shop, frames(head, blob)))
    bank._node.agreement = bank.agreement.model_copy(
        update={"valid_until": (datetime.now(UTC) + timedelta(days=9)).date()}
    )
    assert receipt.result == "refused" and unpacked(receipt.why).code == "agreement_ended"


@pytest.mark.parametrize(
    "changes",
    [
        {"sender": "spiffe://telecom.example/glassleaf/host"},
        {"sender": "spiffe://bank.example/glassleaf/guest"},
        {"agreement": "0" * 64},
        {"protocol": (PROTOCOL[0] + 1, 0)},
        {"length": 1 << 40, "chunks": 1 << 20},
        {"length": 9 * MIB, "chunks": 9},
        {"chunks": 2},
        {"chunk": 1, "chunks": 1},
        {"sha256": "0" * 64},
        {"length": 1},
        {"id": "x"},
        {"lane": "fast"},
        {"deadline": -1.0},
        {"kind": "K" * 65},
        {"conversation": "c" * 5000},
    ],
    ids=str,
)
def test_a_frame_that_lies_about_itself_is_refused(bank, shop, changes):
    head, blob = sound(bank)
    try:
        frame = pack(replace(head, **changes), blob)
    except SecurityError:  # too long a header is not even sent
        frame = pack(head, blob).replace(head.conversation.encode(), b"c" * 5000)
    assert refusal(lambda: deliver(shop, iter([frame])))[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert bank.receive(timeout=0.05) is None


@pytest.mark.parametrize("kind", ["AskWalk", "Envelope", "NoSuchKind", ""])
def test_a_kind_that_is_not_in_the_agreement_is_refused_in_a_receipt(bank, shop, kind):
    head, blob = sound(bank, kind=kind)
    assert unpack(deliver(shop, frames(head, blob))).result == "refused"
    assert bank.receive(timeout=0.05) is None


def test_a_message_of_another_kind_than_its_frame_says_is_not_handed_on(bank, shop):
    head, blob = sound(bank, kind="EncryptedScores")
    assert unpack(deliver(shop, frames(head, blob))).result == "taken"
    with pytest.raises(SecurityError) as refused:
        bank.receive(timeout=IN_TIME)
    assert refused.value.code == "message_differs_from_frame"
    head, blob = sound(bank, conversation="0" * 32)
    deliver(shop, frames(head, blob))
    with pytest.raises(SecurityError) as refused:
        bank.receive(timeout=IN_TIME)
    assert refused.value.code == "message_differs_from_frame"


def test_what_comes_again_under_a_new_id_or_out_of_turn_is_not_taken(bank, shop):
    head, blob = sound(bank)
    deliver(shop, frames(head, blob))
    again = replace(head, id="0" * 32)
    assert unpack(deliver(shop, frames(again, blob))).result == "refused"
    early = replace(head, id="1" * 32, sequence=5)
    assert unpack(deliver(shop, frames(early, blob))).result == "busy"
    late = replace(head, id="2" * 32, sequence=2, deadline=time.time() - 5)
    assert unpacked(unpack(deliver(shop, frames(late, blob))).why).code == "deadline_passed"
    assert bank.receive(timeout=IN_TIME) and bank.receive(timeout=0.05) is None


def test_a_frame_larger_than_a_frame_is_refused_unread(bank, shop):
    assert refusal(lambda: deliver(shop, iter([b"\1" * (MAX_FRAME + 1)])))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_stream_without_end_is_cut_at_the_end_of_its_message(bank, shop):
    head, blob = sound(bank)
    endless = itertools.chain(frames(head, blob), itertools.repeat(pack(head, blob)))
    assert unpack(deliver(shop, endless)).result == "taken"
    more = itertools.repeat(pack(replace(head, length=2 * MIB, chunks=2), b"x" * MIB))
    assert refusal(lambda: deliver(shop, more))[0] == grpc.StatusCode.INVALID_ARGUMENT
    beats = itertools.repeat(pack_control(Beat(1.0)))
    assert refusal(lambda: deliver(shop, beats))[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert bank.receive(timeout=IN_TIME)


class Slow:
    """Streams that send some pieces and then nothing, until the test is over."""

    def __init__(self):
        self.over = threading.Event()

    def __call__(self, *pieces):
        yield from pieces
        self.over.wait()


@pytest.fixture
def slow():
    made = Slow()
    yield made
    made.over.set()


def test_a_stream_that_falls_silent_is_cut(bank, shop, slow):
    bank._node.settings = replace(bank._node.settings, idle=0.5)
    first = pack(replace(sound(bank)[0], length=2 * MIB, chunks=2), b"x" * MIB)
    for pieces in ((), (first,)):
        code, _ = refusal(lambda pieces=pieces: deliver(shop, slow(*pieces)))
        assert code == grpc.StatusCode.CANCELLED


def begun(made, streams):
    """Calls that go on at once."""
    call = made.stream_unary(DELIVER)
    return [call.future(stream, timeout=IN_TIME, metadata=((INSTANCE, ME),)) for stream in streams]


def refused_for_room(calls):
    return sum(call.done() and call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED for call in calls)


def test_messages_that_are_never_finished_take_no_more_than_the_memory(links, slow):
    bank = links.bank(memory=3 * MIB, idle=600.0)
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank))
        head = replace(sound(bank)[0], length=2 * MIB, chunks=2)
        calls = begun(made, [slow(pack(replace(head, id=f"{n:032x}"), b"x" * MIB)) for n in range(8)])
        until(lambda: refused_for_room(calls) == 5)
        assert bank._node.memory.used == 3 * MIB
        slow.over.set()
        assert {call.code() for call in calls} == {
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.INVALID_ARGUMENT,
        }
    until(lambda: bank._node.memory.used == 0)


def test_one_peer_has_so_many_calls_and_no_more(links, slow):
    bank = links.bank(rpcs=3, idle=600.0)
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank))
        calls = begun(made, [slow() for _ in range(6)])
        until(lambda: refused_for_room(calls) == 3)
        telecom = links.host("telecom")
        links.up(telecom)
        slow.over.set()


def test_greetings_that_never_come_take_their_senders_places_alone(links, slow):
    bank = links.bank(handshake=600.0)
    with channel(bank, links.companies.identity("shop")) as made:
        hello = made.stream_unary(HELLO)
        silent = [hello.future(slow(), timeout=IN_TIME) for _ in range(40)]
        until(lambda: refused_for_room(silent) == 40 - MAX_CALLS)
        links.up(links.host("telecom"))
        slow.over.set()
        until(lambda: all(call.done() for call in silent))


def test_greetings_that_never_come_take_no_place_for_long(links, slow):
    bank = links.bank(handshake=1.0)
    with channel(bank, links.companies.identity("shop")) as made:
        hello = made.stream_unary(HELLO)
        silent = [hello.future(slow(), timeout=IN_TIME) for _ in range(40)]
        until(lambda: all(call.done() for call in silent))
        assert grpc.StatusCode.DEADLINE_EXCEEDED not in {call.code() for call in silent}, "the bank has ended them"
        greet(made, said(bank))  # and who greets afterwards is heard


def test_a_crowd_of_strangers_takes_no_file_that_the_process_needs(companies, links):
    """Twice as many idle connections as the process may open files: it can open one more, is ready, and keeps its Host."""
    keys = companies.keys("bank")
    words = [sys.executable, "tests/link/crowded.py", str(companies.path), str(keys)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with ExitStack() as opened:
        process = opened.enter_context(
            subprocess.Popen(words, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        opened.callback(process.stdin.close)

        def standing():
            process.stdin.write("\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        links.port = int(process.stdout.readline())
        shop = links.host("shop")
        until(lambda: standing()["host"])
        crowd = [opened.enter_context(socket.create_connection(("localhost", links.port))) for _ in range(2 * FILES)]
        until(lambda: sum(turned_away(one) for one in crowd) >= FILES)
        assert standing() == {"opens": True, "nearly_all_open": False, "host": True}
        shop.shut_down()


def turned_away(stranger):
    """Whether the other side has closed a connection, on which it says nothing of its own accord."""
    stranger.setblocking(False)
    try:
        return stranger.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_an_attached_stream_with_a_wrong_frame_ends(bank, shop):
    for frame in (b"", b"\1", b"\2\xc1", b"\3", pack_control(Beat(1.0)), pack(sound(bank, agreement="0" * 64)[0], b"")):
        call = shop.stream_stream(ATTACH)(iter([frame]), timeout=IN_TIME, metadata=((INSTANCE, ME),))
        for answer in call:
            assert isinstance(unpack(answer), Beat)
        assert call.code() == grpc.StatusCode.OK
        until(lambda: not bank.peer("shop").is_attached)


def beating(pause, *frames_):
    """Some frames, and signs of life for as long as anybody listens."""
    yield from frames_
    while not pause.wait(0.05):
        yield pack_control(Beat(time.time()))


def test_who_takes_nothing_of_what_is_sent_to_it_is_cut_though_it_shows_signs_of_life(links):
    bank, pause = links.bank(heartbeat=0.3), threading.Event()
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank))
        call = made.stream_stream(ATTACH)(beating(pause), timeout=IN_TIME, metadata=((INSTANCE, ME),))
        until(lambda: bank.peer("shop").is_attached)
        for _ in range(4):  # more than what gRPC itself keeps for a reader; nobody reads `call`
            bank.send("shop", OfferKey("c", "rlwe", bytes(6 * MIB)))
        until(lambda: not bank.peer("shop").is_attached)
        assert cause(bank, "shop").code == "link_stuck"
        pause.set()
        call.cancel()
    shop = links.host("shop", heartbeat=0.3)  # and what was on its way comes once somebody takes it
    assert len(shop.receive(timeout=IN_TIME).message.key) == 6 * MIB


def test_a_long_message_keeps_no_other_conversation_of_its_lane_waiting(companies):
    bank = Node("bank", companies.path, companies.keys("bank"), PATIENT)
    shop = Node("shop", companies.path, companies.keys("shop"), PATIENT)
    bank.mailboxes.open("")
    long, small = (OfferKey(new_conversation(), "rlwe", b"k" * length) for length in (4 * CHUNK, 1))
    shop.send("bank", long)
    shop.send("bank", replace(long, key=b"next"))
    shop.send("bank", small)
    flow = Outflow(shop, shop.peers["bank"])
    inflow = Inflow(bank, bank.peers["shop"], Outflow(bank, bank.peers["shop"]))
    came = []
    for frame in flow.frames():
        inflow.take(frame)
        found = bank.receive("", 0.0)
        if found is not None:
            came.append(found[1])
        if len(came) == 3:
            flow.end()
    assert [one.conversation for one in came] == [small.conversation, long.conversation, long.conversation]
    assert [len(one.key) for one in came] == [1, 4 * CHUNK, 4]


def test_a_stream_on_which_many_messages_are_begun_ends(links):
    bank, pause = links.bank(), threading.Event()
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank))
        text = b"k" * (CHUNK + 1)
        begun_ = [pack(header(bank, text), text) for _ in range(MAX_BEGUN + 1)]
        call = made.stream_stream(ATTACH)(beating(pause, *begun_), timeout=IN_TIME, metadata=((INSTANCE, ME),))
        until(lambda: cause(bank, "shop").code == "too_many_begun")
        pause.set()
        call.cancel()
    until(lambda: bank._node.memory.used == 0)


def test_a_message_that_stops_in_its_midst_is_given_up_though_signs_of_life_come(links):
    bank, pause = links.bank(idle=0.5), threading.Event()
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank))
        first = pack(replace(sound(bank)[0], length=2 * MIB, chunks=2), b"x" * MIB)
        call = made.stream_stream(ATTACH)(beating(pause, first), timeout=IN_TIME, metadata=((INSTANCE, ME),))
        list(call)
        assert cause(bank, "shop").code == "message_stalled"
        pause.set()
    until(lambda: bank._node.memory.used == 0)


def test_a_method_that_is_not_there_is_not_there(bank, shop):
    call = shop.unary_unary("/glassleaf.Link/Shutdown")
    assert refusal(lambda: call(b"", timeout=IN_TIME))[0] == grpc.StatusCode.UNIMPLEMENTED


def test_whoever_only_checks_a_link_delivers_nothing(bank, links):
    """Under the name of a check, without a greeting that counts: an echo is dropped, anything else refused."""
    with channel(bank, links.companies.identity("shop")) as made:
        greet(made, said(bank, capabilities=("check",)))
        head, blob = sound(bank)
        call = made.stream_unary(DELIVER)
        words = refusal(lambda: call(frames(head, blob), timeout=IN_TIME, metadata=((INSTANCE, "check"),)))
        assert words[0] == grpc.StatusCode.INVALID_ARGUMENT
        echo = replace(head, kind="Echo")
        answer = call(frames(echo, blob), timeout=IN_TIME, metadata=((INSTANCE, "check"),))
        assert unpack(answer).result == "taken" and bank.receive(timeout=0.05) is None
        assert refusal(lambda: deliver(made, frames(head, blob)))[0] == grpc.StatusCode.FAILED_PRECONDITION


def test_a_peers_words_steer_no_terminal():
    told = packed(Remark("at_column", {"column": "no\n\x1b[2J"}))
    why = unpack(pack_control(DeliveryReceipt("0" * 32, "refused", told))).why
    assert unpacked(why).sentence() == "no  [2J: "


@pytest.mark.parametrize(
    "why", ["", "not JSON", "[]", '{"code": 3}', "{" * 2000, '{"code":"at_column","values":{"column":[[[[[[]]]]]]}}']
)
def test_a_reason_that_cannot_be_read_is_said_to_be_missing(why):
    told = []
    outbox = Outbox({"online": 1}, Memory(1 << 20), lambda message, cause, after: told.append(cause.code))
    outbox.put(Outgoing("c", "EndConversation", "r", b"x", "online", time.time() + 60))
    outbox.settle(DeliveryReceipt(outbox.next("online").id, "refused", why))
    assert told == ["refused_without_reason"]


def test_a_reason_that_is_too_long_for_a_receipt_keeps_its_code():
    long = packed(Remark("at_column", {"column": "x" * 5000}))
    assert unpacked(long).values == {"code": "at_column"}
    assert len(pack_control(DeliveryReceipt("0" * 32, "refused", long))) < MAX_CONTROL
