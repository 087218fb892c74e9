"""What the words around a phrase say of whose attribute it is."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from backend.compliance.concepts import Concept, Context, Pattern, Vocabulary
from backend.compliance.phrases import FeatureTexts, Phrase
from backend.compliance.rule_pack import words

# Of each list, as it was first measured: flags right and wrong by concept and by what spoke for them
FIRST_LOOKS = Path(__file__).parent / "first_looks.csv"
CONTEXT = Context(
    persons=frozenset({"owner", "applicant"}),
    objects=frozenset({"portfolio", "ship", "bovino"}),
    trades=frozenset({"sector"}),
    chinese_objects=("船舶",),
    chinese_trades=("设备",),
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


FIRMS = Context(chinese_persons=("客户", "人"), chinese_firm=re.compile("企业|机房"))


@pytest.mark.parametrize(
    ("meaning", "hit"),
    [
        ("企业现金流健康指数", ""),
        ("健康检查的机房数", ""),
        ("企业客户本人的健康状况", "健康"),
        ("残疾人所在企业的健康登记", "健康"),
        ("健康状况", "健康"),
    ],
)
def test_a_chinese_text_about_a_firm_without_a_person_is_about_nobody(meaning, hit):
    found = Pattern([Phrase.of("健康", {})], context=FIRMS).find(FeatureTexts.of("x1", "", meaning))
    assert (found or ("", ""))[0] == hit


@pytest.mark.parametrize(
    ("meaning", "chinese_meaning", "found"),
    [
        ("Imputation flag for sex", "", False),
        ("Sex, imputation flag", "", False),
        ("Sex of the applicant", "", True),
        ("", "性别插补标志", False),
        ("", "性别标志", True),
    ],
)
def test_how_a_value_came_about_is_nobodys_attribute(meaning, chinese_meaning, found):
    context = Context.of({"record": ("imputation flag", "插补标志")})
    pattern = Pattern([Phrase.of("sex", {}), Phrase.of("性别", {})], context=context)
    assert bool(pattern.find(FeatureTexts.of("q7", meaning, chinese_meaning))) == found


WEAK = Pattern(
    [Phrase.of(source, {}) for source in ("street|address", "社区")], weak=["street", "社区"], context=CONTEXT
)


@pytest.mark.parametrize(
    ("name", "meaning", "chinese_meaning", "hit", "asks"),
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
def test_a_weak_sign_counts_where_it_stands_alone_and_asks_among_other_words(name, meaning, chinese_meaning, hit, asks):
    texts = FeatureTexts.of(name, meaning, chinese_meaning)
    found = WEAK.find(texts)
    assert ((found[0] if found else ""), WEAK.asks(texts) is not None) == (hit, asks)


HEADS = Context.of(
    {
        "person": ("person", "customer"),
        "filler": ("the", "of", "for", "flag"),
        "process": ("requirement", "role", "match"),
        "relation": ("of", "for", "in"),
    }
)


@pytest.mark.parametrize(
    ("meaning", "hit"),
    [
        ("Gender requirement", ""),
        ("Gender requirement flag", ""),
        ("Gender of the requirement", "Gender"),
        ("Gender (requirement of the form)", "Gender"),
        ("Role of the person's gender", ""),
        ("Role in the household, gender", "gender"),
        ("Gender match in the register", ""),
    ],
)
def test_the_head_of_the_words_says_what_the_value_is(meaning, hit):
    found = Pattern([Phrase.of("gender", {})], context=HEADS).find(FeatureTexts.of("x1", meaning))
    assert (found or ("", ""))[0] == hit


@pytest.mark.parametrize(
    ("meaning", "chinese_meaning", "found"),
    [
        ("Share of women in the country", "", False),
        ("Share of women in the customer's neighbourhood", "", True),
        ("Whether women", "", True),
        ("", "女性人口比例", False),
        ("", "小区女性人口比例", True),
    ],
)
def test_a_population_tells_nobodys_attribute_unless_it_is_the_customers_own(meaning, chinese_meaning, found):
    context = Context.of({"population": ("share of women", "人口比例"), "near": ("neighbourhood", "小区")})
    pattern = Pattern([Phrase.of("women", {}), Phrase.of("女性", {})], context=context)
    assert bool(pattern.find(FeatureTexts.of("x1", meaning, chinese_meaning))) == found


@pytest.mark.parametrize(
    ("meaning", "found"),
    [
        ("Zipcode of the employer", False),
        ("Zipcode", True),
        ("Zipcode of the customer", True),
        ("Average balance", True),
    ],
)
def test_a_meaning_that_names_anothers_outvotes_the_name(meaning, found):
    pattern = Pattern([Phrase.of("zipcode", {})], [Phrase.of("zipcode of [the] employer", {})])
    assert bool(pattern.find(FeatureTexts.of("zipcode", meaning))) == found


def test_weak_signs_stand_alone_beside_each_other_and_before_a_remark_in_brackets():
    pattern = Pattern(
        [Phrase.of("street|town", {})], weak=["street", "town"], context=Context(fillers=frozenset({"or"}))
    )
    texts = (FeatureTexts.of("x1", meaning) for meaning in ("Street or town", "Town (2019 census)", "Town hall noise"))
    assert [bool(pattern.find(text)) for text in texts] == [True, True, False]


def test_two_codes_have_to_speak_of_a_concept_or_the_only_one():
    pattern = Pattern([Phrase.of("married", {})])
    texts = (
        FeatureTexts.of("x", codes=codes) for codes in (["Married"], ["Married", "Other"], ["Married", "Not married"])
    )
    assert [pattern.find(text) is not None for text in texts] == [True, False, True]


def test_what_readers_take_for_different_things_asks_even_alone_and_is_never_found():
    pattern = Pattern([Phrase.of("retired", {})], asked=[Phrase.of("graduation year", {}), Phrase.of("毕业时间", {})])
    texts = (FeatureTexts.of("x1", *meanings) for meanings in (("Graduation year",), ("", "毕业时间"), ("Retired",)))
    assert [(pattern.find(text) is not None, pattern.asks(text)) for text in texts] == [
        (False, ("Graduation year", "meaning")),
        (False, ("毕业时间", "chinese_meaning")),
        (True, None),
    ]


@pytest.mark.parametrize(
    ("meaning", "counts"),
    [
        ("Medical collections", True),
        ("Collections excluding medical collections", False),
        ("Language except at home", True),
    ],
)
def test_what_a_value_leaves_out_it_does_not_tell(meaning, counts):
    pattern = Pattern([Phrase.of("medical|language", {})], context=Context())
    assert bool(pattern.find(FeatureTexts.of("x1", meaning))) == counts


@pytest.mark.parametrize(
    ("name", "meaning", "counts"),
    [
        ("employer_address", "Address", False),
        ("employer_address", "Address of the applicant", True),
        ("home_address", "Address", True),
    ],
)
def test_a_meaning_that_repeats_the_name_says_no_more_of_whose_it_is(name, meaning, counts):
    pattern = Pattern([Phrase.of("address", {})], [Phrase.of("employer address", {})], context=Context())
    assert bool(pattern.find(FeatureTexts.of(name, meaning))) == counts


@pytest.mark.parametrize(
    ("codes", "meaning", "counts"),
    [
        (["Armed forces", "Armed police", "Clerk"], "Kind of service", True),
        (["Armed forces", "Armed police", *map(str, range(30))], "Kind of service", False),
        (["Armed forces", "Armed police", "Clerk"], "Occupation", False),
        (["Armed forces", "Armed police"], "Service of the ship", False),
    ],
)
def test_codes_tell_where_a_good_part_of_them_does_and_they_are_no_kinds_of_work(codes, meaning, counts):
    context = Context(objects=frozenset({"ship"}), work=frozenset({"occupation"}))
    pattern = Pattern([Phrase.of("armed", {})], context=context)
    assert bool(pattern.find(FeatureTexts.of("x1", meaning, codes=codes))) == counts


@pytest.mark.parametrize(
    ("chinese_meaning", "counts"),
    [
        ("员工年龄", True),
        ("员工年龄校验结果", False),
        ("员工年龄校验结果 0通过 1未通过", False),
        ("员工年龄（校验结果见附表）", True),
        ("校验结果中的员工年龄", True),
    ],
)
def test_what_ends_a_chinese_clause_tells_no_attribute_even_of_a_person(chinese_meaning, counts):
    context = Context(chinese_persons=("员工",), chinese_processes=("校验结果",))
    pattern = Pattern([Phrase.of("年龄", {})], context=context)
    assert bool(pattern.find(FeatureTexts.of("x1", "", chinese_meaning))) == counts


STRENGTH = {
    "phrases": [Phrase.of(source, {}) for source in ("gender|spouse", "性别")],
    "codes": [Phrase.of("male|female", {})],
    "weak": ["spouse"],
    "context": Context.of(
        {"person": ("client",), "person_zh": ("客户",), "filler": ("of", "the", "code"), "filler_zh": ("代码",)},
        plain=["gender"],
    ),
}


@pytest.mark.parametrize(
    ("name", "said", "strength"),
    [
        ("x1", {"meaning": "Gender of the client"}, "finding"),  # alone, but for words that say nothing
        ("x1", {"chinese_meaning": "客户性别代码"}, "finding"),
        ("gender_of_policy", {}, "finding"),  # a word with one sense
        ("spouse", {}, "finding"),
        ("x1", {"meaning": "Share of gender studies"}, "single"),
        ("x1", {"chinese_meaning": "性别研究"}, "single"),
        ("q_spouse", {"meaning": "Income of a spouse"}, "weak"),
        ("性别研究", {"meaning": "Studies of gender"}, "finding"),  # two texts say so
        ("性别研究", {"chinese_meaning": "性别研究"}, "single"),  # the second only repeats the first
        ("x1", {"meaning": "Kind of share", "codes": ["male", "female", "none"]}, "finding"),  # most of the codes
        ("x1", {"meaning": "Kind of share", "codes": ["male", "female", "none", "both", "few"]}, "single"),
    ],
)
def test_one_text_among_other_words_asks_and_two_or_one_alone_are_a_finding(name, said, strength):
    sign = Pattern(**STRENGTH).sign(FeatureTexts.of(name, **said))
    assert sign is not None and sign.strength == strength


def test_a_thing_before_an_attribute_in_a_code_name_keeps_the_column_where_a_meaning_says_the_same():
    said = [("platform_gender", "Gender as the platform keeps it"), ("provider_gender", "Gender of the provider")]
    found = [words().signs(FeatureTexts.of(name, meaning)) for name, meaning in said]
    assert [{concept: sign.strength for concept, sign in signs.items()} for signs in found] == [{"sex": "finding"}, {}]


@pytest.mark.parametrize(("trusted", "doubted", "strength"), [(True, False, "finding"), (False, True, "doubted")])
def test_what_was_right_at_first_looks_needs_no_second_text_and_what_was_wrong_is_asked_anyway(
    trusted, doubted, strength
):
    pattern = Pattern(**STRENGTH, trusted=trusted, doubted=doubted)
    texts = [FeatureTexts.of("x1", meaning) for meaning in ("Share of gender studies", "Gender")]
    assert pattern.sign(texts[doubted]).strength == strength


def test_beside_a_finding_all_that_was_found_of_a_column_is_one():
    concepts = {"sex": Concept(phrases=("gender",)), "age": Concept(phrases=("age",))}
    found = Vocabulary(version="1", lists={}, concepts=concepts).signs(FeatureTexts.of("x1", "Gender", "", "", ["age"]))
    asked = Vocabulary(version="1", lists={}, concepts=concepts).signs(FeatureTexts.of("x1", "Age gender"))
    assert {sign.strength for sign in found.values()} == {"finding"} and len(found) == 2
    assert {sign.strength for sign in asked.values()} == {"single"} and len(asked) == 2


def test_which_concepts_are_trusted_and_doubted_follows_from_first_looks():
    """With a prior of four of five columns right for one text, of nine of ten for what stands."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    with FIRST_LOOKS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            looked = counts.setdefault((row["concept"], row["evidence"]), Counter())
            looked.update(right=int(row["right"]), columns=int(row["right"]) + int(row["wrong"]))

    def classed(evidence: str, right: int, of: int):
        found = (
            (c, n["columns"], (n["right"] + right) / (n["columns"] + of))
            for (c, e), n in counts.items()
            if e == evidence
        )
        return sorted(found)

    trusted = [concept for concept, columns, share in classed("single", 4, 5) if columns >= 20 and share >= 0.92]
    doubted = [concept for concept, _, share in classed("stands", 9, 10) if share < 0.8]
    assert (trusted, doubted) == (sorted(words().trusted), sorted(words().doubted))
