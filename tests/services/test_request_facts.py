"""What a Host's operator reads before deciding: who asks, what for, own columns, bits, what splits tell apart, and the terms needed."""

import math
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from backend.data.dictionary import Feature
from backend.data.table import PartyTable
from backend.i18n import Text
from backend.link.agreement import Purpose
from backend.remark import Remark
from backend.services.request_facts import (
    BITS,
    GIVE_AWAY,
    WHAT_FOR,
    WHO,
    Counterparts,
    ToldApart,
    facts_of,
    proposal_of,
    told_apart,
)
from backend.store.accountant import Limits
from backend.store.approvals import Approval
from backend.trees.ensemble import Fork, HostModel, Skeleton, SplitRule

TODAY = date(2026, 11, 29)
END = TODAY + timedelta(days=10)
LIMITS = Limits(1)
OWN = {
    "bill": Feature(name="bill", meaning=Text("Monthly bill", "月账单")),
    "age": Feature(name="age", meaning=Text("Age", "年龄")),
}


def purpose(*kinds: str) -> Purpose:
    return Purpose(
        name="score",
        title=Text("Credit scores", "信用评分"),
        legal_basis=Text("Consent"),
        kinds=kinds,
        dictionaries={},
        retention_days=30,
        valid_until=END,
    )


AGREED = Counterparts(
    {"bank": Text("Linden Bank")}, (purpose("DecisionVectors", "StartTraining"), purpose("AskReasons"))
)
ABOUT = {"trees": 2, "own_trees": 1, "own_splits": 1, "rows": 40, "capacity": 2.5, "hosts": ["shop"]}
SCORING = Approval(guest="bank", purpose="scoring", subject="s" * 64, name="m1", about=ABOUT)
TERMS = {"algorithm": "secureboost", "trees": 3, "depth": 2, "bins": 8, "exclude": ["age"], "epsilon": 0.0, "rows": 90}
TRAINING = Approval(guest="bank", purpose="training", subject="t" * 64, name="secureboost", about=TERMS)


def codes(
    approval: Approval, counterparts: Counterparts = AGREED, used: tuple[str, ...] = ("bill", "bill")
) -> list[str]:
    facts = facts_of(approval, counterparts, OWN, used, LIMITS, 0.0, ToldApart(10, 4, 0.2))
    return [fact.value.code for fact in facts if not isinstance(fact.value, Text)]


def test_the_purpose_comes_from_the_agreement_with_its_legal_basis_and_retention() -> None:
    facts = facts_of(SCORING, AGREED, OWN, ("bill",), LIMITS, 0.0, None)
    assert [fact.value for fact in facts if fact.label == WHO] == [Text("Linden Bank")]
    [purpose] = [fact.value for fact in facts if fact.label == WHAT_FOR]
    assert purpose.values == {
        "title": Text("Credit scores", "信用评分"),
        "basis": Text("Consent"),
        "days": 30,
        "until": END,
    }
    assert "信用评分" in purpose.sentence("zh") and "Credit scores" in purpose.sentence("en")
    assert codes(SCORING).count("request_purpose") == 1


def test_a_question_that_no_purpose_allows_is_said_to_be_outside_the_agreement() -> None:
    other = Approval(guest="bank", purpose="validation", subject="v" * 64, name="m1", about=ABOUT)
    assert "request_purpose_not_agreed" in codes(other)
    assert "request_purpose_unstated" in codes(SCORING, Counterparts())


def test_own_columns_are_named_by_their_meaning_and_counted_once() -> None:
    facts = {fact.label.en: fact.value for fact in facts_of(SCORING, AGREED, OWN, ("bill", "bill"), LIMITS, 0.0, None)}
    assert facts["Our columns"].values == {"count": 1, "total": 2, "names": (Text("Monthly bill", "月账单"),)}
    facts = {fact.label.en: fact.value for fact in facts_of(TRAINING, AGREED, OWN, (), LIMITS, 0.0, None)}
    assert facts["Our columns"].values["names"] == (Text("Monthly bill", "月账单"),)  # age is left out


def test_a_part_of_a_model_that_is_not_here_is_not_said_to_use_no_column() -> None:
    assert "request_columns_unknown" in codes(SCORING, used=())
    none = Approval(guest="bank", purpose="scoring", subject="s" * 64, name="m1", about={**ABOUT, "own_splits": 0})
    assert "request_columns_none" in codes(none, used=())


def test_bits_are_stated_for_a_person_and_in_sum() -> None:
    facts = facts_of(SCORING, AGREED, OWN, ("bill",), LIMITS, 0.0, None)
    assert facts[0].label == BITS and facts[0].value == Remark("request_bits", {"answers": 3, "bits": 2.5})
    assert {fact.label.en: fact.value for fact in facts}["In sum"].values == {"bits": 100.0, "people": 40}


def test_bits_are_held_against_what_a_training_on_all_our_columns_could_tell() -> None:
    """Two columns of 90 records: 2 · log2(4 · 90 + 2) = 17.0 bits; what is above that has no such measure."""
    facts = facts_of(SCORING, AGREED, OWN, ("bill",), LIMITS, 0.0, None, records=90)
    assert facts[1].value == Remark("request_bits_whole", {"answers": 17, "total": 2})
    more = replace(SCORING, about={**ABOUT, "capacity": 18.0})
    for approval, records in ((more, 90), (SCORING, 0)):
        codes = [
            fact.value.code
            for fact in facts_of(approval, AGREED, OWN, ("bill",), LIMITS, 0.0, None, records)
            if isinstance(fact.value, Remark)
        ]
        assert "request_bits" in codes and "request_bits_whole" not in codes


def test_the_guests_measure_is_marked_as_its_word_and_the_hosts_own_stands_beside_it() -> None:
    about = {**ABOUT, "named": 0.03, "most_named": 0.05}
    stated = Approval(guest="bank", purpose="scoring", subject="s" * 64, name="m1", about=about)
    assert {"request_named", "request_alone"} <= set(codes(stated))
    assert "request_named_unmeasured" in codes(SCORING)


def test_what_a_screening_gives_away_is_read_in_a_sentence_and_in_bits() -> None:
    about = {"rows": 400, "features": 3, "bits": 17.5, "least": 25}
    asked = Approval(guest="bank", purpose="screening", subject="s" * 64, name="sums by group", about=about)
    facts = facts_of(asked, AGREED, OWN, (), LIMITS, 0.5, None)
    given = [fact.value for fact in facts if fact.label == GIVE_AWAY]
    assert [remark.code for remark in given] == ["request_screening", "request_sums_named"]
    assert given[0].values == {"least": 25}
    facts_by_label = {fact.label.en: fact.value for fact in facts}
    assert facts_by_label["Reveals about a person"].values == {"answers": 18, "bits": 17.5, "features": 3}
    # A person counts once a feature, so that the terms that are proposed let the whole screening through.
    assert proposal_of(asked, AGREED, LIMITS, TODAY).per_day == 1200


@pytest.mark.parametrize(("allowed", "bound"), [(0.05, "5 %"), (1.0, "100 %"), (math.nan, "100 %")])
def test_the_exception_that_a_training_is_asked_with_is_read_before_it_is_approved(allowed: float, bound: str) -> None:
    asked = replace(TRAINING, about={**TRAINING.about, "most_named": allowed})
    facts = facts_of(asked, AGREED, OWN, (), LIMITS, 0.0, None)
    [remark] = [fact.value for fact in facts if fact.label == GIVE_AWAY]
    assert isinstance(remark, Remark) and (remark.code, remark.values["bound"]) == ("request_most_named", bound)


def test_what_own_splits_tell_apart_is_counted_over_the_hosts_records() -> None:
    skeleton = Skeleton({0: Fork("shop", 1, 2)})
    rules = {(0, 0): SplitRule("bill", False, 10.0)}
    model = HostModel("shop", "bank", ("shop",), (skeleton,), rules, "salt")
    table = PartyTable("shop", ("a", "b", "c", "d"), {"bill": np.array([5.0, 20.0, 30.0, 40.0])})
    assert told_apart(model, table) == ToldApart(4, 2, 0.25)  # "a" alone is below 10
    assert told_apart(HostModel("shop", "bank", ("shop",), (skeleton,), {}, "salt"), table) is None


def test_after_the_agreements_last_day_only_today_can_be_chosen() -> None:
    proposal = proposal_of(SCORING, AGREED, LIMITS, END + timedelta(days=1))
    assert proposal.until == proposal.latest == END + timedelta(days=1)


@pytest.mark.parametrize(
    ("approval", "counterparts", "until", "per_day"),
    [
        (TRAINING, Counterparts(), TODAY + timedelta(days=1), 1),
        (SCORING, Counterparts(), TODAY + timedelta(days=28), 40),
        (SCORING, AGREED, END, 40),  # no longer than the purpose
    ],
)
def test_nothing_is_proposed_longer_or_wider_than_the_purpose_needs(
    approval: Approval, counterparts: Counterparts, until: date, per_day: int
) -> None:
    proposal = proposal_of(approval, counterparts, LIMITS, TODAY)
    assert (proposal.until, proposal.per_day) == (until, per_day)
    assert proposal.latest == (END if counterparts is AGREED else None)
