"""`python -m bench.forest_columns [FOLDER]`: of what share of the features a forest should choose a split, on tables of several kinds."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes

from backend.data.split import Division
from backend.protocols.training.forest import ForestParameters
from backend.services import Glassleaf
from backend.services.training import TrainingRequest

SHARES = (0.0, 0.3, 0.6, 1.0)  # 0 = the square root of their number
SEEDS = (7, 8)
ROWS = 3000


def tables(folder: Path) -> dict[str, tuple[pd.DataFrame, str, str]]:
    """Name → table, label and its positive value; those that lie in a folder, and those that scikit-learn brings along."""
    found = {}
    cards = folder / "uci_credit_card.csv"
    if cards.exists():
        found["credit cards"] = pd.read_csv(cards).drop(columns="ID"), "default.payment.next.month", "1"
    bank = folder / "bank.csv"
    if bank.exists():
        found["bank"] = pd.read_csv(bank, sep=";"), "y", "yes"
    car = folder / "car.csv"
    if car.exists():
        found["car"] = pd.read_csv(car), "G", ""
    for name, load in (("diabetes", load_diabetes), ("breast cancer", load_breast_cancer)):
        frame = load(as_frame=True).frame
        found[name] = (
            frame.rename(columns=lambda text: text.replace(" ", "_")),
            "target",
            "1" if name == "breast cancer" else "",
        )
    found["one feature decides"] = _insured(), "charges", ""
    return found


def _insured() -> pd.DataFrame:
    """People as an insurer has them: whether somebody smokes decides most of what is paid."""
    draw = np.random.default_rng(5)
    rows = 1338
    frame = pd.DataFrame({"age": draw.integers(18, 65, rows), "bmi": np.round(draw.normal(30.7, 6.1, rows), 1)})
    frame["children"] = draw.integers(0, 5, rows)
    frame["smoker"] = draw.choice(["yes", "no"], rows, p=[0.2, 0.8])
    frame["region"] = draw.choice(["north", "south", "east", "west"], rows)
    smokes = frame["smoker"] == "yes"
    paid = 250 * frame["age"] + 500 * frame["children"] + smokes * (13000 + 1400 * (frame["bmi"] - 30).clip(0))
    frame["charges"] = np.round(paid - 2000 + draw.exponential(4000, rows), 2)
    return frame


def quality(frame: pd.DataFrame, label: str, positive: str, share: float, seed: int) -> float:
    """AUC of two outcomes, accuracy of classes, R² of a number, on the test records."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        frame = frame.sample(min(ROWS, len(frame)), random_state=1).reset_index(drop=True)
        frame.insert(0, "id", [f"p{row}" for row in range(len(frame))])
        frame.to_csv(home / "t.csv", index=False)
        columns = [name for name in frame.columns if name not in ("id", label)]
        half = len(columns) // 2
        division = Division(
            label, tuple(columns[:half]), {"host": tuple(columns[half:])}, "id", positive or None, name="t"
        )
        with Glassleaf(home / "home", pools=False) as glassleaf:
            glassleaf.federations.init(home / "t.csv", division, home / "f")
            parameters = ForestParameters(column_sample=share, seed=seed, cipher="none")
            record = glassleaf.training.start(TrainingRequest("t", parameters, most_named=1.0)).get()
        one = record.metrics
        values = [value for value in (one.auc, one.r2, one.accuracy) if not np.isnan(value)]
        return float(values[0])


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print a line a table."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data"))
    folder = words.parse_args().folder
    show("| table | " + " | ".join(f"{share:g}" for share in SHARES) + " |")
    for name, (frame, label, positive) in tables(folder).items():
        found = [np.mean([quality(frame, label, positive, share, seed) for seed in SEEDS]) for share in SHARES]
        show(f"| {name} | " + " | ".join(f"{value:.4f}" for value in found) + " |")


if __name__ == "__main__":
    main()
