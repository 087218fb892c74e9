"""Links between parties of their own: who is who, what is delivered once and in order, what is refused, what a link says of itself."""

import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest
from companies import IN_TIME, Proxy, until

from backend.errors import ParameterError, PartyUnreachable, SecurityError
from backend.link.frames import LANES, DeliveryReceipt, Memory, unpack
from backend.link.identity import renew
from backend.link.node import Node
from backend.link.outbox import Outbox, Outgoing
from backend.link.peers import LANE_SECONDS, MIB
from backend.link.wire import LinkWire
from backend.ops.logs import JsonLines
from backend.protocols.training.messages import ModelKept
from backend.protocols.transport.messages import EndConversation, OfferKey, Refusal
from backend.protocols.transport.wire import Wire, new_conversation
from backend.remark import Remark

ROOT = Path(__file__).resolve().parents[2]
LINK = ROOT / "backend" / "link"
LONG = bytes(range(256)) * 4096 * 3  # 3 MiB


def test_a_message_and_its_answer_pass_a_link_that_the_host_dialled(links):
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    sent = OfferKey(name, "rlwe", LONG)
    size = bank.send("shop", sent)
    came = shop.receive(timeout=IN_TIME)
    assert (came.sender, came.message, came.bytes) == ("bank", sent, size)
    shop.send("bank", Refusal(name, Remark("host_stops")))
    back = bank.receive(name, timeout=IN_TIME)
    assert (back.sender, back.message) == ("shop", Refusal(name, Remark("host_stops")))
    assert bank.links()["shop"].remark.code == "link_up" and bank.is_up("shop")


def test_messages_of_a_conversation_come_in_order_whatever_their_size(links):
    bank, shop = links.pair()
    name = new_conversation()
    blobs = [bytes([n]) * (LENGTHS[n % len(LENGTHS)]) for n in range(24)]
    for blob in blobs:
        bank.send("shop", OfferKey(name, "rlwe", blob))
    assert [shop.receive(timeout=IN_TIME).message.key for _ in blobs] == blobs
    bank.open(name)
    for blob in blobs:
        shop.send("bank", OfferKey(name, "rlwe", blob))
    assert [bank.receive(name, timeout=IN_TIME).message.key for _ in blobs] == blobs


LENGTHS = (0, 1, 70_000, MIB - 60, MIB, 2 * MIB + 1)


def test_a_host_that_is_down_is_named_at_once_and_nothing_is_sent(links):
    bank = links.bank()
    with pytest.raises(PartyUnreachable, match="shop: down since"):
        bank.send("shop", EndConversation(new_conversation()))
    assert not bank.is_up("shop")


def test_a_host_that_stops_takes_leave_and_comes_back(links):
    bank, shop = links.pair()
    shop.shut_down()
    until(lambda: not bank.is_up("shop"))
    assert bank.links()["shop"].remark.values["why"].code == "link_left"
    again = links.host("shop")
    links.up(again)
    assert bank.is_up("shop")


def test_what_was_sent_while_the_link_was_cut_comes_afterwards_once(links):
    with Proxy() as between:
        bank, shop = links.pair(between)
        name = new_conversation()
        bank.open(name)
        between.cut()
        until(lambda: not bank.peer("shop").is_attached)
        for n in range(5):
            bank.send("shop", OfferKey(name, "rlwe", bytes([n])))
            shop.send("bank", OfferKey(name, "rlwe", bytes([n])))
        between.mend()
        assert [shop.receive(timeout=IN_TIME).message.key[0] for _ in range(5)] == list(range(5))
        assert [bank.receive(name, timeout=IN_TIME).message.key[0] for _ in range(5)] == list(range(5))
        assert shop.receive(timeout=0.2) is None and bank.receive(name, timeout=0.2) is None


def test_a_host_owes_a_sign_of_life_from_a_message_on_until_it_has_confirmed_it(links):
    with Proxy() as between:
        bank, shop = links.pair(between)
        assert bank.quiet("shop").owing == 0.0
        between.cut()
        until(lambda: not bank.peer("shop").is_attached)
        bank.send("shop", EndConversation(new_conversation()))
        until(lambda: bank.quiet("shop").owing > 0.3)
        assert bank.quiet("shop").seconds >= bank.quiet("shop").owing
        between.mend()
        until(lambda: bank.quiet("shop").owing == 0.0)
        assert shop.receive(timeout=IN_TIME) is not None


def test_a_cut_is_never_taken_for_leave(links):
    with Proxy() as between:
        bank = links.bank()
        between.target = links.port
        shop = links.host("shop", port=between.port)
        for _ in range(5):
            links.up(shop)
            between.cut()
            until(lambda: not bank.peer("shop").is_attached)
            assert bank.is_up("shop"), bank.links()
            between.mend()


def test_a_link_that_is_cut_in_the_midst_of_messages_loses_none_and_doubles_none(links):
    with Proxy() as between:
        bank, shop = links.pair(between)
        name = new_conversation()
        for round_ in range(3):
            for n in range(8):
                bank.send("shop", OfferKey(name, "rlwe", bytes([8 * round_ + n]) * 300_000))
            between.cut()
            between.mend()
        assert [shop.receive(timeout=IN_TIME).message.key[0] for _ in range(24)] == list(range(24))


def test_a_link_that_hangs_is_cut_and_made_again(links):
    with Proxy() as between:
        bank, shop = links.pair(between, heartbeat=0.3)
        between.hang()
        until(lambda: not shop.peer("bank").is_attached and not bank.peer("shop").is_attached)
        assert "link_silent" in {
            wire.links()[peer].remark.values["why"].code for wire, peer in ((bank, "shop"), (shop, "bank"))
        }
        between.mend()
        links.up(shop)


def test_a_peers_process_that_begins_again_hears_of_conversations_from_the_beginning(links):
    bank, shop = links.pair()
    name = new_conversation()
    bank.send("shop", OfferKey(name, "rlwe", b"1"))
    assert shop.receive(timeout=IN_TIME).message.key == b"1"
    until(lambda: not any(bank.peer("shop").outbox.depth().values()))
    shop.shut_down()
    again = links.host("shop")
    links.up(again)
    bank.send("shop", OfferKey(name, "rlwe", b"2"))
    assert again.receive(timeout=IN_TIME).message.key == b"2"


def test_a_second_process_of_a_party_is_refused_before_its_peers_take_it_for_the_first_begun_again(links):
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    bank.send("shop", OfferKey(name, "rlwe", b"1"))
    assert shop.receive(timeout=IN_TIME).message.key == b"1"
    for party in ("shop", "bank"):
        with pytest.raises(ParameterError) as refused:
            links.host(party)
        assert (refused.value.code, refused.value.values["party"]) == ("links_held_by_process", party)
    shop.send("bank", OfferKey(name, "rlwe", b"2"))
    assert bank.receive(name, timeout=IN_TIME).message.key == b"2"  # and no word that the Host has started again


def test_a_guest_that_begins_again_is_found_by_its_hosts(links):
    first = links.bank()
    shop = links.host("shop")
    links.up(shop)
    name = new_conversation()
    first.open(name)
    shop.send("bank", OfferKey(name, "rlwe", b"1"))
    assert first.receive(name, timeout=IN_TIME).message.key == b"1"
    until(lambda: not any(shop.peer("bank").outbox.depth().values()))
    first.shut_down()
    links.wires.remove(first)
    second = links.bank()
    links.up(shop)
    second.open(name)
    shop.send("bank", OfferKey(name, "rlwe", b"2"))
    assert second.receive(name, timeout=IN_TIME).message.key == b"2"


def test_what_was_sent_last_is_delivered_before_a_party_stops(links):
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    for n in range(5):
        shop.send("bank", OfferKey(name, "rlwe", bytes([n]) * MIB))
    shop.shut_down()
    assert [bank.receive(name, timeout=IN_TIME).message.key[0] for _ in range(5)] == list(range(5))


def test_a_message_that_is_too_long_for_the_other_side_is_refused_and_what_follows_comes(links):
    bank = links.bank()
    shop = links.host("shop", message=2 * MIB)
    links.up(shop)
    name = new_conversation()
    bank.open(name)
    bank.send("shop", OfferKey(name, "rlwe", LONG))
    assert "at most 2,097,152 are accepted" in bank.receive(name, timeout=30).message.why.sentence()
    bank.send("shop", EndConversation(name))
    assert shop.receive(timeout=30).message == EndConversation(name)


def test_a_process_ends_though_a_host_is_attached(links):
    companies = links.companies
    command = [sys.executable, "tests/link/ending.py", str(companies.path), str(companies.keys("bank"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes) as guest:
        try:
            links.port = int(guest.stdout.readline())
            shop = links.host("shop")
            links.up(shop)
            guest.stdin.write("end\n")
            guest.stdin.flush()
            assert guest.wait(60) == 0
        finally:
            guest.kill()


def test_without_the_extra_everything_else_is_imported_and_a_link_says_what_to_install(companies, monkeypatch):
    top = {
        file.name
        for file in LINK.glob("*.py")
        if re.search(r"^(import|from) (grpc|joserfc|tenacity)", file.read_text(), re.M)
    }
    assert top == {"listener.py", "dialler.py"}
    reached = [
        file.name
        for file in LINK.glob("*.py")
        if re.search(r"^from backend.link.(listener|dialler)", file.read_text(), re.M)
    ]
    assert reached == []
    monkeypatch.setattr("backend.link.rpc.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"pip install 'glassleaf\[link\]'"):
        LinkWire("shop", companies.path, companies.keys("shop"))


def test_a_full_lane_makes_the_sender_wait_and_loses_nothing(links):
    room = dict.fromkeys(LANES, 2)
    bank, shop = links.pair(queue=room)
    name = new_conversation()
    done = threading.Thread(target=lambda: [bank.send("shop", OfferKey(name, "rlwe", bytes([n]))) for n in range(20)])
    done.start()
    assert [shop.receive(timeout=IN_TIME).message.key[0] for _ in range(20)] == list(range(20))
    done.join()


def test_a_full_lane_does_not_hold_up_another(links):
    room = dict.fromkeys(LANES, 1)
    bank = links.bank(queue=room, grace=0.2)
    shop = links.host("shop", queue=room)
    links.up(shop)
    bulk, online = new_conversation(), new_conversation()
    bank.use_lane(bulk, "bulk")
    with pytest.raises(PartyUnreachable, match="full"):
        for _ in range(4):
            bank.send("shop", OfferKey(bulk, "rlwe", b""))
    bank.send("shop", OfferKey(online, "rlwe", b"quick"))
    until(lambda: shop._node.mailboxes._waiting["online"] == 1)  # while nobody has taken anything of the full lane
    assert shop._node.mailboxes._waiting["bulk"] == 1
    delivered = bank.peer("shop").outbox.depth
    until(lambda: shop.receive(timeout=0.05) is None and not any(delivered().values()))  # else the bank waits for it


def test_what_may_be_sent_later_alone_keeps_no_sender_busy():
    outbox = Outbox(dict.fromkeys(LANES, 4), Memory(MIB), lambda message, words: None)

    def put(conversation):
        outbox.put(Outgoing(conversation, "OfferKey", "shop", b"", "bulk", time.time() + 86_400))

    put("one")
    put("one")
    tried = outbox.next("bulk")
    outbox.settle(DeliveryReceipt(tried.id, "busy", after=86_400.0))
    waiting = threading.Thread(target=outbox.wait, args=(86_400.0,))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    put("another")
    waiting.join(IN_TIME)
    assert not waiting.is_alive()


def test_who_stops_warns_of_no_link_and_the_other_side_does(links, caplog):
    bank, shop = links.pair()
    bank.shut_down()
    until(lambda: not shop.peer("bank").is_attached)
    warned = [record.party for record in caplog.records if record.levelno >= logging.WARNING]
    assert "shop" not in warned and "bank" in warned


def test_how_a_link_begins_and_ends_is_logged_on_both_sides_with_the_partys_name_and_the_cause(links, caplog):
    caplog.set_level(logging.INFO, "glassleaf")
    bank, shop = links.pair()
    shop.shut_down()
    until(lambda: not bank.peer("shop").is_attached)
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    told = [(line["event"].partition(":")[0], line["party"]) for line in lines if "link" in line["event"]]
    stands = "The link to %s stands."
    assert told.count((stands, "shop")) == told.count((stands, "bank")) == 1
    (ended,) = [line for line in lines if "has ended" in line["event"] and line["party"] == "shop"]
    # A shell that logs no JSON reads the name, too.
    texts = [record.getMessage() for record in caplog.records]
    assert "The link to shop stands." in texts and "The link to shop has ended: link_left" in texts
    assert ended["cause"] == "link_left"


def test_answers_come_back_in_the_lane_of_the_question(links):
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    bank.use_lane(name, "training")
    bank.send("shop", EndConversation(name))
    shop.receive(timeout=IN_TIME)
    assert shop._node._lanes[name] == "training"


def test_a_kind_of_message_that_no_purpose_allows_is_neither_sent_nor_taken(links):
    narrow = tomllib.loads(links.companies.path.read_text())
    narrow["purposes"][0]["kinds"] = ["EncryptedScores"]
    path = links.companies.amended(**narrow)
    bank, shop = links.pair(agreement=path)
    name = new_conversation()
    with pytest.raises(SecurityError, match="No purpose"):
        bank.send("shop", ModelKept(name, "m", "a" * 64))
    bank.open(name)
    # a bank that does not ask its own agreement
    bank._node.check_kind = lambda kind: None
    bank.send("shop", ModelKept(name, "m", "a" * 64))
    answer = bank.receive(name, timeout=IN_TIME)
    assert answer.sender == "shop" and "No purpose" in answer.message.why.sentence()
    assert shop.receive(timeout=0.1) is None


def test_a_message_whose_deadline_is_over_is_not_handed_on(links, monkeypatch):
    bank, shop = links.pair()
    name = new_conversation()
    bank.open(name)
    monkeypatch.setitem(LANE_SECONDS, "online", -1.0)
    bank.send("shop", EndConversation(name))
    why = bank.receive(name, timeout=IN_TIME).message.why
    assert (why.code, why.values["why"].code) == ("not_delivered", "deadline_passed_waiting")
    assert shop.receive(timeout=0.1) is None


def test_a_renewed_leaf_is_taken_up_without_a_stop(links):
    bank, shop = links.pair()
    first = bank.peer("shop").expires
    renew(links.companies.keys("shop"), days=20)
    until(lambda: bank.peer("shop").expires != first)
    renew(links.companies.keys("bank"), days=20)
    links.up(shop)
    name = new_conversation()
    bank.send("shop", EndConversation(name))
    assert shop.receive(timeout=IN_TIME).message == EndConversation(name)


def test_a_leaf_that_ends_soon_is_said_on_the_other_side(links):
    renew(links.companies.keys("shop"), days=9.5)
    bank, _ = links.pair()
    assert "certificate expires in 9 days" in bank.links()["shop"].remark.sentence()


def test_the_wire_is_what_protocols_expect(links):
    bank = links.bank()
    wire: Wire = bank
    assert wire.party == "bank" and not wire.is_up("bank")
    bank.open()
    assert wire.is_up("bank")
    threading.Timer(0.05, bank.close).start()
    assert wire.receive() is None and wire.receive("never opened") is None
    with pytest.raises(SecurityError):
        wire.send("stranger", EndConversation("c"))


def test_a_question_to_a_host_that_starts_again_comes_back_at_once_instead_of_in_silence(links):
    bank = links.bank(grace=600.0)
    shop = links.host("shop")
    links.up(shop)
    begun, waiting = new_conversation(), new_conversation()
    bank.open(begun)
    bank.open(waiting)
    bank.send("shop", OfferKey(begun, "rlwe", b"1"))
    assert shop.receive(timeout=30).message.key == b"1"
    until(lambda: not any(bank.peer("shop").outbox.depth().values()))
    kill(links, shop)
    until(lambda: not bank.peer("shop").is_attached)
    bank.send("shop", OfferKey(begun, "rlwe", b"2"))  # what belongs to the message before is no question of its own
    bank.send("shop", OfferKey(waiting, "rlwe", b"3"))
    again = links.host("shop")
    links.up(again)
    answer = bank.receive(begun, timeout=30)
    assert answer.sender == "shop" and answer.message.wait > 0
    assert "started again" in answer.message.why.sentence()
    assert again.receive(timeout=30).message.key == b"3"
    assert again.receive(timeout=0.2) is None and bank.receive(waiting, timeout=0.2) is None


def test_what_a_guest_left_open_when_it_was_killed_is_over_at_its_hosts(links):
    first = links.bank()
    shop = links.host("shop", grace=600.0)
    links.up(shop)
    ended, left = new_conversation(), new_conversation()
    for message in (OfferKey(ended, "rlwe", b"1"), EndConversation(ended), OfferKey(left, "rlwe", b"2")):
        first.send("shop", message)
        assert shop.receive(timeout=30).message == message
    kill(links, first)
    second = links.bank()
    links.up(shop)
    came = shop.receive(timeout=30)
    assert (came.sender, came.message) == ("bank", EndConversation(left, broken_off=True))
    assert shop.receive(timeout=0.2) is None and second.is_up("shop")


def kill(links, wire):
    """A process that ends without a word: nothing that waits is delivered, and no leave is taken."""
    links.wires.remove(wire)
    for peer in wire._node.peers.values():
        peer.outbox.close()
    for dialler in wire._diallers:
        dialler._stopped.set()
        dialler._connection.channel.close()
        dialler.close()
    if wire._listener is not None:
        wire._listener._server.stop(0).wait()
        wire._listener.close()
    wire._held.close()


def test_while_one_side_alone_has_an_amendment_both_say_who_has_to_start_again(links):
    old = links.companies.agreement
    amended = links.companies.amended(previous=old.hash, title="More scores")

    def said_by(bank, shop, old):
        def amended_at_both():
            causes = [wire.links()[peer].remark.values["why"] for wire, peer in ((bank, "shop"), (shop, "bank"))]
            return all(why.code == "agreement_amended" and why.values["older"] == old for why in causes)

        until(amended_at_both)
        assert not bank.peer("shop").is_attached and not shop.peer("bank").is_attached

    bank, shop = links.bank(agreement=amended), links.host("shop")
    said_by(bank, shop, "shop")
    with pytest.raises(PartyUnreachable, match="shop has to take the new one"):
        bank.send("shop", EndConversation(new_conversation()))
    shop.shut_down()
    shop = links.host("shop", agreement=amended)
    links.up(shop)
    name = new_conversation()
    bank.send("shop", OfferKey(name, "rlwe", b"k"))
    assert shop.receive(timeout=IN_TIME).message.key == b"k"
    bank.shut_down()
    said_by(links.bank(), shop, "bank")  # who goes back to the one before reaches nobody


def test_a_frame_under_the_agreement_before_is_refused_under_the_one_that_amends_it(links):
    companies = links.companies
    amended = companies.amended(previous=companies.agreement.hash, title="More scores")
    before, after = (Node("bank", path, companies.keys("bank"), links.settings) for path in (companies.path, amended))
    shop = Node("shop", companies.path, companies.keys("shop"), links.settings)
    message = Outgoing("c", "EndConversation", before.party.spiffe, b"x", "online", time.time() + 60)
    header, _ = unpack(next(shop.outgoing_frames(message)))
    before.check_header(before.peers["shop"], header)
    with pytest.raises(SecurityError, match="names another agreement"):
        after.check_header(after.peers["shop"], header)
