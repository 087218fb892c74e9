"""Numbers on the wire are integers at one public scale, so no exponent travels (a per-number exponent would show zeros and sizes)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backend.errors import ParameterError

# |g| ≤ 1 and 0 ≤ h ≤ 1 become integers of 2**-30 (larger ones are first divided by a power of two that only the Guest knows);
# float32, which XGBoost's histograms use, has 24 bits
GRADIENT_BITS = 30
HALF_SLOT = 56  # bits for a sum of hessians: 2**30 · 2**26 rows; a signed (Σg, Σh) pair takes two of them, |Σg| < 2**55
QUANTISED_BITS = 53  # units beyond which float64 is no longer exact
MAX_ROWS = 1 << 22  # sums stay below 2**53, so float64 accumulators hold them exactly


def quantise(values: ArrayLike, bits: int) -> NDArray[np.int64]:
    """Round to the nearest multiple of 2**-bits.

    Parameters
    ----------
    values : array_like of float
        Any shape; logits or gradients.
    bits : int
        Public scale.

    Returns
    -------
    ndarray of int64
        Same shape; each is off by at most 2**-(bits+1).

    Raises
    ------
    ParameterError
        A value is not a number, or beyond 2**QUANTISED_BITS units.
    """
    units = np.rint(np.asarray(values, dtype=np.float64) * float(1 << bits))
    if not np.all(np.abs(units) <= float(1 << QUANTISED_BITS)):  # false for NaN, too
        worst = np.asarray(values, dtype=np.float64).ravel()[np.argmax(np.nan_to_num(np.abs(units), nan=np.inf))]
        raise ParameterError("value_exceeds_scale", value=float(worst), bits=bits, room=QUANTISED_BITS - bits)
    return units.astype(np.int64)


def quantise_weights(weights: ArrayLike) -> tuple[NDArray[np.int64], float]:
    """Return sample weights as whole numbers, to be added up under encryption.

    Parameters
    ----------
    weights : array_like of float
        ``(n,)``, above 0.

    Returns
    -------
    ndarray of int64
        ``(n,)``, at most 2**GRADIENT_BITS each, so that sums of MAX_ROWS of them stay below 2**53.
    float
        What one unit weighs: a power of two, so that whole weights stay exact.

    Examples
    --------
    >>> numbers, unit = quantise_weights([1.0, 3.0])
    >>> (numbers * unit).tolist()
    [1.0, 3.0]
    """
    values = np.asarray(weights, dtype=np.float64)
    unit = float(2.0 ** (np.ceil(np.log2(values.max())) - GRADIENT_BITS))
    return quantise(values / unit, 0), unit


def hidden_above(width: int, room: int) -> int:
    """Return how many multiples of 2^width fit above a number of `width` bits modulo `room`; 0 = there is no room to hide anything.

    Half of 2^width stays free: a signed number stays below `room`, and so does one of half as many values that carries a number from
    -3/4 to 1/4 of 2^width, which binds a score to its request. If nothing fits, `room` is less than 1.5 times 2^width.

    Examples
    --------
    >>> hidden_above(4, 1 << 10)
    63
    """
    return max(0, (room - (1 << (width - 1))) >> width)


def narrow(number: int, width: int) -> int:
    """Return the signed number in the lowest `width` bits.

    Examples
    --------
    >>> narrow((5 << 8) - 3, 8)
    -3
    """
    half = 1 << (width - 1)
    return (number + half) % (2 * half) - half


def centred(number: int, modulus: int) -> int:
    """Return a residue from 0 to `modulus` - 1 as the number from -modulus/2 to modulus/2.

    Examples
    --------
    >>> centred(253, 256)
    -3
    """
    return number - modulus if 2 * number >= modulus else number


def half_slot(rows: int) -> int:
    """Bits of half a pair's slot, if no more than so many rows are ever added up: what is shorter is packed and decrypted sooner."""
    return GRADIENT_BITS + rows.bit_length() + 1


def longest_half(bits: int) -> int:
    """Bits of half a pair, as long as a plaintext of a key of `bits` holds it; 0 = nothing is encrypted, so both halves are int64."""
    return (bits - 2) // 2 if bits else GRADIENT_BITS


def join_pair(g: int, h: int, half: int = HALF_SLOT) -> int:
    """One integer that holds a signed gradient and a non-negative hessian; sums of joined pairs are joined sums.

    Parameters
    ----------
    half : int
        Bits of half a slot, as of :func:`half_slot`.

    Raises ParameterError if one of them is so large that :data:`MAX_ROWS` of them could overflow their slot.
    """
    if abs(g) > 1 << GRADIENT_BITS or not 0 <= h <= 1 << GRADIENT_BITS:
        raise ParameterError("pair_exceeds_scale", g=g, h=h, bits=GRADIENT_BITS)
    return (g << half) + h


def split_pair(joined: int, half: int = HALF_SLOT) -> tuple[int, int]:
    """Inverse of :func:`join_pair` for sums: ``(Σg, Σh)``."""
    h = joined & ((1 << half) - 1)
    return (joined - h) >> half, h


def split_slots(packed: int, count: int, slot: int) -> list[int]:
    """Read `count` signed integers of `slot` bits from one plaintext, lowest slot first."""
    values = []
    for _ in range(count):
        low = packed & ((1 << slot) - 1)
        if low >> (slot - 1):
            low -= 1 << slot
        values.append(low)
        packed = (packed - low) >> slot
    return values
