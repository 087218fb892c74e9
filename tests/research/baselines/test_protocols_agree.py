"""Every protocol gives the plain walk's score."""

from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_runs import KEY, run, toy_world
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide


def test_the_toy_samples_score_the_weights_of_leaves_one_and_two_under_every_protocol():
    for ran in run(toy_world()).values():
        assert ran.scored.units == [16, 32]
        assert ran.scored.has_record["host0"].tolist() == [True, False]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(0, 3), together=st.integers(1, 13), depth=st.integers(1, 4))
def test_all_protocols_give_the_plain_walks_score(seed, n_hosts, together, depth):
    world = random_world(seed, n_hosts, depth=depth)
    ids = world.tables[GUEST].ids
    expected = [world.oracle(world.row(i)) for i in ids]
    runs = run(world, together=together)
    for name, ran in runs.items():
        assert ran.scored.units == expected, name
        assert ran.scored.has_record.keys() == runs["fed-eini"].scored.has_record.keys()
        for host, held in ran.scored.has_record.items():
            assert held.tolist() == [i in world.tables[host].row_of for i in ids]


@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_three_parties_under_encryption_agree_with_the_protocols_in_the_clear(seed):
    runs = run(random_world(seed, 2, n=4), key=PaillierKeySide(KEY))
    assert len({tuple(ran.scored.units) for ran in runs.values()}) == 1
