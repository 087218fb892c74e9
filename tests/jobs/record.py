"""Record courses of real jobs for ``courses.json``: ``PYTHONPATH=. python -m tests.jobs.record FILE HOW TIMES KIND …`` adds to FILE.

HOW is quiet (the machine does nothing else), busy (something else is at work) or bursts (every core is kept busy for five seconds of
ten). Each run is noted by the clock and, under its own name, in seconds of processor time of the job's processes, which other work does
not change, but in which two cores at work count twice. All kinds (:mod:`tests.jobs.kinds`) are done in one home, each TIMES times: the
first tells how the next will go.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psutil

from backend.jobs import Job
from backend.jobs.pace import Pace
from backend.services import Glassleaf
from tests.jobs.kinds import KINDS

LEAST = 0.004  # share of the work of which a report is kept
BURST = 5.0  # seconds of load, and of none
BURN = f"import time\nwhile True:\n    while time.time() % {2 * BURST} < {BURST}: pass\n    time.sleep(0.01)"

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


@contextmanager
def bursts() -> Iterator[None]:
    """Within, a load comes and goes on every core."""
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


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
        self.reports: dict[str, list[tuple[float, float, float | None]]] = {name: [] for name in self._clocks}
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
    clocks = {how: time.perf_counter, "processor": processor_clock()}
    load = bursts() if how == "bursts" else nullcontext()
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf, load:
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
                courses[f"{name}, {clock}"] = {"busy": clock in ("busy", "bursts")} | course
            write(file, courses)


def write(file: Path, courses: dict[str, Any]) -> None:
    """A line a course."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in courses.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
