"""The receiver gets what it chose and nothing else; the sender gets nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.ristretto import multiply_base, random_scalars
from backend.errors import SecurityError
from backend.protocols.alignment.oblivious_transfer import COLUMNS, REPLIES, TransferReceiver, TransferSender


@pytest.fixture(scope="module")
def pair():
    receiver = TransferReceiver()
    sender = TransferSender(receiver.offer)
    receiver.accept(sender.replies)
    return receiver, sender


@given(st.lists(st.booleans(), min_size=1, max_size=70), st.integers(1, 32), st.integers(0, 2**40))
@settings(deadline=None)
def test_chosen_strings_arrive_and_the_others_are_zero(pair, choices, width, number):
    receiver, sender = pair
    choices = np.array(choices)
    strings = np.random.default_rng(number).integers(1, 256, (len(choices), width), dtype=np.uint8)
    answer = sender.send(number, 5, strings, receiver.choose(number, choices))
    received = receiver.receive(number, 5, choices, answer, width)
    assert (received[choices] == strings[choices]).all()
    assert not received[~choices].any()


def test_a_string_that_was_not_chosen_does_not_open_with_what_the_receiver_has(pair):
    receiver, sender = pair
    strings = np.zeros((4096, 16), dtype=np.uint8)
    nothing = np.zeros(4096, dtype=bool)
    answer = sender.send(1, 0, strings, receiver.choose(1, nothing))
    opened = receiver.receive(1, 0, ~nothing, answer, 16)
    assert not (opened == 0).all(axis=1).any()
    assert abs(np.unpackbits(opened).mean() - 0.5) < 0.01


def test_choices_look_the_same_whatever_they_are(pair):
    receiver, _ = pair
    for choices in (np.zeros(4096, dtype=bool), np.ones(4096, dtype=bool)):
        message = np.frombuffer(receiver.choose(2, choices), dtype=np.uint8)
        assert abs(np.unpackbits(message).mean() - 0.5) < 0.01


def test_messages_are_masked_afresh(pair):
    receiver, sender = pair
    strings, choices = np.zeros((64, 12), dtype=np.uint8), np.ones(64, dtype=bool)
    answers = {sender.send(n, 64 * n, strings, receiver.choose(n, choices)) for n in range(3)}
    assert len(answers) == 3


@given(st.lists(st.booleans(), min_size=1, max_size=70), st.integers(1, 32), st.integers(0, 2**40))
@settings(deadline=None)
def test_of_every_pair_the_chosen_string_arrives(pair, choices, width, number):
    receiver, sender = pair
    choices = np.array(choices)
    pairs = np.random.default_rng(number).integers(0, 256, (len(choices), 2, width), dtype=np.uint8)
    answer = sender.send_either(number, 5, pairs, receiver.choose(number, choices))
    received = receiver.receive_either(number, 5, choices, answer, width)
    assert (received == pairs[np.arange(len(choices)), choices.astype(int)]).all()


def test_the_string_of_a_pair_that_was_not_chosen_does_not_open_with_what_the_receiver_has(pair):
    receiver, sender = pair
    pairs = np.zeros((4096, 2, 16), dtype=np.uint8)
    choices = np.arange(4096) % 2 == 0
    answer = sender.send_either(3, 0, pairs, receiver.choose(3, choices))
    opened = receiver.receive_either(3, 0, ~choices, answer, 16)
    assert not (opened == 0).all(axis=1).any()
    assert abs(np.unpackbits(opened).mean() - 0.5) < 0.01


def test_an_offer_or_a_reply_that_is_no_element_is_refused():
    for offer in (bytes(32), b"\xff" * 32):
        with pytest.raises(SecurityError, match="ristretto255"):
            TransferSender(offer)
    for reply in (bytes(32), b"\xff" * 32):
        receiver = TransferReceiver()
        with pytest.raises(SecurityError, match="ristretto255"):
            receiver.accept(reply * COLUMNS)


def test_a_reply_that_equals_the_offer_is_refused():
    receiver = TransferReceiver()
    others = b"".join(multiply_base(s) for s in random_scalars(COLUMNS - 1))
    with pytest.raises(SecurityError, match="identity"):
        receiver.accept(others + receiver.offer)


def test_messages_of_another_length_are_refused(pair):
    receiver, sender = pair
    choices, strings = np.ones(9, dtype=bool), np.zeros((9, 12), dtype=np.uint8)
    message = receiver.choose(0, choices)
    assert len(message) == COLUMNS * 2
    with pytest.raises(SecurityError, match="128 columns of 2 bytes were expected"):
        sender.send(0, 0, strings, message[:-1])
    with pytest.raises(SecurityError, match="9 strings of 12 bytes were expected"):
        receiver.receive(0, 0, choices, bytes(9 * 12 + 1), 12)
    with pytest.raises(SecurityError, match="18 strings of 12 bytes were expected"):
        receiver.receive_either(0, 0, choices, bytes(9 * 12), 12)
    with pytest.raises(SecurityError, match="128 items of 32 bytes were expected"):
        TransferReceiver().accept(bytes(REPLIES - 32))
