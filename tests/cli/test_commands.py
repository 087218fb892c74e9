"""Which commands there are, what each loads, and that earlier names still work."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from backend import __version__
from backend.cli import COMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
GROUP = typer.main.get_command(app)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there_and_says_what_it_does(name):
    command = GROUP.get_command(None, name)
    assert command is not None and command.name == name and command.help


def test_the_version_is_printed():
    assert CliRunner().invoke(app, ["--version"]).output.strip() == __version__


def test_an_unknown_command_is_refused():
    assert CliRunner().invoke(app, ["no-such-command"]).exit_code == 2


HEAVY = (
    "pandas",
    "scipy",
    "sklearn",
    "tenseal",
    "joblib",
    "fpdf",
    "fairlearn",
    "xgboost",
    "streamlit",
    "plotly",
    "rbcl",
)
LISTED = (
    "from backend.cli import app; sys.argv = ['glassleaf', 'models']\ntry:\n    app()\nexcept SystemExit:\n    pass\n"
)


@pytest.mark.parametrize(
    ("code", "heavy"), [("import backend.services\n", (*HEAVY, "sqlalchemy", "cryptography")), (LISTED, HEAVY)]
)
def test_listing_models_loads_no_library_that_it_does_not_need(home, code, heavy):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}sys.stderr.write(','.join(m for m in {heavy} if m in sys.modules))"],
        cwd=ROOT,
        env={"GLASSLEAF_HOME": str(home), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "" and ("3 trees" in done.stdout) == (code == LISTED)
