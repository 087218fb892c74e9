"""When work will have ended, from the share of it that is done, as whoever works weighs it, and from how such work went before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise

EARLIEST = 0.02  # share of the work before which a pace is no more than a guess
STEP = 0.05  # share of the work that may come without a report in between
STEPS = 50  # in which the course of work is noted


class Pace:
    """When work will have ended; counts down between two reports.

    Parameters
    ----------
    clock : callable
        Seconds.
    weighed : bool
        Whether equal shares of the work take equal times; else nothing is foretold before such work was done once.
    course : str
        What tells such work from other work of its kind that goes otherwise.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, *, weighed: bool = True, course: str = ""
    ) -> None:
        self._clock, self._weighed, self._course = clock, weighed, course
        self._begun = clock()
        self._usual: tuple[float, ...] = ()
        self.begin_again()

    def begin_again(self) -> None:
        """Nothing of the work is done yet, or nothing any more."""
        self.share = self._settled = 0.0
        self._reports = [(self._clock(), 0.0)]  # time and share
        self._following: float | None = None

    def reached(self, share: float, following: float | None = None) -> None:
        """Note that this share of the work is done, 0..1; a smaller one than before tells nothing.

        Parameters
        ----------
        following : float, optional
            What the next report is expected to tell.
        """
        now = self._clock()
        if share >= self.share:
            self._following = following
        if share > self.share:
            self.share = min(share, 1.0)
            self._reports.append((now, self.share))
        elif not self.share:
            self._reports = [(now, 0.0)]  # what came before the first piece is no pace

    def settles(self, share: float) -> None:
        """What comes before that share goes at a pace of its own: nothing is foretold before it is done, and nothing by it."""
        self._settled = share

    def course(self) -> dict[str, float]:
        """How such work went, once it has ended: the share that was done after each part of the time; nothing of what is weighed."""
        if self._weighed:
            return {}
        begun, seconds = self._reports[0][0], self._clock() - self._reports[0][0]
        found = {}
        for step in range(STEPS):
            until = begun + seconds * step / STEPS
            found[self._named(step)] = max(share for time_, share in self._reports if time_ <= until)
        return found

    def expect_course(self, before: Mapping[str, float]) -> None:
        """Such work went so the last time (:meth:`course`); what else stands there is not looked at."""
        if not self._weighed and all(self._named(step) in before for step in range(STEPS)):
            self._usual = tuple(before[self._named(step)] for step in range(STEPS))

    def _named(self, step: int) -> str:
        """Under which name the share after a part of the time is noted."""
        return f"{self._course} course {step:02d}".strip()

    def _of_time(self, share: float) -> float:
        """What part of the time is over once that share is done."""
        if not self._usual:
            return share
        return next((step for step, usual in enumerate(self._usual) if usual >= share), STEPS) / STEPS

    def left(self) -> float | None:
        """Seconds to go; None where that is not known.

        All so far foretells the rest. Where the next report is late, it is taken to come now: the whole takes at least so long.
        """
        if self.share < EARLIEST or not (self._weighed or self._usual):
            return None
        points = [(time_, self._of_time(share)) for time_, share in self._reports if share >= self._settled]
        if len(points) < 2 or points[-1][1] - points[0][1] < EARLIEST:
            return None
        (begun, base), (last, done) = points[0], points[-1]
        longest = max(after - before for (_, before), (_, after) in pairwise(points))
        coming = done + max(2 * longest, STEP)
        if self._usual:
            coming = next((step for step, usual in enumerate(self._usual) if usual > self.share), STEPS) / STEPS
        elif self._following is not None:
            coming = self._following
        passed = self._clock() - begun
        ahead = min(max(coming, done), 1.0) - base
        return max((1.0 - base) * max((last - begun) / (done - base), passed / ahead) - passed, 0.0)
