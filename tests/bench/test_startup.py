"""Starts are whole processes, compared with the bare libraries, and the aims are judged by what was measured."""

import subprocess

import pytest

from bench import startup, tables


def test_processes_take_turns_after_a_warm_up(monkeypatch, tmp_path):
    commands = []
    monkeypatch.setattr(
        startup.subprocess, "run", lambda command, **kwargs: commands.append((command[1:], kwargs["env"]))
    )
    startup.timed(tmp_path, 2)
    once = [list(arguments) for arguments in startup.COMMANDS.values()]
    assert [arguments for arguments, _ in commands] == 3 * once
    assert {environment["GLASSLEAF_HOME"] for _, environment in commands} == {str(tmp_path)}


def test_the_aims_are_judged_by_medians_and_ratios_of_the_same_round(monkeypatch, tmp_path):
    seconds = {
        "python": [0.1] * 3,
        "libraries": [0.5, 1.0, 0.5],
        "models": [1.0, 2.0, 0.9],
        "services": [0.5, 0.3, 0.5],
    }
    monkeypatch.setattr(startup, "start", lambda arguments, home: None)
    monkeypatch.setattr(startup, "interleaved", lambda starts, repeats: seconds)
    results = startup.timed(tmp_path, 3)
    rows = {row["name"]: row for row in results["rows"]}
    assert rows["models"]["ratio"] == 2.0 and rows["models"]["aim"] == {
        "field": "ratio",
        "at_most": 2.0,
        "reached": True,
    }
    assert rows["services"]["seconds"] == 0.5 and rows["services"]["fastest_seconds"] == 0.3
    assert rows["services"]["aim"]["reached"] is False and rows["python"]["aim"] is None
    written = tables.startup(results)
    assert "at most 2 ×: reached" in written and "at most 0.4 s: not reached" in written
    assert "`python -c 'import backend.services'`" in written


def test_a_command_that_fails_is_no_figure(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        startup.start(("-c", "raise SystemExit(3)"), tmp_path)
