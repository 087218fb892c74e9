"""A Host's process stands still (SIGSTOP) in the midst of a score: nobody waits for ever, and afterwards nobody is counted twice."""

import csv
import signal
from contextlib import contextmanager

import pytest
from companies import until
from host_processes import running

from backend.data import row_groups
from backend.errors import ApprovalPending, PartyUnreachable
from backend.link.peers import LinkSettings
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.linked import GuestWire
from backend.services.scoring import ScoringRequest
from backend.services.streaming import StreamRequest
from backend.services.training import TrainingRequest

pytestmark = [pytest.mark.faults, pytest.mark.slow]
ROWS, PEOPLE, GROUP = 200, 12, 4
HEARTBEAT = 1.0  # seconds; three are missing before a link is cut
PARAMETERS = SecureBoostParameters(trees=3, depth=2, bins=4, cipher="rlwe")
ASKED = "select sum(asked) from answers where kind = 'score'"


def settings_of(options):
    return LinkSettings(options.model_copy(update={"heartbeat": HEARTBEAT}), grace=1.0)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Hosts as processes, and the bank's services in this one, which look for signs of life more often than they would."""
    with (
        pytest.MonkeyPatch.context() as patch,
        running(tmp_path_factory.mktemp("apart") / "all", ROWS, HEARTBEAT) as all_,
    ):
        # patched: a Guest's file says nothing of signs of life, and at 20 s each test would take minutes
        patch.setattr("backend.services.linked.LinkSettings", settings_of)
        patch.setattr(row_groups, "GROUP", GROUP)
        with Glassleaf(all_.home, pools=False) as glassleaf:
            record = allowed(all_, lambda: glassleaf.training.start(TrainingRequest("companies", PARAMETERS)).get())
            first = glassleaf.samples.table(record.id).tail(1)
            allowed(all_, lambda: scoring(glassleaf, record, first).get())  # from here on nobody has to allow anything
            yield all_, glassleaf, record


def allowed(companies, ask):
    """What comes of it once every operator has allowed it."""
    for _ in range(4):
        try:
            return ask()
        except ApprovalPending:
            companies.allow()
    raise AssertionError("it still waits for an approval")


def scoring(glassleaf, record, people):
    sheet = glassleaf.samples.read(record.id, people.drop(columns="part").to_csv().encode())
    return glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="rlwe", hold=True))


@contextmanager
def stopped_when_asked(companies, host, to):
    """`host` stands still from the moment in which the Guest sends decision vectors `to` the first Host of the chain."""
    send, done = GuestWire.send, []

    def stopping(wire, receiver, message):
        if isinstance(message, DecisionVectors) and receiver == to and not done:
            done.append(companies.signal(host, signal.SIGSTOP))
        return send(wire, receiver, message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GuestWire, "send", stopping)  # patched: what is told of a message once it is sent comes too late
        try:
            yield
        finally:
            companies.signal(host, signal.SIGCONT)
    assert done


def chain(glassleaf, record):
    return [step.host for step in glassleaf.models.compiled(record).guest.folding.steps]


def asked(companies, hosts):
    """Host → answers about people that it has counted."""
    return {host: companies.asked(host, ASKED) for host in hosts}


def once(before, not_held_by):
    """The same once each of some people was counted, where a Host has a record of them."""
    return {host: count + sum(host not in without for without in not_held_by) for host, count in before.items()}


@pytest.mark.parametrize("place", [0, 1])
def test_a_score_ends_in_words_and_the_same_again_is_counted_once(bank, place):
    companies, glassleaf, record = bank
    hosts = chain(glassleaf, record)
    first, host, before = hosts[0], hosts[place], asked(companies, hosts)
    people = glassleaf.samples.table(record.id).iloc[3 * place :][:3]
    with stopped_when_asked(companies, host, first):
        with pytest.raises(PartyUnreachable, match=f"^{host}: down since .* It was being asked"):
            scoring(glassleaf, record, people).get()
        with pytest.raises(PartyUnreachable, match="Nothing was sent") as refused:
            scoring(glassleaf, record, people).get()
        state = refused.value.values["why"]
        assert (state.values["host"], state.values["why"].code) == (host, "link_silent")
    runtime = glassleaf.federations._workspace.runtime(record.federation)
    until(lambda: not runtime.down(record.hosts))
    answered = scoring(glassleaf, record, people).get()
    assert asked(companies, hosts) == once(before, [one.not_held_by for one in answered.scores])
    glassleaf.scoring.handed_over(answered)
    once_more = scoring(glassleaf, record, people).get()
    glassleaf.scoring.handed_over(once_more)
    assert [one.margin for one in answered.scores] == [one.margin for one in once_more.scores]
    assert asked(companies, hosts) != once(before, [one.not_held_by for one in answered.scores])


def test_a_table_waits_for_a_host_that_stands_still_and_goes_on_by_itself(bank, tmp_path):
    companies, glassleaf, record = bank
    hosts = chain(glassleaf, record)
    first, last, before = hosts[0], hosts[-1], asked(companies, hosts)
    people = glassleaf.samples.table(record.id).drop(columns="part").iloc[6 : 6 + PEOPLE]
    people.to_csv(tmp_path / "people.csv")
    with stopped_when_asked(companies, last, first):
        job = glassleaf.streaming.start(
            StreamRequest(record.id, tmp_path / "people.csv", tmp_path / "scores.csv", cipher="rlwe")
        )
        until(lambda: job.waits is not None and job.waits.kind == "down")
        assert job.waits.why.code == "waits_for_hosts" and job.waits.why.values["hosts"] == (last,)
    assert job.get().scored == PEOPLE
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == people.index.tolist()
    assert asked(companies, hosts) == once(before, [row["not_held_by"].split() for row in rows])
