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


def check_layout(layout: Layout, least: int = 0) -> Layout:
    """Return the layout that a Guest reported.

    Parameters
    ----------
    least : int
        Fewest binary digits of a score: with fewer the dither has no room, and a score is booked at next to nothing.

    Raises
    ------
    SecurityError
        If no model has such a layout, or a score has too few digits.
    """
    slot_bits = range(1 if layout.slots > 1 else 0, 65)
    fits = 0 <= layout.score_bits <= 53 and layout.slot_bits in slot_bits and 1 <= layout.slots <= MAX_SLOTS
    if not fits or abs(layout.scale) > MAX_SCALE:
        raise SecurityError("impossible_layout")
    if layout.score_bits < least:
        raise SecurityError("few_score_bits", got=layout.score_bits, least=least)
    return layout


def dithers(secret: str, layout: Layout, ids: Sequence[str], held: NDArray[np.bool_], half: int) -> list[int]:
    """What is added to each person's packed score.

    Parameters
    ----------
    secret : str
        The Host's alone, one a structure.
    held : ndarray of bool
        ``(n,)``: who has a record here. Others' scores the Guest may work out; their number must not be that of a later record.
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
    for person, known in zip(ids, held.tolist(), strict=True):
        drawn = shake_256(f"dither\0{secret}\0{int(known)}\0{person}".encode()).digest(length)
        packed = 0
        for slot in range(layout.slots):
            word = int.from_bytes(drawn[WORD * slot : WORD * (slot + 1)], "little")
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
