"""Assessing a dictionary: what decides, what wins, in which order, in which words."""

import datetime as dt
from pathlib import Path

import pytest

from backend.assurance.compliance import SEVERITY, UNUSED, Usage, assess, load_packs
from backend.data.credit_card import CREDIT_CARD_FEATURES
from backend.data.dictionary import Feature
from backend.errors import RulePackError

DAY = dt.date(2026, 11, 20)


def feature(name="x1", meaning="A column", **more) -> tuple[str, Feature]:
    return "platform", Feature(name=name, meaning=meaning, **more)


def used(gain=0.1) -> Usage:
    return Usage(splits=2, trees=1, gain_share=gain, cover_share=0.2)


def rules(*features, usage=None):
    return [f.rule_id for f in assess(features, usage or {}, on=DAY).findings]


def test_the_credit_card_dictionary_has_two_prohibited_and_one_conditional_feature():
    report = assess([("platform", f) for f in CREDIT_CARD_FEATURES.values()], {}, on=DAY)
    assert {f.feature: f.status for f in report.findings} == {
        "SEX": "prohibited",
        "MARRIAGE": "prohibited",
        "AGE": "conditional",
    }
    assert report.assessed == 23


def test_a_finding_tells_rule_citation_date_match_place_and_use():
    (finding,) = assess([feature("SEX", "Sex of the client", meaning_zh="客户性别")], {"SEX": used()}, on=DAY).findings
    assert finding.rule_id == "ecoa_sex"
    assert finding.pack == "ECOA / Regulation B"
    assert finding.jurisdiction == "United States"
    assert finding.as_of == "2026-11-01"
    assert "12 CFR 1002" in finding.citation
    assert (finding.party, finding.feature, finding.matched, finding.matched_in) == ("platform", "SEX", "SEX", "name")
    assert finding.usage == used()


def test_the_place_of_the_match_is_the_name_before_the_meanings():
    places = [
        assess([feature("sex")], {}, on=DAY).findings[0],
        assess([feature(meaning="Sex", meaning_zh="性别")], {}, on=DAY).findings[0],
        assess([feature(meaning_zh="性别")], {}, on=DAY).findings[0],
    ]
    assert [f.matched_in for f in places] == ["name", "meaning", "meaning_zh"]
    assert [f.matched for f in places] == ["sex", "Sex", "性别"]


def test_a_sensitivity_tag_decides_the_rule_alone():
    (finding,) = assess([feature("age", sensitivity="Marital-Status")], {}, on=DAY).findings
    assert (finding.rule_id, finding.matched, finding.matched_in) == (
        "ecoa_marital_status",
        "Marital-Status",
        "sensitivity",
    )


def test_the_tag_none_sets_a_match_aside_and_keeps_it_visible():
    report = assess([feature("SEX", sensitivity="none")], {}, on=DAY)
    assert report.findings == ()
    assert [f.rule_id for f in report.set_aside] == ["ecoa_sex"]


def test_a_tag_that_no_rule_knows_cannot_hide_a_match():
    assert rules(feature("SEX", sensitivity="sx")) == ["ecoa_sex"]


def test_one_feature_can_touch_two_rules():
    assert set(rules(feature("sex_and_age"))) == {"ecoa_sex", "ecoa_age"}


def test_a_meaning_of_a_thing_takes_back_an_ambiguous_name_but_not_a_plain_one():
    assert rules(feature("age", "Age of the account")) == []
    assert rules(feature("age", "Column", meaning_zh="账户年龄")) == []
    assert rules(feature("sex", "Gender-neutral code")) == ["ecoa_sex"]


def test_the_worst_comes_first_and_used_before_unused():
    dictionary = [feature("age"), feature("religion"), feature("sex"), feature("marital_status"), feature("dob")]
    usage = {"sex": used(0.1), "marital_status": used(0.3), "dob": used(0.9)}
    findings = assess(dictionary, usage, on=DAY).findings
    assert [f.feature for f in findings] == ["marital_status", "sex", "religion", "dob", "age"]
    assert findings[2].usage == UNUSED
    assert SEVERITY == ("prohibited", "conditional", "indicator", "informational")


def test_a_rule_applies_only_while_it_is_in_force():
    (pack,) = load_packs()
    sex = next(rule for rule in pack.rules if rule.id == "ecoa_sex")
    ended = sex.model_copy(update={"effective_to": dt.date(2026, 6, 30)})
    old = [pack.model_copy(update={"rules": (ended,)})]
    assert len(assess([feature("sex")], {}, old, on=dt.date(2026, 6, 30)).findings) == 1
    assert assess([feature("sex")], {}, old, on=dt.date(2026, 7, 1)).findings == ()
    assert assess([feature("sex")], {}, old, on=dt.date(2000, 1, 1)).findings == ()


def test_without_a_day_the_law_of_today_is_applied():
    assert len(assess([feature("sex")], {}).findings) == 1


def test_the_report_names_its_packs_and_their_dates():
    (stamp,) = assess([], {}, on=DAY).packs
    assert (stamp.name, stamp.version, stamp.as_of) == ("ecoa", "1.0", "2026-11-01")


def test_every_base_that_the_law_names_has_a_rule_in_both_languages():
    (pack,) = load_packs()
    assert {rule.id.removeprefix("ecoa_") for rule in pack.rules} >= {
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
    for rule in pack.rules:
        assert rule.phrases_zh
        assert all(
            any("一" <= c <= "鿿" for c in text) for text in (rule.title_zh, rule.explanation_zh, rule.remedy_zh)
        )


def test_no_text_of_a_rule_promises_more_than_an_assessment():
    (pack,) = load_packs()
    for rule in pack.rules:
        words = " ".join((rule.title, rule.explanation, rule.remedy)).lower()
        assert not any(word in words for word in ("compliant", "unbiased", "debiased", " safe"))


def test_two_packs_may_not_share_a_name_or_a_rule(tmp_path):
    built_in = Path(__file__).parents[2] / "backend" / "assurance" / "rules" / "ecoa.yaml"
    text = built_in.read_text(encoding="utf-8")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "b.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RulePackError, match="pack name ecoa in two packs"):
        load_packs(tmp_path)
    (tmp_path / "b.yaml").write_text(text.replace("name: ecoa\n", "name: other\n"), encoding="utf-8")
    with pytest.raises(RulePackError, match="rule id ecoa_age"):
        load_packs(tmp_path)


def test_a_folder_without_packs_is_refused(tmp_path):
    with pytest.raises(RulePackError, match="found no rule pack"):
        load_packs(tmp_path)
