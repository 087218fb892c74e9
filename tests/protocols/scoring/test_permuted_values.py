"""A Host permutes values: scores are those of records put together in one place; the Guest never sees by which permutation."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from actors import MODEL_ID, running
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.errors import SecurityError
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import BlankValues, DecisionVectors, PermuteValues
from backend.protocols.scoring.permuted_values_guest import have_blanked, have_permuted
from backend.protocols.scoring.permuted_values_host import MIN_PEOPLE, OtherValues
from backend.protocols.terms.floors import Floors
from backend.protocols.terms.noise import HostNoise
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode
from backend.protocols.transport.messages import OfferKey
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.trees.ensemble import Layout


def permuted_scores(world, host, features, key, tap=None, ids=None):
    """Units of everybody, and whose values each of them got; the second from within the Host, where no Guest can look."""
    with running(world, tap=tap) as (guest, network, served):
        session = Session(network.end(GUEST), "c", world.model.hosts, timeout=120)
        try:
            have_permuted(session, host, key, ids or world.tables[GUEST].ids, features)
            scored = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session)
            return scored.units, served.hosts[host]._sessions.of("c").kept(OtherValues).sources
        finally:
            session.close()


@pytest.mark.parametrize(("cipher", "n_trees"), [("none", 6), ("paillier", 2)])
@pytest.mark.parametrize("features", [("host0_x",), ("host0_x", "host0_y", "host0_c")])
def test_scores_are_those_of_records_put_together_in_one_place(cipher, n_trees, features, secret_key):
    world = random_world(3, n_hosts=2, n_trees=n_trees, n=90)
    key = PaillierKeySide(secret_key) if cipher == "paillier" else PlainKeySide()
    units, sources = permuted_scores(world, "host0", features, key)
    held = set(world.tables["host0"].ids)
    assert set(sources) == held and Counter(sources.values()) == Counter(held)
    for unit, i in zip(units, world.tables[GUEST].ids, strict=True):
        row = world.row(i)
        other = world.row(sources.get(i, i))
        assert unit == world.oracle({**row, **{f: other.get(f) for f in features}})


def test_the_host_draws_a_new_permutation_each_time():
    world = random_world(0, n_hosts=1, n=80)
    first, second = (permuted_scores(world, "host0", ("host0_x",), PlainKeySide())[1] for _ in range(2))
    assert first != second


def test_what_a_lying_host_makes_of_permuted_values(monkeypatch):
    """It keeps everybody's own value, so that its feature seems to be worth nothing; scores that fell by nothing are possible ones."""
    world = random_world(3, n_hosts=1, n_trees=6, n=90)
    host = world.model.hosts[0]
    feature = next(rule.feature for rule in world.hosts[host].rules.values())
    # patched: a Host that lies in an answer of its own
    monkeypatch.setattr(HostNoise, "shuffled", lambda noise, items: list(items))
    units, sources = permuted_scores(world, host, (feature,), PlainKeySide())
    assert all(person == source for person, source in sources.items())
    assert units == [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]


def test_the_permutation_and_the_values_never_leave_the_host():
    world, tap = random_world(0, n_hosts=1, n=80), []
    permuted_scores(world, "host0", ("host0_x",), PlainKeySide(), tap)
    assert Counter(kind for sender, _, kind, _ in tap if sender == "host0") == {"HeldRecords": 1, "EncryptedScores": 1}
    [asked] = [decode(blob) for _, _, kind, blob in tap if kind == "PermuteValues"]
    assert asked == PermuteValues("c", world.tables[GUEST].ids, ("host0_x",))


def test_a_person_whose_values_were_not_permuted_is_not_scored():
    world = random_world(0, n_hosts=1, n=90)
    with pytest.raises(SecurityError, match="among other people"):
        permuted_scores(world, "host0", ("host0_x",), PlainKeySide(), ids=world.tables[GUEST].ids[:80])


def permuted(world, ids, features):
    """Ask the Host to permute values of some people."""
    with running(world) as (_, _, served):
        host, key = served.hosts["host0"], PlainKeySide()
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        list(host.answer(GUEST, PermuteValues("c", ids, features)))


@pytest.mark.parametrize(
    ("ids", "features", "reason"),
    [
        (90, ("host1_x",), "that this Host does not have"),
        (90, (), "that this Host does not have"),
        (MIN_PEOPLE - 1, ("host0_x",), "50 or more are needed"),
    ],
)
def test_what_would_single_people_out_is_refused(ids, features, reason):
    world = random_world(0, n_hosts=1, n=90)
    with pytest.raises(SecurityError, match=reason):
        permuted(world, world.tables["host0"].ids[:ids], features)


def test_the_same_person_named_often_does_not_make_a_crowd():
    world = random_world(0, n_hosts=1, n=90)
    with pytest.raises(SecurityError, match="among too few people"):
        permuted(world, world.tables["host0"].ids[:10] * 9, ("host0_x",))


def test_only_the_guest_of_a_conversation_may_ask():
    world = random_world(0, n_hosts=1, n=80)
    with running(world) as (_, _, served):
        host, key = served.hosts["host0"], PlainKeySide()
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        with pytest.raises(SecurityError, match="not opened"):
            list(host.answer("host1", PermuteValues("c", world.tables[GUEST].ids, ("host0_x",))))
        with pytest.raises(SecurityError, match="not opened"):
            list(host.answer(GUEST, PermuteValues("other", world.tables[GUEST].ids, ("host0_x",))))


@pytest.mark.slow
def test_a_shuffled_scoring_counts_against_the_budget_like_any_other(secret_key):
    world = random_world(0, n_hosts=1, n_trees=2, n=70)
    with running(world, options={"host0": {"accountant": Accountant(Database(), Limits(1))}}) as (guest, network, _):
        refused = []
        for name in ("first", "second"):
            session = Session(network.end(GUEST), name, world.model.hosts, timeout=120)
            key = PaillierKeySide(secret_key)
            have_permuted(session, "host0", key, world.tables[GUEST].ids, ("host0_x",))
            scored = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session)
            session.close()
            refused.append(len(scored.refused))
        assert refused == [0, len(world.tables["host0"].ids)]


@pytest.mark.parametrize(("cipher", "n_trees"), [("none", 6), ("paillier", 2)])
@pytest.mark.parametrize("features", [("host0_x",), ("host0_x", "host0_y", "host0_c")])
def test_without_values_scores_are_those_of_records_without_them(cipher, n_trees, features, secret_key):
    world = random_world(3, n_hosts=2, n_trees=n_trees, n=90)
    key = PaillierKeySide(secret_key) if cipher == "paillier" else PlainKeySide()
    with running(world) as (guest, network, _):
        session = Session(network.end(GUEST), "c", world.model.hosts, timeout=120)
        have_blanked(session, "host0", key, world.tables[GUEST].ids, features)
        units = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session).units
        session.close()
    rows = [{**world.row(i), **dict.fromkeys(features)} for i in world.tables[GUEST].ids]
    assert list(units) == [world.oracle(row) for row in rows]


def test_blanked_values_are_refused_for_few_people_strange_features_and_strangers():
    world = random_world(0, n_hosts=1, n=90)
    with running(world) as (_, _, served):
        host, key, ids = served.hosts["host0"], PlainKeySide(), world.tables["host0"].ids
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        for sender, asked, features, reason in (
            (GUEST, ids[: MIN_PEOPLE - 1], ("host0_x",), "50 or more are needed"),
            (GUEST, ids, ("host1_x",), "that this Host does not have"),
            (GUEST, ids, (), "that this Host does not have"),
            ("host1", ids, ("host0_x",), "not opened"),
        ):
            with pytest.raises(SecurityError, match=reason):
                list(host.answer(sender, BlankValues("c", asked, features)))


def test_a_host_that_has_agreed_to_larger_groups_refuses_smaller_ones():
    world = random_world(0, n_hosts=1, n=90)
    with running(world, options={"host0": {"floors": Floors(group_size=60)}}) as (_, _, served):
        host, key, ids = served.hosts["host0"], PlainKeySide(), world.tables["host0"].ids
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        for kind in (BlankValues, PermuteValues):
            with pytest.raises(SecurityError, match="60 or more are needed"):
                list(host.answer(GUEST, kind("c", ids[:59], ("host0_x",))))
            list(host.answer(GUEST, kind("c", ids[:60], ("host0_x",))))


def test_what_was_asked_last_counts_and_nobody_else_is_scored_without():
    world = random_world(0, n_hosts=1, n=90)
    with running(world) as (guest, network, served):
        session, key, everybody = (
            Session(network.end(GUEST), "c", world.model.hosts, timeout=120),
            PlainKeySide(),
            world.tables[GUEST],
        )
        have_permuted(session, "host0", key, everybody.ids, ("host0_x",))
        have_blanked(session, "host0", key, everybody.ids[:80], ("host0_x",))
        with pytest.raises(SecurityError, match="other people"):
            guest.score(MODEL_ID, CompiledGuest(world.model), everybody, key, session)
        kept = served.hosts["host0"]._sessions.of("c")
        assert set(kept.kept(OtherValues).sources.values()) == {None}
        session.close()


def test_a_blanked_score_is_dithered_by_a_number_of_its_own():
    blanked = OtherValues(("x",), {"a": None})
    assert blanked.identities(("a", "b"), {"x"}) != ("a", "b")
    assert blanked.identities(("a", "b"), {"x"})[1] == "b" and blanked.identities(("a",), {"y"}) == ("a",)


def test_a_blanked_scoring_counts_against_the_budget_like_any_other(secret_key):
    world = random_world(0, n_hosts=1, n_trees=2, n=70)
    with running(world, options={"host0": {"accountant": Accountant(Database(), Limits(1))}}) as (guest, network, _):
        refused = []
        for name in ("first", "second"):
            session, key = Session(network.end(GUEST), name, world.model.hosts, timeout=120), PlainKeySide()
            have_blanked(session, "host0", key, world.tables[GUEST].ids, ("host0_x",))
            scored = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session)
            session.close()
            refused.append(len(scored.refused))
        assert refused == [0, len(world.tables["host0"].ids)]


@contextmanager
def booking(limits, ids_of_message):
    """A Host after one message; its model, its people, and a function that asks for a score and returns what is booked of each person."""
    world = random_world(0, n_hosts=1, n_trees=40, n=90)
    model = replace(world.hosts["host0"], layout=Layout(4, 1, 0))
    world = replace(world, hosts={"host0": model})
    ids = world.tables["host0"].ids
    account = Accountant(Database(), limits)
    key = PlainKeySide()
    entries = CompiledGuest(world.model).folding.n_entries

    with running(world, options={"host0": {"accountant": account}}) as (_, _, served):
        host = served.hosts["host0"]
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        list(host.answer(GUEST, ids_of_message(ids)))

        def booked(person, bits):
            vectors = key.encrypt(np.ones((1, entries), dtype=np.int64))
            score = DecisionVectors("c", MODEL_ID, (ids[person],), entries, 1, vectors, sum_bits=bits)
            list(host.answer(GUEST, score))
            given = account.given_away(ids)
            return [given[i] for i in ids]

        yield model, booked


def test_everybody_whose_value_may_be_used_is_charged_as_much_as_a_score_or_the_value_can_tell():
    with booking(Limits(5), lambda ids: PermuteValues("c", ids, ("host0_x",))) as (model, booked):
        value = model.capacities["host0_x"]
        assert 4.0 < value < 8.0 < model.capacity
        # A score tells four bits; the person scored may be the source, too.
        assert booked(0, 4)[:2] == [8.0, 4.0]
        # Each person is the source of one: whoever is scored next costs the others nothing more.
        assert booked(1, 4)[:3] == [8.0, 8.0, 4.0]
        # Eight bits of one person are more than the value can tell, and of everything no more is booked than all answers can tell.
        assert booked(2, 8)[2:4] == pytest.approx([model.capacity, value])


def test_a_person_scored_again_tells_as_much_again_about_the_source_but_no_more_than_all_answers_can_tell():
    everything = ("host0_x", "host0_y", "host0_c")
    with booking(Limits(50), lambda ids: PermuteValues("c", ids, everything)) as (model, booked):
        assert [booked(0, 4)[5] for _ in range(2)] == [4.0, 8.0]
        for _ in range(8):
            last = booked(0, 14)[5]
        assert last == pytest.approx(model.capacity)


def test_nobody_is_scored_if_a_limit_of_somebody_whose_value_may_be_used_is_reached():
    with booking(Limits(5, bits=7.0), lambda ids: PermuteValues("c", ids, ("host0_x",))) as (_, booked):
        with pytest.raises(SecurityError) as error:
            booked(0, 4)
        assert error.value.code == "bits_reached"


def test_without_values_nobody_but_the_person_scored_is_charged():
    with booking(Limits(5), lambda ids: BlankValues("c", ids, ("host0_x",))) as (_, booked):
        assert booked(0, 4)[:2] == [4.0, 0.0]
