"""The set "Default of credit card clients" (UCI, CC BY 4.0): 30,000 clients of a Taiwanese bank, 2005.

It comes from OpenML through scikit-learn and is split as FATE's benchmark does: bills and payments at the Guest; limit,
person and repayment status at one Host. ``assets/credit_card/dictionary.csv`` has every column's meaning; a copy
of the table from elsewhere gives the same federation by::

    glassleaf init UCI_Credit_Card.csv --id ID --label default.payment.next.month \
        --guest PAY_6,BILL_AMT1,… --host platform=LIMIT_BAL,SEX,… \
        --dictionary assets/credit_card/dictionary.csv --out DIR
"""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import Future, wait
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from backend.data.dictionary_file import read_dictionary
from backend.data.federation import Federation, write_federation
from backend.data.split import Division, split_table
from backend.errors import FederationError
from backend.i18n import Text
from backend.jobs import work

if TYPE_CHECKING:
    import pandas as pd

POLL_SECONDS = 0.1  # seconds between two looks whether the work was stopped
OPENML_ID = 42477  # openml.org/d/42477, the UCI table with its columns named x1 … x23 and y
ROWS = 30_000
POSITIVES = 6_636  # clients who defaulted, UCI's description
FEDERATION = "credit_card"  # the federation's
DICTIONARY = Path(str(files("assets") / "credit_card" / "dictionary.csv"))
CREDIT_CARD_FEATURES: Final = read_dictionary(DICTIONARY)  # column → feature, in the table's own order

ID_COLUMN = "ID"
LABEL = "default.payment.next.month"
POSITIVE = "1"
LABEL_MEANING = Text("Default on the payment due in October 2005", "2005 年 10 月到期款项违约")
TITLES: Final = {
    "guest": Text("Cedar Bank", "雪松银行"),
    "platform": Text("Aspen Pay", "白杨支付"),
}  # of the parties, made up
MONTHS = range(1, 7)  # 1 is September, 6 is April
GUEST_COLUMNS = ("PAY_6", *(f"BILL_AMT{month}" for month in MONTHS), *(f"PAY_AMT{month}" for month in MONTHS))
HOST = "platform"
PUBLIC_BUDGET = 1000  # queries per person in 28 days: the table is public
HOST_COLUMNS = tuple(column for column in CREDIT_CARD_FEATURES if column not in GUEST_COLUMNS)


def split_credit_card(table: Path, out: Path) -> Federation:
    """Split the table into Guest and Host files and a federation file in `out`; see `split_table` for the errors."""
    division = Division(
        label=LABEL,
        guest=GUEST_COLUMNS,
        hosts={HOST: HOST_COLUMNS},
        id_column=ID_COLUMN,
        positive=POSITIVE,
        dictionary=DICTIONARY,
        name=FEDERATION,
        title="Credit card clients",
        label_meaning=LABEL_MEANING.en,
    )
    federation = split_table(table, division, out).federation
    guest = federation.guest
    host = federation.hosts[0]
    public = federation.model_copy(
        update={
            "title": Text("Credit card clients", "信用卡客户"),
            "about": Text(federation.about.en, f"由 {table.name} 一张表拆分而成；各机构为模拟。"),
            "label": federation.label.model_copy(update={"meaning": LABEL_MEANING}),
            "guest": guest.model_copy(update=_titled(guest.name)),
            "hosts": (host.model_copy(update={**_titled(host.name), "budget": PUBLIC_BUDGET}),),
        }
    )
    write_federation(public, out)
    return public


def _titled(party: str) -> dict[str, Text]:
    return {"title": TITLES[party]}


def fetch_credit_card(file: Path) -> Path:
    """Fetch the table from OpenML and write it to `file` under its usual column names; returns `file`.

    Raises
    ------
    FederationError
        OpenML cannot be reached, or what it sent is not the table that is known.
    """
    fetched: Future[Any] = Future()

    def fetch() -> None:
        try:
            from sklearn.datasets import fetch_openml  # noqa: PLC0415 - takes seconds, in which the work can be stopped

            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "A network error occurred")  # it tries again, and says it in the end
                fetched.set_result(fetch_openml(data_id=OPENML_ID, as_frame=True, parser="auto"))
        except Exception as error:  # the waiting caller raises it
            fetched.set_exception(error)

    threading.Thread(target=fetch, name="openml", daemon=True).start()  # left alone where the work is stopped
    while not wait([fetched], timeout=POLL_SECONDS).done:
        work.check()
    try:
        bunch = fetched.result()
    except OSError as error:
        raise FederationError("openml_unreachable", number=OPENML_ID, reason=str(error)) from None
    table = _named(bunch.data, bunch.target)
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False, lineterminator="\n")
    return file


def _named(data: pd.DataFrame, target: pd.Series) -> pd.DataFrame:
    """Name the columns by their order, and check by their values that the order is right."""
    names = list(CREDIT_CARD_FEATURES)
    if data.shape != (ROWS, len(names)) or len(target) != ROWS:
        rows, columns = data.shape
        raise FederationError(
            "openml_of_other_size",
            number=OPENML_ID,
            rows=rows,
            columns=columns,
            expected_rows=ROWS,
            expected_columns=len(names),
        )
    table = data.set_axis(names, axis=1).astype(float).astype(np.int64)
    table.insert(0, ID_COLUMN, np.arange(1, ROWS + 1))
    table[LABEL] = target.astype(float).astype(np.int64).to_numpy()
    sound = {
        "SEX": table["SEX"].isin([1, 2]).all(),
        "AGE": table["AGE"].between(18, 100).all(),
        "LIMIT_BAL": table["LIMIT_BAL"].between(10_000, 1_000_000).all(),
        "PAY_0": table["PAY_0"].between(-2, 9).all(),
        LABEL: table[LABEL].sum() == POSITIVES,
    }
    strange = [column for column, holds in sound.items() if not holds]
    if strange:
        raise FederationError("openml_in_other_order", number=OPENML_ID, columns=tuple(strange))
    return table
