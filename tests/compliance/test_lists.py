"""Lists of columns: reading them, measuring recall on the unseen one, and what a second opinion proposes and disputes."""

import csv
import json
import math
import re
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.cli.rules import MEASURES
from backend.compliance.assessment import is_asked, signs_of, texts_of
from backend.compliance.feature_list import read_feature_list
from backend.compliance.recall import UNSEEN, measure
from backend.compliance.second_opinion import ASK, ASK_STATUTE, WEIGHTS, Opinion
from backend.data.dictionary import Feature
from backend.errors import RulePackError
from backend.i18n import NO_MEANING, Text
from docs import rule_lists

DOCS = Path(__file__).parents[2] / "docs" / "rule-lists.md"
OPENED = Path(__file__).parent / "opened.csv"  # lists that were read after they were measured
COLLECTED = Path(__file__).parent / "collected.csv"  # drawn and labelled anew, and measured once
WRITTEN = Path(__file__).parent / "written.csv"  # ours, written to find what the words miss and flag wrongly


@pytest.fixture(scope="module")
def unseen():
    """What the measurement says of the unseen list."""
    return measure()


def whole(totals):
    """The totals of each language's rows."""
    return [found for found in totals.parts if found.part == "all"]


def listed(tmp_path, text: str) -> Path:
    file = tmp_path / "columns.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_list_is_read_with_its_codes(tmp_path):
    file = listed(tmp_path, "name,meaning,codes\nst,Status,1: Married; 2: Single\nbal,,\nkind,,female；male\n")
    married, bare, kind = (row.feature for row in read_feature_list(file))
    assert married.categories == {"1": Text("Married"), "2": Text("Single")}
    assert (bare.described, kind.categories) == (False, {"#1": Text("female"), "#2": Text("male")})


@pytest.mark.parametrize(
    ("cell", "codes"),
    [
        ("{1: Married, 2: Single}", {"1": "Married", "2": "Single"}),
        ("{1: Yes, both, 2: No}", {"1": "Yes, both", "2": "No"}),
        ("1: Yes, both; 2: No, none", {"1": "Yes, both", "2": "No, none"}),
        ("{Male, Female}", {"#1": "Male", "#2": "Female"}),
        ("{1：男，2：女}", {"1": "男", "2": "女"}),
    ],
)
def test_codes_are_taken_apart_at_semicolons_or_at_commas_before_a_code(tmp_path, cell, codes):
    (row,) = read_feature_list(listed(tmp_path, f'name,codes\nst,"{cell}"\n'))
    assert {code: text.en for code, text in row.feature.categories.items()} == codes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam\nx\n", "there is no column name among nam. Add it."),
        ("name,colour\nx,y\n", "found the column colour, expected name, meaning"),
        ("name\n", "found a header and no row below it"),
        ("name,meaning\nx,y\n,z\n", "line 3: found no name"),
        ("name,unit\nx," + "y" * 41 + "\n", "line 2, unit: found"),
    ],
)
def test_a_bad_list_is_refused_in_words(tmp_path, text, message):
    with pytest.raises(RulePackError, match=re.escape(message)):
        read_feature_list(listed(tmp_path, text))


def test_a_file_that_is_not_there_is_refused_in_words(tmp_path):
    with pytest.raises(RulePackError, match=r"columns\.csv"):
        read_feature_list(tmp_path / "columns.csv")


def test_the_unseen_list_has_two_hundred_columns_a_language_and_the_hash_that_the_documents_state(unseen):
    assert {found.language: found.rows >= 200 for found in whole(unseen)} == {"en": True, "zh": True}
    assert unseen.sha256 in DOCS.read_text(encoding="utf-8")


def test_the_documents_state_the_totals_that_the_command_prints_and_the_recorded_first_looks(unseen):
    assert rule_lists.render(unseen) == DOCS.read_text(encoding="utf-8")
    statute = next(found.statute for found in whole(unseen) if found.language == "en")
    assert f"| {statute.hits}/{statute.n}, {statute.share:.1%} " in rule_lists.unseen(unseen)


def test_the_documents_state_how_many_questions_on_columns_collected_anew_are_right():
    [found] = whole(measure(COLLECTED))
    matter = found.statute.n + found.proxies.n
    right = found.questions_right
    stated = f"{matter} matter, and {right.hits} of {right.n} questions are right"
    assert stated in DOCS.read_text(encoding="utf-8")


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", [OPENED, WRITTEN])
def test_what_was_mended_once_is_found(file, every, tmp_path):
    header, *rows = csv.reader(file.read_text(encoding="utf-8").splitlines())
    kept = tmp_path / "columns.csv"
    with kept.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(row[: header.index("list")] for row in (header, *rows[::every]))
    for found in whole(measure(kept)):
        assert min(found.statute.share, found.proxies.share, found.precision.share) >= (0.98 if every == 1 else 0.95)


def test_the_share_of_a_list_lies_in_its_interval(unseen):
    for found in whole(unseen):
        assert found.statute.low < found.statute.share <= found.statute.high
        assert found.statute.n + found.proxies.n < found.rows


def test_measuring_counts_what_is_found_and_what_is_flagged_wrongly(tmp_path):
    rows = "en,sex,,statute,sex\nen,bal,Average balance,statute,sex\nen,zip,,proxy,region\nen,gender,,neither,\nen,x,Rate,neither,\n"
    (found,) = whole(measure(listed(tmp_path, "language,name,meaning,label,concepts\n" + rows)))
    assert (found.statute.hits, found.statute.n) == (1, 2)
    assert (found.proxies.hits, found.proxies.n) == (1, 1)
    assert (found.precision.hits, found.precision.n) == (2, 3)


def test_flags_and_questions_are_counted_apart(tmp_path):
    rows = "en,sex,,statute,sex\nen,q1,Average of spouses here,statute,marital_status\n"
    rows += "en,q2,Average of spouses there,neither,\nen,q3,Rate,neither,\n"
    (found,) = whole(measure(listed(tmp_path, "language,name,meaning,label,concepts\n" + rows)))
    hits = {name: (getattr(found, name).hits, getattr(found, name).n) for name in MEASURES}
    assert (hits["statute"], hits["statute_flagged"]) == ((2, 2), (1, 2))
    assert (hits["precision"], hits["precision_asked"]) == ((1, 1), (2, 3))
    assert (hits["questions"], hits["questions_right"], hits["silent"]) == ((2, 4), (1, 2), (0, 2))


def test_names_without_a_meaning_are_counted_apart_and_those_not_understood_are_not_passed_over(tmp_path):
    rows = "en,zq,,statute,sex\nen,sex,,statute,sex\nen,zq,Average balance,statute,sex\nen,zq,,neither,\nen,loan_amount,,neither,\n"
    file = listed(tmp_path, "language,name,meaning,label,concepts\n" + rows)
    every, meaning, name, new = measure(file).parts
    assert [part.rows for part in (every, meaning, name, new)] == [5, 1, 4, 5]
    assert [(part.silent.hits, part.silent.n) for part in (every, meaning, name)] == [(1, 3), (1, 1), (0, 2)]
    assert (name.not_understood.hits, name.not_understood.n) == (1, 2)
    assert (name.statute.hits, name.statute.n) == (1, 2)


def test_rows_whose_meaning_an_earlier_list_holds_are_counted_apart(tmp_path):
    rows = "en,x1,Sex,statute,sex,yes\nen,x2,Sex of the customer,statute,sex,\n"
    every, _, new = measure(listed(tmp_path, "language,name,meaning,label,concepts,seen\n" + rows)).parts
    assert [(part.part, part.rows, part.statute.hits) for part in (every, new)] == [("all", 2, 2), ("new", 1, 1)]


def test_a_labelled_row_without_concepts_is_found_where_any_is(tmp_path):
    rows = "en,x1,Sex,statute,\nen,x2,Average balance,statute,\n"
    every = measure(listed(tmp_path, "language,name,meaning,label,concepts\n" + rows)).parts[0]
    assert (every.statute.hits, every.statute.n) == (1, 2)


def test_a_share_of_nothing_is_no_number(tmp_path):
    (found,) = whole(measure(listed(tmp_path, "language,name,label,concepts\nen,bal,neither,\n")))
    assert math.isnan(found.statute.share) and (found.statute.low, found.statute.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("label", "concepts", "message"),
    [("maybe", "", "found the label maybe"), ("proxy", "zip", "there is no concept zip")],
)
def test_a_label_that_there_is_none_of_is_refused(tmp_path, label, concepts, message):
    with pytest.raises(RulePackError, match=message):
        measure(listed(tmp_path, f"language,name,label,concepts\nen,x,{label},{concepts}\n"))


def test_the_command_prints_totals_and_no_row(unseen, monkeypatch):
    monkeypatch.setattr("backend.compliance.recall.measure", lambda: unseen)  # measured once
    printed = CliRunner().invoke(app, ["rules", "measure"]).output
    listed_rows = read_feature_list(UNSEEN, more=("language", "label", "concepts", "seen"))
    names = [row.feature.name for row in listed_rows]
    assert "statute" in printed and "precision" in printed
    assert not [name for name in names if len(name) > 9 and name in printed]


def signs(**said):
    """What speaks for which concept in a feature."""
    return signs_of(texts_of(Feature(**{"meaning": "A column", **said})))


@pytest.mark.parametrize(
    ("said", "concept", "word"),
    [
        ({"name": "relgion"}, "religion", "relgion"),
        ({"name": "mhi", "meaning": "Mental health index."}, "health", "mental health"),
        ({"name": "zzmm", "meaning": Text(f"zzmm {NO_MEANING}", "整治面貌")}, "politics", "面貌"),
    ],
)
def test_what_no_phrase_finds_is_proposed_with_the_words_that_weighed_most(said, concept, word):
    (found,) = signs(**said).items()
    assert (found[0], found[1].strength) == (concept, "proposed")
    assert word in found[1].weighed.split(", ")


@pytest.mark.parametrize(
    ("meaning", "chinese"),
    [
        ("", "是否在网"),
        ("", "集团属性"),
        ("", "事件发生原因"),
        ("", "是否必须"),
        ("", "声明所有资料均为真实"),
        ("Number of drivers on the policy", ""),
        ("See the note on the form", ""),
        ("Stored in the system", ""),
    ],
)
def test_function_words_and_characters_propose_nothing(meaning, chinese):
    feature = Feature(name="zq17", meaning=Text(meaning or "zq17", chinese))
    signs = signs_of(texts_of(feature))
    assert not [concept for concept, sign in signs.items() if sign.strength == "finding" or is_asked(concept, sign)]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("tract_median_age_of_housing_units", "Median age of housing units in the tract"),
        ("divorce_rate_county", "Divorce rate in the county"),
        ("marriage_rate_town", "Marriage rate in the town"),
        ("median_age_of_housing", "Median age of the housing in the block"),
        ("divorce_rate_county", f"divorce_rate_county {NO_MEANING}"),
        ("marriage_rate_zip", "Share of married people in the ZIP code"),
        ("divorces_county", "Divorces per 1000 inhabitants of the county"),
        ("离婚率", "Divorce rate"),
    ],
)
def test_what_is_said_of_places_and_things_is_neither_a_finding_nor_a_question_on_a_persons_attribute(name, meaning):
    found = signs(name=name, meaning=meaning)
    said = {concept for concept, sign in found.items() if sign.strength == "finding" or is_asked(concept, sign)}
    assert not {"age", "marital_status"} & said


def test_what_spouses_own_is_no_finding_on_marital_status():
    found = signs(name="marital_property", meaning="Value of marital property")
    assert "finding" not in {sign.strength for sign in found.values()}


def test_the_race_of_a_neighbourhood_counts_and_so_does_the_place():
    found = signs(name="pct_black_tract", meaning="Share of Black residents in the census tract")
    assert found["race"].strength == found["region"].strength == "finding"


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("treatment_duration_months", "Duration of the treatment in months"),
        ("treatment_duration_months", f"treatment_duration_months {NO_MEANING}"),
        ("therapy_length_weeks", "Length of therapy"),
        ("sessions", "Number of sessions of therapy"),
    ],
)
def test_how_long_a_treatment_lasts_is_medical_evidence(name, meaning):
    sign = signs(name=name, meaning=meaning)["health"]
    assert sign.strength == "finding" or is_asked("health", sign)


def test_the_treatment_of_water_is_not():
    sign = signs(name="zq17", meaning="Duration of the water treatment").get("health")
    assert sign is None or not (sign.strength == "finding" or is_asked("health", sign))


@pytest.mark.parametrize(
    ("name", "codes", "asked"),
    [
        (
            "employment_status",
            ("employed", "housewife", "military", "retired"),
            {"military", "household_role", "age_proxy"},
        ),
        ("就业状态", ("在职", "家庭主妇", "现役军人", "退休"), {"military", "household_role", "age_proxy"}),
        ("card_colour", ("black", "gold", "silver"), set()),
        ("occupation", ("teacher", "housewife", "military", "retired"), set()),
    ],
)
def test_two_codes_that_speak_of_a_concept_each_are_a_question_about_both(name, codes, asked):
    meaning = Text(name.replace("_", " "))
    categories = {str(number): Text(code) for number, code in enumerate(codes)}
    found = signs_of(texts_of(Feature(name=name, meaning=meaning, kind="categorical", categories=categories)))
    said = {concept for concept, sign in found.items() if is_asked(concept, sign)}
    assert asked <= said and (asked or not said)


@pytest.mark.parametrize("chinese", ["是否法院指定", "左右标志", "历史过户次数"])
def test_a_chinese_character_alone_proposes_nothing(chinese):
    found = signs(name="zq17", meaning=Text("zq17", chinese))
    assert not [concept for concept, sign in found.items() if sign.strength == "proposed"]


@pytest.mark.parametrize("chinese", ["是否使用老人机", "老年机标识", "是否校园卡用户", "校园卡客户标志"])
def test_phones_for_the_old_and_cards_of_students_are_asked_about(chinese):
    found = signs(name="zq17", meaning=Text("zq17", chinese))
    assert is_asked("age_proxy", found["age_proxy"])


@pytest.mark.parametrize(("chinese", "concept"), [("拼音码", "personal_name"), ("军残等级", "health")])
def test_a_concept_is_proposed_on_words_of_its_own(chinese, concept):
    signs = signs_of(texts_of(Feature(name="zq17", meaning=Text("zq17", chinese))))
    assert signs[concept].strength == "proposed" and any(word in chinese for word in signs[concept].weighed.split(", "))


def test_a_second_opinion_turns_a_finding_that_it_disputes_into_a_question():
    found = signs(name="smokemis", meaning="1=extent of smoking missing")
    assert {concept: sign.strength for concept, sign in found.items()} == {"health": "disputed"}
    assert "smokemis" in found["health"].weighed.split(", ")


@pytest.mark.parametrize(
    "name", ["loan_amount", "utilisation", "repayment_status", "transaction_count", "balance", "tenure_months"]
)
def test_of_words_of_credit_nothing_is_proposed(name):
    assert signs(name=name) == {}


def test_the_documents_state_the_hash_of_the_second_opinions_weights():
    assert sha256(WEIGHTS.read_bytes()).hexdigest() in DOCS.read_text(encoding="utf-8")


def test_a_banks_list_is_tried_before_any_federation_exists(tmp_path):
    file = listed(tmp_path, "name,meaning_zh,codes\nst,,1: Married; 2: Single\nrelgion,,\nbal,余额,\nzq17,,\n")
    result = CliRunner().invoke(
        app, ["rules", "try", str(file), "--json"], env={"GLASSLEAF_HOME": str(tmp_path / "home")}
    )
    assert result.exit_code == 0
    for part in ('"matched_in": "codes"', '"ecoa_marital_status"', '"columns": 4'):
        assert part in result.output
    printed = json.loads(result.output)
    assert [(asked["feature"], asked["about"]) for asked in printed["questions"]] == [("relgion", "about:religion")]
    assert printed["not_understood"] == ["zq17"]


# Of nobody who is scored, or about something else: one column of each kind that was asked about without need.
ASKED_IN_VAIN = """
remind,提醒频率
doctor,手术医生
huagong_hy,化工会展企业标志
xitong_jk,系统健康检查结果
upper,体重区间上限
complier,合规人姓名
risk_man,风控专员姓名
check_price,身份证核验费用
source,来源地址
panel,公众号头像
wechat,微信token
"""


def test_a_chinese_list_of_fees_staff_and_frequencies_is_asked_about_nothing(tmp_path):
    file = listed(tmp_path, "name,meaning_zh" + ASKED_IN_VAIN)
    command = ["rules", "try", str(file), "--json"]
    result = CliRunner().invoke(app, command, env={"GLASSLEAF_HOME": str(tmp_path / "home")})
    printed = json.loads(result.output)
    assert [(asked["feature"], asked["about"]) for asked in printed["questions"]] == []
    assert printed["flagged"] == []


def test_of_a_long_meaning_the_beginning_is_read_and_the_rest_of_the_list_is_tried(tmp_path):
    long = "Sex of the customer, as the branch wrote it down. " * 20
    file = listed(
        tmp_path, f'name,meaning,codes\nzq17,"{long}",\nzq18,"Balance\tof the\naccount","1: {long}"\nage,Age,\n'
    )
    result = CliRunner().invoke(app, ["rules", "try", str(file)], env={"GLASSLEAF_HOME": str(tmp_path / "home")})
    assert result.exit_code == 0 and "3 columns" in result.output
    assert "zq17: the meaning was longer than 500 letters and was cut." in result.output.splitlines()
    assert "zq17: is this about: Sex" in result.output and "age: conditional" in result.output


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_person_is_asked_where_either_log_odds_reach_their_limit(language):
    low = -99.0
    asked = [
        Opinion(language, score, statute, {}, {}).asks
        for score, statute in ((low, low), (ASK[language], low), (low, ASK_STATUTE[language]))
    ]
    assert asked == [False, True, True]
