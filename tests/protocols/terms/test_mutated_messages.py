"""Mutated messages of every kind at a real Host: each ends in an answer that was booked or in a refusal, and none stops the Host.

Honest conversations are held, so that the Host's state is that of a protocol under way. After each message of these the Host gets
others that are made of it. ``FUZZ_INPUTS`` says how many in all (make fuzz: 10,000); without it, one round of the conversations has some
1,500.
"""

import copy
import os
import random
import threading
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import fields, replace

import numpy as np
import pytest
from actors import MODEL_ID, federation_of
from refused import raises
from worlds import GUEST, random_world, with_covers, with_medians

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import sum_parameters
from backend.data.demo import write_demo
from backend.data.federation import MEASURES
from backend.data.table import PartyTable, read_labels, read_table
from backend.errors import GlassleafError, HostRefused, SecurityError
from backend.protocols.alignment.exchange import align
from backend.protocols.approvals.guest import ask, training_terms
from backend.protocols.approvals.messages import AskApproval
from backend.protocols.audit_head.messages import AskAuditHeads, KeepAuditHead
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.host import Reasons
from backend.protocols.explanations.messages import ContributionSums
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.group_sums.messages import MoreGroupPairs
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.imports.messages import KeepImport
from backend.protocols.purposes.protocol import state_purpose
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.messages import AssignAges, BlankValues, DecisionVectors, MoreVectors, PermuteValues
from backend.protocols.sealing.messages import ReleaseModel
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.terms.floors import Floors
from backend.protocols.training.messages import MoreGradients, ReportWrongAnswer
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.codec import decode, encode
from backend.protocols.transport.messages import Acknowledge, OfferKey
from backend.protocols.transport.network import Network
from backend.remark import Remark
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.serialization import dump_host

MUTATIONS = int(os.environ.get("FUZZ_INPUTS") or 1_000)
SHARE = 12  # made of each honest message
N = 90


class WatchedTable(PartyTable):
    """Notes whose values were opened, by thread: conversations are answered beside each other."""

    def columns_of(self, rows, names=None):
        self.opened().extend(rows.tolist())
        return super().columns_of(rows, names)

    def opened(self):
        """Return the rows that this thread has opened."""
        return self.__dict__.setdefault("by_thread", {}).setdefault(threading.get_ident(), [])


class Besieged(HostParty):
    """A Host that gets other messages after each honest one, in conversations that stand where it stood before that."""

    def __init__(self, draw, share, table, features, store, **options):
        watched = WatchedTable(table.party, table.ids, table.columns)
        account = Accountant(Database(), Limits(1_000, synthetic=True))  # so that the honest conversations get through
        super().__init__(
            table.party,
            watched,
            features,
            store,
            key_floor=512,
            measures=MEASURES,
            accountant=account,
            approvals="none",
            **options,
        )
        self.draw, self.share, self.table = draw, share, watched
        self.refused, self.answered, self.faults, self.unpaid = Counter(), Counter(), [], []

    def answer(self, sender, message):
        before = self.states(self._session(sender, message))
        try:
            yield from self.look(sender, message)
        finally:
            self.besiege(sender, message, before)

    def besiege(self, sender, message, before):
        """Send others that are made of a message, each in a conversation of its own."""
        kind = type(message).__name__
        for _ in range(self.share):
            who = self.draw.choice([sender, sender, sender, sender, "other_host", "other_bank"])
            talk = f"{message.conversation}~"
            self._sessions.end(talk, who)
            if before is not None:
                self._sessions._open[before.guest, talk] = self.states(before)
            try:
                other = decode(mutated(replace(message, conversation=talk), self.draw, self.table.ids))
                self.look(who, other)
                self.answered[kind] += 1
            except GlassleafError:
                self.refused[kind] += 1
            except Exception as error:  # a fault of ours
                self.faults.append((kind, repr(error)))

    @staticmethod
    def states(session):
        """Return a conversation as it is now."""
        if session is None:
            return None
        copied = copy.copy(session)
        copied._work = {}
        for kind, state in session._work.items():
            try:
                copied._work[kind] = copy.deepcopy(state, {id(session.cipher): session.cipher})
            except Exception:  # what a library holds
                copied._work[kind] = state
        return copied

    def look(self, sender, message):
        """Return what answers a message; note if values were opened of somebody of whom nothing is booked."""
        opened = self.table.opened()
        before = len(opened)
        session = self._session(sender, message)
        reasons = None if session is None else session.kept(Reasons)
        replies = list(super().answer(sender, message))
        kind = type(message).__name__
        people = {self.table.ids[row] for row in opened[before:]}
        of_cohort = kind == "ReasonTerms" and reasons is not None and reasons.cohort is not None
        if of_cohort and not any(isinstance(reply, ContributionSums) for _, reply in replies):
            return replies  # it is booked before its sums leave
        told = self.accountant.given_away(sorted(people))
        if not all(bits > 0 for bits in told.values()):
            self.unpaid.append(kind)
        return replies


def mutated(message, draw, ids):
    """Return bytes of a message of which one field has another value, or some bytes are others."""
    if draw.random() < 0.25:
        blob = bytearray(encode(message))
        for _ in range(draw.randint(1, 4)):
            blob[draw.randrange(len(blob))] = draw.randrange(256)
        return bytes(blob)
    field = draw.choice(fields(message))
    value = getattr(message, field.name)
    if isinstance(value, bool):
        value = not value
    elif isinstance(value, int):
        value = draw.choice([-1, 0, 1, value + 1, max(0, value - 1), 1 << 40])
    elif isinstance(value, float):
        value = draw.choice([0.0, -1.0, value * 2, float("nan"), float("inf")])
    elif isinstance(value, str):
        value = draw.choice(["", value + "x", value, "d", "host0", MODEL_ID, draw.choice(ids)])
    elif isinstance(value, bytes):
        value = draw.choice([b"", value[:-1], value + b"\0", value[::-1], bytes(len(value)), value[: len(value) // 2]])
    elif isinstance(value, tuple):
        value = draw.choice([(), value[:1], value * 2, value[::-1], tuple(draw.sample(ids, 5))])
    return encode(replace(message, **{field.name: value}))


@pytest.fixture(scope="module")
def key():
    return PaillierKeySide(PaillierSecretKey.generate(512, floor=512))


def world_of_everybody():
    """A world whose one Host has a record of everybody."""
    world = with_medians(with_covers(random_world(3, 1, n=N, n_trees=2), 3))
    table = world.tables["host0"]
    rows = np.arange(N) % len(table.ids)
    columns = {name: column[rows] for name, column in table.columns.items()}
    own = replace(table, ids=world.tables[GUEST].ids, columns=columns)
    return replace(world, tables={**world.tables, "host0": own})


def conversations(draw, guest, network, hosts):
    """Return how a conversation with these Hosts is held, and ends whatever becomes of it."""

    def held(work):
        name = f"c{draw.getrandbits(60)}"
        session = Session(network.end(guest), name, hosts, timeout=120)
        try:
            work(session)
        finally:
            session.close()

    return held


def asked_of_a_model(draw, key, share):
    """Hold conversations about a model's scores, reasons, cohorts and groups; return the Host."""
    world = world_of_everybody()
    compiled, terms = CompiledGuest(world.model), CompiledTerms(world.model)
    features = tuple(f for party, f in world.model.dictionary if party == "host0")
    store = memory_store({MODEL_ID: dump_host(world.hosts["host0"])})
    host = Besieged(draw, share, world.tables["host0"], features, store)
    network = Network()
    served = SimulatedHosts(network, [host])
    own = world.tables[GUEST]
    held = conversations(draw, GUEST, network, ("host0",))
    guest = GuestParty(federation_of(world), lambda: own)
    feature = features[0].name

    def others(message):
        def work(talk):
            talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
            state_purpose(talk, "validation")
            talk.broadcast(message(talk.name, own.ids, (feature,)))
            guest.score(MODEL_ID, compiled, own.take(np.arange(2)), key, talk)

        return work

    def without_records(talk):
        """What reads no record, and what only an age does."""
        talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
        for message in (
            AskApproval(talk.name, MODEL_ID, "scoring", 5),
            Acknowledge(talk.name, ("r",)),
            KeepImport(talk.name, "m-import", dump_host(world.hosts["host0"])),
            ReleaseModel(talk.name, MODEL_ID, MODEL_ID, 8, 1, 20, 0, "0" * 64, 0.01),
            KeepAuditHead(talk.name, 0, "", ("a" * 64,), 1, "a" * 64, "b" * 64, "c" * 128),
            AskAuditHeads(talk.name, 5, 5),
            ReportWrongAnswer(talk.name, Remark("bins_exceed_request", {"asked": 2, "got": 3})),
            AssignAges(talk.name, own.ids, feature, 0),
            MoreVectors(talk.name, b"x" * 64),
            MoreGradients(talk.name, (b"x" * 64,)),
            MoreGroupPairs(talk.name, (b"x" * 64,)),
        ):
            with suppress(GlassleafError):
                list(host.answer(GUEST, message))

    def grouped(talk):
        talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
        state_purpose(talk, "proxies")
        align(talk, GUEST, own.ids, "dh")
        questions = GroupQuestions(talk, GUEST, key, np.ones(N, dtype=bool))
        questions.send([np.ones(N, dtype=np.int64)], ["host0"])
        questions.ask({"host0": [feature]}, 4)
        questions.have_sent("host0", feature, 4, ["host0"])

    def screened(talk):
        talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
        state_purpose(talk, "screening")
        align(talk, GUEST, own.ids, "dh")
        GroupQuestions(talk, GUEST, key, np.ones(N, dtype=bool)).distinct("host0", feature)

    try:
        # Nobody is booked by an earlier conversation whom a later one's mutations would have to book.
        held(lambda talk: ReasonsClient(talk, GUEST, MODEL_ID, terms, key).names(own.take(np.arange(80, 82)), 2))
        held(lambda talk: guest.score(MODEL_ID, compiled, own.take(np.arange(3)), key, talk))
        host.share = 1  # each of seventy people has a message
        held(lambda talk: ReasonsClient(talk, GUEST, MODEL_ID, terms, key).sums(own.take(np.arange(5, 75))))
        host.share = share
        held(grouped)
        held(screened)
        held(others(PermuteValues))
        held(others(BlankValues))
        held(without_records)
    finally:
        served.stop()
    return [host]


def asked_to_train(draw, key, share, folder):
    """Hold conversations about trainings; return the Hosts."""
    federation = write_demo(folder, rows=200)
    own = read_table(federation, federation.guest.name)
    labels = read_labels(federation)
    loose = Floors(synthetic=True)  # too few people for a training under floors
    hosts = [
        Besieged(draw, share, read_table(federation, party.name), party.features, memory_store(), floors=loose)
        for party in federation.hosts
    ]
    network = Network()
    served = SimulatedHosts(network, hosts)
    guest = GuestParty(federation, lambda: own)
    held = conversations(draw, guest.name, network, tuple(host.name for host in hosts))
    few = {"trees": 2, "depth": 2}

    def trained(parameters, under):
        def work(talk):
            ask(talk, guest.name, training_terms(talk, parameters, federation, ()))
            with (
                suppress(HostRefused) if under is None else nullcontext()
            ):  # plaintext scores of what was trained on ranks
                guest.train(labels, parameters, under, talk)

        return work

    lattice = RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(200))))
    try:
        held(trained(SecureBoostParameters(**few), key))
        held(trained(OpBoostParameters(**few), None))
        held(trained(SecureBoostParameters(trees=1, depth=1), lattice))
    finally:
        served.stop()
    return hosts


def test_mutated_messages_of_every_kind_end_in_booked_answers_or_refusals(key, tmp_path):
    draw = random.Random(4)
    done = 0
    rounds = 0
    hosts = []
    while done < MUTATIONS:
        rounds += 1
        hosts += asked_of_a_model(draw, key, SHARE)
        hosts += asked_to_train(draw, key, SHARE, tmp_path / str(rounds))
        done = sum(sum(host.refused.values()) + sum(host.answered.values()) for host in hosts)
    assert [fault for host in hosts for fault in host.faults] == []
    assert [kind for host in hosts for kind in host.unpaid] == []
    answered = sum(sum(host.answered.values()) for host in hosts)
    assert done - answered > done / 2 and answered > done / 20
    came = {kind for host in hosts for kind in {**host.refused, **host.answered}}
    assert came == {kind.__name__ for kind in (*hosts[0]._gate.kinds, *hosts[0]._handlers)}
    assert all(host.table.by_thread for host in hosts)


def test_scores_longer_than_any_key_holds_are_refused_before_memory_is_spent_on_them(key):
    """Found by the mutations: 2^40 bits were announced, and a number as long was made."""
    world = world_of_everybody()
    store = memory_store({MODEL_ID: dump_host(world.hosts["host0"])})
    host = Besieged(random.Random(0), 0, world.tables["host0"], (), store)
    compiled = CompiledGuest(world.model)
    _, entries = compiled.encode(world.tables[GUEST].columns, N)
    list(host.answer(GUEST, OfferKey("c", key.scheme, key.offer())))
    ids = world.tables[GUEST].ids[:1]
    vectors = DecisionVectors(
        "c", MODEL_ID, ids, entries.shape[1], 1, key.encrypt(entries[:1]), request="r", sum_bits=1 << 40
    )
    with raises(SecurityError, "too_many_score_bits"):
        list(host.answer(GUEST, vectors))
    assert host.accountant.largest_given_away() == (0, 0.0)
