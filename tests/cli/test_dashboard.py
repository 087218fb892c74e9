"""`run` without Streamlit, and the version."""

import os
import socket
import sys

import pytest

from backend import __version__
from backend.cli.dashboard import MAIN, open_streamlit
from backend.cli.output import check_port
from backend.errors import ParameterError
from backend.store.database import Database


@pytest.mark.parametrize("missing", [("streamlit",), ("plotly",), ("streamlit", "plotly")])
def test_without_the_dashboards_packages_run_says_what_to_install(run, monkeypatch, missing):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    status, out, err = run("run")
    assert (status, out) == (1, "")
    assert (
        ", ".join(missing) in err
        and "pip install 'glassleaf[dashboard]'" in err
        and "pip install '.[dashboard]'" in err
    )
    assert "Traceback" not in err


@pytest.mark.parametrize("command", [("run",), ("serve",), ("host", "run", "--folder")])
def test_a_port_that_is_taken_is_said_before_anything_else(run, tmp_path, command):
    Database(tmp_path).close()  # a Host's folder
    folder = [str(tmp_path)] if command[-1] == "--folder" else []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = run(*command, *folder, "--port", str(port), "--address", "127.0.0.1")
    assert (status, out) == (1, "") and f"Port {port} of 127.0.0.1 is not available" in err
    check_port("127.0.0.1", port)


def test_an_address_that_there_is_not_is_said():
    with pytest.raises(ParameterError, match=r"of no\.such\.host\.invalid is not available"):
        check_port("no.such.host.invalid", 8501)


def test_the_version_is_printed(run):
    assert run("--version") == (0, f"{__version__}\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="Streamlit is a child there")
@pytest.mark.parametrize(("chosen", "expected"), [("", "2"), ("8", "8")])
def test_the_dashboards_threads_share_two_arenas_of_memory_unless_told_otherwise(monkeypatch, chosen, expected):
    monkeypatch.setenv("MALLOC_ARENA_MAX", chosen)
    if not chosen:
        monkeypatch.delenv("MALLOC_ARENA_MAX")
    seen = []
    monkeypatch.setattr(os, "execv", lambda *command: seen.append(os.environ["MALLOC_ARENA_MAX"]))
    open_streamlit(MAIN, "localhost", 8501)
    assert seen == [expected]
