"""A party's own worker processes: on this machine (loky), or through joblib on the party's own cluster (Dask, Ray).

What goes to a worker stays inside the party; other parties are reached by messages only.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from backend.crypto.passage import NotPassedError, Passage, run
from backend.crypto.passage import available as through_memory
from backend.errors import ParameterError

if TYPE_CHECKING:
    from joblib import Parallel

R = TypeVar("R")
AHEAD = 2  # tasks a worker of this machine, at work and waiting; what is in flight is in memory
BLOCK = 2  # tasks per worker of a cluster in a block; two blocks are in flight
POLL = 0.1  # seconds between two cancellation checks
IDLE_SECONDS = 300  # after which a worker process of this machine ends
CONNECT_SECONDS = 10
CLUSTERS = ("distributed", "ray")  # packages whose own errors tell that workers were lost


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Workers:
    """Where a party's bulk work runs.

    Attributes
    ----------
    jobs : int
        Tasks at a time; 1 = sequential, in this process.
    backend : str
        A joblib backend: ``loky`` (local processes), ``dask``, ``ray`` or another one registered with joblib.
    scheduler : str
        Address of the Dask scheduler, e.g. ``tcp://10.0.0.5:8786``; empty otherwise.
    """

    jobs: int = 1
    backend: str = "loky"
    scheduler: str = ""

    @property
    def parallel(self) -> bool:
        """Whether tasks leave this process."""
        return self.jobs > 1 or not self.local

    @property
    def local(self) -> bool:
        """Whether tasks run on this machine, where they can read this process's files."""
        return self.backend == "loky"

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        check: Callable[[], None] = lambda: None,
        on_done: Callable[[], None] = lambda: None,
    ) -> Generator[R, None, None]:
        """``function(*task)`` for every task, in order; tasks are drawn lazily. Close the generator, in the same thread, to stop early.

        Parameters
        ----------
        check : callable
            Called every 0.1 s while a local process works; may raise to stop. Tasks in flight then run to their end unobserved, as
            other jobs may use the same processes.
        on_done : callable
            Called in another thread for every task that a local process is through with, whether its result was taken or not.

        Raises
        ------
        ParameterError
            The backend is not installed, or its scheduler cannot be reached.
        """
        if not self.parallel:
            return (function(*task) for task in tasks)
        if self.local:
            return self._here(function, tasks, check, on_done)
        return self._in_blocks(function, iter(tasks))

    def connected(self) -> Workers:
        """Itself, once a cluster it names was reached: small work never asks it, and a wrong address would stay unseen.

        Raises ParameterError if the backend is not installed or its scheduler cannot be reached.
        """
        if not self.local:
            self._parallel()
        return self

    def close(self) -> None:
        """Disconnect from the cluster, if any; idle local worker processes end by themselves."""
        if self.backend == "dask" and _dask_client.cache_info().currsize:
            _dask_client(self.scheduler).close()
            _dask_client.cache_clear()

    def _here(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        check: Callable[[], None],
        on_done: Callable[[], None],
    ) -> Generator[R, None, None]:
        """Run tasks on local processes, which all jobs share. On Linux tasks and results pass through shared memory, not through pipes."""
        from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415 - slow to import

        in_flight: deque[tuple[Future[Any], Passage | None]] = deque()

        def submit(work: Callable[..., Any], *task: Any) -> Future[Any]:
            future: Future[Any] = get_reusable_executor(self.jobs, timeout=IDLE_SECONDS).submit(work, *task)
            return future

        def done(future: Future[Any]) -> Any:
            while not wait([future], timeout=POLL).done:
                check()
            return future.result()

        def first() -> R:
            future, passage = in_flight[0]
            try:
                result: R = done(future)
                if passage is not None:
                    result = passage.held()
            except NotPassedError:
                if passage is None:
                    raise
                own_function, task = passage.held()
                result = done(submit(own_function, *task))
            in_flight.popleft()
            if passage is not None:
                passage.close()
            return result

        try:
            for task in tasks:
                if through_memory():
                    passage = Passage(function, task)
                else:
                    passage = None
                in_flight.append(
                    (submit(function, *task) if passage is None else submit(run, *passage.ticket), passage)
                )
                in_flight[-1][0].add_done_callback(lambda _: on_done())
                if len(in_flight) == AHEAD * self.jobs:
                    yield first()
            while in_flight:
                yield first()
        finally:
            for future, passage in in_flight:
                future.cancel()
                if passage is not None:
                    passage.close()

    def _in_blocks(self, function: Callable[..., R], tasks: Iterator[tuple[Any, ...]]) -> Generator[R, None, None]:
        """While one block's results are used the next one is computed, so that at most two are in memory."""
        from joblib import delayed  # noqa: PLC0415 - slow to import

        size = BLOCK * self.jobs
        in_flight: deque[Generator[R, None, None]] = deque()
        try:
            while block := list(islice(tasks, size)):
                in_flight.append(self._parallel()(delayed(function)(*task) for task in block))
                if len(in_flight) == 2:
                    yield from in_flight[0]
                    in_flight.popleft()
            while in_flight:
                yield from in_flight[0]
                in_flight.popleft()
        except Exception as error:
            if not isinstance(error, OSError | CancelledError) and type(error).__module__.split(".")[0] not in CLUSTERS:
                raise
            raise ParameterError(
                "cluster_lost",
                backend=self.backend,
                scheduler=self.scheduler or "(address of its own settings)",
                reason=type(error).__name__,
            ) from error
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns about unread results; the job was stopped
                for results in in_flight:
                    results.close()

    def _parallel(self) -> Parallel:
        from joblib import Parallel, parallel_config  # noqa: PLC0415 - slow to import

        options: dict[str, Any] = {}
        if self.backend == "dask":
            options["client"] = _dask_client(self.scheduler)
        elif self.backend == "ray":
            _register_ray()
        try:
            with parallel_config(backend=self.backend, n_jobs=self.jobs, **options):
                return Parallel(return_as="generator")
        except ValueError as error:
            raise ParameterError("backend_unusable", backend=self.backend, reason=str(error)) from error


@lru_cache(maxsize=4)
def _dask_client(scheduler: str) -> Any:
    """One connection per scheduler; without an address Dask's own settings apply."""
    try:
        client: Any = import_module("distributed").Client  # an optional package
    except ImportError as error:
        raise ParameterError("no_distributed") from error
    try:
        return client(scheduler or None, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ParameterError("scheduler_unusable", scheduler=scheduler or "(none given)", reason=str(error)) from error


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray  # noqa: PLC0415 (an optional package)
    except ImportError as error:
        raise ParameterError("no_ray") from error
    register_ray()
