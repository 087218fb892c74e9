"""MB of what `pip install .` and `pip install .[dashboard]` bring: the files of every package that they need, as installed here.

Bytecode is counted, and so are whole blocks of the disk, as `du` does. Packages that are here for tests and checks alone are not counted.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.setting import run
from bench.tables import weight as describe

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
BLOCK = 512  # bytes in which a file's room is counted (stat)
EXTRAS = {"pip install .": (), "pip install .[dashboard]": ("dashboard",)}


def measure() -> dict[str, Any]:
    """Bytes of every package by installation."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    found = []
    for command, extras in EXTRAS.items():
        asked = list(project["dependencies"])
        for extra in extras:
            asked += project["optional-dependencies"][extra]
        packages = {name: size(distribution(name)) for name in needed(asked)}
        found.append({"command": command, "bytes": sum(packages.values()), "packages": packages})
    return {"installations": found}


def needed(asked: list[str]) -> list[str]:
    """Names of the packages that these requirements bring on this machine, directly or not."""
    known = set[tuple[str, frozenset[str]]]()
    waiting = [Requirement(line) for line in asked]
    while waiting:
        requirement = waiting.pop()
        extras = frozenset(requirement.extras)
        if (requirement.name, extras) in known or not applies(requirement, frozenset()):
            continue
        known.add((requirement.name, extras))
        for line in distribution(requirement.name).requires or ():
            other = Requirement(line)
            if applies(other, extras):
                other.marker = None
                waiting.append(other)
    return sorted({canonicalize_name(name) for name, _ in known})


def applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """Whether a requirement holds on this machine, of a package that was asked for with these extras."""
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras})


def size(package: Distribution) -> int:
    """Bytes that its files take on the disk."""
    files = [Path(str(package.locate_file(file))) for file in package.files or ()]
    return sum(file.stat().st_blocks * BLOCK for file in files if file.exists())


if __name__ == "__main__":
    run(__doc__, measure, describe)
