"""A bank whose process is killed in the midst of a conversation: what its Host's receipt says of it, and what both logs say together."""

import json
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from threading import Thread

import pytest
from companies import until

from backend.services import Glassleaf
from backend.services.companies import make_companies
from backend.services.host_operator import own_host
from backend.services.host_service import host_service

pytestmark = pytest.mark.slow
KILLED = """
import os, signal, sys
from pathlib import Path
from backend.services import Glassleaf

bank = Glassleaf(Path(sys.argv[1]), pools=False)
bank._shared.workspace.runtime("companies").open_session(("telecom", "platform"), purpose="card")
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A process of the bank that has asked each Host one thing, and is killed."""


@pytest.fixture(scope="module")
def companies(tmp_path_factory):
    """A bank and two Hosts that serve."""
    made = make_companies(tmp_path_factory.mktemp("broken_off") / "companies", 100)
    with Glassleaf(made.home, pools=False) as glassleaf:
        glassleaf.federations.add(made.guest)
    services = [host_service(folder / "host.toml") for folder in made.hosts.values()]
    threads = [Thread(target=service.serve, daemon=True) for service in services]
    for thread in threads:
        thread.start()
    yield made
    for service, thread in zip(services, threads, strict=True):
        service.stop()
        thread.join(60)


@contextmanager
def bank(companies):
    """Another process of the bank, which has the links."""
    with Glassleaf(companies.home, pools=False) as glassleaf:
        yield glassleaf._shared.workspace.runtime("companies")


def stated(companies, number):
    """The kinds of message in telecom's newest receipt, once it has so many."""
    until(lambda: len(receipts(companies)) == number)
    return [kind for _, _, kind, *_ in receipts(companies)[0].entries]


def receipts(companies):
    with closing(own_host(companies.hosts["telecom"], "ana")) as operator:
        return operator.receipts()


def reconciled(companies, run, monkeypatch, tmp_path):
    """What the shell says of the bank's log and telecom's: exit status, and the pair."""
    monkeypatch.setenv("GLASSLEAF_HOME", str(companies.home))
    status, _, said = run("audit", "export", "companies", "--receipts", "--out", tmp_path / "bank.jsonl")
    assert status == 0, said
    folder = companies.hosts["telecom"]
    status, _, said = run("host", "log", "export", "--folder", folder, "--out", tmp_path / "telecom.jsonl")
    assert status == 0, said
    status, out, _ = run("audit", "reconcile", tmp_path / "bank.jsonl", tmp_path / "telecom.jsonl", "--json")
    return status, json.loads(out)[0]


def test_a_killed_banks_conversation_has_no_end_in_its_hosts_receipt_and_both_logs_say_why(
    companies, run, monkeypatch, tmp_path
):
    command = [sys.executable, "-c", KILLED, companies.home]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with bank(companies) as runtime:
        assert stated(companies, 1) == ["StatePurpose", "PurposeAnswered"]
        runtime.open_session(("telecom",), purpose="card").close()
        assert stated(companies, 2) == ["StatePurpose", "PurposeAnswered", "EndConversation"]
        assert (
            subprocess.run(command, check=False).returncode == -signal.SIGKILL
        )  # it spoke through the links of this one
        assert stated(companies, 3) == ["StatePurpose", "PurposeAnswered"]
    status, pair = reconciled(companies, run, monkeypatch, tmp_path)
    assert status == 0 and not pair["differences"]
    assert sorted(one["code"] for one in pair["broken_off"]) == ["broken_off", "process_ended"]
    assert {one["values"]["party"] for one in pair["broken_off"]} == {"bank"}
