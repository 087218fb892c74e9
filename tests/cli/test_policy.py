"""`policy` from a shell: show, propose, approve, history."""

import json

import pytest


@pytest.fixture
def home(demo_home, monkeypatch):
    path = demo_home()
    monkeypatch.setenv("GLASSLEAF_HOME", str(path))
    return path


def test_a_line_is_set_and_approved_from_the_shell(run, home):
    status, text, _ = run("policy", "show", "latest")
    assert status == 0 and "version 1 of the policy" in text and "decline at 50.0% or above" in text
    wish = ("--decline", "0.4", "--refer", "0.25", "--points", "600,50,20", "--treat", "no_host=refuse")
    status, text, _ = run("policy", "propose", "latest", *wish, "--because", "agreed by the committee", "--as", "ana")
    assert status == 0 and "Waits for a second person: version 2" in text
    status, _, err = run("policy", "approve", "latest", "--as", "ana")
    assert status == 1 and "another person has to" in err
    status, text, _ = run("policy", "approve", "latest", "--as", "rita", "--json")
    shown = json.loads(text)
    assert (status, shown["policy"]["version"], shown["version"]["approved_by"]) == (0, 2, "rita")
    assert shown["policy"]["treatments"]["no_host"] == "refuse" and shown["proposed"] is None
    status, text, _ = run("policy", "history", "latest")
    assert status == 0 and [line.split()[1] for line in text.splitlines()] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "code_words"),
    [
        (("--decline", "0.4", "--points", "600,50"), "600,50,20"),
        (("--decline", "0.4", "--treat", "nobody=refer"), "--treat"),
        (("--decline", "0.4", "--treat", "no_host=shrug"), "choose one of"),
        (("--decline", "0.4", "--from", "tomorrow"), "not a date"),
        (("--decline", "0.4", "--refer", "0.6"), "has to come before"),
        ((), "no usable cut-off"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_in_words(run, home, options, code_words):
    status, _, err = run("policy", "propose", "latest", *options, "--because", "agreed by the committee")
    assert status == 1 and code_words in err and "Traceback" not in err


def test_what_is_measured_says_whose_line_it_is_measured_at(run, home):
    status, text, _ = run("disparity", "latest", "age")
    assert status == 0 and "cut-off 50.0%, the line of the policy (version 1)" in text
    status, text, _ = run("disparity", "latest", "age", "--cutoff", "0.3", "--json")
    assert (json.loads(text)["cutoff"], json.loads(text)["policy"]) == (0.3, None)
    report = json.loads(run("report", "latest")[1])
    measured = next(line for line in report["content"]["fairness"] if line["feature"] == "age")
    assert (measured["on"]["cutoff"], measured["on"]["policy"]) == (0.3, None)
