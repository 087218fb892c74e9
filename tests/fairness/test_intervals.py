"""Intervals: Wilson's is SciPy's; percentiles leave out undefined draws and hold the figure itself."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from backend.fairness.intervals import percentiles, wilson


@given(st.integers(1, 400), st.data())
def test_wilson_is_scipys(n, data):
    k = data.draw(st.integers(0, n))
    known = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k / n, n) == pytest.approx((known.low, known.high), abs=1e-9)


def test_percentiles_leave_out_undefined_draws_and_hold_the_value():
    drawn = np.array([np.nan, *np.arange(1000.0)])
    assert percentiles(drawn, 500.0) == pytest.approx((24.975, 974.025))
    assert percentiles(drawn, 2000.0)[1] == 2000.0 and percentiles(np.array([np.nan]), 3.0) == (3.0, 3.0)


ROOT = Path(__file__).parents[2]
# what an interval's ends are taken from
ENDS = {
    "wilson",
    "of_difference",
    "of_ratio",
    "of_mean",
    "of_standardised",
    "percentiles",
    "mirrored",
    "simultaneous",
} | {*("Z", "TAILS", "CONFIDENCE", "NormalDist")}


def makers(file):
    """Functions of a file that take an interval's ends."""
    functions = (node for node in ast.walk(ast.parse(file)) if isinstance(node, ast.FunctionDef))
    return {f.name for f in functions if any(isinstance(n, ast.Name) and n.id in ENDS for n in ast.walk(f))}


def test_every_interval_has_a_row_in_the_documents_that_names_the_simulation_which_counts_it():
    simulated = set(re.findall(r"^def (test_\w+)", (ROOT / "tests/evaluation/test_coverage.py").read_text(), re.M))
    simulated |= {row["figure"] for row in json.loads((ROOT / "bench/results/coverage.json").read_text())["rows"]}
    page = (ROOT / "docs/interpretation.md").read_text().split("## Every interval")[1].replace(r"\|", "/")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    listed = set()
    for _, made, _, counted in rows[1:]:
        file = ""
        for name in re.findall("`([^`]+)`", made):
            file = name if name.endswith(".py") else file
            listed |= set() if name == file else {(file, name)}
        names = re.findall("`([^`]+)`", counted)
        assert counted.startswith("no interval") if not names else simulated.issuperset(names), counted
    backend = ROOT / "backend"
    texts = {str(f.relative_to(backend)): f.read_text() for f in backend.rglob("*.py") if f.name != "intervals.py"}
    found = {
        (name, function)
        for name, text in texts.items()
        if "fairness.intervals" in text or "NormalDist" in text
        for function in makers(text)
    }
    assert found - listed == set()
    assert all(f"def {function}(" in texts[name] for name, function in listed)
