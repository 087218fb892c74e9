"""Garbled circuits: two parties compute on bits that each keeps to itself; knows labels of wires, no value and no party's data.

Half gates by Zahur, Rosulek and Evans (EUROCRYPT 2015, ePrint 2014/756, Figure 2): exclusive-or and not are free, an *and* takes two
labels. A circuit is a function of *gates* and of arrays of wires; it runs on plain bits (:class:`PlainGates`, the oracle), as garbler
and as evaluator alike. Wires lie along all axes but the last, and ``^`` is exclusive-or everywhere.

The evaluator holds one label of each wire and learns nothing but the bits that it may decode, as long as SHA-256 with a gate's number
is circular correlation robust. One garbling serves one evaluation. Against parties that follow the protocol: a garbler that garbles
another circuit is not caught.
"""

from __future__ import annotations

import hashlib
import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError

LABEL = 16  # bytes: 128-bit security
TABLE = 2 * LABEL  # bytes an and-gate
DECODING = 2 * LABEL  # bytes an output

Wires = NDArray[np.uint64]  # (..., words): two words a label, one a plain bit
Bits = NDArray[np.bool_]


class Gates(Protocol):
    """What a circuit is made of, besides ``^``."""

    def both(self, left: Wires, right: Wires) -> Wires:
        """And, wire by wire; equal shapes."""

    def flip(self, wires: Wires) -> Wires:
        """Not."""


class PlainGates:
    """Bits in the clear, ``(..., 1)`` of 0 and 1; counts and-gates, which tells both parties how large a circuit is."""

    def __init__(self) -> None:
        self.gates = 0

    def both(self, left: Wires, right: Wires) -> Wires:
        """And."""
        self.gates += left.size
        return left & right

    def flip(self, wires: Wires) -> Wires:
        """Not."""
        return wires ^ np.uint64(1)


class Garbler:
    """Gives every wire a random label for 0; the label for 1 differs by a secret Δ, the same for all wires (free exclusive-or)."""

    def __init__(self) -> None:
        self._delta: Wires = _random(1)[0]
        # so that the lowest bits of a wire's two labels differ: the colour (point and permute)
        self._delta[0] |= np.uint64(1)
        self._hashed = 0
        self._tables: list[bytes] = []

    @property
    def tables(self) -> bytes:
        """All and-gates so far, :data:`TABLE` bytes each."""
        return b"".join(self._tables)

    def wires(self, *shape: int) -> Wires:
        """Input wires: their labels for 0, ``(*shape, 2)``."""
        return _random(int(np.prod(shape))).reshape(*shape, 2)

    def labels(self, zeros: Wires, bits: Bits) -> bytes:
        """Return the labels of the garbler's own bits, one after the other."""
        labels_of_bits: Wires = zeros ^ bits[..., np.newaxis] * self._delta
        return labels_of_bits.tobytes()

    def pairs(self, zeros: Wires) -> NDArray[np.uint8]:
        """Both labels of each wire, ``(n, 2, LABEL)``: for an oblivious transfer, never for one message."""
        flat = zeros.reshape(-1, 2)
        return np.stack([flat, flat ^ self._delta], axis=1).view(np.uint8)

    def flip(self, wires: Wires) -> Wires:
        """Not: the labels change places."""
        return wires ^ self._delta

    def both(self, left: Wires, right: Wires) -> Wires:
        """And (ZRE15 Figure 2, procedure GbAnd): generator half, then evaluator half."""
        a = left.reshape(-1, 2)
        b = right.reshape(-1, 2)
        p_a = _colour(a)
        p_b = _colour(b)
        inputs = np.concatenate([a, b])
        hashes = _hash(np.concatenate([inputs, inputs ^ self._delta]), self._hashed, len(inputs))
        at_a, at_b, at_a1, at_b1 = hashes.reshape(4, len(a), 2)
        self._hashed += len(inputs)
        t_g = at_a ^ at_a1 ^ p_b * self._delta
        t_e = at_b ^ at_b1 ^ a
        self._tables.append(np.stack([t_g, t_e], axis=1).tobytes())
        zeros: Wires = at_a ^ p_a * t_g ^ at_b ^ p_b * (t_e ^ a)
        return zeros.reshape(left.shape)

    def decoding(self, outputs: Wires) -> bytes:
        """What turns labels of `outputs`, ``(m, 2)``, into bits: the hashes of both labels, :data:`DECODING` bytes a wire."""
        hashes = _hash(np.concatenate([outputs, outputs ^ self._delta]), self._hashed, len(outputs))
        self._hashed += len(outputs)
        return hashes.reshape(2, -1, 2).swapaxes(0, 1).tobytes()


class Evaluator:
    """Holds one label a wire.

    Parameters
    ----------
    tables : bytes
        What :attr:`Garbler.tables` gave; the caller has checked that its length fits the circuit.
    """

    def __init__(self, tables: bytes) -> None:
        self._tables = np.frombuffer(tables, dtype="<u8").reshape(-1, 2, 2)
        self._hashed = self._used = 0

    def flip(self, wires: Wires) -> Wires:
        """Not: nothing to do, the garbler has exchanged the labels."""
        return wires

    def both(self, left: Wires, right: Wires) -> Wires:
        """And (ZRE15 Figure 2, procedure Ev)."""
        a = left.reshape(-1, 2)
        b = right.reshape(-1, 2)
        t_g, t_e = self._tables[self._used : self._used + len(a)].swapaxes(0, 1)
        at_a, at_b = _hash(np.concatenate([a, b]), self._hashed, 2 * len(a)).reshape(2, len(a), 2)
        self._hashed += 2 * len(a)
        self._used += len(a)
        labels: Wires = at_a ^ _colour(a) * t_g ^ at_b ^ _colour(b) * (t_e ^ a)
        return labels.reshape(left.shape)

    def decode(self, outputs: Wires, decoding: bytes) -> Bits:
        """Return the bits of `outputs`, ``(m, 2)``.

        Raises SecurityError if a label is not one of its wire's two: labels, tables or decoding were damaged.
        """
        decodings = np.frombuffer(decoding, dtype="<u8").reshape(-1, 2, 2)
        matches = (decodings == _hash(outputs, self._hashed, len(outputs))[:, np.newaxis]).all(axis=2)
        if not (matches.sum(axis=1) == 1).all():
            raise SecurityError("garbled_output_damaged")
        ones: Bits = matches[:, 1]
        return ones


def read_labels(blob: bytes, *shape: int) -> Wires:
    """Labels from bytes, ``(*shape, 2)``."""
    return np.frombuffer(blob, dtype="<u8").reshape(*shape, 2)


def _random(count: int) -> Wires:
    return np.frombuffer(bytearray(os.urandom(LABEL * count)), dtype="<u8").reshape(count, 2)


def _colour(labels: Wires) -> Wires:
    """``(m, 1)``: the lowest bit of each label."""
    return labels[:, :1] & np.uint64(1)


def _hash(labels: Wires, first: int, wires: int) -> Wires:
    """Return SHA-256(number, label), cut to the length of a label.

    Numbers count from `first`: each of the `wires` has a number that no other wire of the garbling has, and its two labels share it.
    """
    inputs = np.empty((len(labels), 3), dtype="<u8")
    inputs[:, 0] = np.resize(np.arange(first, first + wires), len(labels))
    inputs[:, 1:] = labels
    sha256 = hashlib.sha256
    hashes = b"".join([sha256(label).digest()[:LABEL] for label in inputs.view("V24").ravel().tolist()])
    return np.frombuffer(hashes, dtype="<u8").reshape(len(labels), 2)
