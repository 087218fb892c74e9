"""A Guest waits for Hosts that are busy or down, says for whom, can be stopped meanwhile, and gives up where it was told to."""

import pytest

from backend.errors import Cancelled, HostBusy, PartyUnreachable
from backend.jobs import Job
from backend.services import waiting
from backend.services.waiting import LASTING, repeated

HOSTS = ("shop", "telecom")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "SPREAD", 0.0)


class Links:
    """A runtime whose Hosts in `gone` are down for so many looks."""

    def __init__(self, gone=(), looks=0, simulated=False):
        self.gone, self.looks, self.simulated = gone, looks, simulated

    def down(self, hosts):
        self.looks -= 1
        return tuple(host for host in hosts if host in self.gone) if self.looks >= 0 else ()


class Asking:
    """Fails as it is told, then answers; writes down for whom the job waited before each try."""

    def __init__(self, *failures, job=None):
        self.failures, self.tries = list(failures), 0

    def __call__(self):
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        return "scores"


class Followed(Job):
    """A job that writes down for whom it waited."""

    def __init__(self):
        self.waited = []
        super().__init__(lambda _: None, 0)

    def __setattr__(self, name, value):
        if name == "waits" and value is not None:
            self.waited.append((value.kind, value.hosts, value.why))
        super().__setattr__(name, value)


def busy(seconds=0.001):
    return HostBusy("host_stops", seconds, "shop")


def test_a_busy_host_is_asked_again_after_its_delay_and_the_job_says_so():
    ask, job = Asking(busy(), busy()), Followed()
    assert repeated(ask, Links(), HOSTS, job, 1.0) == "scores"
    assert ask.tries == 3 and job.waits is None
    assert job.waited == [("busy", ("shop",), busy().remarks[0])] * 2


@pytest.mark.parametrize("timeout", [0.0, 5.0])
def test_nobody_waits_longer_than_was_asked_for(timeout):
    ask = Asking(busy(seconds=6.0))
    with pytest.raises(HostBusy):
        repeated(ask, Links(), HOSTS, Followed(), timeout)
    assert ask.tries == 1


def test_a_host_that_is_down_is_named_at_once_unless_the_work_may_last():
    for runtime, timeout, begun in (
        (Links(), 300.0, True),
        (Links(simulated=True), LASTING, True),
        (Links(), LASTING, False),
    ):
        ask = Asking(PartyUnreachable("host_stops", host="shop"))
        with pytest.raises(PartyUnreachable):
            repeated(ask, runtime, HOSTS, Followed(), timeout, waits_for_links=lambda begun=begun: begun)
        assert ask.tries == 1


def test_work_that_may_last_goes_on_by_itself_once_the_link_is_up(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_PAUSE_SECONDS", 0.001)
    ask, job = Asking(PartyUnreachable("host_stops", host="shop")), Followed()
    assert repeated(ask, Links(("shop",), looks=5), HOSTS, job, LASTING) == "scores"
    kind, hosts, why = job.waited[0]
    assert (kind, hosts, why.code) == ("down", ("shop",), "waits_for_hosts")
    assert why.values["why"].code == "host_stops"


def test_what_is_under_way_is_said_to_be_wanted_while_it_waits(monkeypatch):
    monkeypatch.setattr(waiting, "MAX_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(waiting, "KEEPING", 0.0)
    kept = []
    ask = Asking(PartyUnreachable("host_stops", host="shop"))
    repeated(ask, Links(("shop",), looks=20), HOSTS, Followed(), LASTING, lambda: kept.append(1))
    assert kept


def test_a_wait_ends_where_the_work_is_stopped():
    job = Followed()
    job.cancel()
    with pytest.raises(Cancelled):
        repeated(Asking(busy(seconds=100.0)), Links(), HOSTS, job, LASTING)
    assert job.waits is None
