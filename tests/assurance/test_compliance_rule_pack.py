"""Refusing a bad rule pack with file, line and reason."""

import pytest

from backend.assurance.rule_pack import read_rule_pack
from backend.errors import GlassleafError

GOOD = """\
name: tiny
version: "1"
title: Tiny law
title_zh: 小法
jurisdiction: Nowhere
source: The book
as_of: 2026-01-31
rules:
  - id: sex
    title: Sex
    title_zh: 性别
    citation: Chapter 1
    status: prohibited
    effective_from: 2020-01-01
    sensitivity: [sex]
    phrases: [sex]
    explanation: Because.
    explanation_zh: 因为。
    remedy: Leave it out.
    remedy_zh: 移除。
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


def test_text_that_is_not_yaml_is_refused_with_its_line(tmp_path):
    assert "tiny.yaml, line 3: found text that is not YAML" in refusal(tmp_path, "name: tiny\nversion: [1\n  a: b: c\n")


def test_a_tag_that_would_make_an_object_is_refused(tmp_path):
    assert "tiny.yaml" in refusal(tmp_path, "name: !!python/object/apply:os.getcwd []\n")


def test_an_unknown_status_is_refused_with_line_rule_and_choices(tmp_path):
    text = refusal(tmp_path, GOOD.replace("status: prohibited", "status: forbidden"))
    assert text.startswith("tiny.yaml, line 13, rules 'sex', status: found 'forbidden', expected one of 'prohibited'")


def test_a_missing_field_an_unknown_key_and_a_bad_date_are_all_told(tmp_path):
    bad = GOOD.replace("    citation: Chapter 1\n", "").replace("2020-01-01", "soon") + "    colour: red\n"
    text = refusal(tmp_path, bad)
    assert "rules 'sex', citation: found nothing" in text
    assert "rules 'sex', effective_from: found 'soon', expected a date" in text
    assert "line 20, rules 'sex', colour: found an unknown key" in text


def test_a_key_that_stands_twice_is_refused_as_the_first_would_be_lost(tmp_path):
    assert "line 21: found the key 'phrases' twice" in refusal(tmp_path, GOOD + "    phrases: [gender]\n")


def test_a_badly_written_phrase_is_refused(tmp_path):
    assert "one of the lists" in refusal(tmp_path, GOOD.replace("phrases: [sex]", 'phrases: ["age of {thing}"]'))


def test_a_rule_without_phrases_and_a_pack_without_rules_are_refused(tmp_path):
    assert "phrases: found a list, expected something" in refusal(
        tmp_path, GOOD.replace("phrases: [sex]", "phrases: []")
    )
    assert "rules" in refusal(tmp_path, GOOD[: GOOD.index("rules:")] + "rules: []\n")


def test_the_same_rule_twice_is_refused(tmp_path):
    again = GOOD[GOOD.index("  - id") :]
    assert "every rule id once; sex occurs again" in refusal(tmp_path, GOOD + again)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n"])
def test_a_file_that_is_no_table_is_refused(tmp_path, text):
    assert refusal(tmp_path, text).startswith("tiny.yaml, line 1")


def test_a_file_that_is_not_utf_8_or_absent_is_refused(tmp_path):
    assert "cannot be read" in refusal(tmp_path, "name: é".encode("latin-1"))
    with pytest.raises(GlassleafError, match="cannot be read"):
        read_rule_pack(tmp_path / "none.yaml")
