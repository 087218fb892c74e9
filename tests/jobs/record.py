"""Record courses of real jobs for ``courses.json``: ``PYTHONPATH=. python -m tests.jobs.record FILE TIMES KIND …`` adds to FILE.

All kinds (:mod:`tests.jobs.kinds`) are done in one home, each TIMES times: a run tells how long the next one will take. Of each run it
prints how often, from a tenth of the time on, what would have been said of the time left is wrong, and how often nothing is said.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.jobs import Job
from backend.jobs.eta import Eta
from backend.services import Glassleaf
from tests.jobs.kinds import KINDS
from tests.jobs.test_courses import judged

LEAST = 0.004  # share of the work of which a report is kept


class NotedEta(Eta):
    """Notes when which share was reported."""

    def begin_again(self) -> None:
        super().begin_again()
        self.noted = [(0.0, 0.0)]

    def reached(self, share: float) -> None:
        super().reached(share)
        if share - self.noted[-1][1] >= LEAST or share == 1.0:
            self.noted.append((round(time.perf_counter() - self._began, 2), round(share, 4)))


def run(start: Callable[[], Job[Any]]) -> dict[str, Any]:
    """One run: its seconds, and its reports."""
    made = Job.__init__

    def make(job: Job[Any], *args: Any, **options: Any) -> None:
        made(job, *args, **options)
        job.eta = NotedEta()

    Job.__init__ = make  # type: ignore[method-assign,assignment]
    try:
        job = start()
        job.get()
    finally:
        Job.__init__ = made  # type: ignore[method-assign]
    assert isinstance(job.eta, NotedEta)
    return {"seconds": round(job.seconds, 2), "reports": job.eta.noted}


def main(file: Path, times: int, kinds: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        glassleaf.training.prepare_demo()
        model = glassleaf.models.all("demo")[0].id
        courses = json.loads(file.read_text()) if file.exists() else {}
        for name in kinds:
            courses[name] = [run(lambda kind=name: KINDS[kind](glassleaf, model)) for _ in range(times)]  # type: ignore[misc]
            said = ", ".join(f"wrong {wrong:.0%}, silent {silent:.0%}" for wrong, silent in judged(courses[name]))
            print(f"{name}: {[one['seconds'] for one in courses[name]]} s; {said}", flush=True)  # noqa: T201
            lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in courses.items()]
            file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
