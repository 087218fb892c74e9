"""Counts of a process for Prometheus. Labels are words of this file: no id, feature or model can become one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

OUTCOMES = ("scored", "failed")
STAGES = (
    "queue",
    "question",
    "key",
    "encode",
    "encrypt",
    "mask",
    "decrypt",
    "weigh",
    "rank",
    "align",
    "tree",
    "lookup",
)
LANES = ("online", "bulk", "training", "reasons")
CODES = tuple(map(str, (200, 202, 400, 401, 403, 404, 405, 409, 413, 422, 429, 500, 503)))
OTHER = "other"
HOST_OUTCOMES = ("answered", "no_record", "limit_reached")  # of a person who is scored, at a Host
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)


class ProcessCounts:
    """The counts of one process, Guest or Host; safe to use from several threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._people = Counter("glassleaf_people", "People asked about", ["outcome"], registry=self._registry)
        self._answers = Counter("glassleaf_answers", "Answers by HTTP code", ["code"], registry=self._registry)
        self._refused = Counter("glassleaf_refused", "Requests refused", ["code"], registry=self._registry)
        self._stages = Histogram(
            "glassleaf_stage_seconds", "Seconds a stage took", ["stage"], registry=self._registry, buckets=SECONDS
        )
        self._queues = Gauge("glassleaf_queue_length", "Requests that wait", ["lane"], registry=self._registry)

    def count_people(self, scored: int, failed: int) -> None:
        """Count the people of one question."""
        for outcome, people in zip(OUTCOMES, (scored, failed), strict=True):
            self._people.labels(outcome).inc(people)

    def count_answer(self, code: int) -> None:
        """Count one request, answered or refused."""
        word = _one_of(str(code), CODES)
        self._answers.labels(word).inc()
        if code >= 400:
            self._refused.labels(word).inc()

    def took(self, stage: str, seconds: float) -> None:
        """Count a stage that has ended; one that is not in :data:`STAGES` counts as ``other``."""
        self._stages.labels(_one_of(stage, STAGES)).observe(seconds)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Time a stage and count it, even if it raises."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.took(stage, time.perf_counter() - began)

    def watch_queue(self, lane: str, length: Callable[[], int]) -> None:
        """From now on `length` is asked whenever the figures are read."""
        self._queues.labels(_one_of(lane, LANES)).set_function(length)

    def watch(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Show one more figure, ``glassleaf_`` and `name`, asked whenever the figures are read."""
        Gauge(f"glassleaf_{name}", what, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """All figures in Prometheus' text format (0.0.4)."""
        return generate_latest(self._registry)


class HostMetrics:
    """The counts of one Host; safe to use from several threads.

    Parameters
    ----------
    kinds : collection of str
        All kinds of message, in any order.
    """

    def __init__(self, kinds: Collection[str]) -> None:
        self._registry = CollectorRegistry()
        self._kinds = tuple(kinds)
        self._people = Counter(
            "glassleaf_host_people", "People about whom decisions were asked", ["outcome"], registry=self._registry
        )
        self._refused = Counter("glassleaf_host_refused", "Messages refused", ["kind"], registry=self._registry)
        self._seconds = Histogram(
            "glassleaf_host_kind_seconds",
            "Seconds until a message was answered",
            ["kind"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._queues = Gauge(
            "glassleaf_host_queue_length", "Conversations that wait", ["lane"], registry=self._registry
        )

    def count_people(self, answered: int, no_record: int, limit_reached: int) -> None:
        """Count the people of one question about scores."""
        for outcome, people in zip(HOST_OUTCOMES, (answered, no_record, limit_reached), strict=True):
            self._people.labels(outcome).inc(people)

    def count_message(self, kind: str, seconds: float, *, refused: bool) -> None:
        """Count one message, answered or refused."""
        word = _one_of(kind, self._kinds)
        self._seconds.labels(word).observe(seconds)
        if refused:
            self._refused.labels(word).inc()

    def watch_queue(self, lane: str, length: Callable[[], int]) -> None:
        """From now on `length` is asked whenever the figures are read."""
        self._queues.labels(_one_of(lane, LANES)).set_function(length)

    def watch(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Show one more figure, ``glassleaf_host_`` and `name`, asked whenever the figures are read."""
        Gauge(f"glassleaf_host_{name}", what, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """All figures in Prometheus' text format (0.0.4)."""
        return generate_latest(self._registry)


def _one_of(word: str, labels: tuple[str, ...]) -> str:
    return word if word in labels else OTHER
