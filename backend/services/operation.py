"""Operation of a whole home: whether it can do work, its backup, and bringing it back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from backend.errors import GlassleafError, ParameterError, StoreError
from backend.ops.open_files import nearly_all_open
from backend.remark import Remark
from backend.services.audit import Auditor
from backend.services.workspace import Workspace

if TYPE_CHECKING:
    from backend.data.federation import Federation
    from backend.store.home_backup import Contents

ROOM = 1 << 26  # bytes of disk without which a home is not ready


class Operation:
    """One home, as its operator has it."""

    def __init__(self, workspace: Workspace, auditor: Auditor) -> None:
        self._workspace = workspace
        self._auditor = auditor

    @property
    def home(self) -> Path:
        """Return the folder that everything is kept in."""
        return self._workspace.home

    def not_ready(self) -> tuple[Remark, ...]:
        """Return why the home can do no work now: codes with counts; empty if it can."""
        problems = []
        if shutil.disk_usage(self._workspace.home).free < ROOM:
            problems.append(Remark("disk_full"))
        if nearly_all_open():
            problems.append(Remark("too_many_open"))
        if not self.is_writable():
            problems.append(Remark("home_not_writable"))
        try:
            for federation in self._workspace.federations():
                self._workspace.audit_log(federation.name).head()
            broken = len(self._workspace.broken())
        except StoreError:
            return (*problems, Remark("store_unreadable"))
        if broken:
            problems.append(Remark("federations_unusable", {"count": broken}))
        return tuple(problems)

    def broken(self) -> tuple[Remark, ...]:
        """Return of each federation that cannot be used why."""
        return tuple(error.remarks[-1] for error in self._workspace.broken().values())

    def links_down(self) -> tuple[Remark, ...]:
        """Return of each Host at its own company whose link is not there why; what has no links yet opens them."""
        remarks: list[Remark] = []
        for federation in self._workspace.federations():
            if federation.link is None:
                continue
            try:
                links = self._workspace.runtime(federation.name).links()
            except GlassleafError as error:
                remarks.append(error.remarks[0])
            else:
                remarks += [link.remark for link in links.values() if not link.up]
        return tuple(remarks)

    def outside(self) -> tuple[tuple[str, Path], ...]:
        """Name and folder of every federation whose files lie elsewhere than in the home, so that a backup has them not."""
        home = self._workspace.home.resolve()
        folders = []
        for federation in self._workspace.federations():
            folders.append((federation.name, federation.folder.resolve()))
        return tuple((name, folder) for name, folder in folders if not folder.is_relative_to(home))

    def backup(self, out: Path, passphrase: str | None) -> Contents:
        """Write the home into one file, and a line about it into the log of every federation; see :func:`write_backup`.

        A home that cannot be written gets no line: see :meth:`is_writable`.

        Raises
        ------
        ParameterError
            The parties' databases are on a server.
        """
        from backend.store.home_backup import write_backup  # noqa: PLC0415 (needed here alone)

        self._auditor.require("backup")
        _refuse_server()
        federations = self._workspace.federations()  # opened, so brought to today's schema
        contents = write_backup(self._workspace.home, out, passphrase)
        if self.is_writable():
            self._note(federations, "backup", contents)
        return contents

    def is_writable(self) -> bool:
        """Return whether the home's files can be changed."""
        return os.access(self._workspace.home, os.W_OK)

    def note_restored(self, contents: Contents) -> None:
        """A line about it into the log of every federation of a home that was brought back."""
        self._note(self._workspace.federations(), "restore", contents)

    def _note(self, federations: list[Federation], action: str, contents: Contents) -> None:
        for federation in federations:
            body = {"manifest_sha256": contents.sha256, "files": contents.files, "keys": contents.keys}
            self._auditor.note(federation.name, action, body, tell=False)


def restore(file: Path, home: Path, passphrase: str | None) -> Contents:
    """Bring a home back from a backup; see :func:`read_backup`.

    Raises
    ------
    StoreError
        A database in it cannot be opened.
    """
    from backend.store.home_backup import read_backup  # noqa: PLC0415 (needed here alone)

    _refuse_server()
    return read_backup(file, home, passphrase, _check_databases)


def _check_databases(folder: Path) -> None:
    """Open every database below a folder once."""
    from backend.store.database import FILE, Database  # noqa: PLC0415 (the services are imported without a database)

    for path in sorted(folder.rglob(FILE)):
        try:
            Database(path.parent).close()
        except StoreError as error:
            raise StoreError("restored_database_unusable", file=str(path.relative_to(folder))) from error


def is_sealed(file: Path) -> bool:
    """Return whether a backup holds keys, so that its passphrase is needed."""
    from backend.store.home_backup import holds_keys  # noqa: PLC0415 (needed here alone)

    return holds_keys(file)


def _refuse_server() -> None:
    from backend.store.database import VARIABLE  # noqa: PLC0415 (the services are imported without a database)

    if os.environ.get(VARIABLE, "").strip():
        raise ParameterError("parties_on_server", variable=VARIABLE)
