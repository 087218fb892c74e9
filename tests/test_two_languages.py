"""What has two languages is one `Text`: no field, attribute or parameter `x_zh` is left beside an `x`."""

import ast
import re
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from backend import remark
from backend.data.dictionary import Bilingual
from backend.i18n import LANGUAGES, SINGULAR, Text, catalogue, fill, in_both

ROOT = Path(__file__).resolve().parents[1]
FILES = [file for folder in ("backend", "app", "pages", "bench") for file in (ROOT / folder).rglob("*.py")]


def names(tree: ast.AST) -> set[str]:
    """All names of fields, variables, attributes, parameters and keyword arguments; strings are data."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found.add(name)
    return found


def test_no_name_ends_in_a_language():
    left = {}
    for file in FILES:
        source = file.read_text(encoding="utf-8")
        if "_zh" not in source:
            continue
        found = sorted(name for name in names(ast.parse(source)) if name.endswith("_zh"))
        if found:
            left[str(file.relative_to(ROOT))] = found
    assert FILES and left == {}


@pytest.mark.parametrize("folder", ["backend/compliance/rules", "backend/reports/notices", "backend/evaluation"])
def test_no_shipped_file_of_rules_or_tests_has_a_pair(folder):
    keys = []
    for file in (ROOT / folder).rglob("*"):
        if file.suffix in (".yaml", ".toml"):
            lines = file.read_text(encoding="utf-8").splitlines()
            pairs = ("title", "citation", "explanation", "remedy", "quote_from", "evidence", "source", "applies_to")
            keys += [
                line for line in lines if line.strip().removeprefix("- ").startswith(tuple(f"{p}_zh" for p in pairs))
            ]
    assert keys == []


class Named(BaseModel):
    """A form with one text."""

    title: Bilingual


def test_a_file_gives_english_alone_or_a_table_of_both_and_nothing_else():
    assert Named.model_validate({"title": "Bank"}).title == Text("Bank")
    both = Named.model_validate({"title": {"en": "Bank", "zh": "银行"}})
    assert both.title == Text("Bank", "银行")
    assert Named.model_validate(both.model_dump(mode="json")) == both
    assert Named(title=Text("Bank")).model_dump(mode="json") == {"title": "Bank"}
    with pytest.raises(ValidationError):
        Named.model_validate({"title": {"en": "Bank", "cn": "银行"}})


def test_a_text_of_the_catalogues_is_in_both():
    text = in_both("measure.group_all")
    assert [text.in_language(language) for language in LANGUAGES] == [
        catalogue(language)["measure.group_all"] for language in LANGUAGES
    ]


# Words that end in s behind a value and are no plural of what is counted.
NO_PLURALS = (
    "is has does s was as asks exists means waits says speaks goes sends states comes costs falls "
    "shuffles leads wants encrypts turns filters keeps identifies reveals replies logs prohibits heads "
    "improves worsens minus pass describes needs discloses its greets refuses stores belongs differs "
    "requires returns warns narrows widens opens hands books repeats becomes measures decrypts runs holds ms focus women men"
)
COUNTED = re.compile(r"\{(\w+)(?::[^}]*)?\}\*{0,2}((?: [a-z]+){1,2})")


def test_one_of_anything_is_not_in_the_plural_in_any_english_text():
    texts = catalogue("en") | {code: text.en for code, text in remark.catalogue().items()}
    with_one = {key: text for key, text in texts.items() if not key.endswith((".one", ".other", ".zero"))}
    strange = {}
    plural = {}
    for key, text in with_one.items():
        for name, behind in COUNTED.findall(text):
            words = behind.split()
            noun = (
                words[1]
                if words[0] in ("more", "other", "different", "new", "joint", "test") and words[1:]
                else words[0]
            )
            if noun.endswith("s") and noun not in SINGULAR and noun not in NO_PLURALS.split():
                strange[key] = noun
            if noun in SINGULAR and f"1 {' '.join(words)}" in fill(f"{{{name}}}{behind}", "en", {name: 1}):
                plural[key] = noun
    assert len(with_one) > 3000 and strange == {} and plural == {}
    assert fill("**{n}** features, {rows} rows", "en", {"n": 1, "rows": 21}) == "**1** feature, 21 rows"
    assert (
        in_both("measure.group_more", n=1).en == "1 more code"
        and in_both("measure.group_more", n=2).en == "2 more codes"
    )
