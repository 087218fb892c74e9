"""How the shell waits for long work: progress is told, Ctrl-C stops it, a failure is raised as it is."""

import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
from datetime import date

import numpy as np
import pytest
from sqlalchemy.exc import OperationalError

from backend import cli
from backend.cli import output
from backend.errors import Cancelled, FederationError, ParameterError
from backend.jobs import Job
from backend.remark import template


def test_progress_is_told_with_the_party_where_one_is_asked_and_the_time_left(capsys):
    now = [0.0]
    job = Job(lambda _: None, 12_000, clock=lambda: now[0])
    told = (10.0, "asked", "telecom", 1_500), (20.0, "measured", "", 3_000), (30.0, "measured", "", 4_500)
    for seconds, stage, party, done in told:
        now[0] = seconds
        job.at(stage, party, done)
        output.print_progress(job)
    assert capsys.readouterr().err.splitlines() == [
        "asked at telecom: 1,500 of 12,000, 10 s, about 60 s left",
        "measured: 3,000 of 12,000, 20 s, about 60 s left",
        "measured: 4,500 of 12,000, 30 s, about 50 s left",
    ]


def test_nothing_is_told_of_work_that_counts_no_steps_or_has_ended(capsys):
    output.print_progress(Job(lambda _: None, 0))
    output.print_progress(Job(lambda _: None, 5).start().wait())
    assert capsys.readouterr().err == ""


def test_the_result_comes_after_looks_at_the_work():
    go, looks = threading.Event(), []

    def tell(job):
        looks.append(job.state)
        go.set()

    assert output.watched(Job(lambda _: go.wait(10) and 7, 1).start(), tell, tick=0.01) == 7
    assert looks[0] == "running"


def test_an_interrupt_at_the_shell_cancels_the_work():
    stop = threading.Event()

    def work(job):
        while not job.cancelled():
            stop.wait(0.01)
        raise Cancelled("stopped_by_user")

    def tell(_):
        raise KeyboardInterrupt

    job = Job(work, 1).start()
    with pytest.raises(Cancelled) as error:
        output.watched(job, tell, tick=0.01)
    assert (error.value.code, job.state) == ("stopped_by_user", "cancelled")


def test_what_stopped_the_work_is_raised():
    def work(_):
        raise FederationError("file_empty", file="people.csv")

    with pytest.raises(FederationError) as error:
        output.watched(Job(work, 1).start(), tick=0.01)
    assert (error.value.code, error.value.values) == ("file_empty", {"file": "people.csv"})


def test_json_holds_null_where_a_number_is_not_finite(capsys):
    found = {"auc": math.nan, "rows": [1.5, (-math.inf, np.float64("nan"))], "name": "NaN", "day": date(2026, 11, 22)}
    output.print_result(found, "", as_json=True)

    def refuse(word):
        raise AssertionError(word)

    told = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert told == {"auc": None, "rows": [1.5, [None, None]], "name": "NaN", "day": "2026-11-22"}


def sqlite_full():
    raise OperationalError(
        "INSERT INTO parts VALUES (?)", ("a secret threshold",), sqlite3.OperationalError("database or disk is full")
    )


def home_is_a_file():
    raise NotADirectoryError(20, "Not a directory", "/somewhere/home/federations.json")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (sqlite_full, "database or disk is full"),
        (home_is_a_file, "/somewhere/home/federations.json: a part of its path is not a folder"),
    ],
)
def test_a_store_or_a_file_that_cannot_be_used_is_one_sentence_without_what_was_written(
    fault, told, monkeypatch, capsys
):
    monkeypatch.setattr(cli, "app", lambda prog_name: fault())
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    said = capsys.readouterr().err
    assert said.startswith("Error: ") and told in said
    assert said.count("\n") == 1 and "secret" not in said and "INSERT" not in said


@pytest.mark.parametrize(
    ("settings", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "GLASSLEAF_LANGUAGE": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "GLASSLEAF_LANGUAGE": "en"}, "en"),
    ],
)
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (sqlite_full, "store_not_usable"),
        (home_is_a_file, "file_not_usable"),
        (lambda: output.day_of("tomorrow"), "not_a_date"),
    ],
)
def test_the_shell_prints_errors_in_the_language_of_its_reader(fault, code, settings, language, monkeypatch, capsys):
    for variable in ("GLASSLEAF_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(cli, "app", lambda prog_name: fault())
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    printed = capsys.readouterr().err
    last_words = template(code, language).rpartition("}")[2]
    assert printed.startswith("错误：" if language == "zh" else "Error: ") and last_words in printed


def test_a_home_that_is_a_file_ends_with_one_sentence(tmp_path):
    (tmp_path / "home").write_text("not a folder")
    done = subprocess.run(
        [sys.executable, "-m", "backend", "models"],
        env=os.environ | {"GLASSLEAF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr


def test_workers_that_there_are_not_are_refused_instead_of_left_out():
    with pytest.raises(ParameterError, match="not-an-address cannot be used"):
        output.workers_of(1, "dask", "not-an-address")
    with pytest.raises(ParameterError, match="nonsense; choose one of loky, dask, ray"):
        output.workers_of(1, "nonsense", "")
