"""Jobs by user: found again from anywhere, bounded, nobody else's, and what a restart leaves of them."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from backend.errors import Cancelled, ParameterError
from backend.jobs import Job
from backend.remark import Remark
from backend.results import NOBODY
from backend.services import Glassleaf, job_registry
from backend.services.job_registry import MAX_HELD, JobRegistry, Upload
from backend.services.workspace import Workspace
from backend.store.database import Database
from backend.store.job_log import SILENT, JobLog
from backend.store.schema import LoggedJob

ANA, BEN = "https://id.example\nana", "https://id.example\nben"


@pytest.fixture
def registry(tmp_path):
    registry = JobRegistry(Workspace(tmp_path))
    yield registry
    registry.close()


@pytest.fixture
def go():
    """What a waiting job waits for."""
    event = threading.Event()
    yield event
    event.set()


def waiting(go, result="found"):
    def work(job):
        while not go.wait(0.01):
            job.check()
        return result

    return lambda: Job(work, 1).start()


def ended(result="found"):
    return Job(lambda job: result, 1).start().wait(5)


def states(jobs):
    return {status.name: status.state for status in jobs.all()}


def test_whoever_signs_in_finds_a_running_job_and_its_result_wherever_they_ask(registry, go):
    job = registry.of(ANA).start("score", waiting(go))
    assert registry.of(ANA).find("score") is job and states(registry.of(ANA)) == {"score": "running"}
    go.set()
    job.wait(5)
    assert registry.of(ANA).find("score").result == "found" and states(registry.of(ANA)) == {"score": "done"}


def test_nothing_of_one_user_is_seen_by_another_or_without_signing_in(registry, go):
    registry.of(ANA).start("score", waiting(go), about="asked", upload=Upload("people.csv", b"id"))
    for other in (registry.of(BEN), registry.of("")):
        assert other.all() == ()
        assert other.find("score") is other.about("score") is other.upload("score") is None
        other.forget("score")
        other.note_seen("score")
    [status] = registry.of(ANA).all()
    assert (status.state, status.seen, status.job.cancelled()) == ("running", False, False)
    assert registry.of(BEN).start("score", waiting(go)) is not status.job


def test_a_second_start_of_the_same_name_returns_the_job_that_runs(registry, go):
    jobs = registry.of(ANA)
    first = jobs.start("score", waiting(go))
    assert jobs.start("score", lambda: pytest.fail("began")) is first
    assert jobs.start("train", waiting(go)) is not first


def test_a_file_is_kept_until_its_job_has_ended_and_never_shown_by_repr(registry, go):
    jobs, file = registry.of(ANA), Upload("people.csv", b"id\nA1")
    job = jobs.start("score", waiting(go), upload=file)
    assert jobs.upload("score") == file and "A1" not in repr(file)
    go.set()
    job.wait(5)
    assert jobs.upload("score") is None


def test_a_job_that_is_refused_leaves_nothing(registry):
    def refuse():
        raise ParameterError("no")

    with pytest.raises(ParameterError, match="no"):
        registry.of(ANA).start("train", refuse)
    assert registry.of(ANA).all() == () and registry.of(ANA).find("train") is None


def test_so_many_results_are_held_the_newest_and_what_runs_stays(registry, go):
    jobs = registry.of(ANA)
    running = jobs.start("train", waiting(go))
    for n in range(MAX_HELD + 3):
        jobs.start(f"means:m{n}", ended)
    held = [n for n in range(MAX_HELD + 3) if jobs.find(f"means:m{n}") is not None]
    assert held == list(range(3, MAX_HELD + 3)) and jobs.find("train") is running
    assert states(jobs)["means:m0"] == "done"


def test_a_result_is_held_for_a_day_and_all_users_together_have_a_bound(registry, monkeypatch):
    registry.of(ANA).start("train", ended)
    monkeypatch.setattr(job_registry, "HELD_IN_ALL", 1)
    registry.of(BEN).start("train", ended)
    assert registry.of(ANA).find("train") is None and registry.of(BEN).find("train") is not None
    monkeypatch.setattr(job_registry, "HELD_FOR", -1.0)
    assert registry.of(BEN).find("train") is None


def test_after_a_restart_what_ended_is_known_and_what_ran_was_interrupted(tmp_path, go):
    before = JobRegistry(Workspace(tmp_path))
    before.of(ANA).start("evidence:m1", ended)
    before.of(ANA).start("score", waiting(go), model="m1")
    before.close()
    after = JobRegistry(Workspace(tmp_path))
    assert states(after.of(ANA)) == {"evidence:m1": "done", "score": "interrupted"}
    assert {status.model for status in after.of(ANA).all()} == {"m1"}
    assert states(after.of(BEN)) == {} and after.of(ANA).find("score") is None
    after.of(ANA).start("score", ended)
    assert [status.state for status in after.of(ANA).all() if not status.seen] == ["done", "done"]
    after.close()


def test_a_process_that_was_killed_left_no_word_so_its_silence_tells():
    log = JobLog(Database())
    log.begin(LoggedJob("ana", "train", "m1", "killed"))
    [now] = log.of("ana")
    assert now.state == "running"
    began = now.started
    [later] = log.of("ana", now=datetime.fromisoformat(began) + SILENT * 1.01)
    soon = (datetime.fromisoformat(began) + timedelta(seconds=5)).isoformat()
    assert later.state == "interrupted" and began <= later.ended < soon


def test_a_process_of_this_machine_that_was_killed_is_known_to_be_gone_at_once(registry, tmp_path, go):
    code = (
        "import sys, time; from pathlib import Path; from backend.jobs import Job;"
        "from backend.services.job_registry import JobRegistry; from backend.services.workspace import Workspace;"
        f"of = JobRegistry(Workspace(Path(sys.argv[1]))).of({ANA!r});"
        "of.start('train', lambda: Job(lambda job: time.sleep(99), 1).start()); print('runs', flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline().strip() == b"runs"
        jobs = registry.of(ANA)
        assert states(jobs) == {"train": "elsewhere"}
        other.kill()
        other.wait(60)
    assert states(jobs) == {"train": "interrupted"} and not list(tmp_path.glob("*.lock"))
    assert jobs.start("train", waiting(go)) is not None


def test_what_another_process_runs_is_shown_and_not_started_twice(registry, tmp_path, go):
    JobLog(Database(tmp_path)).begin(LoggedJob(registry.of(ANA)._user, "train", "m1", "another"))
    jobs = registry.of(ANA)
    assert states(jobs) == {"train": "elsewhere"}
    with pytest.raises(ParameterError, match="another process"):
        jobs.start("train", waiting(go))
    assert registry.of(BEN).start("train", waiting(go)) is not None


def test_seen_is_said_of_what_has_ended_only(registry, go):
    jobs = registry.of(ANA)
    jobs.start("train", ended)
    jobs.start("score", waiting(go))
    jobs.note_seen("train", "score")
    assert {status.name: status.seen for status in jobs.all()} == {"train": True, "score": False}


def test_the_table_names_no_account_and_keeps_no_reason_that_may_name_a_person(registry, tmp_path):
    def fail(job):
        raise ParameterError("at_column", column="Ida Ibsen")

    for name in ("score", "train"):
        registry.of(ANA).start(name, lambda: Job(fail, 1).start().wait(5))
    with Database(tmp_path).read() as session:
        rows = {row.name: row for row in session.scalars(select(LoggedJob))}
        assert rows["score"].failure is None and rows["train"].failure is not None
    [train] = [job for job in registry.log().of(registry.of(ANA)._user) if job.name == "train"]
    assert train.failure == Remark("at_column", {"column": "Ida Ibsen"})
    with Database(tmp_path).read() as session:
        rows = {row.name: row for row in session.scalars(select(LoggedJob))}
        assert all("ana" not in row.user for row in rows.values())


def test_the_seconds_of_the_last_run_of_the_same_size_are_expected_of_the_next(registry):
    def lasting(seconds, size):
        return lambda: Job(lambda job: time.sleep(seconds), 1, size=size).start().wait(5)

    for seconds, size in ((0.4, "A1"), (0.2, "A1"), (0.0, "A2")):
        registry.of("").start("attacks", lasting(seconds, size))
    expected = registry.last_run_seconds("", "attacks")
    assert set(expected) == {"A1", "A2"} and 0.2 <= expected["A1"] < 0.4
    assert registry.last_run_seconds("somebody else", "attacks") == {}
    assert registry.of("").start("attacks", lasting(0.0, "A1")).eta.last_run_seconds == expected["A1"]


def test_everybody_of_a_home_who_does_not_sign_in_is_one_user_and_another_home_is_another(tmp_path, go):
    one, two = (Glassleaf(tmp_path / name, pools=False) for name in ("one", "two"))
    job = one.acting(NOBODY, "analyst").jobs.of("").start("score", waiting(go))
    assert one.acting(NOBODY, "operator").jobs.of("").find("score") is job
    assert two.jobs.of("").all() == ()
    for glassleaf in (one, two):
        glassleaf.close()


def test_a_cancelled_job_is_written_down_as_such(registry, go):
    job = registry.of(ANA).start("train", waiting(go))
    job.cancel()
    job.wait(5)
    assert isinstance(job.failure, Cancelled) and states(registry.of(ANA)) == {"train": "cancelled"}
    [logged] = registry.log().of(registry.of(ANA)._user)
    assert replace(logged, seen=True).failure is None


def test_a_job_that_is_forgotten_while_it_runs_is_still_written_down_when_it_ends(registry, go):
    job = registry.of(ANA).start("score", waiting(go))
    registry.of(ANA).forget("score")
    job.wait(5)
    assert registry.of(ANA).find("score") is None and states(registry.of(ANA)) == {"score": "cancelled"}
    assert [status.seen for status in registry.of(ANA).all()] == [True]


class SlowWorkspace(Workspace):
    """Its database is there for another thread than the test's only once it is let in."""

    def __init__(self, home):
        super().__init__(home)
        self.let_in, self._test = threading.Event(), threading.current_thread()

    def home_database(self):
        assert threading.current_thread() is self._test or self.let_in.wait(60)
        return super().home_database()


def test_a_job_that_is_forgotten_before_its_end_is_written_down_is_no_news(tmp_path, go):
    workspace = SlowWorkspace(tmp_path)
    registry = JobRegistry(workspace)
    job = registry.of(ANA).start("score", waiting(go))
    go.set()
    while job.state == "running":
        time.sleep(0.01)
    registry.of(ANA).forget("score")
    workspace.let_in.set()
    job.wait(60)
    assert [(status.state, status.seen) for status in registry.of(ANA).all()] == [("done", True)]
    registry.close()


def test_the_end_of_a_job_that_follows_a_forgotten_one_is_news(registry, go):
    jobs, stopped = registry.of(ANA), threading.Event()

    def slow(job):
        stopped.wait(60)
        job.check()

    first = jobs.start("score", lambda: Job(slow, 1).start())
    jobs.forget("score")
    second = jobs.start("score", waiting(go))
    stopped.set()
    first.wait(5)
    go.set()
    second.wait(5)
    assert [(status.state, status.seen) for status in jobs.all()] == [("done", False), ("cancelled", True)]
