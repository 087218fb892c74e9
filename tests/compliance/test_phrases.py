"""How names are tokenised and phrases are found in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.compliance.concepts import Context, Pattern
from backend.compliance.phrases import Affixes, FeatureTexts, Phrase, PhraseMatch, Segmenter

LISTS = {"thing": ["account", "credit file"], "thing_zh": ["账户"]}


def found(phrase: str, text: str, *exclusions: str) -> str:
    context = Context(frozenset({"director", "holder"}))
    pattern = Pattern([Phrase.of(phrase, LISTS)], [Phrase.of(e, LISTS) for e in exclusions], context=context)
    match = pattern.find(FeatureTexts.of(text))
    return match[0] if match else ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("applicantGender", " applicant gender "),
        ("gender_code", " gender code "),
        ("cust-age2", " cust age 2 "),
        ("SEXCode", " sex code "),
        ("DOB", " dob "),
        ("Diff-ADLs", " diff adls "),
        ("applicant's sex", " applicant s sex "),
        ("性别", " "),
        ("", " "),
    ],
)
def test_a_name_is_taken_apart_at_case_changes_marks_and_digits(name, words):
    assert PhraseMatch.of(name).words == words


def test_traditional_characters_are_read_as_simplified_ones():
    assert found("性别", "員工性別") == "性别"
    assert PhraseMatch.of("戶籍電話").text == "户籍电话"


def test_a_match_is_reported_as_it_is_written():
    assert found("date of birth", "customerDateOfBirth") == "DateOfBirth"


def test_a_word_is_matched_only_as_a_whole():
    assert found("age", "page") == ""
    assert found("age", "cust_age") == "age"


def test_a_star_matches_every_word_that_begins_so():
    assert found("pregnan*", "is_pregnant") == "pregnant"


def test_choices_options_lists_and_numbers_are_matched():
    assert found("birth|born year", "born_year") == "born_year"
    assert found("age of [the] {thing}", "age of the credit file") == "age of the credit file"
    assert found("age of [the] {thing}", "age of account") == "age of account"
    assert found("aged {number}", "aged 62") == "aged 62"


def test_a_phrase_can_be_barred_from_what_follows():
    assert found("age of {thing} !holder", "age of account holder") == ""
    assert found("age of {thing} !holder", "age of account in days") == "age of account"


def test_a_phrase_can_be_tied_to_the_whole_text():
    assert found("^ color $", "COLOR") == "COLOR"
    assert found("^ color $", "color of hope") == ""
    assert found("^ color $", "hope color") == ""


def test_an_exclusion_takes_back_only_what_it_covers():
    assert found("age", "account age", "account age") == ""
    assert found("age", "account age, client age", "account age") == "age"


def test_a_chinese_phrase_is_found_anywhere():
    assert found("性别", "客户性别代码") == "性别"
    assert found("年龄", "账户的年龄", "{thing_zh} [的] 年龄") == ""


def test_a_single_chinese_character_must_stand_alone():
    assert found("男", "男/女") == "男"
    assert found("男", "男装") == ""
    assert found("女", "子女") == ""


def test_wide_letters_are_read_as_plain_ones():
    assert found("sex", "ＳＥＸ") == "SEX"


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("[the]", "at least one word"),
        ("", "at least one word"),
        ("^ $", "at least one word"),
        ("age of {nothing}", "one of the lists"),
        ("a|", "empty choice"),
        ("[the age", "expected a word"),
        ("Sex", "lower-case letters"),
        ("sex_code", "lower-case letters"),
        ("!(", "at least one word"),
        ("age ]", "expected a word"),
    ],
)
def test_a_badly_written_phrase_is_refused_with_the_reason(phrase, reason):
    with pytest.raises(ValueError, match=reason):
        Phrase.of(phrase, LISTS)


def test_an_exclusion_does_not_hold_where_a_person_follows_it():
    excluded = "nationality of [the] company"
    assert found("nationality", "Nationality of the company", excluded.replace("company", "account")) == "Nationality"
    assert found("nationality", "nationality of the account", "nationality of [the] {thing}") == ""
    assert found("nationality", "nationality of the account holder", "nationality of [the] {thing}") == "nationality"
    assert (
        found("nationality", "nationality of the account's director", "nationality of [the] {thing}") == "nationality"
    )


def test_accents_are_ignored_and_shown_as_they_are_written():
    assert found("etat civil", "État civil") == "État civil"


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("custgender", ("cust", "gender")),
        ("gendercd", ("gender", "cd")),
        ("custgendercd", ("cust", "gender", "cd")),
        ("birthyear", ("birth", "year")),
        ("dateofbirth", ("date", "of", "birth")),
        ("message", ("message",)),
        ("manage", ("manage",)),
        ("custage", ("cust", "age")),
    ],
)
def test_a_code_name_is_taken_apart_at_words_that_are_known(word, pieces):
    known = frozenset({"gender", "birth", "year", "date", "age", "man"})
    assert Affixes(known, ("cust", "mess"[:2]), ("cd",)).split(word) == pieces


@given(st.text(max_size=60))
def test_any_text_is_read_and_its_words_stand_where_they_were(text):
    match = PhraseMatch.of(text)
    assert all(match.text[start:end].strip() for start, end in match.spans.values())
    assert set(match.words.split()) <= match.has


@pytest.mark.parametrize(
    ("text", "stands"),
    [("参加工会", True), ("是否工会会员", True), ("化工会展企业", False), ("施工会签单", False), ("工会", True)],
)
def test_a_chinese_phrase_stands_only_as_a_word(text, stands):
    segmenter = Segmenter(("工会", "会员", "参加", "加工", "化工", "会展", "施工", "会签", "企业"))
    pattern = Pattern([Phrase.of("工会", LISTS)], context=Context(segmenter=segmenter))
    assert bool(pattern.find(FeatureTexts.of(text))) == stands


@pytest.mark.parametrize(("text", "stands"), [("残疾证号", True), ("残疾证", True), ("伤残疾证号", True)])
def test_a_chinese_phrase_stands_within_a_longer_one(text, stands):
    phrases = [Phrase.of(source, LISTS) for source in ("残疾证", "残疾证号")]
    segmenter = Segmenter(("证书",), [phrase.source for phrase in phrases])
    assert bool(Pattern(phrases[:1], context=Context(segmenter=segmenter)).find(FeatureTexts.of(text))) == stands


@pytest.mark.parametrize(
    ("phrase", "text", "may"),
    [
        ("year of [first] job|licence", "year of her licence", True),
        ("year of [first] job|licence", "year of the loan", False),
        ("preg* {number}", "pregnant 2", True),
        ("preg* {number}", "pregnant", False),
        ("{thing_zh} [的] 年龄", "账户的年龄", True),
        ("{thing_zh} [的] 年龄", "账户的余额", False),
    ],
)
def test_a_phrase_is_sought_only_where_the_text_has_one_of_each_of_its_words(phrase, text, may):
    assert Phrase.of(phrase, LISTS).may_be_in(PhraseMatch.of(text).keys) == may


def test_a_name_is_also_read_with_its_abbreviations_written_out():
    affixes = Affixes(short={"ctry": "country", "nm": "name"})
    pattern = Pattern([Phrase.of("birth country|nm", LISTS)])
    assert pattern.find(FeatureTexts.of("birth_ctry", affixes=affixes)) == ("birth_ctry", "name")
    assert pattern.find(FeatureTexts.of("birth_nm", affixes=affixes)) == ("birth_nm", "name")
    assert pattern.find(FeatureTexts.of("birth_ctry")) is None


@pytest.mark.parametrize(("name", "counts"), [("pregn_cd", True), ("preg", False), ("press", False), ("pregnx", False)])
def test_a_name_is_also_read_with_words_cut_off(name, counts):
    pattern = Pattern([Phrase.of("pregnancy", LISTS)])
    assert bool(pattern.find(FeatureTexts.of(name, affixes=Affixes(plain=("pregnancy",))))) == counts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tonsillectomy", True),
        ("hernia_ectomy", False),
        ("ectomyx", False),
        ("an ectomy", False),
        ("vasectomy_2", True),
    ],
)
def test_a_phrase_can_name_the_end_of_a_word(text, found):
    phrase, match = Phrase.of("*ectomy", {}), PhraseMatch.of(text)
    assert phrase.may_be_in(match.keys) == found and bool(phrase.find(match)) == found


def test_a_word_of_the_vocabulary_is_not_taken_apart():
    known = frozenset({"pres", "sure"})
    assert Affixes(known).split("pressure") == ("pres", "sure")
    assert Affixes(known, inseparable=frozenset({"pressure"})).split("pressure") == ("pressure",)


@pytest.mark.parametrize(
    ("meaning", "read"),
    [
        ("Education level - Adults 20+", "Education level"),
        ("Worked last week (persons aged 15 and over)", "Worked last week"),
        ("Number of children (under 18)", "Number of children (under 18)"),
        ("Married - women", "Married - women"),
        ("Births per women 15-49", "Births per women 15-49"),
    ],
)
def test_of_whom_a_question_was_asked_is_left_off_its_meaning(meaning, read):
    assert FeatureTexts.of("x1", meaning).meaning.text.strip() == read


@pytest.mark.parametrize(
    ("meaning", "read"),
    [
        (
            "Weight of the survey. Weights were computed from key regional data of the last census of all persons.",
            " weight of the survey ",
        ),
        (
            "IRS Country Code. This field stores the code of the country in which the member of the credit union lives.",
            "lives",
        ),
        ("Weight of the survey. Regional.", "regional"),
    ],
)
def test_a_long_meaning_is_read_to_the_end_of_its_first_sentence(meaning, read):
    assert FeatureTexts.of("x", meaning).meaning.words.endswith(f"{read.strip()} ")


@pytest.mark.parametrize(
    ("chinese_meaning", "said", "codes"),
    [
        ("借款用途 1、购物 2、装修 3、结婚", "借款用途", ["购物", "装修", "结婚"]),
        ("婚姻状况:0-未知,1-已婚,2-离异", "婚姻状况", ["未知", "已婚", "离异"]),
        ("性别 0女 1男", "性别 0女 1男", []),
        ("近3个月、6个月、12个月、24个月逾期", "近3个月、6个月、12个月、24个月逾期", []),
        ("1、购物 2、装修 3、结婚", "1、购物 2、装修 3、结婚", []),
    ],
)
def test_codes_that_are_written_into_a_chinese_meaning_are_codes(chinese_meaning, said, codes):
    texts = FeatureTexts.of("x1", "", chinese_meaning)
    assert (texts.chinese_meaning.text, [code.text for code in texts.codes]) == (said, codes)


@pytest.mark.parametrize(
    ("meaning", "said", "codes"),
    [
        ("Region. A factor with levels: north; south.", "Region. A factor ", ["north", "south"]),
        ("factor; the person's sex (levels male and female).", "factor; the person's sex (", ["male", "female"]),
        ("one of other, south, west", "", ["other", "south", "west"]),
        ("a factor with levels corresponding to the birth", "a factor with levels corresponding to the birth", []),
        ("One of the largest banks", "One of the largest banks", []),
    ],
)
def test_levels_that_are_written_into_an_english_meaning_are_codes(meaning, said, codes):
    texts = FeatureTexts.of("x1", meaning)
    assert (texts.meaning.text, [code.text for code in texts.codes]) == (said, codes)
