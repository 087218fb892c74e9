"""A bank's home and its Hosts as processes of their own, which can be killed, stopped and gone on with."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing, contextmanager, suppress
from datetime import date

import tomli_w

from backend.services import Glassleaf
from backend.services.companies import make_companies
from backend.services.host_operator import own_host

SECONDS = 240.0


class Companies:
    """A bank's home and its Hosts as services that are started again."""

    def __init__(self, folder, rows, heartbeat=20.0):
        self.made = make_companies(folder, rows)
        self.home, self._hosts = self.made.home, {}
        with Glassleaf(self.home) as glassleaf:
            glassleaf.federations.add(self.made.guest)
        for name, place in self.made.hosts.items():
            config = tomllib.loads((place / "host.toml").read_text())
            (place / "host.toml").write_text(tomli_w.dumps(config | {"link": {"heartbeat": heartbeat}}))
            self.start(name)

    def start(self, name):
        words = ("host", "serve", "--config", f"{self.made.hosts[name]}/host.toml")
        self._hosts[name] = subprocess.Popen([sys.executable, "-m", "glassleaf", *words], stderr=subprocess.DEVNULL)

    def kill(self, name):
        """As a service manager has it: killed, and begun again."""
        self._hosts[name].kill()
        self._hosts[name].wait()
        self.start(name)

    def signal(self, name, number):
        self._hosts[name].send_signal(number)

    def begin(self, *words):
        """A command of the bank's."""
        environment = {**os.environ, "GLASSLEAF_HOME": str(self.home)}
        command = [sys.executable, "-m", "glassleaf", *map(str, words)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        """What a command prints, once every operator has allowed what it asks for."""
        for _ in range(4):
            out, err = self.finish(process := self.begin(*words))
            if process.returncode in (0, 3):  # 3: with remarks
                return json.loads(out)
            assert "Waits for" in err, err
            self.allow()
        raise AssertionError("it still waits for an approval")

    @staticmethod
    def break_off(process):
        process.kill()
        process.communicate()

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
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        for process in self._hosts.values():
            process.wait(60)


@contextmanager
def running(folder, rows, heartbeat=20.0):
    companies = Companies(folder, rows, heartbeat)
    try:
        yield companies
    finally:
        companies.close()
