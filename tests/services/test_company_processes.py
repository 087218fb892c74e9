"""Three companies as processes of their own: the bank trains and scores by commands, the Hosts' operators allow it by theirs."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
import tomli_w
from companies import free_port, until

from backend.data.demo import write_demo

pytestmark = pytest.mark.slow
TIMEOUT = 240.0
SOME_NOT_OK = 3  # exit status of a score whose rows are not all ok, e.g. of people whom a Host does not know
ROWS = 200
SCORE = ("--cipher", "rlwe", "--json")
TRAIN = ("--trees", "2", "--depth", "2", "--bins", "4", "--cipher", "rlwe")


def glassleaf(*words, home, check=True):
    """One command in a process of its own; returns what it printed as JSON, or the process where it failed."""
    command = [sys.executable, "-m", "glassleaf", *map(str, words)]
    done = subprocess.run(
        command,
        env={**os.environ, "GLASSLEAF_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return done


@contextmanager
def hosts(made):
    """Every Host as `glassleaf host serve` in its own folder."""
    running = [
        subprocess.Popen([sys.executable, "-m", "glassleaf", "host", "serve", "--config", f"{folder}/host.toml"])
        for folder in made["hosts"].values()
    ]
    try:
        yield running
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            assert process.wait(60) == 0


def asked_until_allowed(made, *words, home):
    """A command that waits for approvals until each operator has allowed what is asked."""
    for _ in range(6):
        done = glassleaf(*words, home=home, check=False)
        if done.returncode in (0, SOME_NOT_OK):
            return json.loads(done.stdout)
        assert "Waits for" in done.stderr, done.stderr
        for folder in made["hosts"].values():
            for request in glassleaf("host", "inbox", "--folder", folder, "--json", home=home):
                until = ("--until", "2100-01-01", "--per-day", "10000")
                glassleaf("host", "approve", request["number"], *until, "--folder", folder, "--json", home=home)
    raise AssertionError("it still waits for an approval")


@dataclass(frozen=True)
class Scored:
    """Three companies that have trained and scored everybody, and stopped.

    Attributes
    ----------
    made : dict
        What ``glassleaf companies`` printed.
    home : Path
        The bank's.
    record, batch, log : dict
        What training, scoring and the check of the log printed.
    """

    made: dict[str, Any]
    home: Path
    record: dict[str, Any]
    batch: dict[str, Any]
    log: dict[str, Any]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("three") / "companies"
    made = glassleaf("companies", "--out", folder, "--rows", ROWS, "--json", home=folder.parent / "none")
    home = folder / "bank" / "home"
    with hosts(made):
        record = asked_until_allowed(made, "train", "companies", *TRAIN, "--json", home=home)
        batch = asked_until_allowed(made, "score", "latest", folder / "bank" / "bank.csv", *SCORE, home=home)
        log = glassleaf("audit", "verify", "--json", home=home)
    return Scored(made, home, record, batch, log)


def test_three_processes_train_and_score_as_the_simulation_does(scored, tmp_path):
    (log,) = scored.log.values()
    assert log["holds"] and set(log["witnesses"]) == set(scored.made["hosts"]), (
        "a command waits for its Hosts to dial in"
    )
    people = scored.home.parent / "bank.csv"
    down = glassleaf("score", "latest", people, *SCORE, home=scored.home, check=False)
    assert down.returncode == 1 and "Nothing was sent" in down.stderr
    assert any(host in down.stderr for host in scored.made["hosts"])

    write_demo(tmp_path / "demo", rows=ROWS)
    together = tmp_path / "together"
    simulated = glassleaf("train", tmp_path / "demo", *TRAIN, "--json", home=together)
    assert (scored.record["n_trees"], scored.record["metrics"]) == (simulated["n_trees"], simulated["metrics"])
    alone = json.loads(glassleaf("score", "latest", people, *SCORE, home=together, check=False).stdout)
    apart = [(one["id"], one["margin"]) for one in scored.batch["scores"]]
    assert apart == [(one["id"], one["margin"]) for one in alone["scores"]]


def test_three_companies_hand_an_auditor_their_halves_who_recomputes_scores_and_sees_what_does_not_fit(
    scored, tmp_path
):
    made = scored.made
    home = scored.home
    samples = {host: tmp_path / f"{host}.half" for host in made["hosts"]}
    for host, folder in made["hosts"].items():
        glassleaf("host", "sample", "--folder", folder, "--out", samples[host], "--json", home=tmp_path / "none")
    # Each adds what it holds of the people in the others' samples.
    for host, folder in made["hosts"].items():
        also = [word for other, file in samples.items() if other != host for word in ("--also", file)]
        words = ("host", "sample", "--folder", folder, *also, "--out", samples[host], "--json")
        glassleaf(*words, home=tmp_path / "none")
    half = tmp_path / "bank.half"
    glassleaf("audit", "half", "companies", *samples.values(), "--out", half, "--json", home=home)
    # The auditor has these files, and no federation.
    words = ("audit", "re-perform", "--half", half, *(word for file in samples.values() for word in ("--sample", file)))
    [honest] = glassleaf(*words, "--json", home=tmp_path / "auditor")
    assert honest["scores"] > 5 and honest["differences"] == [] and honest["not_covered"] == {}
    # The bank says that it handed over other scores.
    body = json.loads(half.read_text())
    for request, text in body["statements"].items():
        statement = json.loads(text)
        statement["units"] = [unit + 512 for unit in statement["units"]]
        body["statements"][request] = json.dumps(statement)
    half.write_text(json.dumps(body))
    done = glassleaf(*words, "--json", home=tmp_path / "auditor", check=False)
    [found] = json.loads(done.stdout)
    assert done.returncode == 1 and len(found["differences"]) == honest["scores"]
    assert {tuple(one["by"]) for one in found["differences"]} == {(0.5,)}


def amended(made, change):
    """A changed agreement that every party has signed by its own command; each folder names it from now on."""
    folders = list(map(Path, (made["guest"], *made["hosts"].values())))
    for folder in folders:
        agreement = tomllib.loads((folder / "agreement.toml").read_text())
        previous = glassleaf("agreement", "show", folder / "agreement.toml", "--json", home=folder)["hash"]
        change(agreement)
        del agreement["signatures"]
        (folder / "amended.toml").write_text(tomli_w.dumps(agreement | {"previous": previous}, multiline_strings=True))
    signed = b""
    for folder in folders:
        if signed:
            (folder / "amended.toml").write_bytes(signed)
        files = (folder / "amended.toml", "--keys", folder / "keys", "--amends", folder / "agreement.toml")
        left = glassleaf("agreement", "sign", *files, "--json", home=folder)["left"]
        signed = (folder / "amended.toml").read_bytes()
    assert not left
    for folder in folders:
        (folder / "amended.toml").write_bytes(signed)
        file = next(folder / name for name in ("host.toml", "federation.toml") if (folder / name).exists())
        file.write_text(file.read_text().replace('"agreement.toml"', '"amended.toml"'))


def one_answer_a_person(agreement):
    agreement["purposes"][0]["floors"]["budget"] = 1


def test_under_an_amendment_approvals_and_budgets_stand_and_it_holds_once_all_have_started_again(tmp_path):
    made = glassleaf("companies", "--out", tmp_path / "companies", "--rows", 200, "--json", home=tmp_path / "none")
    bank = tmp_path / "companies" / "bank"
    home = bank / "home"
    header, *rows = (bank / "bank.csv").read_text().splitlines()

    def words(*people):
        (tmp_path / "people.csv").write_text("\n".join([header, *people]) + "\n")
        return "score", "latest", tmp_path / "people.csv", "--cipher", "rlwe", "--json"

    with hosts(made):
        asked_until_allowed(made, "train", "companies", *TRAIN, "--json", home=home)
        first = asked_until_allowed(made, *words(*rows[:4]), home=home)["scores"]
        amended(made, one_answer_a_person)
        refused = glassleaf(*words(*rows[:5]), home=home, check=False)
        assert refused.returncode == 1 and "has to take the new one, signed by all, and start again" in refused.stderr
    with hosts(made):
        second = json.loads(glassleaf(*words(*rows[:5]), home=home, check=False).stdout)["scores"]  # nobody is asked
    assert [one["status"] for one in first] == ["ok"] * 4
    assert [one["status"] for one in second] == ["failed"] * 4 + ["ok"]  # each had had the one answer


DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@contextmanager
def unit(name, root, **ports):
    """What systemd would start of a shipped unit, with `root` in place of its folder and other ports."""
    text = (DEPLOY / f"glassleaf-{name}.service").read_text()
    for shipped, here in {
        "/opt/glassleaf/bin/glassleaf": "glassleaf",
        "/var/lib/glassleaf": str(root),
        **ports,
    }.items():
        assert shipped in text
        text = text.replace(shipped, here)
    [command] = re.findall(r"^ExecStart=glassleaf (.+)$", text, re.MULTILINE)
    environment = dict(
        word.split("=", 1) for line in re.findall(r"^Environment=(.+)$", text, re.MULTILINE) for word in line.split()
    )
    words = [sys.executable, "-m", "glassleaf", *command.split()]
    with subprocess.Popen(words, env={**os.environ, **environment}) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(90) in (0, -signal.SIGTERM)  # uvicorn ends by the signal


def ready(port):
    """Status and text of a process's `/ready`."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/ready", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except URLError:
        return 0, ""


def test_units_as_they_are_shipped_start_on_the_documented_folders_and_every_process_of_the_bank_asks_hosts(
    tmp_path, monkeypatch
):
    made = glassleaf("companies", "--out", tmp_path / "companies", "--rows", 200, "--json", home=tmp_path / "none")
    home = tmp_path / "companies" / "bank" / "home"
    ops = free_port()
    with ExitStack() as running:
        running.enter_context(unit("guest", home, **{"8700": str(free_port()), "8701": str(ops)}))
        until(lambda: all(f"{host}: down since" in ready(ops)[1] for host in made["hosts"]))
        assert ready(ops)[0] == 503
        for folder in made["hosts"].values():
            running.enter_context(unit("host", folder))
        until(lambda: ready(ops) == (200, "ready\n"))
        monkeypatch.setenv("GLASSLEAF_LINKS", "ask")  # as the pages' unit has it
        assert "GLASSLEAF_LINKS=ask" in (DEPLOY / "glassleaf-pages.service").read_text()
        asked_until_allowed(made, "train", "companies", *TRAIN, "--json", home=home)
        people = (home.parent / "bank.csv").read_text().splitlines()
        (tmp_path / "people.csv").write_text("\n".join(people[:3]) + "\n")
        words = ("score", "latest", tmp_path / "people.csv", *SCORE)
        first = asked_until_allowed(made, *words, home=home)
        monkeypatch.delenv("GLASSLEAF_LINKS")
        again = asked_until_allowed(made, *words, home=home)
        assert [one["margin"] for one in first["scores"]] == [one["margin"] for one in again["scores"]]
        assert ready(ops) == (200, "ready\n")
