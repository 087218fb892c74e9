"""Things worked out once and kept in memory, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

MODELS_KEPT = 16  # models of which one kind of thing is kept in memory
V = TypeVar("V")


class Cache(Generic[V]):
    """Values by key, until `max_kept` others have been made; safe to use from several threads.

    A key names all that a thing is made of, so that a value is never older than its sources.
    """

    def __init__(self, max_kept: int = MODELS_KEPT) -> None:
        self._max_kept = max_kept
        self._lock = Lock()
        self._kept: dict[Hashable, V] = {}

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key, made now if it is missing; two callers at once may both make it."""
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        value = make()
        with self._lock:
            while len(self._kept) >= self._max_kept:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = value
        return value

    def drop(self, key: Hashable) -> None:
        """Forget what was made of `key`."""
        with self._lock:
            self._kept.pop(key, None)
