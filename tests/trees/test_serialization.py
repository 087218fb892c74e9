"""The two halves survive their JSON, have a content hash, and each lacks what is not its owner's."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import random_world

from backend.errors import ModelError
from backend.i18n import Text
from backend.trees.serialization import content_hash, dump_guest, dump_host, load_guest, load_host, load_skeleton


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_both_partial_models_come_back_the_same(seed):
    world = random_world(seed)
    assert load_guest(dump_guest(world.model)) == world.model
    for partial_model in world.hosts.values():
        assert load_host(dump_host(partial_model)) == partial_model


def test_the_same_model_has_the_same_hash_and_another_has_another():
    assert content_hash(dump_guest(random_world(1).model)) == content_hash(dump_guest(random_world(1).model))
    assert content_hash(dump_guest(random_world(1).model)) != content_hash(dump_guest(random_world(2).model))


def test_both_languages_of_a_feature_are_stored():
    plain = random_world(1).model
    (party, feature), *rest = plain.dictionary
    told = replace(plain, dictionary=((party, feature.model_copy(update={"unit": Text("years", "岁")})), *rest))
    assert load_guest(dump_guest(told)) == told


def test_the_guests_partial_model_holds_no_rule_of_a_host_and_a_hosts_no_weight():
    world = random_world(3)
    guest = json.loads(dump_guest(world.model))
    assert {(r["tree"], r["node"]) for r in guest["rules"]} == set(world.model.rules)
    assert all(world.model.trees[t].nodes[i].owner == "bank" for t, i in world.model.rules)
    for name, partial_model in world.hosts.items():
        text = dump_host(partial_model)
        assert "weight" not in text and "gain" not in text and "cover" not in text
        others = [f.name for party, f in world.model.dictionary if party != name]
        assert not any(other in text for other in others)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "half": "host"}', '{"format": 1, "half": "guest"}']
)
def test_a_damaged_partial_model_is_refused(text):
    with pytest.raises(ModelError, match="partial model"):
        load_guest(text)


@pytest.mark.parametrize(
    "forks",
    [
        [[0, "a", 1, 1]],
        [[0, "a", 0, 1]],
        [[5, "a", 6, 7]],
        [[0, "a", 1, 2], [1, "a", 2, 3]],
        [[0, "a", 1, 2], [5, "a", 6, 7], [6, "a", 5, 8]],
    ],
)
def test_forks_that_are_no_tree_are_refused(forks):
    with pytest.raises(ModelError, match="binary tree"):
        load_skeleton(forks)
