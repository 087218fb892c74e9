"""Obfuscators made in advance by a background thread and a second process, each used once."""

from __future__ import annotations

import threading
from collections import deque

from gmpy2 import mpz

from backend.crypto.maker_process import MakerProcess
from backend.crypto.obfuscators import QUIET_BATCH, Maker

BATCH = 64  # obfuscators asked of the second process at a time, so that somebody in a hurry gets it soon
BULK = 512  # from this many on the second process helps even where nothing is kept ready


class ObfuscatorPool:
    """A store of fresh obfuscators.

    :meth:`fill` starts a thread that keeps `target` of them ready and sleeps while there are enough; :meth:`take` hands out what is
    ready and makes the rest, on two cores when there are many. :meth:`close` ends thread and process.

    Parameters
    ----------
    maker : Maker
    process : MakerProcess
    target : int
        0 = keep none ready.
    """

    def __init__(self, maker: Maker, process: MakerProcess, target: int) -> None:
        self._maker, self._process, self.target = maker, process, target
        self._ready: deque[mpz] = deque()
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def ready(self) -> int:
        """Obfuscators on hand."""
        return len(self._ready)

    def take(self, count: int) -> list[mpz]:
        """`count` obfuscators: what is on hand first, the rest made now."""
        taken: list[mpz] = []
        while len(taken) < count:
            try:
                taken.append(self._ready.popleft())
            except IndexError:
                break
        self._wake.set()
        return taken + self._make(count - len(taken)) if len(taken) < count else taken

    def _make(self, count: int) -> list[mpz]:
        share = count // 2
        if count < BULK or self._closed or not self._process.ask(share):
            return self._maker.make(count)
        try:
            own = self._maker.make(count - share)
        finally:
            helped = self._process.collect(share)
        return own + (self._maker.make(share) if helped is None else helped)

    def fill(self) -> None:
        """Start filling in the background; a second call does nothing."""
        if self._thread is None and self.target > 0:
            self._thread = threading.Thread(target=self._keep_full, name="obfuscators", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the background thread and the process."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._process.close()

    def _keep_full(self) -> None:
        self._maker.prepare()
        while not self._closed:
            if len(self._ready) >= self.target:
                self._wake.clear()
                self._wake.wait(timeout=5.0)
                continue
            made = self._process.collect(BATCH) if self._process.ask(BATCH) else None
            self._ready.extend(self._maker.make_quietly(QUIET_BATCH) if made is None else made)
