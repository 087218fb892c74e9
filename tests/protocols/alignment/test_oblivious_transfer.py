"""The receiver gets what it chose and nothing else; the sender gets nothing."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.ristretto import multiply_base, random_scalars
from backend.errors import SecurityError
from backend.protocols.alignment.oblivious_transfer import (
    COLUMNS,
    HASHES,
    REPLIES,
    TransferReceiver,
    TransferSender,
    _hashes,
)


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
    answer = sender.send_either(number, 5, pairs, receiver.choose_either(number, choices))
    received = receiver.receive_either(number, 5, choices, answer, width)
    assert (received == pairs[np.arange(len(choices)), choices.astype(int)]).all()


def test_the_string_of_a_pair_that_was_not_chosen_does_not_open_with_what_the_receiver_has(pair):
    receiver, sender = pair
    pairs = np.zeros((4096, 2, 16), dtype=np.uint8)
    choices = np.arange(4096) % 2 == 0
    answer = sender.send_either(3, 0, pairs, receiver.choose_either(3, choices))
    opened = receiver.receive_either(3, 0, ~choices, answer, 16)
    assert not (opened == 0).all(axis=1).any()
    assert abs(np.unpackbits(opened).mean() - 0.5) < 0.01


def test_a_columns_hash_is_a_random_matrix_times_its_bits_and_its_last_128_on_top():
    rng = np.random.default_rng(5)
    columns = rng.integers(0, 256, (3, 21 + 16), dtype=np.uint8)
    rows = hashlib.shake_128(b"seed").digest(128 * 21)
    for column, found in zip(columns, _hashes(b"seed", columns), strict=True):
        bits, mask = int.from_bytes(column[:21].tobytes()), int.from_bytes(column[21:].tobytes())
        sums = [(int.from_bytes(rows[21 * i : 21 * i + 21]) & bits).bit_count() & 1 for i in range(128)]
        assert int.from_bytes(found.tobytes()) == sum(bit << (127 - i) for i, bit in enumerate(sums)) ^ mask


class Bending(TransferReceiver):
    """Chooses otherwise in some columns: in row 0, and it hashes honestly what it has sent."""

    bent = ()

    def choose(self, number, choices):
        columns = np.frombuffer(bytearray(super().choose(number, choices)), dtype=np.uint8).reshape(COLUMNS, -1)
        columns[list(self.bent), 0] ^= 0x80
        return columns.tobytes()


@pytest.fixture(scope="module")
def bending():
    receiver = Bending()
    sender = TransferSender(receiver.offer)
    receiver.accept(sender.replies)
    pairs = np.zeros((70, 2, 16), dtype=np.uint8)

    def passes(*bent):
        receiver.bent = bent
        try:
            sender.send_either(0, 0, pairs, receiver.choose_either(0, np.ones(70, dtype=bool)))
        except SecurityError as error:
            assert "hold different choices" in str(error)
            return False
        return True

    return passes


def test_a_column_that_differs_passes_only_where_the_senders_bit_for_it_was_guessed(bending):
    assert bending() and bending(*range(COLUMNS)) is False
    alone = [bending(j) for j in range(40)]
    assert 4 < sum(alone) < 36  # the honest hash is a guess of 0
    assert alone[:8] == [bending(j) for j in range(8)]  # of the same secret bit
    zeros = [j for j, passed in enumerate(alone) if passed]
    assert bending(*zeros) and not bending(*zeros, alone.index(False))


def test_hashes_that_were_changed_are_refused(pair):
    receiver, sender = pair
    message, pairs = receiver.choose_either(0, np.ones(9, dtype=bool)), np.zeros((9, 2, 16), dtype=np.uint8)
    for at in (-1, -HASHES, -HASHES - 1):
        changed = bytearray(message)
        changed[at] ^= 1
        with pytest.raises(SecurityError, match="hold different choices"):
            sender.send_either(0, 0, pairs, bytes(changed))


def test_the_last_of_many_rows_is_checked_like_the_first(pair):
    receiver, sender = pair
    choices = np.arange(4097) % 3 == 0
    pairs = np.zeros((len(choices), 2, 1), dtype=np.uint8)
    message = bytearray(receiver.choose_either(7, choices))
    sender.send_either(7, 0, pairs, bytes(message))
    for column in range(COLUMNS):  # the last row's bit, in half of the columns a wrong guess
        message[column * (513 + 16) + 512] ^= 0x80
    with pytest.raises(SecurityError, match="hold different choices"):
        sender.send_either(7, 0, pairs, bytes(message))


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
    with pytest.raises(SecurityError, match="128 items of 2 bytes were expected"):
        sender.send(0, 0, strings, message[:-1])
    for wrong in (receiver.choose_either(0, choices)[:-1], message, b""):
        with pytest.raises(SecurityError, match="128 items of 18 bytes were expected"):
            sender.send_either(0, 0, np.stack([strings, strings], axis=1), wrong)
    with pytest.raises(SecurityError, match="9 items of 12 bytes were expected"):
        receiver.receive(0, 0, choices, bytes(9 * 12 + 1), 12)
    with pytest.raises(SecurityError, match="18 items of 12 bytes were expected"):
        receiver.receive_either(0, 0, choices, bytes(9 * 12), 12)
    with pytest.raises(SecurityError, match="128 items of 32 bytes were expected"):
        TransferReceiver().accept(bytes(REPLIES - 32))
