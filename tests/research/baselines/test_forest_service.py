"""The forest goes on: whichever worker is killed, stopped or fails, the answer is that of the other trees, and nothing waits for long."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from actors import MODEL_ID, running
from worlds import GUEST, random_world

from backend.errors import ModelError, PartyUnreachable, SecurityError
from backend.protocols.transport.channel import Session
from backend.research.baselines.forest_service import ForestService, _without_main, candidate_leaves
from backend.research.baselines.guest import GuestPaths
from backend.trees.ensemble import Split
from backend.trees.outputs import Outputs

TREES, WORKERS = 7, 3  # so that the workers hold trees 0-2, 3-4 and 5-6
CLASSES = ("a", "b", "c")


def forest(outputs):
    """A world whose model is a forest: no base score, leaves that add up or of which the median is taken."""
    world = random_world(5, n_hosts=2, n_trees=TREES)
    trees = world.model.trees
    if outputs.classes:
        draw = np.random.default_rng(1)
        trees = tuple(replace(t, nodes=tuple(with_shares(n, draw) for n in t.nodes)) for t in trees)
    model = replace(world.model, trees=trees, base_scores=(0.0,) * outputs.count, outputs=outputs)
    return replace(world, model=model)


def with_shares(node, draw):
    return node if isinstance(node, Split) else replace(node, weights=tuple(draw.dirichlet([1.0] * 3).tolist()))


def votes(world):
    """Oracle: ``(n, trees, k)``: every tree walked node by node, at the public scale."""
    unit, model = 2**world.model.score_bits, world.model
    leaves = [
        [tree.nodes[world.leaf_of(t, world.row(i))] for t, tree in enumerate(model.trees)]
        for i in world.tables[GUEST].ids
    ]
    return np.round([[leaf.weights or (leaf.weight,) for leaf in row] for row in leaves] * np.array(unit)) / unit


def asked(world):
    """The candidate leaves of the one-round protocol, over the wire."""
    with running(world) as (_, network, _):
        session = Session(network.end(GUEST), "one-round", world.model.hosts, timeout=120)
        try:
            return candidate_leaves(GuestPaths(world.model), MODEL_ID, world.tables[GUEST], session)
        finally:
            session.close()


MEAN = Outputs(link="identity")
WORLD = forest(MEAN)


@pytest.fixture(scope="module")
def candidates():
    return asked(WORLD)


@pytest.fixture(scope="module")
def started():
    with ForestService(WORLD.model, WORKERS, timeout=120.0) as service:
        yield service


@pytest.fixture
def service(started):
    """Every worker is up, also those that the test before has killed."""
    assert started.wait_ready()
    return started


@pytest.mark.parametrize(
    "outputs", [MEAN, Outputs(link="identity", aggregation="median"), Outputs("classes", CLASSES, "identity")]
)
def test_all_trees_give_the_walks_sum_or_median(outputs):
    world = forest(outputs)
    with ForestService(world.model, WORKERS, timeout=120.0) as service:
        assert service.wait_ready()
        answer = service.answer(asked(world))
        none = service.answer(np.zeros((0, world.model.n_leaves), dtype=bool))
    expected = votes(world)
    expected = np.median(expected, axis=1) if outputs.aggregation == "median" else expected.sum(axis=1)
    np.testing.assert_allclose(answer.margins, expected, atol=1e-12)
    assert answer.missing == () and none.margins.shape == (0, outputs.count)


def test_a_killed_worker_is_left_out_at_once_and_later_comes_back(service, candidates):
    os.kill(service.processes[1], signal.SIGKILL)
    began = time.monotonic()
    answer = service.answer(candidates)
    assert time.monotonic() - began < 100  # the timeout is 120 seconds
    assert answer.missing == (3, 4)
    others = votes(WORLD)[:, [0, 1, 2, 5, 6]]
    np.testing.assert_allclose(answer.margins, others.sum(axis=1) * 7 / 5, atol=1e-12)
    assert service.wait_ready()
    whole = service.answer(candidates)
    assert whole.missing == ()
    np.testing.assert_allclose(whole.margins, votes(WORLD).sum(axis=1), atol=1e-12)


def test_a_worker_killed_while_it_works_is_left_out(service, candidates):
    """Stopped, so that it has the batch but no answer yet; then killed from another hand."""
    pid = service.processes[2]
    os.kill(pid, signal.SIGSTOP)
    service._threads.submit(lambda: (time.sleep(0.5), os.kill(pid, signal.SIGKILL)))
    began = time.monotonic()
    assert service.answer(candidates).missing == (5, 6)
    assert time.monotonic() - began < 100


@pytest.mark.slow
def test_a_hanging_worker_is_left_out_after_the_patience_however_large_the_batch(candidates):
    many = np.tile(candidates, (10_000, 1))  # more than fits a pipe
    with ForestService(WORLD.model, WORKERS, timeout=4.0) as service:
        assert service.wait_ready()
        stopped = service.processes[0]
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        answer = service.answer(many)
        assert 4.0 <= time.monotonic() - began < 120
        assert answer.missing == (0, 1, 2) and len(answer.margins) == len(many)
        assert service.processes[0] != stopped and service.wait_ready()
        assert service.answer(candidates).missing == ()


def test_the_median_is_that_of_the_trees_that_are_left():
    world = forest(Outputs(link="identity", aggregation="median"))
    with ForestService(world.model, WORKERS, timeout=120.0) as service:
        assert service.wait_ready()
        os.kill(service.processes[0], signal.SIGKILL)
        answer = service.answer(asked(world))
    np.testing.assert_allclose(answer.margins, np.median(votes(world)[:, 3:], axis=1), atol=1e-12)


def test_without_any_worker_nothing_is_predicted(service, candidates):
    for pid in service.processes:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(PartyUnreachable, match="repeat"):
        service.answer(candidates)


def test_candidates_that_do_not_meet_in_one_leaf_are_refused_and_the_workers_live_on(service, candidates):
    wrong = candidates.copy()
    wrong[0, :] = False
    before = service.processes
    with pytest.raises(SecurityError, match="do not meet"):
        service.answer(wrong)
    assert service.answer(candidates).missing == () and service.processes == before


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": Outputs()},
        {"base_scores": (0.5,)},
        {"outputs": Outputs(link="identity", of_tree=(0,) * TREES)},
        {"trees": WORLD.model.trees[:1]},
    ],
)
def test_a_model_that_adds_up_all_of_its_trees_is_refused(change):
    with pytest.raises(ModelError, match="Only a forest"):
        ForestService(replace(WORLD.model, **change), WORKERS)


def test_more_workers_than_trees_are_not_started():
    with ForestService(WORLD.model, 20) as service:
        assert len(service.processes) == TREES


def test_a_worker_does_not_run_the_main_script_again(tmp_path, monkeypatch):
    """As in the dashboard, where the main module is a page: a spawned process would run it once more."""
    script = tmp_path / "page.py"
    script.write_text("raise SystemExit('the page was run again')")
    page = ModuleType("__main__")
    page.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", page)
    with ForestService(WORLD.model, workers=2) as service:
        assert service.wait_ready()
        assert sys.modules["__main__"] is page


def test_two_services_that_start_workers_at_once_leave_the_main_module_in_its_place():
    main, inside, go, seen = sys.modules["__main__"], threading.Event(), threading.Event(), []

    def first():
        with _without_main():
            inside.set()
            go.wait(10)

    def second():
        with _without_main():
            seen.append(sys.modules["__main__"])

    one, other = threading.Thread(target=first), threading.Thread(target=second)
    one.start()
    inside.wait(10)
    other.start()
    other.join(0.2)  # waits for the first one
    assert not seen
    go.set()
    one.join(10)
    other.join(10)
    assert sys.modules["__main__"] is main is not seen[0]
