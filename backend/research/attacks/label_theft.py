"""H4: a Host steals labels in training by forged sums. Plays a malicious Host; the Guest chooses splits and checks as it is shipped.

The Host picks a few records. At each cut it reports a multiple of the sums of one subset of them in place of the sums of its bins, a
subset a cut: additions and multiplications by known integers, which work on ciphertexts, too. The Guest takes the cut with the largest
gain, which is the subset of the rarer label, and names the cut to the Host. The forged sums add up to the node's, so that they alone show
nothing.

Once the Host names the rows of the split, the Guest compares their sums with those that chose the split: the training ends there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from backend.errors import WrongAnswer
from backend.protocols.training.checks import check_histograms, check_split_rows
from backend.research.attacks.result import AttackOutcome, count
from backend.research.attacks.setup import PEOPLE, synthetic_people
from backend.trees.growth import FREE, BestSplit, GrowthRules, Histogram, SecondOrder

IntArray = NDArray[np.int64]
BINS = 32  # asked for a feature, as by default
FEATURES = 8  # of the Host
STOLEN = 7  # labels a split: 8 features of 31 cuts have room for all 128 subsets
SPLITS = 20  # that the Host attacks
WORTH = 40  # how often a chosen record counts in a forged sum
SCALE = 10  # binary digits of a gradient after the point
CRITERION = SecondOrder(GrowthRules(1.0, 1.0, 0.0, 0.0), (2.0**-SCALE, 2.0**-SCALE))
NOT_NEGATIVE = np.array([False, True])  # channels of a histogram: gradients, hessians


def run(seed: int, people: int = PEOPLE, splits: int = SPLITS) -> AttackOutcome:
    """Steal the labels of :data:`STOLEN` records a split, of which half have each label; a Host that is found out guesses the usual one."""
    _, _, labels = synthetic_people(people)
    draw = np.random.default_rng(seed)
    stolen_records = drawn(draw, labels, splits * STOLEN).reshape(splits, STOLEN)
    positive = float(labels.mean())
    rare = 1 if positive < 0.5 else 0
    caught: list[bool] = []

    def steal(checked: bool) -> tuple[int, int]:
        right = 0
        noticed = False
        for records in stolen_records:
            guesses = np.full(STOLEN, 1 - rare)
            if not noticed:
                guesses, noticed = steal_split(labels, records, rare, checked=checked)
            right += int(np.count_nonzero(guesses == labels[records]))
        caught.append(noticed)
        return right, splits * STOLEN

    off = count(steal, False)
    on = count(steal, True)
    return AttackOutcome(
        off,
        on,
        chance=0.5,
        setting={"people": people, "splits": splits, "labels": STOLEN, "bins": BINS, "features": FEATURES},
        rates={"caught_off": float(caught[0]), "caught_on": float(caught[1])},
    )


def drawn(draw: np.random.Generator, labels: NDArray[np.float64], n: int) -> IntArray:
    """Return `n` rows in a random order, half of each label, ``(n,)``."""
    rows = []
    for label in (0, 1):
        rows.append(draw.choice(np.flatnonzero(labels == label), n // 2, replace=False))
    return draw.permutation(np.concatenate(rows))


def steal_split(labels: NDArray[np.float64], records: IntArray, rare: int, *, checked: bool) -> tuple[IntArray, bool]:
    """Attack one split of a root; return the labels that the Host reads, and whether the Guest noticed.

    Parameters
    ----------
    records : ndarray of int
        ``(STOLEN,)`` rows of the records that the Host is after.
    rare : {0, 1}
        The rarer label.
    checked : bool
        Whether the Guest checks what a Host answers.
    """
    signs = np.where(labels == 1, -1, 1)
    gradients = (signs << (SCALE - 1)).astype(np.int64)  # of a first round at a rate of one half
    hessians = np.full(len(labels), 1 << (SCALE - 2), dtype=np.int64)
    node = np.array([gradients.sum(), hessians.sum()])

    # 1. The Host forges the sums of each of its features.
    histograms = [forged(feature, gradients[records], node) for feature in range(FEATURES)]
    if checked:
        check_histograms("host", {str(i): histogram for i, histogram in enumerate(histograms)}, node, NOT_NEGATIVE)

    # 2. The Guest takes the best split and names its cut.
    best: tuple[int, BestSplit] | None = None
    for feature, histogram in enumerate(histograms):
        split = CRITERION.best_split(histogram, 0, FREE)
        if split is not None and (best is None or split.gain > best[1].gain):
            best = feature, split
    if best is None:
        raise ValueError("no split was chosen")
    feature, split = best

    # 3. The Host reads the subset off the cut: it holds the records of the rarer label.
    read = np.where(subset(feature, max(split.left_bins)), rare, 1 - rare).astype(np.int64)

    # 4. It names rows of the split: everybody, so that the node can be split again.
    if checked:
        try:
            check_split_rows("host", "feature", node, split.left_sums)
        except WrongAnswer:
            return read, True
    return read, False


def subset(feature: int, cut: int) -> NDArray[np.bool_]:
    """Return which of the records a cut stands for, ``(STOLEN,)``: the binary digits of the cut's number."""
    number = feature * (BINS // 2) + cut
    inside: NDArray[np.bool_] = number >> np.arange(STOLEN) & 1 == 1
    return inside


def forged(feature: int, gradients: IntArray, node: IntArray) -> Histogram:
    """Return a feature's forged sums by bin, ``(2, BINS + 1)``: all cuts have the same hessians, and the bins sum to the node."""
    left_sums = np.zeros((2, BINS + 1), dtype=np.int64)
    for cut in range(BINS // 2):
        left_sums[0, cut] = WORTH * gradients[subset(feature, cut)].sum()
        left_sums[1, cut] = node[1] // 2
    left_sums[:, BINS // 2 :] = node[:, None]
    return Histogram(np.diff(left_sums, axis=1, prepend=0), categorical=False)
