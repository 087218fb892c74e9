"""Messages are bytes with a schema; anything else is refused."""

import importlib
import re
import tracemalloc
from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.plain import PlainKeySide
from backend.crypto.rlwe.parameters import PARAMETERS
from backend.crypto.rlwe.ring import written
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.zeros import zeros_under
from backend.errors import ParameterError, SecurityError
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.sealing.messages import ReleaseModel
from backend.protocols.training.messages import FeatureBins, KeepModel
from backend.protocols.transport import codec
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.message import MESSAGES, SEAL_HEADERS, SMALL, Message, body
from backend.protocols.transport.messages import OfferKey, Refusal
from backend.protocols.transport.packing import from_bitmap, from_numbers, to_bitmap, to_numbers
from backend.remark import Remark

EXAMPLES = [
    DecisionVectors("c", "m1", ("a", "b"), 3, 1, b"\x00" * 12),
    FeatureBins("c", ("x", "y"), (3, 4), (False, True)),
    KeepModel("c", "m1", "bank", ("h",), (((0, "h", 1, 2),), ()), 10, 3, 17, -2, "abc"),
    KeepModel("c", "m1", "bank", ("h",), (((0, "h", 1, 2),), ()), 10, 3, 17, -2, "abc", 0.05),
    ReleaseModel("c", "m1", "m2", 8, 3, 17, -2, "abc", 0.01),
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


@pytest.mark.parametrize("kind", [k for k in MESSAGES.values() if k.MAX_BYTES == SMALL], ids=lambda k: k.__name__)
def test_a_large_message_of_a_small_kind_is_refused_unread(kind, monkeypatch):
    monkeypatch.setattr(msgpack, "unpackb", None)  # would be called
    head = msgpack.packb([kind.__name__, {"conversation": "c"}])
    with pytest.raises(SecurityError, match=rf"{kind.__name__} of 2,000,\d\d\d bytes arrived; at most 65,536"):
        decode(head + bytes(2_000_000))


def test_what_no_receiver_would_take_is_not_sent():
    with pytest.raises(ParameterError, match="65,5"):
        encode(Refusal("c", Remark("not_delivered", {"why": "x" * 70_000})))


NESTED = b"\xdd\x00\x1f\xff\xff"  # a list that announces 2 million elements


@pytest.mark.parametrize(
    "body",
    [
        NESTED * 500,
        NESTED + b"\x00" * 2_000_000 + NESTED + b"\x00" * 2_000_000,  # more values than a message may have
        b"\xdf\xff\xff\xff\xff",
        b"\xc7\x01\x05\x00",  # an extension
        b"\xdb\xff\xff\xff\xff",  # a text that is not there
        b"\xc6\xff\xff\xff",
    ],
    ids=["nested", "values", "map", "extension", "text", "cut"],
)
def test_a_message_that_announces_more_than_it_holds_takes_no_memory(body):
    blob = b"\x92\xa9Gradients\x81\xa5pairs" + body
    tracemalloc.start()
    with pytest.raises(SecurityError, match="no known form"):
        decode(blob)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.booleans() | st.none()
anything = st.recursive(
    numbers | st.text(max_size=300) | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner, max_size=20),
)


@settings(max_examples=40, deadline=None)
@given(anything)
def test_values_are_counted_over_every_form_that_msgpack_writes(value):
    codec._check_values(msgpack.packb(value))  # raises where it counts more than there are


@given(st.lists(st.booleans(), max_size=70))
def test_a_bitmap_comes_back(flags):
    assert from_bitmap(to_bitmap(np.array(flags, dtype=bool)), len(flags)).tolist() == flags


def test_a_bitmap_of_another_length_is_refused():
    with pytest.raises(SecurityError, match="2 bytes was expected, got 1"):
        from_bitmap(b"\x00", 9)


def test_every_message_class_has_its_place_in_the_threat_model_and_its_row_in_the_architecture():
    root = Path(__file__).parents[3]
    for file in (root / "backend").rglob("messages.py"):
        importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    docs = root / "docs"
    placed = []
    for line in (docs / "threat-messages.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            placed += re.findall(r"`(\w+)`", line.split("|")[1])
    assert sorted(placed) == sorted(MESSAGES)
    rows = {}
    for line in (docs / "architecture.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4:
            rows[cells[0]] = cells
    for name, cls in MESSAGES.items():
        assert all(rows[name]) and cls.HOLDS and cls.READABLE_BY


@pytest.mark.parametrize(("below", "width"), [(1, 1), (256, 1), (257, 2), (65536, 2), (65537, 4)])
def test_numbers_take_as_few_bytes_as_the_largest(below, width):
    blob = to_numbers(np.array([0, below - 1]), below)
    assert len(blob) == 2 * width and from_numbers(blob, below).tolist() == [0, below - 1]


def test_two_kinds_of_message_cannot_share_a_name_on_the_wire():
    with pytest.raises(TypeError, match="OfferKey"):
        type("OfferKey", (Message,), {})
    assert MESSAGES["OfferKey"] is OfferKey


@pytest.mark.parametrize("name", [next(iter(PARAMETERS)), list(PARAMETERS)[-1]])
def test_an_onlooker_is_shown_bytes_that_no_two_ciphertexts_have_alike(name):
    guest, values = RlweKeySide(RlweSecretKey.generate(PARAMETERS[name])), np.zeros((1, 2), dtype=np.int64)
    one, other = (guest.encrypt(values) for _ in range(2))
    assert body(one) == one and one[:8] != other[:8]
    zeros = zeros_under(guest.offer())
    one, other = (written(zeros.make()) for _ in range(2))
    assert one[:100] == other[:100] and SEAL_HEADERS > 100
    assert body(one) == one[SEAL_HEADERS:] and body(one)[:8] != body(other)[:8]
    keys = [RlweKeySide(RlweSecretKey.generate(PARAMETERS[name])).offer() for _ in range(2)]
    assert keys[0][:24] == keys[1][:24] and body(keys[0])[:8] != body(keys[1])[:8]


def test_what_seal_did_not_write_is_shown_from_its_beginning():
    for hidden in (
        b"",
        bytes(range(90)),
        PlainKeySide().encrypt(np.ones((1, 2), dtype=np.int64)),
        b"\x00" * 64 + b"\x5e\xa1\x10",
    ):
        assert body(hidden) == hidden
