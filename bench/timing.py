"""How things are timed: what is compared is interleaved, so that a busy moment hits both, and medians are taken."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")
ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []  # cores
LONG = 20.0  # seconds of a run beyond which it is not repeated


def seconds_of(function: Callable[..., Any], *args: Any) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    function(*args)
    return time.perf_counter() - began


def repeated(function: Callable[[], T], repeats: int) -> list[T]:
    """What `function` returns, `repeats` times; once where it takes longer than :data:`LONG`."""
    results: list[T] = []
    for _ in range(repeats):
        began = time.perf_counter()
        results.append(function())
        if time.perf_counter() - began > LONG:
            break
    return results


def interleaved(tasks: Mapping[K, Callable[[], T]], repeats: int) -> dict[K, list[T]]:
    """What each task returns, taking turns."""
    results: dict[K, list[T]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            results[name].append(task())
    return results


def median_ratio(reference: Sequence[float], seconds: Sequence[float]) -> float:
    """Median over repetitions of how many times shorter `seconds` are than those of `reference`."""
    return median(r / s for r, s in zip(reference, seconds, strict=True))


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep this thread, and whatever it starts, on `count` of the cores that this process was given."""
    if not ALLOWED:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, ALLOWED[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
