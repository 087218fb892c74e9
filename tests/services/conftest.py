"""Services on a light group and light obfuscators."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from light_group import light_group
from light_obfuscators import light_obfuscators

from backend.data.credit_card import split_credit_card
from backend.data.demo import write_demo
from backend.data.split import Division, split_table

# as it is shipped: trainings and scores over links, and processes of their own
REAL = ("test_companies", "test_company_processes", "test_host_operation")
POOLS = ("test_protocol_comparison",)  # of true obfuscators


@pytest.fixture(scope="module", autouse=True)
def _light_crypto(request: pytest.FixtureRequest) -> Iterator[None]:
    """Aligning and encrypting would take most of all time."""
    if request.path.stem in REAL:
        yield
        return
    with light_group(), nullcontext() if request.path.stem in POOLS else light_obfuscators():
        yield


@pytest.fixture(
    params=[
        "demo",
        pytest.param("bank", marks=pytest.mark.slow),
        pytest.param("credit_card", marks=pytest.mark.slow),
    ]
)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a federation of one of three tables; its Hosts leave dither to the environment."""
    folder = tmp_path / "federation"
    if request.param == "demo":
        write_demo(folder, rows=1300)  # of whom all parties hold 1,000 and more
        return folder
    if request.param == "bank":
        csv = request.getfixturevalue("bank_csv")
        division = Division(
            label="y",
            guest=("age", "job", "marital", "education", "default", "balance", "housing", "loan"),
            hosts={"telecom": ("contact", "day", "month", "duration", "campaign", "pdays", "previous", "poutcome")},
            positive="yes",
            name="bank",
        )
        split_table(csv, division, folder)
        return folder
    whole = request.getfixturevalue("credit_card_csv").read_text().splitlines(keepends=True)
    csv = tmp_path / "cards.csv"
    csv.write_text("".join(whole[:4001]))
    split_credit_card(csv, folder)
    return folder
