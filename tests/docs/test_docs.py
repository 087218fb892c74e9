"""The documents say what the code does: links lead somewhere, commands exist, examples load; `make lint` has the generated parts."""

import re
from pathlib import Path

import pytest
import typer

from backend.cli import COMMANDS, app
from backend.data.federation import load_federation
from backend.data.table import read_labels, read_table
from backend.protocols.transport.message import MESSAGES
from docs import glossary

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
GROUP = typer.main.get_command(app)
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
CALL = r"(?:glassleaf|python -m backend)"
README_LINES = 92  # two screens


def text(page):
    return page.read_text(encoding="utf-8")


def lines_of_commands(page):
    """Command and the rest of its line, of every line in a block of code and every command between backticks."""
    whole = re.sub(r"\\\n\s*", "", text(page))
    inline = re.findall(rf"`{CALL} ([a-z][a-z-]*)([^`\n]*)`", whole)
    return inline + re.findall(
        rf"^\s*{CALL} ([a-z][a-z-]*)([^#\n]*)", "\n".join(re.findall(r"```sh\n(.*?)```", whole, re.S)), re.M
    )


def command(name, rest):
    found, words = GROUP.get_command(None, name), iter(rest.split())
    while (inner := getattr(found, "commands", {})) and (word := next(words, "")):
        found = inner[word]
    return found


@EVERY_PAGE
def test_every_link_leads_to_a_file_and_a_heading(page):
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text(page)) if not re.match(r"[a-z]+:", link)]
    lost = []
    for file, _, heading in (link.partition("#") for link in links):
        target = page.parent / file if file else page
        headings = re.findall(r"^#+ (.*)$", text(target), re.M) if heading and target.exists() else []
        known = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}
        if not target.exists() or (heading and heading not in known):
            lost.append(f"{file}#{heading}")
    assert lost == []


@EVERY_PAGE
def test_every_module_that_is_named_by_its_path_exists(page):
    named = re.findall(r"`((?:app|assets|backend|bench|docs|glassleaf|pages|tests)/[\w./-]+)`", text(page))
    assert [path for path in named if "NAME" not in path and not (ROOT / path).exists()] == []


@pytest.fixture(scope="module")
def tests():
    """Names of all tests and of their files."""
    files = [*(ROOT / "tests").rglob("test_*.py")]
    return {file.name for file in files} | {
        name for file in files for name in re.findall(r"^ *def (test_\w+)", text(file), re.M)
    }


@EVERY_PAGE
def test_every_test_that_is_named_exists(page, tests):
    assert set(re.findall(r"`(test_\w+(?:\.py)?)`", text(page))) <= tests


THREATS = ("threat-model.md", "threat-messages.md", "threat-limits.md")
WITH_TESTS = ("threat-limits.md", "decisions/link.md", "decisions/gate.md", "decisions/who-decides.md")


def test_the_threat_model_is_three_pages_of_at_most_900_words():
    assert {page.name for page in (ROOT / "docs").glob("threat-*.md")} == {*THREATS}
    for page in THREATS:
        assert len(text(ROOT / "docs" / page).split()) <= 900, page


def test_every_row_of_the_threat_model_that_is_to_have_a_test_names_one():
    rows = []
    for page in WITH_TESTS:
        for table in re.findall(r"^\|.*\| tests? \|\n\|[-|]+\n((?:\|.*\n)+)", text(ROOT / "docs" / page), re.M | re.I):
            rows += table.splitlines()
    assert len(rows) > 50
    for row in rows:
        cell = row.split("|")[-2]
        assert "`test" in cell or cell.strip() == "the same" or "**not covered**" in row, row


def test_the_federation_in_the_data_page_loads(tmp_path):
    for name, body in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", text(ROOT / "docs" / "data.md"), re.M | re.S):
        (tmp_path / name).write_text(body, encoding="utf-8")
    federation = load_federation(tmp_path)
    assert [p.name for p in federation.parties] == ["bank", "telecom"]
    assert read_labels(federation).tolist() == [1, 0, 0]
    assert read_table(federation, "telecom").columns["late_bills"].tolist() == [0.0, 4.0]


@EVERY_PAGE
def test_every_command_that_is_named_exists(page):
    assert {name for name, _ in lines_of_commands(page)} <= {*COMMANDS}


@EVERY_PAGE
def test_every_option_that_is_named_belongs_to_its_command(page):
    for name, rest in lines_of_commands(page):
        parameters = command(name, rest).params
        known = {
            "--help",
            *(option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)),
        }
        assert set(re.findall(r"(?<=[\s\[])--[a-z-]+", rest)) <= known, name


def test_the_commands_page_has_an_example_of_every_command():
    assert {name for name, _ in lines_of_commands(ROOT / "docs" / "commands.md")} == set(COMMANDS)


def test_the_readme_is_two_screens_and_links_every_page_and_the_decisions_are_listed():
    readme, decisions = text(ROOT / "README.md"), ROOT / "docs" / "decisions"
    linked = set(re.findall(r"\]\(docs/([\w/-]+\.md)", readme))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} | {"decisions/README.md"}
    assert len(readme.splitlines()) <= README_LINES
    pages = [page for page in decisions.glob("*.md") if page.name != "README.md"]
    titles = {page.name: text(page).splitlines()[0].removeprefix("# ") for page in pages}
    listed = re.findall(r"^\| \[(.+?)\]\((\S+?)\) \|", text(decisions / "README.md"), re.M)
    assert {file: title for title, file in listed} == titles


def test_a_score_passes_through_fifteen_files_at_most():
    rows = re.search(r"Fifteen files:\n\n\|.*\n\|.*\n((?:\|.*\n)+)", text(ROOT / "docs" / "architecture.md"))
    assert len(rows[1].splitlines()) == 15


def test_every_target_that_is_named_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z0-9-]+):", text(ROOT / "Makefile"), re.M))
    named = {target for page in PAGES for target in re.findall(r"`make ([a-z0-9-]+)", text(page))}
    assert named <= targets


def test_every_message_is_in_the_architecture_page():
    block = re.search(r"<!-- messages -->(.*)<!-- end -->", text(ROOT / "docs" / "architecture.md"), re.S)
    assert set(re.findall(r"^\| ([A-Z]\w+) \|", block[1], re.M)) == set(MESSAGES)


def test_the_glossary_says_what_the_help_page_says():
    assert text(ROOT / "docs" / "glossary.md") == glossary.render()
