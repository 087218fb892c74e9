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
    group_sums,
    in_pieces,
    kept_stump,
    node_sums,
    score,
    split,
)
from leak_worlds import (
    AGED,
    BY_NODE,
    CONVERSATION,
    DEEP,
    FINE,
    GROUPED,
    SMALL,
    WIDE,
    World,
)

from backend.protocols.purposes.messages import StatePurpose
from backend.protocols.scoring.messages import AssignAges, BlankValues, PermuteValues

C = CONVERSATION
Moves = st.SearchStrategy[Script]


@dataclass(frozen=True)
class Conversations:
    """Random conversations of one kind.

    Attributes
    ----------
    moves : strategy
        Each a list of messages.
    answered : tuple of str
        Kinds of message of which enough have to be answered: refusals alone prove nothing.
    examples : int
        Conversations, times those of the run.
    """

    world: World
    moves: Moves
    answered: tuple[str, ...]
    examples: int = 1


def people_of(world: World) -> st.SearchStrategy[list[int]]:
    """Return all people, or some."""
    everybody = list(range(world.people))
    return st.one_of(st.just(everybody), st.sets(st.integers(0, world.people - 1), min_size=1).map(sorted))


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
    return st.builds(
        asked, people_of(world), st.sampled_from(widths), requests, st.sampled_from([1, 1, 3]), pieces=st.booleans()
    )


def changed(world: World) -> Moves:
    """Return that people are to be scored with other values, or without."""

    def asked(kind: Callable[..., PermuteValues | BlankValues], people: list[int], names: tuple[str, ...]) -> Script:
        return [StatePurpose(C, "validation"), kind(C, ids(world, people), names)]

    kinds = st.sampled_from([BlankValues, PermuteValues])
    return st.builds(asked, kinds, people_of(world), features_of(world))


def aged(world: World) -> Moves:
    """Return that people are to be scored at other ages, and for some of them a score."""

    def asked(people: list[int], place: int, scored: list[int]) -> Script:
        return [StatePurpose(C, "age"), AssignAges(C, ids(world, people), "a", place), score(world, scored)]

    return st.builds(asked, people_of(world), st.integers(0, 2), people_of(world))


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
    """Return a training as far as its first split, or any part of one."""

    def whole(people: list[int], name: str, *, apart: bool, second: list[int], children: bool) -> Script:
        begun = [
            *begin_training(world, depth=depth),
            *sent(world, apart=apart),
            split(world, name),
        ]
        if children:
            # Some of the tables send these people left, the others refuse.
            begun += [*sent(world, second, apart=apart, node=1), split(world, name, second, node=1)]
        return [*begun, kept_stump(world, 10)] if len(people) == 1 else begun

    everybody = st.builds(
        whole,
        people_of(world),
        st.sampled_from(world.features),
        apart=st.booleans(),
        second=people_of(world),
        children=st.booleans(),
    )
    some = people_of(world).map(lambda people: begin_training(world, people, depth=depth))
    return st.one_of(everybody, everybody, some, sums(world, sent), splits(world))


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
        st.sampled_from([0, 1, 4, 10]),
        st.sampled_from([0, 1, 4]),
        people_of(world),
        sums_apart=st.booleans(),
    )


def cohorts(world: World) -> Moves:
    """Return a cohort of some people."""
    return st.builds(
        lambda people, bits, apart: cohort(world, people, value_bits=bits, apart=apart),
        people_of(world),
        st.sampled_from([1, 8, 52]),
        st.booleans(),
    )


def groups(world: World) -> Moves:
    """Return marks of some people, and a question for their sums by groups."""
    return st.builds(
        lambda people, apart, half, most: group_sums(world, ("a",), people, apart=apart, half=half, most=most),
        people_of(world),
        st.booleans(),
        st.sampled_from([1, 1, 2, 16]),
        st.sampled_from([2, 2, 3]),
    )


CONVERSATIONS = {
    "scores": Conversations(
        SMALL, st.one_of(scores(SMALL), scores(SMALL), purposes("card")), ("DecisionVectors", "MoreVectors")
    ),
    "scores of one bit": Conversations(FINE, scores(FINE), ("DecisionVectors", "MoreVectors")),
    "permuted and blanked": Conversations(
        SMALL,
        st.one_of(st.tuples(changed(SMALL), scores(SMALL)).map(lambda both: [*both[0], *both[1]]), scores(SMALL)),
        ("DecisionVectors", "PermuteValues", "BlankValues"),
    ),
    "permuted, scores of one bit": Conversations(
        FINE,
        st.one_of(changed(FINE), scores(FINE), scores(FINE)),
        ("DecisionVectors", "PermuteValues", "BlankValues"),
    ),
    "ages": Conversations(AGED, st.one_of(aged(AGED), aged(AGED), scores(AGED)), ("AssignAges", "DecisionVectors")),
    "training": Conversations(
        DEEP, trainings(DEEP), ("StartTraining", "Gradients", "AskBinSums", "TakeSplit", "KeepModel")
    ),
    "training, node by node": Conversations(
        BY_NODE,
        trainings(BY_NODE, node_sums),
        ("StartTraining", "AskNodeSums", "NodePairs", "TakeSplit", "KeepModel"),
    ),
    "layouts": Conversations(WIDE, layouts(WIDE), ("KeepModel", "DecisionVectors")),
    "cohorts": Conversations(WIDE, cohorts(WIDE), ("AskCohort", "ReasonTerms")),
    "groups": Conversations(GROUPED, groups(GROUPED), ("GroupPairs", "AskGroupSums")),
    "mixed": Conversations(
        WIDE,
        st.one_of(scores(WIDE), purposes("validation"), changed(WIDE), trainings(WIDE), layouts(WIDE), cohorts(WIDE)),
        ("DecisionVectors", "StartTraining", "Gradients", "PermuteValues"),
    ),
}
"""Kind → its conversations."""
