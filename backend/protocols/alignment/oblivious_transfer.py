"""Oblivious transfer of very many short strings: the receiver gets those it chose, the sender does not learn which.

128 transfers by Diffie–Hellman (Chou and Orlandi 2015) give the two sides seeds; the extension of Ishai, Kilian, Nissim and
Petrank (2003) in the form of Asharov, Lindell, Schneider and Zohner (2013) makes as many more of them as are wanted from
hashing alone. Against parties that follow the protocol; a receiver that sends inconsistent columns is not caught.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import check_length
from backend.crypto.ristretto import ELEMENT, add, multiply, multiply_base, random_scalars, split, subtract

COLUMNS = 128  # base transfers = bits of computational security
REPLIES = COLUMNS * ELEMENT  # bytes of the sender's answer to the offer

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
            zero = multiply(self._secret, reply)
            one = multiply(self._secret, subtract(reply, self.offer))
            self._seeds.append((_seed(number, self.offer, reply, zero), _seed(number, self.offer, reply, one)))

    def choose(self, number: int, choices: NDArray[np.bool_]) -> bytes:
        """Message `number`: per column G(k⁰) ⊕ G(k¹) ⊕ choices, ``16·n`` bytes (ALSZ13)."""
        packed = np.packbits(choices)
        columns = [_stream(zero, number, len(packed)) ^ _stream(one, number, len(packed)) for zero, one in self._seeds]
        return (np.stack(columns) ^ packed).tobytes()

    def receive(self, number: int, first: int, choices: NDArray[np.bool_], blob: bytes, width: int) -> Bytes:
        """The chosen strings.

        Parameters
        ----------
        number : int
            The message that is answered.
        first : int
            Number of its first string, counted over all messages.
        choices : ndarray of bool, ``(n,)``
        width : int
            Bytes of a string.

        Returns
        -------
        ndarray of uint8, ``(n, width)``
            Zeros where nothing was chosen.
        """
        n = len(choices)
        check_length(blob, n, width, "strings")
        rows = _rows([_stream(zero, number, -(-n // 8)) for zero, _ in self._seeds], n)
        chosen = np.flatnonzero(choices)
        received = np.zeros((n, width), dtype=np.uint8)
        masked = np.frombuffer(blob, dtype=np.uint8).reshape(n, width)
        received[chosen] = masked[chosen] ^ _pads(first + chosen, rows[chosen], width)
        return received

    def receive_either(self, number: int, first: int, choices: NDArray[np.bool_], blob: bytes, width: int) -> Bytes:
        """One string of each pair, the second where it was chosen: ``(n, width)``; arguments as in :meth:`receive`."""
        n = len(choices)
        check_length(blob, 2 * n, width, "strings")
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
        rows = self._rows_of(number, n, blob) ^ self._choices  # equals the receiver's row where it chose the string
        return (strings ^ _pads(np.arange(first, first + n), rows, width)).tobytes()

    def send_either(self, number: int, first: int, pairs: Bytes, blob: bytes) -> bytes:
        """Answer message `number`: of each pair, ``(n, 2, width)``, the receiver can read one; else as :meth:`send`."""
        n, _, width = pairs.shape
        rows, numbers = self._rows_of(number, n, blob), np.arange(first, first + n)
        pads = [_pads(numbers, rows, width), _pads(numbers, rows ^ self._choices, width)]
        return (pairs ^ np.stack(pads, axis=1)).tobytes()

    def _rows_of(self, number: int, n: int, blob: bytes) -> Bytes:
        """``(n, 16)``: the receiver's rows where it chose nothing, else those exclusive-or the sender's secret choices."""
        length = -(-n // 8)
        check_length(blob, COLUMNS, length, "columns")
        columns = [_stream(seed, number, length) for seed in self._seeds]
        for j, choice in enumerate(self._bits()):
            if choice:
                columns[j] ^= np.frombuffer(blob, dtype=np.uint8, count=length, offset=j * length)
        return _rows(columns, n)

    def _bits(self) -> list[int]:
        bits: list[int] = np.unpackbits(self._choices).tolist()
        return bits


def _seed(number: int, offer: bytes, reply: bytes, point: bytes) -> bytes:
    return hashlib.sha256(b"glassleaf base transfer" + number.to_bytes(1) + offer + reply + point).digest()


def _stream(seed: bytes, number: int, length: int) -> Bytes:
    stream = hashlib.shake_128(seed + number.to_bytes(8)).digest(length)
    return np.frombuffer(bytearray(stream), dtype=np.uint8)


def _rows(columns: list[Bytes], n: int) -> Bytes:
    """128 columns of ⌈n/8⌉ bytes → ``(n, 16)``."""
    bits = np.unpackbits(np.stack(columns), axis=1, count=n)
    return np.packbits(np.ascontiguousarray(bits.T), axis=1)


def _pads(numbers: NDArray[np.intp], rows: Bytes, width: int) -> Bytes:
    """SHA-256(number, row) of every row, cut to `width` bytes: the correlation-robust hash of IKNP03."""
    inputs = np.empty((len(rows), 8 + COLUMNS // 8), dtype=np.uint8)
    inputs[:, :8] = numbers.astype(">u8")[:, np.newaxis].view(np.uint8)
    inputs[:, 8:] = rows
    data, size, sha256 = inputs.tobytes(), inputs.shape[1], hashlib.sha256
    pads = b"".join([sha256(data[start : start + size]).digest() for start in range(0, len(data), size)])
    return np.frombuffer(pads, dtype=np.uint8).reshape(len(rows), 32)[:, :width]
