"""Garbled gates give what plain gates give; the evaluator sees one label of a wire, whose looks tell nothing."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.garbling import DECODING, LABEL, TABLE, Evaluator, Garbler, PlainGates, read_labels
from backend.errors import SecurityError


class Watched(Evaluator):
    """Keeps the labels that pass."""

    def __init__(self, tables):
        super().__init__(tables)
        self.seen = []

    def both(self, left, right):
        out = super().both(left, right)
        self.seen.append(out)
        return out


def garbled(circuit, bits, evaluator=Evaluator):
    """Run `circuit` on garbled inputs; the bits that come out and the evaluator."""
    garbler, bits = Garbler(), np.asarray(bits, dtype=bool)
    zeros = garbler.wires(len(bits))
    labels = garbler.labels(zeros, bits)
    decoding = garbler.decoding(circuit(garbler, zeros))
    gates = evaluator(garbler.tables)
    return gates.decode(circuit(gates, read_labels(labels, len(bits))), decoding), gates


def plain(circuit, bits):
    gates = PlainGates()
    out = circuit(gates, np.asarray(bits, dtype=np.uint64).reshape(-1, 1))
    return out.ravel().astype(bool), gates


@pytest.mark.parametrize(
    ("circuit", "truth"),
    [
        (lambda g, w: g.both(w[:1], w[1:]), [0, 0, 0, 1]),
        (lambda _, w: w[:1] ^ w[1:], [0, 1, 1, 0]),
        (lambda g, w: g.flip(w[:1]), [1, 1, 0, 0]),
        (lambda g, w: g.flip(g.both(g.flip(w[:1]), g.flip(w[1:]))), [0, 1, 1, 1]),
        (lambda g, w: g.both(w[:1], w[:1]), [0, 0, 1, 1]),
    ],
    ids=["and", "exclusive-or", "not", "or", "and-with-itself"],
)
def test_every_gate_keeps_its_truth_table(circuit, truth):
    for case, expected in enumerate(truth):
        bits = [case >> 1, case & 1]
        for _ in range(4):  # all four pairs of colours come up
            assert garbled(circuit, bits)[0].tolist() == [bool(expected)] == plain(circuit, bits)[0].tolist()


@given(
    st.lists(st.booleans(), min_size=2, max_size=12),
    st.lists(st.tuples(st.sampled_from("&^!"), st.integers(0, 99), st.integers(0, 99)), max_size=30),
)
@settings(deadline=None)
def test_a_garbled_circuit_gives_what_it_gives_on_plain_bits(bits, steps):
    def circuit(gates, wires):
        for kind, i, j in steps:
            a, b = wires[i % len(wires)][np.newaxis], wires[j % len(wires)][np.newaxis]
            new = gates.both(a, b) if kind == "&" else a ^ b if kind == "^" else gates.flip(a)
            wires = np.concatenate([wires, new])
        return wires

    expected, gates = plain(circuit, bits)
    assert (garbled(circuit, bits)[0] == expected).all()
    assert gates.gates == sum(kind == "&" for kind, _, _ in steps)


def test_one_gate_is_garbled_as_figure_2_of_the_paper_has_it():
    """ZRE15: T_G = H(a0) + H(a1) + p_b·D, T_E = H(b0) + H(b1) + a0, in plain integers."""
    garbler = Garbler()
    zeros = garbler.wires(2)
    out = garbler.both(zeros[:1], zeros[1:])
    (a0, a1), (b0, b1) = ((int.from_bytes(x, "little") for x in pair) for pair in garbler.pairs(zeros))

    def hashed(label, number):
        data = number.to_bytes(8, "little") + label.to_bytes(16, "little")
        return int.from_bytes(hashlib.sha256(data).digest()[:16], "little")

    delta = a0 ^ a1
    t_g = hashed(a0, 0) ^ hashed(a1, 0) ^ (b0 & 1) * delta
    t_e = hashed(b0, 1) ^ hashed(b1, 1) ^ a0
    w_g = hashed(a0, 0) ^ (a0 & 1) * t_g
    w_e = hashed(b0, 1) ^ (b0 & 1) * (t_e ^ a0)
    assert garbler.tables == t_g.to_bytes(16, "little") + t_e.to_bytes(16, "little")
    assert out.tobytes() == (w_g ^ w_e).to_bytes(16, "little")


def test_the_two_labels_of_every_wire_differ_by_one_secret_of_odd_colour():
    garbler = Garbler()
    pairs = garbler.pairs(garbler.wires(50))
    deltas = {bytes(a ^ b) for a, b in pairs}
    assert pairs.shape == (50, 2, LABEL) and len(deltas) == 1
    assert deltas.pop()[0] & 1
    assert len({bytes(label) for pair in pairs for label in pair}) == 100


def test_every_garbling_has_a_secret_of_its_own_which_is_not_shown():
    garblers = [Garbler() for _ in range(20)]
    assert len({bytes(g.pairs(g.wires(1))[0, 0] ^ g.pairs(g.wires(1))[0, 1]) for g in garblers}) == 20
    assert str(garblers[0]._delta) not in repr(garblers[0])


def test_no_number_is_hashed_twice(monkeypatch):
    used = []
    monkeypatch.setattr(
        "backend.crypto.garbling._hash",
        lambda labels, first, wires: used.extend([range(first, first + wires)] * (len(labels) // wires)) or labels,
    )
    garbler = Garbler()
    zeros = garbler.wires(10)
    garbler.decoding(garbler.both(garbler.both(zeros[:5], zeros[5:]), zeros[2:7]))
    numbers = [n for span in used for n in span]
    assert sorted(numbers) == sorted([*range(25), *range(25)])  # once for each of a wire's two labels


@pytest.mark.parametrize("bit", [0, 1])
def test_what_the_evaluator_sees_of_a_wire_looks_the_same_whatever_it_carries(bit):
    n = 2000
    _, gates = garbled(lambda g, w: g.both(w[:n], w[n:]), [bit] * (2 * n), Watched)
    bits = np.unpackbits(np.concatenate(gates.seen).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.01
    colours = np.concatenate(gates.seen)[:, 0] & np.uint64(1)
    assert abs(colours.mean() - 0.5) < 0.06


def test_a_gate_and_an_output_take_the_bytes_that_are_announced():
    garbler = Garbler()
    out = garbler.both(garbler.wires(7), garbler.wires(7))
    assert len(garbler.tables) == 7 * TABLE
    assert len(garbler.decoding(out)) == 7 * DECODING


def test_a_label_that_is_neither_of_a_wires_two_is_refused():
    garbler = Garbler()
    zeros = garbler.wires(3)
    decoding = garbler.decoding(zeros)
    labels = bytearray(garbler.labels(zeros, np.array([True, False, True])))
    labels[LABEL] ^= 0x80
    with pytest.raises(SecurityError, match="neither 0 nor 1"):
        Evaluator(b"").decode(read_labels(bytes(labels), 3), decoding)
