"""Links between parties of their own: who is who, what is delivered once and in order, what is refused, what a link says when it is down."""

import pytest

from backend.errors import PartyUnreachable, SecurityError
from backend.protocols.scoring.messages import EncryptedScores
from backend.protocols.training.messages import ModelKept
from backend.protocols.transport.messages import EndConversation, OfferKey, Refusal
from backend.protocols.transport.wire import new_conversation
from companies import until

LONG = bytes(range(256)) * 4096 * 3  # 3 MiB


def test_a_message_and_its_answer_pass_a_link_that_the_host_dialled(links):
    bank = links.bank()
    shop = links.host("shop")
    links.up(shop)
    name = new_conversation()
    bank.open(name)
    sent = OfferKey(name, "rlwe", LONG)
    size = bank.send("shop", sent)
    came = shop.receive(timeout=30)
    assert (came.sender, came.message, came.bytes) == ("bank", sent, size)
    shop.send("bank", Refusal(name, "no"))
    back = bank.receive(name, timeout=30)
    assert (back.sender, back.message) == ("shop", Refusal(name, "no"))
    assert bank.states()["shop"].startswith("shop: up since") and bank.is_up("shop")
