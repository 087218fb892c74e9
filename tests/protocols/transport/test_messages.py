"""Messages are bytes with a schema; anything else is refused."""

from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import SecurityError
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.training.messages import FeatureBins, KeepModel
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import MESSAGES, Message
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.packing import from_bitmap, from_numbers, to_bitmap, to_numbers

EXAMPLES = [
    DecisionVectors("c", "m1", ("a", "b"), 3, 1, b"\x00" * 12),
    FeatureBins("c", ("x", "y"), (3, 4), (False, True)),
    KeepModel("c", "m1", "bank", ("h",), (((0, "h", 1, 2),), ()), 10, 3, 17, -2, "abc"),
]


@pytest.mark.parametrize("message", EXAMPLES)
def test_a_message_comes_back_as_it_was_sent(message):
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\xc1",
        msgpack.packb("DecisionVectors"),
        msgpack.packb(["Unknown", {}]),
        msgpack.packb(["EndConversation", {}]),
        msgpack.packb(["EndConversation", {"conversation": 5}]),
        msgpack.packb(["EndConversation", {"conversation": "c", "more": 1}]),
        msgpack.packb(["OfferKey", {"conversation": "c", "scheme": "paillier", "key": "text"}]),
        msgpack.packb(["FeatureBins", {"conversation": "c", "names": ["x"], "bins": ["3"], "categorical": [False]}]),
        msgpack.packb(["FeatureBins", {"conversation": "c", "names": ["x"], "bins": [3], "categorical": [0]}]),
    ],
)
def test_bytes_of_no_known_form_are_refused(blob):
    with pytest.raises(SecurityError, match="no known form"):
        decode(blob)


@given(st.binary(max_size=200))
def test_random_bytes_never_do_more_than_get_refused(blob):
    with pytest.raises(SecurityError):
        decode(blob)


@given(st.lists(st.booleans(), max_size=70))
def test_a_bitmap_comes_back(flags):
    assert from_bitmap(to_bitmap(np.array(flags, dtype=bool)), len(flags)).tolist() == flags


def test_a_bitmap_of_another_length_is_refused():
    with pytest.raises(SecurityError, match="2 bytes was expected, 1 came"):
        from_bitmap(b"\x00", 9)


def test_every_message_class_has_its_row_in_the_threat_model():
    rows = {}
    for line in (Path(__file__).parents[3] / "docs" / "threat-model.md").read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) >= 4:
            rows[cells[0].strip("`")] = cells
    assert set(rows) == set(MESSAGES)
    for name, cls in MESSAGES.items():
        assert rows[name][2] == cls.HOLDS and rows[name][3] == cls.READABLE_BY


@pytest.mark.parametrize(("below", "width"), [(1, 1), (256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_numbers_take_as_few_bytes_as_the_largest(below, width):
    blob = to_numbers(np.array([0, below - 1]), below)
    assert len(blob) == 2 * width and from_numbers(blob, below).tolist() == [0, below - 1]


def test_two_kinds_of_message_cannot_share_a_name_on_the_wire():
    with pytest.raises(TypeError, match="OfferKey"):
        type("OfferKey", (Message,), {})
    assert MESSAGES["OfferKey"] is OfferKey
