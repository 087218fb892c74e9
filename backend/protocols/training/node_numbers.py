"""How the channels of a tree become few numbers a row where a node's rows are encrypted by themselves (RLWE). Pure arithmetic.

Gradients and hessians take a number each. Flags, 0 or 1, share one: sums of n flags are digits to the base n + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class NodeNumbers:
    """Which channels are in which number, lowest digit first; `base` is the rows that could be added up, plus 1."""

    channels: tuple[tuple[int, ...], ...]
    base: int

    @classmethod
    def of(cls, flags: Sequence[bool], rows: int, digits: int) -> NodeNumbers:
        """Channels in order; up to `digits` that are flags share a number.

        Parameters
        ----------
        flags : sequence of bool
            Which channels hold nothing but 0 and 1.
        rows : int
            Most that can be added up.
        """
        alone = [(c,) for c, flag in enumerate(flags) if not flag]
        flagged = [c for c, flag in enumerate(flags) if flag]
        shared = [tuple(flagged[i : i + digits]) for i in range(0, len(flagged), digits)]
        return cls((*alone, *shared), rows + 1)

    def join(self, values: IntArray) -> IntArray:
        """``(channels, n)`` → ``(numbers, n)``."""
        joined = []
        for number in self.channels:
            joined.append(sum(values[c] * self.base**i for i, c in enumerate(number)))
        return np.array(joined, dtype=np.int64)

    def split(self, sums: IntArray) -> IntArray:
        """Sums of joined numbers, ``(numbers, n)``, as sums of channels, ``(channels, n)``."""
        out = np.empty((sum(map(len, self.channels)), sums.shape[1]), dtype=np.int64)
        for number, total in zip(self.channels, sums, strict=True):
            for i, c in enumerate(number):
                out[c] = total // self.base**i
                if c != number[-1]:
                    out[c] %= self.base
        return out
