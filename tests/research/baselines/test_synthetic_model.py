"""Synthetic models: complete trees of the shape that was asked for, equal scores by every protocol, nothing left behind."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.errors import ParameterError
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.research.baselines.comparison import PROTOCOLS, compare, protocols
from backend.research.baselines.synthetic_model import (
    GUEST,
    SCORE_BITS,
    Shape,
    SyntheticFederation,
    SyntheticModel,
    make_up,
)
from backend.trees.ensemble import Split

SMALL = Shape(trees=3, depth=2, features=5)


def walked(made: SyntheticModel, row: int) -> int:
    """Node by node with everything in one place: a sample's score in units of 2**-SCORE_BITS."""
    rules = {
        **made.model.rules,
        **{key: rule for partial_model in made.partial_models.values() for key, rule in partial_model.rules.items()},
    }
    total = 0
    for t, tree in enumerate(made.model.trees):
        node = 0
        while isinstance(split := tree.nodes[node], Split):
            rule = rules[t, node]
            left = made.tables[split.owner].columns[rule.feature][row] < rule.threshold
            node = split.left if left else split.right
        total += round(tree.nodes[node].weight * 2**SCORE_BITS)
    return total


def race(made: SyntheticModel, key, names=PROTOCOLS):
    compiled = CompiledGuest(made.model)
    with SyntheticFederation(made, key, pools=False) as runtime:
        every = protocols(runtime.guest, made.model, compiled, key)
        session = lambda: runtime.open_session(made.model.hosts)  # noqa: E731
        return compare(every, "synthetic", made.tables[GUEST], key, session, names=names), every, session


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"trees": 0}, "trees of the synthetic model is 0; choose from 1 to 200"),
        ({"trees": 201}, "is 201"),
        ({"depth": 1}, "depth of the synthetic model is 1; choose from 2 to 8"),
        ({"depth": 9}, "is 9"),
        ({"features": 3}, "features of the synthetic model is 3; choose from 4 to 100"),
        ({"hosts": 0}, "hosts of the synthetic model is 0"),
        ({"features": 4, "hosts": 3}, "4 features are too few"),
    ],
)
def test_a_shape_out_of_its_range_is_refused(wanted, words):
    with pytest.raises(ParameterError, match=words):
        Shape(**wanted)


def test_every_tree_is_complete_and_half_of_everything_is_the_hosts():
    shape = Shape(trees=4, depth=3, features=9, hosts=2)
    model = make_up(shape, 2, 1).model
    assert [tree.depth for tree in model.trees] == [3] * 4
    assert [len(tree.leaves) for tree in model.trees] == [8] * 4
    assert shape.leaves == model.n_leaves == 32
    held = [party for party, _ in model.dictionary]
    assert {party: held.count(party) for party in held} == {"guest": 5, "host1": 2, "host2": 2}
    for tree in model.trees:
        owners = [split.owner for split in tree.splits.values()]
        assert {owner: owners.count(owner) for owner in owners} == {"guest": 3, "host1": 2, "host2": 2}


@pytest.mark.parametrize("seed", range(5))
def test_even_the_smallest_model_asks_the_host(seed):
    owners = [split.owner for split in make_up(Shape(1, 2, 100), 1, seed).model.trees[0].splits.values()]
    assert sorted(owners) == ["guest", "host1", "host1"]


def test_a_seed_gives_one_model_whatever_the_number_of_samples():
    one, more, other = make_up(SMALL, 1, 7), make_up(SMALL, 6, 7), make_up(SMALL, 1, 8)
    assert one.model == more.model != other.model
    assert one.partial_models == more.partial_models
    assert len(more.tables[GUEST].ids) == len(more.tables["host1"].ids) == 6


@pytest.mark.parametrize("hosts", [1, 2])
def test_every_protocol_gives_the_scores_of_a_walk_with_everything_in_one_place(hosts):
    made = make_up(replace(SMALL, hosts=hosts), 4, 3)
    runs, _, _ = race(made, PlainKeySide())
    assert [row.protocol for row in runs.rows] == list(PROTOCOLS)
    assert all(row.equal for row in runs.rows)
    compiled = CompiledGuest(made.model)
    with SyntheticFederation(made, PlainKeySide(), pools=False) as runtime:
        session = runtime.open_session(made.model.hosts)
        scored = runtime.guest.score("synthetic", compiled, made.tables[GUEST], PlainKeySide(), session)
        session.close()
    assert list(scored.units) == [walked(made, i) for i in range(4)]
    assert len(set(scored.units)) > 1


def test_encrypted_scores_are_the_same_and_hide_the_path():
    made = make_up(SMALL, 2, 3)
    key = PaillierKeySide(PaillierSecretKey.generate(512, 512))
    runs, _, _ = race(made, key, ("fed-eini", "multi-interactive-level"))
    ours, theirs = runs.rows
    assert theirs.equal
    assert (ours.learned[0].directions, ours.exchange.rounds) == (0, 1)
    assert theirs.learned[0].directions > 0
    assert all(np.array([row.exchange.bytes, row.exchange.compute]).all() for row in runs.rows)


def test_the_hosts_are_gone_afterwards():
    before = set(threading.enumerate())
    race(make_up(SMALL, 1, 3), PlainKeySide(), ("fed-eini",))
    assert not [t for t in threading.enumerate() if t not in before and t.name.startswith("host-")]
