"""The shell as its user has it, and a home with a small model of the demo for it to speak about."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.cli import main
from backend.data.demo import write_demo
from backend.service import Glassleaf, SecureBoostParameters, TrainingRequest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the demo's three parties and one model."""
    home = tmp_path_factory.mktemp("home")
    write_demo(home / "demo", rows=600)
    door = Glassleaf(home, pools=False)
    door.add_federation(home / "demo")
    door.start_training(TrainingRequest("demo", SecureBoostParameters(trees=3, depth=2, cipher="none"))).get()
    door.close()
    return home


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command in that home; returns (exit status, standard output, standard error)."""
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["backend", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out = capsys.readouterr()
        return int(end.value.code or 0), out.out, out.err

    return call
