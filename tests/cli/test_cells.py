"""Whatever the ids and names of a bank are, no table that leaves Glassleaf holds a formula, and each can be handed in again."""

import csv
import io
import json

import numpy as np
import openpyxl
import pandas as pd
import pytest

from backend.services import Glassleaf

SIGNS = ("=", "+", "-", "@", "＝", "'=", "''=", "")
ROWS = 240


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Empty: the federation is new to it."""
    return tmp_path_factory.mktemp("cells") / "home"


@pytest.fixture
def table(tmp_path):
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({"id": [f"{SIGNS[i % len(SIGNS)]}cmd|{i}" for i in range(ROWS)]})
    frame["=age"] = draw.integers(18, 80, ROWS)
    frame["home"] = draw.choice(["=own", "+rent"], ROWS)
    frame["debt"] = np.round(draw.normal(size=ROWS), 3)
    frame["end"] = np.where(frame["=age"] / 30 + frame["debt"] > 1.5, "bad", "good")
    frame.to_csv(tmp_path / "t.csv", index=False)
    return frame


def formulas(text):
    """Cells that a spreadsheet would run."""
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    signed = [cell for cell in cells if cell[:1] in tuple("=+-@＝")]
    return [cell for cell in signed if not cell.lstrip("-").replace(".", "").isdecimal()]


def test_tables_are_written_without_formulas_and_read_as_they_were(run, home, table, tmp_path):
    words = ("--id", "id", "--label", "end", "--positive", "bad", "--guest", "=age,home", "--host", "bureau=debt")
    status, _, error = run("init", tmp_path / "t.csv", *words, "--out", tmp_path / "f")
    assert status == 0, error
    to_fill_in = (tmp_path / "f" / "dictionary.csv").read_text(encoding="utf-8")
    assert "'=age" in to_fill_in and not formulas(to_fill_in)
    again = ("--dictionary", tmp_path / "f" / "dictionary.csv", "--name", "again")
    assert run("init", tmp_path / "t.csv", *words, *again, "--out", tmp_path / "g")[0] == 0
    status, _, error = run(
        "train", tmp_path / "f", "--trees", "3", "--depth", "2", "--cipher", "none", "--most-named", "1"
    )
    assert status == 0, error
    status, sheet, _ = run("samples", "latest")
    assert status == 0 and not formulas(sheet)
    ids = json.loads(run("samples", "latest", "--json")[1])["ids"]
    assert {one[:1] for one in ids} >= set("=+-@＝'c") and set(ids) <= set(table["id"])
    with Glassleaf(home, pools=False) as glassleaf:
        template = glassleaf.samples.template(glassleaf.models.all()[0].id).decode("utf-8-sig")
    assert not formulas(template) and "'=age" in template

    # each person is asked about once: a Host answers so often about a real person
    head, *lines = sheet.splitlines()
    part = len(lines) // 3
    (tmp_path / "people.csv").write_text("\n".join([head, *lines[:part]]), encoding="utf-8")
    book = openpyxl.Workbook()
    for row in csv.reader([head, *lines[part : 2 * part]]):
        book.active.append(row)
    book.save(tmp_path / "people.xlsx")
    status, text, error = run("score", "latest", tmp_path / "people.csv", "--cipher", "none", "--json")
    assert status == 0, error
    assert [one["id"] for one in json.loads(text)["scores"]] == ids[:part]
    out = tmp_path / "scores.csv"
    assert run("score", "latest", tmp_path / "people.xlsx", "--cipher", "none", "--out", out)[0] == 0
    written = out.read_text(encoding="utf-8")
    assert not formulas(written) and written.count(",ok,") == part
    (tmp_path / "rest.csv").write_text("\n".join([head, *lines[2 * part :]]), encoding="utf-8")
    parquet = tmp_path / "scores.parquet"  # in groups
    assert run("score", "latest", tmp_path / "rest.csv", "--cipher", "none", "--out", parquet)[0] == 0
    assert list(pd.read_parquet(parquet)["id"]) == ids[2 * part :]
    (tmp_path / "template.csv").write_text(template, encoding="utf-8")
    status, answers, error = run("score", "latest", tmp_path / "template.csv", "--cipher", "none", "--json")
    assert status == 0, error
    assert {one["status"] for one in json.loads(answers)["scores"]} == {"ok"}
