"""Both catalogues say the same things, every key that the code asks for is there, and hostile texts stay text."""

import ast
import dataclasses
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from typing import get_type_hints as hints

import pytest

from app.panels import training
from app.texts import Texts, amount, bare, catalogue, cut, label, markdown, number, percent, signed, size, wrap
from backend.data.dictionary import Feature
from backend.data.federation import Federation
from backend.data.label import Label
from backend.i18n import LANGUAGES, NO_MEANING, Text
from backend.protocols.training.algorithms import ALGORITHMS
from backend.protocols.transport.message import MESSAGES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [*ROOT.glob("app/**/*.py"), *ROOT.glob("pages/*.py")]
WALKS = list((ROOT / "tests" / "e2e").glob("*.py"))
LITERAL = re.compile(r"""(?:\b[tT]\(|section\(t,)\s*f?["']([a-z_]+\.[A-Za-z_.]+)["']""")
# sections whose keys come out of results, parameter classes, reports, dictionaries, remarks, dates of the law; see test_details,
# test_notice_details
BY_RESULT = (
    "attack",
    "direction",
    "document",
    "error",
    "message",
    "notice",
    "compared",
    "place",
    "product",
    "notice_details",
    "stage",
    "glossary",
    "parameter",
    "choice",
    "document",
    "measure",
    "unit",
    "sheet",
    "law",
    "validation_words",
    "jurisdiction",
    "details",
    "dossier",
    "mapping",
)
# what fills a text in, and what looks for one on a page
FILLED = ("t", "T", "ZH", "self.t", "self.words", "words", "write.words", "in_both")
COMPARED = ("says",)
CALLED = re.compile(r"\b(?:t|T|ZH|words|in_both|says)\(")
PATTERN = re.compile(r"""f["']([a-z_]+)\.(\w*)\{""")


def base(key: str) -> str:
    return re.sub(r"\.(zero|one|other)$", "", key)


def holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_catalogues_have_the_same_keys() -> None:
    assert set(catalogue("en")) == set(catalogue("zh"))


def test_every_plural_has_a_singular() -> None:
    keys = set(catalogue("en"))
    assert {base(k) for k in keys if k.endswith(".one")} == {base(k) for k in keys if k.endswith(".other")}


def test_a_translation_fills_in_no_more_than_the_original() -> None:
    english = {base(key): set() for key in catalogue("en")}
    for key, text in catalogue("en").items():
        english[base(key)] |= holes(text)
    wrong = [key for key, text in catalogue("zh").items() if not holes(text) <= english[base(key)]]
    assert not wrong


def test_every_key_in_the_code_is_in_the_catalogue() -> None:
    known = {base(key) for key in catalogue("en")}
    asked = {key for source in [*SOURCES, *WALKS] for key in LITERAL.findall(source.read_text(encoding="utf-8"))}
    assert len(asked) > 100
    assert not sorted(asked - known)


def test_every_assembled_key_has_a_text_to_begin_with() -> None:
    known = {base(key) for key in catalogue("en")}
    asked = {match for source in SOURCES for match in PATTERN.findall(source.read_text(encoding="utf-8"))}
    assert not [f"{part}.{start}" for part, start in asked if not any(k.startswith(f"{part}.{start}") for k in known)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_has_a_sign_that_nobody_sees_and_a_search_stumbles_over(language: str) -> None:
    assert [key for key, text in catalogue(language).items() if {"\u2060", "\u200b", "\ufeff"} & set(text)] == []


def keys_of(argument: ast.expr) -> set[str]:
    """Return the keys that an argument may be; "" stands for what is not written out."""
    if isinstance(argument, ast.IfExp):
        return keys_of(argument.body) | keys_of(argument.orelse)
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return {argument.value}
    return {""}


def calls_with_keys(known: set[str]) -> Iterator[tuple[str, ast.Call, set[str]]]:
    """Yield place, call and keys of each call in the code, and in the pages' tests, whose keys are written out."""
    for source in [*SOURCES, *ROOT.glob("backend/**/*.py"), *ROOT.glob("tests/app/*.py")]:
        code = source.read_text(encoding="utf-8")
        if not CALLED.search(code):
            continue
        for call in ast.walk(ast.parse(code)):
            if isinstance(call, ast.Call):
                for argument in call.args[:2]:
                    keys = keys_of(argument)
                    if keys <= known:
                        yield f"{source.relative_to(ROOT)}:{call.lineno}", call, keys


def test_every_call_with_a_key_gives_the_values_of_its_text_and_no_others() -> None:
    asked: dict[str, set[str]] = {}
    allowed: dict[str, set[str]] = {}
    for language in LANGUAGES:
        for key, text in catalogue(language).items():
            asked.setdefault(base(key), set()).update(holes(text))
            allowed.setdefault(base(key), set()).update(holes(text) | ({"n"} if key != base(key) else set()))
    checked = 0
    wrong = []
    for place, call, keys in calls_with_keys(set(asked)):
        called = ast.unparse(call.func)
        if called not in (*FILLED, *COMPARED):
            continue
        checked += 1
        given = {str(word.arg) for word in call.keywords if word.arg not in (None, "language")}
        from_table = any(word.arg is None for word in call.keywords)
        lacking = set().union(*(asked[key] for key in keys)) - given
        too_many = given - set().union(*(allowed[key] for key in keys))
        if too_many or (lacking and called in FILLED and not from_table):
            wrong.append(f"{place}: {sorted(keys)} lacks {sorted(lacking)}, has no {sorted(too_many)}")
    assert checked > 2000
    assert not wrong, "\n".join(wrong)


def test_no_text_stands_in_the_catalogue_for_nothing() -> None:
    code = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES)
    assembled = {f"{part}.{start}" for part, start in PATTERN.findall(code)}
    named = set(re.findall(r"""["']([a-z0-9_]+)["']""", code))
    printed = (ROOT / "backend" / "cli" / "monitoring.py").read_text(encoding="utf-8")
    literal = set(re.findall(r"[a-z_]+\.[A-Za-z0-9_.]*[A-Za-z0-9_]", code + printed))
    stems = named | {"prohibited", "conditional", "indicator", "informational", "boolean"}
    unused = []
    for key in sorted({base(key) for key in catalogue("en")}):
        part, name = key.split(".", 1)
        stem = re.sub(r"_(help|link|holds|never|note)$", "", name)
        starts_right = any(start != f"{part}." and key.startswith(start) for start in assembled)
        if name not in ("title", "question") and not (
            key in literal or starts_right or (f"{part}." in assembled and stem in stems) or part in BY_RESULT
        ):
            unused.append(key)
    assert not unused


def test_every_parameter_and_every_choice_has_its_words_and_there_are_no_others() -> None:
    fields = {f.name: hint for p in ALGORITHMS.values() for f in dataclasses.fields(p) for hint in [hints(p)[f.name]]}
    drawn = {name: hint for name, hint in fields.items() if name not in training.OWN_STEP_PARAMETERS}
    special = {f"{name}_{algorithm}_help" for name in drawn for algorithm in ALGORITHMS}
    named = {key.split(".", 1)[1] for key in catalogue("en") if key.startswith("parameter.")}
    choices = {key.split(".", 1)[1] for key in catalogue("en") if key.startswith("choice.")}
    assert named - special == set(drawn) | {f"{name}_help" for name in drawn}
    assert choices == {f"{name}_{choice}" for name, hint in drawn.items() for choice in get_args(hint)}


def test_every_message_on_the_wire_has_its_words_and_there_are_no_others() -> None:
    kinds = {name for name, kind in MESSAGES.items() if kind.__module__.startswith("backend.")}
    named = {tuple(key.split(".")[1:]) for key in catalogue("en") if key.startswith("message.")}
    assert named == {(kind, what) for kind in kinds for what in ("title", "holds", "readable")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_can_be_filled_in(language: str) -> None:
    t = Texts(language)
    asked: dict[str, set[str]] = {}
    for key, text in catalogue(language).items():
        asked.setdefault(base(key), set()).update(holes(text), {"n"} if key != base(key) else set())
    for key, names in asked.items():
        for count in (0, 1, 2):
            assert t(key, **dict.fromkeys(names, count))


def test_one_is_singular_and_two_are_plural_and_none_has_its_words_where_there_are_some() -> None:
    t = Texts("en")
    assert t("compliance.waiting", n=0) == catalogue("en")["compliance.waiting.zero"]
    assert t("overview.open", n=0) == "0 findings open"
    assert t("overview.open", n=1) == "1 finding open"
    assert t("overview.open", n=2) == "2 findings open"


def test_a_list_in_words_has_one_and() -> None:
    assert Texts("en").listed(["a", "b", "c"]) == "a, b and c"
    assert Texts("en").listed(["a"]) == "a"
    assert Texts("zh").listed(["银行 9", "电信 7", "平台 8"]) == "银行 9、电信 7 和平台 8"  # figures are set apart


def test_sentences_are_joined_as_each_language_does_and_empty_ones_are_left_out() -> None:
    assert Texts.joined("One.", "", "Two.") == "One. Two."
    assert Texts.joined("一。", "二。", "") == "一。二。"
    assert Texts.joined("**一。**", "二。") == "**一。** 二。"  # else Markdown would not end the emphasis


def test_no_line_ends_between_a_figure_and_its_unit() -> None:
    t = Texts("en")
    for shown in (percent(0.044), size(93_700), t.duration(0.5), t.duration(90), amount(1290, "€"), t("card.interval")):
        assert re.search(r"\d [%a-zA-Z€]", shown.split(" of ")[0].split(" bootstrap")[0]) is None, shown


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0437, "44 ms"), (7.0, "7 s"), (25.72, "26 s"), (228.0, "3.8 min"), (50_000.0, "14 h")]
)
def test_what_is_expected_has_two_digits_for_it_was_not_measured(seconds: float, expected: str) -> None:
    assert Texts("en").about(seconds).replace("\u00a0", " ") == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.78261, "0.783"),
        (1290, "1,290"),
        (12.44, "12.4"),
        (0, "0"),
        (1.5, "1.50"),
        (-1.84, "−1.84"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_shares_signs_and_sizes_read_well() -> None:
    assert percent(0.614) == "61.4\u00a0%"
    assert percent(1.0) == "100\u00a0%"
    assert signed(-0.25) == "−0.250"
    assert bare(30500.0) == "30,500"
    assert bare(1.5) == "1.5"
    assert size(812) == "812\u00a0B"
    assert size(101_300) == "101\u00a0kB"


def test_a_meaning_that_nobody_gave_says_so_in_the_readers_language() -> None:
    zh = Texts("zh")
    feature = Feature.model_construct(name="x", meaning=Text(f"年龄 {NO_MEANING}"))
    assert (zh.meaning(feature), Texts("en").meaning(feature)) == (
        zh.noted("年龄", zh("words.no_meaning")),
        feature.meaning.en,
    )
    label = Label(column="违约", positive="是", meaning=f"违约 is 是 {NO_MEANING}")
    federation = Federation.model_construct(label=label)
    assert zh.label(federation) == zh.noted("违约 = 是", zh("words.no_meaning"))
    assert Texts("en").label(federation) == label.meaning.en


def test_federations_of_one_title_are_told_apart_by_their_short_names() -> None:
    every = [Federation.model_construct(name=name, title=Text(title)) for name, title in zip("abc", "XXY", strict=True)]
    assert Texts("en").federations(every) == {"a": "X (a)", "b": "X (b)", "c": "Y"}


def test_a_hostile_meaning_stays_text() -> None:
    hostile = "[x](javascript:alert(1)) <script> :red[no] **bold** $a$"
    shown = markdown(hostile)
    assert re.search(r"(?<!\\)[\[\]<>*$:]", shown) is None
    assert "<" not in label(hostile)


def test_a_long_meaning_is_wrapped_and_cut() -> None:
    assert wrap("one two three four five six", 9, 2) == "one two<br>three…"
    assert cut("近十二个月还款逾期次数", 8) == "近十二个…"
    assert cut("short", 8) == "short"
    assert "<br>" in wrap("近十二个月还款逾期次数", 8, 3)
    assert wrap("近 12 个月", 30) == "近 12 个月"


# what mdast-util-gfm-autolink-literal, the Markdown of the pages, makes a link of, whatever is escaped
LINKED = re.compile(
    r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)|(?:^|(?<=[\s\W]))([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)", re.IGNORECASE
)


@pytest.mark.parametrize(
    "text",
    [
        "http://evil.example/a?b",
        "see HTTPS://evil.example.",
        "www.evil.example",
        "Www.evil.example",
        "ann+x@evil.example",
        "(a@b.cd)",
    ],
)
def test_an_address_in_a_meaning_is_shown_letter_by_letter_and_is_no_link(text: str) -> None:
    shown = markdown(text).replace("\\", "")
    assert LINKED.search(text) and not LINKED.search(shown)
    assert shown.replace("\u2060", "") == text


def test_a_text_without_an_address_holds_nothing_unseen() -> None:
    assert markdown("ratio 3:1 @ home, http and www") == r"ratio 3\:1 @ home, http and www"


def test_a_scale_after_a_number_stands_in_brackets_and_a_unit_does_not() -> None:
    said = [Texts("en").after(Feature(name="mix", meaning="Mix", unit=unit)) for unit in ("0–100", "months", "")]
    assert said == [" (0–100)", " months", ""]
