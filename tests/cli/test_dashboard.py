"""`run` without Streamlit, and the version."""

import sys

import pytest

from backend import __version__


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
