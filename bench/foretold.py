"""The share of scores that fit one path only, measured on models of five tables beside what is foretold before a training.

The line of :mod:`backend.privacy.foretold` goes through the models of four tables whose scores are one number. How wrong it is for another
table is measured by leaving out each table once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from backend.data.demo import write_demo
from backend.privacy.foretold import foretell
from backend.protocols.scoring.dither import DITHER, VARIABLE
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from bench.paper.data import BANK, CAR, CREDIT, FOLDER, GIVE_ME_SOME, ID, Table, federate, papers_tables
from bench.setting import fresh_glassleaf, progress, run, train
from bench.tables import foretold as describe

DEMO = "demo"
ADULT = "a9a"
TABLES = (CREDIT, BANK, GIVE_ME_SOME, ADULT)
CLASSES = (CAR,)  # a number a class in each score
ROWS = 4_000  # of a table at most; scores are compared with 2,000 of them
TREES = (3, 12, 48)
TREES_OF_CLASSES = (3, 12)
DEPTHS = (2, 4)
QUICK_ROWS = 2_500
QUICK_TREES = (3, 6)
QUICK_DEPTHS = (2,)
PEOPLE = 200  # whose scores a share is measured on
NINE_IN_TEN = 90.0  # percentile


@dataclass(frozen=True)
class Model:
    """One model that was trained and measured.

    Attributes
    ----------
    outputs : int
        Numbers in a score: 1, or one a class.
    records : int
        That its scores were compared with.
    share : float
        Of scores that fit one path only, with the dither of a real Host.
    low, high : float
        What is foretold.
    """

    table: str
    algorithm: str
    trees: int
    depth: int
    outputs: int
    records: int
    share: float
    low: float
    high: float


def measure(quick: bool = False) -> dict[str, Any]:
    """Every table's models, the line through them, and how many of each table lie within the line of the others."""
    os.environ[VARIABLE] = str(DITHER)  # the Hosts of a federation of files add none by default
    tables = (DEMO,) if quick else (*TABLES, *CLASSES)
    models = [model for table in tables for model in _models(table, quick)]
    return summary(models)


def summary(models: Sequence[Model]) -> dict[str, Any]:
    """Return the line through all models of one number, how far those of a table that was left out lie from it, and the models."""
    single = [model for model in models if model.outputs == 1]
    tables = list(dict.fromkeys(model.table for model in single))
    distances = {table: _left_out(table, single) for table in tables} if len(tables) > 1 else {}
    spread = float(np.percentile(np.abs(np.concatenate(list(distances.values()))), NINE_IN_TEN)) if distances else 0.0
    left_out = []
    for table, away in distances.items():
        inside = np.mean(np.abs(away) <= spread)
        above = np.mean(away > spread)
        left_out.append({"table": table, "models": len(away), "inside": float(inside), "above": float(above)})
    return {
        "dither": DITHER,
        "people": PEOPLE,
        "line": asdict(_line(single)) | {"models": len(single), "spread": spread},
        "left_out": left_out,
        "models": [asdict(model) for model in models],
    }


def _models(table: str, quick: bool) -> Iterator[Model]:
    with fresh_glassleaf() as glassleaf:
        federation = _added(glassleaf, table, QUICK_ROWS if quick else ROWS)
        usual = TREES_OF_CLASSES if table in CLASSES else TREES
        for trees in QUICK_TREES if quick else usual:
            for depth in QUICK_DEPTHS if quick else DEPTHS:
                sizes: dict[str, Any] = {"trees": trees, "depth": depth, "cipher": "none"}
                for parameters in (SecureBoostParameters(**sizes), ForestParameters(**sizes)):
                    record = train(glassleaf, federation, parameters)
                    if record.release is None:  # no Host owns a split
                        continue
                    outputs = glassleaf.models.guest_model(record.id).outputs.count
                    said = foretell(record.release.records, trees, depth, DITHER, outputs)
                    found = record.release.records, record.release.named, said.low, said.high
                    measured = Model(table, parameters.ALGORITHM, trees, depth, outputs, *found)
                    progress(repr(measured))
                    yield measured


def _added(glassleaf: Glassleaf, table: str, rows: int) -> str:
    """Give the service a federation of one table, half of the features a party; return its name."""
    if table == DEMO:
        folder = glassleaf.home / DEMO
        write_demo(folder, rows=rows)
        return glassleaf.federations.add(folder).name
    found = _adult() if table == ADULT else papers_tables(quick=False)[table]
    return federate(glassleaf, found.sample(rows), found.first(0.5), table)


def _adult() -> Table:
    """The 123 columns of 0 and 1 of a9a."""
    frame = pd.read_csv(FOLDER / "a9a.csv.gz", dtype=str, keep_default_na=False).drop(columns="part")
    positive = max(frame["y"].unique(), key=float)
    return Table(ADULT, "a9a", frame[[ID, *(c for c in frame.columns if c not in (ID, "y")), "y"]], "y", positive)


def _odds(share: float) -> float:
    """Log-odds of a share; half a person more on either side, since some shares are 0."""
    return float(np.log((share * PEOPLE + 0.5) / ((1 - share) * PEOPLE + 0.5)))


@dataclass(frozen=True)
class Line:
    """Log-odds of a share by the size of a model."""

    start: float
    per_doubling: float
    per_level: float

    def odds(self, model: Model) -> float:
        """Return what the line says."""
        return self.start - self.per_doubling * math.log2(model.trees) - self.per_level * model.depth


def _line(models: Sequence[Model]) -> Line:
    """Return least squares through the log-odds of some models."""
    sizes = np.array([(1.0, -np.log2(model.trees), -model.depth) for model in models])
    odds = np.array([_odds(model.share) for model in models])
    start, per_doubling, per_level = np.linalg.lstsq(sizes, odds)[0].tolist()
    return Line(start, per_doubling, per_level)


def _left_out(table: str, models: Sequence[Model]) -> NDArray[np.float64]:
    """Return how far a table's models lie from the line of the other tables, ``(n,)`` log-odds."""
    line = _line([model for model in models if model.table != table])
    return np.array([_odds(model.share) - line.odds(model) for model in models if model.table == table])


if __name__ == "__main__":
    run(__doc__, measure, describe)
