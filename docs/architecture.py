"""Writes the message table of docs/architecture.md from the code; `--check` holds the page and the code to what it says.

`--check` fails when the table is stale, when there are more than 27 packages, on an upward import, and on a circle of imports
between packages. Counted as packages are the folders with an `__init__.py` and the loose modules directly under backend/, and
app, bench, glassleaf and pages. An import inside a function counts; one under `if TYPE_CHECKING:` does not, as in the contract of
pyproject.toml, from which the layers are read. ``__init__`` and ``__main__``, which only hand on, are not counted. Needs the standard
library alone, so that it runs where nothing is installed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("app", "bench", "glassleaf", "pages")
MAX_PACKAGES = 27
BLOCK = re.compile(r"(<!-- messages -->\n).*?(<!-- end -->)", re.DOTALL)
Imports = dict[str, set[str]]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the table, or check page and code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where something does not hold")
    check = parser.parse_args(arguments).check
    target = root / "docs" / "architecture.md"
    page = target.read_text(encoding="utf-8")
    fresh = BLOCK.sub(lambda block: f"{block[1]}{messages(root)}\n{block[2]}", page)
    if not check:
        target.write_text(fresh, encoding="utf-8")
        return 0
    found = ["The message table is stale: run `make docs` and commit the result."] if fresh != page else []
    for problem in (found := [*found, *problems(root)]):
        sys.stderr.write(f"docs/architecture.md: {problem}\n")
    return 1 if found else 0


def problems(root: Path) -> list[str]:
    """What does not hold of the packages: their number, their directions, circles."""
    imports = package_imports(root)
    found = []
    if len(imports) > MAX_PACKAGES:
        found.append(
            f"{len(imports)} packages and loose modules, at most {MAX_PACKAGES} are wanted: {', '.join(imports)}."
        )
    found += [f"{here} imports {there}, which is not below it." for here, there in upward(imports, layers(root))]
    circle = first_circle(imports)
    return [*found, f"A circle of imports: {' → '.join(circle)}."] if circle else found


def package_imports(root: Path) -> Imports:
    """Package → packages that it imports."""
    files = {file: package_of(file.relative_to(root).with_suffix("").parts) for file in _sources(root)}
    imports: Imports = {name: set() for name in sorted({name for name in files.values() if name})}
    for file, here in files.items():
        if here:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            imports[here] |= {package_of(tuple(module.split("."))) for module in _imported(tree)} & set(imports) - {
                here
            }
    return imports


def _sources(root: Path) -> list[Path]:
    return [file for top in ("backend", *BESIDE) for file in sorted((root / top).rglob("*.py"))]


def package_of(module: tuple[str, ...]) -> str:
    """`backend.trees.shap` belongs to `backend.trees`; `backend` and its `__main__`, which only hand on, to none."""
    if module[0] != "backend":
        return module[0] if module[0] in BESIDE else ""
    return ".".join(module[:2]) if len(module) > 1 and module[1] not in ("__init__", "__main__") else ""


def _imported(node: ast.AST) -> Iterator[str]:
    """Modules that a file imports when it runs."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        nodes: list[ast.AST] = [*node.orelse]
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
        return
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    else:
        nodes = [*ast.iter_child_nodes(node)]
    for child in nodes:
        yield from _imported(child)


def layers(root: Path) -> list[tuple[set[str], bool]]:
    """Layers of pyproject.toml from the top: their packages, and whether these may import each other."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = [c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    dashboard = [line for c in contracts if "containers" not in c for line in c["layers"] if line != "backend"]
    inside = [line for c in contracts if "containers" in c for line in c["layers"]]
    named = [(line, "") for line in dashboard] + [(line, "backend.") for line in inside]
    return [({prefix + name.strip() for name in re.split("[|:]", line)}, "|" not in line) for line, prefix in named]


def upward(imports: Imports, floors: list[tuple[set[str], bool]]) -> list[tuple[str, str]]:
    """Imports that do not run downwards: (who, whom)."""
    floor_of = {name: floor for floor, (names, _) in enumerate(floors) for name in names}
    pairs = [
        (here, there) for here, all_ in imports.items() for there in sorted(all_) if {here, there} <= set(floor_of)
    ]

    def allowed(here: str, there: str) -> bool:
        below = floor_of[there] - floor_of[here]
        return below > 0 or (below == 0 and floors[floor_of[here]][1])

    return [pair for pair in pairs if not allowed(*pair)]


def first_circle(imports: Imports) -> list[str]:
    """A circle with its first package repeated at the end; empty if there is none."""
    done: set[str] = set()

    def walk(package: str, path: list[str]) -> list[str]:
        if package in path:
            return [*path[path.index(package) :], package]
        if package in done:
            return []
        circles = (walk(there, [*path, package]) for there in sorted(imports[package]))
        circle = next((circle for circle in circles if circle), [])
        done.add(package)
        return circle

    return next((circle for package in imports if (circle := walk(package, []))), [])


def messages(root: Path) -> str:
    """Every message class by folder: what it holds, who can read it, and its fields."""
    texts = tomllib.loads((root / "assets" / "texts" / "en.toml").read_text(encoding="utf-8"))["message"]
    lines = ["| message | holds | readable by | fields |", "|---|---|---|---|"]
    for file in sorted((root / "backend").rglob("messages.py")):
        kinds = {"Message"}
        fields_of: dict[str, list[str]] = {}  # every class of the file → its fields, inherited ones first
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef):
                continue
            bases = [ast.unparse(base) for base in node.bases]
            inherited = [field for base in bases for field in fields_of.get(base, [])]
            own = [f"`{ast.unparse(line.target)}`" for line in node.body if isinstance(line, ast.AnnAssign)]
            fields_of[node.name] = inherited + own
            if kinds & set(bases):
                kinds.add(node.name)
                kind = texts[node.name]
                fields = ", ".join(fields_of[node.name]) or "(none)"
                lines.append(f"| {node.name} | {kind['holds']} | {kind['readable']} | {fields} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
