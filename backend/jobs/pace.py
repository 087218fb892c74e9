"""When work will have ended, from the share of it that is done, as whoever works weighs it, and from how such work went the last time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

EARLIEST = 0.1  # share of the work before which a pace is no more than a guess
STEADY = 4 / 3  # where the paces of all so far and of its later parts foretell rests that differ by more, none is known
PARTS = np.array([0.0, 1 / 2, 3 / 4])  # of the time so far, from where on its paces are compared
LATE = 5 / 4  # of the time at which the next report was expected: from there on nobody knows when it comes
STEP = 0.05  # share of the work that may come without a report in between
STEPS = 50  # parts of the time in which a course is noted
PRIOR = 0.1  # of what is to come: with that weight the last time's seconds count beside what is done of this one

# what is said from there on, in seconds: two neighbours are within a third of whatever lies between them
ROUND = (
    *(10, 15, 20, 30, 40, 50),
    *(60 * minutes for minutes in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)),
    *(3600 * hours for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 36)),
)

# what is said holds from a quarter less to a half more; this is the middle of that, as far by ratio from either end
MIDDLE = math.sqrt(3 / 4 * 3 / 2)
# seconds below which "less than 10 s" is said: it holds for as much more, by ratio, as "10 s" holds for less
SOON = ROUND[0] * math.sqrt(3 / 4)

Reports = Sequence[tuple[float, float]]  # when, and the share that was done
Course = Sequence[float]  # seconds, and the share that was done after each part of them


def rounded(left: float) -> float:
    """Seconds to go as they are said, so that most may come between; below :data:`SOON` "less than" that is said."""
    if left >= ROUND[-1]:
        return left
    return min(ROUND, key=lambda seconds: abs(math.log(seconds * MIDDLE / max(left, SOON))))


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
        self._usual: Course = ()
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
        self._typical, self._usual = False, ()

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
            self._usual = usual

    def left(self) -> float | None:
        """Seconds to go; None where that is not known: too little is done, the speed changes, or the next report is long overdue.

        All so far foretells the rest, and with it, where such work was done before, the seconds of then. The later half and the last
        quarter of the time must have gone at about the same pace. Where the next report is late, it is taken to come now: the whole takes
        at least so long.
        """
        reports = tuple(self._reports)  # another thread adds to them
        if not self._usual and (not self._weighed or reports[-1][1] < EARLIEST):
            return None
        begun = self._begun if self._usual else reports[0][0]
        times = np.array([begun, *(time_ for time_, _ in reports[1:])]) - begun
        seconds, shares, coming = self._as_usual(reports) if self._usual else self._as_weighed(reports)
        prior = PRIOR * (1 - shares[-1]) if seconds else 0.0
        since = times[-1] * PARTS
        paces = (prior * seconds + times[-1] - since) / np.maximum(
            prior + shares[-1] - np.interp(since, times, shares), 1e-9
        )
        whole, passed = float(paces[0]), self._clock() - begun
        rests = paces * (1 - shares[-1]) - (passed - times[-1])
        if passed > LATE * coming * whole or rests.max() > STEADY * max(rests.min(), SOON):
            return None
        return max(whole - passed, passed / coming - passed, 0.0)

    def _as_usual(self, reports: Reports) -> tuple[float, NDArray[np.float64], float]:
        """Seconds of the last time, the parts of them after which the shares of the reports were done, and until when no other was."""
        seconds, *then = self._usual
        shares = np.round([share for _, share in reports], 4)
        return (
            seconds,
            np.searchsorted(then, shares) / STEPS,
            float(np.searchsorted(then, shares[-1], side="right")) / STEPS,
        )

    def _as_weighed(self, reports: Reports) -> tuple[float, NDArray[np.float64], float]:
        """No seconds, the shares, and the one that may be done before the next report."""
        longest = max(after - before for (_, before), (_, after) in pairwise(reports))
        done = reports[-1][1]
        coming = done + max(2 * longest, STEP) if self._following is None else self._following
        return 0.0, np.array([share for _, share in reports]), min(max(coming, done), 1.0)
