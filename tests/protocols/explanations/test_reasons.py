"""Reasons under encryption are those of plain SHAP values; sums are theirs within the bound; one person's values stay closed."""

import math
import secrets
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from actors import MODEL_ID, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from worlds import GUEST, World, imported_world, random_world, with_bands, with_covers, with_outputs

from backend.crypto.paillier.scheme import PaillierKeySide, PaillierPublicSide
from backend.crypto.plain import PlainKeySide, PlainPublicSide
from backend.crypto.rlwe.product_parameters import keys_for
from backend.crypto.rlwe.residues import ResidueKeySide, ResiduePublicSide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import ParameterError, QuestionRefused, SecurityError
from backend.protocols.explanations.encryption import PersonEncryption, RlweEncryption, encryption_of
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.host import REASONS
from backend.protocols.explanations.host_factors import CompiledFactors
from backend.protocols.explanations.messages import (
    AskReasons,
    ChooseLabels,
    GarbledRanking,
    MaskedContributions,
    OpenRanking,
    ReasonTerms,
)
from backend.protocols.explanations.shape import ReasonShape, units
from backend.protocols.explanations.weighting import weighting_of
from backend.protocols.ranking.guest import RankingGuest
from backend.protocols.ranking.packing import PackedOpener
from backend.protocols.ranking.shape import OWN
from backend.protocols.scoring.fed_eini import host_plan
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode
from backend.protocols.transport.messages import HeldRecords, OfferKey
from backend.remark import Remark
from backend.store.accountant import Accountant, Limits, Question
from backend.store.database import Database
from backend.store.journal import Batch
from backend.trees.backgrounds import COVERS, Background, backgrounds
from backend.trees.ensemble import GuestModel, GuestTree, HostModel, Leaf, Split, SplitRule
from backend.trees.folding import fold_structure
from backend.trees.shap import shap_values


def world_of(seed, n_hosts=1, n=8, **kwargs):
    return with_covers(random_world(seed, n_hosts, n=n, **kwargs), seed)


def plain(world, background=COVERS):
    """SHAP values of everybody, by (party, feature), all columns in one place."""
    rules = {
        **world.model.rules,
        **{k: r for partial_model in world.hosts.values() for k, r in partial_model.rules.items()},
    }
    rows = [world.row(i) for i in world.tables[GUEST].ids]
    columns = {}
    for party, feature in world.model.dictionary:
        dtype = world.tables[party].columns[feature.name].dtype
        missing = None if dtype.kind == "O" else np.nan
        columns[feature.name] = np.array([row.get(feature.name, missing) for row in rows], dtype=dtype)
        if dtype.kind == "O":
            columns[feature.name][pd.isna(columns[feature.name])] = None
        else:
            columns[feature.name] = columns[feature.name].astype(float)
    features, values = shap_values(world.model, rules, columns, len(rows), background)
    owner = {f.name: p for p, f in world.model.dictionary}
    return {(owner[f], f): values[:, i] for i, f in enumerate(features)}


@cache
def lattice(name):
    return RlweKeySide(RlweSecretKey.generate(_sets[name]))


_sets = {}


def residue_key(compiled, people=0):
    """The keys that a request takes; each is made once."""
    sets = keys_for(compiled.shape(1).load(compiled.rows, people))
    _sets.update({p.name: p for p in sets})
    return ResidueKeySide([lattice(p.name) for p in sets])


def key_of(cipher, secret_key, world, people=0):
    if cipher == "rlwe":
        return residue_key(CompiledTerms(world.model), people)
    return PaillierKeySide(secret_key) if cipher == "paillier" else PlainKeySide()


def ask(world, guest, network, key, what, *args, background=COVERS):
    compiled = CompiledTerms(world.model, background)
    session = Session(network.end(GUEST), "c", compiled.chain, timeout=60)
    # these worlds know no medians: whatever side a value is on, it is ranked
    more = {"sideless": [feature for _, feature in compiled.items]} if what == "names" else {}
    try:
        return compiled, getattr(ReasonsClient(session, guest.name, MODEL_ID, compiled, key), what)(*args, **more)
    finally:
        session.close()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n_hosts"), [(1, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("cipher", ["none", "paillier", "rlwe"])
def test_sums_over_a_cohort_are_those_of_plain_shap_values_within_the_bound(seed, n_hosts, cipher, secret_key):
    n_trees, depth = {"none": (8, 4), "paillier": (2, 2), "rlwe": (3, 3)}[cipher]
    world = world_of(seed, n_hosts, n=72, n_trees=n_trees, depth=depth)
    key = key_of(cipher, secret_key, world, 72)
    with running(world) as (guest, network, _):
        _, found = ask(world, guest, network, key, "sums", world.tables[GUEST])
    wanted = plain(world)
    assert set(found.items) == set(wanted)
    for item, total in zip(found.items, found.sums, strict=True):
        assert abs(total - wanted[item].sum()) <= found.error_bound
    assert found.error_bound < 0.01 * found.people


@pytest.mark.slow
@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
@pytest.mark.parametrize(("seed", "n_hosts", "depth"), [(1, 1, 3), (4, 2, 2), (6, 3, 2)])
def test_names_are_those_of_the_largest_plain_values_above_nought(seed, n_hosts, depth, cipher, secret_key):
    world = world_of(seed, n_hosts, n=5, n_trees=4, depth=depth)
    key = key_of(cipher, secret_key, world)
    with running(world) as (guest, network, _):
        compiled, found = ask(world, guest, network, key, "names", world.tables[GUEST], 3)
    wanted = plain(world)
    for i, names in enumerate(found.names):
        ranked = sorted(wanted, key=lambda item: -wanted[item][i])
        values = [wanted[item][i] for item in ranked]
        clear = values[2] - values[3] > 2 * compiled.error_bound and abs(values[2]) > compiled.error_bound
        if clear:
            assert set(names) == {item for item in ranked[:3] if wanted[item][i] > compiled.error_bound}
        assert list(names) == sorted(names, key=lambda item: item[1])


def test_values_against_every_group_are_those_of_plain_values_with_its_shares(secret_key):
    world, moved = with_bands(random_world(6, 2, n=430, n_trees=3, depth=3)), set()
    for background in backgrounds(world.model):
        compiled, wanted = CompiledTerms(world.model, background), plain(world, background)
        found = integers(world, compiled, PlainPublicSide(), PlainKeySide(), 0)
        for item, number in zip(compiled.items, found, strict=True):
            assert abs(number / 2 ** compiled.shape(1).scale - wanted[item][0]) <= compiled.error_bound
        moved.add(tuple(found))
    assert len(moved) == len(list(backgrounds(world.model)))
    small = with_bands(random_world(6, 2, n=430, n_trees=2, depth=2))
    compiled, key = CompiledTerms(small.model, Background("approved", 0)), PaillierKeySide(secret_key)
    plainly = integers(small, compiled, PlainPublicSide(), PlainKeySide(), 0)
    assert integers(small, compiled, PaillierPublicSide(secret_key.public), key, 0) == plainly


def test_crafted_shares_ask_another_question_and_tell_no_more_than_is_booked(monkeypatch):
    """A Guest may lie about shares of records at splits; names then answer a question of its choice, at the same price."""
    world, people = world_of(6, 1, n=24, n_trees=3, depth=3), 24
    compiled = CompiledTerms(world.model)
    shape = compiled.shape(2)
    honest = compiled.shares_of("host0")

    def told(shares):
        monkeypatch.setattr(compiled, "shares_of", lambda host: shares)
        names = []
        for person in range(people):
            values = integers(world, compiled, PlainPublicSide(), PlainKeySide(), person)
            largest = sorted(range(len(values)), key=lambda k: -values[k])[:2]
            names.append(frozenset(k for k in largest if values[k] > 0))
        return names

    honestly = told(honest)
    crafted = [told((share,) * len(honest)) for share in (0.0, 1.0)]
    assert any(names != honestly for names in crafted)  # a question that honest shares do not ask
    for names in (honestly, *crafted):
        assert 0 < math.log2(len(set(names))) <= shape.told


@pytest.mark.slow
def test_reasons_against_every_group_are_those_of_plain_values_with_its_shares(secret_key):
    world, few = with_bands(random_world(6, 2, n=430, n_trees=3, depth=3)), 4
    people = replace(world, tables={p: t.take(np.arange(min(few, len(t.ids)))) for p, t in world.tables.items()})
    named = set()
    with running(people) as (guest, network, _):
        for background in backgrounds(world.model):
            if background.band > 0:
                continue
            table = people.tables[GUEST]
            key = PaillierKeySide(secret_key)
            compiled, found = ask(people, guest, network, key, "names", table, 3, background=background)
            wanted = plain(people, background)
            for i, names in enumerate(found.names):
                values = {item: wanted[item][i] for item in wanted}
                ranked = sorted(values, key=lambda item: -values[item])
                for item in names:
                    assert values[item] >= values[ranked[2]] - 2 * compiled.error_bound and values[item] > 0
                sure = [item for item in ranked[:3] if values[item] > values[ranked[3]] + 2 * compiled.error_bound]
                assert {item for item in sure if values[item] > compiled.error_bound} <= set(names)
                named.add((background.against, i, names))
    assert {a for a, *_ in named} == {"covers", "all", "approved"}
    assert len({(i, names) for _, i, names in named}) > few  # a group changes somebody's names


def weighted(world, compiled, side, key, rows):
    """The parties' own code up to the last Host, for some people: the Guest's way, the last Host's, what it holds."""
    people, shape = len(rows), compiled.shape(1)
    encryption = encryption_of(key, compiled, shape, people)
    folding, held = fold_structure(world.model.skeletons, GUEST, world.model.hosts), None
    ways = [
        (step, factors, weighting_of(side, factors, shape, host_plan(folding, place), people))
        for place, step in enumerate(folding.steps)
        for factors in [CompiledFactors(world.hosts[step.host], step, compiled.shares_of(step.host))]
    ]
    for start in range(0, people, encryption.together):
        some = rows[start : start + encryption.together]
        sent = encryption.encrypted(world.tables[GUEST].take(np.array(some)).columns, len(some))
        for step, factors, weighting in ways:
            table = world.tables[step.host]
            decided = []
            for i in some:
                row = table.row_of.get(world.tables[GUEST].ids[i], -1)
                columns = {name: column[row : row + 1] for name, column in table.columns.items()} if row >= 0 else {}
                decided.append(factors.decide(columns, row >= 0))
            kept = np.concatenate(decided, axis=1)
            if step is folding.steps[-1]:
                held = weighting.values(sent, kept, held)
            else:
                sent = weighting.passed_on(sent, kept)
    return encryption, ways[-1][2], held


def integers(world, compiled, side, key, *rows):
    """Values of everybody's features of people `rows`, added up, at the last scale; a key that only this test holds."""
    encryption, weighting, held = weighted(world, compiled, side, key, rows)
    # without the numbers that hide the lowest bits, sums are exact
    with patch.object(ReasonShape, "noise_bits", 0):
        return encryption.sums(weighting.sums(held, len(rows), secrets.randbelow), len(rows))


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 4))
def test_encrypted_values_are_the_plain_integers_and_shap_values_within_the_bound(secret_key, seed, n_hosts, depth):
    world = world_of(seed, n_hosts, n=2, n_trees=2, depth=depth)
    try:
        compiled = CompiledTerms(world.model)
    except ParameterError:
        return  # no Host owns a split
    shape, wanted = compiled.shape(4), plain(world)
    key, residues = PaillierKeySide(secret_key), residue_key(compiled, 1)
    found = integers(world, compiled, PlainPublicSide(), PlainKeySide(), 0)
    assert integers(world, compiled, PaillierPublicSide(secret_key.public), key, 0) == found
    assert integers(world, compiled, ResiduePublicSide(residues.offer()), residues, 0) == found
    for item, number in zip(compiled.items, found, strict=True):
        assert abs(number) < 2**shape.value_bits
        assert abs(number / 2**shape.scale - wanted[item][0]) <= compiled.error_bound


def test_two_trees_worked_out_by_hand():
    # tree 0: Guest's g < 0 (half left) -> Host's h < 0 (a quarter left): 4, 0; right leaf 2.  tree 1: g alone: 1, -1
    world = hand_made()
    compiled = CompiledTerms(world.model)
    shape = compiled.shape(1)
    found = integers(world, compiled, PlainPublicSide(), PlainKeySide(), 0)
    # g left, h right. tree 0: {} 1.5, {g} 1, {h} (0 + 2)/2 = 1, {g, h} 0; tree 1: {} 0, {g} 1
    g, h = ((1 - 1.5) + (0 - 1)) / 2 + 1, ((1 - 1.5) + (0 - 1)) / 2
    assert compiled.items == ((GUEST, "g"), ("host0", "h"))
    assert [units / 2**shape.scale for units in found] == pytest.approx([g, h], abs=compiled.error_bound)


def hand_made():
    def split(owner, name, left, right, cover):
        return Split(owner, name, left, right, True, 1.0, cover)

    trees = (
        GuestTree(
            (
                split(GUEST, "g", 1, 4, 8.0),
                split("host0", "h", 2, 3, 4.0),
                Leaf(4.0, 1.0),
                Leaf(0.0, 3.0),
                Leaf(2.0, 4.0),
            )
        ),
        GuestTree((split(GUEST, "g", 1, 2, 8.0), Leaf(1.0, 4.0), Leaf(-1.0, 4.0))),
    )
    dictionary = ((GUEST, Feature(name="g", meaning="g")), ("host0", Feature(name="h", meaning="h")))
    rules = {(0, 0): SplitRule("g", True, 0.0), (1, 0): SplitRule("g", True, 0.0)}
    model = GuestModel(GUEST, ("host0",), trees, (0.0,), 10, dictionary, rules)
    partial_model = HostModel("host0", GUEST, ("host0",), model.skeletons, {(0, 1): SplitRule("h", True, 0.0)}, "salt")
    tables = {
        GUEST: PartyTable(GUEST, ("a",), {"g": np.array([-1.0])}),
        "host0": PartyTable("host0", ("a",), {"h": np.array([1.0])}),
    }
    return World(model, {"host0": partial_model}, tables)


@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
def test_the_size_of_no_message_depends_on_the_person(cipher, secret_key):
    world, tap = world_of(3, 2, n=6, n_trees=3, depth=2), []
    people = world.tables[GUEST].take(np.arange(6 if cipher == "paillier" else 3))
    with running(world, tap=tap) as (guest, network, _):
        ask(world, guest, network, key_of(cipher, secret_key, world), "names", people, 3)
    kinds = ("ReasonTerms", "OpenRanking", "MaskedContributions", "ChooseLabels", "GarbledRanking")
    for kind in kinds:
        for receiver in {r for _, r, k, _ in tap if k == kind}:
            sizes = {len(blob) for _, r, k, blob in tap if (r, k) == (receiver, kind)}
            assert len(sizes) == 1, kind


def test_no_ciphertext_leaves_a_host_as_it_came(secret_key):
    world, tap = world_of(3, 2, n=80, n_trees=2, depth=2), []
    with running(world, tap=tap) as (guest, network, _):
        ask(world, guest, network, PaillierKeySide(secret_key), "sums", world.tables[GUEST])
    width, seen = secret_key.public.width, []
    for _, _, kind, blob in tap:
        if kind in ("ReasonTerms", "ContributionSums"):
            message = decode(blob)
            held = message.terms if kind == "ReasonTerms" else message.sums
            seen += [held[i : i + width] for i in range(0, len(held), width)]
    assert len(seen) > 500 and len(set(seen)) == len(seen)
    assert not any(int.from_bytes(c, "big") == 1 for c in seen)


@pytest.mark.slow
@pytest.mark.parametrize(("cipher", "side"), [("paillier", PackedOpener), ("rlwe", RlweEncryption)])
def test_what_the_guest_decrypts_of_one_person_says_nothing_of_a_contribution(cipher, side, secret_key, monkeypatch):
    """The Guest tries: everything that it can decrypt in a ranking, against the values; and the differences, packs and low bits."""
    world = hand_made()
    compiled, key = CompiledTerms(world.model), key_of(cipher, secret_key, world)
    shape, seen, opened = compiled.shape(1), [], side.opened

    def spied(self, blob):
        seen.append(opened(self, blob))
        return seen[-1]

    monkeypatch.setattr(side, "opened", spied)
    with running(world) as (guest, network, _):
        for _ in range(30):
            ask(world, guest, network, key, "names", world.tables[GUEST], 1)
    slots = np.array(seen, dtype=object)
    value_span = 2 ** (shape.value_bits + shape.ranking.tie_bits + 2)
    assert slots.shape == (60, 2)  # contributions, and their drops
    # repeated questions about one person: spread over the blinds' whole range, 2^64 times a value's
    for column in slots.T:
        assert len(set(column.tolist())) == 60
        assert max(column) - min(column) > value_span << 50
    differences = [int(a) - int(b) for a, b in slots]
    assert min(map(abs, differences)) > value_span
    low = np.array([[int(v) & 1 for v in row] for row in slots])
    assert 0.2 < low.mean() < 0.8


def test_no_rlwe_ciphertext_leaves_a_host_as_it_came():
    world, tap = world_of(3, 2, n=6, n_trees=2, depth=2), []
    key = residue_key(CompiledTerms(world.model))
    with running(world, tap=tap) as (guest, network, _):
        ask(world, guest, network, key, "names", world.tables[GUEST].take(np.arange(2)), 3)
    messages = [(sender, decode(blob).terms) for sender, _, kind, blob in tap if kind == "ReasonTerms"]
    seen = [terms[i : i + 4096] for _, terms in messages for i in range(256, len(terms) - 4096, 4096)]
    full = [piece for piece in seen if any(piece)]  # the rest fills a ciphertext up to its length
    assert {sender for sender, _ in messages} == {GUEST, "host0"} and len(full) > 300
    assert len(set(full)) == len(full)


def test_what_slots_of_one_persons_reply_add_up_to_is_uniform_until_the_blinds_are_taken_off():
    """The Guest tries: it decrypts slot by slot and adds the blocks up, for one person again and again."""
    world = hand_made()
    compiled = CompiledTerms(world.model)
    key, shape = residue_key(compiled), compiled.shape(1)
    folding = fold_structure(world.model.skeletons, GUEST, ("host0",))
    factors = CompiledFactors(world.hosts["host0"], folding.steps[0], compiled.shares_of("host0"))
    weighting = weighting_of(ResiduePublicSide(key.offer()), factors, shape, host_plan(folding, 0))
    encryption, sums, whole = encryption_of(key, compiled, shape), [], []
    for _ in range(12):
        sent = encryption.encrypted(world.tables[GUEST].columns)
        held = weighting.values(sent, factors.decide(world.tables["host0"].columns, True))
        width, lift = shape.ranking.width, 1 << (shape.ranking.width - 1)
        reply, shares = weighting.blinded(held, [lift] * len(compiled.items))
        opened = encryption.opened(reply)
        values = [(o + s) % (1 << width) - lift for o, s in zip(opened, shares, strict=True)]
        scaled = [v / 2.0 ** (shape.scale + shape.ranking.tie_bits) for v in values]
        # with the Host's shares they are the values
        assert scaled == pytest.approx([0.25, -0.75], abs=compiled.error_bound)
        assert all(0 <= o < key.modulus for o in opened)
        sums += [o % p.plain_modulus / p.plain_modulus for o in opened for p in key.parameters]
        whole.append(opened[0] / key.modulus)
    assert kstest(sums, "uniform").pvalue > 1e-6 and kstest(whole, "uniform").pvalue > 1e-6


def test_encrypted_values_of_an_imported_model_are_xgboosts_own_contributions(tmp_path, secret_key):
    world, wanted = imported_world(tmp_path)
    compiled = CompiledTerms(world.model)
    residues, rows = residue_key(compiled, 5), range(5)
    found = integers(world, compiled, PlainPublicSide(), PlainKeySide(), *rows)
    assert integers(world, compiled, ResiduePublicSide(residues.offer()), residues, *rows) == found
    assert integers(world, compiled, PaillierPublicSide(secret_key.public), PaillierKeySide(secret_key), *rows) == found
    for (_, feature), number in zip(compiled.items, found, strict=True):
        own = wanted[feature].to_numpy()[:5].sum()
        assert number / 2.0 ** compiled.shape(1).scale == pytest.approx(own, abs=5e-4)  # XGBoost adds up float32


def test_names_are_not_ranked_in_plaintext():
    world = hand_made()
    with running(world) as (guest, network, _), pytest.raises(ParameterError, match="paillier or rlwe"):
        ask(world, guest, network, PlainKeySide(), "names", world.tables[GUEST], 1)


@pytest.mark.parametrize(
    ("send", "match"),
    [
        (lambda names, cohort, terms: (cohort, [terms]), "This request takes 3 keys"),
        (lambda names, cohort, terms: (names, [terms[:-1]]), "items of"),
        (lambda names, cohort, terms: (names, [terms + b"\0"]), "items of"),
        (lambda names, cohort, terms: (names, [bytes(len(terms))]), "damaged"),
        (lambda names, cohort, terms: (names, [terms, terms]), "or twice"),
    ],
)
def test_wrong_keys_and_damaged_or_repeated_terms_are_refused(send, match):
    world = hand_made()
    compiled = CompiledTerms(world.model)
    names, cohort, shape = residue_key(compiled), residue_key(compiled, 100), compiled.shape(1)
    terms = PersonEncryption(names, compiled, shape).encrypted(world.tables[GUEST].columns)
    key, messages = send(names, cohort, terms)
    with running(world) as (_, network, _):
        session = Session(network.end(GUEST), "c", ("host0",), timeout=120)
        session.send("host0", OfferKey("c", key.scheme, key.offer()))
        shares = compiled.shares_of("host0")
        session.send("host0", AskReasons("c", MODEL_ID, ("a",), shares, shape.features, shape.value_bits, 1))
        for message in messages:
            session.send("host0", ReasonTerms("c", 0, message))
        with pytest.raises(SecurityError, match=match):
            session.expect(HeldRecords)
            session.expect(HeldRecords)
        session.close()


def test_a_budget_that_is_spent_refuses_one_and_answers_about_the_others(secret_key):
    world = world_of(2, 1, n=6, n_trees=3, depth=2)
    with running(world, options={"host0": {"accountant": Accountant(Database(), Limits(1))}}) as (guest, network, _):
        known = world.tables["host0"].ids[0]
        key = PaillierKeySide(secret_key)
        first = world.tables[GUEST].take(np.array([world.tables[GUEST].row_of[known]]))
        assert ask(world, guest, network, key, "names", first, 2)[1].refused == {}
        _, found = ask(world, guest, network, key, "names", world.tables[GUEST].take(np.arange(2)), 2)
        at = world.tables[GUEST].ids.index(known)
        assert at < 2 and list(found.refused) == [at] and found.names[at] is None and found.names[1 - at] is not None
        assert "budget is spent at host0" in found.refused[at].sentence()


class Repeated:
    """A journal's run of one question: its terms are sent in the same bytes as often as it is asked."""

    def __init__(self):
        self.sent = {}

    def drop(self, number):
        pass

    def batch(self, number):
        return Batch("q", self.sent.get(number, ()), None)

    def sending(self, number, piece, sent):
        return self.sent.setdefault(number, (sent,))[piece]

    def answered(self, number, answer):
        pass

    def state(self, request, statement):
        pass


def test_a_question_is_ranked_once_more_where_its_answer_was_lost_and_not_until_its_numbers_are_known(
    secret_key, monkeypatch
):
    """A Guest that shifts its share of one number after the other finds out, by who is named, how large each is."""
    world, run, key = world_of(2, 1, n=1, n_trees=2, depth=1), Repeated(), PaillierKeySide(secret_key)
    compiled, shifts = CompiledTerms(world.model), iter((0, 1, 2))

    class Lying(RankingGuest):
        def __init__(self, opened, shape, sides):
            shift = next(shifts) << (shape.width - 3)
            super().__init__(lambda part: [number + shift for number in opened(part)], shape, sides)

    # patched: a Guest that departs from the protocol
    monkeypatch.setattr("backend.protocols.explanations.guest.RankingGuest", Lying)
    with running(world, options={"host0": {"accountant": Accountant(Database(), Limits(1))}}) as (guest, network, _):

        def asked(name):
            session = Session(network.end(GUEST), name, compiled.chain, timeout=60)
            try:
                client = ReasonsClient(session, guest.name, MODEL_ID, compiled, key, run=run)
                return client.names(world.tables[GUEST], 1).refused
            finally:
                session.close()

        assert asked("first") == asked("again") == {}
        with pytest.raises(QuestionRefused, match="ranked 2 times"):
            asked("shifted")


def test_a_ranking_is_the_persons_whose_terms_made_it_whatever_is_asked_before_its_labels(secret_key):
    """Else the next person's question would pay for it, and of a long sheet each ranking could be the first one's."""
    world, key = world_of(2, 1, n=2, n_trees=2, depth=1), PaillierKeySide(secret_key)
    compiled = CompiledTerms(world.model)
    shape, people = compiled.shape(1), world.tables[GUEST]
    encryption = PersonEncryption(key, compiled, shape)
    terms = [encryption.encrypted(people.take(np.array([i])).columns, 1) for i in range(2)]
    asked = people.ids, compiled.shares_of("host0"), shape.features, shape.value_bits, 1, "q"
    with running(world, options={"host0": {"accountant": Accountant(Database(), Limits(1))}}) as (_, network, _):
        for name in ("first", "again", "shifted"):
            session = Session(network.end(GUEST), name, ("host0",), timeout=60)
            ranking = RankingGuest(encryption.opened, shape.ranking, np.zeros((OWN, len(compiled.items)), dtype=bool))
            for message in (
                OfferKey(name, key.scheme, key.offer()),
                AskReasons(name, MODEL_ID, *asked),
                ReasonTerms(name, 0, terms[0]),
                OpenRanking(name, ranking.open()),
            ):
                session.send("host0", message)
            session.expect(HeldRecords)
            shares = session.expect(MaskedContributions)[1].shares
            if name != "shifted":
                session.send("host0", ReasonTerms(name, 1, terms[1]))
            session.send("host0", ChooseLabels(name, ranking.choose(shares)))
            with pytest.raises(QuestionRefused, match="ranked 2 times") if name == "shifted" else nullcontext():
                session.expect(GarbledRanking)
            session.close()


def test_two_hosts_whose_budgets_are_spent_for_different_people_mix_nobody_up(secret_key):
    world = world_of(9, 2, n=6, n_trees=4, depth=2)
    ids = world.tables[GUEST].ids
    budgets = {host: {"accountant": Accountant(Database(), Limits(1))} for host in world.hosts}
    for (_, options), person in zip(budgets.items(), ("id1", "id3"), strict=True):
        options["accountant"].count(Question(GUEST, "", REASONS, "other trees", (person,)))
    with running(world, options=budgets) as (guest, network, _):
        held = {p: p in world.tables[host].row_of for host, p in zip(world.hosts, ("id1", "id3"), strict=True)}
        _, found = ask(world, guest, network, PaillierKeySide(secret_key), "names", world.tables[GUEST], 3)
    assert {ids[i] for i in found.refused} == {p for p, known in held.items() if known} and found.refused
    spent = {
        p: Remark("total_spent_on_reasons", {"host": host, "n": 1, "days": 28})
        for host, p in zip(world.hosts, held, strict=True)
    }
    assert found.refused == {ids.index(p): spent[p] for p, known in held.items() if known}
    wanted = plain(world)
    for i, names in enumerate(found.names):
        values = {item: v[i] for item, v in wanted.items()}
        best = sorted((item for item, v in values.items() if v > 1e-4), key=lambda item: -values[item])[:3]
        assert names is None if i in found.refused else set(names) == set(best)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"shares": ()}, "shares of cover"),
        ({"shares": None}, "shares of cover"),
        ({"features": (3, 3, 3)}, "numbers of features"),
        ({"features": None}, "numbers of features"),
        ({"ids": ()}, "without naming a person"),
        ({"names": 9}, "choose 1 to 8"),
        ({"value_bits": 500}, "value_bits"),
    ],
)
def test_a_host_refuses_a_request_that_does_not_fit_its_partial_model(change, match, secret_key):
    world = world_of(2, 1, n=3)
    compiled, key = CompiledTerms(world.model), PaillierKeySide(secret_key)
    shape, shares = compiled.shape(2), compiled.shares_of("host0")
    request = {"model_id": MODEL_ID, "ids": ("id0",), "names": 2, "shares": shares, "features": shape.features}
    crooked = {"shares": (1.5,) * len(shares), "features": (-1, shape.features[1])}
    change = {name: crooked[name] if value is None else value for name, value in change.items()}
    with running(world) as (_, network, _):
        session = Session(network.end(GUEST), "c", ("host0",), timeout=120)
        session.send("host0", OfferKey("c", key.scheme, key.offer()))
        session.send("host0", AskReasons("c", **{**request, "value_bits": shape.value_bits, **change}))
        with pytest.raises(SecurityError, match=match):
            session.expect(HeldRecords)
        session.close()


def test_terms_are_taken_from_the_party_before_in_the_chain_only_and_reasons_given_to_a_models_own_guest():
    world, key = world_of(2, 2, n=3), PlainKeySide()
    compiled = CompiledTerms(world.model)
    with running(world) as (_, _, served):
        host, last = (served.hosts[name] for name in compiled.chain)
        shape = compiled.shape(2)
        asked = AskReasons("c", MODEL_ID, ("id0",), compiled.shares_of(last.name), shape.features, shape.value_bits, 2)
        for guest, conversation in (("other_bank", "d"), (GUEST, "c")):
            list(last.answer(guest, OfferKey(conversation, key.scheme, key.offer())))
        with pytest.raises(SecurityError, match="Only the Guest of a model"):
            list(last.answer("other_bank", replace(asked, conversation="d")))
        list(last.answer(GUEST, asked))
        for sender in (GUEST, "stranger"):
            with pytest.raises(SecurityError, match=f"come from {host.name}"):
                list(last.answer(sender, ReasonTerms("c", 0, b"")))
        with pytest.raises(SecurityError, match="1 byte was expected, got 0"):  # the person was not used up by those
            list(last.answer(host.name, ReasonTerms("c", 0, b"")))


def test_numbers_that_64_bits_do_not_hold_are_refused():
    assert units(np.array([0.5, -0.75]), 2).tolist() == [2, -3]
    with pytest.raises(ParameterError, match="leaf weights are too large"):
        units(np.array([2.0**36]), 26)


def test_models_without_one_sum_are_refused():
    world = with_outputs(world_of(2, 1), "vectors", 1)
    with pytest.raises(ParameterError, match="one output"):
        CompiledTerms(world.model)
    with pytest.raises(ParameterError, match="No Host owns a split"):
        CompiledTerms(world_of(2, 0).model)
