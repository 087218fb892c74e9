"""The built-in demo federation: a bank, a telecom and a shopping platform with 6,000 synthetic applicants.

Everything is drawn from one seed. What the checks should find is planted and recorded in `PLANTED`; the features' meanings are in
``assets/demo/dictionary.csv``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary_file import read_dictionary
from backend.data.federation import Federation, Party, write_federation
from backend.data.label import Label
from backend.i18n import Text

if TYPE_CHECKING:
    import pandas as pd

DICTIONARY = Path(str(files("assets") / "demo" / "dictionary.csv"))
SEED = 20261
DEFAULT_RATE = 0.20  # share of applicants who default within 90 days

BANK, TELECOM, PLATFORM = (
    tuple(names.split())
    for names in (
        "age monthly_income account_age_months credit_limit utilisation late_payments_12m loan_amount home_ownership salary_account",
        "gender tenure_months monthly_bill overdue_bills_6m in_blacklist number_changes_24m night_call_share",
        "marital_status basket_mix spending_steadiness orders_12m average_order return_share instalment_share delivery_addresses_12m",
    )
)
PARTIES = (  # each with its features
    (
        Party(
            name="bank",
            title=Text("Linden Bank", "椴树银行"),
            about=Text("Grants the loans and knows who repaid them.", "发放贷款，掌握还款结果。"),
            file="bank.csv",
            id="id",
        ),
        BANK,
    ),
    (
        Party(
            name="telecom",
            title=Text("Rowan Telecom", "花楸电信"),
            about=Text("Knows how long and how reliably a phone is used.", "掌握在网时长与缴费情况。"),
            file="telecom.csv",
            id="id",
        ),
        TELECOM,
    ),
    (
        Party(
            name="platform",
            title=Text("Hazel Market", "榛树商城"),
            about=Text("Knows what is ordered, paid and sent back.", "掌握下单、支付与退货情况。"),
            file="platform.csv",
            id="id",
        ),
        PLATFORM,
    ),
)
LABEL = "default_90d"

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Planted:
    """The findings planted in the demo; a feature is given by its party and name.

    Attributes
    ----------
    gender, marital_status, age : (party, feature)
        Protected attributes.
    proxy_of_gender : (party, feature)
        A neutral name at another party than gender; rank correlation with being female about 0.75.
    contradiction : (party, feature)
        Expected to lower the risk, truly raises it (the Fed-EINI paper's example: steadier spending).
    blacklist : (party, feature)
        Rare and strong.
    absent : dict of str to float
        Host → share of the bank's ids that it does not hold.
    missing : dict of str to float
        Feature → share of its values left empty.
    positive_rate : (low, high)
        Bounds of the share of defaults.
    """

    gender: tuple[str, str] = ("telecom", "gender")
    marital_status: tuple[str, str] = ("platform", "marital_status")
    age: tuple[str, str] = ("bank", "age")
    proxy_of_gender: tuple[str, str] = ("platform", "basket_mix")
    contradiction: tuple[str, str] = ("platform", "spending_steadiness")
    blacklist: tuple[str, str] = ("telecom", "in_blacklist")
    absent: Mapping[str, float] = field(default_factory=lambda: {"telecom": 0.02, "platform": 0.03})
    missing: Mapping[str, float] = field(
        default_factory=lambda: {
            "monthly_income": 0.06,
            "utilisation": 0.03,
            "monthly_bill": 0.02,
            "night_call_share": 0.04,
            "marital_status": 0.05,
            "return_share": 0.08,
        }
    )
    positive_rate: tuple[float, float] = (0.18, 0.22)


PLANTED = Planted()


def write_demo(folder: Path, *, rows: int = 6000, seed: int = SEED, dither: float | None = None) -> Federation:
    """Write the parties' CSV files and, last of all, ``federation.toml``; the same seed gives the same bytes.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    rows : int
        Applicants at the bank, at least 100.
    dither : float, optional
        Dither that each Host adds to a score, on the margin; None = the default of synthetic people, which is none.
    """
    import pandas as pd  # noqa: PLC0415 - slow to import

    if rows < 100:
        raise ValueError(f"rows: found {rows}, expected at least 100")
    rng = np.random.default_rng(seed)
    people = _draw(rng, rows)
    ids = pd.Series([f"A{number}" for number in 100_000 + rng.permutation(9 * rows)[:rows]], name="id")
    for feature, share in PLANTED.missing.items():
        people.loc[rng.random(rows) < share, feature] = None
    folder.mkdir(parents=True, exist_ok=True)
    for party, features in PARTIES:
        absent = PLANTED.absent.get(party.name)
        if absent is None:
            party_rows = np.arange(rows)
        else:
            party_rows = rng.permutation(rows)[: rows - round(absent * rows)]
        columns = [*features, *([LABEL] if absent is None else [])]
        table = pd.concat([ids, people[columns]], axis=1).iloc[party_rows]
        table.to_csv(folder / party.file, index=False, lineterminator="\n", encoding="utf-8")
    template = demo_federation()
    hosts = tuple(host.model_copy(update={"dither": dither}) for host in template.hosts)
    federation = template.model_copy(update={"folder": folder, "hosts": hosts})
    write_federation(federation, folder)
    return federation


def _draw(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Draw every feature and the label, a row per applicant; numbers as they would be exported."""
    import pandas as pd  # noqa: PLC0415 - as above

    def normal(spread: float = 1.0) -> Values:
        return rng.normal(0.0, spread, rows)

    # what a person has; how a person pays
    means = normal()
    care = normal()
    female = rng.random(rows) < 0.48
    age = np.clip(np.round(20 + 45 * rng.beta(1.7, 2.6, rows)), 20, 65)
    seniority = (age - 37) / 10
    married = rng.random(rows) < _sigmoid(seniority * 0.9)
    marital = np.where(rng.random(rows) < 0.04, 3, np.where(married, 1, 2))
    steadiness = np.clip(np.round(55 + 18 * normal()), 0, 100)
    blacklist = rng.random(rows) < _sigmoid(-4.4 - 0.6 * care)
    utilisation = 100 * _sigmoid(-0.5 - 0.7 * care - 0.2 * means + normal(0.8))
    people = pd.DataFrame(
        {
            "age": age,
            "monthly_income": np.round(9000 * np.exp(0.45 * means + 0.10 * seniority + normal(0.15)), -2),
            "account_age_months": np.clip(np.round((age - 19) * 12 * rng.beta(1.5, 2.5, rows)), 1, None),
            "credit_limit": np.clip(
                np.round(40000 * np.exp(0.5 * means + 0.2 * care + normal(0.4)), -3), 2000, 500_000
            ),
            "utilisation": np.round(utilisation, 1),
            "late_payments_12m": np.minimum(rng.poisson(np.exp(-0.7 - 0.8 * care)), 12),
            "loan_amount": np.clip(np.round(30000 * np.exp(0.1 * means + normal(0.55)), -3), 2000, 300_000),
            "home_ownership": _housing(rng, seniority + 0.5 * means),
            "salary_account": (rng.random(rows) < _sigmoid(-0.3 + 0.3 * means)).astype(int),
            "gender": np.where(female, 2, 1),
            "tenure_months": np.clip(np.round(np.exp(3.6 + 0.25 * care + 0.15 * seniority + normal(0.6))), 1, 240),
            "monthly_bill": np.round(68 * np.exp(0.25 * means + normal(0.35)), 2),
            "overdue_bills_6m": np.minimum(rng.poisson(np.exp(-1.1 - 0.7 * care + 1.2 * blacklist)), 6),
            "in_blacklist": blacklist.astype(int),
            "number_changes_24m": np.minimum(rng.poisson(np.exp(-1.2 - 0.4 * care)), 8),
            "night_call_share": np.round(100 * _sigmoid(-2.7 - 0.25 * care + normal(0.7)), 1),
            "marital_status": marital,
            "basket_mix": np.clip(np.round(np.where(female, 62, 38) + normal(11)), 0, 100),
            "spending_steadiness": steadiness,
            "orders_12m": np.minimum(rng.poisson(np.exp(3.0 + 0.25 * means + 0.07 * female + normal(0.3))), 400),
            "average_order": np.round(130 * np.exp(0.3 * means + normal(0.4)), 2),
            "return_share": np.round(100 * _sigmoid(-2.4 - 0.2 * care + normal(0.6)), 1),
            "instalment_share": np.round(100 * _sigmoid(-1.4 - 0.45 * means - 0.2 * care + normal(0.8)), 1),
            "delivery_addresses_12m": 1 + np.minimum(rng.poisson(np.exp(-0.2 - 0.4 * care)), 11),
        }
    )
    people[LABEL] = _defaults(rng, people)
    return people.convert_dtypes()


def _housing(rng: np.random.Generator, standing: Values) -> NDArray[np.str_]:
    """Draw how the home is held: the better the standing, the sooner it is owned."""
    rank = standing + rng.normal(0.0, 1.0, len(standing))
    return np.select([rank > 1.2, rank > 0.1, rank > -0.9], ["own", "mortgage", "rent"], "family")


def _defaults(rng: np.random.Generator, people: pd.DataFrame) -> NDArray[np.int64]:
    """Draw who defaults within 90 days: a logistic model of what the three parties hold."""

    def standard(feature: str, *, log: bool = False) -> Values:
        values = people[feature].to_numpy(dtype=np.float64)
        values = np.log(values) if log else values
        return np.asarray((values - values.mean()) / values.std())

    risk = 0.85 * (
        -0.45 * standard("monthly_income", log=True)
        - 0.25 * standard("account_age_months")
        + 0.40 * standard("utilisation")
        + 0.45 * standard("late_payments_12m")
        + 0.40 * standard("loan_amount", log=True)
        - 0.20 * standard("salary_account")
        + 0.25 * (people["home_ownership"] == "rent").to_numpy(dtype=np.float64)
        - 0.20 * standard("age")
        - 0.80 * (people["gender"] == 2).to_numpy(dtype=np.float64)
        - 0.40 * standard("tenure_months", log=True)
        + 0.50 * standard("overdue_bills_6m")
        + 2.60 * people["in_blacklist"].to_numpy(dtype=np.float64)
        + 0.30 * standard("number_changes_24m")
        + 0.30 * standard("night_call_share")
        - 0.30 * (people["marital_status"] == 1).to_numpy(dtype=np.float64)
        - 0.10 * standard("basket_mix")
        + 0.60 * standard("spending_steadiness")
        - 0.20 * standard("orders_12m")
        + 0.25 * standard("return_share")
        + 0.50 * standard("instalment_share")
        + 0.35 * standard("delivery_addresses_12m")
    )
    return (rng.random(len(people)) < _sigmoid(risk + _intercept(risk))).astype(np.int64)


def _intercept(risk: Values) -> float:
    """Return the constant at which the mean probability is `DEFAULT_RATE`, by bisection."""
    low = -20.0
    high = 20.0
    for _ in range(60):
        middle = (low + high) / 2
        if _sigmoid(risk + middle).mean() < DEFAULT_RATE:
            low = middle
        else:
            high = middle
    return low


def _sigmoid(score: Values) -> Values:
    return np.asarray(1.0 / (1.0 + np.exp(-score)))


def demo_federation() -> Federation:
    """Return the parties with their dictionaries; their tables are not written."""
    meanings = read_dictionary(DICTIONARY)
    bank, telecom, platform = (
        party.model_copy(update={"features": tuple(meanings[feature] for feature in features)})
        for party, features in PARTIES
    )
    return Federation(
        name="demo",
        title=Text("Demo: who repays a small loan", "演示：小额贷款还款预测"),
        about=Text("A bank, a telecom and a shopping platform score loan applicants together. All data are made up."),
        synthetic=True,
        label=Label(
            column=LABEL, positive="1", meaning=Text("Default within 90 days of the loan", "放款后 90 天内违约")
        ),
        guest=bank,
        hosts=(telecom, platform),
    )
