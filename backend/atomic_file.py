"""A file that is written whole or not at all, also where two processes write it at once. Knows nothing of what is in it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, *parts: bytes) -> None:
    """Write `parts`, end to end, readable by their owner only; a reader finds the old file or the new one.

    The folder is made where it is absent. Raises OSError where nothing can be written; then nothing has changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)  # mode 0600
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())  # so that a power cut leaves the old file or the new one, too
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
