"""The work that a thread is at: whether it was stopped, and how far it is. Who works long asks and reports here; nobody hands it down.

Where nobody follows, both do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Watch:
    """Who follows the work of this thread.

    Attributes
    ----------
    check : callable
        Raises Cancelled where the work was stopped.
    reached : callable
        Told the share of the whole that is done, 0..1.
    start, end : float
        The part of the whole that the present work is.
    """

    check: Callable[[], None]
    reached: Callable[[float], None]
    start: float = 0.0
    end: float = 1.0


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(check: Callable[[], None], reached: Callable[[float], None]) -> Iterator[None]:
    """Within, this thread's work is followed."""
    token = _watch.set(Watch(check, reached))
    try:
        yield
    finally:
        _watch.reset(token)


def check() -> None:
    """Raise Cancelled where the work of this thread was stopped; to be called at least every second."""
    watch = _watch.get()
    if watch is not None:
        watch.check()


def reached(share: float) -> None:
    """Report how much of the present work is done, 0..1, weighed by the time that it takes."""
    watch = _watch.get()
    if watch is not None:
        watch.check()
        watch.reached(watch.start + min(max(share, 0.0), 1.0) * (watch.end - watch.start))


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
