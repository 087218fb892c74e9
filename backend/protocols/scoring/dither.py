"""Dither: a small number that the last Host of the chain adds to every score, so that scores of many people look alike.

Uniform whole numbers of the public scale, one a released slot, from a keyed function of the Host's long-term secret, the structure of
the trees and the person: whoever asks again, or trains the same trees again, gets the same number, so nothing averages out
(docs/decisions/scores.md). Knows no weight and no value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from backend.data.federation import MAX_DITHER
from backend.errors import ParameterError, SecurityError
from backend.trees.ensemble import Layout

# width on a logit, or on what weighs as much: no path of 800 identified at 10 bits, AUC within 0.0001 (docs/attacks.md, A5)
DITHER = 2.0**-4
VARIABLE = "GLASSLEAF_DITHER"
# bytes drawn a number; the largest range takes 2**51 of 2**64, so it is within 2**-13 of uniform at worst, 2**-57 at 10 bits
WORD = 8
MAX_SCALE = 64  # a label whose spread is 2**64 of its units, or 2**-64, is none that anybody predicts
MAX_SLOTS = 1 << 16  # numbers released of a person that a Host takes for possible


def half_units(width: float, bits: int) -> int:
    """Largest number that is added for a range of `width`, in units of 2**-bits; 0 if they are too coarse.

    A width on a logit goes with units of a logit, :attr:`backend.trees.ensemble.Layout.dither_bits`.
    """
    return math.floor(math.ldexp(width, bits - 1))


def headroom(bits: int) -> int:
    """What slots keep free for dither, units of 2**-bits of a logit; no Guest accepts more."""
    return half_units(MAX_DITHER, bits)


def check_layout(layout: Layout, min_digits: int = 0) -> Layout:
    """Return the layout that a Guest reported.

    Parameters
    ----------
    min_digits : int
        The smallest number of binary digits of a score: with fewer, dither has no room and a score would be booked at nearly 0 bits.

    Raises
    ------
    SecurityError
        If no model has such a layout, or a score has too few digits.
    """
    slot_bits = range(1 if layout.slots > 1 else 0, 65)
    fits = 0 <= layout.score_bits <= 53 and layout.slot_bits in slot_bits and 1 <= layout.slots <= MAX_SLOTS
    if not fits or abs(layout.scale) > MAX_SCALE:
        raise SecurityError("impossible_layout")
    if layout.score_bits < min_digits:
        raise SecurityError("few_score_bits", got=layout.score_bits, least=min_digits)
    return layout


def dithers(secret: str, layout: Layout, ids: Sequence[str], has_record: NDArray[np.bool_], half: int) -> list[int]:
    """Return the number that is added to each person's packed score.

    Parameters
    ----------
    secret : str
        The Host's secret, one a structure.
    has_record : ndarray of bool
        ``(n,)``: whether the Host has a record of the person. The Guest may compute the score of a person without a record; the number
        must therefore differ from that after a record is added.
    half : int
        Numbers are uniform from -half to half.

    Returns
    -------
    list of int
        ``n``.
    """
    span = 2 * half + 1
    length = WORD * layout.slots
    numbers = []
    for person, is_known in zip(ids, has_record.tolist(), strict=True):
        digest = shake_256(f"dither\0{secret}\0{int(is_known)}\0{person}".encode()).digest(length)
        packed = 0
        for slot in range(layout.slots):
            word = int.from_bytes(digest[WORD * slot : WORD * (slot + 1)], "little")
            packed += (word % span - half) << (layout.slot_bits * slot)
        numbers.append(packed)
    return numbers


def usual_dither(synthetic: bool) -> float:
    """The width on a logit if nobody names one: ``GLASSLEAF_DITHER``, else the default (synthetic people: none).

    Raises ParameterError if the variable holds no width.
    """
    setting = os.environ.get(VARIABLE, "").strip()
    if not setting:
        return 0.0 if synthetic else DITHER
    try:
        width = float(setting)
    except ValueError:
        width = -1.0
    if not 0.0 <= width <= MAX_DITHER:
        raise ParameterError("dither_not_a_width", variable=VARIABLE, setting=setting, most=MAX_DITHER)
    return width
