"""Record courses of real jobs for ``courses.json``: ``PYTHONPATH=. python -m tests.jobs.record FILE HOW KIND …`` adds to FILE.

HOW is quiet (the machine does nothing else) or busy, by the clock, or processor: seconds of processor time of the job's processes, which
other work does not change, but in which two cores at work count twice. Every kind is done in a home of its own, so the first time on a
machine; what begins with "again" in one in which it was done before.
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

import numpy as np
import psutil

from backend.data.table import SampleSheet
from backend.jobs import Job
from backend.jobs.pace import Pace
from backend.protocols.training.parameters import SecureBoostParameters
from backend.services import Glassleaf
from backend.services.attack_runs import AttackRuns
from backend.services.fairness import DisparityRequest
from backend.services.reasons import ReasonsRequest
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest
from backend.services.validation_run import ValidationRequest


def sheet(glassleaf: Glassleaf, people: int) -> SampleSheet:
    """People of the demo, over and over."""
    table = glassleaf._shared.workspace.runtime("demo").table
    own = table.take(np.arange(people) % len(table.ids))
    return SampleSheet(own.ids, own, {}, {}, ())


def score(people: int, cipher: Any) -> Callable[[Glassleaf, str], Job[Any]]:
    def start(glassleaf: Glassleaf, model: str) -> Job[Any]:
        return glassleaf.scoring.start(ScoringRequest(model, sheet(glassleaf, people), cipher=cipher), counted=False)

    return start


def train(trees: int, cipher: Any) -> Callable[[Glassleaf, str], Job[Any]]:
    def start(glassleaf: Glassleaf, model: str) -> Job[Any]:
        parameters = SecureBoostParameters(trees=trees, depth=3, learning_rate=0.3, cipher=cipher)
        return glassleaf.training.start(TrainingRequest("demo", parameters, most_named=1.0))

    return start


KINDS: dict[str, Callable[[Glassleaf, str], Job[Any]]] = {
    "scores of 100 under Paillier": score(100, "paillier"),
    "scores of 1,000 under Paillier": score(1000, "paillier"),
    "scores of 3,000 under RLWE": score(3000, "rlwe"),
    "scores of 100,000 under RLWE": score(100_000, "rlwe"),
    "training under Paillier, 12 trees": train(12, "paillier"),
    "training under RLWE, 12 trees": train(12, "rlwe"),
    "reasons of 200 under RLWE": lambda glassleaf, model: glassleaf.reasons.start(
        ReasonsRequest(model, sheet(glassleaf, 200), cipher="rlwe")
    ),
    "attack A6": lambda glassleaf, model: AttackRuns.start(["A6"]),
    "attack T4": lambda glassleaf, model: AttackRuns.start(["T4"]),
    "attack A7": lambda glassleaf, model: AttackRuns.start(["A7"]),
    "disparity": lambda glassleaf, model: glassleaf.fairness.start(DisparityRequest(model, "gender")),
    "validation": lambda glassleaf, model: glassleaf.validation.start(ValidationRequest(model)),
}


def processor_time() -> float:
    """Of this process and those that it has started."""
    own = psutil.Process()
    spent = 0.0
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            spent += times.user + times.system
    return spent


def record(kind: str, clock: Callable[[], float], *, again: bool) -> dict[str, Any]:
    """Seconds of the job, the share before which its pace is none, and (seconds, share, next share) of its reports."""
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        glassleaf.training.prepare_demo()
        model = glassleaf.models.all("demo")[0].id
        if again:
            KINDS[kind](glassleaf, model).get()
        reports: list[tuple[float, float, float | None]] = []
        began, noted, settles, settled = clock(), Pace.reached, Pace.settles, [0.0]

        def reached(self: Pace, share: float, following: float | None = None) -> None:
            next_ = None if following is None else round(following, 4)
            reports.append((round(clock() - began, 2), round(share, 4), next_))
            noted(self, share, following)

        def settling(self: Pace, share: float) -> None:
            settled[0] = round(share, 4)
            settles(self, share)

        Pace.reached, Pace.settles = reached, settling  # type: ignore[method-assign]
        try:
            KINDS[kind](glassleaf, model).get()
        finally:
            Pace.reached, Pace.settles = noted, settles  # type: ignore[method-assign]
        return {"seconds": round(clock() - began, 2), "settles": settled[0], "reports": reports}


def main(file: Path, how: str, kinds: list[str]) -> None:
    for name in kinds:
        courses = json.loads(file.read_text()) if file.exists() else {}
        clock = processor_time if how == "processor" else time.perf_counter
        course = record(name.removeprefix("again: "), clock, again=name.startswith("again: "))
        bounds = {"busy": how == "busy", "wrong_at_most": 0.0, "silent_at_most": 0.0}
        courses[f"{name}, {how}"] = {**bounds, **course}
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in courses.items()]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
