"""When work will have ended, from what is reported of it, from how such work went before, or from the plan of its parts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

FEWEST = 3  # reports that make a pace
EARLIEST = 0.05  # share of the work before which a pace is no more than a guess
TRUST = 0.05  # share of a plan that is held to be right as it stands, whatever the first pieces took
ENOUGH = 0.1  # share of a part, or of the whole, after which its own pace counts: what is set up once is in the first reports
EXACT = 1e-9  # shares are sums of floats
STEPS = 50  # in which the course of work is noted
OTHER_SPEED = 2.0  # so many times faster or slower than the last time, it is other work
AGREED = (
    1.5  # by so much may the pace of all so far and that of its later half differ; beyond, neither foretells the rest
)
QUIET = 2.0  # so many times the longest wait for a report so far, nothing is foretold where a third of the rest would have passed, too


class Pace:
    """When work will have ended; counts down between two reports, and says nothing rather than something wrong.

    Where the same kind of work was done before at about this speed, by the course that it took then; else by the plan of its parts;
    else, where its pieces are alike, by their pace.

    Parameters
    ----------
    clock : callable
        Seconds.
    alike : bool
        Whether equal shares of the work take equal times, as far as anybody knows before it was done once.
    by_pieces : bool
        Whether only what :meth:`piece` tells makes a pace: what comes before, and parts of a piece, go otherwise.
    course : str
        What tells such work from other work of its kind that goes otherwise.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        *,
        alike: bool = True,
        by_pieces: bool = False,
        course: str = "",
    ) -> None:
        self._clock, self._alike, self._by_pieces, self._course = clock, alike, by_pieces, course
        self._begun = clock()
        self._usual: tuple[float, ...] = ()
        self._usual_seconds = 0.0
        self._expected: float | None = None
        self._plan: tuple[float, ...] = ()
        self._planned = self._begun
        self.begin_again()

    def begin_again(self) -> None:
        """Nothing of the work is done yet, or nothing any more."""
        self.share = 0.0
        self._start, self._last = (self._clock(), 0.0), (0.0, 0.0)  # time and share of reports
        self._reports: list[tuple[float, float]] = []  # the same, all of them
        self._pieces: list[tuple[float, float]] = []

    def reached(self, share: float) -> None:
        """Note that this share of the work is done, 0..1; a smaller one than before tells nothing."""
        now = self._clock()
        if share > self.share:
            self._last = now, min(share, 1.0)
            self.share = self._last[1]
            self._reports.append(self._last)
        elif not self.share:
            self._start = now, 0.0  # what came before the first piece is no pace

    def piece(self) -> None:
        """A piece of the work has ended, e.g. a tree, which takes about as long as the next; of several that end at once, one."""
        if not self._pieces or self.share > self._pieces[-1][1]:
            self._pieces.append((self._clock(), self.share))

    def expect(self, seconds: float | None) -> None:
        """What is left took so long the last time; None = it has no record."""
        self._expected = None if seconds is None else self._clock() + seconds

    def plan(self, seconds: Sequence[float]) -> None:
        """The parts of the work begin now, and shares are of what they are expected to take: units weighed by the cost of one."""
        self._plan, self._planned = tuple(seconds), self._clock()

    def course(self) -> dict[str, float]:
        """How such work went, once it has ended: the seconds that it took, and the share that was done after each part of them."""
        seconds = self._clock() - self._begun
        found = {self._named(STEPS): seconds}
        for step in range(STEPS):
            until = self._begun + seconds * step / STEPS
            found[self._named(step)] = max((share for time_, share in self._reports if time_ <= until), default=0.0)
        return found

    def expect_course(self, before: Mapping[str, float]) -> None:
        """Such work went so the last time (:meth:`course`); what else stands there is not looked at."""
        if all(self._named(step) in before for step in range(STEPS + 1)):
            self._usual_seconds = before[self._named(STEPS)]
            self._usual = (*(before[self._named(step)] for step in range(STEPS)), math.inf)

    def _named(self, step: int) -> str:
        """Under which name the share after a part of the time is noted; the last one is the time."""
        return f"{self._course} course {step:02d}".strip()

    def left(self) -> float | None:
        """Seconds to go; None where that is not known."""
        if self._expected is not None:
            rest = self._expected - self._clock()
            return rest if rest > 0 else None  # it takes longer than it did: nobody knows how much
        whole = self._whole()
        if whole is not None:
            return max(whole - (self._clock() - self._begun), 0.0) or None
        if self._plan:
            return self._left_by_plan()
        return self._left_by_pace() if self._alike else None

    def _whole(self) -> float | None:
        """Seconds of the whole, by the course that such work took; None where this is other work, or work at another speed."""
        if not self._usual:
            return None
        passed = self._clock() - self._begun
        since = next(step for step, share in enumerate(self._usual) if share >= self.share) / STEPS
        until = next(step for step, share in enumerate(self._usual) if share > self.share) / STEPS
        whole = self._usual_seconds
        if self.share and since >= EARLIEST:
            whole = (self._last[0] - self._begun) / since
        whole = max(whole, passed / until) if until else whole  # nothing was heard for longer than that time
        return whole if self._usual_seconds / OTHER_SPEED <= whole <= self._usual_seconds * OTHER_SPEED else None

    def _left_by_plan(self) -> float | None:
        """The rest of the present part as fast as it goes; the parts to come as planned, but as much faster or slower as all so far."""
        if self.share < EARLIEST:
            return None
        last, share = self._last
        whole = sum(self._plan)
        ends = [end / whole for end in accumulate(self._plan)]
        at = next((i for i, end in enumerate(ends) if share < end - EXACT), len(ends) - 1)
        begins, ends_at = (ends[at - 1] if at else 0.0), ends[at]
        trust = TRUST * whole
        speed = (last - self._planned + trust) / (share * whole + trust)
        since = next((time_ for time_, reached in self._reports if reached >= begins - EXACT), last)
        since = since if at else self._planned
        done, planned = (share - begins) * whole, (ends_at - begins) * whole
        own = (last - since) / done if done >= ENOUGH * planned else speed
        rest = own * (planned - done) + speed * (1.0 - ends_at) * whole
        left = rest - (self._clock() - last)
        return left if left > 0 else None  # it takes longer than planned: nobody knows how much

    def _left_by_pace(self) -> float | None:
        """By the pace of finished pieces; None where that of all and that of the later half do not agree, or nothing comes any more.

        Work that speeds up or slows down (its pieces are not alike, what was made ahead is used up, the machine has other work) has no
        pace that foretells the rest.
        """
        points = self._pieces if self._by_pieces else [self._start, *self._reports]
        if self.share < ENOUGH or len(points) < FEWEST:
            return None
        last, share = points[-1]
        pace = self._agreed(points)  # seconds for the whole
        rest, waited = (1.0 - share) * (pace or 0.0), self._clock() - last
        steps = [(later[0] - before[0], later[1] - before[1]) for before, later in pairwise(points)]
        silent, longest = max(seconds for seconds, _ in steps), max(done for _, done in steps)
        if pace is None or waited > max(rest / 3, QUIET * silent + 1.0) or waited > 1.25 * rest + 1.0:
            return None
        # where no report comes, the clock stops at the end of the longest step, or halfway
        return max(rest - waited, min(rest - longest * pace, rest / 2), 0.0)

    @staticmethod
    def _agreed(points: Sequence[tuple[float, float]]) -> float | None:
        """Seconds for the whole, from times and what was done by then: all of it and the later half; None where they do not agree."""
        (begun, first), (last, done) = points[0], points[-1]
        since, before = next(point for point in reversed(points[:-1]) if point[1] <= (first + done) / 2)
        all_of_it, later = (last - begun) / (done - first), (last - since) / (done - before)
        if max(all_of_it, later) > AGREED * min(all_of_it, later):
            return None
        return math.sqrt(all_of_it * later)
