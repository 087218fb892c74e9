"""Every error is raised by a code, and every code has a sentence in both languages at all three doors: page, shell and HTTP."""

import ast
import inspect
import io
import json
import re
import string
import tomllib
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

from app.errors import worded
from app.texts import Texts
from backend import errors
from backend.cli import main
from backend.errors import GlassleafError, ParameterError
from backend.remark import Remark, catalogue, fields, known
from backend.server.problems import preferred_language, problem_of

ROOT = Path(__file__).resolve().parents[1]
AVOID = tomllib.loads((files("assets") / "glossary.toml").read_text(encoding="utf-8"))["avoid"]
CHINESE = "[\u4e00-\u9fff]"
CODES = sorted({key.removesuffix(".one").removesuffix(".other") for key in catalogue()})
# sentences without words of their own: another sentence stands in them
PLACES = ("at_cell", "at_row", "at_column", "and_more", "error_line", "check_peer")
FIXED = (
    "NotAgreed",
    "ApprovalPending",
    "ApprovalDenied",
    "NotAvailable",
)  # their first argument is the Host, not a code
ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, GlassleafError)}


@cache
def sample(code: str) -> dict[str, object]:
    """Return a value for each field of a code: a number if its sentence formats one, else a text."""
    numbers = {"n"}
    for key in (code, f"{code}.one", f"{code}.other"):
        if key in catalogue():
            for sentence in (catalogue()[key].en, catalogue()[key].zh):
                for _, name, spec, _ in string.Formatter().parse(sentence):
                    if name and spec:
                        numbers.add(name)
    return {name: 3 if name in numbers else "x7" for name in fields(code)}


@cache
def calls() -> list[tuple[str, ast.Call]]:
    """Return every place where backend and app make an error or a remark, with the call."""
    found = []
    for folder in ("backend", "app", "pages"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    if name in ERRORS | {"Remark"} and node.args:
                        found.append((f"{file.relative_to(ROOT)}:{node.lineno}", node))
    return found


def texts_of(node: ast.expr) -> list[str]:
    """Return the texts that an argument may be; f-strings and sums of texts with \0 where a value stands."""
    if isinstance(node, ast.IfExp):
        return texts_of(node.body) + texts_of(node.orelse)
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)]
    if isinstance(node, ast.BinOp):
        return ["\0".join(texts_of(node.left) + texts_of(node.right))]
    return []


def is_code(text: str) -> bool:
    """Return whether a text is a code, or an f-string of which some codes come."""
    if "\0" not in text:
        return known(text)
    pattern = re.compile(".+".join(map(re.escape, text.split("\0"))))
    return any(pattern.fullmatch(code) for code in CODES)


def value_names(call: ast.Call, name: str) -> set[str] | None:
    """Return the names of the values that a call gives; None if they come from a variable."""
    if name == "Remark":
        table = next((argument for argument in call.args[1:2]), None)
        table = table or next((word.value for word in call.keywords if word.arg == "values"), None)
        if table is None:
            return set()
        if not isinstance(table, ast.Dict) or None in table.keys:
            return None
        return {key.value if isinstance(key, ast.Constant) else "" for key in table.keys}
    if any(word.arg is None for word in call.keywords):
        return None
    return {str(word.arg) for word in call.keywords}


def own_values(name: str) -> set[str]:
    """Return the parameters of an error's class besides its code: some of them are values of its sentence, too."""
    if name == "Remark":
        return set()
    return set(inspect.signature(getattr(errors, name)).parameters) - {"code", "values"}


def test_no_error_is_raised_with_a_sentence() -> None:
    wrong = []
    for place, call in calls():
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name in FIXED:
            continue
        wrong += [f"{place}: {text[:80]!r}" for text in texts_of(call.args[0]) if not is_code(text)]
    assert not wrong, "\n".join(wrong)


def test_every_code_is_used() -> None:
    source = ""
    for folder in ("backend", "app", "pages"):
        for file in (ROOT / folder).rglob("*.py"):
            source += file.read_text(encoding="utf-8")
    stems = {text.replace("\0", "") for _, call in calls() for text in texts_of(call.args[0]) if "\0" in text}
    unused = []
    for code in CODES:
        by_stem = any(stem and (code.startswith(stem) or code.endswith(stem)) for stem in stems)
        if f'"{code}"' not in source and not by_stem:
            unused.append(code)
    assert not unused


def test_every_call_gives_the_values_of_its_sentence_and_no_others() -> None:
    wrong = []
    for place, call in calls():
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        names = value_names(call, name)
        for code in texts_of(call.args[0]):
            if not re.fullmatch(r"[a-z][a-z0-9_]*", code):
                continue
            assert known(code), f"{place}: assets/errors has no {code}"
            if names is None or name in FIXED:
                continue
            chooses = set() if code in catalogue() else {"n"}
            own = own_values(name)
            lacking = fields(code) - names - own
            too_many = names - fields(code) - own - chooses
            if lacking or too_many:
                wrong.append(f"{place}: {code} lacks {sorted(lacking)}, has no {sorted(too_many)}")
    assert not wrong, "\n".join(wrong)


def at_the_page(error: GlassleafError, language: str) -> str:
    """Return what a page shows."""
    return worded(Texts(language), error)


def in_the_shell(error: GlassleafError, language: str) -> str:
    """Return what a command prints before it ends with status 1."""

    def failing(prog_name: str) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as printed, pytest.raises(SystemExit):
        patch.setenv("GLASSLEAF_LANGUAGE", language)
        patch.setattr("backend.cli.app", failing)
        main()
    return printed.getvalue()


def over_http(error: GlassleafError, language: str) -> str:
    """Return the detail of the problem that a program gets; its type is the code."""
    body = json.loads(problem_of(error).response(preferred_language(f"{language};q=0.9, fr")).body)
    assert body["type"] == f"urn:glassleaf:problem:{error.code}"
    return str(body["detail"])


@pytest.mark.parametrize("door", [at_the_page, in_the_shell, over_http])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_code_is_said_in_the_readers_language_at_every_door(
    door: Callable[[GlassleafError, str], str], language: str
) -> None:
    wrong = []
    for code in CODES:
        if code in PLACES:
            continue
        for n in (1, 3):
            error = raised(code, {**sample(code), "n": n})
            sentence = door(error, language)
            has_chinese = re.search(CHINESE, sentence) is not None
            filled = re.sub(r"\{(federation|party|list)\}", "", sentence)  # what a user writes, with its brackets
            if "{" in filled or code == sentence.strip() or has_chinese != (language == "zh"):
                wrong.append(f"{code}: {sentence}")
    assert not wrong


def raised(code: str, values: dict[str, object]) -> GlassleafError:
    """Return an error as somebody catches it."""
    with pytest.raises(ParameterError) as caught:
        raise ParameterError(problems=[Remark(code, values)])
    return caught.value


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_sentence_uses_a_word_that_is_avoided(language: str) -> None:
    words = [(word, right) for right, wrong in AVOID[language].items() for word in wrong]
    used = []
    for (key, text), (word, right) in product(catalogue().items(), words):
        if word.casefold() in text.in_language(language).casefold():
            used.append(f"{key}: “{word}”, say “{right}”")
    assert not used


def test_chinese_is_set_apart_from_latin_and_uses_its_own_punctuation() -> None:
    tight = re.compile(rf"{CHINESE}[A-Za-z0-9]|[A-Za-z0-9]{CHINESE}|{CHINESE} {CHINESE}")
    half = re.compile(rf"{CHINESE}[,:;!?()]|[,;!?()]{CHINESE}|\.\.\.")
    wrong = []
    for key, text in catalogue().items():
        plain = re.sub(r"`[^`]*`", "``", re.sub(r"\{[^}]*\}", "{}", text.zh))
        found = tight.search(plain) or half.search(plain)
        if found:
            wrong.append(f"{key}: {found[0]!r} in {text.zh}")
    assert not wrong
