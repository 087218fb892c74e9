"""What each party of a scoring learns about the others' records, counted from the run.

A direction is the answer of one split to one sample, at most one bit (less where splits share a feature). Only what follows with
certainty from the messages a party can read, its partial model and its own columns is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.protocols.transport.transcript import TranscriptEntry
from backend.research.baselines.walk import Numbers, Trees


@dataclass(frozen=True)
class Learned:
    """One party's gain; all counts are per sample, averaged over the run.

    Attributes
    ----------
    received : tuple of str
        Classes of the messages that reached it.
    ids : bool
        Whether it learns who is scored (False for the Guest, who asks).
    held : int
        Number of parties of which it learns whether they hold a record of the sample, one bit each.
    directions : float or None
        Directions of other parties' splits that it can infer; None if not countable.
    leaves : float or None
        Trees whose leaf it can infer, and could not from its own columns alone.
    score : float or None
        Upper bound on the bits that the score discloses about the leaves it could not rule out; 0 if it knows the leaves anyway.
    """

    party: str
    received: tuple[str, ...]
    ids: bool
    held: int
    directions: float | None
    leaves: float | None
    score: float | None

    @property
    def bits(self) -> float | None:
        """Upper bound on the bits per sample about other parties' records; None if not countable."""
        if self.directions is None or self.score is None:
            return None
        return self.held + self.directions + self.score


class Knowledge:
    """What follows from a known path for each party, computed once per model.

    Attributes
    ----------
    of_hosts : ndarray of int
        ``(n_leaves,)``: Hosts' splits on the path to a leaf.
    named : ndarray of int
        ``(n_parties, n_leaves)``: directions of other parties' splits that a Host can infer when a sample ends in a leaf and the Host
        has seen the sample at its own splits: those above all leaves that look the same to it.
    sole : ndarray of bool
        ``(n_parties, n_leaves)``: whether no other leaf looks the same, and the path was not the Host's alone.
    """

    def __init__(self, trees: Trees) -> None:
        paths = _paths(trees)
        self.of_hosts = np.array([sum(bool(trees.owner[i]) for i, _ in path) for path in paths], dtype=np.intp)
        self.named = np.zeros((len(trees.parties), trees.n_leaves), dtype=np.intp)
        self.sole = np.zeros((len(trees.parties), trees.n_leaves), dtype=bool)
        for host in range(1, len(trees.parties)):
            alike: dict[tuple[int, tuple[tuple[int, bool], ...]], list[int]] = {}
            for leaf, path in enumerate(paths):
                tree = int(trees.tree[path[0][0]]) if path else -1 - leaf  # a tree of one leaf stands alone
                alike.setdefault((tree, tuple(c for c in path if trees.owner[c[0]] == host)), []).append(leaf)
            for group in alike.values():
                common = _common([paths[leaf] for leaf in group])
                self.named[host, group] = sum(trees.owner[i] != host for i, _ in common)
                self.sole[host, group] = len(group) == 1 and bool(self.named[host, group[0]])


def _paths(trees: Trees) -> list[list[tuple[int, bool]]]:
    """Splits and directions on the way to each leaf."""
    out: list[list[tuple[int, bool]]] = [[] for _ in range(trees.n_leaves)]
    stack: list[tuple[int, list[tuple[int, bool]]]] = [(int(root), []) for root in trees.roots]
    while stack:
        node, path = stack.pop()
        if trees.leaf[node] >= 0:
            out[trees.leaf[node]] = path
            continue
        stack += [(int(trees.left[node]), [*path, (node, True)]), (int(trees.right[node]), [*path, (node, False)])]
    return out


def _common(paths: Sequence[list[tuple[int, bool]]]) -> list[tuple[int, bool]]:
    """The common beginning of all paths."""
    first = min(paths, key=len)
    length = next((d for d, step in enumerate(first) if any(p[d] != step for p in paths)), len(first))
    return first[:length]


def by_paths(
    trees: Trees,
    knowledge: Knowledge,
    leaves: Numbers,
    hosts: Sequence[str],
    transcript: Sequence[TranscriptEntry],
    *,
    directions: float | None = None,
    hosts_see: bool = True,
) -> tuple[Learned, ...]:
    """Return the parties' gains if the Guest learns the leaf of every tree.

    Parameters
    ----------
    leaves : ndarray of int
        ``(n, n_trees)``: indices among all leaves.
    directions : float, optional
        The directions that the Guest can infer, if there are more than the Hosts' splits on the path.
    hosts_see : bool
        Whether a Host sees which samples reach its splits.
    """
    on_path = knowledge.of_hosts[leaves]
    if len(leaves):
        path = float(on_path.sum(axis=1).mean())
    else:
        path = 0.0
    if len(leaves):
        leaves_known = float((on_path > 0).sum(axis=1).mean())
    else:
        leaves_known = 0.0
    guest = Learned(
        trees.parties[0],
        kinds_for(trees.parties[0], transcript),
        ids=False,
        held=len(hosts),
        directions=path if directions is None else directions,
        leaves=leaves_known,
        score=0.0,
    )
    out = [guest]
    for host in hosts:
        at = trees.parties.index(host)
        is_seen = hosts_see and len(leaves)
        out.append(
            Learned(
                host,
                kinds_for(host, transcript),
                ids=True,
                held=0,
                directions=float(knowledge.named[at, leaves].sum(axis=1).mean()) if is_seen else 0.0,
                leaves=float(knowledge.sole[at, leaves].sum(axis=1).mean()) if is_seen else 0.0,
                score=0.0,
            )
        )
    return tuple(out)


def by_score(
    guest: str, hosts: Sequence[str], tells: NDArray[np.float64], plain: bool, transcript: Sequence[TranscriptEntry]
) -> tuple[Learned, ...]:
    """Gains where the Guest learns the score alone.

    Parameters
    ----------
    tells : ndarray of float64
        ``(n,)``: bits that each score can disclose.
    plain : bool
        Whether decision vectors are sent in plaintext, which discloses their sender's candidates: not counted.
    """
    score = float(tells.mean()) if len(tells) else 0.0
    unknown = None if plain else 0.0
    return (
        Learned(guest, kinds_for(guest, transcript), False, len(hosts), 0.0, 0.0, score),
        *(Learned(h, kinds_for(h, transcript), True, 0, unknown, unknown, unknown) for h in hosts),
    )


def kinds_for(party: str, transcript: Sequence[TranscriptEntry]) -> tuple[str, ...]:
    """Classes of the messages that reached a party."""
    return tuple(sorted({entry.kind for entry in transcript if entry.receiver == party}))
