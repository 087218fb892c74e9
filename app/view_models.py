"""What the pages read out of results: counts, shares and paths. Knows no widget, no session and no secret."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Literal

from backend.results import ModelView
from backend.services.score_marks import with_what_if as with_line
from backend.services.tree_nodes import Leaf, Split

if TYPE_CHECKING:
    from backend.compliance.assessment import ComplianceReport
    from backend.data.federation import Federation
    from backend.evaluation.performance import Performance
    from backend.explain.importance import FeatureImportance
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.results import ModelRecord, ScoreBatch
    from backend.services.compliance import Finding, Question
    from backend.services.reasons import Reasons
    from backend.trees.ensemble import GuestModel, GuestTree

SEVERITY = ("prohibited", "conditional", "indicator", "informational")
NUMBERS = ("DecisionVectors", "MoreVectors", "EncryptedScores")  # messages that carry a scoring's encrypted numbers
IMPORTED = "imported"
OWN_ANSWER = ("forest", "fl-dt")  # each of their trees gives an answer of its own
FIGURES = {"binary": ("auc", "ks"), "classes": ("accuracy", "auc"), "number": ("rmse", "r2")}  # the first one decides

Scale = Literal["log_odds", "class_score", "share", "class_share", "step", "value"]


@dataclass(frozen=True)
class View(ModelView):
    """What the pages show of one model."""

    @property
    def task(self) -> str:
        """What is predicted: one of two outcomes (binary), one of several classes, or a number."""
        return self.model.outputs.task


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


def algorithm(record: ModelRecord) -> str:
    """Id of the algorithm that grew a model, or "imported"; early records name it in words."""
    if record.algorithm.startswith(IMPORTED):
        return IMPORTED
    if record.algorithm.startswith("SecureBoost"):
        return "secureboost"
    return record.algorithm


def trees_a_round(record: ModelRecord, federation: Federation) -> int:
    """Trees that one round adds: boosting grows one for each of several classes."""
    boosted = algorithm(record) in ("secureboost", "opboost")
    if record.task == "classes" and boosted:
        return len(federation.label.classes)
    return 1


def scale(view: View) -> Scale:
    """Return what a leaf of a model says.

    ``log_odds``, ``class_score`` and ``step`` are added up tree by tree; ``share`` (of the positive label), ``class_share`` (of each class)
    and ``value`` are a tree's own answer.
    """
    outputs = view.model.outputs
    if outputs.link != "identity":
        if outputs.link == "logistic":
            return "log_odds"
        return "class_score"
    if outputs.task == "number":
        if algorithm(view.record) in OWN_ANSWER:
            return "value"
        return "step"
    return "share" if outputs.task == "binary" else "class_share"


def answer(view: View, leaf: Leaf) -> tuple[float, ...]:
    """Return what a leaf says on the model's `scale`: one number, or a share for each class.

    A forest that adds up holds each tree's answer divided by the number of trees; here it is whole again.
    """
    numbers = leaf.weights or (leaf.weight,)
    of_scale = scale(view) in ("share", "class_share", "value") and view.model.outputs.aggregation == "sum"
    if of_scale:
        return tuple(number * len(view.model.trees) for number in numbers)
    return numbers


def middle(view: View, tree: GuestTree) -> float:
    """From where on a leaf speaks for more: 0 if leaves are added up, else the tree's mean over everybody."""
    if scale(view) in ("log_odds", "class_score", "step"):
        return 0.0
    leaves = [leaf for leaf in tree.nodes if isinstance(leaf, Leaf)]
    covered = sum(leaf.cover for leaf in leaves)
    if covered:
        return sum(answer(view, leaf)[0] * leaf.cover for leaf in leaves) / covered
    return 0.0


def class_of(view: View, index: int) -> str:
    """Return the class that a tree speaks for or against; empty if its leaves speak of all, or there are none."""
    outputs = view.model.outputs
    if outputs.of_tree:
        return outputs.classes[outputs.of_tree[index]]
    return ""


def released(view: View) -> Literal["sum", "classes", "median"]:
    """Return what the Guest decrypts of a person: one sum, one for each class, or every tree's own answer."""
    if view.model.outputs.aggregation == "median":
        return "median"
    return "classes" if view.task == "classes" else "sum"


def speed(batch: ScoreBatch, guest: str) -> Speed:
    """Return how fast a scoring was and what it sent; `guest` is the Guest's name."""
    people = sum(score.scored for score in batch.scores)

    def sent(matches: Callable[[TranscriptEntry], bool]) -> float:
        return sum(entry.bytes for entry in batch.transcript if matches(entry)) / max(people, 1)

    return Speed(
        people=people,
        seconds=batch.seconds,
        out=sent(lambda entry: entry.sender == guest),
        between=sent(lambda entry: guest not in (entry.sender, entry.receiver)),
        back=sent(lambda entry: entry.receiver == guest),
    )


def at_or_above(part: Performance, probability: float) -> float:
    """Share of a part's people, 0..1, whose probability is at or above; read off its two outcomes' curves."""
    points = part.separation
    if points is None:
        return math.nan
    at = bisect_right([-cutoff for cutoff in points.cutoffs], -probability) - 1
    if at < 0:
        return 0.0
    negative, positive = part.counts
    return (points.false_positive[at] * negative + points.true_positive[at] * positive) / part.n


def crossings(
    transcript: Iterable[TranscriptEntry], party: str
) -> tuple[tuple[TranscriptEntry, ...], tuple[TranscriptEntry, ...]]:
    """Return the messages with encrypted numbers that a party has sent, and those that have reached it."""
    carried = [entry for entry in transcript if entry.kind in NUMBERS]
    return tuple(e for e in carried if e.sender == party), tuple(e for e in carried if e.receiver == party)


def shares(view: View) -> tuple[Share, ...]:
    """Return each party's part, Guest first, then the Hosts in order."""
    party_shares = []
    for party in (view.model.guest, *view.model.hosts):
        rows = [row for row in view.importance if row.party == party]
        party_shares.append(
            Share(
                party=party,
                features=len(rows),
                used=sum(row.splits > 0 for row in rows),
                splits=sum(row.splits for row in rows),
                gain_share=sum(row.gain_share for row in rows),
                split_share=sum(row.split_share for row in rows),
                cover_share=sum(row.cover_share for row in rows),
            )
        )
    return tuple(party_shares)


def used(importance: Iterable[FeatureImportance]) -> tuple[FeatureImportance, ...]:
    """Return the features that at least one split asks about."""
    return tuple(row for row in importance if row.splits)


def flags(report: ComplianceReport) -> Mapping[str, tuple[Finding, ...]]:
    """Feature name → its findings, worst first."""
    by_feature: dict[str, tuple[Finding, ...]] = {}
    for finding in report.findings:
        by_feature[finding.feature] = (*by_feature.get(finding.feature, ()), finding)
    return by_feature


def asked(report: ComplianceReport) -> Mapping[str, tuple[Question, ...]]:
    """Feature name → its unanswered questions, the worst first."""
    by_feature: dict[str, tuple[Question, ...]] = {}
    for question in report.unanswered:
        by_feature[question.feature] = (*by_feature.get(question.feature, ()), question)
    return by_feature


def key_of(finding: Finding) -> str:
    """Return what a link calls a finding: its rule and its feature."""
    return f"{finding.rule_id}~{finding.feature}"


def open_findings(report: ComplianceReport) -> tuple[Finding, ...]:
    """Findings about features that the model uses, worst first."""
    return tuple(finding for finding in report.findings if finding.usage.splits)


def aliases(model: GuestModel) -> Mapping[str, str]:
    """Return what SecureBoost would show of the Hosts' features: HF1, HF2 … in dictionary order (Fed-EINI Fig. 6)."""
    hidden = [feature.name for party, feature in model.dictionary if party != model.guest]
    return {name: f"HF{i}" for i, name in enumerate(hidden, start=1)}


def where(model: GuestModel, feature: str) -> tuple[tuple[int, int], ...]:
    """(tree, node) of every split on `feature`, largest gain first; trees count from 0."""
    places = [
        (split.gain, i, node)
        for i, tree in enumerate(model.trees)
        for node, split in tree.splits.items()
        if split.feature == feature
    ]
    return tuple((i, node) for _, i, node in sorted(places, reverse=True))


def with_what_if(batch: ScoreBatch, what_if: float | None) -> ScoreBatch:
    """Return scores with what another line would say of each; the decisions stay the policy's, and nothing is computed again."""
    if what_if == batch.what_if:
        return batch
    return replace(batch, what_if=what_if, scores=tuple(with_line(score, what_if) for score in batch.scores))


def explained(reasons: Reasons, batch: ScoreBatch) -> Reasons | None:
    """Reasons with the scores as they are shown now (another cut-off decides again); None if they are of other scores."""
    pairs = list(zip(reasons.people, batch.scores, strict=False))
    fits = reasons.model_id == batch.model_id and len(reasons.people) == len(batch.scores)
    if not fits or any((p.score.id, p.score.units) != (s.id, s.units) for p, s in pairs):
        return None
    return replace(reasons, people=tuple(replace(person, score=score) for person, score in pairs))


def gain(tree: GuestTree) -> float:
    """Sum of the gains of a tree's splits."""
    return sum(split.gain for split in tree.splits.values())


def by_gain(trees: Sequence[GuestTree]) -> tuple[int, ...]:
    """Return the places of some trees, that of the largest gain first."""
    return tuple(sorted(range(len(trees)), key=lambda index: -gain(trees[index])))


def parents(tree: GuestTree) -> Mapping[int, int]:
    """Node → the split above it; the root has none."""
    return {child: node for node, split in tree.splits.items() for child in (split.left, split.right)}


def alive(tree: GuestTree, candidates: Sequence[int]) -> frozenset[int]:
    """Nodes on a way to one of the `candidates`, these included."""
    above = parents(tree)
    nodes = set()
    for leaf in candidates:
        node: int | None = leaf
        while node is not None and node not in nodes:
            nodes.add(node)
            node = above.get(node)
    return frozenset(nodes)


def positions(tree: GuestTree, top: int = 0, levels: int | None = None) -> Mapping[int, tuple[int, float]]:
    """Node → (depth, row) of the part below `top`: ends on rows 0, 1, 2 … downwards, a split between its children.

    Ends are leaves and, if `levels` is given, the splits that many questions below `top`.
    """
    places: dict[int, tuple[int, float]] = {}
    rows = count()

    def visit(node: int, depth: int) -> float:
        item = tree.nodes[node]
        if isinstance(item, Split) and depth != levels:
            row = (visit(item.left, depth + 1) + visit(item.right, depth + 1)) / 2
        else:
            row = float(next(rows))
        places[node] = (depth, row)
        return row

    visit(top, 0)
    return places


def leaves_below(tree: GuestTree, node: int) -> int:
    """Return the number of leaves below a node."""
    item = tree.nodes[node]
    if isinstance(item, Split):
        return leaves_below(tree, item.left) + leaves_below(tree, item.right)
    return 1


def branches(tree: GuestTree, max_leaves: int, levels: int) -> tuple[int, ...]:
    """Return the nodes from which a tree is drawn in parts of `levels` questions; only the root with at most `max_leaves` leaves."""
    if len(tree.leaves) <= max_leaves:
        return (0,)
    every = positions(tree)
    return tuple(node for node in sorted(tree.splits) if every[node][0] % levels == 0)
