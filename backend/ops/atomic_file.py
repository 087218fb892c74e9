"""A file that is written whole or not at all, also if two processes write it at once. Knows nothing of what is in it."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from backend.errors import StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # of a file system without hard links


@contextmanager
def drafted(path: Path, *parts: bytes, lasting: bool = True) -> Iterator[Path]:
    """A file beside `path` that holds `parts`, end to end, readable by its owner only; gone afterwards under the name that it has now.

    `lasting`: whoever finds it under another name after a power cut finds it whole.

    The folder is made where it is absent. Raises OSError if nothing can be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)  # mode 0600
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, *parts: bytes, lasting: bool = True) -> None:
    """Write `parts`, end to end, readable by their owner only; a reader finds the old file or the new one.

    Not `lasting`, it waits for no disk, and is for readers of now: after a power cut the file may be empty.

    The folder is made where it is absent. Raises OSError if nothing can be written; then nothing has changed.
    """
    with drafted(path, *parts, lasting=lasting) as draft:
        draft.replace(path)


def write_first(path: Path, data: bytes) -> bool:
    """Write a file that is not there, readable by its owner only and whole for whoever sees it; False if it is there.

    It is there after a power cut, too. The folder is made where it is absent. Raises OSError if nothing can be written.
    """
    with drafted(path, data) as draft:
        try:
            _name(draft, path)
        except FileExistsError:
            return False
    sync_folder(path.parent)
    return True


def _name(draft: Path, path: Path) -> None:
    """Give a file its name unless another has it; if there are no hard links, two at the same moment may both be the first."""
    try:
        path.hardlink_to(draft)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(path) from error
        draft.replace(path)


def sync_folder(folder: Path) -> None:
    """Have the disk take which files there are; elsewhere than on POSIX a folder cannot be asked for that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def held_alone(path: Path) -> Iterator[None]:
    """Within, no other process holds the same lock file; the system lets go of it where this one is killed.

    Raises
    ------
    StoreError
        Another process holds it.
    """
    with _locked(path):
        try:
            yield
        finally:
            if sys.platform != "win32":
                path.unlink(missing_ok=True)  # while it is held: whoever opened it before is refused
    if sys.platform == "win32":  # if no open file can be removed
        with suppress(OSError):
            path.unlink()


def _locked(path: Path) -> BinaryIO:
    """The lock file, open and locked, and still the one of that name; raises StoreError if another process holds it."""
    while True:
        file = path.open("ab")
        try:
            if sys.platform == "win32":
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                return file
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreError("file_held_elsewhere", file=path.name) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # whoever held it has removed it since it was opened: what is locked has no name, and holds nobody off
