"""Waiting for a Host that cannot answer now: the Guest says for whom it waits, and asks again in the same bytes.

Knows no question: who hands one in has made sure that a Host counts it once, however often it comes (docs/decisions/gate.md).
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from backend.errors import HostBusy, PartyUnreachable
from backend.jobs import Job, Waits
from backend.protocols.guest_runtime import GuestRuntime
from backend.remark import Remark

TIMEOUT_SECONDS = 300.0  # seconds that busy Hosts are waited for, all waits for one question together
LASTING = math.inf  # until the work is stopped; Hosts that are down are waited for, too
POLL_SECONDS = 0.05  # seconds between looks at whether the work was stopped, and whether links are up
KEEPING = 600.0  # seconds between two times that what is under way is said to be wanted
MAX_PAUSE_SECONDS = 60.0  # seconds between two times that the same is asked
SPREAD = 0.5  # of a wait that is drawn on top, so that those who were refused together do not come back together
T = TypeVar("T")


def repeated(
    ask: Callable[[], T],
    runtime: GuestRuntime,
    hosts: tuple[str, ...],
    job: Job[Any],
    timeout: float,
    keep: Callable[[], None] = lambda: None,
    waits_for_links: Callable[[], bool] = lambda: True,
) -> T:
    """Return what `ask` returns; it is called again later if Hosts are busy, or down and the wait is :data:`LASTING`.

    Parameters
    ----------
    ask : callable
        Begins a conversation of its own each time.
    hosts : tuple of str
        Who takes part.
    timeout : float
        Seconds that may be waited; 0 = not at all.
    keep : callable
        Called now and then while it waits: what is under way is still wanted.
    waits_for_links : callable
        Whether, with :data:`LASTING`, Hosts that are down are waited for now.

    Raises
    ------
    HostBusy
        The next wait would end after `timeout` seconds of waiting.
    PartyUnreachable
        A Host is down, and it is not waited for.
    Cancelled
        The work was stopped meanwhile.
    """
    waited = 0.0
    tries = 0
    while True:
        try:
            return ask()
        except HostBusy as busy:
            delay = min(MAX_PAUSE_SECONDS, max(busy.wait, busy.wait * 2**tries / 2))
            if waited + delay > timeout:
                raise
            _wait(job, Waits("busy", (busy.host,) if busy.host else hosts, busy.remarks[0]), lasting(delay), keep)
            waited = waited + delay
            tries = min(tries + 1, 10)
        except PartyUnreachable as down:
            if timeout < LASTING or runtime.simulated or not waits_for_links():
                raise
            tries = min(tries + 1, 10)
            gone = runtime.down(hosts)
            if gone:  # else it was cut and is back, or a Host was silent for too long
                why = Waits("down", gone, Remark("waits_for_hosts", {"hosts": gone, "why": down.remarks[0]}))
                _wait(job, why, lambda: not runtime.down(hosts), keep)
            _wait(job, Waits("busy", hosts, down.remarks[0]), lasting(min(MAX_PAUSE_SECONDS, 2.0**tries / 2)), keep)


def lasting(seconds: float) -> Callable[[], bool]:
    """Return a function that tells whether `seconds`, and up to :data:`SPREAD` of them on top, have passed since now."""
    until = time.monotonic() + seconds * (1.0 + SPREAD * random.random())
    return lambda: time.monotonic() >= until


def _wait(job: Job[Any], why: Waits, over: Callable[[], bool], keep: Callable[[], None]) -> None:
    job.waits = why
    kept_at = time.monotonic()
    try:
        while not over():
            job.check()
            if time.monotonic() > kept_at + KEEPING:
                keep()
                kept_at = time.monotonic()
            time.sleep(POLL_SECONDS)
    finally:
        job.waits = None
