"""One federated decision tree at the Guest: FL-DT (Guo et al. §3.2, §3.4, Alg. 1), CART on histograms of class counts.

A node's histogram holds per bin how many records of each class are in it (eq. 2); children's histograms are parent minus sibling
(eq. 14). A split must lower the Gini impurity by more than ε (eq. 16). Where we differ:

- The paper fills a Host's histogram by a private set intersection of every bin with every class (Alg. 1 line 3), which discloses each
  record's bin at the Host to the Guest (docs/attacks.md T2). Here the Host adds up encrypted 0/1 by bin: the Guest gets the counts of eq. 2
  and no record's bin.
- Eq. 13, taken literally, splits off one bin. We cut ordered bins in two as CART does; categories are ordered first.
- A leaf keeps the share of each class instead of the majority alone, which is the largest share.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from backend.crypto.fixedpoint import quantise
from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.errors import ParameterError
from backend.jobs import work
from backend.protocols.training.federated_trees import TreeJob, start
from backend.protocols.training.joint import Grown, Joint
from backend.protocols.training.label_trees import RANGES, check_steps, label_sums, leaf_table
from backend.protocols.training.parameters import USUAL_CIPHER, CheckedParameters, Ranges
from backend.trees.criteria import Stops
from backend.trees.outputs import Outputs


# Not derived from the forest's parameters: forms show a class's fields in their order, and five defaults differ.
@dataclass(frozen=True)
class DecisionTreeParameters(CheckedParameters):
    """Parameters of FL-DT; the defaults are those of the paper's §4.2.

    Attributes
    ----------
    min_gain : float
        ε of eq. 16: the Gini impurity must fall by more than this.
    min_samples_split, min_samples_leaf : int
        Training rows in a node that is split, and in each of its children.
    seed : int
        Draws the 60/20/20 split.
    min_node, constraints, cipher, key_bits, alignment, score_bits, weights
        As for SecureBoost; ids are aligned by a garbled Bloom filter as in §3.3, and leaves are shares of the classes.
    """

    ALGORITHM: ClassVar[str] = "fl-dt"
    RANGES: ClassVar[Ranges] = RANGES

    depth: int = 5
    bins: int = 256
    min_gain: float = 1e-3
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_node: int = 1
    seed: int = 7
    cipher: Cipher = USUAL_CIPHER
    key_bits: int = KEY_BITS
    alignment: str = "bloom"
    score_bits: int = 10
    constraints: str = ""
    weights: str = ""


def grow(joint: Joint, parameters: DecisionTreeParameters) -> Grown:
    """Grow one tree on all training rows and all features.

    Raises
    ------
    ParameterError
        The label is a number, or a class is too rare for the score bits.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Session.expect`.
    """
    if joint.task == "number":
        raise ParameterError("number_needs_other_algorithm")
    check_steps(joint, parameters.score_bits, 1)
    directions = joint.directions(parameters.constraints)
    stops = Stops(parameters.min_gain, parameters.min_samples_split, parameters.min_samples_leaf)
    sums = label_sums(joint, "gini", stops, 1)  # eq. 2
    outputs = Outputs(joint.task, joint.classes, "identity")
    began = time.perf_counter()
    grower = start(joint, parameters.bins, min_node=parameters.min_node)
    with work.part(0.0, grower.encrypted_share):
        grower.send_pairs(sums.batches)
    with work.part(grower.encrypted_share, 1.0):
        job = TreeJob(0, sums.criterion, joint.training, sums.batch_numbers, directions=directions)
        [tree] = grower.grow([job], parameters.depth)
    table = leaf_table(tree.tree, outputs)
    margins = table[tree.leaf]
    joint.report(1, 1, margins, outputs, time.perf_counter() - began)
    return Grown(
        trees=(tree.tree,),
        rules=dict(grower.rules),
        base_scores=(0.0,) * outputs.count,
        outputs=outputs,
        margins=margins,
        units=quantise(table, parameters.score_bits)[tree.leaf],
        label_bits=grower.label_bits,
        choice_bits=max(grower.choice_bits.values(), default=0.0),
        leaves=(tree.leaf.astype(np.uint16),),
    )
