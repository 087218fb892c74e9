"""Finished rounds of a training at the Guest, kept and taken up again. Holds no Host's threshold, and of no record which way it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backend.protocols.training.federated_trees import GrownTree, TreeGrower
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
        kept = finished[index]
        choices = {(tree, node): tuple(bins) for tree, node, bins in kept["choices"]}
        grower.label_bits = kept["label_bits"]
        return grower.take_up(first, load_trees(kept["trees"]), choices)
    grown = grow()
    joint.resumed.add(_dumped(grower, first, grown))
    return grown


def _dumped(grower: TreeGrower, first: int, grown: Sequence[GrownTree]) -> dict[str, Any]:
    numbers = range(first, first + len(grown))
    choices = [[tree, node, list(bins)] for (tree, node), bins in grower.choices.items() if tree in numbers]
    return {"trees": dump_trees([one.tree for one in grown]), "choices": choices, "label_bits": grower.label_bits}
