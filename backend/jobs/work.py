"""The work that a thread is at: whether it was stopped, and how far it is. Who works long asks and reports here; nobody hands it down.

If nobody follows, both do nothing.
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
LOOK = 0.2  # seconds between two looks whether work was stopped that something else is made for
Reached = Callable[[float], None]


@dataclass(frozen=True)
class Silence:
    """Who has not answered, and for how many seconds."""

    parties: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Watch:
    """Who follows the work of this thread.

    Attributes
    ----------
    check : callable
        Raises Cancelled if the work was stopped.
    reached : callable
        Told the share of the whole that is done, 0..1.
    silent : callable
        Told who has not answered for a while; None once somebody has.
    start, end : float
        The part of the whole that the present work is.
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
    """Within, nobody follows this thread's work, so that it ends even if what led to it was stopped: keep it short."""
    token = _watch.set(None)
    try:
        yield
    finally:
        _watch.reset(token)


def under_way() -> bool:
    """Whether anybody's work is followed in this process: what can wait should leave it the cores."""
    return bool(_under_way)


@contextmanager
def waiting() -> Iterator[None]:
    """Within, this thread's work only waits for what is made in the background, and leaves it the cores."""
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
        watch.reached(watch.start + min(max(share, 0.0), 1.0) * (watch.end - watch.start))


def begins() -> bool:
    """Whether nothing of the whole comes before the present work."""
    watch = _watch.get()
    return watch is None or not watch.start


def beside(function: Callable[[], R]) -> R:
    """``function()``, which takes long and looks at nothing meanwhile: in a thread of its own, so that this work can be stopped.

    Once it was stopped, the thread still goes to its end, and what it makes is lost.
    """
    if _watch.get() is None:
        return function()
    made: Future[R] = Future()

    def make() -> None:
        try:
            made.set_result(function())
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=make, name="glassleaf-beside", daemon=True).start()
    while not made.done():
        wait([made], LOOK)
        check()
    return made.result()


def silent(silence: Silence | None) -> None:
    """Report who does not answer, or that somebody has."""
    watch = _watch.get()
    if watch is not None:
        watch.silent(silence)


@contextmanager
def part(start: float, end: float) -> Iterator[None]:
    """Within, shares are of this part of the present work; it is done at the end."""
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
