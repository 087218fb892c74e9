"""What two parties learn together, as the threat model's table says: the Guest with one Host reads the other; two Hosts read nothing."""

import itertools
from contextlib import suppress

import numpy as np
import pytest
from actors import MODEL_ID, running, score
from joints import joined
from worlds import GUEST, random_world

from backend.crypto.fixedpoint import centred
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.errors import SecurityError
from backend.protocols.scoring import host as scoring_host
from backend.protocols.scoring.fed_eini import CompiledGuest, CompiledHost
from backend.protocols.scoring.messages import DecisionVectors, EncryptedScores
from backend.protocols.training import secureboost
from backend.protocols.training.messages import AskBinSums, Gradients, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.codec import decode
from backend.protocols.transport.messages import HeldRecords
from backend.protocols.transport.packing import to_bitmap
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.request_log import RequestLog

DITHER = 2.0**-4


@pytest.fixture(scope="module")
def world():
    return random_world(11, 2, n_trees=6, depth=4)


def keeps(world, host, index):
    """What a Host truly keeps of each entry, ``(n, entries)``."""
    step = CompiledGuest(world.model).folding.steps[index]
    table = world.tables[host]
    ids = world.tables[GUEST].ids
    held = np.array([i in table.row_of for i in ids])
    columns = table.take(np.array([table.row_of.get(i, 0) for i in ids])).columns
    return CompiledHost(step, world.hosts[host].rules).decide(columns, held)


def decrypted(key, message):
    n = int(key.public.n)
    numbers = key.decrypt_numbers(key.public.load(message.vectors, len(message.ids) * message.entries))
    return np.array([centred(int(v) % n, n) for v in numbers], dtype=object).reshape(len(message.ids), message.entries)


def test_the_guest_and_the_second_host_read_the_first(world, secret_key):
    """K5: which entries the first Host kept follows from what it hands on, which the Guest's key opens."""
    key, tap = PaillierKeySide(secret_key), []
    options = {host: {"dither": DITHER} for host in world.hosts}
    with running(world, tap=tap, options=options) as (guest, network, _):
        score(world, guest, network, key)
    vectors = {sender: decode(blob) for sender, _, kind, blob in tap if kind == "DecisionVectors"}
    sent, handed_on = decrypted(key, vectors[GUEST]), decrypted(key, vectors["host0"])
    step = CompiledGuest(world.model).folding.steps[0]
    truth = keeps(world, "host0", 0)
    read, total = 0, 0
    for person, out in itertools.product(range(len(sent)), range(step.n_out)):
        sources = [e for e, target in enumerate(step.target) if target == out and sent[person, e]]
        own = [e for e in sources if step.host_conditions[e]]
        ways = [
            kept
            for kept in itertools.product([False, True], repeat=len(own))
            if sum(sent[person, e] for e, used in zip(own, kept, strict=True) if used)
            + sum(sent[person, e] for e in sources if not step.host_conditions[e])
            == handed_on[person, out]
        ]
        total += len(own)
        if len(ways) == 1:
            assert list(ways[0]) == [bool(truth[person, e]) for e in own]
            read += len(own)
    assert total > 100 and read == total


def crafting(host, key, sum_bits):
    """K6: the first Host hands on 2^(12 + j) as entry j."""
    honest = host.answer

    def answer(sender, message):
        if not isinstance(message, DecisionVectors):
            yield from honest(sender, message)
            return
        served = host._partial_models.get(MODEL_ID)
        count, n = served.plan.n_out, len(message.ids)
        crafted = key.public.dump(key.encrypt_numbers([1 << (12 + j) for j in range(count)] * n))
        yield sender, HeldRecords(message.conversation, to_bitmap(np.ones(n, dtype=bool)))
        yield (
            served.following,
            DecisionVectors(
                message.conversation,
                MODEL_ID,
                message.ids,
                count,
                1,
                crafted,
                request=message.request,
                question="q",
                sum_bits=sum_bits(count),
            ),
        )

    host.answer = answer


def read_by_first(world, key, sum_bits):
    """Score while the Guest and the first Host read the second; return bits read, bits there are, bits booked a person, and its sample."""
    tap, account, log = [], Accountant(Database(), Limits(0)), RequestLog(Database(), rate=1.0)
    options = {"host1": {"accountant": account, "requests": log, "dither": DITHER}}
    with running(world, tap=tap, options=options) as (guest, network, served):
        crafting(served.hosts["host0"], key, sum_bits)
        with suppress(SecurityError):  # a Guest that takes part has a reader of its own
            score(world, guest, network, key)
        step = CompiledGuest(world.model).folding.steps[1]
    [reply] = [decode(blob) for sender, to, kind, blob in tap if kind == EncryptedScores.__name__ and to == GUEST]
    n = int(key.public.n)
    totals = [int(v) % n for v in key.decrypt_numbers(key.public.load(reply.scores, len(world.tables[GUEST].ids)))]
    truth = keeps(world, "host1", 1)
    right = [
        [
            bool((total + (1 << 11)) >> (12 + j) & 1) == bool(truth[i, j])
            for j in range(len(step.host_conditions))
            if step.host_conditions[j]
        ]
        for i, total in enumerate(totals)
    ]
    held = [i in world.tables["host1"].row_of for i in world.tables[GUEST].ids]
    right = np.array(right)[np.array(held)]
    booked = [account.given_away((i,))[i] for i, known in zip(world.tables[GUEST].ids, held, strict=True) if known]
    return float(right.mean()), right.shape[1], max(booked), log.rows()


def test_the_guest_and_the_first_host_read_the_second(world, secret_key):
    """K6: one score gives all answers of the second Host; its account books as many bits, and its sample holds the crafted entries."""
    key = PaillierKeySide(secret_key)
    right, bits, booked, sample = read_by_first(world, key, lambda count: count + 13)
    assert right == 1.0 and bits >= 8
    capacity = world.hosts["host1"].capacity
    assert booked == capacity  # no less than what there is to be read
    numbers = key.decrypt_numbers(key.public.load(sample[0].vector, len(sample[0].vector) // key.public.width))
    assert [int(v) for v in numbers] == [1 << (12 + j) for j in range(len(numbers))]


def test_the_second_host_gives_no_more_bits_than_its_account_books(world, secret_key, monkeypatch):
    """Where the two announce an ordinary score, what they crafted beyond its width does not come back."""
    key = PaillierKeySide(secret_key)
    right, _, booked, _ = read_by_first(world, key, lambda count: 13)
    assert right < 0.8
    assert booked <= 13
    # with the one check removed all of them come back, booked or not
    monkeypatch.setattr(scoring_host, "hidden_above", lambda width, room: 0)
    right, _, booked, _ = read_by_first(world, key, lambda count: 13)
    assert right == 1.0 and booked <= 13


def test_host_to_host_bytes_are_ciphertexts_only(world, secret_key):
    """Two Hosts together see numbers under the Guest's key alone; no entry that shows an answer equals one that came in."""
    key, tap = PaillierKeySide(secret_key), []
    with running(world, tap=tap) as (guest, network, _):
        score(world, guest, network, key)
    vectors = {sender: decode(blob) for sender, _, kind, blob in tap if kind == "DecisionVectors"}
    width = key.public.width
    step = CompiledGuest(world.model).folding.steps[0]
    came, left = (
        [message.vectors[i : i + width] for i in range(0, len(message.vectors), width)]
        for message in (vectors[GUEST], vectors["host0"])
    )
    assert len(set(came)) == len(vectors[GUEST].ids) * vectors[GUEST].entries  # all different, zeros too
    answered = {target for target, own in zip(step.target, step.host_conditions, strict=True) if own}
    fresh = {c for i, c in enumerate(left) if i % step.n_out in answered}
    assert fresh and not fresh & set(came)


def test_two_hosts_of_a_training_see_the_same_sets_of_records():
    """What both are told of records in a training is the same: together they know each other's columns, and nothing more of labels."""
    with joined(3, n=80, hosts=2) as parties:
        secureboost.grow(parties.joint, SecureBoostParameters(trees=2, depth=3, bins=6, cipher="none"))
        sent = list(parties.sent)
    seen = {}
    for host in ("host0", "host1"):
        asked = [decode(blob) for _, to, kind, blob in sent if to == host and kind == AskBinSums.__name__]
        seen[host] = {
            (tree, node, rows) for one in asked for tree, node, rows in zip(one.trees, one.nodes, one.rows, strict=True)
        }
        pairs = [blob for _, to, kind, blob in sent if to == host and kind == Gradients.__name__]
        seen[host] = seen[host], [decode(blob).rows for blob in pairs]
    assert seen["host0"] == seen["host1"]
    assert any(kind == TakeSplit.__name__ for _, _, kind, _ in sent)
