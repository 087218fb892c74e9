"""Ten thousand mutated messages at a real Host: each ends in an answer that was booked or in a refusal, and none stops the Host."""

import random
from dataclasses import fields, replace

import numpy as np
import pytest
from actors import MODEL_ID
from refused import raises
from sqlalchemy import text
from worlds import GUEST, random_world

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.table import PartyTable
from backend.errors import GlassleafError, SecurityError
from backend.protocols.alignment.messages import HiddenIds, JointRecords, StartAlignment
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import BlankValues, DecisionVectors, MoreVectors, PermuteValues
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import OfferKey
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host

MUTATIONS = 10_000
N = 60


@pytest.fixture(scope="module")
def key():
    return PaillierKeySide(PaillierSecretKey.generate(512, floor=512))


class WatchedTable(PartyTable):
    """Notes whose values were opened."""

    def columns_of(self, rows, names=None):
        self.__dict__.setdefault("opened", []).extend(rows.tolist())
        return super().columns_of(rows, names)


@pytest.fixture
def world_and_host():
    world = random_world(3, 1, n_trees=2, n=N)
    model = world.hosts["host0"]
    own = world.tables["host0"]
    table = WatchedTable("host0", own.ids, own.columns)
    account = Accountant(Database(), Limits(1))
    store = memory_store({MODEL_ID: dump_host(model)})
    return world, HostParty("host0", table, (), store, key_floor=512, accountant=account, approvals="none"), table


def honest(world, key):
    """Messages that a Guest sends."""
    ids = world.tables[GUEST].ids
    _, entries = CompiledGuest(world.model).encode(world.tables[GUEST].columns, len(ids))
    vectors = key.encrypt(entries[:1])
    feature = next(iter(world.tables["host0"].columns))
    return [
        OfferKey("c", key.scheme, key.offer()),
        DecisionVectors("c", MODEL_ID, ids[:1], entries.shape[1], 1, vectors, request="r"),
        MoreVectors("c", vectors),
        PermuteValues("c", ids, (feature,)),
        BlankValues("c", ids, (feature,)),
        StartAlignment("c", "dh", N, b""),
        HiddenIds("c", b"x" * 64),
        JointRecords("c", b"\xff" * 8, b"y" * 32),
    ]


def mutated(message, draw, ids):
    """Return a message with one field of another value, or bytes of which one is another."""
    if draw.random() < 0.3:
        blob = bytearray(encode(message))
        for _ in range(draw.randint(1, 4)):
            blob[draw.randrange(len(blob))] = draw.randrange(256)
        return bytes(blob)
    field = draw.choice(fields(message))
    value = getattr(message, field.name)
    if isinstance(value, bool | float) or value is None:
        return encode(message)
    if isinstance(value, int):
        value = draw.choice([-1, 0, 1, value + 1, 1 << 40])
    elif isinstance(value, str):
        value = draw.choice(["", value + "x", "c", "d", "host0", MODEL_ID, draw.choice(ids)])
    elif isinstance(value, bytes):
        value = draw.choice([b"", value[:-1], value + b"\0", value[::-1], bytes(len(value))])
    elif isinstance(value, tuple):
        value = draw.choice([(), value[:1], value * 2, tuple(draw.sample(ids, 5))])
    return encode(replace(message, **{field.name: value}))


def test_mutated_messages_end_in_booked_answers_or_refusals(world_and_host, key):
    world, host, table = world_and_host
    draw = random.Random(4)
    ids = list(world.tables[GUEST].ids)
    messages = honest(world, key)
    refused = answered = 0
    for number in range(MUTATIONS):
        if number % 50 == 0:
            list(host.answer(GUEST, messages[0]))
        sender = draw.choice([GUEST, GUEST, GUEST, "host1", "other_bank"])
        try:
            message = decode(mutated(draw.choice(messages), draw, ids))
            list(host.answer(sender, message))
            answered += 1
        except GlassleafError:
            refused += 1
    assert answered + refused == MUTATIONS and refused > MUTATIONS / 2 and answered > 100
    # Nobody's values were opened without a booked answer.
    opened = {table.ids[row] for row in table.__dict__.get("opened", ())}
    told = host.accountant.given_away(list(table.ids))
    held = set(table.ids) & {person for person, bits in told.items() if bits > 0}
    assert opened and opened <= held
    # And a person was not answered about more often than the budget allows.
    with host.accountant._database.read() as session:
        assert session.execute(text("select max(asked) from answers where kind = 'score'")).scalar() in (None, 1)
    assert np.isfinite(list(told.values())).all()


def test_scores_longer_than_any_key_holds_are_refused_before_memory_is_spent_on_them(world_and_host, key):
    """Found by the mutations: 2^40 bits were announced, and a number as long was made."""
    world, host, _ = world_and_host
    offer, vectors, *_ = honest(world, key)
    list(host.answer(GUEST, offer))
    with raises(SecurityError, "too_many_score_bits"):
        list(host.answer(GUEST, replace(vectors, sum_bits=1 << 40)))
    assert host.accountant.largest_given_away() == (0, 0.0)
