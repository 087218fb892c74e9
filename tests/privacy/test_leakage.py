"""The leak meter: its counts are those of trying every combination of leaves, and both counts say what they are."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from actors import MODEL_ID, running
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.crypto.plain import PlainKeySide
from backend.errors import SecurityError
from backend.privacy import leakage
from backend.privacy.leakage import LeakMeter, Population, leak_curve
from backend.protocols.scoring.packing import Packing
from backend.protocols.transport.channel import Session
from backend.research.attacks.score_identifies_path import identify
from backend.research.attacks.setup import attack_setup
from backend.research.baselines.guest import GuestPaths
from backend.research.baselines.joint_audit import joint_audit
from backend.trees.backgrounds import leaf_shares
from backend.trees.compiled import Conjunctions, own_conditions
from backend.trees.ensemble import GuestModel, GuestTree, Leaf, Split
from tests.worlds import GUEST, World, random_world, with_outputs

NO_COLUMNS = {}


def covered(world: World, seed: int) -> World:
    """The same trees with covers drawn, since random worlds give every leaf the same."""
    draw, trees = np.random.default_rng(seed), []
    for tree in world.model.trees:
        nodes = list(tree.nodes)
        for i in reversed(range(len(nodes))):  # children come after their parent
            node = nodes[i]
            cover = (
                float(draw.integers(1, 9))
                if isinstance(node, Leaf)
                else nodes[node.left].cover + nodes[node.right].cover
            )
            nodes[i] = replace(node, cover=cover)
        trees.append(GuestTree(tuple(nodes)))
    return replace(world, model=replace(world.model, trees=tuple(trees)))


def brute(model: GuestModel, candidates: np.ndarray, released: int, dither: int = 0) -> tuple[int, float, float, float]:
    """Count, entropy, min-entropy and surprisal of the combinations that come as near, by trying every one."""
    units, base, shares = Packing(model).of_leaves(), Packing(model).base, leaf_shares(model)[0]
    trees, first = [], 0
    for tree in model.trees:
        here = [leaf for leaf in range(first, first + len(tree.leaves)) if candidates[leaf]]
        whole = sum(shares[leaf] for leaf in here)
        trees.append([(int(units[leaf]), shares[leaf] / whole) for leaf in here])
        first += len(tree.leaves)
    found = [
        math.prod(p for _, p in combination)
        for combination in product(*trees)
        if abs(base + sum(unit for unit, _ in combination) - released) <= dither
    ]
    mass = sum(found)
    entropy = -sum(p / mass * math.log2(p / mass) for p in found if p) if found else math.nan
    return len(found), entropy, *((-math.log2(max(found) / mass), -math.log2(mass)) if found else (math.nan, math.nan))


def true_scores(world: World) -> list[int]:
    """Every Guest record's packed score, walked node by node."""
    packed, out = Packing(world.model), []
    of_leaves, starts = packed.of_leaves(), np.cumsum([0, *(len(t.leaves) for t in world.model.trees)])
    for name in world.tables[GUEST].ids:
        row = world.row(name)
        ends = [tree.leaves.index(world.leaf_of(t, row)) for t, tree in enumerate(world.model.trees)]
        out.append(packed.base + sum(int(of_leaves[starts[t] + end]) for t, end in enumerate(ends)))
    return out


def candidates_of(world: World) -> np.ndarray:
    table = world.tables[GUEST]
    return GuestPaths(world.model).candidates(table.columns, len(table.ids))


def host_leaves(world: World) -> np.ndarray:
    """What a joint audit gives: leaves that no Host rules out, for the Guest's ids in order."""
    ids = world.tables[GUEST].ids
    kept = np.ones((len(ids), world.model.n_leaves), dtype=bool)
    for name, partial_model in world.hosts.items():
        table = world.tables[name]
        held = np.array([i in table.row_of for i in ids])
        rows = np.array([table.row_of.get(i, 0) for i in ids])
        columns = {feature: column[rows] for feature, column in table.columns.items()}
        conjunctions = Conjunctions(partial_model.rules, own_conditions(partial_model.skeletons, partial_model.rules))
        for block, answers in conjunctions.blocks(columns, len(ids), held):
            kept[block] &= answers.T
    return kept


def two_leaf_model(weights: list[tuple[float, float]], covers: tuple[float, float] = (1.0, 3.0)) -> GuestModel:
    """Trees of one Host split each."""
    trees = tuple(
        GuestTree((Split("host", "x", 1, 2, True, 1.0, sum(covers)), Leaf(low, covers[0]), Leaf(high, covers[1])))
        for low, high in weights
    )
    return GuestModel(GUEST, ("host",), trees, (0.0,), 0, (), {})


def test_a_worked_example() -> None:
    # three trees of the leaves 0 and 1, reached in 1 of 4 and 3 of 4 cases: the sum 2 has three combinations, equally likely
    model = two_leaf_model([(0.0, 1.0)] * 3)
    reading = LeakMeter(model).read(NO_COLUMNS, [2])[0]
    assert reading.count == 3
    assert reading.bits == pytest.approx(math.log2(3))
    assert reading.combinations == 8
    assert reading.entropy == pytest.approx(math.log2(3))
    assert reading.min_entropy == pytest.approx(math.log2(3))
    assert reading.prior == pytest.approx(3 * (2 - 0.75 * math.log2(3)))  # entropy of (1/4, 3/4)


def test_a_count_of_one_identifies_the_path() -> None:
    reading = LeakMeter(two_leaf_model([(0.0, 1.0), (0.0, 2.0), (0.0, 4.0)])).read(NO_COLUMNS, [5])[0]
    assert (reading.count, reading.entropy, reading.min_entropy) == (1, 0.0, 0.0)


@pytest.mark.parametrize("score", [-1, 4, 9])
def test_a_score_that_no_combination_gives_counts_zero(score: int) -> None:
    reading = LeakMeter(two_leaf_model([(0.0, 1.0), (0.0, 5.0)])).read(NO_COLUMNS, [score])[0]
    assert reading.count == 0
    assert reading.bits == -math.inf
    assert math.isnan(reading.entropy)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 8), st.integers(1, 2))
def test_the_meter_counts_what_trying_every_combination_counts(seed: int, trees: int, bits: int, hosts: int) -> None:
    world = covered(random_world(seed, n_hosts=hosts, n_trees=trees, depth=2, n=4, bits=bits), seed)
    readings = LeakMeter(world.model).read(world.tables[GUEST].columns, true_scores(world))
    for reading, candidates, released in zip(readings, candidates_of(world), true_scores(world), strict=True):
        count, entropy, least, told = brute(world.model, candidates, released)
        assert reading.count == count >= 1
        assert reading.entropy == pytest.approx(entropy, abs=1e-9)
        assert reading.min_entropy == pytest.approx(least, abs=1e-9)
        assert reading.disclosed_bits == pytest.approx(told, abs=1e-9)
        assert reading.min_entropy <= reading.entropy + 1e-9 <= reading.bits + 2e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 8), st.integers(0, 300), st.integers(-300, 300))
def test_with_dither_all_combinations_that_come_near_are_counted(seed, trees, bits, dither, moved) -> None:
    world = covered(random_world(seed, n_hosts=1, n_trees=trees, depth=2, n=3, bits=bits), seed)
    moved = max(-dither, min(dither, moved))
    released = [score + moved for score in true_scores(world)]
    readings = LeakMeter(world.model).read(world.tables[GUEST].columns, released, dither)
    for reading, candidates, score in zip(readings, candidates_of(world), released, strict=True):
        count, entropy, least, told = brute(world.model, candidates, score, dither)
        assert reading.count == count >= 1
        assert reading.entropy == pytest.approx(entropy, abs=1e-9)
        assert reading.min_entropy == pytest.approx(least, abs=1e-9)
        assert reading.disclosed_bits == pytest.approx(told, abs=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_leaves_of_several_numbers_are_bounded_by_the_class_that_discloses_most(seed: int) -> None:
    world = with_outputs(covered(random_world(seed, n_trees=3, depth=2, n=3, bits=3), seed), "vectors", seed)
    packing = Packing(world.model)
    units = np.zeros((packing.n_leaves, packing.slots), dtype=int)
    units[packing.leaf, packing.slot] = packing.unit
    base, released = packing.unpack([packing.base])[0], true_scores(world)
    readings = LeakMeter(world.model).read(world.tables[GUEST].columns, released)
    ends = np.cumsum([0, *(len(tree.leaves) for tree in world.model.trees)])
    for reading, candidates, sums in zip(readings, candidates_of(world), packing.unpack(released), strict=True):
        trees = [[leaf for leaf in range(a, b) if candidates[leaf]] for a, b in pairwise(ends)]
        totals = [base + units[list(combination)].sum(axis=0) for combination in product(*trees)]
        by_class = [sum(total[k] == sums[k] for total in totals) for k in range(packing.slots)]
        together = sum((total == sums).all() for total in totals)
        assert reading.count == min(by_class) >= together >= 1
        assert reading.combinations == len(totals)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["class trees", "median"]))
def test_several_sums_are_counted_together(seed: int, kind: str) -> None:
    world = with_outputs(covered(random_world(seed, n_trees=4, depth=2, n=3, bits=3), seed), kind, seed)
    readings = LeakMeter(world.model).read(world.tables[GUEST].columns, true_scores(world))
    for reading, candidates, released in zip(readings, candidates_of(world), true_scores(world), strict=True):
        count, entropy, least, told = brute(world.model, candidates, released)
        assert reading.count == count >= 1
        assert (reading.entropy, reading.min_entropy) == pytest.approx((entropy, least), abs=1e-9)
        assert reading.disclosed_bits == pytest.approx(told, abs=1e-9)


def drawn_model(seed: int, trees: int, leaves: int, bits: int, owner: str = "host") -> GuestModel:
    """Complete trees of a Host's splits with drawn weights and covers."""
    draw, grown = np.random.default_rng(seed), []
    for _ in range(trees):
        covers = draw.integers(1, 1000, leaves).astype(float)
        inner = leaves - 1
        nodes: list[Split | Leaf] = [Leaf(float(draw.normal(scale=0.1)), float(cover)) for cover in covers]
        tree: list[Split | Leaf] = []
        whole = [0.0] * (2 * leaves)
        whole[inner : 2 * leaves - 1] = covers.tolist()
        for i in reversed(range(inner)):
            whole[i] = whole[2 * i + 1] + whole[2 * i + 2]
        tree = [Split(owner, "x", 2 * i + 1, 2 * i + 2, True, 1.0, whole[i]) for i in range(inner)]
        grown.append(GuestTree((*tree, *nodes)))
    return GuestModel(GUEST, ("host",), tuple(grown), (0.0,), bits, (), {})


def drawn_scores(model: GuestModel, seed: int, n: int) -> list[int]:
    """Scores of leaves that are drawn tree by tree as covers have it; and the smallest and the largest of all."""
    draw, packed = np.random.default_rng(seed), Packing(model)
    units, shares = packed.of_leaves(), leaf_shares(model)[0]
    ends = np.cumsum([0, *(len(tree.leaves) for tree in model.trees)])
    spans = [(units[a:b], shares[a:b]) for a, b in pairwise(ends)]
    some = [sum(int(draw.choice(u, p=p)) for u, p in spans) for _ in range(n)]
    return [packed.base + score for score in (*some, *(sum(int(f(u)) for u, _ in spans) for f in (np.min, np.max)))]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.sampled_from([2, 4, 8]),
    st.integers(0, 12),
    st.sampled_from([0, 1, 40]),
)
def test_the_bound_is_never_below_what_the_score_tells(seed, trees, leaves, bits, dither) -> None:
    model = drawn_model(seed, trees, leaves, bits)
    scores = drawn_scores(model, seed, 3)
    meter = LeakMeter(model)
    for reading, bound in zip(meter.read({}, scores, dither), meter.bound({}, scores, dither), strict=True):
        assert bound.disclosed_bits >= reading.disclosed_bits
        assert bound.min_entropy <= reading.min_entropy + 1e-9


@pytest.mark.parametrize(("bits", "dither"), [(10, 0), (10, 32), (14, 0)])
def test_the_bound_is_within_a_twentieth_of_a_bit_where_there_are_many_trees(bits: int, dither: int) -> None:
    model = drawn_model(5, 60, 8, bits)
    scores = drawn_scores(model, 5, 3)[:3]
    meter = LeakMeter(model)
    for reading, bound in zip(meter.read({}, scores, dither), meter.bound({}, scores, dither), strict=True):
        assert reading.disclosed_bits <= bound.disclosed_bits <= reading.disclosed_bits + 0.05
        assert bound.additions > 10_000


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["vectors", "class trees", "median"]))
def test_the_bound_holds_for_several_sums(seed: int, kind: str) -> None:
    world = with_outputs(covered(random_world(seed, n_trees=4, depth=2, n=3, bits=3), seed), kind, seed)
    meter, columns, scores = LeakMeter(world.model), world.tables[GUEST].columns, true_scores(world)
    for reading, bound in zip(meter.read(columns, scores), meter.bound(columns, scores), strict=True):
        assert bound.disclosed_bits >= reading.disclosed_bits
        assert bound.min_entropy <= reading.min_entropy + 1e-9


def test_the_bound_by_hand() -> None:
    # three trees of 0 and 1 with 1/4 and 3/4: the sum 2 has the probability 3·(3/4)²·1/4, the best guess before was right in (3/4)³
    model = two_leaf_model([(0.0, 1.0)] * 3)
    bound = LeakMeter(model).bound(NO_COLUMNS, [2])[0]
    assert bound.disclosed_bits == pytest.approx(-math.log2(27 / 64), abs=1e-5)
    assert bound.min_entropy == pytest.approx(max(0.0, math.log2(64 / 27) + math.log2(27 / 64)), abs=1e-5)
    # the sum is met from its nearer end, 1, narrow trees first: halves of two trees and of one; lengths 1 and 2, and 1, two leaves each
    assert bound.additions == 2 * (1 + 2) + 2
    assert LeakMeter(model).bound(NO_COLUMNS, [9])[0].disclosed_bits == math.inf
    # 0 or 1 with the probability 1/64 + 9/64, far from the mean: the tilt is taken back exactly
    assert LeakMeter(model).bound(NO_COLUMNS, [0], 1)[0].disclosed_bits == pytest.approx(-math.log2(10 / 64), abs=1e-4)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = random_world(3, n_trees=6, depth=2, n=3, bits=6)
    whole = LeakMeter(world.model).read(world.tables[GUEST].columns, true_scores(world))
    monkeypatch.setattr(leakage, "BLOCK", 7)
    assert LeakMeter(world.model).read(world.tables[GUEST].columns, true_scores(world)) == whole


def test_a_thousand_trees_stay_in_range() -> None:
    # binomial: 1000 trees of 0 and 1; the sum 500 has C(1000, 500) combinations, 0 has one
    model = two_leaf_model([(0.0, 1.0)] * 1200, covers=(1.0, 1.0))
    middle, end = LeakMeter(model).read(NO_COLUMNS, [600, 0])
    assert middle.bits == pytest.approx(math.log2(math.comb(1200, 600)))
    assert middle.entropy == pytest.approx(middle.bits)
    assert end.count == 1
    assert end.combinations == 2**1200


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["sum", "vectors", "class trees"]))
def test_the_population_count_is_that_of_walking_every_record(seed: int, kind: str) -> None:
    world = random_world(seed, n_trees=3, depth=2, n=8, bits=2)
    world = world if kind == "sum" else with_outputs(world, kind, seed)
    table, hosts, guest = world.tables[GUEST], host_leaves(world), candidates_of(world)
    people = np.array([0, 5, 7])
    population = Population(world.model, table.take(people).columns, hosts, people)
    packing, scores = Packing(world.model), true_scores(world)
    assert population.released(world.model) == [scores[i] for i in people]
    for i, found in zip(people, population.counts(world.model), strict=True):
        paths = [tuple(np.flatnonzero(guest[i] & answers)) for answers in hosts]
        sums = [packing.base + sum(int(v) for v in packing.of_leaves()[list(path)]) for path in paths]
        assert found == len({path for path, total in zip(paths, sums, strict=True) if total == scores[i]})


def test_a_joint_audit_gives_what_the_hosts_leave_open() -> None:
    world = random_world(8, n_trees=5)
    with running(world) as (_, network, _):
        session = Session(network.end(GUEST), "audit", world.model.hosts, timeout=120)
        try:
            # three messages to each Host
            audited = joint_audit(session, MODEL_ID, world.model, world.tables[GUEST].ids, batch=5)
        finally:
            session.close()
    assert (audited == host_leaves(world)).all()


def test_a_host_that_is_not_simulated_takes_part_in_no_audit() -> None:
    world = random_world(8, n_trees=5)
    with running(world, simulated=False) as (_, network, _):
        session = Session(network.end(GUEST), "audit", world.model.hosts, timeout=120)
        try:
            with pytest.raises(SecurityError, match="A Host does not answer AskCandidates"):
                joint_audit(session, MODEL_ID, world.model, world.tables[GUEST].ids)
        finally:
            session.close()


@pytest.mark.parametrize("bits", [6, 12])
def test_the_population_count_identifies_the_people_that_the_attack_identifies(bits: int) -> None:
    setup, people = attack_setup(500, 10), np.arange(0, 400, 10)
    model, table = setup.rounded(bits), setup.guest.take(people)
    population = Population(model, table.columns, setup.host_leaves(np.arange(len(setup.host.ids))), people)
    assert (int((population.counts(model) == 1).sum()), len(people)) == identify(setup, people, bits, 0.0, [])
    scored = setup.score(setup.compiled(bits), table, PlainKeySide(), setup.host_party())
    assert population.released(model) == scored.units


def test_a_finer_score_leaves_fewer_paths() -> None:
    world = random_world(11, n_hosts=1, n_trees=6, depth=3, n=20)
    table, calls = world.tables[GUEST], []
    points = list(
        leak_curve(world.model, table.columns, host_leaves(world), np.arange(20), (0, 16), lambda: calls.append(1))
    )
    coarse, fine = points
    assert len(calls) == 40
    assert (coarse.score_bits, coarse.people, coarse.records) == (0, 20, 20)
    assert coarse.bits > fine.bits
    assert coarse.identified <= fine.identified
    assert fine.identified <= fine.unique  # one combination is one path
    assert coarse.unique <= fine.unique == 1.0
    assert coarse.paths >= fine.paths == 1.0
