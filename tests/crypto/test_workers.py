"""A party's workers give the same results in the same order wherever they run."""

import sys
import time

import joblib
import pytest

from backend.crypto.workers import Workers
from backend.errors import Cancelled, ParameterError


def squares(workers):
    return list(workers.map(pow, ((n, 2) for n in range(20))))


@pytest.mark.parametrize("workers", [Workers(), Workers(2), Workers(2, "threading")])
def test_results_come_in_order(workers):
    assert squares(workers) == [n * n for n in range(20)]


def test_one_job_on_this_machine_leaves_no_process():
    assert not Workers(1).parallel and Workers(2).parallel and Workers(1, "dask").parallel


def test_tasks_are_drawn_as_they_are_needed():
    drawn = []

    def tasks():
        for n in range(1000):
            drawn.append(n)
            yield (n, 2)

    results = Workers(2, "threading").map(pow, tasks())
    assert next(results) == 0
    assert len(drawn) < 1000
    results.close()


@pytest.mark.slow
def test_results_that_are_wanted_no_more_are_not_waited_for_and_other_jobs_go_on():
    workers = Workers(2)

    def check():
        raise Cancelled("not wanted")

    other = workers.map(pow, ((n, 2) for n in range(20)))
    assert next(other) == 0
    began = time.perf_counter()
    stopped = workers.map(time.sleep, ((3,) for _ in range(10)), check)
    with pytest.raises(Cancelled):
        next(stopped)
    assert time.perf_counter() - began < 2.5
    assert list(other) == [n * n for n in range(1, 20)]


def test_a_fault_in_a_task_is_raised_and_the_workers_go_on():
    with pytest.raises(ZeroDivisionError):
        list(Workers(2).map(divmod, [(1, 1), (1, 0)]))
    assert squares(Workers(2)) == [n * n for n in range(20)]


def test_an_unknown_backend_is_a_clear_error():
    with pytest.raises(ParameterError, match="'spark' cannot be used"):
        squares(Workers(2, "spark"))


def test_ray_that_is_not_installed_is_a_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ParameterError, match="pip install ray"):
        squares(Workers(2, "ray"))


def test_a_dask_scheduler_that_is_not_there_is_a_clear_error(monkeypatch):
    pytest.importorskip("distributed", reason="Dask is an extra; it is not installed")
    monkeypatch.setattr("backend.crypto.workers.CONNECT_SECONDS", 0.3)
    with pytest.raises(ParameterError, match=r"127\.0\.0\.1:9 cannot be used"):
        squares(Workers(2, "dask", "tcp://127.0.0.1:9"))
    with pytest.raises(ParameterError, match=r"127\.0\.0\.1:9 cannot be used"):
        Workers(1, "dask", "tcp://127.0.0.1:9").connected()  # though nothing is to be done yet
    assert Workers(2).connected() == Workers(2)


class LostError(OSError):
    """As a cluster's connection ends."""


def test_a_fault_of_a_task_is_no_lost_cluster():
    with pytest.raises(ZeroDivisionError):
        list(Workers(2, "threading").map(divmod, [(1, 1), (1, 0)]))


def test_workers_that_are_lost_are_a_clear_error(monkeypatch):
    def breaking(calls):
        yield next(iter(calls))[1][0]
        raise LostError("closed")

    monkeypatch.setattr(joblib, "Parallel", lambda **_: breaking)
    results = Workers(2, "threading", "tcp://10.0.0.5:8786").map(pow, [(3, 2), (4, 2)])
    assert next(results) == 3
    with pytest.raises(ParameterError, match=r"threading cluster tcp://10\.0\.0\.5:8786 were lost .* \(LostError\)"):
        next(results)


@pytest.mark.slow
def test_a_dask_cluster_that_ends_in_the_midst_of_the_work_is_a_clear_error():
    distributed = pytest.importorskip("distributed", reason="Dask is an extra; it is not installed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    workers = Workers(2, "dask", cluster.scheduler_address)
    results = workers.map(_waited, ((n,) for n in range(40)))
    assert next(results) == 0
    cluster.close()
    with pytest.raises(ParameterError, match="were lost"):
        list(results)
    workers.close()


def _waited(n):
    time.sleep(0.5)
    return n
