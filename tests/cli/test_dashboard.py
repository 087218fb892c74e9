"""`run` without Streamlit, and the version."""

import os
import sys

import pytest

from backend import __version__
from backend.cli.dashboard import MAIN, open_streamlit


@pytest.mark.parametrize("missing", [("streamlit",), ("plotly",), ("streamlit", "plotly")])
def test_without_the_dashboards_packages_run_says_what_to_install(run, monkeypatch, missing):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    status, out, err = run("run")
    assert (status, out) == (1, "")
    assert (
        " and ".join(missing) in err
        and "pip install 'glassleaf[dashboard]'" in err
        and "pip install '.[dashboard]'" in err
    )
    assert "Traceback" not in err


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
