"""Whether a model of the credit-card data exists that loses at most 0.002 of AUC and treats men and women more alike.

`python -m bench.alternatives FOLDER` trains in pieces of `--seconds`, keeps scores in FOLDER and goes on there the next time; once every
model is trained it judges all of them as the search does (:mod:`backend.services.tried_models`). Groups are read from the public table,
which gives the figures that a Host's encrypted sums give.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from backend.data.credit_card import split_credit_card
from backend.data.dictionary import Feature, Kind
from backend.evaluation.performance import RESAMPLES
from backend.fairness.alternatives import Cells, CutoffComparison, Sums, Tried, judge, marks
from backend.jobs import Job
from backend.protocols.group_sums.grouping import group
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import read_record
from backend.services.training import TrainingRequest, train
from backend.services.tried_models import AlternativesRequest, TestedModel, at_decision, combinations, resampled
from backend.services.workspace import Workspace
from bench.setting import ABSENT, CREDIT_CARD, machine, progress
from bench.tables import alternatives as describe

NAME = "credit_card"
ATTRIBUTE = "SEX"
TOLERANCE = 0.002
SEED = 7
CUTOFFS = (0.25, 0.5)
PARAMETERS = SecureBoostParameters(trees=40, depth=3, learning_rate=0.2, cipher="none")
WITHOUT = (
    ("SEX",),
    ("SEX", "MARRIAGE"),
    ("SEX", "EDUCATION", "MARRIAGE"),
    ("AGE", "SEX"),
    ("LIMIT_BAL", "SEX"),
)
EXPECTED = (
    "LIMIT_BAL=-1, PAY_0=+1, PAY_2=+1, PAY_3=+1, PAY_4=+1, PAY_5=+1, PAY_6=+1, "
    "PAY_AMT1=-1, PAY_AMT2=-1, PAY_AMT3=-1, PAY_AMT4=-1, PAY_AMT5=-1, PAY_AMT6=-1"
)
SEARCHES: tuple[dict[str, Any], ...] = (
    {"without": WITHOUT, "constraints": (EXPECTED,)},
    {"without": (("SEX",),), "depths": (2, 4)},
    {"without": (("SEX",),), "lambdas": (20.0,)},
)


def main() -> None:
    """Train what is missing, or judge and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0, help="begin no other model after this")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if not CREDIT_CARD.exists():
        sys.exit(ABSENT)
    results = measure(options.folder, options.seconds)
    if results is not None:
        print(json.dumps(results, indent=1) if options.json else describe(results))


def measure(folder: Path, seconds: float) -> dict[str, Any] | None:
    """What was found; None while models are missing."""
    began = time.monotonic()
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    if not (home / NAME).exists():
        split_credit_card(CREDIT_CARD, home / NAME)
    workspace = Workspace(home, key_floor=None, pools=False)
    workspace.add(home / NAME)
    runtime = workspace.runtime(NAME)
    offered = [feature.name for _, feature in runtime.federation.features()]
    try:
        models: list[TestedModel] = []
        asked = [TrainingRequest(NAME, PARAMETERS)]
        while len(models) < len(asked):
            number = len(models)
            file = folder / f"{number}.npz"
            if not file.exists():
                if time.monotonic() - began > seconds:
                    progress(f"{len(asked) - number} of {len(asked)} models are missing; run it again")
                    return None
                progress(f"model {number + 1} of {len(asked)}")
                record, trained = train(runtime, asked[number], Job[Any](lambda _: None, 0))
                if not number:
                    (folder / "base.json").write_text(json.dumps(asdict(record)))
                base = read_record(json.loads((folder / "base.json").read_text()))
                _write(file, TestedModel.of(f"c{number}", base, asked[number], record, trained))
            if not number:
                base = read_record(json.loads((folder / "base.json").read_text()))
                wanted = [AlternativesRequest(base.id, ATTRIBUTE, **search) for search in SEARCHES]
                asked = list(dict.fromkeys(one for each in wanted for one in combinations(each, base, offered)))
            models.append(_read(file))
        return _judged(models)
    finally:
        workspace.close()


def _write(file: Path, model: TestedModel) -> None:
    arrays = {name: getattr(model, name) for name in ("labels", "margins", "predicted", "checked")}
    np.savez(
        file,
        tried=json.dumps(asdict(model.tried)),
        ids=np.array(model.ids),
        checked_ids=np.array(model.checked_ids),
        **arrays,
    )


def _read(file: Path) -> TestedModel:
    kept = np.load(file)
    tried = json.loads(str(kept["tried"]))
    arrays = (kept[name] for name in ("labels", "margins", "predicted", "checked"))
    ids, checked_ids = (tuple(kept[name].tolist()) for name in ("ids", "checked_ids"))
    return TestedModel(Tried(**tried | {"without": tuple(tried["without"])}), ids, checked_ids, *arrays)


def _judged(models: list[TestedModel]) -> dict[str, Any]:
    table = pd.read_csv(CREDIT_CARD, dtype={"ID": str}).set_index("ID")
    index = np.array([str(code) for code in table.loc[list(models[0].checked_ids), ATTRIBUTE]])
    grouped = group(Feature(name=ATTRIBUTE, meaning=ATTRIBUTE, kind=Kind.CATEGORICAL), index.astype(object), 5)
    quality = resampled(models, SEED)
    decisions = []
    draw = np.random.default_rng(SEED)
    size = len(grouped.groups)
    for cutoff in CUTOFFS:
        first, *others = at_decision(models, quality, cutoff, of_guest=False)
        flags = marks(first.accepts, [other.accepts for other in others])
        sums = [np.array([flag[grouped.index == k].sum() for k in range(size)]) for flag in flags]
        pairs = (Sums(sums[0], *both) for both in zip(sums[1::2], sums[2::2], strict=True))
        cells = [Cells.of_sums(pair, grouped.groups, RESAMPLES, draw) for pair in pairs]
        decisions.append(CutoffComparison(first, sums[0], tuple(zip(others, cells, strict=True))))
    reference = max(range(size), key=lambda k: grouped.groups[k].n)
    decided = judge(decisions, grouped.groups, reference=reference, tolerance=TOLERANCE)
    rows = [
        asdict(point) | {"at": one.cutoff, "tried": asdict(model.tried)}
        for one in decided
        for model, point in zip(models, one.points, strict=True)
    ]
    return {
        "machine": machine(),
        "federation": NAME,
        "attribute": ATTRIBUTE,
        "tolerance": TOLERANCE,
        "records": len(index),
        "groups": [asdict(g) for g in grouped.groups],
        "reference": reference,
        "cutoffs": CUTOFFS,
        "parameters": PARAMETERS.as_dict(),
        "rows": rows,
    }


if __name__ == "__main__":
    main()
