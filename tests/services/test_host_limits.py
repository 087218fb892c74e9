"""What `host check` prints of each limit: as it is enforced, what a year adds, and whether it binds."""

from datetime import date, timedelta
from types import SimpleNamespace

import pytest

from backend.data.dictionary import Feature
from backend.link.agreement import Purpose
from backend.services.host_limits import limits_as_enforced
from backend.store.accountant import QUERIES_SYNTHETIC, SCORE, Accountant, Limits, Question
from backend.store.database import Database

FEATURES = tuple(Feature(name=f"x{i}", meaning="x") for i in range(10))


def of(synthetic=False, floors=None, rows_per_day=0, **limits):
    """Return code → values of a Host's limits."""
    purpose = Purpose(
        name="credit",
        title="Credit",
        legal_basis="consent",
        kinds=("DecisionVectors",),
        dictionaries={},
        floors=floors or {},
        rows_per_day=rows_per_day,
        retention_days=30,
        valid_until=date(2099, 1, 1),
    )
    own = {"budget": None, "budget_total": None, "max_bits": None, "dither": None, "measures": None, "key_bits": 2048}
    config = SimpleNamespace(limits=SimpleNamespace(**{**own, **limits}), features=lambda: FEATURES)
    agreement = SimpleNamespace(purposes=(purpose,), synthetic=synthetic)
    remarks = list(limits_as_enforced(config, agreement, 6000))
    assert all(remark.sentence("zh") != remark.sentence("en") for remark in remarks)
    return {remark.code: remark.values for remark in remarks}


def test_by_default_every_limit_of_a_real_host_binds_but_the_volume():
    limits = of()
    assert limits["limit_answers"] == {"answers": 1, "days": 28, "year": 14}
    assert limits["limit_bits"]["bits"] > 140 and limits["limit_bits"]["year"] == 14 * limits["limit_bits"]["bits"]
    assert limits["limit_groups"] == {"size": 50, "share": 50} and limits["limit_dither"] == {"dither": 0.0625}
    assert {code for code in limits if code.endswith(("_none", "_free"))} == {
        "limit_volume_none",
        "limit_measures_none",
        "limit_sums_free",
    }


def test_a_year_adds_what_the_account_answers_if_it_is_asked_on_each_of_365_days():
    day = date(2026, 1, 1)
    account = Accountant(Database(), Limits(1), today=lambda: day)
    answered = 0
    for days in range(0, 365, 7):  # on other days a window of 28 days cannot end
        day = date(2026, 1, 1) + timedelta(days)
        if not account.count(Question("bank", "", SCORE, "trees", ("a",), 1.0, 1.0)).any():
            answered += 1
    assert of()["limit_answers"]["year"] == answered


def test_the_stricter_of_configuration_and_agreement_is_printed():
    limits = of(budget=5, floors={"budget": 3, "group_size": 77, "key_bits": 3072}, rows_per_day=9, max_bits=20.0)
    assert limits["limit_answers"]["answers"] == 3 and limits["limit_groups"]["size"] == 77
    assert limits["limit_key"] == {"bits": 3072} and limits["limit_volume"]["rows"] == 9
    assert limits["limit_bits"]["bits"] == 20.0


@pytest.mark.parametrize(
    ("limits", "code"), [({"budget_total": 0}, "limit_total_none"), ({"max_bits": 0.0}, "limit_bits_none")]
)
def test_what_is_switched_off_is_said_not_to_bind(limits, code):
    assert code in of(**limits)


def test_a_budget_of_nothing_in_both_files_does_not_bind_and_groups_still_do():
    limits = of(budget=0, floors={"budget": 0})
    assert "limit_answers_none" in limits and "limit_groups" in limits and "limit_synthetic" not in limits


def test_synthetic_people_are_named_first():
    limits = of(synthetic=True, floors={"budget": QUERIES_SYNTHETIC, "dither": 0.0}, dither=0.0)
    assert next(iter(limits)) == "limit_synthetic" and "limit_groups_none" in limits and "limit_dither_none" in limits
