"""A party's own worker processes: on this machine (loky), or by joblib on a cluster of the party's own (Dask, Ray).

What goes to a worker stays inside the party; another party is reached by messages only.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor

from backend.errors import ParameterError

R = TypeVar("R")
BLOCK = 2  # tasks a worker in a block; two blocks are under way
POLL = 0.1  # seconds between two looks at whether results are still wanted
IDLE_SECONDS = 300  # after which a worker process of this machine ends
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

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        check: Callable[[], None] = lambda: None,
    ) -> Generator[R, None, None]:
        """``function(*task)`` for every task, in order; tasks are drawn as they are needed. Close it, in the same thread, to stop early.

        Parameters
        ----------
        check : callable
            Asked every 0.1 s while a process of this machine works; may raise to stop. Tasks that are under way then run out
            by themselves, as other jobs may use the same processes; nobody waits for them.

        Raises
        ------
        ParameterError
            The backend is not installed, or its scheduler cannot be reached.
        """
        if not self.parallel:
            return (function(*task) for task in tasks)
        return self._here(function, tasks, check) if self.backend == "loky" else self._in_blocks(function, iter(tasks))

    def close(self) -> None:
        """Leave the cluster, if there is one; worker processes of this machine end by themselves when they are idle."""
        if self.backend == "dask" and _dask_client.cache_info().currsize:
            _dask_client(self.scheduler).close()
            _dask_client.cache_clear()

    def _here(
        self, function: Callable[..., R], tasks: Iterable[tuple[Any, ...]], check: Callable[[], None]
    ) -> Generator[R, None, None]:
        """On processes of this machine, which all jobs share."""
        under_way: deque[Future[R]] = deque()

        def first() -> R:
            while not wait([under_way[0]], timeout=POLL).done:
                check()
            return under_way.popleft().result()

        try:
            for task in tasks:
                under_way.append(get_reusable_executor(self.jobs, timeout=IDLE_SECONDS).submit(function, *task))
                if len(under_way) == 2 * BLOCK * self.jobs:
                    yield first()
            while under_way:
                yield first()
        finally:
            for future in under_way:
                future.cancel()

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
        client: Any = import_module("distributed").Client  # an optional package
        return client(scheduler or None, set_as_default=False, timeout=CONNECT_SECONDS)
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
