"""What the pages read out of results: counts, shares and paths. Knows no widget, no session and no secret."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from backend.service import (
    ComplianceReport,
    FeatureImportance,
    Federation,
    Finding,
    GuestModel,
    GuestTree,
    LearnedDirection,
    ModelRecord,
    Score,
    ScoreBatch,
    Split,
    TranscriptEntry,
)

SEVERITY = ("prohibited", "conditional", "indicator", "informational")
PAGE = 100  # rows of a table shown at a time
ORDERS = ("given", "highest", "lowest")


@dataclass(frozen=True)
class View:
    """What the pages show of one model; nothing in it is secret or anyone else's."""

    record: ModelRecord
    federation: Federation
    model: GuestModel
    importance: tuple[FeatureImportance, ...]
    directions: tuple[LearnedDirection, ...]
    compliance: ComplianceReport


@dataclass(frozen=True)
class Share:
    """One party's part of a model; shares are 0..1 of all splits, gain and cover."""

    party: str
    features: int
    used: int
    splits: int
    gain_share: float
    split_share: float
    cover_share: float


@dataclass(frozen=True)
class Speed:
    """What one scoring took on this machine, all parties' work and messages counted.

    Attributes
    ----------
    people : int
        Scored.
    seconds : float
    out, between, back : float
        Bytes a person: from the Guest, from Host to Host, to the Guest.
    """

    people: int
    seconds: float
    out: float
    between: float
    back: float

    @property
    def a_second(self) -> float:
        """People scored a second."""
        return self.people / self.seconds


def speed(batch: ScoreBatch, guest: str) -> Speed:
    """How fast a scoring was and what it sent; `guest` is the Guest's name."""
    people = sum(score.status == "ok" for score in batch.scores)

    def sent(wanted: Callable[[TranscriptEntry], bool]) -> float:
        return sum(entry.bytes for entry in batch.transcript if wanted(entry)) / max(people, 1)

    return Speed(
        people=people,
        seconds=batch.seconds,
        out=sent(lambda entry: entry.sender == guest),
        between=sent(lambda entry: guest not in (entry.sender, entry.receiver)),
        back=sent(lambda entry: entry.receiver == guest),
    )


def page_of(scores: Sequence[Score], order: str, page: int) -> tuple[Score, ...]:
    """The scores on `page` (from 1) of the table; those that failed come last unless the order is the file's."""
    ordered = list(scores)
    if order != "given":
        sign = -1 if order == "highest" else 1
        ordered.sort(key=lambda s: sign * s.probability if s.status == "ok" else math.inf)
    return tuple(ordered[(page - 1) * PAGE : page * PAGE])


def shares(view: View) -> tuple[Share, ...]:
    """Each party's part, Guest first, then the Hosts in order."""
    found = []
    for party in (view.model.guest, *view.model.hosts):
        own = [row for row in view.importance if row.party == party]
        found.append(
            Share(
                party=party,
                features=len(own),
                used=sum(row.splits > 0 for row in own),
                splits=sum(row.splits for row in own),
                gain_share=sum(row.gain_share for row in own),
                split_share=sum(row.split_share for row in own),
                cover_share=sum(row.cover_share for row in own),
            )
        )
    return tuple(found)


def used(importance: Iterable[FeatureImportance]) -> tuple[FeatureImportance, ...]:
    """The features that at least one split asks about."""
    return tuple(row for row in importance if row.splits)


def flags(report: ComplianceReport) -> Mapping[str, tuple[Finding, ...]]:
    """Feature name → its findings, worst first."""
    found: dict[str, tuple[Finding, ...]] = {}
    for finding in report.findings:
        found[finding.feature] = (*found.get(finding.feature, ()), finding)
    return found


def open_findings(report: ComplianceReport) -> tuple[Finding, ...]:
    """Findings about features that the model uses, worst first."""
    return tuple(finding for finding in report.findings if finding.usage.splits)


def aliases(model: GuestModel) -> Mapping[str, str]:
    """What SecureBoost would show of the Hosts' features: HF1, HF2 … in dictionary order (Fed-EINI Fig. 6)."""
    hidden = [feature.name for party, feature in model.dictionary if party != model.guest]
    return {name: f"HF{i}" for i, name in enumerate(hidden, start=1)}


def where(model: GuestModel, feature: str) -> tuple[tuple[int, int], ...]:
    """(tree, node) of every split on `feature`, largest gain first; trees count from 0."""
    found = [
        (split.gain, i, node)
        for i, tree in enumerate(model.trees)
        for node, split in tree.splits.items()
        if split.feature == feature
    ]
    return tuple((i, node) for _, i, node in sorted(found, reverse=True))


def decided(batch: ScoreBatch, cutoff: float) -> ScoreBatch:
    """The same scores with the decisions of another cut-off: a comparison, for which nothing is computed anew."""

    def decision(score: Score) -> Literal["accept", "decline", ""]:
        if score.status == "failed":
            return ""
        return "decline" if score.probability >= cutoff else "accept"

    return replace(batch, cutoff=cutoff, scores=tuple(replace(s, decision=decision(s)) for s in batch.scores))


def gain(tree: GuestTree) -> float:
    """Sum of the gains of a tree's splits."""
    return sum(split.gain for split in tree.splits.values())


def parents(tree: GuestTree) -> Mapping[int, int]:
    """Node → the split above it; the root has none."""
    return {child: node for node, split in tree.splits.items() for child in (split.left, split.right)}


def alive(tree: GuestTree, candidates: Sequence[int]) -> frozenset[int]:
    """Nodes on a way to one of the `candidates`, these included."""
    above = parents(tree)
    found = set()
    for leaf in candidates:
        node: int | None = leaf
        while node is not None and node not in found:
            found.add(node)
            node = above.get(node)
    return frozenset(found)


def places(tree: GuestTree, top: int = 0, levels: int | None = None) -> Mapping[int, tuple[int, float]]:
    """Node → (depth, row) of the part below `top`: ends on rows 0, 1, 2 … downwards, a split between its children.

    Ends are leaves and, where `levels` is given, the splits that many questions below `top`.
    """
    found: dict[int, tuple[int, float]] = {}
    rows = count()

    def visit(node: int, depth: int) -> float:
        item = tree.nodes[node]
        ends = not isinstance(item, Split) or depth == levels
        below = [next(rows)] if ends else [visit(child, depth + 1) for child in (item.left, item.right)]
        row = sum(below) / len(below)
        found[node] = (depth, row)
        return row

    visit(top, 0)
    return found


def leaves_below(tree: GuestTree, node: int) -> int:
    """How many leaves lie below a node."""
    item = tree.nodes[node]
    return leaves_below(tree, item.left) + leaves_below(tree, item.right) if isinstance(item, Split) else 1


def branches(tree: GuestTree, most: int, levels: int) -> tuple[int, ...]:
    """The nodes from which a tree is drawn in parts of `levels` questions; only the root with at most `most` leaves."""
    if len(tree.leaves) <= most:
        return (0,)
    every = places(tree)
    return tuple(node for node in sorted(tree.splits) if every[node][0] % levels == 0)
