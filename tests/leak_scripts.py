"""What a Guest without manners says to a Host of the toy world: one script for each thing that once gave away more than was booked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from leak_crowd import played
from leak_worlds import CONVERSATION, GUEST, HOST, MODEL, World, toy_floors, world_of

from backend.crypto.plain import _dump
from backend.protocols.approvals.messages import AskTraining
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.messages import AskCohort, AskReasons, ChooseLabels, OpenRanking, ReasonTerms
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.weighting import PaillierWeighting, PersonWeighting
from backend.protocols.group_sums.grouping import PAIR
from backend.protocols.group_sums.messages import AskDistinct, AskGroupPairs, AskGroupSums, GroupPairs, MoreGroupPairs
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.ranking.shape import OWN
from backend.protocols.scoring.messages import AssignAges, BlankValues, DecisionVectors, MoreVectors, PermuteValues
from backend.protocols.training.growth_record import ROOT
from backend.protocols.training.messages import (
    AskBinSums,
    AskNodeSums,
    Gradients,
    KeepModel,
    MoreGradients,
    NodePairs,
    StartRanks,
    StartTraining,
    TakeSplit,
)
from backend.protocols.training.pair_pieces import pieces
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.message import Message
from backend.protocols.transport.packing import to_bitmap

C = CONVERSATION
BINS = 3
TOGETHER = f"a{PAIR}b"
Script = list[Message]


def rows(world: World, people: Sequence[int] | None = None) -> bytes:
    """Return some of the joint rows, or all."""
    flags = np.zeros(world.people, dtype=bool)
    flags[list(range(world.people) if people is None else people)] = True
    return pack_rows(flags)


def marks(count: int, *, apart: bool) -> list[bytes]:
    """Return pairs of numbers, one a person, in pieces: all alike, or so far apart that a sum says whose they are."""
    pairs = np.array([[1 << (2 * i) if apart else 1, 1] for i in range(count)], dtype=np.int64)
    return [_dump(pairs[part.start : part.stop]) for part in pieces(count, 1, 0)]


def score(
    world: World,
    people: Sequence[int] | None = None,
    *,
    bits: int = 10,
    request: str = "",
    model: str = MODEL,
    entries: int = 0,
    step: int = 1,
) -> DecisionVectors:
    """Return a question for scores whose leaves are powers of 2^step: the sum names the path."""
    ids = tuple(world.ids[i] for i in (range(world.people) if people is None else people))
    entries = entries or world.entries
    vectors = _dump(np.array([[1 << step * entry for entry in range(entries)]] * len(ids)))
    return DecisionVectors(C, model, ids, entries, 1, vectors, request=request, sum_bits=bits)


def in_pieces(asked: DecisionVectors) -> Script:
    """Return the same question in two pieces, as RLWE's may come."""
    half = len(asked.vectors) // 2
    first = replace(asked, vectors=asked.vectors[:half], pieces=2)
    return [first, MoreVectors(C, asked.vectors[half:])]


def begin_training(world: World, people: Sequence[int] | None = None, *, depth: int = 1) -> Script:
    """Return what begins an approved training of one tree."""
    asked = AskTraining(C, algorithm="secureboost", trees=1, depth=depth, bins=BINS, exclude=(), hide_order=False)
    return [asked, StartTraining(C, rows(world, people), BINS, (), hide_order=False, request="")]


def bin_sums(world: World, people: Sequence[int] | None = None, *, apart: bool, node: int = 0) -> Script:
    """Return gradients, and a question for the sums of all features' bins over some rows of a node."""
    chosen = rows(world, people)
    features = to_bitmap(np.ones(len(world.features), dtype=bool))
    first, *more = marks(world.people, apart=apart)
    return [
        Gradients(C, 0, rows(world), (first,)),
        *(MoreGradients(C, (piece,)) for piece in more),
        AskBinSums(C, (0,), (node,), (chosen,), (features,), ((0,),), (_parent(node),)),
    ]


def cohort(
    world: World, people: Sequence[int] | None = None, *, value_bits: int, apart: bool, request: str = ""
) -> Script:
    """Return a cohort of everybody or some people, with honest terms or with one person's far above the other's."""
    width = len(world.features)
    shares = (0.5,) * len(world.model.rules)
    features = (1, width)
    step = world.served.step
    weighting = PaillierWeighting(
        world.cipher(), CompiledFactors(world.model, step, shares), ReasonShape(features, 1, value_bits), 1
    )
    ids = tuple(world.ids[i] for i in (range(world.people) if people is None else people))
    script: Script = [AskCohort(C, MODEL, ids, shares, features, value_bits, request)]
    for person in range(len(ids)):
        factor = 1 << (400 * person) if apart else 1
        terms = [factor * 5**k for k in range(weighting.ciphertexts)]
        script.append(ReasonTerms(C, person, _dump(np.array(terms, dtype=object))))
    return script


def reasons(
    world: World,
    people: Sequence[int] | None = None,
    *,
    names: int = 1,
    added: int = 0,
    request: str = "",
    below: bool = False,
    step: int = 5,
    sideless: bool = True,
) -> Script:
    """Return a question for names of reasons, person by person; of the second number something is added to its share.

    Of numbers without a side all are ranked; of others those alone whose value and drop say so.
    """
    width = len(world.features)
    ids = tuple(world.ids[i] for i in (range(world.people) if people is None else people))
    shares = (0.5,) * len(world.model.rules)
    features = (1, width)
    shape = ReasonShape(features, names, 60)
    compiled = CompiledFactors(world.model, world.served.step, shares)
    weighting = PersonWeighting(cast("Any", world.cipher()), compiled, shape, world.served.plan)
    ranking = shape.ranking
    lengths = [part.ciphertexts for part in (weighting._contributions, weighting._drops)]
    terms = _dump(np.array([(-1) ** k * step**k for count in lengths for k in range(count)], dtype=object))
    numbers = ranking.bits([0, added % (1 << ranking.width), *[0] * (ranking.n - 2)]).ravel()
    sides = np.zeros((OWN, ranking.n), dtype=bool)
    sides[2] = below
    sides[3] = sideless
    choices = np.packbits(np.concatenate([numbers, np.zeros(len(numbers), dtype=bool), sides.ravel()])).tobytes()
    script: Script = [AskReasons(C, MODEL, ids, shares, features, 60, names, request)]
    for person in range(len(ids)):
        script += [ReasonTerms(C, person, terms), OpenRanking(C, b"offer"), ChooseLabels(C, choices)]
    return script


def group_sums(
    world: World,
    features: tuple[str, ...],
    people: Sequence[int] | None = None,
    *,
    apart: bool,
    half: int = 16,
    most: int = 2,
    least: int = 3,
    purpose: str = "disparity",
) -> Script:
    """Return marks and a question for their sums by the groups of features."""
    count = world.people if people is None else len(people)
    first, *more = marks(count, apart=apart)
    return [
        StatePurpose(C, purpose),
        GroupPairs(C, rows(world, people), half, (first,)),
        *(MoreGroupPairs(C, (piece,)) for piece in more),
        AskGroupSums(C, GUEST, features, most, least),
    ]


def together_then_alone(world: World, *features: str) -> Script:
    """Return a question for sums by two features together that say who is in each group, then one for each of some features alone."""
    alone = [AskGroupSums(C, GUEST, (feature,), 2, 2) for feature in features]
    return [*group_sums(world, (TOGETHER,), apart=True, half=16, least=2), *alone]


def group_pairs(world: World, people: Sequence[int] | None = None, *, most: int = 2) -> Script:
    """Return that this Host marks people by the groups of one feature, and a question for these marks' sums by another's."""
    return [
        StatePurpose(C, "proxies"),
        AskGroupPairs(C, rows(world, people), "a", most, (HOST,), 2),
        AskGroupSums(C, HOST, ("b",), most, 2),
    ]


def distinct(world: World, people: Sequence[int] | None = None, *, purpose: str = "screening") -> Script:
    """Return a question for the number of distinct values of a feature among some people."""
    return [StatePurpose(C, purpose), AskDistinct(C, rows(world, people), "a")]


def split(
    world: World, feature: str, people: Sequence[int] | None = None, *, node: int = 0, left: tuple[int, ...] = (0,)
) -> Message:
    """Return a split of a node of the first tree."""
    return TakeSplit(C, 0, node, feature, left, default_left=False, rows=rows(world, people), parent=_parent(node))


def _parent(node: int) -> int:
    return ROOT if node == 0 else (node - 1) // 2


def kept_stump(world: World, bits: int) -> Message:
    """Return that the one tree is kept as a model, a stump of this Host's, with a layout of so many bits."""
    return KeepModel(C, "other", GUEST, (HOST,), (((0, HOST, 1, 2),),), bits, 1, 0, 0, "0" * 64)


def layout_of_no_bits(world: World) -> Script:
    """Return a training of one stump, kept with a layout of no bits, and a score with it."""
    return [
        *begin_training(world),
        *bin_sums(world, apart=False),
        split(world, "a"),
        kept_stump(world, 0),
        score(world, bits=1, model="other", entries=2),
    ]


def node_sums(world: World, people: Sequence[int] | None = None, *, apart: bool, node: int = 0) -> Script:
    """Return what asks for the sums of a node under a cipher that encrypts node by node."""
    count = world.people if people is None else len(people)
    features = to_bitmap(np.ones(len(world.features), dtype=bool))
    numbers = [1 << (2 * i) if apart else 1 for i in range(count)]
    asked = AskNodeSums(C, 0, node, rows(world, people), features, count, 1, _parent(node))
    return [asked, NodePairs(C, _dump(np.array(numbers, dtype=np.int64)))]


def attacks_on_training(world: World) -> Script:
    """Return what a Guest once read from trainings, in one conversation: G1 to G8 of real Hosts (docs/leak-oracle.md)."""
    noise = {"map": "local", "mechanism": "exponential", "theta": 2, "alpha": 1.0, "levels": 4}
    return [
        *begin_training(world, [0]),  # G2, G3: rows of planted people, or of one person
        begin_training(world)[1],
        *bin_sums(world, apart=True),  # G4: gradients 4^i
        *bin_sums(world, [0], apart=False),  # G3: sums over one person
        split(world, "a"),  # G1: any feature at the root, then another one, then a node that never grew
        split(world, "b"),
        split(world, "b", node=4000),
        kept_stump(world, 10),  # G5: a model that never was trained
        StartRanks(C, epsilon=0.05, exclude=(), **noise),  # G7, G8: another algorithm and other noise than was approved
    ]


def attacks_on_answers(world: World) -> Script:
    """Return what a Guest once read from answers, in one conversation: G9 to G14 of real Hosts (docs/leak-oracle.md)."""
    return [
        *cohort(world, value_bits=148, apart=True),  # G9: longer values than a contribution has
        *cohort(world, value_bits=52, apart=True),
        score(world, step=4),  # G10: leaf weights base^k
        score(world, [0], step=3),  # G13: again, in a budget of 1
        kept_stump(world, 0),  # G12: a layout of no bits
        score(world, bits=1, model="other", entries=2),
        StatePurpose(C, "validation"),
        BlankValues(C, world.ids, world.features[:1]),  # G11: features left out one by one
        score(world),
        PermuteValues(C, world.ids[:1], ("a",)),  # G14: has this person a record?
    ]


SCRIPTS: dict[str, Callable[[World], Script]] = {
    "training begins": begin_training,
    "training, bin sums": lambda w: [*begin_training(w), *bin_sums(w, apart=False)],
    "training, marks apart": lambda w: [*begin_training(w), *bin_sums(w, apart=True)],
    "training, sums of one row": lambda w: [*begin_training(w), *bin_sums(w, [0], apart=False)],
    "training, two splits at a node": lambda w: [
        *begin_training(w),
        *bin_sums(w, apart=True),
        split(w, "a"),
        split(w, "b"),
    ],
    "training, one person's rows": lambda w: [*begin_training(w, [0]), *bin_sums(w, apart=False)],
    "score": lambda w: [score(w)],
    "score, twice": lambda w: [score(w), score(w, request="q")],
    "score, no bits": lambda w: [score(w, bits=0)],
    "score, in pieces": lambda w: in_pieces(score(w)),
    "a score of one bit": lambda w: [score(w, bits=1)],
    "a score of one bit, far apart": lambda w: [score(w, bits=1, step=3)],
    "layout of no bits": layout_of_no_bits,
    "permuted, all scored": lambda w: [StatePurpose(C, "validation"), PermuteValues(C, w.ids, ("a",)), score(w)],
    "permuted, one scored": lambda w: [StatePurpose(C, "validation"), PermuteValues(C, w.ids, ("a",)), score(w, [0])],
    "blanked": lambda w: [StatePurpose(C, "validation"), BlankValues(C, w.ids, ("a",)), score(w)],
    "ages": lambda w: [StatePurpose(C, "age"), AssignAges(C, w.ids, "a", 1), score(w, [0])],
    "node sums": lambda w: [*begin_training(w, depth=2), *node_sums(w, apart=True)],
    "cuts of a training": lambda w: [*begin_training(w), *bin_sums(w, apart=True)],
    "cohort": lambda w: cohort(w, value_bits=52, apart=False),
    "cohort, terms apart": lambda w: cohort(w, value_bits=52, apart=True),
    "cohort, twice with other terms": lambda w: [
        *cohort(w, value_bits=52, apart=False, request="q"),
        *cohort(w, value_bits=52, apart=True, request="q"),
    ],
    "reasons": reasons,
    "reasons that have a side": lambda w: reasons(w, names=2, sideless=False),
    "reasons on either side": lambda w: [
        *reasons(w, request="q", names=2, sideless=False),
        *reasons(w, request="q", names=2, sideless=False, below=True),
    ],
    "reasons, ranked twice": lambda w: [*reasons(w, request="q"), *reasons(w, request="q", added=1 << 40, below=True)],
    "groups": lambda w: group_sums(w, ("a",), apart=False, half=1),
    "pairs of groups": group_pairs,
    "together": lambda w: group_sums(w, (TOGETHER,), apart=False, half=1, least=2),
    "together, marks apart": lambda w: group_sums(w, (TOGETHER,), apart=True, half=16, least=2),
    "together, then alone": lambda w: together_then_alone(w, "a", "b"),
    "screening": lambda w: [*distinct(w), *group_sums(w, ("a",), apart=False, half=1, purpose="screening")],
    "screening, distinct values": distinct,
    "screening, fewer people": lambda w: [*distinct(w), *distinct(w, range(w.people - 1))],
    "groups, marks apart": lambda w: group_sums(w, ("a",), apart=True, half=1),
}
"""Name → what is said."""
SUMS = frozenset(
    name
    for name in SCRIPTS
    if name.startswith(("training", "node sums", "cuts", "cohort", "groups", "together", "screening"))
)
"""Scripts whose answers are sums: of them the share of cells named counts, too."""


def figures() -> str:
    """Return what each script tells, as the table of docs/leak-oracle.md has it."""
    lines = []
    with toy_floors():
        for name, script in SCRIPTS.items():
            world = world_of(name)
            verdict = played(world, script(world))
            person, booked = verdict.worst
            everybody = f"{verdict.everybody:.2f} / {sum(verdict.booked):.2f}"
            lines.append(
                f"| {name} | {person:.2f} / {booked:.2f} | {everybody} | {verdict.named:.0%} | {verdict.answered} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{figures()}\n")
