"""What the Guest's checks of a training cost: the same trainings here and in another version's work tree, in turns.

``python -m bench.checked_trainings --against FOLDER``: a work tree beside ../shared, with this environment in ``.venv``; without it, this
version with the checks removed. Every run is a process of its own. Its processor time, user and system, is that of the training alone,
workers included: keys are made and tables are read in a small training before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from backend.protocols.training import federated_trees, node_sums
from backend.protocols.training.algorithms import ALGORITHMS
from backend.services.training import TrainingRequest
from backend.store.database import Database
from backend.store.party_store import PartyStore
from backend.trees.serialization import load_host
from bench.paper.data import federate, papers_tables
from bench.setting import fresh_glassleaf

HERE = Path(__file__).resolve().parents[1]
TURNS = 3
BITS = 2048
SEED = 7

# Table, records (0 = all), algorithm, cipher, trees, depth.
# A forest has all features at every split: how they are drawn is not what is compared.
CASES = (
    ("credit_card", 0, "secureboost", "none", 20, 4),
    ("credit_card", 0, "forest", "none", 20, 6),
    ("credit_card", 0, "fl-dt", "none", 1, 5),
    ("credit_card", 0, "secureboost", "rlwe", 5, 4),
    ("credit_card", 0, "forest", "rlwe", 4, 4),
    ("credit_card", 0, "fl-dt", "rlwe", 1, 4),
    ("credit_card", 3000, "secureboost", "paillier", 2, 3),
    ("credit_card", 3000, "forest", "paillier", 2, 3),
    ("credit_card", 3000, "fl-dt", "paillier", 1, 3),
    ("bank", 0, "secureboost", "none", 40, 4),
    ("bank", 0, "forest", "none", 40, 6),
    ("bank", 0, "fl-dt", "none", 1, 5),
    ("bank", 0, "secureboost", "rlwe", 10, 4),
    ("bank", 0, "forest", "rlwe", 8, 4),
    ("bank", 0, "secureboost", "paillier", 2, 3),
    ("car", 0, "secureboost", "none", 20, 4),
    ("car", 0, "forest", "none", 40, 6),
    ("car", 0, "fl-dt", "none", 1, 5),
    ("car", 0, "secureboost", "rlwe", 4, 3),
    ("car", 0, "forest", "rlwe", 8, 4),
    ("car", 0, "forest", "paillier", 2, 3),
)


def remove_checks() -> None:
    """Put nothing in the place of all three checks."""

    def nothing(*arguments: object) -> None:
        pass

    for module in (federated_trees, node_sums):
        for name in ("check_bins", "check_histograms", "check_split_rows"):
            if hasattr(module, name):
                setattr(module, name, nothing)


def trained(table: str, records: int, algorithm: str, cipher: str, trees: int, depth: int) -> dict[str, Any]:
    """Train once, by the code of the folder that the process runs in; return seconds and a hash of the trees and thresholds."""
    settings: dict[str, Any] = {"depth": depth, "bins": 32, "cipher": cipher, "key_bits": BITS, "seed": SEED}
    if algorithm != "fl-dt":
        settings["trees"] = trees
    if algorithm == "forest":
        settings["column_sample"] = 1.0
    data = papers_tables(quick=False)[table]
    if records:
        data = data.sample(records)
    with fresh_glassleaf() as glassleaf:
        name = federate(glassleaf, data, data.first(0.5), "measured")
        small = ALGORITHMS[algorithm](**{**settings, **({"trees": 1} if "trees" in settings else {}), "depth": 1})
        glassleaf.training.start(TrainingRequest(name, small, most_named=1.0)).get()
        before = processor_seconds()
        record = glassleaf.training.start(
            TrainingRequest(name, ALGORITHMS[algorithm](**settings), most_named=1.0)
        ).get()
        seconds = processor_seconds() - before
        model = glassleaf.models.guest_model(record.id)
        of_trees = hashlib.sha256(repr((model.trees, sorted(model.rules.items()))).encode())
        for host in model.hosts:
            store = PartyStore(Database(glassleaf.home / "parties" / name / host))
            of_trees.update(repr(sorted(load_host(store.artefact(record.id)).rules.items())).encode())
    return {"seconds": seconds, "trees": of_trees.hexdigest(), "content": record.content_hash}


def processor_seconds() -> float:
    """Return what this process and its workers have used so far, user and system; those that have ended included."""
    seconds = sum(os.times()[:4])
    for worker in psutil.Process().children(recursive=True):
        used = worker.cpu_times()
        seconds += used.user + used.system
    return seconds


def measured(folder: Path | None, case: tuple[Any, ...]) -> dict[str, Any]:
    """Run one training by the code in a folder, or by this one's without checks, and return what it printed."""
    unchecked = ["--unchecked"] if folder is None else []
    folder = folder or HERE
    done = subprocess.run(  # noqa: S603 (our own command)
        [sys.executable, str(Path(__file__).resolve()), *unchecked, "--one", json.dumps(case)],
        cwd=folder,
        # sets of categories are printed in one order
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="the other version's work tree")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", default="", help="cases with all of these words, e.g. 'car rlwe'")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--unchecked", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.unchecked:
        remove_checks()
    if options.one:
        print(json.dumps(trained(*json.loads(options.one))))
        return
    print("| table | records | algorithm | cipher | trees | before, s | now, s | more | same trees |")
    print("|---|--:|---|---|--:|--:|--:|--:|---|")
    for case in CASES:
        table, records, algorithm, cipher, trees, _ = case
        if not set(options.only.split()) <= set(case):
            continue
        runs: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
        for turn in range(options.turns):
            pair = [("before", options.against), ("now", HERE)]
            # whoever comes second finds a warmer machine
            for name, folder in pair if turn % 2 == 0 else reversed(pair):
                runs[name].append(measured(folder, case))
        before = median(run["seconds"] for run in runs["before"])
        now = median(run["seconds"] for run in runs["now"])
        same = len({run["trees"] for of_version in runs.values() for run in of_version}) == 1
        cells = [table, str(records or "all"), algorithm, cipher, str(trees)]
        cells += [f"{before:.2f}", f"{now:.2f}", f"{now / before - 1:+.1%}", "yes" if same else "NO"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
