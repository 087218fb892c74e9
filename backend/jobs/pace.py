"""When work will have ended, from the share of it that is done, as whoever works weighs it, and from how such work went the last time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

EARLIEST = 0.1  # share of the work before which a pace is no more than a guess
STEADY = 4 / 3  # where the paces of all so far and of its later parts foretell rests that differ by more, none is known
PARTS = (0.0, 1 / 2, 3 / 4)  # of the time so far, from where on its paces are compared
LATE = 5 / 4  # of the time at which the next report was expected: from there on nobody knows when it comes
STEP = 0.05  # share of the work that may come without a report in between
TOLD = 0.02  # share of the work by which the same report may tell another one than the last time
STEPS = 50  # parts of the time in which a course is noted
PRIOR = 0.1  # of what is to come: with that weight the last time's seconds count beside what is done of this one

# what is said from there on, in seconds: two neighbours are within a third of whatever lies between them
ROUND = (
    *(8, 10, 12, 15, 20, 30, 40, 50),
    *(60 * minutes for minutes in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)),
    *(3600 * hours for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 36)),
)

# what is said holds from a quarter less to a half more; this is the middle of that, as far by ratio from either end
MIDDLE = math.sqrt(3 / 4 * 3 / 2)
# below SOON "less than LESS" is said: it holds for as much more, by ratio, as what is said else holds from its middle
LESS = 10.0
SOON = LESS / math.sqrt(2)

Reports = Sequence[tuple[float, float]]  # when, and the share that was done
Course = Sequence[float]  # seconds, and the share that was done after each part of them
AS_WEIGHED: tuple[float, Course, Course] = 0.0, (0.0, 1.0), (0.0, 1.0)  # no seconds, and all goes evenly


def rounded(left: float) -> float:
    """Seconds to go as they are said, so that most may come between; below :data:`SOON` "less than" that is said."""
    if left < SOON:
        return LESS
    return left if left >= ROUND[-1] else min(ROUND, key=lambda seconds: abs(math.log(seconds * MIDDLE / left)))


class Pace:
    """When work will have ended; counts down between two reports.

    Parameters
    ----------
    clock : callable
        Seconds.
    weighed : bool
        Whether equal shares of the work take equal times; else nothing is foretold before such work was done once.
    course : str
        What tells such work from other work of its kind that goes otherwise: its size, say.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, *, weighed: bool = True, course: str = ""
    ) -> None:
        self._clock, self._weighed, self._name = clock, weighed, f"{course} course".strip()
        self._usual, self._reported, self._then = AS_WEIGHED
        self._typical = True
        self.begin_again()

    def begin_again(self) -> None:
        """Nothing of the work is done yet, or nothing any more."""
        self.share = 0.0
        self._begun = self._clock()
        self._reports = [(self._begun, 0.0)]  # time and share
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

    def once(self) -> None:
        """Things are made that later work finds made: this one goes as no other, and is as it was weighed."""
        self._typical = False
        self._usual, self._reported, self._then = AS_WEIGHED

    def course(self) -> dict[str, Course]:
        """How such work went, once it has ended; nothing of what goes as no other."""
        if not self._typical:
            return {}
        seconds = self._clock() - self._begun
        until = (self._begun + seconds * step / STEPS for step in range(STEPS))
        shares = (max((share for time_, share in self._reports if time_ <= end), default=0.0) for end in until)
        return {self._name: (round(seconds, 2), *(round(share, 4) for share in shares))}

    def expect_course(self, before: Mapping[str, Course]) -> None:
        """Such work went so the last time (:meth:`course`); what else stands there is not looked at."""
        usual = before.get(self._name, ())
        if self._typical and len(usual) == STEPS + 1:
            seconds, *shares = usual
            first = {0.0: 0.0, 1.0: 1.0} | {share: step / STEPS for step, share in reversed([*enumerate(shares)])}
            self._usual, self._reported, self._then = seconds, sorted(first), sorted(first.values())

    def left(self) -> float | None:
        """Seconds to go; None where that is not known: too little is done, the speed changes, or the next report is long overdue.

        All so far foretells the rest, and with it, where such work was done before, the seconds of then. The later half and the last
        quarter of the time must have gone at about the same pace, as far as enough was done in them to tell one. Where the
        next report is late, it is taken to come now: the whole takes at least so long.
        """
        reports = tuple(self._reports)  # another thread adds to them
        if not self._usual and (not self._weighed or reports[-1][1] < EARLIEST):
            return None
        begun = self._begun if self._usual else reports[0][0]
        times, passed = [time_ - begun for time_, _ in reports], self._clock() - begun
        shares = [self._in_time(share) for _, share in reports]
        last, done, coming = times[-1], shares[-1], self._coming(reports)
        prior, paces = PRIOR * (1 - done) if self._usual else 0.0, []
        for since in (part * last for part in PARTS):
            later = done - float(np.interp(since, times, shares)) if since else done
            if not since or later >= STEP:  # less tells no pace
                paces.append((prior * self._usual + last - since) / max(prior + later, 1e-9))
        rests = [pace * (1 - done) - (passed - last) for pace in paces]
        if passed > LATE * coming * paces[0] or max(rests) > STEADY * max(min(rests), SOON):
            return None
        return max(paces[0] - passed, passed / coming - passed, 0.0)

    def _in_time(self, share: float) -> float:
        """The part of the time after which this share of the work is done: as the last time, where such work was done before."""
        return float(np.interp(share, self._reported, self._then))

    def _coming(self, reports: Reports) -> float:
        """The part of the time after which the next report is to come."""
        done = reports[-1][1]
        if self._following is not None:
            return self._in_time(min(max(self._following, done), 1.0))
        if self._usual:
            told = zip(self._reported, self._then, strict=True)
            return next((then for share, then in told if share > done + TOLD), 1.0)
        longest = max(after - before for (_, before), (_, after) in pairwise(reports)) if len(reports) > 1 else 0.0
        return min(done + max(2 * longest, STEP), 1.0)
