"""Finished rounds of a training at the Guest, stored and taken up again. Holds no Host's threshold, and of no record which way it goes.

Hashes of where all joint records are, level by level, show whether the Hosts divide them after a break as they did before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backend.protocols.training.federated_trees import GrownTree, TreeGrower, routes
from backend.protocols.training.joint import Joint
from backend.trees.serialization import dump_trees, load_trees


def round_of(
    joint: Joint, grower: TreeGrower, index: int, first: int, grow: Callable[[], list[GrownTree]]
) -> list[GrownTree]:
    """The trees of round `index`, from 0: taken up where they were finished before a break, else grown and kept.

    Parameters
    ----------
    first : int
        Number of the round's first tree.
    grow : callable
        Grows them; everything that it draws follows from the seed and their numbers, so that they are those of a training without a
        break.
    """
    finished = joint.resumed.rounds
    if index < len(finished):
        stored = finished[index]
        choices = {(tree, node): tuple(bins) for tree, node, bins in stored["choices"]}
        grower.label_bits = stored["label_bits"]
        grower.choice_bits = dict(stored["choice_bits"])
        return grower.take_up(first, load_trees(stored["trees"]), choices, stored["routes"])
    grown = grow()
    joint.resumed.add(_dumped(grower, first, grown))
    return grown


def _dumped(grower: TreeGrower, first: int, grown: Sequence[GrownTree]) -> dict[str, Any]:
    numbers = range(first, first + len(grown))
    choices = [[tree, node, list(bins)] for (tree, node), bins in grower.choices.items() if tree in numbers]
    return {
        "trees": dump_trees([tree.tree for tree in grown]),
        "choices": choices,
        "routes": [routes(tree) for tree in grown],
        "label_bits": grower.label_bits,
        "choice_bits": grower.choice_bits,
    }
