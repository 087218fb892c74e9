"""Which leaves share a ciphertext, derived from the public structure alone, so that every party derives the same.

The Hosts keep a leaf in the sum only if all Host conditions on its path hold. Leaves with the same Host conditions are therefore one
entry from the start, leaves with none are a constant that never leaves the Guest, and once a Host has applied its own conditions, entries
whose remaining conditions agree are merged (Fed-EINI eq. 10 and 13, regrouped).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backend.trees.ensemble import NodeKey, Skeleton

Condition = tuple[int, int, bool]  # (tree, node, goes left)
Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class Step:
    """One Host's part of the chain.

    Attributes
    ----------
    host_conditions : tuple of Conditions
        ``(m,)``: per incoming entry, this Host's conditions.
    target : tuple of int
        ``(m,)``: per incoming entry, the outgoing entry it is added to.
    n_out : int
        Outgoing entries; 1 at the last Host.
    """

    host: str
    host_conditions: tuple[Conditions, ...]
    target: tuple[int, ...]
    n_out: int


@dataclass(frozen=True)
class Folding:
    """The whole chain.

    Attributes
    ----------
    entry_of_leaf : tuple of tuple of (int or None)
        Per tree and leaf (left to right): the entry that carries it, None for the Guest's constant.
    n_entries : int
        Entries that the Guest encrypts per sample.
    steps : tuple of Step
        One per Host of the chain that owns a split, in chain order.
    """

    entry_of_leaf: tuple[tuple[int | None, ...], ...]
    n_entries: int
    steps: tuple[Step, ...]


def fold_structure(skeletons: Sequence[Skeleton], guest: str, hosts: Sequence[str]) -> Folding:
    """Derive the entries of every stage.

    Parameters
    ----------
    guest : str
        Its own conditions are applied before encryption.
    hosts : sequence of str
        Chain order; Hosts without a split are left out of the chain.
    """
    owner = {}
    for t, s in enumerate(skeletons):
        for node, fork in s.forks.items():
            owner[(t, node)] = fork.owner
    per_leaf = leaf_conditions(skeletons, lambda key: owner[key] != guest)
    entries = sorted({c for leaves in per_leaf for c in leaves if c})
    index = {c: i for i, c in enumerate(entries)}
    steps = []
    incoming: list[Conditions] = list(entries)
    owners = set(owner.values())
    for host in hosts:
        if host not in owners:
            continue
        host_conditions = tuple(tuple(c for c in e if owner[c[:2]] == host) for e in incoming)
        other_conditions = [tuple(c for c in e if owner[c[:2]] != host) for e in incoming]
        outgoing = sorted(set(other_conditions))
        position = {c: i for i, c in enumerate(outgoing)}
        target = tuple(position[conditions] for conditions in other_conditions)
        steps.append(Step(host, host_conditions, target, len(outgoing)))
        incoming = outgoing
    entry_of_leaf = tuple(tuple(index[c] if c else None for c in leaves) for leaves in per_leaf)
    return Folding(entry_of_leaf, len(entries), tuple(steps))


def leaf_conditions(skeletons: Sequence[Skeleton], select: Callable[[NodeKey], bool]) -> list[list[Conditions]]:
    """Per tree, the conditions of the selected splits on the path to each leaf, leaves left to right."""
    out: list[list[Conditions]] = []
    for t, skeleton in enumerate(skeletons):
        leaves: list[Conditions] = []
        stack: list[tuple[int, Conditions]] = [(0, ())]
        while stack:
            node, path = stack.pop()
            fork = skeleton.forks.get(node)
            if fork is None:
                leaves.append(path)
                continue
            selected = select((t, node))
            stack.append((fork.right, (*path, (t, node, False)) if selected else path))
            stack.append((fork.left, (*path, (t, node, True)) if selected else path))
        out.append(leaves)
    return out
