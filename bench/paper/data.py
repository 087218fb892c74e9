"""The papers' data as federations: five tables, split between a Guest and Hosts. Nothing is fetched.

The tables lie in ../shared/data and are no part of the project. In quick mode the built-in demo stands in where they are absent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from backend.data.credit_card import DICTIONARY
from backend.data.demo import write_demo
from backend.data.split import Division
from backend.services import Glassleaf
from bench.setting import CREDIT_CARD

FOLDER = CREDIT_CARD.parent
CREDIT = "credit_card"
BANK = "bank"
CAR = "car"
GIVE_ME_SOME = "gmsc"
A9A = "a9a"
SEED = 7
ID = "id"
HOST = "host"
QUICK_ROWS = 2000


@dataclass(frozen=True)
class Table:
    """One table of a paper, every cell a text.

    Attributes
    ----------
    frame : DataFrame
        ``(n, 2 + n_features)``: ids, then the features in the file's order, then the label.
    positive : str or None
        The label's cell that means 1; None if the label names one of several classes.
    """

    name: str
    title: str
    frame: pd.DataFrame = field(repr=False)
    label: str
    positive: str | None
    dictionary: Path | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Names, in the file's order."""
        return tuple(c for c in self.frame.columns if c not in (ID, self.label))

    def first(self, share: float) -> tuple[str, ...]:
        """The first `share` of the features: what a party holds where the paper does not say which."""
        return self.features[: max(1, min(len(self.features) - 1, round(share * len(self.features))))]

    def sample(self, n: int, seed: int = SEED) -> Table:
        """`n` random records; all if there are no more."""
        rows = np.sort(np.random.default_rng(seed).permutation(len(self.frame))[:n])
        return replace(self, frame=self.frame.iloc[rows])


def papers_tables(quick: bool) -> dict[str, Table]:
    """The tables by name; the demo for all of them in quick mode where they are absent.

    Raises
    ------
    FileNotFoundError
        They are absent and the mode is not quick.
    """
    absent = [file.name for file in _FILES.values() if not file.exists()]
    if absent and not quick:
        raise FileNotFoundError(
            f"{', '.join(absent)}: not found in {FOLDER}; the papers' tables are measured on these files. Put them there "
            "(../shared/data/README.md names their sources), or run with --quick, which takes the built-in demo."
        )
    if absent:
        return {CREDIT: _demo()}
    credit = _read(_FILES[CREDIT]).rename(columns={"ID": ID})
    car = _read(_FILES[CAR]).set_axis(_CAR_COLUMNS, axis=1)
    tables = [
        Table(CREDIT, "credit card", credit, "default.payment.next.month", "1", DICTIONARY),
        Table(BANK, "bank", _numbered(_read(_FILES[BANK], ";")), "y", "yes"),
        Table(CAR, "car", _numbered(car), "class", None),
        Table(
            GIVE_ME_SOME, "Give Me Some Credit", _read(_FILES[GIVE_ME_SOME]).replace("NA", ""), "SeriousDlqin2yrs", "1"
        ),
        Table(A9A, "a9a", _read(_FILES[A9A]).drop(columns="part"), "y", "1"),
    ]
    return {table.name: table.sample(QUICK_ROWS) if quick else table for table in tables}


def federate(glassleaf: Glassleaf, table: Table, guest: Sequence[str], name: str, n_hosts: int = 1) -> str:
    """Give the Guest its columns, deal the others to the Hosts in turn, and remember the federation as `name`."""
    folder = glassleaf.home / "tables" / name
    folder.mkdir(parents=True)
    table.frame.to_csv(folder / f"{table.name}.csv", index=False, lineterminator="\n")
    others = [c for c in table.features if c not in guest]
    names = [HOST] if n_hosts == 1 else [f"{HOST}{number}" for number in range(1, n_hosts + 1)]
    hosts = {host: others[at::n_hosts] for at, host in enumerate(names)}
    options: dict[str, Any] = {
        "id_column": ID,
        "positive": table.positive,
        "dictionary": table.dictionary,
        "name": name,
    }
    division = Division(label=table.label, guest=guest, hosts=hosts, **options)
    return glassleaf.federations.init(
        folder / f"{table.name}.csv", division, glassleaf.home / "federations" / name
    ).name


_FILES = {
    CREDIT: CREDIT_CARD,
    BANK: FOLDER / "bank.csv",
    CAR: FOLDER / "car.csv",
    GIVE_ME_SOME: FOLDER / "gmsc.csv.gz",
    A9A: FOLDER / "a9a.csv.gz",
}
_CAR_COLUMNS = ["buying", "maint", "doors", "persons", "lug_boot", "safety", "class"]


def _read(file: Path, separator: str = ",") -> pd.DataFrame:
    return pd.read_csv(file, sep=separator, dtype=str, keep_default_na=False)


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with ids: the position in the file."""
    frame.insert(0, ID, [f"r{i}" for i in range(1, len(frame) + 1)])
    return frame


def _demo() -> Table:
    """The demo's parties put side by side: records that all of them hold."""
    with tempfile.TemporaryDirectory(prefix="glassleaf-demo-") as name:
        federation = write_demo(Path(name), rows=QUICK_ROWS)
        parties = [_read(Path(name) / party.file) for party in federation.parties]
    label = federation.label
    frame = parties[0]
    for other in parties[1:]:
        frame = frame.merge(other, on=ID)
    # the label last
    frame[label.column] = frame.pop(label.column)
    return Table("demo", "the built-in demo (synthetic)", frame, label.column, label.positive)
