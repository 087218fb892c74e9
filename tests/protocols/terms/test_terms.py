"""What a real Host insists on, driven by the bytes of a Guest that lies (findings G6, G10, G13)."""

import math
from datetime import date
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from actors import MODEL_ID
from refused import raises
from worlds import GUEST, random_world, with_covers

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.signing import SigningKey
from backend.data.binning import make_bins
from backend.data.credit_card import CREDIT_CARD_FEATURES, HOST_COLUMNS, ROWS
from backend.data.demo import PARTIES
from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.approvals.messages import AskTraining
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.messages import AskCohort
from backend.protocols.explanations.shape import names_bits
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.terms.approvals import Approvals, about_training
from backend.protocols.terms.prices import (
    REASON_BITS,
    SCORE_BITS,
    TableFacts,
    book_approved,
    column_bits,
    training_bits,
    usual_max_bits,
)
from backend.protocols.training.messages import StartTraining
from backend.protocols.training.row_sets import pack_rows
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import OfferKey
from backend.reports.adverse_action_notice import MAX_REASONS
from backend.services.host_operator import limits_of
from backend.store.accountant import EVERYBODY, TABLE, Accountant, Limits, Question
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host

N = 120
LATER = date(2999, 1, 1)
PEOPLE = tuple(f"p{i}" for i in range(N))
FEATURES = tuple(Feature(name=f"x{i}", meaning="x") for i in range(12))


@pytest.fixture(scope="module")
def key():
    return PaillierKeySide(PaillierSecretKey.generate(512, floor=512))


def real_host(limits, key, accountant=None, approvals="none"):
    """A Host that is not simulated, with aligned records and a key; its operator was asked before."""
    draw = np.random.default_rng(3)
    table = PartyTable("host", PEOPLE, {feature.name: draw.normal(size=N) for feature in FEATURES})
    host = HostParty(
        "host",
        table,
        FEATURES,
        memory_store(),
        key_floor=512,
        accountant=accountant or Accountant(Database(), limits),
        approvals=approvals,
    )
    drive(host, OfferKey("c", key.scheme, key.offer()))
    host._sessions.of("c", GUEST).rows = np.arange(N, dtype=np.intp)
    return host


def drive(host, message):
    """Send a message as bytes; return the kinds of what comes back."""
    return [type(reply).__name__ for _, reply in host.answer(GUEST, decode(encode(message)))]


def start(bins=8, training=None, request=""):
    rows = np.ones(N, dtype=bool) if training is None else training
    return StartTraining("c", pack_rows(rows), bins, (), False, request)


def test_a_training_is_booked_for_everybody_before_its_first_answer(key):
    host = real_host(Limits(), key)
    assert host.accountant.given_away(["p5"]) == {"p5": 0.0}
    assert drive(host, start()) == ["FeatureBins"]
    price = training_bits(len(FEATURES), N)
    assert price > len(FEATURES) * math.log2(N)
    assert host.accountant.given_away(["p5"])["p5"] == pytest.approx(price)
    assert host.accountant.largest_given_away() == (0, pytest.approx(price))


def test_the_same_bins_again_tell_nothing_more_and_other_rows_are_another_training(key):
    host = real_host(Limits(), key)
    drive(host, start())
    drive(host, start())
    price = training_bits(len(FEATURES), N)
    assert host.accountant.given_away(["p5"])["p5"] == pytest.approx(price)
    few = np.arange(N) < 60
    drive(host, start(training=few))
    assert host.accountant.given_away(["p5"])["p5"] == pytest.approx(2 * price)


def test_by_default_a_window_has_room_for_one_training_and_not_for_two(key):
    host = real_host(Limits(bits=usual_max_bits(len(FEATURES), N)), key)
    drive(host, start())
    drive(host, start())
    with raises(SecurityError, "bits_reached"):
        drive(host, start(bins=9))


def asking_host(key, limits):
    """A real Host that asks its operator, and what its operator decides with: one account, as at a company."""
    accountant = Accountant(Database(), limits)
    approvals = Approvals("host", Database(), SigningKey.generate(), charge=partial(book_approved, accountant))
    host = real_host(limits, key, accountant=accountant, approvals=approvals)
    return host, approvals


def training(conversation="c", **terms):
    values = {"algorithm": "secureboost", "trees": 1, "depth": 1, "bins": 8, "exclude": (), "hide_order": False}
    return AskTraining(conversation, **values | terms)


def test_a_training_is_booked_when_it_is_approved_and_its_start_adds_nothing(key):
    host, approvals = asking_host(key, Limits(bits=usual_max_bits(len(FEATURES), N)))
    price = pytest.approx(training_bits(len(FEATURES), N))
    assert drive(host, training()) == ["ApprovalPending"]
    assert host.accountant.given_away(["p5"]) == {"p5": 0.0}
    approvals.approve(1, "ana", LATER, 5)
    assert host.accountant.given_away(["p5"])["p5"] == price
    assert drive(host, training()) == ["ApprovalGranted"] and drive(host, start()) == ["FeatureBins"]
    assert host.accountant.given_away(["p5"])["p5"] == price
    # More and deeper trees of the same bins tell nothing more; only those who may be trained on are the same.
    assert drive(host, training(trees=9, depth=4)) == ["ApprovalPending"]
    approvals.approve(2, "ana", LATER, 5)
    assert drive(host, training(trees=9, depth=4)) == ["ApprovalGranted"] and drive(host, start()) == ["FeatureBins"]
    assert host.accountant.given_away(["p5"])["p5"] == price
    with raises(SecurityError, "training_rows_changed"):
        drive(host, start(training=np.arange(N) < 100))


@pytest.mark.parametrize("change", [{"draw": "another"}, {"bins": 9}, {"exclude": ("x3",)}, {"hide_order": True}])
def test_a_training_that_could_tell_more_is_booked_for_itself_or_not_approved(key, change):
    host, approvals = asking_host(key, Limits(bits=usual_max_bits(len(FEATURES), N)))
    for asked in (training(), training(**change)):
        drive(host, asked)
    approvals.approve(1, "ana", LATER, 5)
    with raises(SecurityError, "training_beyond_bits") as refusal:
        approvals.approve(2, "ana", LATER, 5)
    assert refusal.value.values["left"] == pytest.approx(SCORE_BITS + REASON_BITS)
    assert approvals.book.get(2).state == "waiting"
    assert host.accountant.given_away(["p5"])["p5"] == pytest.approx(training_bits(len(FEATURES), N))


def test_what_an_agreement_approves_is_booked_too_or_refused(key):
    limits = Limits(bits=usual_max_bits(len(FEATURES), N))
    accountant = Accountant(Database(), limits)
    approvals = Approvals(
        "host",
        Database(),
        SigningKey.generate(),
        agreed=lambda _: (LATER, 5),
        charge=partial(book_approved, accountant),
    )
    host = real_host(limits, key, accountant=accountant, approvals=approvals)
    assert drive(host, training()) == ["ApprovalGranted"]
    assert host.accountant.given_away(["p5"])["p5"] == pytest.approx(training_bits(len(FEATURES), N))
    with raises(SecurityError, "training_beyond_bits"):
        drive(host, training(draw="another"))
    assert [request.state for request in approvals.book.all()] == ["waiting", "granted"]


def test_a_training_that_is_approved_with_no_price_would_cost_nothing_until_it_starts(key):
    """With the charge removed a Guest's approvals would be promises that the account does not know."""
    accountant = Accountant(Database(), Limits(bits=usual_max_bits(len(FEATURES), N)))
    approvals = Approvals("host", Database(), SigningKey.generate())
    host = real_host(Limits(), key, accountant=accountant, approvals=approvals)
    for draw in ("a", "b"):
        drive(host, training(draw=draw))
    for number in (1, 2):
        approvals.approve(number, "ana", LATER, 5)
    assert host.accountant.given_away(["p5"]) == {"p5": 0.0}
    for draw, answer in (("a", "FeatureBins"), ("b", None)):
        drive(host, training(draw=draw))
        if answer:
            assert drive(host, start()) == [answer]
        else:  # the start is booked all the same
            with raises(SecurityError, "bits_reached"):
                drive(host, start())


def test_who_was_told_about_before_counts_when_a_whole_table_is_read():
    account = Accountant(Database(), Limits(bits=10.0))
    account.count(Question(GUEST, "", "score", "s", ("a",), 6.0))
    table = Question(GUEST, "", TABLE, "t", (EVERYBODY,), 5.0, 5.0)
    assert account.count(table, all_or_none=True).tolist() == [True]
    less = Question(GUEST, "", TABLE, "t", (EVERYBODY,), 4.0, 4.0)
    assert account.count(less, all_or_none=True).tolist() == [False]
    assert account.given_away(["a", "b"]) == {"a": 10.0, "b": 4.0}


def outcomes(n, x, others, test_rows, bins):
    """The bins of all records, where one training value is `x`."""
    values = np.array([*others, x])
    binned = make_bins(FEATURES[0], values, bins)
    return tuple(binned.index(np.array([*values, *test_rows])).tolist()), binned.count


@pytest.mark.parametrize("bins", [2, 3, 4])
def test_the_price_of_a_feature_is_never_below_what_its_bins_can_tell_about_one_person(bins):
    """By enumeration: one value moves over a fine grid, and over missing, while the others stay."""
    draw = np.random.default_rng(bins)
    worst = 0.0
    for _ in range(60):
        n, tests = int(draw.integers(2, 8)), int(draw.integers(0, 5))
        others = draw.integers(0, 6, n - 1).astype(float)
        test_rows = draw.integers(0, 12, tests) / 2
        grid = [*np.arange(-1, 7, 0.125), math.nan]
        told = math.log2(len({outcomes(n, x, others, test_rows, bins) for x in grid}))
        worst = max(worst, told / column_bits(n + tests))
    assert 0.4 < worst <= 1.0


@pytest.mark.parametrize("budget", [0, 1000])
def test_no_budget_says_that_people_are_synthetic(budget, key):
    """G13: at a budget of 0 or 1,000 two cohorts one person apart were both answered, and sums could name everybody."""
    limits = Limits(budget)
    world = with_covers(random_world(5, 1, n=160), 5)
    table = world.tables["host0"]
    rows = np.arange(160) % len(table.ids)
    everybody = PartyTable("host0", world.tables[GUEST].ids, {name: c[rows] for name, c in table.columns.items()})
    store = memory_store({MODEL_ID: dump_host(world.hosts["host0"])})
    account = Accountant(Database(), limits)
    host = HostParty("host0", everybody, (), store, key_floor=512, accountant=account, approvals="none")
    people = everybody.ids[:60]
    account.count(
        Question(GUEST, "", "cohort", host._partial_models.get(MODEL_ID).structure, people, 1.0), all_or_none=True
    )
    drive(host, OfferKey("c", key.scheme, key.offer()))
    compiled = CompiledTerms(world.model)
    shape = compiled.shape(1)
    asked = AskCohort("c", MODEL_ID, people[:-1], compiled.shares_of("host0"), shape.features, shape.value_bits)
    with raises(SecurityError, "people_in_common_until"):
        drive(host, asked)
    assert host._gate.floors.named_share > 0
    assert limits.counted and limits.of("cohort") == (1, 1) and limits.of("groups")[0] == 1


def test_a_word_of_the_federation_says_that_people_are_synthetic():
    assert Limits(1000, synthetic=True).of("cohort") == (1000, 1000)
    assert not Limits(0, 0, synthetic=True).counted


def test_a_real_host_counts_and_keeps_its_floors_whatever_the_state_of_a_conversation(key):
    """A simulation leaves conversations uncounted that measure, and has no floors in them; a real Host has no such conversation."""
    host = real_host(Limits(), key)
    host._sessions.uncounted.add("c")
    with raises(SecurityError, "few_training_rows", rows=10):
        drive(host, start(training=np.arange(N) < 10))
    assert drive(host, start()) == ["FeatureBins"]
    assert host.accountant.given_away(["p5"])["p5"] == pytest.approx(training_bits(len(FEATURES), N))


def test_a_real_host_reads_no_variable_that_loosens(monkeypatch, tmp_path):
    monkeypatch.setenv("GLASSLEAF_BUDGET", "0")
    config = SimpleNamespace(
        limits=SimpleNamespace(budget=None, budget_total=None, max_bits=None), features=lambda: FEATURES
    )
    limits = limits_of(config, None, records=N)
    assert (
        limits.answers == 1 and limits.bits == pytest.approx(usual_max_bits(len(FEATURES), N)) and not limits.synthetic
    )


DEMO_ROWS = 6_000
SIZES = {
    **{f"demo {party.name}": (len(features), DEMO_ROWS) for party, features in PARTIES[1:]},
    "credit cards": (len(HOST_COLUMNS), ROWS),
}


@pytest.mark.parametrize("size", SIZES)
def test_by_default_a_window_has_room_for_one_training_one_score_and_one_set_of_reasons(size):
    """The sizes are those of the demo's Hosts and of the public credit cards; the score is of a hundred trees, with its canary."""
    features, records = SIZES[size]
    account = Accountant(Database(), Limits(bits=usual_max_bits(features, records)))
    facts = TableFacts(tuple(f"x{i}" for i in range(features)), records, "0" * 64)
    book_approved(account, about_training(GUEST, training(), facts))
    model = random_world(2, 1, n_trees=100, depth=3).model
    bits = float(CompiledGuest(model).sum_bits(canary=True))
    reasons = names_bits(len(CREDIT_CARD_FEATURES), MAX_REASONS)
    assert bits > 24 and reasons > 16  # as large as honest ones are
    for kind, told in (("score", bits), ("reasons", reasons)):
        question = Question(GUEST, "", kind, "model", ("p",), told, 1_000.0)
        assert account.count(question).tolist() == [False]
    with raises(SecurityError, "training_beyond_bits"):
        book_approved(account, about_training(GUEST, training(draw="another"), facts))
