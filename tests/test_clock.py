"""No test file reads a clock while it is imported: its tests run minutes later, and perhaps on the next day."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
CLOCKS = {
    *(f"{base}.{read}" for base in ("datetime", "datetime.datetime") for read in ("now", "today", "utcnow")),
    *(f"{base}.today" for base in ("date", "datetime.date")),
    *(f"time.{read}{unit}" for read in ("time", "monotonic", "perf_counter") for unit in ("", "_ns")),
}


def calls(node: ast.AST) -> Iterator[str]:
    return (ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call))


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node but the bodies of functions and what only a command runs; decorators and defaults are run with the file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for early in (*child.decorator_list, child.args):
                yield early
                yield from run_at_import(early)
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "__name__ == '__main__'":
            continue
        elif isinstance(child, ast.Lambda):
            yield from run_at_import(child.args)
        else:
            yield child
            yield from run_at_import(child)


def clocks_read_at_import(source: str) -> list[int]:
    """Lines that read a clock as the file is imported, or call a function of the file that does."""
    if not any(f"{clock}(" in source for clock in CLOCKS):
        return []
    tree = ast.parse(source)
    called = {one.name: set(calls(one)) for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    clocks, known = set(CLOCKS), 0
    while known != len(clocks):
        known = len(clocks)
        clocks |= {name for name, within in called.items() if clocks & within}
    early = (one for one in run_at_import(tree) if isinstance(one, ast.Call))
    return sorted({one.lineno for one in early if ast.unparse(one.func) in clocks})


def test_no_test_file_reads_a_clock_while_it_is_imported():
    read = {file.relative_to(TESTS).as_posix(): clocks_read_at_import(file.read_text()) for file in TESTS.rglob("*.py")}
    assert {file: lines for file, lines in read.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "TODAY = date.today()",
        "def old(now=time.time()): ...",
        "class Old:\n    made: float = field(default=datetime.now(UTC))",
        "@pytest.mark.parametrize('day', [date.today()])\ndef test(day): ...",
        "def now(): return time.time()\nLATER = now() + 1",
        "later = lambda now=time.monotonic(): now",
    ],
)
def test_what_is_read_at_import_is_found(line):
    assert clocks_read_at_import(line) != []


@pytest.mark.parametrize(
    "line",
    [
        "def now(): return time.time()",
        "later = lambda: date.today()",
        "class New:\n    made: float = field(default_factory=time.time)\n    def age(self): return time.time()",
    ],
)
def test_what_is_read_in_a_test_is_left_alone(line):
    assert clocks_read_at_import(line) == []
