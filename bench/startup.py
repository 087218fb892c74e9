"""How long the command line and the library take to start: whole processes in turns, beside the libraries that every command needs.

Runs `python -m backend models` on a home with the demo, and `import backend.services`; the aims are part of the result.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.setting import fresh_glassleaf, progress, run
from bench.tables import startup as describe
from bench.timing import interleaved, median_ratio, seconds_of

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 9
LIBRARIES = "libraries"
MODELS = "models"
SERVICES = "services"
COMMANDS = {
    "python": ("-c", "pass"),
    LIBRARIES: ("-c", "import typer, sqlalchemy.orm, pydantic"),
    MODELS: ("-m", "backend", "models"),
    SERVICES: ("-c", "import backend.services"),
}
# command → (field of its row, greatest value); the ratio is to LIBRARIES in the same run
AIMS = {MODELS: ("ratio", 2.0), SERVICES: ("seconds", 0.4)}


def measure(repeats: int = REPEATS) -> dict[str, Any]:
    """Medians of `repeats` processes of every command, in turns, after one of each that is not counted."""
    with fresh_glassleaf() as glassleaf:
        progress("preparing the demo")
        glassleaf.training.prepare_demo()
        return timed(glassleaf.home, repeats)


def timed(home: Path, repeats: int) -> dict[str, Any]:
    """The same on a home that is prepared."""
    starts = {name: partial(seconds_of, start, arguments, home) for name, arguments in COMMANDS.items()}
    for warm_up in starts.values():
        warm_up()
    progress(f"{repeats} processes of each")
    seconds = interleaved(starts, repeats)
    return {"repeats": repeats, "rows": [_row(name, seconds) for name in COMMANDS]}


def start(arguments: Sequence[str], home: Path) -> None:
    """Run one Python process to its end; raises CalledProcessError if it fails."""
    environment = os.environ | {"GLASSLEAF_HOME": str(home)}
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 (ours)


def _row(name: str, seconds: dict[str, list[float]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "command": shlex.join(["python", *COMMANDS[name]]),
        "seconds": median(seconds[name]),
        "fastest_seconds": min(seconds[name]),
        "ratio": median_ratio(seconds[name], seconds[LIBRARIES]),
        "aim": None,
    }
    if name in AIMS:
        field, at_most = AIMS[name]
        row["aim"] = {"field": field, "at_most": at_most, "reached": row[field] <= at_most}
    return row


if __name__ == "__main__":
    run(__doc__, measure, describe)
