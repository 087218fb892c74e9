"""The comparison of protocols: rounds, messages and bytes as counted by hand, and figures that fit each other."""

import itertools

import pytest
from actors import MODEL_ID, running
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_runs import KEY, run_comparison, toy_world
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.errors import ParameterError
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.transport.channel import Session
from backend.protocols.transport.simulated_latency import INSTANT, Link
from backend.research.baselines.comparison import PROTOCOLS, compare, protocols
from backend.research.baselines.guest import GuestPaths


def test_rounds_and_messages_of_the_toy_are_as_counted_by_hand():
    rows = run_comparison(toy_world()).rows
    figures = {row.protocol: (row.exchange.rounds, row.exchange.hops, row.exchange.messages) for row in rows}
    assert figures == {
        "fed-eini": (1, 2, 4),  # key, vectors; records held, scores
        "multi-interactive-node": (2, 4, 8),  # start, ask; records held, answer: for each sample
        "multi-interactive-tree": (1, 2, 4),
        "multi-interactive-level": (1, 2, 4),
        "one-round-streaming": (2, 4, 4),
        "one-round-batched": (1, 2, 2),
        "collaborative": (1, 2, 4),  # there to HF4, back to its leaf
    }


def test_the_toys_bytes_are_those_of_its_messages():
    row = next(r for r in run_comparison(toy_world()).rows if r.protocol == "one-round-batched")
    # array header, name, map of field names and values; conversation c1…, bitmaps of 1 and 2 bytes
    ask, answer = (e.bytes for e in row.transcript if e.kind != "EndConversation")
    assert ask + answer == row.exchange.bytes
    assert answer == 1 + 1 + 15 + 1 + (13 + 1 + len("c11")) + (5 + 2 + 1) + (7 + 2 + 2)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_hosts=st.integers(1, 3), n=st.integers(1, 12))
def test_rounds_are_within_what_the_papers_say(seed, n_hosts, n):
    world = random_world(seed, n_hosts, depth=4, n=n)
    paths = GuestPaths(world.model)
    if not paths.hosts:
        return
    depth, trees = max(tree.depth for tree in world.model.trees), len(world.model.trees)
    done = {row.protocol: row.exchange for row in run_comparison(world).rows}
    assert done["fed-eini"].rounds == done["one-round-batched"].rounds == 1
    assert done["one-round-batched"].hops == 2 and done["one-round-streaming"].rounds == n
    assert done["multi-interactive-node"].rounds <= n * trees * depth
    assert done["multi-interactive-tree"].rounds <= trees * depth
    assert done["multi-interactive-level"].rounds <= depth
    handovers = paths.trees.handovers()
    assert len(handovers) <= depth + 1  # to the root's owner, down, and back with the leaf
    assert done["collaborative"].hops == max(len(handovers), 2)
    assert done["collaborative"].messages == 2 * len(paths.hosts) + sum(len(handed) for handed in handovers)


def test_a_comparison_has_a_row_for_every_protocol_with_the_same_scores():
    reported = []
    done = run_comparison(random_world(4, 2, n=5), key=PaillierKeySide(KEY), on_protocol=reported.append)
    assert tuple(row.protocol for row in done.rows) == PROTOCOLS == tuple(reported)
    assert all(row.equal for row in done.rows)
    assert (done.samples, done.cipher, done.key_bits) == (5, "paillier", 512)
    for row in done.rows:
        sent = [e for e in row.transcript if e.kind != "EndConversation"]
        assert row.exchange.messages == len(sent) and row.exchange.bytes == sum(e.bytes for e in sent)
        assert row.exchange.total == row.exchange.compute + row.exchange.network > 0
        assert [s.party for s in row.learned] == [GUEST, "host0", "host1"]


def test_another_link_changes_times_and_nothing_else():
    done = run_comparison(random_world(4, 2))
    other = done.over(INSTANT)
    for before, after in zip(done.rows, other.rows, strict=True):
        assert after.exchange.network == 0 < before.exchange.network
        assert after.exchange.compute == before.exchange.compute and after.exchange.bytes == before.exchange.bytes
        assert (after.learned, after.equal) == (before.learned, before.equal)
    assert other.over(Link()) == done


def test_a_comparison_as_json_holds_every_figure_and_no_transcript():
    body = run_comparison(random_world(4, 1), names=("fed-eini", "collaborative")).as_dict()
    assert [p["protocol"] for p in body["protocols"]] == ["fed-eini", "collaborative"]
    assert body["latency_seconds"] == 0.05 and body["bandwidth_bytes_per_second"] == 300_000
    assert set(body["protocols"][0]) == {
        "protocol", "rounds", "hops", "messages", "bytes", "compute_seconds", "network_seconds", "total_seconds",
        "work_seconds", "equal", "learned",
    }  # fmt: skip
    assert body["protocols"][0]["learned"][1]["bits"] is None
    assert set(body["protocols"][1]["learned"][0]) == {
        "party", "received", "ids", "held", "directions", "leaves", "score", "bits",
    }  # fmt: skip


def test_a_protocol_that_scores_otherwise_is_found_out():
    class Wrong:
        name = "wrong"

        def __init__(self, right):
            self._right = right

        def run(self, *args):
            outcome = self._right.run(*args)
            outcome.scored.units[-1] += 1
            return outcome

    world = random_world(4, 1)
    key = PlainKeySide()
    with running(world) as (guest, network, _):
        every = protocols(guest, world.model, CompiledGuest(world.model), key)
        every["wrong"] = Wrong(every["collaborative"])
        number = itertools.count(1)
        done = compare(
            every,
            MODEL_ID,
            world.tables[GUEST],
            key,
            lambda: Session(network.end(GUEST), f"c{next(number)}", world.model.hosts, timeout=120),
            names=("fed-eini", "wrong"),
        )
    assert [row.equal for row in done.rows] == [True, False]


def test_a_comparison_refuses_an_unknown_protocol_no_sample_and_a_model_without_hosts():
    with pytest.raises(ParameterError, match="Asked for the protocols \\[riac\\]; there are: fed-eini, "):
        run_comparison(random_world(4, 1), names=("riac",))
    with pytest.raises(ParameterError, match=r"Asked for the protocols \[\]"):
        run_comparison(random_world(4, 1), names=())
    with pytest.raises(ParameterError, match="no sample"):
        run_comparison(random_world(4, 1, n=0))
    with pytest.raises(ParameterError, match="No Host owns a split"):
        run_comparison(random_world(4, 0))
