"""One word an idea in both catalogues, Chinese set as Chinese is, and units and codes in the reader's language."""

import re
import tomllib
from importlib.resources import files
from itertools import product

import pytest

from app.glossary import terms
from app.panels.person import shown
from app.texts import Texts
from backend.data.credit_card import CREDIT_CARD_FEATURES as CREDIT_CARD
from backend.data.demo import DICTIONARY
from backend.data.dictionary import Feature, Kind
from backend.data.dictionary_file import read_dictionary
from backend.i18n import LANGUAGES, Text, catalogue, fill

AVOID = tomllib.loads((files("assets") / "glossary.toml").read_text(encoding="utf-8"))["avoid"]
CHINESE = "[\u4e00-\u9fff]"
ZH, EN = Texts("zh"), Texts("en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_uses_a_word_that_is_avoided(language: str) -> None:
    words = [(word, right) for right, wrong in AVOID[language].items() for word in wrong]
    glossary = {term.words["en"]: f"{term.words[language]} {term.meaning(language)}" for term in terms()}
    used = [
        f"{key}: “{word}”, say “{right}”"
        for (key, text), (word, right) in product((catalogue(language) | glossary).items(), words)
        if word.casefold() in text.casefold()
    ]
    assert words
    assert not used


def test_a_word_of_the_glossary_that_the_pages_use_is_the_same_word_in_chinese() -> None:
    english, chinese = (" ".join(catalogue(language).values()) for language in LANGUAGES)
    words = {term.words["en"]: re.sub("（.*", "", term.words["zh"]) for term in terms()}
    used = {word: other for word, other in words.items() if re.search(rf"\b{re.escape(word)}\b", english)}
    assert len(used) > 40
    assert not [f"{word}: {other}" for word, other in used.items() if other not in chinese]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_word_to_use_is_not_avoided_elsewhere(language: str) -> None:
    avoided = {word for wrong in AVOID[language].values() for word in wrong}
    assert not [right for right in AVOID[language] if right in avoided]


def test_chinese_is_set_apart_from_latin_and_uses_its_own_punctuation() -> None:
    tight = re.compile(rf"{CHINESE}[A-Za-z0-9]|[A-Za-z0-9]{CHINESE}|{CHINESE} {CHINESE}")
    half = re.compile(rf"{CHINESE}[,:;!?()]|[,;!?()]{CHINESE}|\.\.\.")
    assert not [key for key, text in catalogue("zh").items() if tight.search(text) or half.search(text)]


def test_a_note_stands_in_the_brackets_of_the_language() -> None:
    assert (EN.noted("Bank", "Guest"), ZH.noted("银行", "主导方")) == ("Bank (Guest)", "银行（主导方）")
    assert EN.noted("AUC", "") == ZH.noted("AUC", "") == "AUC"


@pytest.mark.parametrize(
    ("text", "value", "filled"),
    [
        ("由 {x} 持有", "电信公司", "由电信公司持有"),
        ("由{x}持有", "Telecom", "由 Telecom 持有"),
        ("占**{x}**的增益", "12 %", "占 **12 %** 的增益"),
        ("打乱 **{x}** 后", "授信额度", "打乱**授信额度**后"),
        ("打乱 **{x}** 后", "授信额度（元）", "打乱**授信额度（元）** 后"),
        ("在（{x}）中", "AUC", "在（AUC）中"),
        ("平均为{x}", "−3", "平均为 −3"),
        ("共{x}条", "", "共条"),
        ("由{x}持有", "■ 电信公司", "由 ■ 电信公司持有"),
    ],
)
def test_a_value_is_set_apart_by_what_it_is(text: str, value: str, filled: str) -> None:
    assert fill(text, "zh", {"x": value}) == filled
    assert fill("by {x}s", "en", {"x": value}) == f"by {value}s"


def test_a_common_unit_has_its_chinese_word_and_the_owners_word_comes_first() -> None:
    age = Feature(name="age", meaning=Text("Age", "年龄"), unit="years")
    assert shown(EN, age, 41) == "41 years"
    assert shown(ZH, age, 41) == "41 岁"
    assert ZH.unit(age.model_copy(update={"meaning": Text("Age", "合作时间")})) == "年"
    assert ZH.unit(age.model_copy(update={"unit": Text("NT$")})) == ZH("unit.nt$")
    assert ZH.unit(age.model_copy(update={"unit": Text("years", "周岁")})) == "周岁"
    assert ZH.unit(age.model_copy(update={"unit": Text("kWh")})) == "kWh"
    assert ZH.unit(age.model_copy(update={"unit": Text()})) == ""


def test_a_code_is_in_the_readers_language_where_its_owner_gave_it() -> None:
    home = Feature(
        name="home",
        meaning="Home",
        kind=Kind.CATEGORICAL,
        categories={"r": Text("rented", "租房"), "o": "owned"},
    )
    assert [shown(EN, home, code) for code in ("r", "o", "x")] == ["rented", "owned", "x"]
    assert [shown(ZH, home, code) for code in ("r", "o", "x")] == ["租房", "owned", "x"]


@pytest.mark.parametrize("features", [CREDIT_CARD, read_dictionary(DICTIONARY)], ids=["credit card", "demo"])
def test_the_federations_that_come_along_are_wholly_in_chinese(features: dict[str, Feature]) -> None:
    latin = re.compile("[A-Za-z]{2}")
    for feature in features.values():
        words = [ZH.meaning(feature), ZH.unit(feature), *ZH.codes(feature).values()]
        assert not [word for word in words if latin.search(word)]
