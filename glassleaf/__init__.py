"""Glassleaf as it is installed: one name in an environment, and the way to the packages that stand below it.

A wheel installs this package alone, with ``backend``, ``app``, ``pages`` and ``assets`` inside it. They are imported by
the same short names as in a clone, which are too common to be claimed in everybody's site-packages: only a process that
starts Glassleaf, or imports this package, has their folder on its path.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
ROOT = _HERE if (_HERE / "backend").is_dir() else _HERE.parent  # installed, or in a clone


def main() -> None:
    """Run the command line: ``glassleaf`` and ``python -m glassleaf``."""
    # At the front: a folder called backend/ or app/ elsewhere on the path is another project's.
    sys.path.insert(0, str(ROOT))
    from backend.cli import main as run  # noqa: PLC0415 (found on the path that was just set)

    run()


def __getattr__(name: str) -> Any:
    """What a library user imports from the backend: ``from glassleaf import Glassleaf``.

    Raises
    ------
    ImportError
        The process has imported another project's package under the name ``backend``.
    """
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    # At the end: a program that uses Glassleaf as a library may have an app/ or pages/ of its own.
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    import backend  # noqa: PLC0415 (found on the path that was just set)

    if Path(backend.__file__ or "").resolve().parent != ROOT / "backend":
        raise ImportError(
            f"glassleaf found another package called backend in {backend.__file__}, expected the one in {ROOT}. "
            "Start Python where that package is not on the path."
        )
    return getattr(backend, name)
