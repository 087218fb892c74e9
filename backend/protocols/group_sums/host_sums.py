"""A Host that adds up what it cannot read by groups of its records, or sends its own groups encrypted. Knows no label and no score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import join_pair
from backend.crypto.interface import PairPublicSide
from backend.crypto.paillier.scheme import PaillierPublicSide
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.group_sums.grouping import MIN_GROUP, MOST_GROUPS, Grouped, group, told
from backend.protocols.group_sums.messages import (
    AskGroupPairs,
    AskGroupSums,
    GroupPairs,
    GroupPairsSent,
    GroupSums,
)
from backend.protocols.group_sums.values import pack, slots
from backend.protocols.training.row_sets import unpack_rows


class HostGroups:
    """One conversation about groups at one Host.

    Parameters
    ----------
    table : PartyTable
        The Host's records.
    features : sequence of Feature
    rows : ndarray of int
        The Host's joint rows, in the common order.
    cipher : PairPublicSide
    least : int
        Records of the smallest group that is told.
    """

    def __init__(
        self,
        table: PartyTable,
        features: Sequence[Feature],
        rows: NDArray[np.intp],
        cipher: PairPublicSide,
        least: int = MIN_GROUP,
    ) -> None:
        self._table, self._features, self._rows = table, {f.name: f for f in features}, rows
        self._cipher, self._least = cipher, least
        self._pairs: dict[str, tuple[NDArray[np.intp], list[Any]]] = {}  # sender → rows of the table, batches

    def take_pairs(self, sender: str, message: GroupPairs) -> None:
        """Keep encrypted pairs of some joint records instead of the sender's last ones."""
        rows = self._rows[unpack_rows(message.rows, len(self._rows))]
        self._pairs[sender] = rows, [self._cipher.load_pairs(blob, len(rows)) for blob in message.pairs]

    def sums(self, message: AskGroupSums) -> GroupSums:
        """Sums of a party's pairs by the groups of some features, refreshed; features without groups are left out."""
        if message.source not in self._pairs:
            raise SecurityError(f"Sums were asked for of pairs that {message.source} has not sent.")
        rows, batches = self._pairs[message.source]
        least = max(self._least, message.least)
        grouped = [self._grouped(name, rows, message.most, least) for name in message.features]
        kept = [g for g in grouped if g.groups]
        node = np.arange(len(rows), dtype=np.intp), [(g.index, len(g.groups)) for g in kept]
        return GroupSums(
            message.conversation,
            message.source,
            tuple(g.feature for g in kept),
            tuple(told(g.groups) for g in kept),
            tuple(self._cipher.bin_sums(pairs, [node])[0] for pairs in batches) if kept else (),
        )

    def pairs(self, message: AskGroupPairs) -> tuple[GroupPairs, GroupPairsSent]:
        """Which group of a feature each of some joint records is in, encrypted under the Guest's key, and the groups.

        Every group but the last is a mark of 0 or 1; nothing is encrypted where there are no groups or nobody is to have them.
        """
        rows = self._rows[unpack_rows(message.rows, len(self._rows))]
        grouped = self._grouped(message.feature, rows, message.most, self._least)
        marked = len(grouped.groups) - 1 if message.receivers else 0
        marks = [(grouped.index == k).astype(np.int64) for k in range(marked)]
        pairs = pack(marks, slots([1] * len(marks), len(rows)))
        blobs = tuple(encrypt_as_host(self._cipher, first, second) for first, second in pairs)
        return (
            GroupPairs(message.conversation, message.rows, blobs),
            GroupPairsSent(message.conversation, message.feature, told(grouped.groups)),
        )

    def _grouped(self, name: str, rows: NDArray[np.intp], most: int, least: int) -> Grouped:
        if name not in self._features or not MOST_GROUPS[0] <= most <= MOST_GROUPS[1]:
            raise SecurityError(
                f"Groups were asked for by an unknown feature or in {most} groups ({MOST_GROUPS[0]} to {MOST_GROUPS[1]} can be)."
            )
        return group(self._features[name], self._table.columns[name][rows], most, least)


def encrypt_as_host(cipher: PairPublicSide, first: NDArray[np.int64], second: NDArray[np.int64]) -> bytes:
    """``(n,)`` pairs under the Guest's public key, one fresh ciphertext each."""
    if isinstance(cipher, PaillierPublicSide):
        fresh = cipher.obfuscators.take(len(first))
        joined = (join_pair(int(a), int(b)) for a, b in zip(first, second, strict=True))
        return cipher.key.dump(cipher.key.encrypt_with(m, r) for m, r in zip(joined, fresh, strict=True))
    return PlainKeySide().encrypt_pairs(first, second)
