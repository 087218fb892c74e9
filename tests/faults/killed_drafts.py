"""Drafts an agreement again and again, killing the process at one of its writes; then gives the same command and says what was left.

Runs as a process of its own, without threads, so that it can fork: every draft is a child. Prints one JSON document.
"""

import json
import os
import signal
import sys
from pathlib import Path

from killed import Writes, forked

from backend.cli import main
from backend.link.draft import draft  # noqa: F401 (what every child needs)

FILES = ("agreement.toml", "hosts.toml")


def child(folder, words, kill_at=0):
    """One draft in a folder, as :func:`killed.forked`."""

    def drafted():
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.argv = ["glassleaf", "agreement", "draft", *words]
        writes = Writes(kill_at)
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        return status, writes.count

    return forked(drafted)


def content(folder):
    """What is in the two files; None of one that is not there."""
    return [(folder / name).read_text() if (folder / name).exists() else None for name in FILES]


def run(folder, words):
    """What came of a kill at each write."""
    status, writes = child(folder / "whole", words)
    whole = content(folder / "whole")
    wrong = []
    n_between = 0
    for at in range(1, writes + 1):
        place = folder / str(at)
        killed, _ = child(place, words, at)
        left = content(place)
        n_between += left.count(None) == 1
        repeated, _ = child(place, words)
        # Once the agreement is there the draft is made, and the same command is refused.
        made = left == whole and repeated != 0
        if killed != signal.SIGKILL or content(place) != whole or not (made or repeated == 0):
            wrong.append([at, killed, repeated])
    return {"whole": status, "writes": writes, "between": n_between, "wrong": wrong}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]), sys.argv[2:])) + "\n")
