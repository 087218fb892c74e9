"""A table is scored in groups by Hosts that die and are cut off: it pauses and goes on by itself, no row twice, none missing."""

import csv

import pytest
from faulty import running, signing_keys

from backend.data import row_groups
from backend.data.demo import write_demo
from backend.protocols.scoring.messages import DecisionVectors
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf, waiting
from backend.services.streaming import StreamRequest
from backend.services.training import TrainingRequest

pytestmark = [pytest.mark.faults, pytest.mark.slow]
PEOPLE, GROUP = 12, 4


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.005)
    monkeypatch.setattr("backend.protocols.transport.channel.POLL", 0.01)
    monkeypatch.setattr("backend.services.streaming.POLL_SECONDS", 0.01)
    monkeypatch.setattr("backend.protocols.guest_runtime.HEAD_TIMEOUT", 0.05)
    monkeypatch.setattr(row_groups, "GROUP", GROUP)


@pytest.fixture
def bank(tmp_path, monkeypatch):
    """Services of a bank whose Hosts are on a wire that fails, a model, and a table of people."""
    federation = write_demo(tmp_path / "demo", rows=100)
    parameters = SecureBoostParameters(trees=1, depth=2, bins=4, cipher="paillier", alignment="bloom")
    object.__setattr__(parameters, "key_bits", 512)  # shorter than is allowed outside tests
    with running(federation, tmp_path / "parties", signing_keys(federation)) as made:
        # patched: services start the runtime of a federation themselves, and this one's parties are on a network that fails
        monkeypatch.setattr(
            "backend.protocols.simulation.simulator.FederationRuntime",
            lambda federation, home, **options: made.with_options(options),
        )
        with Glassleaf(tmp_path / "home", key_floor=512, pools=False) as glassleaf:
            glassleaf.federations.add(tmp_path / "demo")
            glassleaf.training.start(TrainingRequest("demo", parameters)).get()
            own = glassleaf.samples.table("latest").drop(columns="part").head(PEOPLE)
            own.to_csv(tmp_path / "people.csv")
            made.network.fail("", 0)
            yield (
                made,
                glassleaf,
                StreamRequest(
                    "latest", tmp_path / "people.csv", tmp_path / "scores.csv", cipher="paillier", key_bits=512
                ),
            )


def rows(path):
    with path.open(newline="") as file:
        return [(row["id"], row["status"], row["score"]) for row in csv.DictReader(file)]


def test_whatever_happens_to_hosts_every_row_is_scored_once(bank):
    made, glassleaf, request = bank
    found = []
    for fault, at in (("", 0), ("host", 9), ("lost", 24)):
        for host in made.hosts:
            made.forget_answers(host)
        made.network.fail(fault, at)
        done = glassleaf.streaming.start(request).get()
        assert (done.rows, done.scored, done.resumed) == (PEOPLE, PEOPLE, 0)
        assert bool(made.network.struck) == bool(fault)
        found.append(rows(request.out))
        assert made.counted() == 1
        request.out.unlink()
    assert len(found[0]) == PEOPLE and all(one == found[0] for one in found)


def test_stopped_between_groups_it_asks_nobody_of_a_finished_group_again(bank):
    made, glassleaf, request = bank
    job = glassleaf.streaming.start(request)
    while job.state == "running" and job.through < GROUP:
        job.wait(0.005)
    job.cancel()
    job.wait()
    if job.state == "done":  # it was through before it was stopped
        return
    through = job.through
    made.restart_hosts()
    made.network.fail("", 0)
    done = glassleaf.streaming.start(request).get()
    asked = {one for sent in made.network.sent if isinstance(sent, DecisionVectors) for one in sent.ids}
    finished = [name for name, *_ in rows(request.out)][:through]
    assert done.resumed >= through >= GROUP and not asked & set(finished)
    assert len(rows(request.out)) == PEOPLE and made.counted() == 1
