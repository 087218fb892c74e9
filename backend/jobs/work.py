"""The work of a thread: whether it was stopped, and the share that is done. Long work asks and reports here.

Without a follower, both do nothing. The follower is kept in a context variable, so no function has to pass it on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeVar

R = TypeVar("R")
POLL_SECONDS = 0.2  # how often it is checked whether the work was stopped
Reached = Callable[[float], None]


@dataclass(frozen=True)
class Silence:
    """The parties that have not answered, and for how many seconds."""

    parties: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Watch:
    """The follower of this thread's work.

    Attributes
    ----------
    check : callable
        Raises Cancelled if the work was stopped.
    reached : callable
        Called with the share of the whole work that is done, 0..1.
    silent : callable
        Called with the parties that have not answered for a while; with None once a party has answered.
    start, end : float
        The present work's first and last share of the whole work.
    """

    check: Callable[[], None]
    reached: Reached
    silent: Callable[[Silence | None], None] = lambda silence: None
    start: float = 0.0
    end: float = 1.0


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)
_under_way: list[Callable[[], None]] = []  # checks of all threads of this process


@contextmanager
def watched(
    check: Callable[[], None],
    reached: Reached,
    silent: Callable[[Silence | None], None] = lambda silence: None,
) -> Iterator[None]:
    """Within, this thread's work is followed."""
    watch = Watch(check, reached, silent)
    token = _watch.set(watch)
    _under_way.append(check)
    try:
        yield
    finally:
        _under_way.remove(check)
        _watch.reset(token)


@contextmanager
def unwatched() -> Iterator[None]:
    """Within, this thread's work has no follower, so that it ends even if the work around it was stopped: keep it short."""
    token = _watch.set(None)
    try:
        yield
    finally:
        _watch.reset(token)


def under_way() -> bool:
    """Return whether a thread's work is followed in this process. Background work should then leave it the cores."""
    return bool(_under_way)


@contextmanager
def waiting() -> Iterator[None]:
    """Within, this thread's work only waits for background work, and leaves it the cores."""
    watch = _watch.get()
    if watch is None:
        yield
        return
    _under_way.remove(watch.check)
    try:
        yield
    finally:
        _under_way.append(watch.check)


def check() -> None:
    """Raise Cancelled if the work of this thread was stopped; to be called at least every second."""
    watch = _watch.get()
    if watch is not None:
        watch.check()


def reached(share: float) -> None:
    """Report how much of the present work is done, 0..1."""
    watch = _watch.get()
    if watch is not None:
        watch.check()
        share = min(max(share, 0.0), 1.0)
        watch.reached(watch.start + share * (watch.end - watch.start))


def begins() -> bool:
    """Return whether the present work is the first of the whole."""
    watch = _watch.get()
    return watch is None or not watch.start


def beside(function: Callable[[], R]) -> R:
    """Return ``function()``, computed in a separate thread so that this work can be stopped although the function never checks.

    If the work is stopped, the thread still runs to its end, and its result is lost.
    """
    if _watch.get() is None:
        return function()
    result: Future[R] = Future()

    def make() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=make, name="glassleaf-beside", daemon=True).start()
    while not result.done():
        wait([result], POLL_SECONDS)
        check()
    return result.result()


def silent(silence: Silence | None) -> None:
    """Report the parties that do not answer; None once one has answered."""
    watch = _watch.get()
    if watch is not None:
        watch.silent(silence)


@contextmanager
def part(start: float, end: float) -> Iterator[None]:
    """Within, shares are of this part of the present work; at the end, the part is reported as done."""
    watch = _watch.get()
    if watch is None:
        yield
        return
    width = watch.end - watch.start
    token = _watch.set(replace(watch, start=watch.start + start * width, end=watch.start + end * width))
    try:
        yield
    finally:
        _watch.reset(token)
    reached(end)
