"""What a Guest without manners may say next to a Host of a toy world, as strategies: one conversation is some of these moves in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from leak_scripts import (
    Script,
    begin_training,
    bin_sums,
    cohort,
    distinct,
    group_pairs,
    group_sums,
    in_pieces,
    kept_stump,
    node_sums,
    reasons,
    score,
    split,
)
from leak_worlds import (
    AGED,
    BY_NODE,
    CONVERSATION,
    CROSSED,
    DEEP,
    FINE,
    GROUPED,
    NAMED,
    PAIRS,
    SMALL,
    WIDE,
    World,
)

from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.scoring.messages import AssignAges, BlankValues, PermuteValues

C = CONVERSATION
Moves = st.SearchStrategy[Script]


@dataclass(frozen=True)
class Begun:
    """Conversations with the same first move, and the ways in which they go on from there."""

    first: Script
    ways: list[list[Script]]


@dataclass(frozen=True)
class Conversations:
    """Random conversations of one kind.

    Attributes
    ----------
    first : strategy
        A list of messages that is answered for the most part.
    moves : strategy
        What may come after it, each a list of messages.
    answered : tuple of str
        Kinds of message of which enough have to be answered: refusals alone prove nothing.
    most : int
        Moves after the first.
    ways : int
        Conversations with the same first move.
    """

    world: World
    first: Moves
    moves: Moves
    answered: tuple[str, ...]
    most: int = 1
    ways: int = 5

    @property
    def conversations(self) -> st.SearchStrategy[Begun]:
        """Return whole conversations."""
        way = st.lists(self.moves, min_size=1, max_size=self.most)
        return st.builds(Begun, self.first, st.lists(way, min_size=self.ways, max_size=self.ways))


def people_of(world: World, least: int = 1) -> st.SearchStrategy[list[int]]:
    """Return all people, or some."""
    some = st.sets(st.integers(0, world.people - 1), min_size=min(least, world.people)).map(sorted)
    return st.booleans().flatmap(lambda everybody: st.just(list(range(world.people))) if everybody else some)


def features_of(world: World) -> st.SearchStrategy[tuple[str, ...]]:
    """Return some features."""
    chosen = st.sets(st.sampled_from(world.features), min_size=1)
    return chosen.map(lambda names: tuple(sorted(names)))


def ids(world: World, people: Sequence[int]) -> tuple[str, ...]:
    """Return the ids of some people."""
    return tuple(world.ids[i] for i in people)


def purposes(*names: str) -> Moves:
    """Return a purpose, or none."""
    return st.sampled_from([*names, ""]).map(lambda purpose: [StatePurpose(C, purpose)])


def scores(world: World, widths: Sequence[int] = (0, 1, 10)) -> Moves:
    """Return a question for scores: announced as wide as they are or less, repeated or not, in one piece or two."""

    def asked(people: list[int], bits: int, request: str, step: int, *, pieces: bool) -> Script:
        whole = score(world, people, bits=bits, request=request, step=step)
        return in_pieces(whole) if pieces else [whole]

    requests = st.sampled_from(["", "", "q", "r"])
    some_pieces = st.sampled_from([True, True, False])
    return st.builds(
        asked, people_of(world), st.sampled_from(widths), requests, st.sampled_from([1, 1, 3]), pieces=some_pieces
    )


def changed(world: World, kind: type[PermuteValues | BlankValues]) -> Moves:
    """Return that people are to be scored with other values, or without."""

    def asked(people: list[int], names: tuple[str, ...], scored: list[int], bits: int) -> Script:
        return [
            StatePurpose(C, "validation"),
            kind(C, ids(world, people), names),
            score(world, scored, bits=bits),
        ]

    return st.builds(asked, people_of(world, 2), features_of(world), people_of(world), st.sampled_from([1, 10]))


def aged(world: World) -> Moves:
    """Return that people are to be scored at other ages, and for some of them a score."""

    def asked(people: list[int], place: int, scored: list[int]) -> Script:
        return [StatePurpose(C, "age"), AssignAges(C, ids(world, people), "a", place), score(world, scored)]

    return st.builds(asked, people_of(world, 2), st.sampled_from([0, 1, 0, 1, 2]), people_of(world))


def sums(world: World, sent: Callable[..., Script] = bin_sums) -> Moves:
    """Return a question for the sums of a node, the root or one of its children."""
    return st.builds(
        lambda people, apart, node: sent(world, people, apart=apart, node=node),
        people_of(world),
        st.booleans(),
        st.sampled_from([0, 0, 1, 2]),
    )


def splits(world: World) -> Moves:
    """Return a split of a node."""
    return st.builds(
        lambda people, name, node, left: [split(world, name, people, node=node, left=left)],
        people_of(world),
        st.sampled_from(world.features),
        st.sampled_from([0, 0, 1, 2]),
        st.sampled_from([(0,), (1,), (0, 1)]),
    )


def trainings(world: World, sent: Callable[..., Script] = bin_sums, depth: int = 2) -> Moves:
    """Return a training as far as its first split, or further."""

    def asked(name: str, *, apart: bool, second: list[int], children: bool, kept: bool) -> Script:
        begun = [
            *begin_training(world, depth=depth),
            *sent(world, apart=apart),
            split(world, name),
        ]
        if children:
            # Some of the tables send these people left, the others refuse.
            begun += [*sent(world, second, apart=apart, node=1), split(world, name, second, node=1)]
        return [*begun, kept_stump(world, 10)] if kept else begun

    return st.builds(
        asked,
        st.sampled_from(world.features),
        apart=st.booleans(),
        second=people_of(world),
        children=st.booleans(),
        kept=st.sampled_from([True, True, True, False]),
    )


def parts_of_trainings(world: World, sent: Callable[..., Script] = bin_sums, depth: int = 2) -> Moves:
    """Return any part of a training."""
    begun = people_of(world).map(lambda people: begin_training(world, people, depth=depth))
    return st.one_of(begun, sums(world, sent), splits(world))


def layouts(world: World) -> Moves:
    """Return a stump that is trained and kept with a layout, and scores with it."""

    def asked(bits: int, announced: int, people: list[int], *, sums_apart: bool) -> Script:
        return [
            *begin_training(world),
            *bin_sums(world, apart=sums_apart),
            split(world, "a"),
            kept_stump(world, bits),
            score(world, people, bits=announced, model="other", entries=2),
        ]

    return st.builds(
        asked,
        st.sampled_from([4, 10, 4, 10, 4, 10, 4, 10, 0, 1]),
        st.sampled_from([0, 1, 4]),
        people_of(world),
        sums_apart=st.booleans(),
    )


def cohorts(world: World) -> Moves:
    """Return a cohort of some people."""
    return st.builds(
        lambda people, bits, apart, request: cohort(world, people, value_bits=bits, apart=apart, request=request),
        people_of(world, 2),
        st.sampled_from([1, 30, 52]),
        st.booleans(),
        st.sampled_from(["", "q", "q"]),
    )


def named(world: World) -> Moves:
    """Return names of reasons of some people; what is added to shares finds out how large numbers are, if it may be tried often."""
    return st.builds(
        lambda people, names, added, request, below, step, sideless: reasons(
            world, people, names=names, added=added, request=request, below=below, step=step, sideless=sideless
        ),
        people_of(world),
        st.sampled_from([1, 1, 2]),
        st.sampled_from([0, 1 << 20, 1 << 40, -1 << 40, 1 << 60]),
        st.sampled_from(["", "q", "q"]),
        st.booleans(),
        st.sampled_from([3, 5]),
        st.booleans(),
    )


def pairs(world: World) -> Moves:
    """Return marks of groups of some people, and a question for their sums by other groups."""
    return st.builds(
        lambda people, most: group_pairs(world, people, most=most), people_of(world, 3), st.sampled_from([2, 2, 3])
    )


def groups(world: World) -> Moves:
    """Return marks of some people, and a question for their sums by groups."""
    return st.builds(
        lambda people, apart, half, most: group_sums(world, ("a",), people, apart=apart, half=half, most=most),
        people_of(world, 4),
        st.booleans(),
        st.sampled_from([1, 1, 1, 1, 2, 16]),
        st.sampled_from([2, 2, 3]),
    )


def together(world: World) -> Moves:
    """Return marks of some people, and a question for their sums by two features together, in either order, or by each of them."""
    return st.builds(
        lambda people, apart, names, most: group_sums(world, names, people, apart=apart, most=most, least=2),
        people_of(world, 4),
        st.booleans(),
        st.sampled_from([("a × b",), ("a × b",), ("a × b",), ("b × a",), ("a",), ("b",), ("a", "b"), ("a × b", "a")]),
        st.sampled_from([2, 2, 3]),
    )


def screened(world: World, *stated: str) -> Moves:
    """Return a question for distinct values among some people, under one of these purposes."""
    return st.builds(
        lambda people, purpose: distinct(world, people, purpose=purpose), people_of(world, 2), st.sampled_from(stated)
    )


SCORED = ("DecisionVectors", "MoreVectors")
SCORES = {
    "scores": Conversations(SMALL, scores(SMALL), st.one_of(scores(SMALL), purposes("card")), SCORED, most=2),
    "scores of one bit": Conversations(FINE, scores(FINE), scores(FINE), SCORED, most=2),
    "permuted": Conversations(
        SMALL, changed(SMALL, PermuteValues), scores(SMALL), ("DecisionVectors", "PermuteValues")
    ),
    "blanked": Conversations(SMALL, changed(SMALL, BlankValues), scores(SMALL), ("DecisionVectors", "BlankValues")),
    "permuted, scores of one bit": Conversations(
        FINE,
        changed(FINE, PermuteValues),
        st.one_of(scores(FINE), changed(FINE, PermuteValues), changed(FINE, BlankValues)),
        ("DecisionVectors", "PermuteValues"),
        most=2,
    ),
    "ages": Conversations(AGED, aged(AGED), st.one_of(aged(AGED), scores(AGED)), ("AssignAges", "DecisionVectors")),
}
TRAININGS = {
    "training": Conversations(
        DEEP,
        trainings(DEEP),
        parts_of_trainings(DEEP),
        ("StartTraining", "Gradients", "MoreGradients", "AskBinSums", "TakeSplit", "KeepModel"),
        ways=10,
    ),
    "training, node by node": Conversations(
        BY_NODE,
        trainings(BY_NODE, node_sums),
        parts_of_trainings(BY_NODE, node_sums),
        ("StartTraining", "AskNodeSums", "NodePairs", "TakeSplit", "KeepModel"),
        ways=10,
    ),
    "layouts": Conversations(WIDE, layouts(WIDE), scores(WIDE), ("KeepModel", "DecisionVectors"), ways=10),
}
SUMS_AND_NAMES = {
    "reasons": Conversations(
        NAMED,
        named(NAMED),
        named(NAMED),
        ("AskReasons", "OpenRanking", "ReasonTerms", "ChooseLabels"),
        ways=10,
    ),
    "cohorts": Conversations(WIDE, cohorts(WIDE), cohorts(WIDE), ("AskCohort", "ReasonTerms"), ways=10),
    "groups": Conversations(
        GROUPED, groups(GROUPED), groups(GROUPED), ("GroupPairs", "MoreGroupPairs", "AskGroupSums"), most=2
    ),
    "screening": Conversations(
        GROUPED,
        screened(GROUPED, "screening"),
        st.one_of(screened(GROUPED, "screening", "disparity"), groups(GROUPED)),
        ("AskDistinct",),
    ),
    "together": Conversations(
        CROSSED, together(CROSSED), together(CROSSED), ("GroupPairs", "AskGroupSums"), most=2, ways=10
    ),
    "pairs of groups": Conversations(PAIRS, pairs(PAIRS), pairs(PAIRS), ("AskGroupPairs", "AskGroupSums"), ways=10),
}
MIXED = {
    "mixed": Conversations(
        WIDE,
        st.tuples(trainings(WIDE, depth=1), scores(WIDE)).map(lambda both: [*both[0], *both[1]]),
        st.one_of(
            scores(WIDE),
            purposes("validation"),
            changed(WIDE, PermuteValues),
            changed(WIDE, BlankValues),
            trainings(WIDE, depth=1),
            layouts(WIDE),
            cohorts(WIDE),
            named(WIDE),
            groups(WIDE),
        ),
        ("DecisionVectors", "StartTraining", "Gradients"),
        ways=10,
    ),
}
CONVERSATIONS = {**SCORES, **TRAININGS, **SUMS_AND_NAMES, **MIXED}
"""Kind → its conversations."""
