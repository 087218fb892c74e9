"""Seconds until work ends, from its mean pace so far and the seconds that such work took the last time. Does not know the work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

EARLIEST = 0.1  # share of the work before which a pace is a guess
PRIOR = 0.1  # weight of the last run's seconds beside the share that is done; it fades as the work goes on
STEADY = 1.2  # estimates that differ by more make the pace unsteady, and no time is shown
LONGEST_SILENCE = 0.25  # of the whole time: a report that is later makes the pace unsteady
LEAST_SHARE = 0.03  # of the work: the later half of the time needs as much for a separate estimate

# The seconds that are shown from SOON on; any time between two neighbours is within a third of one of them.
SHOWN_SECONDS = (
    *(8, 10, 12, 15, 20, 30, 40, 50),
    *(60 * minutes for minutes in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)),
    *(3600 * hours for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 36)),
)
MIDDLE = math.sqrt(3 / 4 * 3 / 2)  # a shown time holds from a quarter less to a half more; this is the middle by ratio
LESS = 10.0  # seconds: "less than" this is shown if the remaining time is below SOON
SOON = LESS / math.sqrt(2)


def rounded(remaining: float) -> float:
    """Return `remaining` seconds as they are shown; below :data:`SOON` the page shows "less than" the result."""
    if remaining < SOON:
        return LESS
    if remaining >= SHOWN_SECONDS[-1]:
        return remaining
    return min(SHOWN_SECONDS, key=lambda seconds: abs(math.log(seconds * MIDDLE / remaining)))


class Eta:
    """The share of the work that is done, and the seconds until its end.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.last_run_seconds = 0.0  # 0 = such work was never done before
        self.begin_again()

    def begin_again(self) -> None:
        """Set the share that is done to zero."""
        self.share = 0.0
        self._began = self._clock()
        self._reports = [(0.0, 0.0)]  # seconds since the beginning, share of the work

    def reached(self, share: float) -> None:
        """Note that `share` of the work is done, 0..1; a smaller one than before changes nothing."""
        if share > self.share:
            self.share = min(share, 1.0)
            self._reports.append((self._clock() - self._began, self.share))
        elif not self.share and not self.last_run_seconds:
            self._began = self._clock()  # preparations before the first piece tell nothing about its pace

    def left(self) -> float | None:
        """Return the remaining seconds; None if the pace is not known or unsteady."""
        passed = self._clock() - self._began
        reports = tuple(self._reports)  # another thread appends
        last, share = reports[-1]
        if share < EARLIEST and not self.last_run_seconds:
            return None
        # The whole time by the mean pace, to which the last run adds a share of the work at its own pace.
        prior = PRIOR * (1 - share) if self.last_run_seconds else 0.0
        total_seconds = (prior * self.last_run_seconds + last) / (prior + share)
        estimates = [total_seconds]
        if share >= EARLIEST:
            estimates.append(last / share)
        # The whole time by the pace of the later half of the time.
        half, share_by_half = max(report for report in reports if report[0] <= last / 2)
        later_share = share - share_by_half
        if later_share >= LEAST_SHARE:
            estimates.append(last + (last - half) / later_share * (1 - share))
        shortest = max(min(estimates) - passed, SOON)
        if max(estimates) - passed > STEADY * shortest or passed - last > LONGEST_SILENCE * total_seconds:
            return None
        return max(total_seconds - passed, 0.0)
