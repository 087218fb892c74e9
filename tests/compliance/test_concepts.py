"""What the words around a phrase say of whose attribute it is."""

import re

import pytest

from backend.compliance.concepts import Context, Pattern
from backend.compliance.phrases import FeatureTexts, Phrase

CONTEXT = Context(
    persons=frozenset({"owner", "applicant"}),
    objects=frozenset({"portfolio", "ship", "bovino"}),
    trades=frozenset({"sector"}),
    objects_zh=("船舶",),
    trades_zh=("设备",),
)


@pytest.mark.parametrize(
    ("phrase", "meaning", "hit"),
    [
        ("health", "Health of the loan portfolio", ""),
        ("health", "Portfolio health", ""),
        ("health", "Health score of the portfolio", ""),
        ("health", "Health score of the portfolio's owner", "Health"),
        ("health", "Health score of the applicant", "Health"),
        ("health", "Health sector", ""),
        ("health", "Health of the applicant", "Health"),
        ("nationality", "Nationality of the ship's owner", "Nationality"),
        ("nationality", "Nationality of the ship", ""),
        ("nationality", "Ship owner nationality", "nationality"),
        ("sexo", "Sexo do bovino", ""),
        ("国籍", "船舶的国籍", ""),
        ("国籍", "船员国籍", "国籍"),
        ("医疗", "医疗设备余额", ""),
        ("医疗", "医疗支出", "医疗"),
    ],
)
def test_an_objects_attribute_is_nobodys(phrase, meaning, hit):
    found = Pattern([Phrase.of(phrase, {})], context=CONTEXT).find(FeatureTexts.of("x1", meaning))
    assert (found or ("", ""))[0] == hit


@pytest.mark.parametrize(
    ("name", "meaning", "counts"),
    [
        ("smoke_ok", "Build passed", False),
        ("smoke_ok", "", True),
        ("smoke_ok", "Flag", True),
        ("gender", "Build passed", True),
    ],
)
def test_in_a_name_all_but_plain_words_need_a_meaning_that_does_not_say_otherwise(name, meaning, counts):
    context = Context(fillers=frozenset({"flag"}), plain=frozenset({"gender"}))
    pattern = Pattern([Phrase.of("smoke|gender", {})], context=context)
    assert bool(pattern.find(FeatureTexts.of(name, meaning))) == counts


FIRMS = Context(
    persons_zh=("客户", "人"),
    nobody_zh=re.compile("客户端|人民币"),
    firm_zh=re.compile("企业|机房"),
    at_firm_zh=re.compile("在.{0,4}?企业"),
)


@pytest.mark.parametrize(
    ("meaning", "hit"),
    [
        ("企业现金流健康指数", ""),
        ("健康检查的机房数", ""),
        ("企业人民币账户的健康评分", ""),
        ("企业客户端健康状态", ""),
        ("企业客户本人的健康状况", "健康"),
        ("在某家企业的健康档案", "健康"),
        ("残疾人所在企业的健康登记", "健康"),
        ("健康状况", "健康"),
    ],
)
def test_a_chinese_text_about_a_firm_without_a_person_is_about_nobody(meaning, hit):
    found = Pattern([Phrase.of("健康", {})], context=FIRMS).find(FeatureTexts.of("x1", "", meaning))
    assert (found or ("", ""))[0] == hit


@pytest.mark.parametrize(
    ("meaning", "meaning_zh", "found"),
    [
        ("Imputation flag for sex", "", False),
        ("Sex, imputation flag", "", False),
        ("Sex of the applicant", "", True),
        ("", "性别插补标志", False),
        ("", "性别标志", True),
    ],
)
def test_how_a_value_came_about_is_nobodys_attribute(meaning, meaning_zh, found):
    context = Context.of({"record": ("imputation flag", "插补标志")})
    pattern = Pattern([Phrase.of("sex", {}), Phrase.of("性别", {})], context=context)
    assert bool(pattern.find(FeatureTexts.of("q7", meaning, meaning_zh))) == found


WEAK = Pattern(
    [Phrase.of(source, {}) for source in ("street|address", "社区")], weak=["street", "社区"], context=CONTEXT
)


@pytest.mark.parametrize(
    ("name", "meaning", "meaning_zh", "hit", "asks"),
    [
        ("x1", "Noise from the street", "", "", True),
        ("x1", "Street", "", "Street", True),
        ("street_noise", "", "", "", True),
        ("x1", "Street address", "", "address", True),
        ("x1", "Address", "", "Address", False),
        ("x1", "", "社区意见", "", True),
        ("x1", "", "社区", "社区", True),
        ("x1", "Noise", "", "", False),
    ],
)
def test_a_weak_sign_counts_where_it_stands_alone_and_asks_among_other_words(name, meaning, meaning_zh, hit, asks):
    texts = FeatureTexts.of(name, meaning, meaning_zh)
    found = WEAK.find(texts)
    assert ((found[0] if found else ""), WEAK.asks(texts)) == (hit, asks)
