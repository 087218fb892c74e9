"""The credit-card set: its dictionary, its split, and fetching it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from backend.data import credit_card
from backend.data.credit_card import (
    CREDIT_CARD_FEATURES,
    GUEST_COLUMNS,
    HOST_COLUMNS,
    fetch_credit_card,
    split_credit_card,
)
from backend.data.federation import load_federation
from backend.data.table import read_labels, read_table
from backend.errors import FederationError

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "uci_credit_card.csv"


@pytest.fixture
def openml(monkeypatch):
    """A stand-in for OpenML's table: 30,000 rows that look like it, columns x1 … x23, numbers as floats."""
    rng = np.random.default_rng(0)
    columns = {f"x{place}": np.zeros(30_000) for place in range(1, 24)}
    columns["x1"] = rng.integers(1, 100, 30_000) * 10_000.0
    columns["x2"] = rng.integers(1, 3, 30_000).astype(float)
    columns["x5"] = rng.integers(21, 80, 30_000).astype(float)
    answer = SimpleNamespace(
        data=pd.DataFrame(columns), target=pd.Series((np.arange(30_000) < 6_636).astype(int).astype(str))
    )
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: answer)
    return answer


def test_every_column_is_described_and_held_by_one_party():
    assert len(CREDIT_CARD_FEATURES) == 23
    assert len(GUEST_COLUMNS) == 13
    assert HOST_COLUMNS == (
        "LIMIT_BAL",
        "SEX",
        "EDUCATION",
        "MARRIAGE",
        "AGE",
        "PAY_0",
        "PAY_2",
        "PAY_3",
        "PAY_4",
        "PAY_5",
    )
    assert {*GUEST_COLUMNS, *HOST_COLUMNS} == set(CREDIT_CARD_FEATURES)
    assert all(feature.meaning.zh for feature in CREDIT_CARD_FEATURES.values())


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data/uci_credit_card.csv is not beside this repository")
def test_the_real_table_is_split_as_the_benchmark_does(tmp_path):
    federation = split_credit_card(SHARED, tmp_path)
    guest, host = read_table(federation, "guest"), read_table(federation, credit_card.HOST)
    assert (len(guest.ids), len(guest.columns), len(host.columns)) == (30_000, 13, 10)
    assert guest.ids == host.ids
    assert read_labels(federation).mean() == pytest.approx(0.2212)
    assert set(host.columns["SEX"]) == {"1", "2"}
    assert set(host.columns["EDUCATION"]) <= set(CREDIT_CARD_FEATURES["EDUCATION"].categories)
    assert float(np.nanmax(host.columns["PAY_0"].astype(float))) == 8.0


def test_the_fetched_table_gets_its_usual_names_and_can_be_split(openml, tmp_path, monkeypatch):
    monkeypatch.setattr(credit_card, "ROWS", 8_000)
    openml.data, openml.target = openml.data.iloc[:8_000], openml.target.iloc[:8_000]
    file = fetch_credit_card(tmp_path / "data" / "cards.csv")
    header, first = file.read_text(encoding="utf-8").splitlines()[:2]
    assert header == ",".join(["ID", *CREDIT_CARD_FEATURES, "default.payment.next.month"])
    assert first.startswith("1,")
    assert "." not in first
    federation = split_credit_card(file, tmp_path / "out")
    assert read_labels(federation).sum() == 6_636
    written = load_federation(tmp_path / "out")
    parties = (written.guest, *written.hosts)
    assert written == federation and [party.title.en for party in parties] == ["Cedar Bank", "Aspen Pay"]
    assert all(part.title.zh for part in (written, *parties)) and written.label.meaning.zh


def test_a_table_of_another_shape_is_refused(openml, tmp_path):
    openml.data = openml.data.iloc[:10]
    with pytest.raises(FederationError, match="has 10 rows and 23 columns, expected 30,000 and 23"):
        fetch_credit_card(tmp_path / "cards.csv")


def test_a_table_with_its_columns_in_another_order_is_refused(openml, tmp_path):
    openml.data = openml.data[[*openml.data.columns[::-1]]]
    with pytest.raises(FederationError, match="another order"):
        fetch_credit_card(tmp_path / "cards.csv")


def test_an_unreachable_openml_is_reported_with_an_alternative(monkeypatch, tmp_path):
    def offline(**_):
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(FederationError, match=r"cannot be fetched \(no route to host\).*UCI repository"):
        fetch_credit_card(tmp_path / "cards.csv")
