"""`python -m bench.paper`: measure the papers' tables and write docs/paper.md; some minutes to an hour, `--quick` a few minutes.

A quick run takes small samples (the built-in demo where ../shared/data is absent) and writes its page into a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.paper.data import papers_tables
from bench.paper.page import PARTS, stale, write
from bench.setting import machine, progress

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"
ABSENT = 2  # exit status where the data is absent


def main() -> int:
    """Run all parts or one; results of the others stay as they were."""
    parser = argparse.ArgumentParser(prog="python -m bench.paper", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small samples, into a temporary folder")
    parser.add_argument("--only", choices=list(PARTS), help="one paper")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing; write the page from the results that are there"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when the page differs from the results"
    )
    chosen = parser.parse_args()
    if chosen.check:
        names = stale(read(RESULTS), DOCS)
        if names:
            sys.stderr.write(
                f"{', '.join(names)}: differs from bench/results. Run `make docs` and commit the result.\n"
            )
        return 1 if names else 0
    if chosen.page:
        sys.stdout.write(f"{write(read(RESULTS), DOCS)}\n")
        return 0
    try:
        tables = papers_tables(chosen.quick)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return ABSENT
    folder = Path(tempfile.mkdtemp(prefix="glassleaf-paper-")) if chosen.quick else DOCS
    stored = folder if chosen.quick else RESULTS
    for name in [chosen.only] if chosen.only else list(PARTS):
        began = time.perf_counter()
        setting = machine()
        results = PARTS[name].measure(tables, chosen.quick)
        seconds = time.perf_counter() - began
        results = {"machine": setting, "quick": chosen.quick, "seconds": seconds} | results
        progress(f"{name}: {seconds:.0f} s")
        _file(stored, name).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{write(read(stored), folder)}\n")
    return 0


def read(folder: Path) -> dict[str, Any]:
    """The results of earlier runs, part by part."""
    files = {name: _file(folder, name) for name in PARTS}
    return {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}


def _file(folder: Path, name: str) -> Path:
    return folder / f"paper-{name}.json"


if __name__ == "__main__":
    sys.exit(main())
