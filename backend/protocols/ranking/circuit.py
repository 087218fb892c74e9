"""What a ranking computes: the positions of the k largest positive numbers, as a circuit on two parties' shares.

Knows no party, key or label: the circuit runs on whatever gates it gets (:mod:`backend.crypto.garbling`). Each function works on
all n numbers at once; a bit of all of them is one array of n wires.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from backend.crypto.garbling import DECODING, LABEL, TABLE, Gates, PlainGates, Wires
from backend.protocols.ranking.shape import RankingShape


def select(
    gates: Gates,
    left: Wires,
    right: Wires,
    k: int,
    max_names: int = 0,
    groups: Sequence[int] = (),
    ranked: Wires | None = None,
) -> Wires:
    """Return whether each number is among the k largest, of those whose highest bit is 1.

    Parameters
    ----------
    left, right : Wires, ``(width, n, words)``
        Two shares of each number, lowest bit first: the number is their sum modulo 2^width. No two numbers are equal.
    max_names, groups : int, sequence of int
        If there are groups, ``(n,)``: as many numbers are chosen as belong to k of them, `max_names` at the most, and k at least.
    ranked : Wires, ``(n, words)``, optional
        Whether each number is ranked at all; the place of one that is not goes to the next.

    Returns
    -------
    Wires, ``(n, words)``
    """
    *bits, alive = add(gates, left, right)
    if ranked is not None:
        alive = gates.both(alive, ranked)
    is_chosen = _largest(gates, bits, alive, k)
    for more in range(k + 1, min(max_names, len(alive)) + 1):
        larger = _largest(gates, bits, alive, more)
        met = np.concatenate([_any(gates, larger[np.array(groups) == group]) for group in dict.fromkeys(groups)])
        if len(met) > k:
            fits = gates.flip(exceeds(gates, count(gates, met), k))
        else:
            fits = gates.flip(met[:1] ^ met[:1])
        # The sets grow, and so do their groups: if one set does not fit, no larger one does.
        is_chosen = is_chosen ^ gates.both(is_chosen ^ larger, _spread(fits, len(larger)))
    return is_chosen


def _any(gates: Gates, bits: Wires) -> Wires:
    """Return whether one of ``(m, words)`` bits is 1, ``(1, words)``."""
    any_set = bits[:1]
    for i in range(1, len(bits)):
        any_set = any_set ^ bits[i : i + 1] ^ gates.both(any_set, bits[i : i + 1])
    return any_set


def _largest(gates: Gates, bits: Sequence[Wires], alive: Wires, k: int) -> Wires:
    """Return the k numbers with the largest `bits`, lowest bit first, of those `alive`."""
    if k >= len(alive):
        return alive
    is_chosen = alive[:0]
    for bit in [*reversed(bits), None]:
        ones = alive if bit is None else gates.both(alive, bit)  # at the end at most one is undecided, for all differ
        fits = gates.flip(exceeds(gates, count(gates, is_chosen ^ ones if len(is_chosen) else ones), k))
        settled, undecided = np.split(gates.both(np.concatenate([ones, alive]), _spread(fits, 2 * len(alive))), 2)
        is_chosen = is_chosen ^ settled if len(is_chosen) else settled
        alive = ones ^ undecided  # if they fit, numbers with 0 stay undecided; if not, they are out
    return is_chosen


def eligible(gates: Gates, signs: tuple[Wires, Wires], guest_shares: Wires, host_shares: Wires) -> Wires:
    """Return whether each number's second number is above 0, and its value is on the side asked about or no side is asked about.

    Parameters
    ----------
    signs : two Wires, ``(width, n, words)`` each
        Two shares of the second numbers, whose highest bit is 1 if they are above 0.
    guest_shares : Wires, ``(4, n, words)``
        The Guest's shares of *above* and *below*; whether it asks about below; whether it asks about neither.
    host_shares : Wires, ``(2, n, words)``
        The Host's shares of above and below.
    """
    *_, positive = add(gates, *signs)
    above = guest_shares[0] ^ host_shares[0]
    below = guest_shares[1] ^ host_shares[1]
    side = above ^ gates.both(guest_shares[2], above ^ below)
    true = gates.both(positive, side)
    either: Wires = true ^ guest_shares[3] ^ gates.both(true, guest_shares[3])
    return either


def outputs(gates: Gates, left: Wires, right: Wires, shape: RankingShape) -> Wires:
    """Return the circuit's outputs, ``(n, words)``, on each side's wires in a row: :func:`select`, if marked of :func:`eligible` numbers.

    Parameters
    ----------
    left, right : Wires, ``(inputs, words)``
        The Guest's and the Host's: shares of the numbers; where marked, shares of the second numbers, then the sides.
    """
    width = shape.width
    n = shape.n
    words = left.shape[1]
    numbers = [side[: width * n].reshape(width, n, words) for side in (left, right)]
    ranked = None
    if shape.marked:
        signs = left[width * n : 2 * width * n], right[width * n : 2 * width * n]
        guest_sides, host_sides = (side[2 * width * n :].reshape(-1, n, words) for side in (left, right))
        both = signs[0].reshape(width, n, words), signs[1].reshape(width, n, words)
        ranked = eligible(gates, both, guest_sides, host_sides)
    return select(gates, numbers[0], numbers[1], shape.k, shape.max_names, shape.groups, ranked)


def add(gates: Gates, left: Wires, right: Wires) -> list[Wires]:
    """Return sums modulo 2^width, ``width`` times ``(n, words)``; they take one and-gate for each bit except the last."""
    sums = [left[0] ^ right[0]]
    carry = gates.both(left[0], right[0])
    for i in range(1, len(left)):
        a = left[i] ^ carry
        b = right[i] ^ carry
        sums.append(a ^ right[i])
        if i + 1 < len(left):
            carry = carry ^ gates.both(a, b)
    return sums


def count(gates: Gates, bits: Wires) -> list[Wires]:
    """Count the ones of ``(n, words)`` bits: binary digits, lowest first, ``(1, words)`` each; full adders of one and-gate."""
    digits: list[Wires] = []
    while len(bits):
        carries = []
        while len(bits) > 2:
            third = len(bits) // 3
            a, b, c, remaining = np.split(bits, [third, 2 * third, 3 * third])
            carries.append(a ^ gates.both(a ^ b, a ^ c))
            bits = np.concatenate([a ^ b ^ c, remaining])
        if len(bits) == 2:
            carries.append(gates.both(bits[:1], bits[1:]))
            bits = bits[:1] ^ bits[1:]
        digits.append(bits)
        bits = np.concatenate(carries) if carries else bits[:0]
    return digits


def exceeds(gates: Gates, digits: Sequence[Wires], k: int) -> Wires:
    """Whether a number is larger than the known `k`, of fewer digits or with a 0 among as many: ``(1, words)``."""
    lowest = next(i for i in range(len(digits)) if not k >> i & 1)
    more = digits[lowest]
    for i in range(lowest + 1, len(digits)):
        both = gates.both(more, digits[i])
        more = both if k >> i & 1 else more ^ digits[i] ^ both
    return more


def _spread(wire: Wires, n: int) -> Wires:
    return np.broadcast_to(wire, (n, wire.shape[1]))


@lru_cache(maxsize=64)
def gates_needed(shape: RankingShape) -> int:
    """Return the number of and-gates of :func:`outputs`; it depends on the sizes alone."""
    plain = PlainGates()
    left, right = (np.zeros((count, 1), dtype=np.uint64) for count in shape.inputs)
    outputs(plain, left, right, shape)
    return plain.gates


def lengths(shape: RankingShape) -> tuple[int, ...]:
    """Return the bytes of the four parts of the last message: the Guest's labels (transferred), the Host's, gates, decoding."""
    guest_inputs, host_inputs = shape.inputs
    return 2 * LABEL * guest_inputs, LABEL * host_inputs, TABLE * gates_needed(shape), DECODING * shape.n
