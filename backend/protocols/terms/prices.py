"""Upper bounds, in bits, of what answers tell about one person: what is booked before a question is answered.

A bound holds for a Guest that knows every other person's record and lies in its messages. It depends on what was approved and on how
many records there are, never on a value.
"""

from __future__ import annotations

from hashlib import sha256
from math import log2

from backend.store.accountant import EVERYBODY, TABLE, Question

SCORE_BITS = 32.0  # of one honest score: 10 binary digits after the point, up to 22 before it
REASON_BITS = 64.0  # of one honest set of reasons: the names of the four largest among some thousands, and their sides


def column_bits(records: int) -> float:
    """Return what the bins of one feature, of all records, can tell about one person's value.

    Bins are made of the order of values, and a cut is half-way between two of them. As one value moves over the whole line and the others
    stay, the bins of all records change only when it passes another value, or when half the way from another value to it passes a third:
    at most 2·n places (n records). Between and at these are 4·n + 1 outcomes, and a missing value is one more. A category is one of
    those of the others, or a new one: at most n + 2 outcomes.

    Examples
    --------
    >>> round(column_bits(3), 2)
    3.81
    """
    return log2(4 * max(records, 0) + 2)


def training_bits(features: int, records: int) -> float:
    """Return what a training can tell about one person: all of its messages follow from the bins of the features that it uses."""
    return features * column_bits(records)


def training_question(guest: str, request: str, features: int, records: int, *binned: bytes | str) -> Question:
    """Return what is booked for a training before its first answer.

    Parameters
    ----------
    features : int
        Of this Host, without those that are left out.
    binned : bytes or str
        All that the bins follow from besides the records. A training with the same bins tells nothing more, and costs nothing more.
    """
    digest = sha256()
    for part in binned:
        encoded = part if isinstance(part, bytes) else part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    bits = training_bits(features, records)
    return Question(guest, request, TABLE, digest.hexdigest(), (EVERYBODY,), bits, bits)


def usual_max_bits(features: int, records: int) -> float:
    """Return the bits a person and window that a Host allows by default: one approved training, one score and one set of reasons."""
    return training_bits(features, records) + SCORE_BITS + REASON_BITS
