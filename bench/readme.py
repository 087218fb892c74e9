"""Writes measured figures into the documents, between ``<!-- figures: NAME -->`` and ``<!-- end -->``, and draws the speed chart.

Reads `bench/results/*.json`, which `make bench` writes. `--check` fails when something differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from bench.aims import FILES, aims
from bench.charts import Chart
from bench.tables import BLOCKS, in_words, measured_on, rounded

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
SPEED_CHART = ROOT / "docs" / "images" / "cipher-speed.svg"
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NOT_MEASURED = "Not measured yet: `make bench`."


def main() -> int:
    """Write the figures into every document that has blocks for them, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a document is stale")
    check = parser.parse_args().check
    files = documents()
    stale = [file for file, text in files.items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    if check and stale:
        names = ", ".join(file.relative_to(ROOT).as_posix() for file in stale)
        sys.stderr.write(f"{names}: figures differ from bench/results. Run `make docs` and commit the result.\n")
        return 1
    for file in stale:
        file.write_text(files[file], encoding="utf-8")
    return 0


def documents() -> dict[Path, str]:
    """README.md, every page of docs/ and the chart, as they should be."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    fresh = {page: filled(page.read_text(encoding="utf-8")) for page in pages}
    curves = _read("curves")
    return fresh | ({SPEED_CHART: speed_chart(curves).svg()} if curves else {})


def filled(text: str) -> str:
    """`text` with its figures as they are in the results."""
    return BLOCK.sub(lambda block: f"{block[1]}{figures(block[2])}\n{block[3]}", text)


def figures(name: str) -> str:
    """One of :data:`bench.tables.BLOCKS`, or the aims, which need not all be measured; with the machine it was measured on."""
    files, write = ("", aims) if name == "aims" else BLOCKS[name]
    results = {file: _read(file) for file in files.split() or FILES}
    if files and not all(results.values()):
        return NOT_MEASURED
    measured = {file: one for file, one in results.items() if one}
    machines: dict[str, list[str]] = {}
    for file, one in measured.items():
        machines.setdefault(measured_on(one["machine"]), []).append(file)
    lines = [
        f"{', '.join(of).capitalize()}: {line[0].lower()}{line[1:]}" if len(machines) > 1 else line
        for line, of in machines.items()
    ]
    whole = measured if len(results) > 1 else measured[files]
    return "\n\n".join([write(whole), *lines])


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def speed_chart(results: dict[str, Any]) -> Chart:
    """Scores a second by samples scored together, from `bench.curves`; textbook `phe` as dashed levels."""
    sizes = sorted({point["samples"] for point in results["samples"]})
    engines = {f"paillier {t['bits']}": in_words(f"paillier {t['bits']}") for t in results["textbook"]}
    lines: dict[str, list[float | None]] = {}
    left_out = {}
    for engine, title in ({"rlwe": "RLWE, lattice"} | engines).items():
        rates = {p["samples"]: p.get("per_second") for p in results["samples"] if p["engine"] == engine}
        name = f"{title}: {rounded(max(rate for rate in rates.values() if rate))}"
        lines[name] = [rates.get(size) for size in sizes]
        left_out[name] = [i for i, size in enumerate(sizes) if size in rates and rates[size] is None]
    return Chart(
        f"Scores a second on one core, both parties counted ({results['sample']['leaves']:,} leaves)",
        "samples scored together · dashed: a phe ciphertext a leaf\n"
        f"× left out: more than {results['cap_seconds']:.0f} s a point",
        [f"{size:,}" for size in sizes],
        lines,
        {f"phe, {t['bits']:,} bits: {t['per_second']:.2g}": t["per_second"] for t in results["textbook"]},
        left_out,
        logarithmic=True,
    )


if __name__ == "__main__":
    sys.exit(main())
