"""What a Guest without manners says to a Host of the toy world: one script for each thing that once gave away more than was booked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from leak_crowd import played
from leak_worlds import CONVERSATION, GUEST, MODEL, World, toy_floors, world_of

from backend.crypto.plain import _dump
from backend.protocols.approvals.messages import AskTraining
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.messages import AskCohort, ReasonTerms
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.weighting import PaillierWeighting
from backend.protocols.group_sums.messages import AskGroupSums, GroupPairs
from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.scoring.messages import BlankValues, DecisionVectors, PermuteValues
from backend.protocols.training.growth_record import ROOT
from backend.protocols.training.messages import AskBinSums, Gradients, KeepModel, StartTraining, TakeSplit
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.message import Message
from backend.protocols.transport.packing import to_bitmap

C = CONVERSATION
BINS = 3
Script = list[Message]


def rows(world: World, people: Sequence[int] | None = None) -> bytes:
    """Return some of the joint rows, or all."""
    flags = np.zeros(world.people, dtype=bool)
    flags[list(range(world.people) if people is None else people)] = True
    return pack_rows(flags)


def marks(count: int, *, apart: bool) -> bytes:
    """Return pairs of numbers, one a person: all alike, or so far apart that a sum says whose they are."""
    pairs = [[1 << (2 * i) if apart else 1, 1] for i in range(count)]
    return _dump(np.array(pairs, dtype=np.int64))


def score(
    world: World, people: Sequence[int] | None = None, *, bits: int = 10, request: str = "", model: str = MODEL
) -> Message:
    """Return a question for scores whose leaves are powers of two: the sum names the path."""
    ids = tuple(world.ids[i] for i in (range(world.people) if people is None else people))
    vectors = _dump(np.array([[1 << entry for entry in range(world.entries)]] * len(ids)))
    return DecisionVectors(C, model, ids, world.entries, 1, vectors, request=request, sum_bits=bits)


def begin_training(world: World, people: Sequence[int] | None = None) -> Script:
    """Return what begins the approved training: one stump."""
    asked = AskTraining(C, "secureboost", 1, 1, BINS, (), hide_order=False)
    return [asked, StartTraining(C, rows(world, people), BINS, (), hide_order=False, request="")]


def bin_sums(world: World, people: Sequence[int] | None = None, *, apart: bool) -> Script:
    """Return gradients and the sums of both features' bins over some rows."""
    chosen = rows(world, people)
    features = to_bitmap(np.ones(len(world.features), dtype=bool))
    return [
        Gradients(C, 0, rows(world), (marks(world.people, apart=apart),)),
        AskBinSums(C, (0,), (0,), (chosen,), (features,), ((0,),), (ROOT,)),
    ]


def cohort(world: World, *, value_bits: int, apart: bool) -> Script:
    """Return a cohort of everybody, with honest terms or with one person's far above the other's."""
    width = len(world.features)
    shares = (0.5,) * width
    features = (1, width)
    step = world.served.step
    weighting = PaillierWeighting(
        world.cipher(), CompiledFactors(world.model, step, shares), ReasonShape(features, 1, value_bits), 1
    )
    script: Script = [AskCohort(C, MODEL, world.ids, shares, features, value_bits)]
    for person in range(world.people):
        factor = 1 << (400 * person) if apart else 1
        terms = [factor * 5**k for k in range(weighting.ciphertexts)]
        script.append(ReasonTerms(C, person, _dump(np.array(terms, dtype=object))))
    return script


def group_sums(world: World, features: tuple[str, ...], *, apart: bool, half: int = 16) -> Script:
    """Return marks and a question for their sums by the groups of features."""
    return [
        StatePurpose(C, "disparity"),
        GroupPairs(C, rows(world), half, (marks(world.people, apart=apart),)),
        AskGroupSums(C, GUEST, features, 2, 3),
    ]


def layout_of_no_bits(world: World) -> Script:
    """Return a model that never was trained, with a layout of no bits, and a score with it."""
    kept = KeepModel(C, "other", GUEST, world.model.hosts, world.wire_skeletons, 0, 1, 0, 1, "0" * 64)
    return [*begin_training(world), kept, score(world, bits=1, model="other")]


SCRIPTS: dict[str, Callable[[World], Script]] = {
    "training begins": begin_training,
    "training, bin sums": lambda w: [*begin_training(w), *bin_sums(w, apart=False)],
    "training, marks apart": lambda w: [*begin_training(w), *bin_sums(w, apart=True)],
    "training, sums of one row": lambda w: [*begin_training(w), *bin_sums(w, [0], apart=False)],
    "training, two splits at a node": lambda w: [
        *begin_training(w),
        *bin_sums(w, apart=True),
        TakeSplit(C, 0, 0, "a", (0,), default_left=False, rows=rows(w)),
        TakeSplit(C, 0, 0, "b", (0,), default_left=False, rows=rows(w)),
    ],
    "training, one person's rows": lambda w: [*begin_training(w, [0]), *bin_sums(w, apart=False)],
    "score": lambda w: [score(w)],
    "score, twice": lambda w: [score(w), score(w, request="q")],
    "score, no bits": lambda w: [score(w, bits=0)],
    "layout of no bits": layout_of_no_bits,
    "permuted, all scored": lambda w: [StatePurpose(C, "validation"), PermuteValues(C, w.ids, ("a",)), score(w)],
    "permuted, one scored": lambda w: [StatePurpose(C, "validation"), PermuteValues(C, w.ids, ("a",)), score(w, [0])],
    "blanked": lambda w: [StatePurpose(C, "validation"), BlankValues(C, w.ids, ("a",)), score(w)],
    "cohort": lambda w: cohort(w, value_bits=8, apart=False),
    "cohort, terms apart": lambda w: cohort(w, value_bits=52, apart=True),
    "groups": lambda w: group_sums(w, ("a",), apart=False, half=1),
    "groups, marks apart": lambda w: group_sums(w, ("a",), apart=True, half=1),
}
"""Name → what is said."""
SUMS = frozenset(name for name in SCRIPTS if name.startswith(("training", "cohort", "groups")))
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
