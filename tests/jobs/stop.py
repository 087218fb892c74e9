"""How long jobs take to stop: ``PYTHONPATH=. python -m tests.jobs.stop KIND …``, each cancelled at several moments.

The first kind of all meets a key that has just been made. Prints, by kind, the seconds from asking to the end for each moment.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from backend.services import Glassleaf
from tests.jobs.kinds import KINDS

MOMENTS = (0.3, 1.5, 4.0, 9.0)  # seconds after the start


def main(kinds: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home, Glassleaf(Path(home)) as glassleaf:
        glassleaf.training.prepare_demo()
        model = glassleaf.models.all("demo")[0].id
        for name in kinds or KINDS:
            took: list[str] = []
            for moment in MOMENTS:
                try:
                    job = KINDS[name](glassleaf, model).wait(moment)
                except Exception as error:  # the others are measured
                    took.append(f"{type(error).__name__}: {error}"[:80])
                    break
                if job.state != "running":
                    took.append(f"{job.state} {str(job.failure or '')[:60]}")
                    break
                asked = time.perf_counter()
                job.cancel()
                job.wait(120)
                took.append(f"{time.perf_counter() - asked:.1f}" if job.state == "cancelled" else job.state)
            print(f"{name}: {', '.join(took)}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
