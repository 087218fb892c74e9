"""Writes docs/architecture.md from the code: rooms, layers, who imports whom, messages. `--check` fails when it is stale.

Reads sources with `ast` and needs the standard library alone, so that it runs where nothing is installed.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "architecture.md"
PACKAGES = ("app", "pages", "backend")
COMMON = "errors"
INTRO = """\
# Architecture

Written by `docs/architecture.py` from the code (`make docs`); `make check` fails when it is stale.

A model exists in two kinds of partial models. The Guest's partial model holds structure, owners, gains, covers, leaf weights and the
Guest's own thresholds; a Host's partial model holds structure and that Host's thresholds. No type of a party has room for both (an
import's `WholeModel` has, and is divided at once). Parties
reach each other by messages only, and every message passes one function that turns it into bytes and writes it into the
transcript (`backend/protocols/transport/channel.py`). The dashboard and the command line know one glassleaf, `backend/services`.
"""


def main() -> int:
    """Write the page, or compare it with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is stale")
    page = render(ROOT)
    if not parser.parse_args().check:
        TARGET.write_text(page, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == page:
        return 0
    sys.stderr.write("docs/architecture.md does not fit the code. Run `make docs` and commit the result.\n")
    return 1


def render(root: Path) -> str:
    """The whole page."""
    sources = {
        file.relative_to(root): ast.parse(file.read_text(encoding="utf-8"))
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
    }
    parts = [INTRO, _layers(root), _diagram(sources), _rooms(sources), _messages(sources)]
    return "\n".join(parts)


def _layers(root: Path) -> str:
    """The import contracts as the linter reads them."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    lines = [
        "## Layers",
        "",
        "From `pyproject.toml`, checked by import-linter. A layer imports from those below it only;",
    ]
    lines += ["layers that share a line with `|` do not know each other, those with `:` may.", "", "```text"]
    for contract in contracts:
        lines += contract["layers"] if contract["type"] == "layers" else []
    lines += ["```", ""]
    for contract in contracts:
        if contract["type"] == "independence":
            lines.append(f"- {contract['name']}: {_listed(contract['modules'])}.")
        elif contract["type"] == "forbidden":
            names = _listed(contract["forbidden_modules"])
            lines.append(f"- {contract['name']}: {_listed(contract['source_modules'])} never imports {names}.")
    return "\n".join([*lines, ""])


def _diagram(sources: dict[Path, ast.Module]) -> str:
    """Arrows between rooms."""
    arrows: set[tuple[str, str]] = set()
    for path, tree in sources.items():
        here = _room(path.with_suffix("").parts)
        for module in _imported(tree):
            there = _room(tuple(module.split(".")))
            if there not in (here, COMMON):
                arrows.add((here, there))
    rooms = sorted({room for arrow in arrows for room in arrow})
    lines = [
        "## Who imports whom",
        "",
        "Read from every import statement; `errors`, which all rooms may import, is left out.",
        "",
    ]
    lines += ["```mermaid", "flowchart TD"]
    lines += [f"    {_node(room)}[{room}]" for room in rooms]
    lines += [f"    {_node(a)} --> {_node(b)}" for a, b in sorted(arrows)]
    return "\n".join([*lines, "```", ""])


def _imported(tree: ast.Module) -> list[str]:
    """Modules of the project that a file imports, as often as it does."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = node.module.split(".")
            whole = [".".join([*inside, alias.name]) for alias in node.names] if len(inside) == 1 else [node.module]
            names += whole
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if name.split(".")[0] in PACKAGES]


def _room(parts: tuple[str, ...]) -> str:
    """The room a module lies in: a package of the backend or one of its single files, app, or pages."""
    if parts[0] != "backend" or len(parts) == 1 or parts[1] == "__init__":
        return parts[0]
    return parts[1] if parts[1] != "__main__" else "cli"


def _rooms(sources: dict[Path, ast.Module]) -> str:
    """Every module with the first sentence of its docstring, by folder."""
    lines = ["## Rooms", ""]
    folders = sorted({path.parent for path in sources})
    for folder in folders:
        own = {path: tree for path, tree in sources.items() if path.parent == folder}
        about = _first_line(own[folder / "__init__.py"]) if folder / "__init__.py" in own else ""
        files = [(path, tree) for path, tree in own.items() if path.name != "__init__.py"]
        if not files and not about:
            continue
        lines += [f"### {folder.as_posix()}/", ""] + ([about, ""] if about else [])
        if files:
            lines += ["| module | what it knows |", "|---|---|"]
            lines += [f"| [{path.name}](../{path.as_posix()}) | {_cell(_first_line(tree))} |" for path, tree in files]
            lines.append("")
    return "\n".join(lines)


def _messages(sources: dict[Path, ast.Module]) -> str:
    """Every message class with who sends it to whom and its fields."""
    rooms = [tree for path, tree in sources.items() if path.name == "messages.py"]
    lines = [
        "## Messages",
        "",
        "All that may leave a party; what each could reveal is in [the threat model](threat-model.md).",
        "",
    ]
    lines += ["| message | what it says | fields |", "|---|---|---|"]
    for node in (node for tree in rooms for node in tree.body):
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == "Message" for b in node.bases):
            plain = [s for s in node.body if isinstance(s, ast.AnnAssign) and not _is_class_variable(s)]
            fields = ", ".join(f"`{s.target.id}`" for s in plain if isinstance(s.target, ast.Name))
            lines.append(f"| {node.name} | {_cell(_first_line(node))} | {fields or '(none)'} |")
    return "\n".join([*lines, ""])


def _is_class_variable(statement: ast.AnnAssign) -> bool:
    return ast.unparse(statement.annotation).startswith("ClassVar")


def _first_line(node: ast.Module | ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").split("\n", maxsplit=1)[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _node(room: str) -> str:
    return f"room_{room}"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.exit(main())
