"""Slots to coefficients: the inverse number-theoretic transform modulo t by two products of matrices, in float64 and yet exact.

A plaintext's slots are its values at the odd powers of a 2N-th root of unity modulo t, in the order of SEAL's encoder. With N = A·B the
transform of size N falls into transforms of size A, twiddle factors, and transforms of size B (Cooley and Tukey 1965). All numbers are
kept between -t/2 and t/2, and every sum stays below 2^50, so that no product, sum or quotient is rounded wrongly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import IntArray

EXACT = 1 << 50  # below it x/t in float64 is nearer to its true value than to the next half
LARGEST = 1 << 25  # t, so that a digit of 13 bits times a number, added up, stays below that
DIGIT = 12  # bits of a low digit
# products of a multiplication up to which OpenBLAS starts no thread (its interface/gemm.c: 4 · 65,536)
SERIAL_PRODUCTS = 1 << 18
Floats = NDArray[np.float64]


class SlotTransform:
    """For one N and t; holds no secret.

    Parameters
    ----------
    degree : int
        N, a power of two.
    modulus : int
        t < :data:`LARGEST`, prime, 1 mod 2N.
    """

    def __init__(self, degree: int, modulus: int) -> None:
        self._degree = degree
        self._t = float(modulus)
        rows = 1 << ((degree.bit_length()) // 2)
        columns = degree // rows
        powers = np.ones(2 * degree, dtype=np.int64)  # of 1/root; all below 2^25, so a product fits
        inverse = pow(_smallest_root(degree, modulus), -1, modulus)
        for i in range(1, 2 * degree):
            powers[i] = int(powers[i - 1]) * inverse % modulus
        j = np.arange(rows)
        k = np.arange(columns)
        inverse_degree = pow(degree, -1, modulus)
        self._first = _digits(powers[2 * columns * np.outer(j, j) % (2 * degree)], modulus, rows)
        self._twiddle = _centred(powers[(2 * np.outer(j, k) + j[:, None]) % (2 * degree)], modulus)
        self._second = _digits(
            powers[(2 * np.outer(k, k) + k[:, None]) * rows % (2 * degree)] * inverse_degree % modulus, modulus, columns
        )
        self._order = _order(degree)

    def coefficients(self, slots: IntArray) -> IntArray:
        """Return ``(N,)`` coefficients from -t/2 to t/2 for ``(k,)`` slots, k ≤ N, below 2^50 in absolute value."""
        values = np.zeros(self._degree)
        values[self._order[: len(slots)]] = slots
        by_row = self._times(self._first, self._reduced(values).reshape(len(self._twiddle), -1)) * self._twiddle
        by_column = self._times(self._second, self._reduced(by_row).T)
        return by_column.ravel().astype(np.int64)

    def _times(self, digits: Floats, numbers: Floats) -> Floats:
        """A matrix, given as its digits one above the other, times `numbers` modulo t.

        In slices, each on the calling thread: processes that transform at once would each wait for threads of its matrix library while
        those of the others keep the cores, for longer than the multiplication takes.
        """
        size = digits.shape[1]
        slices = max(1, digits.size * numbers.shape[1] // SERIAL_PRODUCTS)
        product = (digits.reshape(slices, -1, size) @ numbers).reshape(len(digits), -1)
        if len(product) == size:
            return self._reduced(product)
        return self._reduced(self._reduced(product[size:]) * (1 << DIGIT) + product[:size])

    def _reduced(self, numbers: Floats) -> Floats:
        numbers -= np.rint(numbers * (1 / self._t)) * self._t
        return numbers


@lru_cache(maxsize=16)
def slot_transform(degree: int, modulus: int) -> SlotTransform:
    """The transform of a set, made once."""
    return SlotTransform(degree, modulus)


def _smallest_root(degree: int, modulus: int) -> int:
    """SEAL's choice among the primitive 2N-th roots of unity: the least."""
    root = next(
        root
        for base in range(2, modulus)
        if pow(root := pow(base, (modulus - 1) // (2 * degree), modulus), degree, modulus) == modulus - 1
    )
    smallest = root
    power = root
    square = root * root % modulus
    for _ in range(degree - 1):
        power = power * square % modulus
        smallest = min(smallest, power)
    return smallest


def _order(degree: int) -> NDArray[np.intp]:
    """Where each slot lies among the odd powers: those of SEAL's first row are at 3^i, those of the second at -3^i."""
    power = 1
    first = np.empty(degree // 2, dtype=np.intp)
    for i in range(degree // 2):
        first[i] = power
        power = power * 3 % (2 * degree)
    return np.concatenate([first, 2 * degree - first]) // 2


def _centred(numbers: IntArray, modulus: int) -> Floats:
    return np.where(numbers > modulus // 2, numbers - modulus, numbers).astype(np.float64)


def _digits(matrix: IntArray, modulus: int, terms: int) -> Floats:
    """One digit where sums of `terms` products stay exact as they are, else a low and a high one, the low one above."""
    centred = _centred(matrix, modulus)
    if (modulus // 2) ** 2 * terms < EXACT:
        return centred
    high = np.rint(centred / (1 << DIGIT))
    return np.concatenate([centred - high * (1 << DIGIT), high])
