"""Which leaves share a ciphertext: worked out from the public structure alone, so that every party gets the same answer.

A leaf is summed by the Hosts only if all Host conditions on its path hold. Leaves with the same set of Host conditions are
therefore one number from the start, leaves with none are a constant that never leaves the Guest, and once a Host has applied its
own conditions, entries whose remaining conditions agree become one again (Fed-EINI eq. 10 and 13 regrouped).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backend.trees.ensemble import Skeleton

Condition = tuple[int, int, bool]  # (tree, node, goes left)
Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class Step:
    """One Host's part of the chain.

    Attributes
    ----------
    host : str
    own : tuple of Conditions
        ``(m,)``: per incoming entry, this Host's conditions.
    target : tuple of int
        ``(m,)``: per incoming entry, the outgoing entry it is added to.
    n_out : int
        Outgoing entries; 1 at the last Host.
    """

    host: str
    own: tuple[Conditions, ...]
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
    """Work out the entries of every stage.

    Parameters
    ----------
    skeletons : sequence of Skeleton
    guest : str
        Party whose conditions the Guest applies before encrypting.
    hosts : sequence of str
        Chain order; Hosts without a split are left out of the chain.
    """
    owner = {(t, node): fork.owner for t, s in enumerate(skeletons) for node, fork in s.forks.items()}
    per_leaf = [[_host_conditions(t, s, leaf, guest) for leaf in s.leaves] for t, s in enumerate(skeletons)]
    entries = sorted({c for leaves in per_leaf for c in leaves if c})
    place = {c: i for i, c in enumerate(entries)}
    steps = []
    incoming: list[Conditions] = list(entries)
    used = set(owner.values())
    for host in (h for h in hosts if h in used):
        own = tuple(tuple(c for c in e if owner[c[:2]] == host) for e in incoming)
        rest = [tuple(c for c in e if owner[c[:2]] != host) for e in incoming]
        outgoing = sorted(set(rest))
        at = {c: i for i, c in enumerate(outgoing)}
        steps.append(Step(host, own, tuple(at[r] for r in rest), len(outgoing)))
        incoming = outgoing
    return Folding(
        tuple(tuple(place[c] if c else None for c in leaves) for leaves in per_leaf), len(entries), tuple(steps)
    )


def _host_conditions(tree: int, skeleton: Skeleton, leaf: int, guest: str) -> Conditions:
    parent = {child: (i, child == f.left) for i, f in skeleton.forks.items() for child in (f.left, f.right)}
    path: list[Condition] = []
    node = leaf
    while node in parent:
        node, left = parent[node]
        if skeleton.forks[node].owner != guest:
            path.append((tree, node, left))
    return tuple(reversed(path))
