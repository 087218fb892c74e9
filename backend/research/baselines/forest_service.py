"""A forest that tolerates lost trees (Yao et al. §4.1): the Guest's own worker processes hold a few trees each.

Knows the Guest's partial model and the candidate leaves of the one-round protocol (Alg. 5, :mod:`backend.research.baselines.one_round`),
so it is for comparisons, too: the Guest sees nearly every choice of every Host. A worker turns candidate leaves into its trees' values. One
that is killed, hangs or fails is left out, the mean or the median is that of the other trees, and the answer names the missing ones; the
worker is started again for later batches. What goes to a worker stays inside the Guest.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, TracebackType

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import quantise
from backend.data.table import PartyTable
from backend.errors import ModelError, PartyUnreachable, SecurityError
from backend.protocols.transport.channel import Session
from backend.protocols.transport.packing import from_bitmap
from backend.research.baselines.forest_worker import HEAD, READY, UNMET, serve
from backend.research.baselines.guest import GuestPaths
from backend.research.baselines.messages import AskCandidates, CandidateLeaves
from backend.trees.ensemble import GuestModel, GuestTree, Leaf
from backend.trees.outputs import Floats

Flags = NDArray[np.bool_]
IntArray = NDArray[np.int64]
TIMEOUT = 2.0  # seconds until a worker counts as hanging
START_SECONDS = 60.0  # a new worker process is up by then, even on a busy machine
_starting = threading.Lock()


@dataclass(frozen=True, eq=False)
class ForestAnswer:
    """Predictions of one batch.

    Attributes
    ----------
    margins : ndarray of float64
        ``(n, outputs.count)``: mean or median over the trees that answered.
    missing : tuple of int
        Trees that are left out.
    """

    margins: Floats
    missing: tuple[int, ...]


class ForestService:
    """Keeps a forest's worker processes; close it, or use it in a ``with`` block.

    Parameters
    ----------
    model : GuestModel
        Grown by :mod:`backend.protocols.training.forest`.
    workers : int
        Processes; the trees are distributed evenly.
    timeout : float
        Seconds after which a worker that does not answer is left out and restarted.

    Raises
    ------
    ModelError
        The model is no forest: without all of its trees its predictions mean nothing.
    """

    def __init__(self, model: GuestModel, workers: int = 2, timeout: float = TIMEOUT) -> None:
        outputs = model.outputs
        if outputs.link != "identity" or outputs.of_tree or any(model.base_scores) or len(model.trees) < 2:
            raise ModelError("forest_only")
        self._outputs = outputs
        self._score_bits = model.score_bits
        self._timeout = timeout
        self._trees = [
            range(int(p[0]), int(p[-1]) + 1) for p in np.array_split(range(len(model.trees)), workers) if len(p)
        ]
        self._first = np.cumsum([0, *(len(tree.leaves) for tree in model.trees)])
        self._workers = [
            _Worker([_units(model.trees[t], outputs.count, model.score_bits) for t in trees]) for trees in self._trees
        ]
        self._threads = ThreadPoolExecutor(len(self._workers))

    def __enter__(self) -> ForestService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def processes(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        return tuple(worker.pid for worker in self._workers)

    def wait_ready(self, seconds: float = START_SECONDS) -> bool:
        """Wait until every worker is up; whether that is so."""
        until = time.monotonic() + seconds
        up = [worker.ready(max(0.0, until - time.monotonic())) for worker in self._workers]
        return all(up)

    def answer(self, candidates: Flags) -> ForestAnswer:
        """Predict one batch.

        Parameters
        ----------
        candidates : ndarray of bool
            ``(n, n_leaves)``: leaves that no party rules out, trees in order, leaves left to right.

        Raises
        ------
        PartyUnreachable
            No worker has answered.
        SecurityError
            The parties' candidate leaves of a tree do not meet in one leaf (Fed-EINI Proposition 1).
        """
        pending: dict[int, Future[IntArray]] = {}
        for i, (worker, trees) in enumerate(zip(self._workers, self._trees, strict=True)):
            if worker.ready(0.0):
                part = candidates[:, self._first[trees[0]] : self._first[trees[-1] + 1]]
                pending[i] = self._threads.submit(worker.values, part)
        wait(pending.values(), timeout=self._timeout)
        lost = [i for i, f in pending.items() if not f.done() or isinstance(f.exception(), OSError | EOFError)]
        for i in lost:
            self._workers[i].restart()
        values = {i: future.result() for i, future in pending.items() if i not in lost}
        if not values:
            raise PartyUnreachable("no_worker_answered")
        return self._aggregate(values)

    def _aggregate(self, values: dict[int, IntArray]) -> ForestAnswer:
        """Leaves of a mean are divided by the number of all trees, so the sum over fewer trees is scaled up."""
        votes = np.concatenate([values[i] for i in sorted(values)], axis=1) / float(1 << self._score_bits)
        missing = tuple(t for i, trees in enumerate(self._trees) if i not in values for t in trees)
        if self._outputs.aggregation == "median":
            return ForestAnswer(np.median(votes, axis=1), missing)
        present = votes.shape[1]
        return ForestAnswer(votes.sum(axis=1) * ((present + len(missing)) / present), missing)

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown()


def candidate_leaves(paths: GuestPaths, model_id: str, part: PartyTable, conversation: Session) -> Flags:
    """Return the leaves that neither the Guest nor a Host rules out, ``(n, n_leaves)``, in one round: lines 1 and 2 of Alg. 5."""
    n = len(part.ids)
    for host in paths.hosts:
        conversation.send(host, AskCandidates(conversation.name, model_id, part.ids))
    candidates = paths.candidates(part.columns, n)
    for answer in conversation.expect_each(CandidateLeaves, paths.hosts).values():
        candidates &= from_bitmap(answer.leaves, n * paths.trees.n_leaves).reshape(n, -1)
    return candidates


class _Worker:
    """The Guest's end of one worker process, which exchanges bytes; a failed process is killed and restarted."""

    def __init__(self, units: Sequence[IntArray]) -> None:
        self._units = units
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()  # who still waits at an old pipe keeps it until it breaks
        self._process = context.Process(target=serve, args=(far, self._units), daemon=True)
        with _without_main():
            self._process.start()
        far.close()  # so that the pipe breaks when the process dies
        self._up = False

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid or 0

    def ready(self, seconds: float) -> bool:
        """Whether the process has reported that it is up, waiting up to `seconds`; one that died while starting is restarted."""
        if not self._up:
            try:
                self._up = self._pipe.poll(seconds) and self._pipe.recv_bytes() == READY
            except (OSError, EOFError):
                self.restart()
        return self._up

    def values(self, candidates: Flags) -> IntArray:
        """``(n, leaves)`` candidates → ``(n, trees, k)`` units; blocks until the process answers or dies."""
        pipe = self._pipe
        n = len(candidates)
        pipe.send_bytes(n.to_bytes(HEAD, "big") + np.packbits(candidates).tobytes())
        blob = pipe.recv_bytes()
        if blob == UNMET:
            raise SecurityError("leaves_do_not_meet")
        values = np.frombuffer(blob, dtype="<i8").astype(np.int64)
        return values.reshape(n, len(self._units), self._units[0].shape[1])

    def restart(self) -> None:
        """Kill the process and start another, which will be up in a second or so."""
        self.kill()
        self._start()

    def kill(self) -> None:
        """End the process; who waits for its answer gets an error."""
        self._process.kill()
        self._process.join()


@contextmanager
def _without_main() -> Iterator[None]:
    """Start a process without the main script, which a spawned one would run: in the dashboard, the whole dashboard."""
    with _starting:  # two at once would restore each other's stand-in
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _units(tree: GuestTree, count: int, score_bits: int) -> IntArray:
    """``(leaves, count)``: leaf weights at the public scale, left to right."""
    leaves = [node for node in (tree.nodes[i] for i in tree.leaves) if isinstance(node, Leaf)]
    return quantise([leaf.weights or (leaf.weight,) for leaf in leaves], score_bits).reshape(-1, count)
