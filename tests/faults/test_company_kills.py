"""Three companies as processes: whichever is killed in the midst of a training or a table, the same model and scores come out, once."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from datetime import date

import pytest
from companies import until

from backend.services.companies import make_companies
from backend.services.host_operator import own_host

pytestmark = [pytest.mark.faults, pytest.mark.slow]
SECONDS = 240.0
TRAIN = ("train", "companies", "--trees", "3", "--depth", "2", "--bins", "4", "--cipher", "rlwe", "--json")
ROWS, PEOPLE = 200, 8_300  # of two groups


class Companies:
    """A bank's home and its Hosts as services that are started again."""

    def __init__(self, folder):
        self.made = make_companies(folder, ROWS)
        self.home, self._hosts = self.made.home, {}
        for name in self.made.hosts:
            self.start(name)

    def start(self, name):
        words = ("host", "serve", "--config", f"{self.made.hosts[name]}/host.toml")
        self._hosts[name] = subprocess.Popen([sys.executable, "-m", "glassleaf", *words], stderr=subprocess.DEVNULL)

    def kill(self, name):
        """As a service manager has it: killed, and begun again."""
        self._hosts[name].kill()
        self._hosts[name].wait()
        self.start(name)

    def begin(self, *words):
        """A command of the bank's."""
        environment = {**os.environ, "GLASSLEAF_HOME": str(self.home)}
        command = [sys.executable, "-m", "glassleaf", *map(str, words)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        """What a command prints, once every operator has allowed what it asks for."""
        for _ in range(4):
            out, err = self.finish(process := self.begin(*words))
            if process.returncode == 0:
                return json.loads(out)
            assert "Waits for" in err, err
            self.allow()
        raise AssertionError("it still waits for an approval")

    @staticmethod
    def finish(process):
        return process.communicate(timeout=SECONDS)

    def allow(self):
        for folder in self.made.hosts.values():
            with closing(own_host(folder, "operator")) as operator:
                for request in operator.requests(waiting=True):
                    operator.approve(request.approval.number, date(2100, 1, 1), 1_000_000)

    def asked(self, name, statement):
        with closing(sqlite3.connect(self.made.hosts[name] / f"{name}.db")) as database:
            return database.execute(statement).fetchone()[0] or 0

    def rounds(self):
        """Finished rounds of the bank's training."""
        (file,) = self.home.glob("parties/*/bank/store.db")
        with suppress(sqlite3.Error), closing(sqlite3.connect(file)) as database:
            found = database.execute("select body from trainings").fetchone()
            return len(json.loads(found[0])) if found else 0
        return 0

    def close(self):
        for process in self._hosts.values():
            process.send_signal(signal.SIGTERM)
        for process in self._hosts.values():
            process.wait(60)


@contextmanager
def running(folder):
    companies = Companies(folder)
    try:
        yield companies
    finally:
        companies.close()


def test_a_training_goes_on_whoever_is_killed(tmp_path):
    with running(tmp_path / "companies") as companies:
        wanted = companies.run(*TRAIN)
        used = "select sum(used) from approval_uses join approvals using (number) where purpose = 'training'"
        before = {name: companies.asked(name, used) for name in companies.made.hosts}
        first = companies.begin(*TRAIN)
        until(lambda: companies.rounds() > 0 or first.poll() is not None, SECONDS)
        first.kill()
        first.wait()
        broken_off = companies.rounds() > 0
        again = companies.begin(*TRAIN)
        for name in companies.made.hosts:
            companies.kill(name)
        out, err = companies.finish(again)
        assert again.returncode == 0, err
        found = json.loads(out)
        assert (found["id"], found["content_hash"]) == (wanted["id"], wanted["content_hash"])
        # killed behind its last step it had ended, and this was another training
        assert all(companies.asked(name, used) - before[name] == (1 if broken_off else 2) for name in before)


def test_a_table_is_scored_once_whoever_is_killed(tmp_path):
    with running(tmp_path / "companies") as companies:
        companies.run(*TRAIN)
        own = (companies.made.guest / "bank.csv").read_text().splitlines()
        head, *known = own
        width = head.count(",")
        lines = [*known[:50], *(f"stranger{i}" + "," * width for i in range(PEOPLE - 50))]
        sheet = tmp_path / "people.csv"
        sheet.write_text("\n".join([head, *lines]) + "\n")
        whole, out = tmp_path / "whole.csv", tmp_path / "scores.csv"
        score = ("score", "latest", sheet, "--cipher", "rlwe", "--json", "--out")
        companies.run(*score, whole)
        first = companies.begin(*score, out)
        progress = out.with_name("scores.csv.progress")
        until(lambda: through(progress) > 0 or first.poll() is not None, SECONDS)
        first.kill()
        first.wait()
        again = companies.begin(*score, out)
        for name in companies.made.hosts:
            companies.kill(name)
        _, err = companies.finish(again)
        assert again.returncode in (0, 3), err
        assert rows(out) == rows(whole) and len(rows(out)) == PEOPLE
        # twice for two tables: each was counted once
        counts = [
            companies.asked(name, "select max(asked) from answers where kind = 'score'")
            for name in companies.made.hosts
        ]
        assert max(counts) == 2


def through(progress):
    with suppress(OSError, ValueError):
        return json.loads(progress.read_text())["groups"]
    return 0


def rows(path):
    with path.open(newline="") as file:
        return [(row["id"], row["score"]) for row in csv.DictReader(file)]
