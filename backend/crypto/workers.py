"""A party's own worker processes, by joblib: on this machine (loky), or on a cluster of the party's own (Dask, Ray).

What goes to a worker stays inside the party; another party is reached by messages only.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

from backend.errors import ParameterError

R = TypeVar("R")
BLOCK = 2  # tasks a worker in a block
CONNECT_SECONDS = 10


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Workers:
    """Where a party's bulk work is done.

    Attributes
    ----------
    jobs : int
        Tasks at a time; 1 = in this process, one after the other.
    backend : str
        A joblib backend: ``loky`` (processes here), ``dask``, ``ray`` or another one that is registered with joblib.
    scheduler : str
        Address of the Dask scheduler, e.g. ``tcp://10.0.0.5:8786``; empty otherwise.
    """

    jobs: int = 1
    backend: str = "loky"
    scheduler: str = ""

    @property
    def parallel(self) -> bool:
        """Whether tasks leave this process."""
        return self.jobs > 1 or self.backend != "loky"

    def map(self, function: Callable[..., R], tasks: Iterable[tuple[Any, ...]]) -> Generator[R, None, None]:
        """``function(*task)`` for every task, in order; tasks are drawn as they are needed. Close it, in the same thread, to stop early.

        Raises
        ------
        ParameterError
            The backend is not installed, or its scheduler cannot be reached.
        """
        if not self.parallel:
            return (function(*task) for task in tasks)
        return self._in_blocks(function, iter(tasks))

    def close(self) -> None:
        """Leave the cluster, if there is one; worker processes of this machine end by themselves when they are idle."""
        if self.backend == "dask" and _dask_client.cache_info().currsize:
            _dask_client(self.scheduler).close()
            _dask_client.cache_clear()

    def _in_blocks(self, function: Callable[..., R], tasks: Iterator[tuple[Any, ...]]) -> Generator[R, None, None]:
        """While one block's results are used the next block is under way, so that no more than two are held."""
        size = BLOCK * self.jobs
        under_way: deque[Generator[R, None, None]] = deque()
        try:
            while block := list(islice(tasks, size)):
                under_way.append(self._parallel()(delayed(function)(*task) for task in block))
                if len(under_way) == 2:
                    yield from under_way[0]
                    under_way.popleft()
            while under_way:
                yield from under_way[0]
                under_way.popleft()
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # joblib regrets results that nobody wants any more; the job was stopped
                for results in under_way:
                    results.close()

    def _parallel(self) -> Parallel:
        options: dict[str, Any] = {}
        if self.backend == "dask":
            options["client"] = _dask_client(self.scheduler)
        elif self.backend == "ray":
            _register_ray()
        try:
            with parallel_config(backend=self.backend, n_jobs=self.jobs, **options):
                return Parallel(return_as="generator")
        except ValueError as error:
            raise ParameterError(
                f"The joblib backend {self.backend!r} cannot be used: {error}. Choose loky, dask or ray."
            ) from error


@lru_cache(maxsize=4)
def _dask_client(scheduler: str) -> Any:
    """One connection a scheduler; without an address the one that Dask finds in its own settings."""
    try:
        from distributed import Client  # noqa: PLC0415 (an optional package)

        return Client(scheduler or None, set_as_default=False, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]  # distributed has no types
    except (ImportError, OSError, ValueError) as error:
        raise ParameterError(
            f"The Dask scheduler {scheduler or '(none given)'} cannot be used: {error}. "
            "Install it (pip install 'dask[distributed]') and check --scheduler."
        ) from error


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray  # noqa: PLC0415 (an optional package)
    except ImportError as error:
        raise ParameterError("The joblib backend 'ray' needs the package ray: pip install ray.") from error
    register_ray()
