"""When rules begin and end to apply, what changed since a day, and what was checked too long ago."""

import datetime as dt

import pytest

from backend.compliance.assessment import assess, wording
from backend.compliance.calendar import law_calendar, stale_rules
from backend.compliance.rule_pack import load_packs
from backend.data.dictionary import Feature
from backend.i18n import Catalogue

DAY = dt.date(2026, 11, 22)


def ids(dates):
    return [date.rule_id for date in dates]


def test_what_is_coming_stands_in_the_order_of_its_days():
    found = law_calendar(load_packs(), DAY)
    days = [date.day for date in found.coming]
    assert days == sorted(days) and min(days) > "2026-11-22"
    assert {"california_admt_notice", "canada_e23", "ai_act_rights_assessment"} <= set(ids(found.coming))
    assert {"ecoa_effects_test", "model_risk_sr_11_7"} <= set(ids(found.ended))


@pytest.mark.parametrize(
    ("since", "changed"), [(dt.date(2026, 11, 19), True), (dt.date(2026, 11, 20), False), (None, False)]
)
def test_what_changed_since_the_last_report_is_named(since, changed):
    assert ("eu_credit_automated" in ids(law_calendar(load_packs(), DAY, since).changed)) == changed


def test_the_consumer_credit_directive_is_in_force_from_its_day_and_coming_before():
    for day, is_in_force in (
        (dt.date(2026, 11, 19), False),
        (dt.date(2026, 11, 20), True),
        (dt.date(2026, 11, 24), True),
    ):
        found = law_calendar(load_packs(), day, dt.date(2026, 11, 18))
        of_directive = {rule.id for pack in load_packs() if pack.name == "eu_credit" for rule in pack.rules}
        coming, changed = (
            {date.rule_id: (date.change, date.day) for date in dates if date.rule_id in of_directive}
            for dates in (found.coming, found.changed)
        )
        assert {d.change_on(found.on) for d in found.coming if d.change == "starts"} == {"starts"}
        assert {d.change_on(found.on) for d in found.changed} <= {"started", "ends"}
        said, silent = (changed, coming) if is_in_force else (coming, changed)
        assert said == dict.fromkeys(of_directive, ("starts", "2026-11-20")) and len(said) == 8 and not silent


def test_a_rule_that_ends_today_still_holds_and_is_to_come_to_its_end():
    found = law_calendar(load_packs(), dt.date(2026, 7, 20), dt.date(2026, 7, 1))
    assert ("ecoa_effects_test", "ends") in [(date.rule_id, date.change) for date in found.coming]
    assert "ecoa_effects_test" not in ids(found.ended)


def test_a_rule_is_stale_a_year_after_it_was_checked():
    assert stale_rules(load_packs(), DAY) == ()
    assert "ecoa_records" not in ids(stale_rules(load_packs(), dt.date(2027, 11, 1)))
    assert "ecoa_records" in ids(stale_rules(load_packs(), dt.date(2027, 11, 2)))


def test_every_duty_says_of_whom_it_demands_something_and_whether_it_was_checked():
    duties = [(pack, rule) for pack in load_packs() for rule in pack.rules if rule.scope == "model"]
    assert all(rule.whom for _, rule in duties)
    assert {who for _, rule in duties for who in rule.whom} == {"bank", "host", "vendor"}
    new = {rule.id: rule.checked or pack.checked for pack, rule in duties}
    assert (new["ecoa_records"], new["fcra_risk_based_pricing"], new["china_credit_gbt_45574"]) == (
        "source",
        "source",
        "not",
    )


@pytest.mark.parametrize(
    "rule",
    [
        "eu_credit_special_categories",
        "eu_credit_automated",
        "eu_equality_sex",
        "ai_act_risk_management",
        "ai_act_deployer",
        "ai_act_rights_assessment",
        "gdpr_joint_controllers",
        "gdpr_impact_assessment",
        "china_credit_barred_data",
        "china_credit_licence",
        "china_credit_audit",
        "china_credit_data_security",
        "china_credit_gbt_45574",
        "china_credit_internet_loans",
        "fcra_adverse_action",
        "fcra_third_party_information",
        "fcra_risk_based_pricing",
        "fcra_reporting_agency",
        "fha_bases",
        "us_states_further_bases",
        "california_admt_notice",
        "uk_equality",
        "uk_automated_decisions",
        "singapore_feat",
        "canada_e23",
        "india_digital_lending",
        "hong_kong_ai",
        "korea_ai_basic",
    ],
)
def test_the_acts_that_were_missing_are_there(rule):
    assert rule in {each.id for pack in load_packs() for each in pack.rules}


def test_every_rule_has_its_wording_or_says_that_it_is_a_paraphrase():
    laws = [*(found := assess([("p", Feature(name="SEX", meaning="Sex"))], {})).duties, *found.findings]
    said = {law.rule_id: wording(Catalogue("en"), law.quote, law.quote_from.en, law.as_of, law.checked) for law in laws}
    words = Catalogue("en")
    paraphrased = tuple(words(f"law.paraphrase_{checked}") for checked in ("source", "not", "none"))
    for law in laws:
        language = (
            "zh" if law.rule_id.startswith(("pipl", "china")) else "ko" if law.rule_id.startswith("korea") else "en"
        )
        quoted = words(f"law.quoted_{language}", quote=law.quote, source=law.quote_from.en.rstrip("."), day=law.as_of)
        assert said[law.rule_id] == quoted if law.quote else said[law.rule_id] in paraphrased
    assert len(said) > 40
    assert not any(
        "\u4e00" <= letter <= "\u9fff" for law in laws for letter in law.quote_from.en.split("github.com")[0]
    )
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in law.quote_from.zh) for law in laws if law.quote)
    assert "shall perform an assessment" in said["ai_act_rights_assessment"]
    assert "eur-lex" in said["ai_act_deployer"] and "2026-11-23" in said["ai_act_deployer"]
    assert said["china_credit_gbt_45574"] == words("law.paraphrase_not") != said["ecoa_sex"]
    found = law_calendar(load_packs(), DAY)
    assert {law.rule_id for law in laws if law.checked == "not"} < {rule.rule_id for rule in found.unchecked}
    assert found.quoted == sum(bool(rule.quote) for pack in load_packs() for rule in pack.rules) >= 16
    assert not any(
        rule.quote for pack in load_packs() for rule in pack.rules if (rule.checked or pack.checked) != "source"
    )
