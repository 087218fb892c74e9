"""Work in a process of its own: what it finds and raises comes back, it can be stopped, and it leaves nothing behind."""

import os
import signal
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from backend.errors import Cancelled, ParameterError
from backend.jobs import Job, work
from backend.jobs.apart import apart


def twice(text):
    print("no answer")  # noqa: T201 - what work prints is no answer of it
    return os.getpid(), text * 2


def refused(what):
    raise ParameterError(f"{what} is refused.")


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def sleeps(file):
    Path(file).write_text(f"{os.getpid()}\n")
    time.sleep(60)


def began_and_ended():
    began = time.monotonic()
    time.sleep(0.3)
    return began, time.monotonic()


def seen_from_outside(secret):
    process = Path("/proc/self")
    return secret in (process / "cmdline").read_text() + (process / "environ").read_text()


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_it_finds_comes_back_however_long_and_the_process_has_ended():
    text = "Ä" * 1_000_000  # more than a pipe holds, both ways
    process, found = apart(twice, text)
    assert found == text * 2 and process != os.getpid() and not alive(process)


def test_what_it_raises_is_raised_here_with_its_words():
    with pytest.raises(ParameterError, match=r"^x is refused\.$"):
        apart(refused, "x")


def test_a_process_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match="died"):
        apart(dies)


def test_a_job_that_is_stopped_ends_its_process_within_a_second(tmp_path):
    file = tmp_path / "process"
    job = Job(lambda _: apart(sleeps, str(file)), 0).start()
    while not (file.exists() and file.read_text().endswith("\n")):
        time.sleep(0.02)
    asked = time.monotonic()
    job.cancel()
    job.wait(30)
    assert time.monotonic() - asked < 1 and job.state == "cancelled" and isinstance(job.failure, Cancelled)
    assert not alive(int(file.read_text()))


def test_one_process_works_at_a_time():
    found = []
    askers = [threading.Thread(target=lambda: found.append(apart(began_and_ended))) for _ in range(3)]
    for one in askers:
        one.start()
    for one in askers:
        one.join()
    found.sort()
    assert len(found) == 3 and all(before[1] <= after[0] for before, after in pairwise(found))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_what_is_asked_is_not_seen_from_outside():
    assert not apart(seen_from_outside, "a person's name")


def reports(shares):
    for share in shares:
        work.reached(share)
    return "done"


def test_how_far_it_is_reaches_whoever_follows_the_work():
    told = []
    with work.watched(lambda: None, told.append), work.part(0.5, 1.0):
        assert apart(reports, (0.25, 0.5, 1)) == "done"
    assert told == [0.625, 0.75, 1.0, 1.0]
