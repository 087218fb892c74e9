"""The work that a thread is at: whether it was stopped, and how far it is. Who works long asks and reports here; nobody hands it down.

Where nobody follows, both do nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar

R = TypeVar("R")
LOOK = 0.2  # seconds between two looks whether work was stopped that something else is made for
Reached = Callable[[float, float | None], None]


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
        Raises Cancelled where the work was stopped.
    reached : callable
        Told the share of the whole that is done, 0..1, and the one that the next report is expected to tell, or None.
    once : callable
        Told that things are made which later work finds made.
    silent : callable
        Told who has not answered for a while; None once somebody has.
    start, end : float
        The part of the whole that the present work is.
    """

    check: Callable[[], None]
    reached: Reached
    once: Callable[[], None] = lambda: None
    silent: Callable[[Silence | None], None] = lambda silence: None
    start: float = 0.0
    end: float = 1.0


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)
_under_way: list[Callable[[], None]] = []  # checks of all threads of this process


@contextmanager
def watched(
    check: Callable[[], None],
    reached: Reached,
    once: Callable[[], None] = lambda: None,
    silent: Callable[[Silence | None], None] = lambda silence: None,
) -> Iterator[None]:
    """Within, this thread's work is followed."""
    watch = Watch(check, reached, once, silent)
    token = _watch.set(watch)
    _under_way.append(check)
    try:
        yield
    finally:
        _under_way.remove(check)
        _watch.reset(token)


@contextmanager
def unwatched() -> Iterator[None]:
    """Within, nobody follows this thread's work, so that it ends even where what led to it was stopped: keep it short."""
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
    """Raise Cancelled where the work of this thread was stopped; to be called at least every second."""
    watch = _watch.get()
    if watch is not None:
        watch.check()


def reached(share: float, following: float | None = None) -> None:
    """Report how much of the present work is done, 0..1, weighed by time, and what the next report will tell, if known."""
    watch = _watch.get()
    if watch is not None:
        watch.check()
        begins, width = watch.start, watch.end - watch.start
        next_ = None if following is None else begins + min(following, 1.0) * width
        watch.reached(begins + min(max(share, 0.0), 1.0) * width, next_)


def begins() -> bool:
    """Whether nothing of the whole comes before the present work."""
    watch = _watch.get()
    return watch is None or not watch.start


def once() -> None:
    """Report that things are made which later work finds made: how long this takes foretells nothing of it, and the other way round."""
    watch = _watch.get()
    if watch is not None:
        watch.once()


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


class Plan:
    """The parts of the present work, each with its units weighed by what one of them costs.

    Parameters
    ----------
    seconds : mapping of str to float
        What each part is expected to take, in their order where they come one after the other; only their ratios count.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._whole = sum(seconds.values()) or 1.0
        ends = [end / self._whole for end in accumulate(seconds.values())]
        self._bounds = dict(zip(seconds, zip([0.0, *ends[:-1]], ends, strict=True), strict=True))
        self._done = dict.fromkeys(seconds, 0.0)

    def part(self, name: str) -> AbstractContextManager[None]:
        """As :func:`part`, by name, of parts that come one after the other."""
        return part(*self._bounds[name])

    def reached(self, name: str, seconds: float, following: float | None = None) -> None:
        """As :func:`reached`, where parts go on beside each other: seconds of one that are done, and of the next step."""
        self._done[name] = seconds
        done = sum(self._done.values())
        reached(done / self._whole, None if following is None else (done + following) / self._whole)
