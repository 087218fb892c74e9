"""Draws from the bounded discrete Laplace distribution without any rounding error. Knows numbers, no party and no column.

``Pr[y | x] ∝ exp(-ε·|y - x|/2)`` on ``0 … size-1`` is the exponential mechanism with the distance as its utility (Global-Map), and
also the discrete Laplace distribution of scale 2/ε truncated to the domain by rejection: one distribution, two samplers.

How a draw stays exact: U is uniform on [0, 1) and y the number of k with F(k) ≤ U (inverse transform). Of U only 64 bits are drawn at
first and compared with the integers ⌊F(k)·2^64⌋, computed with directed rounding (MPFR) and certified. Bits that equal one of these
integers decide nothing yet, so 64 more are drawn and compared at the higher precision. This terminates: F(k) is irrational for
k < size-1, since exp(-ε/2) is transcendental for a rational ε > 0 (Lindemann), so some precision always separates them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import gmpy2
import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Words = Callable[[int], NDArray[np.uint64]]  # how many → that many uniform, independent 64-bit words
Mechanism = Literal["exponential", "laplace"]

WORD = 64  # bits drawn at a time
GUARD = 128  # bits of precision beyond those compared; a certificate fails with probability < 2**-100 and is then tried again


def system_words(count: int) -> NDArray[np.uint64]:
    """``(count,)`` words of the operating system's generator."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class Sampler:
    """One distribution for each true value of a domain.

    Parameters
    ----------
    epsilon : Fraction
        Privacy for each step of distance: outputs of x and x' differ in probability by at most e^(ε·|x - x'|).
    size : int
        The domain is 0 … size-1.
    mechanism : {"exponential", "laplace"}
        ``exponential`` holds a table for every true value and never redraws; ``laplace`` holds one table and redraws whatever falls
        outside (less than half), so the number of draws discloses a little about how many values lie at an edge.
    """

    def __init__(self, epsilon: Fraction, size: int, mechanism: Mechanism) -> None:
        self._epsilon = epsilon
        self._size = size
        self._mechanism = mechanism

    def draw(self, values: IntArray, words: Words = system_words) -> IntArray:
        """Noisy values, each in 0 … size-1.

        Parameters
        ----------
        values : ndarray of int64
            ``(n,)`` true values in 0 … size-1.
        words : callable
            Uniform words; tests give seeded ones.

        Returns
        -------
        ndarray of int64
            ``(n,)``, independent of each other.
        """
        if self._mechanism == "exponential":
            return self._from_own_tables(values, words)
        return self._by_rejection(values, words)

    def _from_own_tables(self, values: IntArray, words: Words) -> IntArray:
        # Global-Map's exponential mechanism, whose utility is the distance
        random_words = words(len(values))
        noisy = np.empty_like(values)
        for anchor in range(self._size):
            rows = np.flatnonzero(values == anchor)
            noisy[rows] = _inverted(self._epsilon, self._size, anchor, random_words[rows], words)
        return noisy

    def _by_rejection(self, values: IntArray, words: Words) -> IntArray:
        """Steps longer than size-1 would always be rejected, so the table omits them; that changes no accepted draw."""
        noisy = values.copy()
        reach = self._size - 1
        waiting = np.arange(len(values))
        while len(waiting):
            # Lap_Z(λ): Pr[z] = (e^(1/λ) - 1)/(e^(1/λ) + 1)·e^(-|z|/λ), here with λ = 2/ε (docs/opboost.md says why not 1/ε)
            steps = _inverted(self._epsilon, 2 * reach + 1, reach, words(len(waiting)), words) - reach
            candidates = values[waiting] + steps
            inside = (candidates >= 0) & (candidates < self._size)
            noisy[waiting[inside]] = candidates[inside]
            waiting = waiting[~inside]  # drawn again, as the paper does
        return noisy


def _inverted(epsilon: Fraction, size: int, anchor: int, random_words: NDArray[np.uint64], words: Words) -> IntArray:
    """Return the y of each U, of which the first 64 bits are given."""
    table = _table(epsilon, size, anchor)
    drawn_levels = np.searchsorted(table, random_words, side="left").astype(np.int64)
    inside = np.flatnonzero(drawn_levels < len(table))
    for i in inside[table[drawn_levels[inside]] == random_words[inside]]:
        drawn_levels[i] = _with_more_bits(epsilon, size, anchor, int(random_words[i]), words)
    return drawn_levels


def _with_more_bits(epsilon: Fraction, size: int, anchor: int, known_bits: int, words: Words) -> int:
    """Draw more bits until they differ from every F(k) at their precision."""
    bits = WORD
    while True:
        known_bits = known_bits << WORD | int(words(1)[0])
        bits = bits + WORD
        floors = thresholds(epsilon, size, anchor, bits)
        if known_bits not in floors:
            return sum(floor < known_bits for floor in floors)


@lru_cache(maxsize=1 << 13)
def _table(epsilon: Fraction, size: int, anchor: int) -> NDArray[np.uint64]:
    return np.array(thresholds(epsilon, size, anchor, WORD), dtype=np.uint64)


def thresholds(epsilon: Fraction, size: int, anchor: int, bits: int) -> list[int]:
    """⌊F(k)·2^bits⌋ for k = 0 … size-2, where F(k) = Pr[y ≤ k | anchor]; certified, whatever the precision it took.

    Parameters
    ----------
    size, anchor : int
        Domain 0 … size-1, and the true value.
    """
    precision = bits + GUARD
    while True:
        low, high = (_floors(epsilon, size, anchor, bits, precision, up) for up in (False, True))
        if low == high:
            return low
        precision *= 2


def _floors(epsilon: Fraction, size: int, anchor: int, bits: int, precision: int, up: bool) -> list[int]:
    """Return bounds from below or from above: sums of the weights rounded one way, over their total rounded the other way."""
    sums = _sums(epsilon, max(anchor, size - 1 - anchor), precision, up)
    opposite_sums = _sums(epsilon, max(anchor, size - 1 - anchor), precision, not up)
    total = opposite_sums[anchor + 1] + opposite_sums[size - anchor] - opposite_sums[1]
    cumulated = sums[anchor + 1]
    below = [
        cumulated - sums[anchor - k] for k in range(min(anchor, size - 1))
    ]  # k < anchor: distances anchor-k … anchor
    above = [cumulated + sums[k - anchor + 1] - sums[1] for k in range(anchor, size - 1)]
    largest = (1 << bits) - 1  # F(k) < 1 for k < size-1
    return [min(int((part << bits) // total), largest) for part in below + above]


@lru_cache(maxsize=64)
def _sums(epsilon: Fraction, reach: int, precision: int, up: bool) -> list[Any]:
    """Return bounds of Σ_{j<m} exp(-ε·j/2)·2^precision for m = 0 … reach+1, as integers."""
    if up:
        direction = gmpy2.RoundUp
        to_integer = gmpy2.ceil
    else:
        direction = gmpy2.RoundDown
        to_integer = gmpy2.floor
    sums = [gmpy2.mpz(0)]
    with gmpy2.context(precision=precision + WORD, round=direction):
        for j in range(reach + 1):
            weight = gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(-epsilon * j / 2)))
            sums.append(sums[-1] + gmpy2.mpz(to_integer(gmpy2.mul_2exp(weight, precision))))
    return sums
