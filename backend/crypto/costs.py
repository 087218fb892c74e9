"""What one operation of a cipher costs: seconds of one core, measured once. How long work takes is foretold by their ratios.

Measured in seconds of processor time on one machine (Intel Xeon) with a Paillier key of 3,072 bits; RLWE per number in a slot.
What is made once is as in a quiet course of 100 scores under a new key.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

BITS = 3072
POWER = 2.5  # of the length of a key, with which a Paillier operation's cost grows


@dataclass(frozen=True)
class Costs:
    """Seconds of one core.

    Attributes
    ----------
    encrypt : float
        A number, at the key owner.
    add : float
        A ciphertext to another, at a Host.
    refresh : float
        A ciphertext before it leaves a Host.
    decrypt : float
        A ciphertext.
    tables, public_tables : float
        What is made once a key, at its owner and at each Host: seconds by the clock, for it is made on one core at a time while all
        else waits.
    """

    encrypt: float
    add: float
    refresh: float
    decrypt: float
    tables: float = 0.0
    public_tables: float = 0.0


_COSTS = {
    "paillier": Costs(9.3e-4, 1.06e-5, 5.0e-3, 9.1e-3, 3.8, 2.9),
    "paillier-short": Costs(4.0e-4, 1.06e-5, 5.0e-3, 9.1e-3, 3.3, 2.9),
    "rlwe": Costs(2.3e-7, 1.5e-7, 0.0, 1e-6),
}
_PLAIN = Costs(1e-9, 1e-9, 0.0, 1e-9)


def costs_of(scheme: str, bits: int) -> Costs:
    """Of a cipher; of plaintext where the scheme is none of ours."""
    costs = _COSTS.get(scheme, _PLAIN)
    return (
        Costs(*(cost * (bits / BITS) ** POWER for cost in astuple(costs))) if scheme.startswith("paillier") else costs
    )
