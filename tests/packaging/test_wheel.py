"""The wheel: what is in it, that nothing of another project shadows it, and that its command works from any folder."""

import os
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from socket import socket

import pytest

from backend import __version__

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
INSIDE = ("app", "assets", "backend", "pages")  # below glassleaf/, imported by these names


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=ROOT, check=True)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of the commands of an environment that has the wheel, and sees the packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    (site,) = folder.rglob("site-packages")
    (site / "this-environment.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", folder, "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    return scripts


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder of another project, whose packages have the same names as ours and end whoever imports them."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name in (*INSIDE, "streamlit"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise SystemExit('the {name} of another project was imported')")
    return folder


@pytest.fixture(scope="module")
def run(installed, elsewhere, tmp_path_factory):
    """Run a command of the installed environment in that folder; returns what it printed."""
    home = tmp_path_factory.mktemp("home")
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"GLASSLEAF_HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}

    def call(*words, command="glassleaf", status=0, **more):
        done = subprocess.run(
            [installed / command, *words],
            cwd=elsewhere,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    call.home, call.environment = home, environment
    return call


def test_it_claims_one_name_in_site_packages(names):
    assert {name.partition("/")[0] for name in names} == {"glassleaf", f"glassleaf-{__version__}.dist-info"}


def test_below_that_name_stand_the_packages_of_the_clone_and_no_tests_or_benchmarks(names):
    below = {name.split("/")[1] for name in names if name.startswith("glassleaf/")}
    assert below == {"__init__.py", "__main__.py", *INSIDE}


def test_every_file_of_those_packages_is_in_it(names):
    shipped = {name.removeprefix("glassleaf/") for name in names}
    files = (file for folder in INSIDE for file in (ROOT / folder).rglob("*") if file.is_file())
    assert {
        str(f.relative_to(ROOT).as_posix()) for f in files if "__pycache__" not in f.parts and f.name != "secrets.toml"
    } <= shipped


def test_no_secret_of_a_clone_is_shipped():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert "secrets.toml" in build["exclude"]


def test_nothing_else_that_is_installed_claims_its_name():
    assert set(packages_distributions().get("glassleaf", ())) <= {"glassleaf"}


def test_the_command_tells_its_version_whatever_lies_in_the_folder(run, elsewhere):
    assert run("--version").strip() == __version__
    assert run("--version", PYTHONPATH=str(elsewhere)).strip() == __version__


def test_the_demo_is_prepared_and_scored_there(run):
    assert "20 trees" in run("demo")
    people = (run.home / "demo" / "bank.csv").read_text().splitlines()[1:3]
    ids = run.home / "people.csv"
    ids.write_text("\n".join(["id", *(line.partition(",")[0] for line in people)]))
    assert run("score", "latest", ids, "--cipher", "rlwe", "--json").count('"status": "ok"') == 2


def test_the_dashboard_opens_there(run, installed, elsewhere):
    assert "--port" in run("run", "--help")
    with socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    environment = run.environment | {"STREAMLIT_SERVER_HEADLESS": "true"}
    with subprocess.Popen(
        [installed / "glassleaf", "run", "--port", str(port)], cwd=elsewhere, env=environment
    ) as process:
        try:
            assert _health(port, process) == b"ok"
        finally:
            process.terminate()


def _health(port, process):
    for _ in range(600):
        assert process.poll() is None, "the dashboard ended"
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=1) as answer:
                return answer.read()
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError("the dashboard did not answer within a minute")


def test_benchmarks_are_said_to_be_in_a_clone_only(run):
    assert "clone" in run("bench", "cipher", "--quick", status=1).lower()


def test_a_library_user_gets_the_backend_by_the_installed_name(run):
    code = "import sys; sys.path.pop(0); import glassleaf; print(glassleaf.__version__)"
    assert run("-c", code, command="python").strip() == __version__


def test_a_library_user_with_another_backend_is_told_which_one_was_found(run, elsewhere):
    (elsewhere / "taken").mkdir()
    (elsewhere / "taken" / "backend.py").touch()
    code = "import sys; sys.path[0] = 'taken'; import glassleaf; glassleaf.Glassleaf"
    assert "another package called backend" in run("-c", code, command="python", status=1)
