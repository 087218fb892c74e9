"""Record courses of real jobs for ``courses.json``: ``PYTHONPATH=. python -m tests.jobs.record FILE HOW TIMES KIND …`` adds to FILE.

HOW is quiet (the machine does nothing else) or busy, by the clock, or processor: seconds of processor time of the job's processes, which
other work does not change, but in which two cores at work count twice. All kinds (:mod:`tests.jobs.kinds`) are done in one home, each
TIMES times: the first tells how the next will go. Printed is also the longest time between two looks whether the job was stopped.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from backend.jobs import Job
from backend.jobs.pace import Pace
from backend.services import Glassleaf
from tests.jobs.kinds import KINDS

LEAST = 0.004  # share of the work of which a report is kept

Clock = Callable[[], float]


def processor_clock() -> Clock:
    """Seconds of this process and of those that it has started, ended ones too."""
    spent: dict[int, float] = {}

    def clock() -> float:
        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                spent[process.pid] = times.user + times.system
        return sum(spent.values())

    return clock


class Noted(Pace):
    """A pace that notes what it is told: (seconds, share, next share), and whether things were made once."""

    def __init__(self, clock: Clock) -> None:
        self._now, self._since = clock, clock()
        self.reports: list[tuple[float, float, float | None]] = []
        self.made_once = False
        super().__init__()

    def reached(self, share: float, following: float | None = None) -> None:
        if not self.reports or following is not None or share - self.reports[-1][1] >= LEAST or share == 1.0:
            next_ = None if following is None else round(following, 4)
            self.reports.append((round(self._now() - self._since, 2), round(share, 4), next_))
        super().reached(share, following)

    def begin_again(self) -> None:
        self.reports = []
        super().begin_again()

    def once(self) -> None:
        self.made_once = True
        super().once()


def run(start: Callable[[], Job[Any]], clock: Clock) -> tuple[dict[str, Any], bool, float]:
    """A run, whether its work is weighed, and the longest time between two looks."""
    looks = [time.perf_counter()]
    made, look = Job.__init__, Job.check

    def make(job: Job[Any], *args: Any, **options: Any) -> None:
        made(job, *args, **options)
        job.weighed, job.pace = job.pace._weighed, Noted(clock)  # type: ignore[attr-defined]

    def check(job: Job[Any]) -> None:
        looks.append(time.perf_counter())
        look(job)

    Job.__init__, Job.check = make, check  # type: ignore[method-assign]
    try:
        began = clock()
        job = start()
        job.get()
        seconds = round(clock() - began, 2)
    finally:
        Job.__init__, Job.check = made, look  # type: ignore[method-assign]
    assert isinstance(job.pace, Noted)
    longest = max(after - before for before, after in zip(looks, [*looks[1:], time.perf_counter()], strict=True))
    found = {"seconds": seconds, "once": job.pace.made_once, "reports": job.pace.reports}
    return found, job.weighed, longest  # type: ignore[attr-defined]


def main(file: Path, how: str, times: int, kinds: list[str]) -> None:
    clock = processor_clock() if how == "processor" else time.perf_counter
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        glassleaf.training.prepare_demo()
        model = glassleaf.models.all("demo")[0].id
        for name in kinds:
            courses = json.loads(file.read_text()) if file.exists() else {}
            try:
                runs = [run(lambda kind=name: KINDS[kind](glassleaf, model), clock) for _ in range(times)]  # type: ignore[misc]
            except Exception as error:  # the others are recorded
                print(f"{name}: {type(error).__name__}: {error}", flush=True)  # noqa: T201
                continue
            bounds = {"wrong_at_most": [0.0] * times, "silent_at_most": [0.0] * times}
            course = {"busy": how == "busy", "weighed": runs[0][1], **bounds, "runs": [one[0] for one in runs]}
            courses[f"{name}, {how}"] = course
            write(file, courses)


def write(file: Path, courses: dict[str, Any]) -> None:
    """A line a course."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in courses.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
