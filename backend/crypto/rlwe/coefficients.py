"""Sums by bin as coefficients of polynomial products modulo X^N + 1: how rows and bins lie. Knows no key and no ciphertext.

A block is s rows. Their numbers are g(X) = Σ g_i·X^i; a Host's 0/1 polynomial b(X) = Σ_j Σ_{i in bin j} X^(j·s + s−1−i) holds k = N // s
bins. Coefficient j·s + s−1 of g·b is Σ g_i over bin j and nothing else: i − i' is a multiple of s only if i = i', and what wraps round
at N ends below s−1. Products of all blocks are added up, so that a reply holds k bins of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.crypto.interface import BinIndex
from backend.errors import SecurityError

BLOCKS = tuple(1 << i for i in range(4, 13))  # rows of a block: 16 to 4,096
# ms on one core (2.6 GHz Xeon, two primes): a block encrypted and read, a reply made and decrypted, a 0/1 polynomial transformed, a product
UPLOAD = 1.3
REPLY = 3.2
MASK = 0.35
PRODUCT = 0.17


def groups(counts: Sequence[int], block: int, degree: int, max_features: int) -> list[range]:
    """Consecutive bins that share a reply.

    Parameters
    ----------
    counts : sequence of int
        Bins of each feature; bins are numbered through all of them.
    block : int
        s.
    max_features : int
        Features that a reply may have bins of: every one adds a ciphertext a row to its noise.
    """
    edges = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.intp))])
    out: list[range] = []
    start = 0
    while start < edges[-1]:
        feature = int(np.searchsorted(edges, start, "right")) - 1
        stop = min(start + degree // block, int(edges[min(feature + max_features, len(counts))]))
        out.append(range(start, stop))
        start = stop
    return out


def blocks(rows: int, block: int) -> list[slice]:
    """The rows of each block; one empty block if there are none."""
    return [slice(i, min(i + block, rows)) for i in range(0, max(1, rows), block)]


def mask_positions(places: NDArray[np.intp], group: range, block: int) -> NDArray[np.intp]:
    """Where b(X) is 1.

    Parameters
    ----------
    places : ndarray of int
        ``(features, rows)``: the bin of each row of one block, numbered through all features.
    """
    feature, row = np.nonzero((places >= group.start) & (places < group.stop))
    return (places[feature, row] - group.start) * block + block - 1 - row


def sum_positions(group: range, block: int) -> NDArray[np.intp]:
    """``(len(group),)``: the coefficients that are the sums of a group's bins."""
    return np.arange(len(group)) * block + block - 1


def places_of(bins: BinIndex) -> NDArray[np.intp]:
    """``(features, rows)``: the bin of every row, numbered through all features."""
    edges = np.concatenate([[0], np.cumsum([count for _, count in bins])[:-1]]).astype(np.intp)
    return np.array([index for index, _ in bins], dtype=np.intp) + edges[:, None]


def best_block(rows: int, hosts: Sequence[Sequence[int]], numbers: int, degree: int) -> int:
    """S with the least work: short blocks are many to encrypt, long ones leave few bins a reply.

    Parameters
    ----------
    hosts : sequence of sequence of int
        Bins of each feature that is asked for, by Host.
    numbers : int
        Polynomials a block: numbers of a row that are not packed into one.
    """

    def work(block: int) -> float:
        sent = -(-rows // block)
        replies = sum(-(-sum(counts) // (degree // block)) for counts in hosts)
        return numbers * (sent * UPLOAD + replies * REPLY) + sent * replies * (MASK + numbers * PRODUCT)

    return min(BLOCKS, key=work)


def check_block(block: int) -> None:
    """Raise SecurityError for a block that is none of :data:`BLOCKS`."""
    if block not in BLOCKS:
        raise SecurityError("block_not_possible", block=block, least=BLOCKS[0], most=BLOCKS[-1])
