"""Scores a sheet from the command line again and again, killing the process at one of its writes; then repeats it and says what was left.

Runs as a process of its own, without threads, so that it can fork: every scoring is a child. Prints one JSON document.
"""

import csv
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session

import backend.services.scoring  # noqa: F401 (what every child needs)
from backend.cli import main
from backend.data import row_groups
from backend.services import streaming
from backend.store.database import Database  # noqa: F401


class Writes:
    """Counts what is written, before and after it is; kills the process at the one that is wanted."""

    def __init__(self, last):
        self.count, self.last = 0, last
        event.listen(Engine, "commit", self.passed)
        event.listen(Session, "after_commit", self.passed)
        for owner, name in ((Path, "replace"), (Path, "hardlink_to"), (Path, "unlink"), (os, "fsync")):
            setattr(owner, name, self.watched(getattr(owner, name)))

    def watched(self, write):
        def call(*arguments, **more):
            self.passed()
            done = write(*arguments, **more)
            self.passed()
            return done

        return call

    def passed(self, *about):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def forked(work):
    """(Status as `os.wait` has it, writes) of a child in which `work` gives both."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        status, writes = work()
        os.write(tell, str(writes).encode())
        os._exit(status)
    os.close(tell)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(told) as pipe:
        return status, int(pipe.read() or 0)


def child(home, sheet, out, cipher, kill_at=0):
    """One scoring, as :func:`forked`."""

    def score():
        writes = Writes(kill_at)
        os.environ["GLASSLEAF_HOME"] = str(home)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        try:
            sys.argv = ["glassleaf", "score", "latest", str(sheet), "--out", str(out), "--cipher", cipher]
            main()
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, writes.count

    return forked(score)


def scores(out):
    """Id → score and status."""
    with out.open(newline="") as file:
        return {row["id"]: (row["status"], row["score"]) for row in csv.DictReader(file)}


def counted(home):
    """The most that one Host has counted about one person."""
    most = 0
    for file in home.glob("parties/*/*/store.db"):
        with closing(sqlite3.connect(file)) as database:
            found = database.execute("select max(asked) from answers where kind = 'score'").fetchone()[0]
            most = max(most, found or 0)
    return most


def run(template, folder, sheet, cipher, kills, seed):
    """What came of every kill."""
    whole = folder / "whole"
    shutil.copytree(template, whole)
    status, writes = child(whole, sheet, folder / "whole.csv", cipher)
    if status:
        return {"whole": status}
    wanted = scores(folder / "whole.csv")
    places = list(range(1, writes + 1))
    draw = random.Random(seed)
    chosen = [places[i % writes] for i in range(kills)] if kills >= writes else draw.sample(places, kills)
    wrong, kills = [], 0
    for number, place in enumerate(chosen):
        home, out = folder / f"home{number}", folder / f"{number}.csv"
        shutil.copytree(template, home)
        killed, _ = child(home, sheet, out, cipher, place)
        kills += killed == signal.SIGKILL
        delivered = out.exists() and scores(out) == wanted
        repeated, _ = child(home, sheet, out, cipher)
        found = {
            "ended": killed in (signal.SIGKILL, 0),  # 0: this run wrote less often than the first
            # killed behind its last write, it had ended: asked once more, it is another question, and refused
            "repeated": repeated == 0 or delivered,
            "scores": out.exists() and scores(out) == wanted,
            "counted_once": counted(home) == 1,
            "nothing_left": not [*folder.glob(f"{out.name}.[pl]*")],
        }
        if not all(found.values()):
            wrong.append({"write": place, **found})
        shutil.rmtree(home)
    failed = sum(status != "ok" for status, _ in wanted.values())
    return {"whole": 0, "people": len(wanted), "failed": failed, "writes": writes, "kills": kills, "wrong": wrong}


def in_groups_of(people):
    """Let tables of more people than these be scored in groups of so many."""
    streaming.SAMPLES, row_groups.GROUP = replace(streaming.SAMPLES, max_rows=people), people


if __name__ == "__main__":
    template, folder, sheet = map(Path, sys.argv[1:4])
    if len(sys.argv) > 7:
        in_groups_of(int(sys.argv[7]))
    print(json.dumps(run(template, folder, sheet, sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))))  # noqa: T201
