"""Homes that are made once or copied."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp


def made_once(base: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder made once a run, beside `base`, a worker's own temporary folder: workers share the folder above it."""
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    if not folder.exists():
        draft = Path(mkdtemp(dir=base)) / name
        make(draft)
        with suppress(OSError):  # another worker was first
            draft.rename(folder)
    return folder


def copied_home(home: Path, into: Path) -> Path:
    """Copy a home, so that a test may change what is in it."""
    shutil.copytree(home, into)
    return into
