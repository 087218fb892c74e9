"""Oblivious transfer of very many short strings: the receiver gets those it chose, the sender does not learn which.

128 transfers by Diffie–Hellman (Chou and Orlandi 2015) give the two sides seeds; the extension of Ishai, Kilian, Nissim and
Petrank (2003) in the form of Asharov, Lindell, Schneider and Zohner (2013) makes as many more of them as are wanted from
hashing alone. All columns have to hold the same choices: a receiver that bends some of them finds out the sender's secret choices
bit by bit, and then both strings of every pair.

Of pairs the sender checks that (Keller, Orsini and Scholl 2015, in the form of their revision of 2022, Figure 10). A random linear
hash of every column has to be the one of the choices. The check as first printed multiplies whole rows in a field of 2^128 elements;
Roy (SoftSpokenOT, 2022) showed its proof wrong. Here each column is hashed by itself, so that one which differs passes
with 2^-128, or where its receiver has guessed the sender's one bit for it: 127 bent columns are guessed like a key. The hash is drawn by
hashing what was sent (Fiat and Shamir), so that no message more is needed. Strings without a partner are sent unchecked: whoever may choose
as many as it likes gains nothing by bending.
"""

from __future__ import annotations

import hashlib
import hmac
import os

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import check_length
from backend.crypto.ristretto import ELEMENT, add, multiply, multiply_base, random_scalars, split, subtract
from backend.errors import SecurityError

COLUMNS = 128  # base transfers = bits of computational security
REPLIES = COLUMNS * ELEMENT  # bytes of the sender's answer to the offer
HASH_BITS = 128  # of a column; who hashes offline for one that does not tell two columns apart needs 2^128 tries
HASHES = HASH_BITS // 8 * (1 + COLUMNS)  # bytes: of the choices, then of every column

Bytes = NDArray[np.uint8]


class TransferReceiver:
    """Chooses; gives the offer in the base transfers."""

    def __init__(self) -> None:
        self._secret = random_scalars(1)[0]
        self.offer = multiply_base(self._secret)
        self._seeds: list[tuple[bytes, bytes]] = []

    def accept(self, replies: bytes) -> None:
        """Base transfers, last step: both seeds of every column, a·B and a·(B − A)."""
        for number, reply in enumerate(split(replies, COLUMNS)):
            seed_of_0 = multiply(self._secret, reply)
            seed_of_1 = multiply(self._secret, subtract(reply, self.offer))
            self._seeds.append(
                (_seed(number, self.offer, reply, seed_of_0), _seed(number, self.offer, reply, seed_of_1))
            )
        self._transcript = self.offer + replies

    def choose(self, number: int, choices: NDArray[np.bool_]) -> bytes:
        """Message `number`: per column G(k⁰) ⊕ G(k¹) ⊕ choices, ``16·n`` bytes (ALSZ13)."""
        packed = np.packbits(choices)
        columns = []
        for seed_of_0, seed_of_1 in self._seeds:
            columns.append(_stream(seed_of_0, number, len(packed)) ^ _stream(seed_of_1, number, len(packed)))
        return (np.stack(columns) ^ packed).tobytes()

    def choose_either(self, number: int, choices: NDArray[np.bool_]) -> bytes:
        """Return :meth:`choose` of pairs, ``128·(⌈n/8⌉ + 16)`` bytes, and :data:`HASHES` that prove the same choices in all columns.

        128 additional random choices hide what the hashes would reveal of the others.
        """
        packed = np.frombuffer(np.packbits(choices).tobytes() + os.urandom(HASH_BITS // 8), dtype=np.uint8)
        columns = self.choose(number, np.unpackbits(packed).astype(bool))
        rows = np.stack([packed, *(_stream(zero, number, len(packed)) for zero, _ in self._seeds)])
        return columns + _hashes(_challenge(self._transcript, number, columns), rows).tobytes()

    def receive(self, number: int, first: int, choices: NDArray[np.bool_], blob: bytes, width: int) -> Bytes:
        """Return the chosen strings.

        Parameters
        ----------
        number : int
            The number of the message that is answered.
        first : int
            The number of its first string, counted over all messages.
        choices : ndarray of bool, ``(n,)``
        width : int
            Bytes of a string.

        Returns
        -------
        ndarray of uint8, ``(n, width)``
            Zeros if nothing was chosen.
        """
        n = len(choices)
        check_length(blob, n, width)
        rows = _rows([_stream(zero, number, -(-n // 8)) for zero, _ in self._seeds], n)
        chosen_rows = np.flatnonzero(choices)
        received = np.zeros((n, width), dtype=np.uint8)
        masked = np.frombuffer(blob, dtype=np.uint8).reshape(n, width)
        received[chosen_rows] = masked[chosen_rows] ^ _pads(first + chosen_rows, rows[chosen_rows], width)
        return received

    def receive_either(self, number: int, first: int, choices: NDArray[np.bool_], blob: bytes, width: int) -> Bytes:
        """One string of each pair, the second where it was chosen: ``(n, width)``; arguments as in :meth:`receive`."""
        n = len(choices)
        check_length(blob, 2 * n, width)
        rows = _rows([_stream(zero, number, -(-n // 8)) for zero, _ in self._seeds], n)
        masked = np.frombuffer(blob, dtype=np.uint8).reshape(n, 2, width)
        return masked[np.arange(n), choices.astype(np.intp)] ^ _pads(np.arange(first, first + n), rows, width)


class TransferSender:
    """Holds the strings; answers the receiver's offer A in the base transfers with secret choices of its own."""

    def __init__(self, offer: bytes) -> None:
        self._choices = np.frombuffer(os.urandom(COLUMNS // 8), dtype=np.uint8)
        scalars = random_scalars(COLUMNS)
        agreed = [multiply(scalar, offer) for scalar in scalars]  # refuses what is no element, so that adding is safe
        replies = [
            add(multiply_base(scalar), offer) if choice else multiply_base(scalar)
            for scalar, choice in zip(scalars, self._bits(), strict=True)
        ]
        self.replies = b"".join(replies)
        self._transcript = offer + self.replies
        self._seeds = [
            _seed(j, offer, reply, point) for j, (reply, point) in enumerate(zip(replies, agreed, strict=True))
        ]

    def send(self, number: int, first: int, strings: Bytes, blob: bytes) -> bytes:
        """Answer message `number`: every string masked so that only one who chose it can read it, ``n·width`` bytes.

        Parameters
        ----------
        number, first : int
            As in :meth:`TransferReceiver.receive`. No number may be answered twice.
        strings : ndarray of uint8, ``(n, width)``
        blob : bytes
            What :meth:`TransferReceiver.choose` made.
        """
        n, width = strings.shape
        columns = self._columns_of(number, n, blob)
        rows = _rows(columns, n) ^ self._choices  # equals the receiver's row where it chose the string
        return (strings ^ _pads(np.arange(first, first + n), rows, width)).tobytes()

    def send_either(self, number: int, first: int, pairs: Bytes, blob: bytes) -> bytes:
        """Answer message `number` of :meth:`TransferReceiver.choose_either`: of each pair, ``(n, 2, width)``, it can read one.

        Raises SecurityError if the columns hold different choices; else as :meth:`send`.
        """
        n, _, width = pairs.shape
        columns = self._columns_of(number, 8 * -(-n // 8) + HASH_BITS, blob[:-HASHES])
        self._check(number, columns, blob)
        rows = _rows(columns, n)
        numbers = np.arange(first, first + n)
        pads = [_pads(numbers, rows, width), _pads(numbers, rows ^ self._choices, width)]
        return (pairs ^ np.stack(pads, axis=1)).tobytes()

    def _columns_of(self, number: int, n: int, blob: bytes) -> list[Bytes]:
        """128 columns, as the receiver's rows where it chose nothing, else those exclusive-or the sender's secret choices."""
        length = -(-n // 8)
        check_length(blob, COLUMNS, length)
        columns = [_stream(seed, number, length) for seed in self._seeds]
        for j, choice in enumerate(self._bits()):
            if choice:
                columns[j] ^= np.frombuffer(blob, dtype=np.uint8, count=length, offset=j * length)
        return columns

    def _check(self, number: int, columns: list[Bytes], blob: bytes) -> None:
        """h(q_j) = h(t_j) ⊕ s_j·h(x) of every column j, x the choices and s the secret ones (KOS15, revised, Figure 10)."""
        hashes = _hashes(_challenge(self._transcript, number, blob[:-HASHES]), np.stack(columns))
        x, *t = np.frombuffer(blob[-HASHES:], dtype=np.uint8).reshape(1 + COLUMNS, -1)
        expected = np.stack(t) ^ np.outer(np.array(self._bits(), dtype=np.uint8), x)
        if not hmac.compare_digest(expected.tobytes(), hashes.tobytes()):
            raise SecurityError("transfer_columns_differ")

    def _bits(self) -> list[int]:
        bits: list[int] = np.unpackbits(self._choices).tolist()
        return bits


def _seed(number: int, offer: bytes, reply: bytes, point: bytes) -> bytes:
    return hashlib.sha256(b"glassleaf base transfer" + number.to_bytes(1) + offer + reply + point).digest()


def _stream(seed: bytes, number: int, length: int) -> Bytes:
    stream = hashlib.shake_128(seed + number.to_bytes(8)).digest(length)
    return np.frombuffer(bytearray(stream), dtype=np.uint8)


def _challenge(transcript: bytes, number: int, columns: bytes) -> bytes:
    """Seed of the hash of columns, which nobody knows before they are sent."""
    return hashlib.sha256(b"glassleaf transfer check" + transcript + number.to_bytes(8) + columns).digest()


def _hashes(seed: bytes, columns: Bytes) -> Bytes:
    """``(columns, 16)``: M·bits over F₂ of each column but its last 128 bits, M random, plus these."""
    n = columns.shape[1] - HASH_BITS // 8
    matrix = np.frombuffer(hashlib.shake_128(seed).digest(HASH_BITS * n), dtype=np.uint8).reshape(HASH_BITS, n)
    sums = np.stack([np.bitwise_xor.reduce(matrix & column[:n], axis=1) for column in columns])
    return np.packbits(np.bitwise_count(sums) & 1, axis=1) ^ columns[:, n:]


def _rows(columns: list[Bytes], n: int) -> Bytes:
    """128 columns of at least ⌈n/8⌉ bytes → ``(n, 16)``."""
    bits = np.unpackbits(np.stack(columns), axis=1, count=n)
    return np.packbits(np.ascontiguousarray(bits.T), axis=1)


def _pads(numbers: NDArray[np.intp], rows: Bytes, width: int) -> Bytes:
    """SHA-256(number, row) of every row, cut to `width` bytes: the correlation-robust hash of IKNP03."""
    inputs = np.empty((len(rows), 8 + COLUMNS // 8), dtype=np.uint8)
    inputs[:, :8] = numbers.astype(">u8")[:, np.newaxis].view(np.uint8)
    inputs[:, 8:] = rows
    data = inputs.tobytes()
    size = inputs.shape[1]
    sha256 = hashlib.sha256
    pads = b"".join([sha256(data[start : start + size]).digest() for start in range(0, len(data), size)])
    return np.frombuffer(pads, dtype=np.uint8).reshape(len(rows), 32)[:, :width]
