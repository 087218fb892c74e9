"""Next to a bank's own federation the demo is never the model that is meant; and every part of a model's records can be picked."""

import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app.panels import person
from backend.cli import dashboard
from backend.results import JOINT, OUTSIDE
from backend.services import Glassleaf

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own(tmp_path):
    """A bank's table, and how it is divided."""
    rows = "".join(f"p{i},{i % 50},{i * 7 % 31},{'yes' if i % 50 > 24 else 'no'}\n" for i in range(300))
    (tmp_path / "own.csv").write_text("id,age,spend,late\n" + rows, encoding="utf-8")
    words = ("--id", "id", "--label", "late", "--positive", "yes", "--guest", "age", "--host", "shop=spend")
    return ("init", tmp_path / "own.csv", *words, "--out", tmp_path / "own")


TRAINED = ("--trees", "2", "--depth", "2", "--cipher", "none", "--most-named", "1")


def test_latest_and_what_pages_open_on_are_the_banks_own(run, own, home, tmp_path):
    demo = json.loads(run("models", "--json")[1])[0]["id"]
    assert json.loads(run("samples", "latest", "--json")[1])["model"] == demo
    assert run(*own)[0] == 0
    status, _, error = run("samples", "latest")
    assert status == 1 and demo in error and "never means the demo" in error
    assert run("samples", demo)[0] == 0
    assert run("train", tmp_path / "own", *TRAINED)[0] == 0
    assert run("train", "demo", *TRAINED)[0] == 0  # newer than the bank's
    with Glassleaf(home, pools=False) as glassleaf:
        (model,) = glassleaf.models.all("own")
        assert glassleaf.models.opening().id == model.id
    assert json.loads(run("samples", "latest", "--json")[1])["model"] == model.id


@pytest.mark.parametrize("command", [("run",), ("demo",), ("train",), ("train", "demo")], ids=" ".join)
@pytest.mark.parametrize("there", [True, False])
def test_the_demo_enters_no_home_that_has_a_federation(run, own, tmp_path, monkeypatch, command, there):
    home = tmp_path / "bank"
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    monkeypatch.setattr(dashboard, "open_streamlit", lambda *given: None)
    run_there = partial(_in_home, run, monkeypatch, home)
    assert run_there(*own)[0] == 0
    if not there:  # a disk that is not mounted
        (tmp_path / "own").rename(tmp_path / "away")
    status, _, error = run_there(*command)
    assert status == (0 if command == ("run",) else 1) and (status == 0 or "GLASSLEAF_HOME" in error)
    assert not (home / "demo").exists()
    with Glassleaf(home, pools=False) as glassleaf:
        assert "demo" not in [one.name for one in glassleaf.federations.all()]


def test_no_page_of_a_bank_offers_the_demo(run, own, tmp_path, monkeypatch):
    home = tmp_path / "bank"
    assert _in_home(run, monkeypatch, home, *own)[0] == 0
    for page in ("overview", "own_data"):
        at = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
        at = at.switch_page(f"../pages/{page}.py").run()
        assert not at.exception
        assert not {"prepare_demo", "own_go_demo"} & {button.key for button in at.button}


def _in_home(run, monkeypatch, home, *words):
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    return run(*words)


@pytest.mark.parametrize(
    ("parts", "offered"),
    [
        (["training", "test", "validation"], ["test", "validation", "training"]),
        ([JOINT, JOINT, OUTSIDE], [JOINT, OUTSIDE]),
    ],
)
def test_the_parts_that_records_have_can_be_picked(parts, offered):
    people = pd.DataFrame({"part": parts}, index=[f"p{i}" for i in range(len(parts))])
    assert person.parts_of(people) == offered
    assert person.options(people, None) == [f"p{i}" for i, part in enumerate(parts) if part == offered[0]]
