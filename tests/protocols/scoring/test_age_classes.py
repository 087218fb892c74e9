"""People are scored at ages of other records of the Host: as if put together in one place, and the Guest never sees an age."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from actors import MODEL_ID, running
from worlds import GUEST, random_world

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.group_sums.grouping import is_in_years
from backend.protocols.scoring.age_classes import age_classes
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import AgesAssigned, AssignAges, DecisionVectors
from backend.protocols.scoring.permuted_values_guest import have_ages
from backend.protocols.scoring.permuted_values_host import MIN_PEOPLE, OtherValues
from backend.protocols.terms.prices import column_bits
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.network import Network
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database

AGE = Feature(name="host0_x", meaning="Age", unit="years")


def world_of_ages(n=160, elderly=30):
    """A world in which the first Host's x is an age in years; a few have none."""
    world = random_world(3, n_hosts=2, n_trees=4, n=n)
    table = world.tables["host0"]
    ages = np.linspace(20, 61.9, len(table.ids))
    ages[:elderly] = np.linspace(62, 80, elderly)
    ages[elderly : elderly + 3] = np.nan
    world.tables["host0"] = PartyTable("host0", table.ids, {**table.columns, "host0_x": ages})
    partial_model = world.hosts["host0"]
    rules = {
        k: replace(r, threshold=62.0 if i % 2 else 40.0) if r.feature == "host0_x" else r
        for i, (k, r) in enumerate(partial_model.rules.items())
    }
    world.hosts["host0"] = replace(partial_model, rules=rules)
    dictionary = tuple((p, AGE if f.name == "host0_x" else f) for p, f in world.model.dictionary)
    return replace(world, model=replace(world.model, dictionary=dictionary))


def scored_at(world, key, place, tap=None, feature="host0_x", ids=None, network=None):
    """Units of everybody, how many classes there are, and whose ages they got; the last from within the Host."""
    with running(world, tap=tap, network=network) as (guest, used, served):
        session = Session(used.end(GUEST), "c", world.model.hosts, timeout=120)
        try:
            people = ids or world.tables[GUEST].ids
            classes = have_ages(session, "host0", key, people, feature, place)
            scored = guest.score(MODEL_ID, CompiledGuest(world.model), world.tables[GUEST], key, session)
            permuted = served.hosts["host0"]._sessions.of("c").kept(OtherValues)
            return scored.units, classes, permuted and permuted.sources
        finally:
            session.close()


def test_the_elderly_come_first_and_the_younger_in_classes_of_equal_size_upwards():
    ages = np.array([70.0] * 25 + [20.0] * 30 + [30.0] * 30 + [np.nan] * 5 + [62.0, 61.9])
    classes = age_classes(AGE, ages)
    assert [sorted(set(ages[c].tolist())) for c in classes] == [[62.0, 70.0], [20.0], [30.0, 61.9]]
    assert sum(map(len, classes)) == 87  # those without an age are in none


@pytest.mark.parametrize(("old", "young"), [(19, 100), (100, 19), (0, 0)])
def test_fewer_than_twenty_elderly_or_younger_people_are_told_of_by_nobody(old, young):
    ages = np.array([70.0] * old + [30.0] * young)
    assert age_classes(AGE, ages) == ()
    assert age_classes(AGE, np.array([70.0] * (old + 25) + [30.0] * 90), min_size=old + 26) == ()


def test_younger_people_of_one_age_are_one_class():
    assert [len(c) for c in age_classes(AGE, np.array([70.0] * 20 + [30.0] * 90))] == [20, 90]


@pytest.mark.parametrize(
    ("kind", "unit", "fits"),
    [
        (Kind.NUMERIC, "years", True),
        (Kind.NUMERIC, " 岁", True),
        (Kind.NUMERIC, "months", False),
        (Kind.CATEGORICAL, "years", False),
    ],
)
def test_only_a_number_of_years_can_be_held_against_the_laws_edge(kind, unit, fits):
    assert is_in_years(Feature(name="f", meaning="f", kind=kind, unit=unit)) is fits


@pytest.mark.parametrize(("cipher", "place"), [("none", 0), ("none", 1), ("none", 4), ("paillier", 0)])
def test_scores_are_those_of_records_put_together_in_one_place(cipher, place, secret_key):
    world = world_of_ages()
    key = PaillierKeySide(secret_key) if cipher == "paillier" else PlainKeySide()
    units, classes, sources = scored_at(world, key, place)
    table = world.tables["host0"]
    assert classes == 5 and set(sources) == set(table.ids)
    ages = [table.columns["host0_x"][table.row_of[i]] for i in sources.values()]
    assert min(ages) >= 62 if place == 0 else max(ages) < 62
    for unit, i in zip(units, world.tables[GUEST].ids, strict=True):
        row = world.row(i)
        age = world.row(sources[i])["host0_x"] if i in sources else row.get("host0_x")
        assert unit == world.oracle({**row, "host0_x": age})


def test_younger_classes_follow_each_other_without_overlap():
    world = world_of_ages()
    table = world.tables["host0"]
    ends = []
    for place in range(1, 5):
        sources = scored_at(world, PlainKeySide(), place)[2]
        ages = [table.columns["host0_x"][table.row_of[i]] for i in sources.values()]
        ends += [min(ages), max(ages)]
    assert ends == sorted(ends)


def test_the_host_draws_again_each_time_and_no_age_or_edge_leaves_it():
    world, tap = world_of_ages(), []
    first, second = (scored_at(world, PlainKeySide(), 0, tap)[2] for _ in range(2))
    assert first != second
    sent = Counter(kind for sender, _, kind, _ in tap if sender == "host0")
    assert set(sent) <= {"AgesAssigned", "HeldRecords", "DecisionVectors", "MoreVectors", "EncryptedScores"}
    answers = [decode(blob) for _, _, kind, blob in tap if kind == "AgesAssigned"]
    assert answers == [AgesAssigned("c", 5)] * 2


def test_where_there_are_too_few_elderly_people_everybody_keeps_their_age():
    world = world_of_ages(elderly=19)
    units, classes, sources = scored_at(world, PlainKeySide(), 0)
    assert classes == 0 and all(person == source for person, source in sources.items())
    assert units == [world.oracle(world.row(i)) for i in world.tables[GUEST].ids]


@pytest.mark.parametrize(
    ("asked", "sender", "reason"),
    [
        ({"feature": "host0_y"}, GUEST, "not a number of years"),
        ({"feature": "host1_x"}, GUEST, "not a number of years"),
        ({"place": 5}, GUEST, "Class 5 of 5"),
        ({"place": -1}, GUEST, "Class -1 of 5"),
        ({"few": MIN_PEOPLE - 1}, GUEST, "50 or more are needed"),
        ({}, "host1", "not opened"),
    ],
)
def test_what_would_disclose_more_is_refused(asked, sender, reason):
    world = world_of_ages()
    ids = world.tables["host0"].ids
    message = AssignAges("c", ids[: asked.get("few", len(ids))], asked.get("feature", "host0_x"), asked.get("place", 0))
    with running(world) as (_, _, served):
        host, key = served.hosts["host0"], PlainKeySide()
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        with pytest.raises(SecurityError, match=reason):
            list(host.answer(sender, message))


def test_every_record_is_charged_for_classes_of_ages_once_and_for_scores_at_them():
    world = world_of_ages()
    ids = world.tables["host0"].ids
    account = Accountant(Database(), Limits(5))
    classes = column_bits(len(ids) + 1)
    value = world.hosts["host0"].capacities["host0_x"]
    with running(world, options={"host0": {"accountant": account}}) as (_, _, served):
        host, key = served.hosts["host0"], PlainKeySide()
        list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
        for place in (0, 1):
            list(host.answer(GUEST, AssignAges("c", ids[:MIN_PEOPLE], "host0_x", place)))
            assert account.given_away(ids[-1:])[ids[-1]] == pytest.approx(classes)
        entries = CompiledGuest(world.model).folding.n_entries
        vectors = key.encrypt(np.ones((1, entries), dtype=np.int64))
        list(host.answer(GUEST, DecisionVectors("c", MODEL_ID, ids[:1], entries, 1, vectors)))
    assert account.given_away(ids[-1:])[ids[-1]] == pytest.approx(classes + value)


class ManyClasses(Network):
    """A Host on it reports a thousand classes."""

    def send(self, sender, receiver, message):
        many = isinstance(message, AgesAssigned)
        return super().send(sender, receiver, replace(message, classes=1000) if many else message)


def test_a_host_that_reports_impossibly_many_classes_is_stopped():
    with pytest.raises(SecurityError, match="1,000 classes of age"):
        scored_at(world_of_ages(), PlainKeySide(), 0, network=ManyClasses())
