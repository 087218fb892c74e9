"""How long the parts of a training take beside each other, so that its progress is even. Relative: only their ratios matter.

Measured on the demo and on 30,000 credit-card clients, on one machine.
"""

from __future__ import annotations

ID = 0.9e-3  # seconds to align an id with one Host
PAIR = {"paillier": 29e-3}  # seconds to encrypt a row's pair with a key of 3,072 bits
KEY_BITS = 3072
LEVEL, ROW = 0.03, 6e-6  # seconds a level of a tree: whatever its rows, and for each of them
# times as long a level takes where sums are encrypted; RLWE encrypts level by level
ENCRYPTED = {"paillier": 10.0, "rlwe": 12.0}
STORING = 2.0  # seconds: the model stored, and what its scores give away measured on a fixed number of people


def aligning(ids: int, hosts: int) -> float:
    """Seconds to align."""
    return ID * ids * hosts


def sending(scheme: str, bits: int, rows: int) -> float:
    """Seconds to encrypt one batch of pairs."""
    return PAIR.get(scheme, 0.0) * (bits / KEY_BITS) ** 2 * rows


def growing(scheme: str, rows: int, depth: int) -> float:
    """Seconds to grow one tree once its pairs are sent."""
    return (LEVEL + ROW * rows) * ENCRYPTED.get(scheme, 1.0) * depth


def sending_share(scheme: str, bits: int, rows: int, depth: int, trees: int) -> float:
    """Share of the time of `trees`, grown from one batch of pairs, that encrypting it takes."""
    first = sending(scheme, bits, rows)
    return first / (first + trees * growing(scheme, rows, depth))
