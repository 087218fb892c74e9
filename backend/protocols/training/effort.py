"""How long the parts of a training take beside each other, so that its progress is even. Relative: only their ratios matter.

Measured in seconds of processor time, on the demo and on 30,000 credit-card clients, on one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from backend.crypto.costs import BITS, POWER, costs_of
from backend.crypto.interface import TrainingKeySide
from backend.crypto.paillier.scheme import PaillierKeySide

HIDING = 4.8e-5  # seconds to hash an id to the group, or to multiply it
BIN = 1e-3  # seconds to pack, refresh and decrypt the sums of a bin under a Paillier key of 3,072 bits
# seconds of a node's sums for each of its rows, and whatever its rows, where they do not grow with the Hosts' features
ROW = {"none": 6e-6, "rlwe": 2e-5}
NODE = {"none": 0.009, "rlwe": 0.15}
FIRST = 0.75  # seconds of the first sums under RLWE
LOCKSTEP = 1 / 3  # of what trees take one after the other, where a forest's nodes are summed together
STORING = 0.5  # seconds: the model stored, and what its scores give away measured on a fixed number of people


def aligning(ids: int, hosts: int) -> float:
    """Seconds to align: each id is hashed and blinded once, and for each Host evaluated, opened, and the Host's own hashed and listed."""
    return HIDING * ids * (2 + 4 * hosts)


def is_first(key: TrainingKeySide | None) -> bool:
    """Whether something is made with the first trees under a key that later ones find made."""
    return key.is_new if isinstance(key, PaillierKeySide) else key is not None and key.scheme == "rlwe"


@dataclass(frozen=True)
class TreeEffort:
    """What growing trees takes.

    Attributes
    ----------
    cipher : str
        As the parameters name it.
    bits : int
        Of a Paillier key.
    rows, features, bins : int
        That trees grow on, the Hosts' features, and bins of each.
    hosts : int
        That hold them.
    first : bool
        Whether tables for obfuscators are made with these trees, or what RLWE makes once.
    """

    cipher: str
    bits: int
    rows: int
    features: int
    bins: int
    depth: int
    hosts: int
    first: bool = False

    @property
    def sending(self) -> float:
        """Seconds to encrypt one batch of pairs; under RLWE each node's rows are encrypted with its sums."""
        costs = costs_of(self.cipher, self.bits)
        return self.rows * costs.encrypt + self.first * costs.tables if self._paillier else 0.0

    @property
    def _paillier(self) -> bool:
        return self.cipher.startswith("paillier")

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Seconds of sums: the root's, then each level's children's, of whom the smaller one of two is asked for."""
        costs = costs_of(self.cipher, self.bits)
        if self._paillier:
            row, node = self.features * costs.add, self.features * self.bins * BIN * (self.bits / BITS) ** POWER
        else:
            row, node = ROW.get(self.cipher, ROW["none"]), NODE.get(self.cipher, NODE["none"])
        children = (self.rows / 2 * row + 2 ** (level - 1) * node for level in range(1, self.depth))
        once = self.first * (self.hosts * costs.public_tables if self._paillier else FIRST * (self.cipher == "rlwe"))
        return (self.rows * row + node + once, *children)

    @property
    def growing(self) -> float:
        """Seconds of one tree once its pairs are sent."""
        return sum(self.levels)
