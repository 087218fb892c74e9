"""Break places of the backend one at a time, and see whether the tests of the same folder notice.

    python tests/break_places.py [--places 40] [--seed 1]

A place is a comparison, a condition, a sum, a refusal or a returned flag, drawn by the seed. It is broken in a copy of the project in a
temporary folder. The tests of the module's own folder then run until one fails: first those that name the module, then the others. A test
that fails must pass once the place is mended again, or nothing was learned of it. What survives is printed as a line to look at: a test is
missing, or the place makes no difference. Each place takes up to a few minutes.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TIME = 900  # seconds a folder's tests may take; a loop that does not end counts as noticed
OPPOSITE = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True)
class Place:
    """One place: the lines that it takes, and what they become."""

    file: Path
    line: int
    source: str
    broken: str


def places(file: Path) -> Iterator[Place]:
    """Yield every place of a file that can be broken."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        broken = broken_source(node, text)
        if broken is not None and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            encoded = line.encode()
            changed = encoded[: node.col_offset] + broken.encode() + encoded[node.end_col_offset :]
            yield Place(file, node.lineno, line, changed.decode())


def broken_source(node: ast.AST, text: str) -> str | None:
    """Return what a node becomes; None if it is no place to break."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left = ast.get_source_segment(text, node.left)
        right = ast.get_source_segment(text, node.comparators[0])
        return f"{left} {OPPOSITE[type(node.ops[0])]} {right}"
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        word = "or" if isinstance(node.op, ast.And) else "and"
        first, second = (ast.get_source_segment(text, value) for value in node.values)
        return f"({first}) {word} ({second})"
    if isinstance(node, ast.Raise) and node.exc is not None:
        return "pass"
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        return f"return {not node.value.value}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        left = ast.get_source_segment(text, node.left)
        right = ast.get_source_segment(text, node.right)
        if any(mark in f"{left}{right}" for mark in ('"', "[", "bytes")):
            return None  # texts and lists are joined, not added
        return f"{left} {sign} ({right})"
    return None


def drawn(count: int, seed: int) -> list[Place]:
    """Draw places, at most one a file, so that large files do not take them all."""
    draw = random.Random(seed)
    files = [file.relative_to(ROOT) for file in sorted((ROOT / "backend").rglob("*.py"))]
    draw.shuffle(files)
    found = []
    for file in files:
        candidates = list(places(file))
        if candidates and tests_of(file) is not None:
            found.append(draw.choice(candidates))
        if len(found) == count:
            break
    return found


def tests_of(module: Path) -> Path | None:
    """Return the folder of tests that belongs to a module: the deepest one of its name; None if it has none."""
    folder = module.relative_to("backend").parent
    while folder != Path():
        if (ROOT / "tests" / folder).is_dir():
            return Path("tests") / folder
        folder = folder.parent
    return None


def outcome(copy: Path, place: Place) -> str:
    """Break a place in the copy and run the tests of its folder; return ``noticed``, ``SURVIVED`` or ``UNKNOWN``."""
    file = copy / place.file
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[place.line - 1] = place.broken + "\n"
    folder = tests_of(place.file)
    assert folder is not None
    named = []
    others = []
    for test in sorted((copy / folder).rglob("test_*.py")):
        if place.file.stem in test.read_text(encoding="utf-8"):
            named.append(str(test))
        else:
            others.append(str(test))
    for tests in (named, others):
        file.write_text("".join(lines), encoding="utf-8")
        failed = first_failure(copy, tests) if tests else None
        file.write_text(text, encoding="utf-8")
        if failed is not None:
            return "UNKNOWN " if first_failure(copy, failed) is not None else "noticed "
    return "SURVIVED"


def first_failure(copy: Path, tests: list[str]) -> list[str] | None:
    """Return the first of these tests that fails in the copy, or all of them if they cannot be run; None if every one passes."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "-p", "no:xdist", "-m", "not slow", *tests]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIME, check=False
        )
    except subprocess.TimeoutExpired:
        return tests
    if done.returncode in (0, 5):  # all passed, or all are slow ones
        return None
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED tests", "ERROR tests")):
            return [line.split(" - ")[0].split(" ", 1)[1]]
    return tests


def main() -> None:
    """Print each place with what became of it, and how many were noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--places", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    outcomes = Counter[str]()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        for place in drawn(given.places, given.seed):
            word = outcome(copy, place)
            outcomes[word] += 1
            print(f"{word} {place.file}:{place.line}: {place.source.strip()}  ->  {place.broken.strip()}", flush=True)
    print(f"{outcomes['noticed ']} of {given.places} were noticed by the tests of their own folder.")
    if outcomes["UNKNOWN "]:
        print(f"Of {outcomes['UNKNOWN ']} nothing is known: their tests fail without a broken place, too.")


if __name__ == "__main__":
    main()
