"""A federation and a model of the size that pages have to bear: 500 features of three parties, 300 trees. Everybody in it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from backend.data.dictionary import ExpectedDirection, Feature, Kind
from backend.data.federation import Federation, Party, write_federation
from backend.data.label import Label
from backend.i18n import Text
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services import Glassleaf
from bench.setting import train

FEATURES = {"bank": 200, "telecom": 150, "platform": 150}
TREES = 300
DEPTH = 4
ROWS = 2000
SEED = 7
COLUMNS = 0.1  # of the features a round: quicker to grow, and many features are used
BARRED = ("gender", "age", "marital_status", "religion", "nationality", "pension_income")  # flagged by their names
EVERY = 12  # one feature in so many has such a name
LABEL = "defaulted"


def write_large(
    folder: Path, rows: int = ROWS, counts: Mapping[str, int] = FEATURES, name: str = "large"
) -> Federation:
    """Write the parties' files and the federation file; `counts` are the features of each party, the Guest first."""
    draw = np.random.default_rng(SEED)
    ids = pd.Series([f"P{i}" for i in range(rows)], name="id")
    folder.mkdir(parents=True, exist_ok=True)
    risk = np.zeros(rows)
    columns: dict[str, dict[str, np.ndarray]] = {}
    features = {party: tuple(_feature(party, i) for i in range(count)) for party, count in counts.items()}
    guest = next(iter(counts))
    for party, own in features.items():
        columns[party] = {f.name: _column(draw, f, rows) for f in own}
        for column in columns[party].values():
            risk += draw.normal(scale=0.15) * (column - column.mean()) / column.std()
    columns[guest][LABEL] = (draw.random(rows) < 1 / (1 + np.exp(1 - risk))).astype(np.int64)
    for party, own_columns in columns.items():
        pd.concat([ids, pd.DataFrame(own_columns)], axis=1).to_csv(folder / f"{party}.csv", index=False)
    parties = [
        Party(name=p, title=p.capitalize(), file=f"{p}.csv", id="id", features=own) for p, own in features.items()
    ]
    federation = Federation(
        name=name,
        title=f"{name.capitalize()}: {sum(counts.values())} features",
        synthetic=True,
        label=Label(column=LABEL, positive="1", meaning="Default within a year"),
        guest=parties[0],
        hosts=tuple(parties[1:]),
        folder=folder,
    )
    write_federation(federation, folder)
    return federation


def _feature(party: str, index: int) -> Feature:
    barred = BARRED[index // EVERY % len(BARRED)] if index % EVERY == 0 else ""
    words = barred.replace("_", " ").capitalize() or "Synthetic figure"
    return Feature(
        name=f"{party}_{barred or 'figure'}_{index}",
        meaning=Text(f"{words} number {index} as the {party} keeps it", f"{party} 第 {index} 项合成指标"),
        kind=Kind.BOOLEAN if index % 7 == 3 else Kind.NUMERIC,
        expected_direction=(ExpectedDirection.UP, ExpectedDirection.DOWN, ExpectedDirection.NONE)[index % 3],
    )


def _column(draw: np.random.Generator, feature: Feature, rows: int) -> np.ndarray:
    if feature.kind is Kind.BOOLEAN:
        return (draw.random(rows) < draw.uniform(0.2, 0.8)).astype(np.int64)
    return draw.normal(size=rows).round(3)


def grow_large(glassleaf: Glassleaf) -> ModelRecord:
    """Write the federation below the home and grow its model on plaintext, on a share of the features a round."""
    write_large(glassleaf.home / "large")
    federation = glassleaf.federations.add(glassleaf.home / "large")
    parameters = SecureBoostParameters(
        trees=TREES, depth=DEPTH, learning_rate=0.05, bins=8, column_sample=COLUMNS, cipher="none"
    )
    return train(glassleaf, federation.name, parameters)
