"""Signatures of an agreement that pass over links: each Host signs its own copy, and nothing else passes before all have signed."""

import shutil
from datetime import UTC, datetime

import grpc
import pytest
from companies import IN_TIME, until
from link.test_door import channel, deliver, greet, header, refusal, said

from backend.errors import PartyUnreachable, SecurityError
from backend.link.agreement import load_agreement, load_in_force, sign, signers
from backend.link.causes import unpacked
from backend.link.frames import frames
from backend.link.handshake import unpack_greeting
from backend.link.rpc import ATTACH
from backend.link.signatures import SIGNED, Signatures
from backend.protocols.transport.messages import EndConversation, OfferKey
from backend.protocols.transport.wire import new_conversation

PARTIES = ("bank", "shop", "telecom")


@pytest.fixture
def copies(companies):
    """Each party's own copy of an agreement that the bank has signed, and the Host whose copy it is."""
    drafted = companies.amended("bank", title="Each its own copy")
    made = {party: companies.folder / party / "agreement.toml" for party in PARTIES}
    for party, path in made.items():
        shutil.copy(drafted, path)
        if party != "bank":
            sign(path, companies.identity(party))
    return made


def cause(wire, peer):
    return wire.links()[peer].remark.values["why"]


def test_signatures_come_over_the_links_and_nothing_passes_before_all_have_signed(links, copies):
    bank = links.bank(agreement=copies["bank"])
    shop = links.host("shop", agreement=copies["shop"])
    until(lambda: all(cause(*side).code == "agreement_not_signed" for side in ((bank, "shop"), (shop, "bank"))))
    assert cause(bank, "shop").values["parties"] == cause(shop, "bank").values["parties"] == ("telecom",)
    assert signers(copies["bank"]) == signers(copies["shop"]) == ("bank", "shop")
    name = new_conversation()
    for wire, peer in ((bank, "shop"), (shop, "bank")):
        with pytest.raises((PartyUnreachable, SecurityError)):
            wire.send(peer, OfferKey(name, "rlwe", b"key"))

    telecom = links.host("telecom", agreement=copies["telecom"])
    links.up(shop, telecom)
    bank.send("shop", OfferKey(name, "rlwe", b"key"))
    assert shop.receive(timeout=IN_TIME).message.key == b"key"
    shop.send("telecom", EndConversation(name))
    assert telecom.receive(timeout=IN_TIME).sender == "shop"
    for party, path in copies.items():
        assert signers(path) == PARTIES
        load_in_force(path, party, datetime.now(UTC))


def test_a_party_that_greets_before_all_have_signed_gets_the_signatures_and_may_send_nothing(links, copies):
    bank = links.bank(agreement=copies["bank"])
    bank.open()
    with channel(bank, links.companies.identity("shop")) as made:
        answer = unpack_greeting(greet(made, said(bank)))
        assert [text for text in answer.capabilities if text.startswith(SIGNED)] == list(bank._node.signatures.packed())
        blob = b"x"
        for call in (
            lambda: deliver(made, frames(header(bank, blob), blob)),
            lambda: made.stream_stream(ATTACH)(iter(()), timeout=IN_TIME),
        ):
            code, details = refusal(call)
            assert (code, unpacked(details).code) == (grpc.StatusCode.FAILED_PRECONDITION, "greet_first")
    assert cause(bank, "shop").values["parties"] == ("shop", "telecom")
    assert bank.receive(timeout=0.1) is None


def test_a_signature_that_a_party_has_not_made_over_this_text_is_left_out(companies, copies):
    before = copies["bank"].read_bytes()
    agreement = load_agreement(copies["bank"])
    of_bank = Signatures(copies["bank"], agreement)
    other_text = Signatures(companies.path, companies.agreement).packed()  # of all three, over another text
    forged = [
        text.replace(".", ".A", 1) for text in Signatures(copies["shop"], load_agreement(copies["shop"])).packed()
    ]
    for texts in (other_text, forged, [SIGNED, f"{SIGNED}.", f"{SIGNED}a.b", f"{SIGNED}{'a' * 900}.b", "lanes"]):
        of_bank.take(texts)
        assert of_bank.missing == ("shop", "telecom")
        with pytest.raises(SecurityError):
            of_bank.check()
    assert copies["bank"].read_bytes() == before


def test_a_file_that_cannot_be_written_or_says_something_else_by_now_holds_no_link_up(copies, monkeypatch):
    brought = [
        text
        for party in ("shop", "telecom")
        for text in Signatures(copies[party], load_agreement(copies[party])).packed()
    ]
    agreement = load_agreement(copies["bank"])
    copies["bank"].write_text(copies["bank"].read_text().replace("Each its own copy", "Another text"))
    changed = copies["bank"].read_bytes()
    of_bank = Signatures(copies["bank"], agreement)
    of_bank.take(brought)
    assert of_bank.missing == () and copies["bank"].read_bytes() == changed

    def full(path, *parts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("backend.link.agreement.write_whole", full)
    of_shop = Signatures(copies["shop"], load_agreement(copies["shop"]))
    of_shop.take(brought)
    assert of_shop.missing == () and signers(copies["shop"]) == ("bank", "shop")


def test_signatures_that_are_put_into_the_file_by_hand_are_found_while_the_process_waits(links, copies):
    bank = links.bank(agreement=copies["bank"])
    shop = links.host("shop", agreement=copies["shop"])
    until(lambda: cause(bank, "shop").code == "agreement_not_signed")
    sign(copies["bank"], links.companies.identity("telecom"))
    links.up(shop)
    assert signers(copies["shop"]) == PARTIES
