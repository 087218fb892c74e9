"""Groups that reasons compare with: counted over the records that reach each split, and told to a Host in coarse shares only."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import GUEST, random_world, with_bands

from backend.errors import ParameterError
from backend.trees.backgrounds import (
    ALL,
    COVERS,
    MIN_RECORDS,
    STEPS,
    Background,
    ScoreBands,
    backgrounds,
    left_shares,
    methods,
    score_bands,
    shares_of,
)
from backend.trees.ensemble import GuestTree, Leaf, Split
from backend.trees.outputs import Outputs
from backend.trees.serialization import dump_guest, load_guest

N = 620


@pytest.fixture(scope="module")
def world():
    return with_bands(random_world(4, 2, n_trees=3, depth=3, n=N))


@pytest.fixture(scope="module")
def records(world):
    """Per record the nodes it passes, by tree, and its score: node by node, with everything in one hand."""
    rules = {k: r for half in (world.model, *world.hosts.values()) for k, r in half.rules.items()}
    found = []
    for sample in world.tables[GUEST].ids:
        row, nodes = world.row(sample), []
        for t, tree in enumerate(world.model.trees):
            end, parents = (
                world.leaf_of(t, row, rules),
                {c: i for i, s in tree.splits.items() for c in (s.left, s.right)},
            )
            while end in parents:
                nodes.append((t, end))
                end = parents[end]
        found.append((set(nodes), world.oracle(row)))
    return found


def test_shares_are_those_of_the_records_that_come_to_each_split(world, records):
    model, coarse = world.model, 0
    lows = (-(2**40), *model.bands.uppers)
    for background in backgrounds(model):
        if background is COVERS:
            continue
        low, high = (-(2**40), 2**40) if background is ALL else (lows[background.band], lows[background.band + 1])
        group = [nodes for nodes, score in records if low <= score < high]
        assert background.records(model) == len(group)
        for (t, i), share in left_shares(model, background).items():
            split = model.trees[t].splits[i]

            def gone(among, t=t, split=split):
                left, right = (sum((t, child) in nodes for nodes in among) for child in (split.left, split.right))
                return left, left + right

            (left, came), everybody = gone(group), gone([nodes for nodes, _ in records])
            of_all = everybody[0] / everybody[1] if everybody[1] else 0.5
            if background is ALL:
                assert share == of_all
            elif split.owner == model.guest:
                assert share == (left / came if came else of_all)
            elif came < MIN_RECORDS:
                assert share == of_all
            else:
                coarse += 1
                assert share * STEPS == round(share * STEPS) and abs(share - left / came) <= 0.5 / STEPS
    assert coarse  # or nothing was told to a Host


def test_one_record_moves_no_share_that_a_host_is_told_by_more_than_one_step(world):
    """Take any record out: whatever band it was in, every share at a Host's split stays, moves one step or is that of all."""
    model = world.model
    taken = 0
    for t, leaves in enumerate(model.bands.counts):
        for place, leaf in enumerate(leaves):
            band = int(np.argmax(leaf))
            fewer = [list(map(list, tree)) for tree in model.bands.counts]
            fewer[t][place][band] -= 1
            counts = tuple(tuple(tuple(c) for c in tree) for tree in fewer)
            without = replace(model, bands=replace(model.bands, counts=counts))
            before, after = (left_shares(m, Background("approved", band)) for m in (model, without))
            of_all = left_shares(without, ALL)
            for (u, i), share in before.items():
                if model.trees[u].splits[i].owner != model.guest and abs(after[u, i] - share) > 1 / STEPS:
                    assert after[u, i] == of_all[u, i]  # too few are left
                    taken += 1
    assert taken < sum(len(leaves) for leaves in model.bands.counts)


def test_all_records_tell_a_host_what_it_counted_in_training(world, records):
    """Its own splits' rows are known to it: which of a node's training records go left."""
    for host in world.hosts:
        told = shares_of(world.model, left_shares(world.model, ALL), host)
        splits = [(t, i) for t, tree in enumerate(world.model.trees) for i, s in tree.splits.items() if s.owner == host]
        counted = []
        for t, i in splits:
            split = world.model.trees[t].splits[i]
            left, right = (sum((t, c) in nodes for nodes, _ in records) for c in (split.left, split.right))
            counted.append(left / (left + right) if left + right else 0.5)
        assert told == tuple(counted)


def test_the_band_is_the_nearest_whole_one_below_the_cut_off(world):
    model = world.model
    probabilities = [1 / (1 + np.exp(-upper / 2**model.score_bits)) for upper in model.bands.uppers]
    for k, probability in enumerate(probabilities):
        assert Background.of(model, "approved", float(probability) + 1e-9) == Background("approved", k)
    with pytest.raises(ParameterError, match="too few to compare with"):
        Background.of(model, "approved", float(probabilities[0]) - 0.05)
    assert Background.of(model, "approved", 1.0).band == len(probabilities) - 1
    with pytest.raises(ParameterError, match="too few"):
        Background.of(model, "approved", 0.0)


def test_equal_scores_share_a_band_and_few_records_make_few_bands():
    tree = GuestTree((Split(GUEST, "g", 1, 2, True, 1.0, 4.0), Leaf(1.0, 2.0), Leaf(0.0, 2.0)))
    few = score_bands([tree], [np.array([1, 2, 1])], np.array([5, 3, 5]))
    assert few.uppers == (6,) and few.counts == (((2,), (1,)),) and few.total == 3
    units = np.repeat([7, 9, 11], [700, 100, 200])
    many = score_bands([tree], [np.where(units == 11, 2, 1)], units)
    assert many.uppers == (11, 12) and many.counts == (((800, 0), (0, 200)),)
    assert [many.records(k) for k in (0, 1)] == [800, 200]


def test_a_model_without_counts_knows_covers_alone_and_keeps_its_hash(world):
    older = replace(world.model, bands=None)
    assert "bands" not in dump_guest(older)
    assert list(backgrounds(older)) == [COVERS] and Background.of(older) is COVERS and Background.of(world.model) is ALL
    for against in ("all", "approved"):
        with pytest.raises(ParameterError, match="Choose covers"):
            Background.of(older, against)
    with pytest.raises(ParameterError, match="choose one of covers"):
        Background.of(world.model, "median")
    amounts = replace(world.model, outputs=Outputs("number", link="identity"))
    one_band = replace(world.model, bands=ScoreBands((1,), ()))
    for model in (amounts, one_band):
        assert methods(model) == ("all", "covers")
        with pytest.raises(ParameterError, match="only just approved"):
            Background.of(model, "approved")


def test_counts_come_back_from_the_artefact(world):
    text = dump_guest(world.model)
    assert load_guest(text).bands == world.model.bands and dump_guest(load_guest(text)) == text
