"""Which bodies of law are applied: those of the places where people live, and of what the model is for."""

from dataclasses import asdict

import pytest

from backend.compliance.assessment import assess
from backend.compliance.rule_pack import load_packs
from backend.data.dictionary import Feature
from backend.i18n import Text

AGE = ("bank", Feature(name="age", kind="numeric", meaning=Text("Age of the applicant", "申请人年龄")))


def packs_of(places=(), product=""):
    return {pack.name for pack in assess([AGE], {}, places=places, product=product).packs}


def test_without_a_place_the_law_of_every_place_is_applied_and_the_report_says_so():
    found = assess([AGE], {})
    assert len(found.packs) == len(load_packs()) and "law of every place is applied" in found.scope.en
    assert "适用各地的法律" in found.scope.zh


@pytest.mark.parametrize(
    ("places", "product", "applied", "left_out"),
    [
        (("us",), "", {"ecoa", "fcra", "fha", "colorado", "california_admt", "us_states"}, {"gdpr", "uk", "pipl"}),
        (("us",), "card", {"ecoa", "fcra", "colorado"}, {"fha", "four_fifths", "eu_credit"}),
        (("us_colorado",), "card", {"ecoa", "colorado"}, {"california_admt", "gdpr"}),
        (("us",), "mortgage", {"fha", "ecoa"}, {"four_fifths"}),
        (("eu", "uk"), "loan", {"gdpr", "ai_act", "eu_credit", "uk"}, {"ecoa", "pipl"}),
        (("china",), "", {"pipl", "jrt", "china_credit"}, {"ecoa", "gdpr", "uk"}),
        ((), "hiring", {"four_fifths", "gdpr"}, {"fha", "ecoa"}),
    ],
)
def test_law_of_other_places_and_products_is_left_out(places, product, applied, left_out):
    found = packs_of(places, product)
    assert applied <= found and not left_out & found and "indicators" in found


def test_what_only_law_of_other_places_looks_for_is_understood_all_the_same():
    """Union membership is a special category in the European Union, and no basis of ECOA."""
    union = (
        "bank",
        Feature(name="union_member", kind="boolean", meaning=Text("Member of a trade union", "是否工会会员")),
    )
    assert assess([union], {}, places=("eu",)).findings
    found = assess([union], {}, places=("us_california",), product="card")
    assert not found.not_understood


def test_findings_duties_and_questions_come_from_the_law_that_is_applied_and_the_rest_is_one_line():
    found = assess([AGE], {}, places=("us",), product="card")
    said = {law.pack.en for law in (*found.findings, *found.not_in_force, *found.duties)}
    assert "ECOA / Regulation B" in said and not said & {"GDPR", "EU AI Act", "Fair Housing Act"}
    everywhere = assess([AGE], {})
    assert {"GDPR", "EU AI Act"} & {duty.pack.en for duty in everywhere.duties}
    assert found.scope.en.startswith("These people live in the United States, and the model is for credit cards.")
    assert "EU AI Act" in found.scope.en and "不" not in found.scope.en and "住在美国" in found.scope.zh
    assert asdict(found)["findings"]  # age is still a finding by the law that applies
