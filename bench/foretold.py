"""The share of scores that fit one path only, measured on models of six tables beside what is foretold before a training.

The line of :mod:`backend.privacy.foretold` is drawn through the models of three tables; those of the others say how wrong it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from backend.data.demo import write_demo
from backend.privacy.foretold import foretell
from backend.protocols.scoring.dither import DITHER, VARIABLE
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from bench.paper.data import BANK, CAR, CREDIT, FOLDER, GIVE_ME_SOME, ID, Table, federate, papers_tables
from bench.setting import fresh_glassleaf, progress, run, train
from bench.tables import foretold as describe

DEMO, ADULT = "demo", "a9a"
DRAWN = (DEMO, CREDIT, BANK)  # tables that the line is drawn through
HELD_OUT = (GIVE_ME_SOME, ADULT, CAR)  # tables that it is only compared with
ROWS = 4_000  # of a table at most; scores are compared with 2,000 of them
TREES = (3, 6, 12, 24, 48)
DEPTHS = (2, 3, 4)
QUICK_ROWS, QUICK_TREES, QUICK_DEPTHS = 2_500, (3, 6), (2,)
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
    foretold, low, high : float
        What was said before the training.
    """

    table: str
    algorithm: str
    trees: int
    depth: int
    outputs: int
    records: int
    share: float
    foretold: float
    low: float
    high: float


def measure(quick: bool = False) -> dict[str, Any]:
    """Every table's models, the line through those of :data:`DRAWN`, and how far each table's lie from what was foretold."""
    os.environ[VARIABLE] = str(DITHER)  # the Hosts of a federation of files add none by default
    tables = (DEMO,) if quick else (*HELD_OUT, *DRAWN)
    models = [model for table in tables for model in _models(table, quick)]
    return {
        "dither": DITHER,
        "people": PEOPLE,
        "line": _line([model for model in models if model.table in DRAWN]),
        "tables": [
            _errors(table, [m for m in models if m.table == table], held_out=table in HELD_OUT) for table in tables
        ],
        "models": [asdict(model) for model in models],
    }


def _models(table: str, quick: bool) -> Iterator[Model]:
    with fresh_glassleaf() as glassleaf:
        federation = _added(glassleaf, table, QUICK_ROWS if quick else ROWS)
        for trees in QUICK_TREES if quick else TREES:
            for depth in QUICK_DEPTHS if quick else DEPTHS:
                sizes: dict[str, Any] = {"trees": trees, "depth": depth, "cipher": "none"}
                for parameters in (SecureBoostParameters(**sizes), ForestParameters(**sizes)):
                    record = train(glassleaf, federation, parameters)
                    if record.release is None:  # no Host owns a split
                        continue
                    model = glassleaf.models.guest_model(record.id)
                    outputs = model.outputs.count
                    said = foretell(record.release.records, trees, depth, DITHER)
                    found = record.release.records, record.release.named, said.share, said.low, said.high
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


def _line(models: Sequence[Model]) -> dict[str, float]:
    """Least squares through the log-odds of some models, with how far nine in ten of them lie from it."""
    sizes = np.array([(1.0, -np.log2(model.trees), -model.depth) for model in models])
    odds = np.array([_odds(model.share) for model in models])
    (start, per_doubling, per_level), *_ = np.linalg.lstsq(sizes, odds)
    away = np.abs(odds - sizes @ (start, per_doubling, per_level))
    return {
        "models": len(models),
        "start": float(start),
        "per_doubling": float(per_doubling),
        "per_level": float(per_level),
        "spread": float(np.percentile(away, NINE_IN_TEN)),
    }


def _errors(table: str, models: Sequence[Model], *, held_out: bool) -> dict[str, Any]:
    """How many of a table's models lie in the range that was foretold, and how far they lie from its middle, in log-odds and in share."""
    inside = [model.low - 1 / PEOPLE <= model.share <= model.high + 1 / PEOPLE for model in models]
    away = [abs(_odds(model.share) - _odds(model.foretold)) for model in models]
    return {
        "table": table,
        "held_out": held_out,
        "models": len(models),
        "inside": float(np.mean(inside)),
        "above": float(np.mean([model.share > model.high + 1 / PEOPLE for model in models])),
        "away": float(np.percentile(away, NINE_IN_TEN)),
        "share_away": float(np.median([abs(model.share - model.foretold) for model in models])),
    }


if __name__ == "__main__":
    run(__doc__, measure, describe)
