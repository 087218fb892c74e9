"""How much sums by group may say before they say who is in a group. Knows marks as their spread alone.

The Guest knows every record's marks. Exact sums of enough of them fit one set of records only, which a solver of integer programs, or a
meeting in the middle, finds (tests/protocols/group_sums/test_disclosure_bound.py): from the reconstruction attacks of Dinur and Nissim
(2003). So what the sums tell has to stay below what it takes to name a group. Of a set of k of n records, drawn with equal chances, a sum
of a mark has the variance k·(n - k)/(n - 1)·σ², and so no more than ½·log2(2πe·(variance + 1/12)) bits (Cover and Thomas, 2nd ed.,
theorem 8.6.5 and problem 8.7); log2 of the number of such sets, less that, is how much stays unknown on average.

A Guest that departs from the protocol marks as it likes, one person with 1, the next with 2, and so on: then a sum of `b` bits is a list of
who of `b` people is in the group. A Host that cannot read the marks knows how many bits its sums carry, and bounds these
(:func:`least_size`, docs/decisions/groups.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import e, inf, lgamma, log, log2, pi

from backend.protocols.group_sums.values import Counts

UNKNOWN = 10  # bits that stay unknown of every group, on average: a thousand sets of records fit the sums
EXTRA_GROUPS = 2  # groups of a feature next to its bins or codes: people without a value, and rare codes together
NAMED = 0.5  # of the bits that it takes to say who is in a group, as many may its sums carry: half of its people, and no more, can be named


def spread_of(marks: Sequence[Counts]) -> tuple[float, ...]:
    """Variance of each mark over the records, ``(n,)`` each."""
    return tuple(float(mark.var()) if len(mark) else 0.0 for mark in marks)


def disclosed_bits(spread: Sequence[float], n: int, k: int) -> float:
    """Return an upper bound, in bits, of what the sums over `k` of `n` records reveal about this group; a constant mark reveals nothing."""
    share = k * (n - k) / max(1, n - 1)
    return sum(
        0.5 * log2(2 * pi * e * (share * spread_of_mark + 1 / 12)) for spread_of_mark in spread if spread_of_mark > 0
    )


def log2_divisions(n: int, sizes: Sequence[int]) -> float:
    """Log2 of the number of ways to divide `n` records into groups of these sizes, and a group of all others."""
    others = n - sum(sizes)
    if others >= 0:
        return (lgamma(n + 1) - sum(lgamma(size + 1) for size in (*sizes, others))) / log(2)
    return -inf


def leaves_unknown(spread: Sequence[float], sizes: Sequence[int]) -> bool:
    """Whether sums over all groups of these sizes leave :data:`UNKNOWN` bits of each group, and of all together."""
    # the sums of the largest group follow from the others'
    n = sum(sizes)
    smaller = sorted(sizes)[:-1]
    each = all(log2_divisions(n, [size]) >= disclosed_bits(spread, n, size) + UNKNOWN for size in smaller)
    return each and log2_divisions(n, smaller) >= sum(disclosed_bits(spread, n, size) + UNKNOWN for size in smaller)


def smallest_size(spread: Sequence[float], n: int, max_groups: int, at_least: int) -> int:
    """The smallest size of groups, `at_least` or more, at which sums leave enough unknown; more than half of `n` if none does.

    Parameters
    ----------
    max_groups : int
        Bins or codes of the feature.
    """
    for size in range(at_least, n // 2 + 1):
        count = min(max_groups + EXTRA_GROUPS, n // size)
        if leaves_unknown(spread, [*[size] * (count - 1), n - size * (count - 1)]):
            return size
    return n // 2 + 1


def least_size(bits: int, n: int, max_groups: int, share: float) -> int:
    """The smallest size of groups whose sums of so many `bits` each say no more than a `share` of who is in them; more than half of `n`
    if none does, and 1 if the share is 0, which is no limit.

    Both of each group by itself, and of as many groups of this size as `n` records can make.
    """

    def bears(size: int) -> bool:
        others = min(max_groups + EXTRA_GROUPS, n // size) - 1
        return share * log2_divisions(n, [size]) >= bits and share * log2_divisions(n, [size] * others) >= bits * others

    if share:
        return 1 + bisect_left(range(1, n // 2 + 1), True, key=bears)
    return 1
