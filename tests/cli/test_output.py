"""How the shell waits for long work: progress is told, Ctrl-C stops it, a failure is raised as it is."""

import threading

import pytest

from backend.cli import output
from backend.errors import Cancelled, FederationError
from backend.jobs import Job


def test_progress_is_told_with_the_party_where_one_is_asked(capsys):
    job = Job(lambda _: None, 12_000)
    for stage, party, done in (("asked", "telecom", 1_500), ("measured", "", 3_000)):
        job.at(stage, party, done)
        output.print_progress(job)
    assert capsys.readouterr().err.splitlines() == [
        f"asked at telecom: 1,500 of 12,000, {job.seconds:.0f} s",
        f"measured: 3,000 of 12,000, {job.seconds:.0f} s",
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
        raise Cancelled("The work was cancelled.")

    def tell(_):
        raise KeyboardInterrupt

    job = Job(work, 1).start()
    with pytest.raises(Cancelled, match="was cancelled"):
        output.watched(job, tell, tick=0.01)
    assert job.state == "cancelled"


def test_what_stopped_the_work_is_raised():
    def work(_):
        raise FederationError("The table is empty; give one with rows.")

    with pytest.raises(FederationError, match="table is empty"):
        output.watched(Job(work, 1).start(), tick=0.01)
