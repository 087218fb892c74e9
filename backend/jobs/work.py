"""The work that a thread is at: whether it was stopped, and how far it is. Who works long asks and reports here; nobody hands it down.

Where nobody follows, both do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import accumulate


@dataclass(frozen=True)
class Watch:
    """Who follows the work of this thread.

    Attributes
    ----------
    check : callable
        Raises Cancelled where the work was stopped.
    reached : callable
        Told the share of the whole that is done, 0..1.
    planned : callable
        Told the seconds that each part of the whole is expected to take, in their order.
    start, end : float
        The part of the whole that the present work is.
    """

    check: Callable[[], None]
    reached: Callable[[float], None]
    planned: Callable[[tuple[float, ...]], None]
    start: float = 0.0
    end: float = 1.0


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched(
    check: Callable[[], None],
    reached: Callable[[float], None],
    planned: Callable[[tuple[float, ...]], None] = lambda seconds: None,
) -> Iterator[None]:
    """Within, this thread's work is followed."""
    token = _watch.set(Watch(check, reached, planned))
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


class Plan:
    """The parts of the present work, each with its units weighed by what one of them costs.

    Parameters
    ----------
    seconds : mapping of str to float
        What each part is expected to take, in their order; only their ratios count.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        whole = sum(seconds.values()) or 1.0
        ends = [end / whole for end in accumulate(seconds.values())]
        self._bounds = dict(zip(seconds, zip([0.0, *ends[:-1]], ends, strict=True), strict=True))
        watch = _watch.get()
        if watch is not None and (watch.start, watch.end) == (0.0, 1.0):
            watch.planned(tuple(seconds.values()))

    def part(self, name: str) -> AbstractContextManager[None]:
        """As :func:`part`, by name."""
        return part(*self._bounds[name])
