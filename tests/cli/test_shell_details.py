"""What a stranger meets first: help on an old console, times with their zone, one of a thing, and lines of the documents that run."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.ensemble import RandomForestClassifier

ROOT = Path(__file__).resolve().parents[2]


def code_of(page, first):
    """A block of Python of a page of the documents."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if first in block)


@pytest.mark.parametrize("words", [("train", "--help"), ("--help",)], ids=" ".join)
def test_help_is_printed_on_a_console_that_knows_ascii_alone(run, monkeypatch, words):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert run(*words)[0] == 0
    out.flush()
    assert b"Usage" in out.buffer.getvalue()


def test_times_are_printed_with_their_zone(run):
    times = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?! UTC)")
    for words in (("models",), ("audit", "show", "demo")):
        status, text, _ = run(*words)
        assert status == 0 and " UTC  " in text and not times.search(text)


def test_one_feature_is_one_feature(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "home"))
    rows = "".join(f"p{i},{i % 50},{i * 7 % 31},{'yes' if i % 50 > 24 else 'no'}\n" for i in range(100))
    (tmp_path / "t.csv").write_text("id,age,spend,late\n" + rows, encoding="utf-8")
    words = ("--id", "id", "--label", "late", "--positive", "yes", "--guest", "age", "--host", "shop=spend")
    status, text, _ = run("init", tmp_path / "t.csv", *words, "--out", tmp_path / "f", "--name", "small")
    assert status == 0 and "1 feature\n" in text and "1 features" not in text


def test_the_lines_for_python_run(home, capsys, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    code = code_of("library.md", "ScoringRequest")
    plain = code.replace("Glassleaf()", "Glassleaf(pools=False)").replace("people))", 'people, cipher="none"))')
    assert plain.count("none") == 1
    exec(plain, {})  # noqa: S102 - the documents' own words
    assert capsys.readouterr().out.count("'ok'") == 2


def test_lines_for_python_import_what_an_installation_has():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert not [text for text in texts if re.search(r"^ *(from|import) (backend|app|pages)\b", text, re.MULTILINE)]


def test_the_lines_for_scikit_learn_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    estimator = RandomForestClassifier(2, max_depth=2, random_state=0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    exec(code_of("import.md", "export"), {"estimator": estimator})  # noqa: S102 - as above
    assert json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["estimator"] == "RandomForestClassifier"


@pytest.mark.skipif(not shutil.which("make") or os.name != "posix", reason="there is no make here")
def test_make_looks_for_no_python_if_the_environment_is_there(tmp_path):
    """A version manager's shim takes a third of a second to be asked, and each start of the dashboard would ask several."""
    asked = tmp_path / "asked"
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        python = tmp_path / name
        python.write_text(f"#!/bin/sh\necho {name} >> {asked}\nexit 1\n", encoding="utf-8")
        python.chmod(0o755)
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    own.chmod(0o755)
    words = ["make", "-f", str(ROOT / "Makefile"), "-C", str(tmp_path), ".venv-made"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(words, env=environment, check=True)
    assert not asked.exists()


@pytest.mark.skipif(not shutil.which("make") or os.name != "posix", reason="there is no make here")
def test_make_says_that_a_python_is_too_old(tmp_path):
    old = tmp_path / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    words = ["make", "-f", str(ROOT / "Makefile"), "-C", str(tmp_path), ".venv-made", f"PYTHON={old}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode and "needs Python 3.11 or newer" in done.stderr and not (tmp_path / ".venv").exists()
