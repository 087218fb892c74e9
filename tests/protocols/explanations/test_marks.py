"""Names have a side: values that lie there, where the medians of the whole reason would have lowered the score. Others give their place."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from actors import MODEL_ID, running
from worlds import GUEST, random_world, with_covers, with_medians

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.data.dictionary import Feature, Kind
from backend.data.medians import medians, moved, sides
from backend.errors import SecurityError
from backend.protocols.explanations.encryption import encryption_of
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.host_factors import CompiledDropFactors, CompiledFactors
from backend.protocols.explanations.messages import ReasonTerms
from backend.protocols.explanations.shape import ReasonShape
from backend.protocols.explanations.weighting import weighting_of
from backend.protocols.scoring.fed_eini import host_plan
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode
from backend.protocols.transport.network import Network
from backend.protocols.transport.packing import from_bitmap
from backend.trees.folding import fold_structure
from backend.trees.serialization import dump_guest, dump_host, load_guest, load_host
from tests.protocols.explanations.test_reasons import key_of, plain, residue_key


def world_of(seed, n_hosts=1, n=6, **kwargs):
    return with_medians(with_covers(random_world(seed, n_hosts, n=n, **kwargs), seed))


def held(world, name):
    owner = world.model.owner_of(name)
    return world.model.medians if owner == GUEST else world.hosts[owner].medians


def drop(world, person, names):
    """Two plain walks: how much lower the score is, in its units, with some features at their medians."""
    row = world.row(person)
    there = dict(row)
    for name in names:
        if name in held(world, name) and row.get(name) is not None:
            low, high = held(world, name)[name]
            there[name] = min(max(row[name], low), high)
    return world.oracle(row) - world.oracle(there)


def oracle(world, person, name, below, reason=None):
    """In the plainest words; `reason` are all features of one, the feature alone if there are none."""
    value = world.row(person).get(name)
    if value is None or name not in held(world, name) or drop(world, person, reason or [name]) <= 0:
        return False
    low, high = held(world, name)[name]
    return value < low if below else value > high


def named(world, key, below=(), tap=None, name="c", over=None, groups=(), sideless=()):
    compiled = CompiledTerms(world.model)
    with running(world, tap=tap, network=over) as (guest, network, _):
        session = Session(network.end(GUEST), name, compiled.chain, timeout=60)
        try:
            client = ReasonsClient(session, guest.name, MODEL_ID, compiled, key)
            return client.names(world.tables[GUEST], 4, below, groups, sideless)
        finally:
            session.close()


@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
@pytest.mark.parametrize(("seed", "n_hosts"), [(1, 1), (12, 3)])
def test_names_are_the_largest_of_those_whose_side_two_plain_walks_confirm(seed, n_hosts, cipher, secret_key):
    n, depth = (5, 2) if cipher == "paillier" else (5, 3) if n_hosts == 1 else (2, 2)
    world = world_of(seed, n_hosts, n=n, n_trees=3, depth=depth)
    below = {f.name for _, f in world.model.dictionary if f.name.endswith("_x")}
    found, values = named(world, key_of(cipher, secret_key, world), below), plain(world)
    for i, (person, names) in enumerate(zip(world.tables[GUEST].ids, found.names, strict=True)):
        possible = [item for item in values if oracle(world, person, item[1], item[1] in below) and values[item][i] > 0]
        best = sorted(possible, key=lambda item: -values[item][i])[:4]
        assert set(names) == set(best)


@pytest.mark.parametrize("seed", [3, 15])
def test_features_of_one_reason_have_one_drop_and_no_more_places_than_it(seed, secret_key):
    """All features of a party are one reason: a side is confirmed by moving all of them together."""
    world = world_of(seed, 2, n=6, n_trees=4, depth=3)
    items = CompiledTerms(world.model).items
    parties = list(dict.fromkeys(party for party, _ in items))
    groups = tuple(parties.index(party) for party, _ in items)
    found, values, alone = named(world, residue_key(CompiledTerms(world.model)), groups=groups), plain(world), 0
    for i, (person, names) in enumerate(zip(world.tables[GUEST].ids, found.names, strict=True)):
        wanted = set()
        for party, feature in items:
            reason = [name for other, name in items if other == party]
            if values[party, feature][i] > 0 and oracle(world, person, feature, False, reason):
                wanted.add((party, feature))
                alone += not oracle(world, person, feature, False)
        assert set(names) == wanted
    assert alone  # somebody whose feature alone changes nothing


def test_what_has_no_side_is_named_whatever_its_side_is(secret_key):
    world = world_of(1, 2, n=4, n_trees=3, depth=2)
    everything = {feature for _, feature in CompiledTerms(world.model).items}
    found, values = named(world, PaillierKeySide(secret_key), sideless=everything), plain(world)
    for i, names in enumerate(found.names):
        best = sorted((item for item in values if values[item][i] > 0), key=lambda item: -values[item][i])[:4]
        assert set(names) == set(best)


@pytest.mark.parametrize("seed", range(6))
def test_drops_are_the_difference_of_two_plain_walks_to_the_last_bit(seed):
    """The parties' own code on plaintext: for everybody and every feature, the score less that with the feature at its median."""
    world = world_of(seed, 1 + seed % 3, n=25, n_trees=5, depth=4)
    compiled = CompiledTerms(world.model)
    shape, folding, drops = compiled.shape(1), fold_structure(world.model.skeletons, GUEST, world.model.hosts), 0
    encryption = encryption_of(PlainKeySide(), compiled.drops(), shape, 1)
    for i, person in enumerate(world.tables[GUEST].ids):
        sent = encryption.encrypted(world.tables[GUEST].take(np.array([i])).columns)
        for place, step in enumerate(folding.steps):
            own = CompiledFactors(world.hosts[step.host], step, compiled.shares_of(step.host))
            factors, row = CompiledDropFactors(own), world.tables[step.host].row_of.get(person)
            columns = {} if row is None else {n: c[row : row + 1] for n, c in world.tables[step.host].columns.items()}
            weighting = weighting_of(PlainPublicSide(), factors, shape, host_plan(folding, place))
            decided = factors.decide(columns, row is not None)
            if step is folding.steps[-1]:
                with patch.object(ReasonShape, "noise_bits", 0):
                    found = encryption.sums(weighting.sums(weighting.values(sent, decided), 1, lambda _: 0), 1)
            else:
                sent = weighting.passed_on(sent, decided)
        unit = 1 << (shape.scale - world.model.score_bits)
        for (_, name), number in zip(compiled.items, found, strict=True):
            assert number == unit * drop(world, person, [name]) and abs(number) < 1 << shape.value_bits
            drops += number > 0
    assert drops > 4


def test_nothing_is_named_where_no_medians_are_known(secret_key):
    world = world_of(1, 2, n=4, n_trees=3, depth=2)
    bare = replace(
        world,
        model=replace(world.model, medians={}),
        hosts={name: replace(host, medians={}) for name, host in world.hosts.items()},
    )
    found = named(bare, PaillierKeySide(secret_key))
    assert not any(found.names)


def test_a_host_between_passes_sides_on_under_fresh_random_bits(secret_key):
    """The same people again and again: neither what the next Host gets nor what the Guest gets is the sides; together they are."""
    world, seen = world_of(3, 2, n=5, n_trees=4, depth=2), []
    compiled = CompiledTerms(world.model)
    first = compiled.chain[0]
    names = [feature for party, feature in compiled.items if party == first]
    table, of = world.tables[first], world.hosts[first].medians
    for run in range(2):
        tap = []
        named(world, PaillierKeySide(secret_key), tap=tap, name=f"c{run}")
        masks = [decode(b).masks for _, _, kind, b in tap if kind == "HeldRecords" and decode(b).masks]
        passed = [decode(b) for sender, _, kind, b in tap if kind == "ReasonTerms" and sender == first]
        assert len(masks) == 1 and not any(decode(b).sides for s, _, k, b in tap if k == "ReasonTerms" and s == GUEST)
        bits = from_bitmap(masks[0], 5 * len(names) * 2).reshape(5, len(names), 2)
        for message in passed:
            sent = from_bitmap(message.sides, len(names) * 2).reshape(len(names), 2)
            row = table.row_of.get(world.tables[GUEST].ids[message.person])
            columns = {} if row is None else {n: c[row : row + 1] for n, c in table.columns.items()}
            assert ((sent ^ bits[message.person]) == sides(names, columns, of, 1)[:, :, 0]).all()
            seen.append((message.person, sent.tobytes(), bits[message.person].tobytes()))
    assert len({sent for _, sent, _ in seen}) > 1 and len({mask for _, _, mask in seen}) > 1


class CutOff(Network):
    """A network on which sides lose their last byte."""

    def send(self, sender, receiver, message):
        if isinstance(message, ReasonTerms):
            message = replace(message, sides=message.sides[:-1])
        return super().send(sender, receiver, message)


def test_cut_off_sides_are_refused(secret_key):
    world = world_of(3, 2, n=2, n_trees=4, depth=2)
    with pytest.raises(SecurityError, match="bitmap"):
        named(world, PaillierKeySide(secret_key), over=CutOff())


def test_medians_are_worked_out_by_hand():
    features = [
        Feature(name="a", meaning="a"),
        Feature(name="c", meaning="c", kind=Kind.CATEGORICAL),
        Feature(name="e", meaning="e"),
    ]
    columns = {
        "a": np.array([0.0, 0.0, 1.0, 3.0, np.nan, 99.0]),
        "c": np.array(["x"] * 6, dtype=object),
        "e": np.full(6, np.nan),
    }
    of = medians(features, columns, np.array([True] * 5 + [False]))
    assert of == {"a": (0.0, 1.0)}  # 0 0 1 3: the two in the middle; the last record is none of training
    above, below = sides(["a", "c"], columns, of, 6)[0]
    assert above.tolist() == [False, False, False, True, False, True] and not below.any()
    assert np.array_equal(moved(columns, of)["a"], [0.0, 0.0, 1.0, 1.0, np.nan, 1.0], equal_nan=True)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_above_is_above_most_and_below_is_below_most(n):
    values = np.random.default_rng(n).integers(0, 4, n).astype(float)
    of = medians([Feature(name="a", meaning="a")], {"a": values}, np.ones(n, dtype=bool))
    above, below = sides(["a"], {"a": values}, of, n)[0]
    for i, value in enumerate(values):
        assert above[i] <= ((values < value).sum() > n / 2 - 1e-9) and below[i] <= (
            (values > value).sum() > n / 2 - 1e-9
        )
        assert not above[i] or (values < value).sum() * 2 > n
        assert not below[i] or (values > value).sum() * 2 > n


def test_medians_travel_with_a_party_s_own_partial_model_only():
    world = world_of(1, 1)
    host = world.hosts["host0"]
    assert load_guest(dump_guest(world.model)).medians == world.model.medians
    assert load_host(dump_host(host)).medians == host.medians
    assert not set(world.model.medians) & set(host.medians) and host.medians
    assert "medians" not in repr(host) and "medians" not in dump_host(replace(host, medians={}))
    assert host.capacity > replace(host, medians={}).capacity
