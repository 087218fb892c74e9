"""The documents say what the code does: generated parts are current, links lead somewhere, examples load."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from backend.cli import app
from backend.data.federation import load_federation
from backend.data.table import read_labels, read_table
from backend.protocols.transport.message import MESSAGES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = set(typer.main.get_command(app).commands)


def text(page):
    return page.read_text(encoding="utf-8")


def check(*command):
    return subprocess.run([sys.executable, *command, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_architecture_page_fits_the_code():
    done = check("docs/architecture.py")
    assert done.returncode == 0, done.stderr


def test_the_figures_in_the_documents_are_those_of_the_committed_results():
    done = check("-m", "bench.readme")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file(page):
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text(page))]
    here = [link for link in links if link and not re.match(r"[a-z]+:", link)]
    assert [link for link in here if not (page.parent / link).exists()] == []


def test_the_federation_in_the_data_page_loads(tmp_path):
    for name, body in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", text(ROOT / "docs" / "data.md"), re.M | re.S):
        (tmp_path / name).write_text(body, encoding="utf-8")
    federation = load_federation(tmp_path)
    assert [p.name for p in federation.parties] == ["bank", "telecom"]
    assert read_labels(federation).tolist() == [1, 0, 0]
    assert read_table(federation, "telecom").columns["late_bills"].tolist() == [0.0, 4.0]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_that_is_named_exists(page):
    named = set(re.findall(r"python -m backend ([a-z][a-z-]*)", text(page)))
    assert named <= COMMANDS


def test_the_readme_names_every_command():
    assert set(re.findall(r"^python -m backend ([a-z-]+)", text(ROOT / "README.md"), re.M)) == COMMANDS


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_option_that_is_named_belongs_to_its_command(page):
    commands = typer.main.get_command(app).commands
    whole = re.sub(r"\\\n\s*", "", text(page))
    for command, rest in re.findall(r"^python -m backend ([a-z-]+)([^#\n]*)", whole, re.M):
        chosen = commands[command]
        if isinstance(chosen, typer.core.TyperGroup):
            chosen = chosen.commands[rest.split()[0]]
        known = {name for parameter in chosen.params for name in parameter.opts}
        assert set(re.findall(r"(?<=\s)--[a-z-]+", rest)) <= known


def test_every_target_that_is_named_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z0-9]+):", text(ROOT / "Makefile"), re.M))
    named = {target for page in PAGES for target in re.findall(r"`make ([a-z0-9]+)", text(page))}
    assert named <= targets


def test_every_message_is_in_the_architecture_page():
    assert set(re.findall(r"^\| ([A-Z]\w+) \|", text(ROOT / "docs" / "architecture.md"), re.M)) == set(MESSAGES)


def test_every_decision_is_linked_from_the_readme():
    linked = set(re.findall(r"docs/decisions/([\w-]+\.md)", text(ROOT / "README.md")))
    assert linked == {page.name for page in (ROOT / "docs" / "decisions").glob("*.md")}
