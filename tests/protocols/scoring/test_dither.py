"""Dither: what the last Host adds to a score is what its secret gives, the same whenever it is asked, and no more than it says."""

import hmac
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import GUEST, random_world, with_outputs

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.crypto.rlwe.parameters import parameters_for
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.data.demo import write_demo
from backend.data.federation import MAX_DITHER
from backend.errors import ParameterError, SecurityError
from backend.protocols.host import HostParty
from backend.protocols.scoring.dither import DITHER, check_layout, dithers, half_units, headroom, usual_dither
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores, MoreVectors
from backend.protocols.scoring.packing import Packing
from backend.protocols.scoring.permuted_values_guest import have_permuted
from backend.protocols.scoring.permuted_values_host import OtherValues
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.packing import to_bitmap
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.ensemble import Layout
from backend.trees.outputs import Outputs
from backend.trees.serialization import dump_host, load_host, structure_hash

ALL = np.array([True, True, True])


def with_layout(world):
    """The world after its Hosts were told how scores are laid out."""
    layout = Packing(world.model).layout
    return replace(world, hosts={n: replace(h, layout=layout, salt=f"salt of {n}") for n, h in world.hosts.items()})


def dithering(world, widths, limits=None):
    """The world's parties; each Host asks for a dither of its own."""
    options = {name: {"dither": width} for name, width in zip(world.hosts, widths, strict=True)}
    for name, limit in zip(world.hosts, limits or (), strict=False):
        options[name]["accountant"] = Accountant(Database(), Limits(limit))
    return running(world, options=options)


def expected(world, half, served):
    """What the last Host's long-term secret and the trees give."""
    table, last = world.tables[GUEST], world.hosts["host1"]
    stored = served.hosts["host1"]._store.secret("dither")
    secret = hmac.digest(stored, structure_hash(last).encode(), "sha256").hex()
    held = np.array([i in world.tables["host1"].row_of for i in table.ids])
    return dithers(secret, last.layout, table.ids, held, half)


@pytest.mark.parametrize("cipher", ["none", "paillier", "rlwe"])
@pytest.mark.parametrize("widths", [(0.0, 2.0**-4), (2.0**-4, 2.0**-6), (2.0**-6, 0.0)])
def test_a_score_is_the_plain_one_and_what_the_last_hosts_secret_gives(cipher, widths, secret_key):
    world = with_layout(random_world(3, 2, n=8))
    compiled, half = CompiledGuest(world.model), half_units(max(widths), 10)
    if cipher == "rlwe":
        parameters = parameters_for(len(compiled.folding.steps), compiled.folding.n_entries, compiled.largest)
        key = RlweKeySide(RlweSecretKey.generate(parameters))
    else:
        key = PaillierKeySide(secret_key) if cipher == "paillier" else PlainKeySide()
    with dithering(world, widths) as (guest, network, served):
        first, _ = score(world, guest, network, key, name="c")
        again, _ = score(world, guest, network, key, name="d")
        added = expected(world, half, served)
    plain = [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]
    assert len(set(added)) > 1 and first.dither == half
    assert first.units == [p + d for p, d in zip(plain, added, strict=True)] == again.units


@pytest.mark.parametrize("kind", ["vectors", "class trees", "median"])
def test_every_sum_of_a_packed_score_moves_by_a_number_of_its_own(kind, secret_key):
    world = with_layout(with_outputs(random_world(3, 2, n_trees=4), kind, 3))
    packing = Packing(world.model)
    with dithering(world, (0.0, 2.0**-4)) as (guest, network, served):
        moved, _ = score(world, guest, network, PaillierKeySide(secret_key))
        for host in served.hosts.values():
            host.leave_uncounted("plain")
        plain, _ = score(world, guest, network, PlainKeySide(), name="plain")
    difference = packing.unpack(moved.units) - packing.unpack(plain.units)
    assert plain.dither == 0 and np.abs(difference).max() <= 32 and (difference.std(axis=0) > 0).all()
    assert any(len(set(row)) > 1 for row in difference.tolist())
    assert np.abs(packing.margins(moved.units) - packing.margins(plain.units)).max() <= 2.0**-5


def test_a_conversation_that_is_not_counted_and_one_that_is_played_get_no_dither():
    world = with_layout(random_world(3, 2, n=8))
    plain = [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]
    with dithering(world, (2.0**-4, 2.0**-4)) as (guest, network, served):
        for host in served.hosts.values():
            host.leave_uncounted("m")
        measured, _ = score(world, guest, network, PlainKeySide(), name="m")
        for host in ("host0", "host1"):
            served.hosts[host].play("p", GUEST, world.tables[host])
        played, _ = score(world, guest, network, PlainKeySide(), name="p")
    assert measured.units == plain == played.units and measured.dither == played.dither == 0


@pytest.mark.parametrize("limits", [(1, 9), (9, 1)])
def test_an_empty_score_does_not_show_the_number_that_was_added_to_an_earlier_one(limits):
    world = with_layout(random_world(3, 2, n=6))
    with dithering(world, (0.0, 2.0**-4), limits) as (guest, network, _):
        score(world, guest, network, PlainKeySide(), name="c")
        again, _ = score(world, guest, network, PlainKeySide(), name="d")
    constant, _ = CompiledGuest(world.model).encode(world.tables[GUEST].columns, 6)
    assert again.refused and all(again.units[i] == constant[i] for i in again.refused)


def test_a_guest_cannot_have_the_number_left_out_by_saying_that_somebody_was_refused():
    world = with_layout(random_world(3, 1, n=6))
    (name, half), ids = next(iter(world.hosts.items())), world.tables[GUEST].ids
    store = memory_store({MODEL_ID: dump_host(half)})
    host = HostParty(name, world.tables[name], (), store, simulated=True, dither=2.0**-4)
    list(host.answer(GUEST, OfferKey("c", "none", b"")))
    compiled, key = CompiledGuest(world.model), PlainKeySide()
    _, entries = compiled.encode(world.tables[GUEST].columns, 6)
    everybody = to_bitmap(np.ones(6, dtype=bool))
    asked = DecisionVectors("c", MODEL_ID, ids, entries.shape[1], 1, key.encrypt(entries), 0, everybody)
    reply = next(m for _, m in host.answer(GUEST, asked) if isinstance(m, EncryptedScores))
    assert reply.dither == 32
    list(host.answer(GUEST, OfferKey("d", "none", b"")))
    honest = replace(asked, conversation="d", spent=b"")
    again = next(m for _, m in host.answer(GUEST, honest) if isinstance(m, EncryptedScores))
    assert key.decrypt(reply.scores, 6) == key.decrypt(again.scores, 6)
    with pytest.raises(SecurityError, match="belongs to no batch"):
        list(host.answer(GUEST, MoreVectors("d", b"")))


def test_a_guest_refuses_scores_that_a_host_moved_further_than_it_may():
    world = with_layout(random_world(3, 1, n=4))
    with dithering(world, (0.0,)) as (guest, network, served):
        host = served.hosts["host0"]
        answer = host.answer
        host.answer = lambda sender, message: (
            (to, replace(m, dither=129) if isinstance(m, EncryptedScores) else m) for to, m in answer(sender, message)
        )
        with pytest.raises(SecurityError, match="at most 128 are accepted"):
            score(world, guest, network, PlainKeySide())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 500))
def test_numbers_are_keyed_repeatable_and_within_their_range(score_bits, slots, half):
    layout = Layout(score_bits, slots, 20 if slots > 1 else 0)
    ids = ("a", "b", "c")
    drawn = dithers("s", layout, ids, ALL, half)
    assert drawn == dithers("s", layout, ids, ALL, half)
    if slots == 1:
        assert all(abs(d) <= half for d in drawn)
    if half > 100:
        assert drawn != dithers("t", layout, ids, ALL, half)
        assert drawn != dithers("s", layout, ids, ~ALL, half)  # a stranger's number is not that of a later record


def test_numbers_are_uniform():
    ids = tuple(str(i) for i in range(9000))
    drawn = Counter(dithers("s", Layout(10, 1, 0), ids, np.ones(9000, dtype=bool), 4))
    assert set(drawn) == set(range(-4, 5)) and all(abs(n - 1000) < 150 for n in drawn.values())


def test_widths_become_units_and_scales_that_are_coarser_get_none():
    assert [half_units(DITHER, bits) for bits in (16, 10, 6, 4)] == [2048, 32, 2, 0]
    assert [headroom(bits) for bits in (10, 4)] == [128, 2]


def test_a_runtime_takes_the_files_width_then_the_usual_one(tmp_path, monkeypatch):
    monkeypatch.delenv("GLASSLEAF_DITHER", raising=False)
    federation = write_demo(tmp_path, rows=100)
    own = federation.hosts[0].model_copy(update={"dither": 0.125})
    federation = federation.model_copy(update={"hosts": (own, *federation.hosts[1:])})

    def widths(given):
        made = FederationRuntime(given, tmp_path / "parties", key_floor=512, pools=False)
        made.close()
        return [h._dither for h in made._simulated.hosts.values()]

    assert widths(federation)[:2] == [0.125, 0.0]
    assert widths(federation.model_copy(update={"synthetic": False}))[:2] == [0.125, DITHER]
    monkeypatch.setenv("GLASSLEAF_DITHER", "0.03125")
    assert usual_dither(False) == usual_dither(True) == 0.03125
    for wrong in ("x", "-1", "0.5", "nan"):
        monkeypatch.setenv("GLASSLEAF_DITHER", wrong)
        with pytest.raises(ParameterError, match="GLASSLEAF_DITHER"):
            usual_dither(False)


def test_a_real_host_adds_dither_by_default():
    world = random_world(3, 1, n=4)
    assert HostParty("host0", world.tables["host0"], (), memory_store())._dither == DITHER


LOGIT, SHARE = Outputs(), Outputs(link="identity")


@pytest.mark.parametrize(
    ("outputs", "scale"),
    [
        (LOGIT, 0),
        (Outputs("classes", ("a", "b", "c"), "softmax"), 0),
        (SHARE, -2),
        (Outputs("classes", ("a", "b", "c"), "identity"), -2),
        (Outputs("number", link="identity"), 0),
        (Outputs("number", link="identity", spread=7), 7),
    ],
)
def test_dither_is_as_wide_on_every_link_as_on_a_logit(outputs, scale):
    """Oracle: 1/16 of a logit, a quarter of it on shares, where the logistic function is steepest, and 1/16 of a label's spread."""
    world = random_world(3, 1)
    packing = Packing(replace(world.model, outputs=outputs, base_scores=(0.0,) * outputs.count))
    assert outputs.scale == packing.layout.scale == scale
    assert half_units(DITHER, packing.layout.dither_bits) == 32 * 2**scale
    assert packing.headroom >= half_units(MAX_DITHER, packing.layout.dither_bits)


def test_the_spread_of_a_label_is_the_power_of_two_next_to_its_deviation():
    number = Outputs("number", link="identity")
    labels = np.array([-1.0, 1.0] * 50)
    assert [number.for_labels(labels * by).spread for by in (1, 90, 1e5, 0.001)] == [0, 6, 17, -10]
    assert number.for_labels(np.full(9, 5.0)) == number  # all the same: no spread
    assert LOGIT.for_labels(labels * 90) is LOGIT and SHARE.for_labels(labels * 90) is SHARE


@pytest.mark.parametrize(("kind", "most"), [("vectors", 8), ("class trees", 32), ("median", 8)])
def test_shares_move_by_a_quarter_of_what_logits_do(kind, most):
    world = with_layout(with_outputs(random_world(3, 2, n_trees=4, n=40), kind, 3))
    packing = Packing(world.model)
    with dithering(world, (0.0, 2.0**-4)) as (guest, network, served):
        moved, _ = score(world, guest, network, PlainKeySide())
        for host in served.hosts.values():
            host.leave_uncounted("plain")
        plain, _ = score(world, guest, network, PlainKeySide(), name="plain")
        added = expected(world, most, served)
    assert moved.dither == most and moved.units == [p + a for p, a in zip(plain.units, added, strict=True)]
    assert 0 < np.abs(packing.unpack(moved.units) - packing.unpack(plain.units)).max() <= most


def test_a_partial_model_from_before_scales_is_answered_as_before():
    world = with_layout(with_outputs(random_world(3, 1, n=6), "vectors", 3))
    old = {n: replace(h, layout=replace(h.layout, scale=0)) for n, h in world.hosts.items()}
    text = dump_host(old["host0"])
    stored = json.loads(text)
    del stored["layout"]["scale"]
    assert load_host(json.dumps(stored)) == old["host0"]
    with dithering(replace(world, hosts=old), (2.0**-4,)) as (guest, network, _):
        assert score(world, guest, network, PlainKeySide())[0].dither == 32


def test_permuting_what_no_split_asks_about_gives_no_other_number_to_average_over():
    world = random_world(4, 1, n_trees=1, depth=1, n=80)
    used = {rule.feature for rule in world.hosts["host0"].rules.values()}
    idle = next(f.name for party, f in world.model.dictionary if party == "host0" and f.name not in used)
    world, key = with_layout(world), PlainKeySide()
    with dithering(world, (2.0**-4,)) as (guest, network, _):
        plain, _ = score(world, guest, network, key, name="plain")
        for name, feature in (("idle", idle), ("moved", next(iter(used)))):
            session = Session(network.end(GUEST), name, world.model.hosts, timeout=120)
            have_permuted(session, "host0", key, world.tables[GUEST].ids, (feature,))
            scored = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session)
            session.close()
            assert scored.dither == 32 and (scored.units == plain.units) == (name == "idle")


def test_a_persons_number_goes_with_whose_values_they_get():
    permuted = OtherValues(("x", "y"), {"a": "b", "b": "a", "c": "c"})
    assert permuted.identities(("a", "b", "c", "d"), {"z"}) == ("a", "b", "c", "d")
    assert permuted.identities(("a", "c", "d"), {"y", "z"}) == ("a\0b\0y", "c", "d")


@pytest.mark.parametrize(
    "wrong", [Layout(10, 1, 0, 65), Layout(10, 0, 0), Layout(10, 2, 0), Layout(99, 1, 0), Layout(10, 1 << 20, 9)]
)
def test_a_layout_that_no_model_has_is_refused(wrong):
    with pytest.raises(SecurityError, match="not one that a model can have"):
        check_layout(wrong)
    assert check_layout(Layout(10, 3, 20)) == Layout(10, 3, 20)
