"""A task passes to a worker and its result back through a file in memory, of which nothing stays open and nobody opens another."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from backend.crypto import passage
from backend.crypto.passage import NotPassedError, Passage, run
from backend.crypto.workers import Workers
from backend.errors import Cancelled

pytestmark = pytest.mark.skipif(not passage.available(), reason="no files in memory here")


def files_open():
    """How many files of passages this process has open."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            found += str(one.readlink()).startswith("/memfd:glassleaf-")
        except FileNotFoundError:  # that of the folder itself
            continue
    return found


def open_in_worker(_):
    return files_open()


def test_a_result_stands_in_the_place_of_its_task():
    way = Passage(np.add, (np.arange(1 << 20), 1))
    run(*way.ticket)
    assert np.array_equal(way.held(), np.arange(1, (1 << 20) + 1))
    way.close()


def test_a_short_result_of_a_long_task_is_whole():
    way = Passage(len, (bytes(1 << 20),))
    run(*way.ticket)
    assert way.held() == 1 << 20
    way.close()


def test_a_worker_that_comes_too_late_opens_no_other_file_of_that_number():
    first = Passage(divmod, (7, 2))
    late = first.ticket
    first.close()
    other = Passage(divmod, (9, 2))
    assert other.ticket[:2] == late[:2]
    with pytest.raises(NotPassedError, match="another"):
        run(*late)
    function, task = other.held()
    assert function(*task) == (4, 1)
    other.close()
    with pytest.raises(NotPassedError):
        run(*late)


def test_a_file_that_takes_the_number_while_it_is_opened_is_left_as_it_is(tmp_path, monkeypatch):
    way = Passage(divmod, (7, 2))
    process, number, name = way.ticket
    opened = Path.open

    def taken(path, mode="r", *options):
        way.close()
        file = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
        assert file == number and os.write(file, b"other") == 5
        return opened(path, mode, *options)

    monkeypatch.setattr(Path, "open", taken)
    with pytest.raises(NotPassedError, match="another"):
        run(process, number, name)
    os.close(number)
    monkeypatch.undo()
    assert (tmp_path / "other").read_bytes() == b"other"


def test_a_task_that_cannot_be_written_leaves_nothing_open():
    before = files_open()
    with pytest.raises(Exception, match="pickle"):
        Passage(divmod, (lambda: 0, 1))
    assert files_open() == before


def test_nothing_stays_open_here_or_at_a_worker_after_results_faults_and_stops():
    before, workers = files_open(), Workers(2)
    assert list(workers.map(divmod, [(n, 2) for n in range(9)])) == [divmod(n, 2) for n in range(9)]
    with pytest.raises(ZeroDivisionError):
        list(workers.map(divmod, [(1, 1), (1, 0), (1, 1)]))
    results = workers.map(len, ((bytes(1 << 16),) for _ in range(20)))
    assert next(results) == 1 << 16
    results.close()

    def stop():
        raise Cancelled("not wanted")

    with pytest.raises(Cancelled):
        list(workers.map(time.sleep, ((0.5,) for _ in range(4)), stop))
    assert files_open() == before
    assert set(workers.map(open_in_worker, ((n,) for n in range(8)))) == {1}  # its own


def test_where_a_worker_may_not_open_the_file_the_task_goes_through_the_pipe(monkeypatch):
    before, make = files_open(), os.memfd_create
    # root, as whom tests may run, is never forbidden to open a file: to the worker it is another one
    monkeypatch.setattr(os, "memfd_create", lambda name, flags: make(f"not {name}", flags))
    assert list(Workers(2).map(divmod, [(n, 2) for n in range(9)])) == [divmod(n, 2) for n in range(9)]
    assert files_open() == before


def test_where_no_file_is_in_memory_tasks_go_through_the_pipe(monkeypatch):
    monkeypatch.setattr("backend.crypto.workers.through_memory", lambda: False)
    monkeypatch.setattr(os, "memfd_create", None)
    assert list(Workers(2).map(divmod, [(n, 2) for n in range(9)])) == [divmod(n, 2) for n in range(9)]
