"""Writes measured figures into the documents, between ``<!-- figures: NAME -->`` and ``<!-- end -->``. `--check` fails when they differ.

Reads `bench/results/*.json`, which `make bench` writes; needs the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
BETWEEN = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TITLES = {"demo": "demo", "credit_card": "credit card"}


def main() -> int:
    """Write the figures into every document that has room for them, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a document is stale")
    check = parser.parse_args().check
    stale = []
    for page in documents():
        text = page.read_text(encoding="utf-8")
        fresh = filled(text)
        if fresh != text and check:
            stale.append(page.relative_to(ROOT).as_posix())
        elif fresh != text:
            page.write_text(fresh, encoding="utf-8")
    if stale:
        sys.stderr.write(
            f"{', '.join(stale)}: figures differ from bench/results. Run `make docs` and commit the result.\n"
        )
    return 1 if stale else 0


def documents() -> list[Path]:
    """README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str) -> str:
    """`text` with its figures as they are in the results."""
    return BETWEEN.sub(lambda m: f"{m[1]}{FIGURES[m[2]]()}\n{m[3]}", text)


def _read(name: str) -> dict[str, Any] | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def scoring() -> str:
    """Time of one encrypted score."""
    found = _read("scoring")
    if found is None:
        return "Not measured yet: `make bench`."
    rows = [
        [
            f"{TITLES[r['federation']]}: {r['trees']} trees of depth {r['depth']}, {r['leaves']:,} leaves",
            f"{r['ciphertexts']:,}",
            f"{r['key_bits']:,}",
            f"{r['warm_seconds']:.2f} s",
            f"{r['cold_seconds']:.2f} s",
            f"{r['textbook_seconds']:.1f} s",
            f"{r['times_faster_warm']:.0f}×",
        ]
        for r in found["runs"]
    ]
    header = ["one sample", "ciphertexts", "key bits", "warm", "cold", "textbook `phe`", "warm against textbook"]
    note = (
        f"Medians of {found['repeats']} samples, from request to score, wire included. Warm: obfuscators made in advance; cold: nothing "
        f"but the key is there. Textbook: one `phe` ciphertext per leaf, masked sum, decryption; measured on {found['leaves_tried']} "
        "leaves and scaled to all."
    )
    return "\n\n".join([_table(header, rows), note, _measured_on(found["machine"])])


def training() -> str:
    """Quality and time beside XGBoost."""
    found = _read("training")
    if found is None or "skipped" in found:
        return "Not measured yet: `make bench` with the credit-card data."
    names = {"numbers": "coded columns as numbers", "codes": "coded columns as categories"}
    rows = [
        [
            names[kind],
            f"{r['auc']:.4f}",
            f"{r['xgboost_auc']:.4f}",
            f"{r['ks']:.4f}",
            f"{r['xgboost_ks']:.4f}",
            f"{r['seconds']:.2f} s",
            f"{r['xgboost_seconds']:.2f} s",
        ]
        for kind, r in ((k, found[k]) for k in names)
    ]
    header = ["credit card", "AUC", "XGBoost", "KS", "XGBoost", "seconds", "XGBoost"]
    tree = found["encrypted_tree"]
    same = "is the same tree, byte for byte" if tree["same_tree_as_plain"] else "DIFFERS from the plain one"
    note = (
        f"{found['trees']} trees of depth {found['depth']}, {found['bins']} bins; XGBoost's `hist` gets the same rows and bins and one "
        f"thread. Our seconds are of growth on plain numbers, messages included. On ciphertexts one tree over {tree['rows']:,} rows "
        f"takes {tree['seconds']:.1f} s at {tree['key_bits']:,} bits and {same}."
    )
    return "\n\n".join([_table(header, rows), note])


def score_bits() -> str:
    """Quality by number of score bits."""
    found = _read("score_bits")
    if found is None:
        return "Not measured yet: `make bench`."
    rows = [
        [TITLES[run["federation"]], str(r["bits"]), f"{r['auc']:.4f}", f"{r['ks']:.4f}", f"{r['alone']:.1%}"]
        for run in found["runs"]
        for r in run["rows"]
    ]
    return _table(["data", "bits", "AUC", "KS", "alone"], rows)


def _measured_on(machine: dict[str, Any]) -> str:
    return f"Measured on one machine: {machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, gmpy2 {machine['gmpy2']}."


FIGURES: dict[str, Callable[[], str]] = {"scoring": scoring, "training": training, "score_bits": score_bits}


if __name__ == "__main__":
    sys.exit(main())
