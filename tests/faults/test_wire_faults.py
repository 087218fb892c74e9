"""Every message of a score fails once, in every way: the same scores, or a refusal in words; everybody is counted once."""

import numpy as np
import pytest
from faulty import FAULTS, Killed, running, signing_keys
from sqlalchemy import text

from backend.crypto.workers import Workers
from backend.data.demo import write_demo
from backend.data.table import SampleSheet
from backend.errors import ApprovalDenied, GlassleafError, HostBusy
from backend.jobs import Job
from backend.policy.bands import usual_policy
from backend.protocols.training.messages import Gradients, KeepModel, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import waiting
from backend.services.registry import Compiled
from backend.services.score_marks import seen_values
from backend.services.scoring import Rules, ScoringRequest, score
from backend.services.training import TrainingRequest, train
from backend.services.waiting import LASTING
from backend.store.database import column_values
from backend.store.schema import ArtefactRow
from backend.trees.serialization import dump_guest, load_host

PEOPLE = 2
MESSAGES = 14  # of such a score


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.005)
    monkeypatch.setattr("backend.protocols.transport.channel.POLL", 0.01)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """The demo's federation, Hosts' keys, and a model with what each party keeps of it."""
    folder = tmp_path_factory.mktemp("faulty")
    federation = write_demo(folder / "demo", rows=100)
    keys = signing_keys(federation)
    with running(federation, folder / "parties", keys) as made:
        record, trained = train(made.guest, TrainingRequest("demo", PARAMETERS), Job(lambda _: None, 0))
        sent, artefacts = made.network.sent, {}
        for name, database in made.kept.items():
            with database.read() as session:
                artefacts[name] = [column_values(row) for row in session.query(ArtefactRow)]
    found = Bank(folder / "parties", federation, keys, record, trained, Compiled(trained.model), artefacts)
    found.training = sent
    with found.running() as made:
        found.bring(made)
        found.wanted = found.score(made)
        hosts = {name: found.rules(made, name, found.record.id) for name in made.hosts}
        found.model = dump_guest(found.trained.model), hosts
        assert made.network.count == MESSAGES
    return found


class Bank:
    """What all scenarios share."""

    def __init__(self, folder, federation, keys, record, trained, compiled, artefacts):
        self.folder, self.federation, self.keys = folder, federation, keys
        self.record, self.trained, self.compiled, self._artefacts = record, trained, compiled, artefacts

    def running(self):
        return running(self.federation, self.folder, self.keys)

    def bring(self, made):
        """Put the model into each party's store."""
        for name, rows in self._artefacts.items():
            with made.kept[name].write() as session:
                for row in rows:
                    session.merge(ArtefactRow(**row))

    def train(self, made):
        record, trained = train(made.guest, TrainingRequest("demo", PARAMETERS), Job(lambda _: None, 0))
        return dump_guest(trained.model), {name: self.rules(made, name, record.id) for name in made.hosts}

    @staticmethod
    def rules(made, host, model_id):
        return load_host(made.hosts[host]._store.artefact(model_id)).rules

    def score(self, made, people=PEOPLE, timeout=LASTING):
        own = made.guest.table.take(np.arange(people))
        sheet = SampleSheet(own.ids, own, {}, {}, ())
        request = ScoringRequest(self.record.id, sheet, cipher="paillier", key_bits=512, timeout=timeout)
        job = Job(lambda _: None, 0)
        policy = usual_policy(self.record.task, self.record.positive_rate)
        rules = Rules(policy, seen_values(self.trained.model, made.guest.table))
        batch = score(made.guest, self.record, self.compiled, request, job, Workers(), rules, counted=True)
        assert [one.problems for one in batch.scores] == [()] * people
        return [one.units for one in batch.scores]


PARAMETERS = SecureBoostParameters(trees=2, depth=2, bins=4, cipher="paillier", alignment="bloom")
object.__setattr__(PARAMETERS, "key_bits", 512)  # shorter than is allowed outside tests


def outcome(bank, fault, at):
    """What came of one scenario: scores, or why there are none; the kind of message that was struck; most counted; volume used."""
    with bank.running() as made:
        bank.bring(made)
        made.network.fail(fault, at)
        try:
            found = bank.score(made)
        except Killed:
            made.restart_guest()
            found = bank.score(made)
        except GlassleafError as error:
            found = str(error)
        kind = made.network.struck
        if isinstance(found, str):
            made.network.fail("", 0)
            assert bank.score(made) == bank.wanted  # asked once more it is answered, and still counted once
        return found, kind, made.counted(), set(made.volume("scoring").values())


def struck(bank, fault, places):
    """Kinds of message that were struck at these places; each scenario is looked at."""
    kinds = set()
    for at in places:
        found, kind, counted, volume = outcome(bank, fault, at)
        assert found == bank.wanted or (isinstance(found, str) and found.endswith(".")), (fault, at, kind, found)
        assert (counted, volume) == (1, {PEOPLE}), (fault, at, kind)
        if fault in ("lost", "host", "guest"):
            assert found == bank.wanted, (fault, at, kind, found)
        kinds.add(kind)
    return kinds


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_happens_to_one_message_of_a_score_nobody_is_counted_twice(bank, fault):
    """One message for each fault; `make faults` has every fault strike every message."""
    assert len(struck(bank, fault, [3 * FAULTS.index(fault) + 1])) == 1


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_every_message_of_a_score_suffers_every_fault(bank, fault):
    assert len(struck(bank, fault, range(1, MESSAGES + 1))) == 8


def retrained(bank, fault, at):
    """What came of one training that a fault struck: the model, or why there was none at first; always one that is counted once."""
    with bank.running() as made:
        made.network.fail(fault, at)
        said = ""
        try:
            found = bank.train(made)
        except Killed:
            made.restart_guest()
            made.network.sent.clear()
            found = bank.train(made)
        except GlassleafError as error:
            said = str(error)
            made.network.fail("", 0)
            found = bank.train(made)
        assert found == bank.model, (fault, at, made.network.struck)
        assert (made.counted("table"), set(made.volume("training").values())) == (1, {1}), (fault, at)
        return said, made.network.struck, made.network.sent


@pytest.mark.parametrize("fault", [pytest.param("host", marks=[pytest.mark.faults, pytest.mark.slow]), "guest"])
def test_a_training_goes_on_at_the_last_tree_that_is_finished(bank, fault):
    at = next(i for i, message in enumerate(bank.training, 1) if isinstance(message, Gradients) and message.tree == 1)
    said, _, sent = retrained(bank, fault, at + 1)
    assert not said
    if fault == "guest":
        assert {message.tree for message in sent if isinstance(message, Gradients)} == {1}
        assert {message.tree for message in sent if isinstance(message, TakeSplit)} == {0, 1}


def test_a_training_whose_last_answer_was_lost_gives_its_one_model(bank):
    at = next(i for i, message in enumerate(bank.training, 1) if isinstance(message, KeepModel))
    said, struck, sent = retrained(bank, "guest", at + 2)
    assert not said and struck in ("ModelKept", "KeepModel")
    assert not any(isinstance(message, Gradients) for message in sent)


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_happens_to_one_message_of_a_training_the_model_is_the_same(bank, fault):
    for at in range(1, len(bank.training) + 1):
        said, struck, _ = retrained(bank, fault, at)
        assert not said or fault in ("lost", "twice", "swapped"), (at, struck, said)
        assert not said or said.endswith("."), (at, struck, said)


def test_a_host_whose_disk_is_full_answers_nothing_says_so_without_a_path_and_goes_on_later(bank):
    with bank.running() as made:
        bank.bring(made)
        database = made.kept["platform"]
        with database.read() as session:
            session.execute(text("PRAGMA query_only = ON"))
        with pytest.raises(HostBusy, match="store cannot be read or written") as refused:
            bank.score(made, timeout=0.0)
        assert refused.value.host == "platform" and "sqlite" not in str(refused.value)
        with database.read() as session:
            session.execute(text("PRAGMA query_only = OFF"))
        assert bank.score(made, timeout=0.0) == bank.wanted and made.counted() == 1


def test_a_revoked_approval_ends_a_score_that_a_busy_host_had_put_off(bank):
    with bank.running() as made:
        bank.bring(made)
        made.network.fail("host", MESSAGES - 6)  # behind the first Host's count, before the last one's answer

        def withdraw(name):
            approvals = made.hosts["telecom"].approvals
            for one in approvals.book.all():
                approvals.withdraw(one.number, "ana", "no more")
            kill(name)

        kill, made.kill = made.kill, withdraw
        with pytest.raises(ApprovalDenied, match="no more"):
            bank.score(made)
        assert made.counted() == 1
