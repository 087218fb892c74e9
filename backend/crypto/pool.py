"""What a cipher can make in advance (obfuscators, flooded zeros): kept ready in the background, each used once."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from backend.jobs import work

BATCH = 16  # items for later in a request: as long as it takes, whoever needs some now has to wait
BULK = 256  # made at a time, a second or two; from this many on the second process helps even without a stock
STORE_TIMEOUT_SECONDS = 10.0  # that filling a stock waits for the process while it works for another one
URGENT_TIMEOUT_SECONDS = 1.0  # the same for a few items that are needed now
UNLOCKED_BATCH = 16  # items made in one call that releases the interpreter lock
REST = 5.0  # seconds in which nothing was made but the store, after which what only bulk needs is dropped
MEANWHILE = 0.1  # share of the target that is filled while a job is under way, which wants the cores
PAUSE = 0.2  # seconds between two looks whether one is
LOW_WATER = 0.9  # share of the target below which filling begins again

T = TypeVar("T")
_pools: weakref.WeakSet[Pool[Any]] = weakref.WeakSet()


class Maker(Protocol[T]):
    """Makes fresh items."""

    def make(self, count: int) -> list[T]:
        """`count` fresh items, as fast as possible."""

    def make_unlocked(self, count: int) -> list[T]:
        """`count` fresh items, made without holding the interpreter lock."""

    def prepare(self) -> None:
        """Build tables; safe to call from a background thread and more than once."""

    def release(self) -> None:
        """Drop tables that can be read again; safe to call while another thread makes items."""


class Process(Protocol[T]):
    """Another process of the party that makes the same items."""

    def ask(self, count: int, timeout: float = 0.0, *, is_urgent: bool = True) -> bool:
        """Begin making `count` items; return False if the process is busy for longer than `timeout` seconds, or has ended.

        After True, :meth:`collect` must follow. Urgent requests come before those that fill a stock.
        """

    def collect(self, count: int) -> list[T] | None:
        """The items asked for; None if the process has died."""

    def close(self) -> None:
        """End the process."""


class Pool(Generic[T]):
    """A store of fresh items.

    :meth:`fill` starts a thread that fills the store up to `target`, then sleeps until a tenth of it was used; :meth:`take` returns
    what is ready and makes the rest, on two cores if there are many. :meth:`close` ends thread and processes.

    Whose store is filled lasts (a dashboard, a server): tables would stay in its memory, so two other processes make what is wanted.

    Parameters
    ----------
    second : Process, optional
        For bulk beside `process`; ended when nothing was wanted for :data:`REST` seconds.
    target : int
        Items kept ready.
    """

    def __init__(
        self, maker: Maker[T], process: Process[T] | None, target: int, second: Process[T] | None = None
    ) -> None:
        self._maker = maker
        self._process = process
        self._second = second
        self.target = target
        self._ready: deque[T] = deque()
        self._wake = threading.Event()
        self._closed = False
        self._made_here = -REST
        self._thread: threading.Thread | None = None
        _pools.add(self)

    @property
    def ready(self) -> int:
        """Items on hand."""
        return len(self._ready)

    def take(self, count: int) -> list[T]:
        """Return `count` items: those in stock first, the others made now."""
        items: list[T] = []
        while len(items) < count:
            try:
                items.append(self._ready.popleft())
            except IndexError:
                break
        self._wake.set()
        while len(items) < count:
            work.check()
            missing = min(count - len(items), BULK)
            # A key's first request makes tables as well, which takes seconds.
            items += work.beside(partial(self._make, missing, bulk=count >= BULK))
        return items

    def _make(self, count: int, *, bulk: bool) -> list[T]:
        process = self._process
        self._made_here = time.monotonic()
        if process is None or self._closed:
            return self._maker.make(count)
        if bulk:
            share = count // 2
        elif self._lasts:
            share = count
        else:
            share = 0
        if share and not process.ask(share, 0.0 if bulk else URGENT_TIMEOUT_SECONDS):
            share = 0
        try:
            items = self._rest_of(count - share)
        finally:
            items_of_process = process.collect(share) if share else []
        if items_of_process is None:  # the process has ended
            items_of_process = self._maker.make(share)
        return items + items_of_process

    @property
    def _lasts(self) -> bool:
        return self._thread is not None

    def _rest_of(self, count: int) -> list[T]:
        """Make the items that the first process does not make, in this process or in the second one."""
        if self._second is not None and self._lasts and count and self._second.ask(count, STORE_TIMEOUT_SECONDS):
            items = self._second.collect(count)
            if items is not None:
                return items
        return self._maker.make(count) if count else []

    def fill(self) -> None:
        """Start filling in the background; a second call does nothing."""
        if self._thread is None and self.target > 0:
            self._thread = threading.Thread(target=self._keep_full, name="pool", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the background thread and the process."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        for process in (self._process, self._second):
            if process is not None:
                process.close()

    def start_again(self) -> None:
        """In a process that was forked: what the other one has on hand is used there, and its thread and process are its own."""
        self._ready = deque()
        self._wake = threading.Event()
        self._thread = self._process = self._second = None

    def _keep_full(self) -> None:
        if self._process is None:
            self._maker.prepare()  # else the tables stand in the process
        while not self._closed:
            if len(self._ready) >= LOW_WATER * self.target:
                self._wake.clear()
                self._wake.wait(REST)
                self._rest()
                continue
            while len(self._ready) < self.target and not self._closed:
                if work.under_way() and len(self._ready) >= MEANWHILE * self.target:
                    time.sleep(PAUSE)
                    self._rest()
                    continue
                self._ready.extend(self._more())
                self._rest()

    def _rest(self) -> None:
        """End the second process, and drop tables that were read here because a process had died or was busy."""
        if self._process is not None and time.monotonic() - self._made_here >= REST:
            self._maker.release()
            if self._second is not None:
                self._second.close()

    def _more(self) -> list[T]:
        if self._process is not None and self._process.ask(BATCH, STORE_TIMEOUT_SECONDS, is_urgent=False):
            items = self._process.collect(BATCH)
            if items is not None:
                return items
        return self._maker.make_unlocked(UNLOCKED_BATCH)


def _forked() -> None:
    for pool in list(_pools):
        pool.start_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)  # no item is used by two processes
