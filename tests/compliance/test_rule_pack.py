"""Refusing a bad rule pack with file, line and reason."""

import datetime as dt
import re
from pathlib import Path

import pytest

from backend.compliance.assessment import assess
from backend.compliance.rule_pack import add_rule_pack, built_in_versions, load_packs, read_own_packs, read_rule_pack
from backend.data.dictionary import Feature
from backend.errors import GlassleafError

GOOD = """\
name: tiny
version: "1"
title:
  en: Tiny law
  zh: 小法
jurisdiction: Nowhere
source: The book
as_of: 2026-01-31
rules:
  - id: sex
    title:
      en: Sex
      zh: 性别
    citation: Chapter 1
    status: prohibited
    effective_from: 2020-01-01
    sensitivity: [sex]
    phrases: [sex]
    explanation:
      en: Because.
      zh: 因为。
    remedy:
      en: Leave it out.
      zh: 移除。
"""


def refusal(tmp_path, text: str | bytes) -> str:
    file = tmp_path / "tiny.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(GlassleafError) as refused:
        read_rule_pack(file)
    return str(refused.value)


def test_a_good_pack_is_read(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(GOOD, encoding="utf-8")
    pack = read_rule_pack(file)
    assert (pack.name, pack.rules[0].id, pack.rules[0].status) == ("tiny", "sex", "prohibited")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("quote: No sex.", "quote_from: found nothing"),
        ("quote: No sex.\n    quote_from: The book", "quote_from: found nothing"),
        ("quote_from: {en: The book, zh: 书}", "quote: found nothing"),
        (
            "checked: not\n    quote: No sex.\n    quote_from: {en: The book, zh: 书}",
            "found not beside a quotation",
        ),
        (f"quote: {'x' * 401}\n    quote_from: {{en: The book, zh: 书}}", "found 401 letters"),
    ],
)
def test_a_quotation_says_where_it_was_read_and_is_short(tmp_path, lines, words):
    assert words in refusal(tmp_path, GOOD.replace("    citation", f"    {lines}\n    citation"))


def test_text_that_is_not_yaml_is_refused_with_its_line(tmp_path):
    assert "tiny.yaml, line 3: found text that is not YAML" in refusal(tmp_path, "name: tiny\nversion: [1\n  a: b: c\n")


def test_a_tag_that_would_make_an_object_is_refused(tmp_path):
    assert "tiny.yaml" in refusal(tmp_path, "name: !!python/object/apply:os.getcwd []\n")


def test_an_unknown_status_is_refused_with_line_rule_and_choices(tmp_path):
    text = refusal(tmp_path, GOOD.replace("status: prohibited", "status: forbidden"))
    assert text.startswith("tiny.yaml, line 15, rules 'sex', status: found 'forbidden', expected one of 'prohibited'")


def test_a_missing_field_an_unknown_key_and_a_bad_date_are_all_reported(tmp_path):
    bad = GOOD.replace("    citation: Chapter 1\n", "").replace("2020-01-01", "soon") + "    colour: red\n"
    text = refusal(tmp_path, bad)
    assert "rules 'sex', citation: found nothing" in text
    assert "rules 'sex', effective_from: found 'soon', expected a date" in text
    assert "line 24, rules 'sex', colour: found an unknown key" in text


def test_a_key_that_occurs_twice_is_refused_as_the_first_would_be_lost(tmp_path):
    assert "line 25: found the key 'phrases' twice" in refusal(tmp_path, GOOD + "    phrases: [gender]\n")


def test_a_badly_written_phrase_is_refused_with_its_line(tmp_path):
    text = refusal(tmp_path, GOOD.replace("phrases: [sex]", 'phrases: ["age of {nothing}"]'))
    assert text.startswith("tiny.yaml, line 18, rule sex, phrases: found {nothing} in the phrase age of {nothing}")
    assert "one of the lists" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("phrases: [sex]", "phrases: []", "line 18, rule sex, phrases: found nothing to look for"),
        ("phrases: [sex]", "concept: sexx", "rule sex, concept: found the concept sexx, expected one of race, color"),
        (
            "phrases: [sex]",
            "concepts: [age, sexx]",
            "rule sex, concepts: found the concept sexx, expected one of race, color",
        ),
        (
            "phrases: [sex]",
            "phrases: [sex]\n    whom: [lender]",
            "rules 'sex', whom #1: found 'lender', expected one of 'bank'",
        ),
        ("phrases: [sex]", "concept: age", "line 17, rule sex, sensitivity: found it beside a concept"),
        ("phrases: [sex]", "scope: model", "rule sex, sensitivity: found something to look for in a rule for models"),
        ("phrases: [sex]", "scope: model", "rule sex, evidence: found nothing, expected what can be shown"),
        ("phrases: [sex]", "scope: models", "line 18, rules 'sex', scope: found 'models', expected one of 'feature'"),
        (
            "phrases: [sex]",
            "phrases: [sex]\n    evidence: x",
            "line 19, rule sex, evidence: found it in a rule for features",
        ),
        (
            "2020-01-01",
            "2020-01-01\n    effective_to: 2019-12-31",
            "line 17, rule sex, effective_to: found 2019-12-31",
        ),
        ("2020-01-01", "2026-13-45", "line 16, rules 'sex', effective_from: found '2026-13-45', expected a date"),
        ("sensitivity: [sex]", "sensitivity: [none]", "line 17, rule sex, sensitivity: found the tag 'none'"),
        ("jurisdiction: Nowhere", "jurisdiction: &t Nowhere\nversion2: *t", "found the alias *t"),
        ("jurisdiction: Nowhere", "? [a, b]\n: c", "tiny.yaml"),
    ],
)
def test_what_does_not_fit_is_refused_with_rule_field_and_what_to_do(tmp_path, old, new, message):
    assert message in refusal(tmp_path, GOOD.replace(old, new))


def test_a_pack_without_rules_is_refused(tmp_path):
    assert "rules" in refusal(tmp_path, GOOD[: GOOD.index("rules:")] + "rules: []\n")


def test_the_same_rule_twice_is_refused_at_the_second(tmp_path):
    again = GOOD[GOOD.index("  - id") :]
    assert "tiny.yaml, line 25, rule sex, id: found the id sex again" in refusal(tmp_path, GOOD + again)


def test_yes_and_no_in_a_list_are_words(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(GOOD.replace("phrases: [sex]", "phrases: [no, on, yes]"), encoding="utf-8")
    assert read_rule_pack(file).rules[0].phrases == ("no", "on", "yes")


def test_a_file_nested_too_deeply_or_too_large_is_refused(tmp_path):
    assert "nested too deep" in refusal(tmp_path, "[" * 100_000 + "]" * 100_000)
    assert "more than 1,000,000 bytes" in refusal(tmp_path, "#" * 1_000_001)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n"])
def test_a_file_that_is_no_table_is_refused(tmp_path, text):
    assert refusal(tmp_path, text).startswith("tiny.yaml, line 1")


def test_a_file_that_is_not_utf_8_or_absent_is_refused(tmp_path):
    assert "not UTF-8" in refusal(tmp_path, "name: é".encode("latin-1"))
    with pytest.raises(GlassleafError, match="no such file"):
        read_rule_pack(tmp_path / "none.yaml")


POLICY = """\
name: house
version: "1"
title:
  en: House policy
  zh: 内部政策
jurisdiction: The bank
source: Policy 12
as_of: 2026-11-01
rules:
  - id: house_sex
    title:
      en: Sex
      zh: 性别
    citation: Policy 12
    status: prohibited
    effective_from: 2026-01-01
    concept: sex
    explanation:
      en: Not in scores.
      zh: 不用于评分。
    remedy:
      en: Leave it out.
      zh: 移除。
  - id: house_owner
    scope: model
    title:
      en: Owner
      zh: 负责人
    citation: Policy 13
    status: informational
    effective_from: 2027-01-01
    explanation:
      en: Every model has an owner.
      zh: 每个模型有负责人。
    remedy:
      en: Name one.
      zh: 指定一名。
    evidence:
      en: Sign-offs.
      zh: 签署记录。
"""


def written(folder, name, text):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_pack_of_the_users_own_is_applied_beside_the_built_in_ones(tmp_path):
    add_rule_pack(written(tmp_path, "mine.yaml", POLICY), tmp_path / "rules")
    own, problems = read_own_packs(tmp_path / "rules")
    report = assess(
        [("bank", Feature(name="gender", meaning="A column"))], {}, (*load_packs(), *own), on=dt.date(2026, 11, 20)
    )
    assert problems == ()
    assert {f.rule_id for f in report.findings} >= {"ecoa_sex", "house_sex"}
    assert {d.rule_id: d.force for d in report.duties}["house_owner"] == "not_yet"
    assert [stamp.name for stamp in report.packs if not stamp.built_in] == ["house"]


def test_a_tag_that_only_a_users_pack_knows_cannot_hide_a_feature_from_the_built_in_rules(tmp_path):
    text = POLICY.replace("concept: sex", "sensitivity: [sx]\n    phrases: [sx]")
    own = read_rule_pack(written(tmp_path, "mine.yaml", text))
    table = [("bank", Feature(name="gender", meaning="A column", sensitivity="sx"))]
    report = assess(table, {}, (*load_packs(), own), on=dt.date(2026, 11, 20))
    matched = {f.rule_id: f.matched_in for f in report.findings}
    assert (matched["ecoa_sex"], matched["house_sex"]) == ("name", "sensitivity")


def test_a_broken_pack_is_reported_with_file_line_and_reason_and_the_others_still_apply(tmp_path):
    written(tmp_path, "a.yaml", "name: [\n")
    written(tmp_path, "b.yml", POLICY)
    written(tmp_path, "c.yaml", POLICY.replace("prohibited", "forbidden"))
    written(tmp_path, "notes.txt", "no pack")
    packs, problems = read_own_packs(tmp_path)
    assert [pack.name for pack in packs] == ["house"]
    assert len(problems) == 2
    assert problems[0].en.startswith("a.yaml, line 2: found text that is not YAML")
    assert problems[1].en.startswith("c.yaml, line 15, rules 'house_sex', status: found 'forbidden'")


def test_a_folder_that_is_not_there_holds_no_packs(tmp_path):
    assert read_own_packs(tmp_path / "rules") == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: house", "name: ecoa", "another pack is called ecoa"),
        ("id: house_sex", "id: ecoa_sex", "another pack has the rule ids ecoa_sex"),
    ],
)
def test_a_pack_that_takes_the_name_of_another_is_refused_and_set_aside(tmp_path, old, new, message):
    file = written(tmp_path, "mine.yaml", POLICY.replace(old, new))
    with pytest.raises(GlassleafError, match=message):
        add_rule_pack(file, tmp_path / "rules")
    assert not (tmp_path / "rules").exists()
    packs, (problem,) = read_own_packs(tmp_path)
    assert packs == () and message in problem.en


def test_a_newer_version_takes_the_place_of_the_older_and_the_same_one_is_refused(tmp_path):
    rules = tmp_path / "rules"
    add_rule_pack(written(tmp_path, "mine.yaml", POLICY), rules)
    with pytest.raises(GlassleafError, match="version 1 of the pack house is there already"):
        add_rule_pack(tmp_path / "mine.yaml", rules)
    add_rule_pack(written(tmp_path, "mine.yaml", POLICY.replace('version: "1"', 'version: "2"')), rules)
    assert [pack.version for pack in read_own_packs(rules)[0]] == ["2"]
    assert [file.name for file in rules.iterdir()] == ["house.yaml"]


def test_a_pack_that_cannot_be_used_is_not_kept(tmp_path):
    with pytest.raises(GlassleafError):
        add_rule_pack(written(tmp_path, "mine.yaml", POLICY.replace("concept: sex", "concept: x")), tmp_path / "rules")
    assert not (tmp_path / "rules").exists()


def test_the_pack_in_the_documents_can_be_used(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    pack = add_rule_pack(written(tmp_path, "mine.yaml", page.split("```yaml\n")[1].split("```")[0]), tmp_path / "rules")
    table = [("bank", Feature(name=name, meaning="A column")) for name in ("has_dogs", "dog_food", "gender", "pets")]
    report = assess(table, {}, [pack], on=dt.date(2026, 11, 20))
    assert [f.feature for f in report.findings] == ["gender", "has_dogs", "pets"]
    assert [(d.rule_id, d.force) for d in report.duties] == [("house_owner", "not_yet")]


def test_versions_that_are_read_without_the_rules_are_those_of_the_packs():
    assert list(built_in_versions().items()) == [(pack.name, pack.version) for pack in load_packs()]


def test_every_built_in_pack_says_in_both_languages_where_its_text_is_found():
    packs = load_packs()
    assert len(packs) > 10
    assert not [pack.name for pack in packs if not any("一" <= letter <= "鿿" for letter in pack.source.zh)]


def test_no_built_in_citation_keeps_an_english_word_in_chinese():
    cited = {rule.citation.in_language("zh") for pack in load_packs() for rule in pack.rules}
    kept = {word for text in cited for word in re.findall(r"[A-Za-z]{3,}", re.sub(r"Texas .* Communities", "", text))}
    assert kept == {"FEAT", "SCHUFA"}


@pytest.mark.parametrize("pack", load_packs(), ids=lambda pack: pack.name)
def test_a_law_is_cited_in_english_for_english_readers(pack):
    assert not [rule.id for rule in pack.rules if re.search(r"[\u4e00-\u9fff]", rule.citation.en)]
