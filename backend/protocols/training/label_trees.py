"""What forests and single trees share at the Guest: labels as numbers that the Hosts add up under encryption, and leaf tables.

Unlike gradients, labels do not change from tree to tree, so they are encrypted and sent once (Yao et al. §4.1.1): two classes per
ciphertext, or a value and a 1. The Hosts add them up by bin and see neither a label nor a count. With sample weights a record's weight
takes the place of its 1, and its value is multiplied by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import GRADIENT_BITS, quantise, quantise_weights
from backend.errors import ParameterError
from backend.protocols.training.joint import Joint
from backend.protocols.training.parameters import BINS, MIN_NODE, SCORE_BITS, SEED, Ranges
from backend.trees.criteria import ClassCounts, Impurity, Stops, Variance
from backend.trees.ensemble import GuestTree, Leaf
from backend.trees.growth import Criterion
from backend.trees.outputs import Floats, Outputs

IntArray = NDArray[np.int64]
# Rounding errors stay below 2 % of the label's standard deviation: 0.29 of a step each, adding up to 0.29·√trees steps.
STEPS = 16
RANGES: Ranges = SEED | {
    "depth": (1, 10),
    "bins": BINS,
    "min_gain": (0.0, 1e12),
    "min_samples_split": (2, 1 << 22),
    "min_samples_leaf": (1, 1 << 22),
    "min_node": MIN_NODE,
    "score_bits": SCORE_BITS,
}


@dataclass(frozen=True, eq=False, repr=False)
class LabelSums:
    """The labels of the training rows as the Hosts add them up.

    Attributes
    ----------
    batches : tuple of (ndarray of int64, ndarray of int64)
        ``(n_joint,)`` each, 0 outside the training rows: two classes' 0/1, or the value on a public scale and 1; with sample weights
        the weight in place of 1, and as far as the criterion reads one a last channel of 1.
    criterion : Criterion
        Reads their sums.
    """

    batches: tuple[tuple[IntArray, IntArray], ...]
    criterion: Criterion

    @property
    def batch_numbers(self) -> tuple[int, ...]:
        """All batches, which every tree uses."""
        return tuple(range(len(self.batches)))


def label_sums(joint: Joint, impurity: Impurity, stops: Stops, trees: int) -> LabelSums:
    """Classes are counted; numbers are added up as differences from their mean.

    Parameters
    ----------
    impurity : {"gini", "entropy"}
        Of classes; for numbers it is always the variance.
    trees : int
        Leaves are divided by this.
    """
    counted = joint.training
    units, unit = _units(joint)
    # Sums of weights do not tell how many records there are.
    if joint.weights is not None and stops.count_records:
        counts = [counted.astype(np.int64)]
    else:
        counts = []
    criterion: Criterion
    if joint.task == "number":
        centre = float(joint.labels[counted].mean())
        deviation = np.where(counted, joint.labels - centre, 0.0)
        span = float(np.abs(deviation).max()) or 1.0
        if joint.weights is None:
            values = quantise(deviation / span, GRADIENT_BITS)
            value_unit = 2.0**-GRADIENT_BITS
        else:
            values = quantise(deviation / span * units, 0)
            value_unit = unit
        channels = [values, units, *counts]
        criterion = Variance(centre, span, value_unit, stops, trees, unit, len(channels))
        return LabelSums(_batches(channels), criterion)
    classes = len(joint.classes) or 2
    channels = [np.where(joint.labels == c, units, 0) for c in range(classes)] + counts
    binary = joint.task == "binary"
    criterion = ClassCounts(len(channels), impurity, stops, binary, trees, unit, bool(counts))
    return LabelSums(_batches(channels), criterion)


def _units(joint: Joint) -> tuple[IntArray, float]:
    """Return what each record weighs, ``(n_joint,)``, 0 outside the training rows, and the weight of one unit."""
    counted = joint.training
    units = counted.astype(np.int64)
    if joint.weights is None:
        return units, 1.0
    units[counted], unit = quantise_weights(joint.weights[counted])
    return units, unit


def _batches(channels: Sequence[IntArray]) -> tuple[tuple[IntArray, IntArray], ...]:
    """Return channels two by two; beside the last of an odd number there are zeros."""
    even = [*channels, np.zeros_like(channels[0])] if len(channels) % 2 else channels
    return tuple(zip(even[::2], even[1::2], strict=True))


def check_steps(joint: Joint, score_bits: int, trees: int) -> None:
    """Refuse score bits that round leaf weights too coarsely.

    Parameters
    ----------
    trees : int
        Number of rounded weights that a prediction adds up; 1 for the median and for a single tree.

    Raises
    ------
    ParameterError
        The label varies by less than STEPS·√trees steps.
    """
    labels = joint.labels[joint.training]
    if joint.classes:
        values = labels[:, None] == np.arange(len(joint.classes))
    else:
        values = labels[:, None]
    spread = float(np.sqrt(values.var(axis=0).mean()))
    if spread:
        min_bits = int(np.ceil(np.log2(max(1.0, STEPS * np.sqrt(trees) / spread))))
    else:
        min_bits = 0
    if score_bits < min_bits:
        if joint.task == "number":
            raise ParameterError(
                "steps_too_coarse_for_number", spread=spread, bits=score_bits, trees=trees, needed=min_bits
            )
        raise ParameterError("steps_too_coarse", spread=spread, bits=score_bits, trees=trees, needed=min_bits)


def leaf_table(tree: GuestTree, outputs: Outputs) -> Floats:
    """``(n_nodes, outputs.count)``: leaf weights by node number; 0 at splits."""
    table = np.zeros((len(tree.nodes), outputs.count))
    for i, node in enumerate(tree.nodes):
        if isinstance(node, Leaf):
            table[i] = node.weights or (node.weight,)
    return table
