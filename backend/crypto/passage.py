"""A task to a worker process of this machine and its result back, by way of a file in memory. Knows no key; what passes stays in its party.

A long table passes a quarter of a gigabyte for 8,192 people, which costs more through pipes. The file has no name in any folder and belongs
to the process that asks: it is gone when that closes it or dies, whatever the worker does then. A worker opens it by process and number and
believes it to be its own by the name that it was made under, so that one that comes too late opens nothing else
(docs/decisions/scale.md).
"""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

R = TypeVar("R")
OPEN_FILES = Path("/proc/self/fd")


class NotPassedError(Exception):
    """A worker could not open the file of its task."""


def available() -> bool:
    """Whether this system has files in memory that another process of its own can open: Linux."""
    return hasattr(os, "memfd_create") and OPEN_FILES.exists()


class Passage:
    """One task on its way to a worker, and its result on the way back.

    Parameters
    ----------
    function : callable
        Of a module, that the worker can import.
    task : tuple
        Its arguments.
    """

    def __init__(self, function: Callable[..., R], task: tuple[Any, ...]) -> None:
        self._name = f"glassleaf-{secrets.token_hex(16)}"
        self._file: IO[bytes] = os.fdopen(os.memfd_create(self._name, os.MFD_CLOEXEC), "w+b")
        self._put((function, task))

    @property
    def ticket(self) -> tuple[int, int, str]:
        """What :func:`run` is called with in the worker: process, number and name of the file."""
        return os.getpid(), self._file.fileno(), self._name

    def _put(self, content: Any) -> None:
        try:
            pickle.dump(content, self._file, protocol=pickle.HIGHEST_PROTOCOL)
            self._file.flush()
        except BaseException:
            self.close()
            raise

    def held(self) -> Any:
        """The result, once the worker is through; before, function and task."""
        self._file.seek(0)
        return pickle.load(self._file)  # noqa: S301 - written by this process or its own worker

    def close(self) -> None:
        """Give the memory back."""
        self._file.close()


def run(process: int, number: int, name: str) -> None:
    """In the worker: read the task of a passage, and put its result in the place of the task.

    Raises
    ------
    NotPassedError
        The file is closed, or may not be opened here.
    """
    file = _opened(Path(f"/proc/{process}/fd/{number}"), f"/memfd:{name} (deleted)")
    with file:
        function, task = pickle.load(file)  # noqa: S301 - written by the process that this one works for
        result = function(*task)
        file.seek(0)
        file.truncate()
        pickle.dump(result, file, protocol=pickle.HIGHEST_PROTOCOL)


def _opened(path: Path, made_as: str) -> IO[bytes]:
    """The file if it is the one that was meant, and stays it while it is opened."""
    try:
        if str(path.readlink()) == made_as:
            file = path.open("r+b")
            if str((OPEN_FILES / str(file.fileno())).readlink()) == made_as:
                return file
            file.close()
    except OSError as error:
        raise NotPassedError(str(error)) from None
    raise NotPassedError("the file is another one")
