"""Whatever reads a record passes the one account of its Host: every kind of message is sent, and watched for what it reads."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import sum_parameters
from backend.data.demo import write_demo
from backend.data.dictionary import Feature
from backend.data.table import PartyTable, read_labels, read_table
from backend.protocols.alignment.exchange import align
from backend.protocols.explanations.guest import ReasonsClient
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.group_sums.guest import GroupQuestions
from backend.protocols.guest import GuestParty
from backend.protocols.host import HostParty
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.host import _counted
from backend.protocols.scoring.messages import AssignAges, BlankValues, PermuteValues
from backend.protocols.simulation.hosts import SimulatedHosts
from backend.protocols.terms.floors import Floors
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.channel import Session
from backend.protocols.transport.messages import OfferKey
from backend.protocols.transport.network import Network
from backend.store.accountant import Accountant, Limits
from backend.store.database import Database
from backend.store.party_store import memory_store
from backend.trees.ensemble import Layout

# These read no record at all: they hold a number and a hash, names of requests, a purpose, or pieces of what another message began.
NO_RECORD = {
    "AskApproval",
    "AskTraining",
    "KeepAuditHead",
    "KeepImport",
    "AskAuditHeads",
    "Acknowledge",
    "MoreGradients",
    "MoreGroupPairs",
    "MoreVectors",
    "ReleaseModel",
    "ReportWrongAnswer",
    "StatePurpose",
}
PEOPLE = 260


class WatchedColumns(dict):
    """Columns that note when one is read."""

    reads = 0

    def __getitem__(self, name):
        self.reads += 1
        return super().__getitem__(name)

    def items(self):
        self.reads += 1
        return super().items()

    def values(self):
        self.reads += 1
        return super().values()


class WatchedAccountant(Accountant):
    """Notes that something was counted."""

    counted = 0

    def count(self, question, **how):
        self.counted += 1
        return super().count(question, **how)

    def count_bound(self, question, digest):
        self.counted += 1
        return super().count_bound(question, digest)

    def spent(self, question):
        self.counted += 1
        return super().spent(question)


class WatchedHost(HostParty):
    """A Host that notes, by kind of message, whether records were read and whether its conversation was counted by then."""

    def __init__(self, name, table, features, accountant):
        self.columns = WatchedColumns(table.columns)
        watched, options = replace(table, columns=self.columns), {"simulated": True, "key_floor": 512}
        options["floors"] = Floors(synthetic=True)  # too few people for a training under floors
        super().__init__(name, watched, features, memory_store(), accountant=accountant, **options)
        self.noted, self._counted = {}, {}

    def answer(self, sender, message):
        kind, talk = type(message).__name__, message.conversation
        before = self.columns.reads, self.accountant.counted
        out = list(super().answer(sender, message))
        self._counted[talk] = self._counted.get(talk, 0) + self.accountant.counted - before[1]
        read, unpaid = self.noted.get(kind, (False, False))
        reads = self.columns.reads > before[0]
        self.noted[kind] = read or reads, unpaid or (reads and not self._counted[talk])
        return iter(out)


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    """Kind of message → (it read records, it did so uncounted), over all protocols with real Hosts; and what they all answer."""
    federation = write_demo(tmp_path_factory.mktemp("demo"), rows=PEOPLE)
    network, own = Network(), read_table(federation, federation.guest.name)
    hosts = [
        WatchedHost(p.name, read_table(federation, p.name), p.features, WatchedAccountant(Database(), Limits(999)))
        for p in federation.hosts
    ]
    names = tuple(host.name for host in hosts)
    served, guest = SimulatedHosts(network, hosts), GuestParty(federation, lambda: own)
    key = PaillierKeySide(PaillierSecretKey.generate(512, floor=512))
    sessions = iter(range(1000))

    def session():
        return Session(network.end(guest.name), f"s{next(sessions)}", names, timeout=60)

    def talked(work):
        talk = session()
        try:
            return work(talk)
        finally:
            talk.close()

    def grouped(talk):
        talk.broadcast(OfferKey(talk.name, key.scheme, key.offer()))
        align(talk, guest.name, own.ids, "dh")
        first, second = ((host.name, next(iter(host.columns))) for host in hosts[:2])
        questions = GroupQuestions(talk, guest.name, key, np.ones(joint, dtype=bool))
        questions.send([np.ones(joint, dtype=np.int64)], [first[0]])
        questions.ask({first[0]: [first[1]]}, 4)
        questions.distinct(*first)
        questions.have_sent(*first, 4, [second[0]])
        questions.ask({second[0]: [second[1]]}, 4, first[0])

    ages = PartyTable("shop", own.ids, {"age": np.linspace(20.0, 90.0, len(own.ids))})
    older = WatchedHost(
        "shop", ages, (Feature(name="age", meaning="age", unit="years"),), WatchedAccountant(Database())
    )
    older.answer(guest.name, OfferKey("a", key.scheme, key.offer()))
    older.answer(guest.name, AssignAges("a", own.ids[:80], "age", 0))
    try:
        labels = read_labels(federation)
        few = {"trees": 4, "depth": 3}
        trained = talked(lambda talk: guest.train(labels, SecureBoostParameters(**few), key, talk))
        talked(lambda talk: guest.train(labels, OpBoostParameters(**few), None, talk))
        lattice = RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(PEOPLE))))
        talked(lambda talk: guest.train(labels, SecureBoostParameters(trees=1, depth=1), lattice, talk))
        compiled, terms = CompiledGuest(trained.model), CompiledTerms(trained.model)
        people = own.take(np.arange(60, 62))
        talked(lambda talk: guest.score(trained.model_id, compiled, people, key, talk))

        def permuted(talk):
            asked = own.ids[100:200]
            for host in hosts:
                talk.send(host.name, OfferKey(talk.name, key.scheme, key.offer()))
                talk.send(host.name, PermuteValues(talk.name, asked, (next(iter(host.columns)),)))
            return guest.score(trained.model_id, compiled, own.take(np.arange(100, 102)), key, talk)

        talked(permuted)

        def blanked(talk):
            for host in hosts:
                talk.send(host.name, OfferKey(talk.name, key.scheme, key.offer()))
                talk.send(host.name, BlankValues(talk.name, own.ids[200:300], (next(iter(host.columns)),)))
            return guest.score(trained.model_id, compiled, own.take(np.arange(200, 202)), key, talk)

        talked(blanked)

        talked(lambda talk: ReasonsClient(talk, guest.name, trained.model_id, terms, key).names(people, 1))
        talked(lambda talk: ReasonsClient(talk, guest.name, trained.model_id, terms, key).sums(own.take(np.arange(90))))
        joint = len(trained.part_of)
        talked(grouped)
        yield [*hosts, older]
    finally:
        served.stop()


def test_every_kind_of_message_that_reads_records_is_accounted_for(noted):
    unpaid = {kind for host in noted for kind, (_, uncounted) in host.noted.items() if uncounted}
    assert unpaid == set()
    assert {kind for host in noted for kind, (read, _) in host.noted.items() if read} >= {
        "AskDistinct",
        "AskGroupPairs",
        "AskGroupSums",
        "AssignAges",
        "DecisionVectors",
        "ReasonTerms",
        "StartRanks",
        "StartTraining",
    }


def test_no_kind_of_message_is_left_out_of_this_test(noted):
    sent = {kind for host in noted for kind in host.noted}
    answered = {kind.__name__ for kind in (*noted[0]._handlers, *noted[0]._gate.kinds)}
    assert answered - sent == NO_RECORD


@pytest.mark.parametrize(("announced", "counted"), [(0, 60.0), (1, 10.0), (14, 14.0), (99, 60.0)])
def test_a_score_counts_no_fewer_bits_than_its_scale_has_whatever_the_guest_says(announced, counted):
    model = SimpleNamespace(capacity=60.0, layout=Layout(10, 1, 0))
    request = SimpleNamespace(request="r", ids=("a",), sum_bits=announced)
    served = SimpleNamespace(model=model, structure="s")
    asked = _counted(SimpleNamespace(guest="bank"), request, served, np.array([True]))
    assert (asked.bits, asked.capacity) == (counted, 60.0)
