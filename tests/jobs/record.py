"""Record courses of real jobs for ``courses.json``: ``PYTHONPATH=. python -m tests.jobs.record FILE HOW TIMES KIND …`` adds to FILE.

HOW is quiet (the machine does nothing else) or busy (something else is at work). Each run is noted by the clock and, under its own name,
by a steady one, which stands still while the job's threads wait for cores that other work has: so the run would go on a machine of its
own. All kinds (:mod:`tests.jobs.kinds`) are done in one home, each TIMES times: the first tells how the next will go. Of each it prints
how often, from a tenth of the work on, what would have been said of the time left is wrong by more than a third, and how often nothing is
said.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from backend.jobs import Job
from backend.jobs.pace import Pace
from backend.services import Glassleaf
from tests.jobs.kinds import KINDS
from tests.jobs.test_courses import judged

LOOK, FAMILY = (
    0.02,
    20,
)  # seconds between two looks of the steady clock, and looks after which processes are listed anew
CORES = os.cpu_count() or 1
LEAST = 0.004  # share of the work of which a report is kept

Clock = Callable[[], float]


class SteadyClock(threading.Thread):
    """Seconds less those in which this process's threads, or those of processes that it has started, waited for a core.

    Within an interval they ran for r seconds and waited for a core for w. Where that is less than the interval, w is what was lost; else
    they would have had up to r + w seconds of all cores, and got r.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._spent: dict[Path, tuple[float, float]] = {}
        self._processes: list[int] = [os.getpid()]
        self._seconds = 0.0
        self._since()
        self.start()

    def __call__(self) -> float:
        return self._seconds

    def run(self) -> None:
        then = time.perf_counter()
        for look in count():
            time.sleep(LOOK)
            if look % FAMILY == 0:
                with suppress(psutil.Error):
                    self._processes = [os.getpid(), *(p.pid for p in psutil.Process().children(recursive=True))]
            ran, waited = self._since()
            now = time.perf_counter()
            passed, then = now - then, now
            wanted = ran + waited
            if wanted <= passed:
                self._seconds += max(passed - waited, 0.0)
            else:
                self._seconds += passed * min(ran / min(wanted, CORES * passed), 1.0)

    def _since(self) -> tuple[float, float]:
        """Seconds that all threads ran and waited for a core since the last look."""
        ran = waited = 0.0
        for process in self._processes:
            files: list[Path] = []
            with suppress(OSError):  # a process or a thread that has just ended
                files = list(Path(f"/proc/{process}/task").glob("*/schedstat"))
            for file in files:
                with suppress(OSError):
                    one, other = (int(part) / 1e9 for part in file.read_text().split()[:2])
                    before = self._spent.get(file, (0.0, 0.0))
                    ran, waited = ran + one - before[0], waited + other - before[1]
                    self._spent[file] = one, other
        return ran, waited


class Noted(Pace):
    """A pace that notes what it is told by each clock: (seconds, share, next share), and whether things were made once."""

    def __init__(self, clocks: dict[str, Clock]) -> None:
        self._clocks, self._since = clocks, {name: clock() for name, clock in clocks.items()}
        self.made_once = False
        super().__init__()

    def seconds(self, name: str) -> float:
        return round(self._clocks[name]() - self._since[name], 2)

    def reached(self, share: float, following: float | None = None) -> None:
        told = next(iter(self.reports.values()))
        if not told or following is not None or share - told[-1][1] >= LEAST or share == 1.0:
            next_ = None if following is None else round(following, 4)
            for name, reports in self.reports.items():
                reports.append((self.seconds(name), round(share, 4), next_))
        super().reached(share, following)

    def begin_again(self) -> None:
        self.reports: dict[str, list[tuple[float, float, float | None]]] = {
            name: [(self.seconds(name), 0.0, None)] for name in self._clocks
        }
        super().begin_again()

    def once(self) -> None:
        self.made_once = True
        super().once()


def run(start: Callable[[], Job[Any]], clocks: dict[str, Clock]) -> tuple[dict[str, dict[str, Any]], bool]:
    """A run by each clock, and whether its work is weighed."""
    made = Job.__init__

    def make(job: Job[Any], *args: Any, **options: Any) -> None:
        made(job, *args, **options)
        job.weighed, job.pace = job.pace._weighed, Noted(clocks)  # type: ignore[attr-defined]

    Job.__init__ = make  # type: ignore[method-assign,assignment]
    try:
        job = start()
        job.get()
    finally:
        Job.__init__ = made  # type: ignore[method-assign]
    pace = job.pace
    assert isinstance(pace, Noted)
    found = {
        name: {"seconds": pace.seconds(name), "once": pace.made_once, "reports": pace.reports[name]} for name in clocks
    }
    return found, job.weighed  # type: ignore[attr-defined]


def main(file: Path, how: str, times: int, kinds: list[str]) -> None:
    clocks: dict[str, Clock] = {how: time.perf_counter, "steady": SteadyClock()}
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        glassleaf.training.prepare_demo()
        model = glassleaf.models.all("demo")[0].id
        for name in kinds:
            courses = json.loads(file.read_text()) if file.exists() else {}
            try:
                runs = [run(lambda kind=name: KINDS[kind](glassleaf, model), clocks) for _ in range(times)]  # type: ignore[misc]
            except Exception as error:  # the others are recorded
                print(f"{name}: {type(error).__name__}: {error}", flush=True)  # noqa: T201
                continue
            bounds = {"wrong_at_most": [0.0] * times, "silent_at_most": [0.0] * times}
            for clock in clocks:
                course = {"weighed": runs[0][1], **bounds, "runs": [found[clock] for found, _ in runs]}
                courses[f"{name}, {clock}"] = {"busy": clock == "busy"} | course
                said = ", ".join(f"wrong {wrong:.0%}, silent {silent:.0%}" for wrong, silent in judged(course))
                print(f"{name}, {clock}: {[run['seconds'] for run in course['runs']]} s; {said}", flush=True)  # noqa: T201
            write(file, courses)


def write(file: Path, courses: dict[str, Any]) -> None:
    """A line a course."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in courses.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
