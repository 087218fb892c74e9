"""A party's workers give the same results in the same order wherever they run."""

import sys

import pytest

from backend.crypto.workers import Workers
from backend.errors import ParameterError


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
