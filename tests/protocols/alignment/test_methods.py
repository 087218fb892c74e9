"""Both ways find what plain sets find, in an order that both parties can work out, and show nothing else."""

import hashlib
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto import ristretto
from backend.crypto.fixedpoint import MAX_ROWS
from backend.crypto.ristretto import multiply_base
from backend.errors import FederationError, SecurityError
from backend.protocols.alignment import dh, garbled_bloom
from backend.protocols.alignment.ids import joint_rows, mark, secret_order
from backend.protocols.alignment.methods import guest_sides, host_side
from backend.protocols.alignment.outcome import METHODS

both = pytest.mark.parametrize("method", METHODS)


def exchange(side, host, records, wire):
    """Everything between the Guest and one Host up to the positions; every message is noted."""

    def note(blob):
        assert type(blob) is bytes
        wire.append(blob)
        return blob

    count = side.opened(host.records, note(host.open(records, note(side.open()))))
    pieces = [note(piece) for piece in side.pieces()]
    assert len(pieces) == count
    for piece in pieces:
        side.take(note(host.take(piece)))
    return side.positions()


def align(method, ids, hosts):
    """Guest's rows, each Host's rows, and what went over the wire."""
    wire = []
    sides = guest_sides(method, "bank", ids, tuple(hosts))
    theirs = {name: host_side(method, held) for name, held in hosts.items()}
    positions = {name: exchange(side, theirs[name], len(ids), wire) for name, side in sides.items()}
    rows = joint_rows("bank", ids, positions)
    marks = {name: mark(positions[name], rows, theirs[name].records) for name in hosts}
    wire += marks.values()
    return rows, {name: theirs[name].rows(joint) for name, joint in marks.items()}, wire


def ready(method, ids=("a", "b", "c"), held=("b", "c", "d")):
    """Two sides that have opened."""
    side, host = guest_sides(method, "bank", ids, ["h"])["h"], host_side(method, held)
    side.opened(host.records, host.open(len(ids), side.open()))
    return side, host


@both
@given(
    st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=30),
    st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=30),
    st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=10),
    st.randoms(use_true_random=False),
)
@settings(max_examples=6, deadline=None)
def test_the_joint_records_are_the_intersection_of_plain_sets(method, left, right, shared, random):
    guest, host = list(left | shared), list(right | shared)
    random.shuffle(guest)
    random.shuffle(host)
    rows, theirs, _ = align(method, guest, {"h": host})
    joint = sorted(set(guest) & set(host))
    assert [guest[row] for row in rows] == joint
    assert [host[row] for row in theirs["h"]] == joint


@both
def test_several_hosts_meet_on_what_all_of_them_hold(method):
    guest = ["e", "d", "c", "b", "a"]
    rows, theirs, _ = align(method, guest, {"one": ["a", "b", "x", "c"], "two": ["c", "d", "a"]})
    assert [guest[row] for row in rows] == ["a", "c"]
    assert theirs["one"].tolist() == [0, 3]
    assert theirs["two"].tolist() == [2, 0]


@both
def test_more_ids_than_a_message_or_a_thread_takes_are_found(method, monkeypatch):
    monkeypatch.setattr(dh, "PIECE", 7)
    monkeypatch.setattr(ristretto, "SHARE", 2)
    monkeypatch.setattr(garbled_bloom, "PIECE", 10_000)
    guest, host = [f"n{i}" for i in range(40)], [f"n{i}" for i in range(30, 33)]
    for one, other in ((guest, host), (host, guest)):
        rows, theirs, wire = align(method, one, {"h": other})
        assert [one[row] for row in rows] == [other[row] for row in theirs["h"]] == ["n30", "n31", "n32"]
        assert len(wire) > 10


@both
def test_ids_are_compared_by_code_point(method):
    composed, decomposed = "é", "e\N{COMBINING ACUTE ACCENT}"
    guest, host = [composed, "李雷", "🦊", "Ⅷ", " a"], ["🦊", decomposed, "李雷", "VIII", "a"]
    rows, _, _ = align(method, guest, {"h": host})
    assert [guest[row] for row in rows] == ["李雷", "🦊"]


@both
def test_an_empty_intersection_is_a_clear_error(method):
    with pytest.raises(FederationError, match=r"h holds none of the 2 ids of bank\. Check that both files"):
        align(method, ["a", "b"], {"h": ["c"]})


@both
def test_hosts_that_share_nothing_with_each_other_are_a_clear_error(method):
    with pytest.raises(FederationError, match="None of the 2 ids of bank is held by all of one, two"):
        align(method, ["a", "b"], {"one": ["a"], "two": ["b"]})


@both
def test_a_party_without_records_is_a_clear_error(method):
    with pytest.raises(FederationError, match="bank holds no records"):
        guest_sides(method, "bank", [], ["h"])
    with pytest.raises(FederationError, match="The Host holds no records"):
        host_side(method, [])


@both
def test_a_repeated_id_is_named_to_the_guest_with_its_records_but_not_by_a_host(method):
    with pytest.raises(FederationError, match="bank: records 2 and 4 have the same id 'anna-17'"):
        guest_sides(method, "bank", ["x", "anna-17", "y", "anna-17"], ["h"])
    with pytest.raises(FederationError, match="The Host: records 1 and 3 have the same id;") as error:
        host_side(method, ["anna-17", "y", "anna-17"])
    assert "anna-17" not in str(error.value)  # a Host's error travels to the Guest


@both
def test_an_id_of_more_than_65535_bytes_is_refused(method):
    with pytest.raises(FederationError, match="record 2 has 65,536 bytes"):
        host_side(method, ["a", "é" * 32768])


@both
@pytest.mark.parametrize("records", [-1, 0, MAX_ROWS + 1])
def test_a_number_of_records_beyond_reason_is_refused_before_anything_is_set_aside(method, records):
    side, host = guest_sides(method, "bank", ["a"], ["h"])["h"], host_side(method, ["a"])
    opening = side.open()
    with pytest.raises(SecurityError, match="records were announced"):
        host.open(records, opening)
    with pytest.raises(SecurityError, match="records were announced"):
        side.opened(records, host.open(1, opening))


@both
@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b"", lambda b: b * 2])
def test_messages_of_another_length_are_refused(method, change):
    side, host = ready(method)
    piece = next(side.pieces())
    with pytest.raises(SecurityError):
        host.take(change(piece))
    answer = host.take(piece)
    with pytest.raises(SecurityError):
        side.take(change(answer))
    with pytest.raises(SecurityError):
        host_side(method, ["a"]).open(1, change(side.open()) or b"x")
    fresh = guest_sides(method, "bank", ["a"], ["h"])["h"]
    with pytest.raises(SecurityError):
        fresh.opened(1, change(host_side(method, ["a"]).open(1, fresh.open())) or b"x")


@both
def test_messages_out_of_turn_are_refused(method):
    with pytest.raises(SecurityError):
        host_side(method, ["a"]).take(b"")
    with pytest.raises(SecurityError, match="before the alignment was finished"):
        host_side(method, ["a"]).rows(b"\x80")
    side, host = ready(method)
    with pytest.raises(SecurityError, match="not sent"):
        side.take(b"")
    with pytest.raises(SecurityError, match="answer was expected"):
        side.positions()
    pieces = list(side.pieces())
    for piece in pieces:
        host.take(piece)
    with pytest.raises(SecurityError, match="one more arrived"):
        host.take(pieces[0])


@pytest.mark.parametrize("element", [bytes(32), b"\xff" * 32])
def test_what_is_no_element_and_the_identity_are_refused_on_both_sides(element):
    side, host = ready("dh")
    piece = next(side.pieces())
    with pytest.raises(SecurityError, match="ristretto255"):
        host.take(element + piece[32:])
    with pytest.raises(SecurityError, match="ristretto255"):
        side.take(element + host.take(piece)[32:])


def test_an_offer_that_is_no_element_is_refused_by_a_host():
    with pytest.raises(SecurityError, match="ristretto255"):
        host_side("bloom", ["a"]).open(1, bytes(32))


def test_a_list_that_names_a_record_twice_is_refused():
    side, host = ready("dh")
    answer = host.take(next(side.pieces()))
    side.take(answer[: 3 * 32] + answer[-16:] * 3)
    with pytest.raises(SecurityError, match="names a record twice"):
        side.positions()


def test_a_filter_that_gives_two_ids_one_place_is_refused(monkeypatch):
    monkeypatch.setattr(garbled_bloom.np, "column_stack", lambda parts: np.hstack([parts[0], parts[1][:, None] * 0]))
    side, host = ready("bloom")
    for piece in side.pieces():
        side.take(host.take(piece))
    with pytest.raises(SecurityError, match="names a record twice"):
        side.positions()


@both
def test_a_foreign_answer_finds_nobody(method):
    """Answers of a Host with another key or filter, or bytes changed on the way, never make an id a joint one."""
    side, _ = ready(method)
    other = guest_sides(method, "bank", ["a", "b", "c"], ["h"])["h"]
    stranger = host_side(method, ["b", "c", "d"])
    other.opened(3, stranger.open(3, other.open()))
    for own, foreign in zip(side.pieces(), other.pieces(), strict=True):
        side.take(stranger.take(foreign))
        assert own != foreign
    assert (side.positions() == -1).all()


@both
def test_marks_that_do_not_fit_the_list_are_refused(method):
    side, host = ready(method, ids=("b",))
    for piece in side.pieces():
        side.take(host.take(piece))
    with pytest.raises(SecurityError, match="bitmap"):
        host.rows(b"\0\0")
    with pytest.raises(SecurityError, match="0 records were marked"):
        host.rows(b"\0")
    with pytest.raises(SecurityError, match="3 records were marked, of 1 asked about"):
        host.rows(b"\xe0")


def test_an_unknown_way_is_refused():
    with pytest.raises(SecurityError, match="dh, bloom"):
        host_side("plain", ["a"])


def unsalted(identifier):
    """What somebody who guesses ids would look for: the id itself, and its hashes without a key, whole or cut."""
    data = identifier.encode()
    hashes = ("md5", "sha1", "sha256", "sha512", "sha3_256", "sha3_512", "blake2b", "blake2s")
    long = (hashlib.shake_128, hashlib.shake_256)
    return [
        data,
        *(hashlib.new(h, data).digest()[:8] for h in hashes),
        *(h(data).digest(8) for h in long),
        multiply_base(rbcl_scalar(data)),
        dh.hash_to_group(data, dh.DOMAIN),
    ]


def rbcl_scalar(data):
    return (int.from_bytes(hashlib.sha512(data).digest()) % 2**252).to_bytes(32, "little")


@both
def test_neither_an_id_nor_a_hash_of_one_without_a_key_is_on_the_wire(method):
    guest = [f"customer-{i:06d}" for i in range(12)]
    host = [f"customer-{i:06d}" for i in range(6, 18)]
    _, _, wire = align(method, guest, {"h": host})
    for identifier in {*guest, *host}:
        for trace in unsalted(identifier):
            assert not any(trace in blob for blob in wire)


@both
def test_nothing_is_the_same_in_a_second_alignment(method):
    ids = [f"customer-{i}" for i in range(5)]
    first, second = (align(method, ids, {"h": ids})[2] for _ in range(2))
    for one, other in zip(first[:-1], second[:-1], strict=True):
        assert one == other == b"" or one != other
        blocks = {one[i : i + 16] for i in range(0, len(one) - 15, 16)}
        assert not blocks & {other[i : i + 16] for i in range(0, len(other) - 15, 16)}


@both
def test_ids_show_in_no_repr_and_no_log(method, caplog):
    caplog.set_level(logging.DEBUG)
    side, host = ready(method, ids=("anna-17", "bob-3"), held=("bob-3", "carl-9"))
    shown = repr(side) + str(side) + repr(host) + str(host) + caplog.text
    assert not any(name in shown for name in ("anna", "bob", "carl"))


def test_the_places_that_the_guest_sees_do_not_follow_the_order_of_the_hosts_file():
    ids = [f"n{i}" for i in range(60)]
    for method in METHODS:
        side, host = ready(method, ids, ids)
        for piece in side.pieces():
            side.take(host.take(piece))
        positions = side.positions()
        assert sorted(positions) == list(range(60))
        assert (positions != np.arange(60)).any()


@given(st.integers(1, 200))
def test_a_secret_order_is_a_permutation(n):
    assert sorted(secret_order(n).tolist()) == list(range(n))


def test_blinded_ids_are_worked_out_once_for_all_hosts():
    sides = guest_sides("dh", "bank", ["a", "b"], ["one", "two"])
    for side in sides.values():
        side.opened(5, b"")
    assert list(sides["one"].pieces()) == list(sides["two"].pieces())
