"""Assessing a dictionary: what decides, what takes precedence, in which order, in which words."""

import datetime as dt

import pytest

from backend.compliance.assessment import SEVERITY, UNUSED, Usage, assess, with_evidence
from backend.compliance.rule_pack import load_packs
from backend.data.credit_card import CREDIT_CARD_FEATURES
from backend.data.dictionary import Feature
from backend.fairness.evidence import Evidence
from backend.i18n import Text

DAY = dt.date(2026, 11, 20)


def feature(name="x1", meaning="A column", **more) -> tuple[str, Feature]:
    return "platform", Feature(name=name, meaning=meaning, **more)


def used(gain=0.1) -> Usage:
    return Usage(splits=2, trees=1, gain_share=gain, cover_share=0.2)


def pack(name):
    return next(p for p in load_packs() if p.name == name)


def rules(*features, usage=None):
    """By the ECOA pack alone."""
    return [f.rule_id for f in assess(features, usage or {}, [pack("ecoa")], on=DAY).findings]


def duties(day):
    return {duty.rule_id: duty for duty in assess([], {}, on=day).duties}


def test_the_credit_card_dictionary_has_two_prohibited_and_one_conditional_feature():
    report = assess([("platform", f) for f in CREDIT_CARD_FEATURES.values()], {}, on=DAY)
    assert {f.feature: f.status for f in reversed(report.findings)} == {  # the worst of each
        "SEX": "prohibited",
        "MARRIAGE": "prohibited",
        "AGE": "conditional",
    }
    assert report.assessed == 23


def test_a_finding_holds_rule_citation_date_match_and_use():
    client = feature("SEX", Text("Sex of the client", "客户性别"))
    (finding,) = assess([client], {"SEX": used()}, [pack("ecoa")], on=DAY).findings
    assert finding.rule_id == "ecoa_sex"
    assert finding.pack.en == "ECOA / Regulation B"
    assert finding.jurisdiction == "United States"
    assert finding.as_of == "2026-11-24"
    assert "12 CFR 1002" in finding.citation.en
    assert (finding.party, finding.feature, finding.matched, finding.matched_in) == ("platform", "SEX", "SEX", "name")
    assert finding.usage == used()


def test_the_match_is_in_the_name_before_the_meanings():
    found = [
        assess([feature("sex")], {}, on=DAY).findings[0],
        assess([feature(meaning=Text("Sex", "性别"))], {}, on=DAY).findings[0],
        assess([feature(meaning=Text("A column", "性别"))], {}, on=DAY).findings[0],
    ]
    assert [f.matched_in for f in found] == ["name", "meaning", "chinese_meaning"]
    assert [f.matched for f in found] == ["sex", "Sex", "性别"]


def test_a_sensitivity_tag_decides_the_rule_alone():
    (finding,) = assess([feature("age", sensitivity="Marital-Status")], {}, on=DAY).findings
    assert (finding.rule_id, finding.matched, finding.matched_in) == (
        "ecoa_marital_status",
        "Marital-Status",
        "sensitivity",
    )


def test_the_tag_none_sets_a_match_aside_and_keeps_it_visible():
    report = assess([feature("SEX", sensitivity="none")], {}, [pack("ecoa")], on=DAY)
    assert report.findings == ()
    assert [f.rule_id for f in report.set_aside] == ["ecoa_sex"]


def test_a_tag_that_no_rule_knows_cannot_hide_a_match():
    assert rules(feature("SEX", sensitivity="sx")) == ["ecoa_sex"]


def test_one_feature_can_touch_two_rules():
    assert set(rules(feature("sex_and_age"))) == {"ecoa_sex", "ecoa_age"}


def test_a_meaning_about_a_thing_cancels_an_ambiguous_name_but_not_a_clear_one():
    assert rules(feature("age", "Age of the account")) == []
    assert rules(feature("age", Text("Column", "账户年龄"))) == []
    assert rules(feature("sex", "Gender-neutral code")) == ["ecoa_sex"]


def test_the_worst_comes_first_used_before_unused_and_what_is_prohibited_as_the_law_lists_it():
    dictionary = [feature("age"), feature("religion"), feature("sex"), feature("marital_status"), feature("dob")]
    usage = {"sex": used(0.1), "marital_status": used(0.3), "dob": used(0.9)}
    findings = assess(dictionary, usage, [pack("ecoa")], on=DAY).findings
    assert [f.feature for f in findings] == ["sex", "marital_status", "religion", "dob", "age"]
    assert findings[2].usage == UNUSED
    assert SEVERITY == ("prohibited", "conditional", "indicator", "informational")


def test_a_rule_makes_findings_only_while_it_is_in_force_and_is_listed_before_and_after():
    sex = next(rule for rule in pack("ecoa").rules if rule.id == "ecoa_sex")
    ended = sex.model_copy(update={"effective_to": dt.date(2026, 6, 30)})
    old = [pack("ecoa").model_copy(update={"rules": (ended,)})]
    last = assess([feature("sex")], {}, old, on=dt.date(2026, 6, 30))
    after = assess([feature("sex")], {}, old, on=dt.date(2026, 7, 1))
    before = assess([feature("sex")], {}, old, on=dt.date(2000, 1, 1))
    assert [f.force for f in last.findings] == ["in_force"] and last.not_in_force == ()
    assert after.findings == before.findings == ()
    assert [(f.force, f.effective_to) for f in after.not_in_force] == [("ended", "2026-06-30")]
    assert [(f.force, f.effective_from) for f in before.not_in_force] == [("not_yet", "2011-12-30")]


def test_without_a_day_the_law_of_today_is_applied():
    report = assess([feature("sex")], {})
    assert "ecoa_sex" in {finding.rule_id for finding in report.findings}
    assert report.on == dt.date.today().isoformat()


def test_rules_about_the_model_are_duties_and_never_findings():
    report = assess([feature("sex"), feature("notice"), feature("score")], {}, on=DAY)
    model_wide = {rule.id for p in load_packs() for rule in p.rules if rule.scope == "model"}
    assert {duty.rule_id for duty in report.duties} == model_wide
    assert not model_wide & {f.rule_id for f in report.findings}
    assert all(duty.evidence.en and duty.evidence.zh for duty in report.duties)


@pytest.mark.parametrize(
    ("rule", "day", "force"),
    [
        ("ecoa_effects_test", dt.date(2026, 7, 20), "in_force"),
        ("ecoa_effects_test", dt.date(2026, 7, 21), "ended"),
        ("ecoa_neutral_proxy", dt.date(2026, 7, 20), "not_yet"),
        ("ecoa_neutral_proxy", dt.date(2026, 7, 21), "in_force"),
        ("model_risk_sr_11_7", dt.date(2026, 4, 16), "in_force"),
        ("model_risk_sr_11_7", dt.date(2026, 4, 17), "ended"),
        ("model_risk_sr_26_2", dt.date(2026, 4, 16), "not_yet"),
        ("model_risk_sr_26_2", dt.date(2026, 4, 17), "in_force"),
        ("colorado_notice", DAY, "not_yet"),
        ("colorado_notice", dt.date(2027, 1, 1), "in_force"),
        ("ai_act_data", dt.date(2027, 12, 1), "not_yet"),
        ("ai_act_explanation", dt.date(2027, 12, 2), "in_force"),
        ("pipl_impact_assessment", DAY, "in_force"),
        ("jrt_disclosure", DAY, "in_force"),
    ],
)
def test_each_day_has_its_own_law(rule, day, force):
    assert duties(day)[rule].force == force


def test_duties_in_force_come_first_then_those_to_come_then_those_that_ended():
    forces = [duty.force for duty in assess([], {}, on=DAY).duties]
    assert forces == sorted(forces, key=("in_force", "not_yet", "ended").index)
    assert set(forces) == {"in_force", "not_yet", "ended"}


def test_one_feature_is_a_finding_of_every_law_that_concerns_it():
    found = {f.rule_id: f.status for f in assess([feature("religion")], {}, on=DAY).findings}
    assert found == {
        "ecoa_religion": "prohibited",
        "eu_credit_special_categories": "prohibited",
        "china_credit_barred_data": "prohibited",
        "uk_equality": "prohibited",
        "fha_bases": "conditional",
        "gdpr_religion": "conditional",
        "pipl_religion": "conditional",
    }


@pytest.mark.parametrize("name", ["sex", "age", "marital_status"])
def test_sex_age_and_marital_status_are_no_special_categories_of_the_gdpr(name):
    assert assess([feature(name)], {}, [pack("gdpr")], on=DAY).findings == ()


def test_the_four_claims_are_kept_apart_and_not_assessed_differs_from_nothing_found():
    tie = Evidence(about=Text("basket_mix"), measure="Cramér's V", n=900, value=0.41, low=0.35, high=0.47)
    small = Evidence(about=Text("other"), measure="selection rate", n=4, value=None, low=None, high=None)
    bare = assess([feature("sex"), feature("religion"), feature("race")], {"sex": used()}, [pack("ecoa")], on=DAY)
    report = with_evidence(bare, {"sex": (tie,), "religion": ()}, {"sex": (small,)}, {})
    sex, *_ = report.findings
    religion = next(f for f in report.findings if f.feature == "religion")
    race = next(f for f in report.findings if f.feature == "race")
    assert (sex.usage, sex.proxies, sex.disparities, sex.status) == (used(), (tie,), (small,), "prohibited")
    assert (religion.proxies, religion.disparities) == ((), None)
    assert (race.proxies, race.disparities) == (None, None)


def test_the_report_names_its_packs_their_dates_and_what_could_not_be_applied():
    report = assess([], {}, on=DAY, problems=["own.yaml, line 3: found a tab."])
    stamps = {stamp.name: stamp for stamp in report.packs}
    assert set(stamps) == {
        "ecoa", "fcra", "four_fifths", "gdpr", "ai_act", "model_risk", "colorado", "pipl", "jrt", "eu_credit", "eu_equality", "fha",
        "us_states", "california_admt", "china_credit", "uk", "asia_pacific_canada", "indicators",
    }  # fmt: skip
    assert {stamp.as_of.isoformat() for stamp in report.packs} == {"2026-11-01", "2026-11-22", "2026-11-30"}
    assert all(stamp.applies_to.en and stamp.applies_to.zh for stamp in report.packs)
    assert all(stamp.built_in for stamp in report.packs)
    assert (report.on, report.words, report.problems) == ("2026-11-20", "15.3", ("own.yaml, line 3: found a tab.",))


def test_every_base_that_the_law_names_has_a_rule():
    assert {rule.id.removeprefix("ecoa_") for rule in pack("ecoa").rules} >= {
        "race",
        "color",
        "religion",
        "national_origin",
        "sex",
        "marital_status",
        "age",
        "public_assistance",
        "ccpa_rights",
        "childbearing",
        "telephone_listing",
        "income_kind",
    }
    assert {rule.id.removeprefix("gdpr_") for rule in pack("gdpr").rules} >= {
        "health",
        "religion",
        "ethnic_origin",
        "politics",
        "union",
        "genetics",
        "biometrics",
        "sex_life",
    }


@pytest.mark.parametrize(
    ("name", "rule", "status"),
    [
        ("sex", "eu_equality_sex", "prohibited"),
        ("sex", "china_credit_equal_treatment", "conditional"),
        ("age", "eu_credit_age", "conditional"),
        ("age", "china_credit_equal_treatment", "conditional"),
        ("nationality", "eu_credit_nationality", "conditional"),
        ("nationality", "china_credit_equal_treatment", "conditional"),
        ("criminal_record", "china_credit_sensitive_standard", "conditional"),
        ("zip_code", "indicator_region", "indicator"),
        ("first_name", "indicator_personal_name", "indicator"),
    ],
)
def test_europe_and_china_have_rules_of_their_own_and_proxies_a_pack_apart(name, rule, status):
    found = {f.rule_id: f.status for f in assess([feature(name)], {}, on=dt.date(2026, 11, 22)).findings}
    assert found[rule] == status


def test_the_consumer_credit_directive_applies_from_its_day():
    rules_on = [
        {f.rule_id for f in assess([feature("religion")], {}, on=day).findings}
        for day in (dt.date(2026, 11, 19), dt.date(2026, 11, 20))
    ]
    assert ["eu_credit_special_categories" in found for found in rules_on] == [False, True]


@pytest.mark.parametrize("rule", [rule for p in load_packs() for rule in p.rules], ids=lambda rule: rule.id)
def test_a_rule_speaks_both_languages_and_promises_no_more_than_an_assessment(rule):
    chinese = (rule.title.zh, rule.explanation.zh, rule.remedy.zh, *([rule.evidence.zh] if rule.evidence else []))
    assert all(any("一" <= c <= "鿿" for c in text) for text in chinese)
    words = " ".join((rule.title.en, rule.explanation.en, rule.remedy.en, rule.evidence.en)).lower()
    assert not any(word in words for word in ("compliant", "unbiased", "debiased", " safe"))
    assert "合规" not in "".join(chinese).replace("合规审计", "")  # the name of a regulation


@pytest.mark.parametrize(
    ("name", "meaning", "more", "asked"),
    [
        ("zq17", "Zq 17 (no meaning given)", {}, True),
        ("wave_3", "Wave 3 (no meaning given)", {}, True),
        ("zq17", "ZQ17", {}, True),  # only repeats the name
        ("zq17", "Field 17 of the record", {}, True),  # says nothing
        ("zq17", "Overdue amount", {}, False),
        ("zq17", Text("Zq17", "逾期金额"), {}, False),
        ("zq17", "Zq17", {"categories": {"1": "Instalment", "2": "Revolving"}}, False),
        ("逾期金额", "逾期金额 (no meaning given)", {}, False),
        ("avg_loan_amount_12m", "Avg loan (no meaning given)", {}, False),
        ("avg_x", "Avg x (no meaning given)", {}, True),  # words that stand beside others alone
        ("loan_zq", "Loan zq (no meaning given)", {}, True),
        ("zq17", "Zq 17 (no meaning given)", {"sensitivity": "none"}, False),  # the owner has answered
        ("zq17", "Zq 17 (no meaning given)", {"sensitivity": "sex"}, False),
        ("zq17", "Zq 17 (no meaning given)", {"sensitivity": "no_such_tag"}, True),
        ("gender", "Gender (no meaning given)", {}, False),  # flagged
    ],
)
def test_what_no_rule_finds_and_nobody_explains_is_not_understood(name, meaning, more, asked):
    report = assess([feature(name, meaning, **more)], {}, on=DAY)
    assert [(one.party, one.feature) for one in report.not_understood] == ([("platform", name)] if asked else [])
    assert not (report.not_understood and report.findings)
