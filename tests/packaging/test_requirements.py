"""What the wheel asks for, what is pinned and what the customer's file names belong together."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from backend import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OWNERS = {  # imported name: distribution, where they differ
    "flint": "python-flint",
    "fpdf": "fpdf2",
    "pydantic_core": "pydantic",
    "sklearn": "scikit-learn",
    "xgboost": "xgboost-cpu",
    "yaml": "PyYAML",
}
# ourselves, what a clone has beside the wheel, options of the user's (an import is proved with the library where it is installed)
NOT_ASKED_FOR = {
    "backend",
    "bench",
    "fastapi",
    "grpc",
    "joserfc",
    "lightgbm",
    "openpyxl",
    "prometheus_client",
    "pyarrow",
    "ray",
    "starlette",
    "tenacity",
    "uvicorn",
}
TESTS_ONLY = {"pytest"}  # in requirements.txt, which also runs the tests, and not in the wheel


def requirements(lines):
    found = (Requirement(line) for line in lines if line and not line.startswith(("#", "-")))
    return {canonicalize_name(r.name): r for r in found}


def pinned(name):
    return requirements((ROOT / name).read_text(encoding="utf-8").splitlines())


def exact(requirement):
    (only,) = requirement.specifier
    assert only.operator == "==", f"{requirement} is not pinned"
    return only.version


def test_requirements_pin_what_the_wheel_and_the_dashboard_ask_for_and_a_pin_is_a_version_that_is_asked_for():
    asked = requirements([*PROJECT["dependencies"], *EXTRAS["dashboard"]])
    pins = pinned("requirements.txt")
    assert set(pins) - TESTS_ONLY == set(asked)
    for name, requirement in asked.items():
        assert requirement.specifier.contains(exact(pins[name])), f"{pins[name]} is not in {requirement}"
        assert pins[name].marker == requirement.marker


def test_the_other_extras_are_pinned_for_the_tests():
    pins = pinned("requirements-dev.txt") | pinned("requirements.txt")
    for extra in set(EXTRAS) - {"dashboard"}:
        for name, requirement in requirements(EXTRAS[extra]).items():
            assert requirement.specifier.contains(exact(pins[name]))


def test_no_extra_is_empty():
    assert all(EXTRAS.values())


@pytest.mark.parametrize("name", ["streamlit", "plotly", "pandas", "phe", "numpy", "scikit-learn", "pytest"])
def test_the_customers_requirements_are_named(name):
    assert name in pinned("requirements.txt")


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_constraints_hold_every_pin(file):
    constraints = pinned("constraints.txt")
    different = {
        name for name, pin in pinned(file).items() if name in constraints and exact(constraints[name]) != exact(pin)
    }
    assert different == set()


def test_a_host_needs_neither_streamlit_nor_plotly_nor_what_reads_uploads():
    assert not {"streamlit", "plotly", "openpyxl", "pyarrow"} & set(requirements(PROJECT["dependencies"]))


def imported(folder):
    """Top-level names that the files of a folder import, at their top or inside."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_what_the_backend_imports_is_asked_for():
    asked = set(requirements(PROJECT["dependencies"]))
    names = set(imported(ROOT / "backend")) - set(sys.stdlib_module_names) - NOT_ASKED_FOR
    assert {canonicalize_name(OWNERS.get(name, name)) for name in names} - asked == set()


def test_the_citation_names_the_version_that_is_here():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert len(citation["references"]) == 5
