"""A home in one file and back: its databases as they were at one moment, its files, and its keys only under a passphrase.

The file is a ZIP: `manifest.json` names every file with its SHA-256; `keys` holds the keys (:mod:`backend.store.key_backup`), bound to
the manifest.
Knows no table and no key's meaning. Only SQLite files are in a home; a database server has backups of its own.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
import tempfile
import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from backend.errors import ParameterError, SecurityError, StoreError
from backend.ops.atomic_file import held_alone, sync_folder, write_whole
from backend.store.database import BUSY_SECONDS
from backend.store.key_backup import PASSPHRASE_MIN, seal, unseal

FORMAT = "glassleaf home 1"
MANIFEST = "manifest.json"
KEYS = "keys"
SQLITE = b"SQLite format 3\0"  # sqlite.org/fileformat2.html, §1.3.1
PRIMARY_CODE = 0xFF  # of an extended result code, sqlite.org/rescode.html
KEY = re.compile(r".*\.(key|retired|pem)")
MADE_AGAIN = re.compile(
    r".*(\.tables|\.new|\.lock|\.asked|-journal|-wal|-shm)"
)  # of keys, or of work that was under way
MESSAGE = ".sent"  # :mod:`backend.store.journal`
# errors of a damaged archive; also an OSError for a place before its beginning
DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
MAX_MANIFEST = 1 << 26  # bytes
COPY_BYTES = 1 << 20


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """What a backup holds.

    Attributes
    ----------
    format, created : str
        `created` is UTC, ISO 8601.
    files : dict of str to _File
        Path below the home → size and hash, databases included.
    keys : list of str
        Paths of the keys that the home had, whether or not they are in the file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str
    created: str
    files: dict[str, _File]
    keys: list[str]
    with_keys: bool


@dataclass(frozen=True)
class Contents:
    """Contents of a backup: numbers of files (with databases), of keys in it, of keys left out, and the hash of its manifest."""

    files: int
    keys: int
    keys_left: int
    sha256: str


def write_backup(home: Path, out: Path, passphrase: str | None) -> Contents:
    """Copy a home, also while it is in use: its databases all as they are at one moment.

    Parameters
    ----------
    passphrase : str or None
        Passphrase for the keys; None = they stay out.

    Raises
    ------
    ParameterError
        `out` exists or is in the home, or the passphrase is too short.
    StoreError
        A database is busy or damaged, or a link leads out of the home.
    """
    if out.exists():
        raise ParameterError("backup_exists", file=str(out))
    if out.resolve().is_relative_to(home.resolve()):
        raise ParameterError("backup_in_home", file=str(out))
    if passphrase is not None and len(passphrase) < PASSPHRASE_MIN:
        raise ParameterError("passphrase_too_short", found=len(passphrase), least=PASSPHRASE_MIN)
    entries = list(_found(home))
    names = [name for name, _ in entries if KEY.fullmatch(name)]
    draft = out.with_name(f"{out.name}.new")
    try:
        draft.unlink(missing_ok=True)  # of a backup that was stopped
        with (
            os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file,
            tempfile.TemporaryDirectory(prefix="glassleaf") as folder,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ExitStack() as stack,
        ):
            for _, path in entries:
                if path.suffix != MESSAGE and _is_database(path):
                    stack.enter_context(_unchanging(path))
            files = dict[str, _File]()
            for name, path in entries:
                try:
                    if name not in names:
                        files[name] = _put(archive, name, path, Path(folder))
                except FileNotFoundError:
                    if path.suffix != MESSAGE:  # else its answer had come before the databases were held
                        raise
            created = datetime.now(UTC).isoformat(timespec="seconds")
            manifest = Manifest(
                format=FORMAT, created=created, files=files, keys=names, with_keys=passphrase is not None
            )
            text = manifest.model_dump_json().encode()
            digest = sha256(text).hexdigest()
            archive.writestr(MANIFEST, text)
            if passphrase is not None:
                key_texts = {name: b64encode((home / name).read_bytes()).decode() for name in names}
                archive.writestr(KEYS, seal(json.dumps(key_texts).encode(), passphrase, digest))
            archive.close()
            file.flush()
            os.fsync(file.fileno())
        draft.rename(out)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    inside = len(names) if passphrase is not None else 0
    return Contents(len(files), inside, len(names) - inside, digest)


def holds_keys(file: Path) -> bool:
    """Return whether a backup says that it holds keys; raises as :func:`read_backup`."""
    with _opened(file) as archive:
        return _manifest(archive)[0].with_keys


def read_backup(
    file: Path, home: Path, passphrase: str | None, check: Callable[[Path], None] = lambda draft: None
) -> Contents:
    """Bring a home back, whole or not at all: files are written next to it until every hash was checked.

    Parameters
    ----------
    check : callable
        Called with the folder of the files before they become the home; if it raises, the home stays as it was.

    Raises
    ------
    ParameterError
        There is something in the home, the file is no backup, or it holds keys and there is no passphrase.
    SecurityError
        The passphrase is another one, or something in the file is not what the manifest says.
    """
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise ParameterError("home_not_empty", folder=str(home))
    home = home.resolve()
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = home.with_name(f".{home.name}.restoring")
    with held_alone(home.with_name(f".{home.name}.restoring.lock")):
        shutil.rmtree(draft, ignore_errors=True)  # of a restoring that was stopped
        try:
            with _opened(file) as archive:
                manifest, digest = _manifest(archive)
                if manifest.with_keys and passphrase is None:
                    raise ParameterError("backup_needs_passphrase")
                draft.mkdir(mode=0o700)
                for name, about in manifest.files.items():
                    _take(archive, name, about, draft)
                if manifest.with_keys:
                    keys = _keys(archive, manifest, digest, passphrase)
                else:
                    keys = {}
            for name, blob in keys.items():
                write_whole(draft / name, blob)
            check(draft)
            _sync(draft)
            if home.exists():
                home.rmdir()
            draft.rename(home)
            _sync(home.parent, deep=False)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return Contents(len(manifest.files), len(keys), len(manifest.keys) - len(keys), digest)


def _found(home: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of every file to keep."""
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_symlink():
            raise StoreError("backup_of_link", file=str(path))
        if path.is_file() and not MADE_AGAIN.fullmatch(name):
            yield name, path


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


@contextmanager
def _unchanging(path: Path) -> Iterator[None]:
    """Context in which no process can write to a database; nothing is done for a database that cannot be written."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & PRIMARY_CODE != sqlite3.SQLITE_READONLY:
                    raise
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # from here on as at this moment
            yield
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise StoreError("database_busy", file=str(path), reason=str(error)) from error


def _put(archive: zipfile.ZipFile, name: str, path: Path, folder: Path) -> _File:
    if _is_database(path):
        copy = folder / "copy.db"
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            if target.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise StoreError("database_damaged", file=str(path))
        path = copy
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        size = file.tell()
    archive.write(path, name)
    return _File(bytes=size, sha256=digest)


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except DAMAGED as error:
        raise SecurityError("backup_incomplete", file=str(file), reason=str(error)) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a full disk, say
            raise
        raise SecurityError("backup_incomplete", file=str(file), reason=type(error).__name__) from error


def _manifest(archive: zipfile.ZipFile) -> tuple[Manifest, str]:
    """Return the manifest and its hash, if the file holds what the manifest lists and no more."""
    names = archive.namelist()
    if MANIFEST not in names or archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
        raise ParameterError("not_a_backup")
    text = archive.read(MANIFEST)
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError:
        raise ParameterError("not_a_backup") from None
    if manifest.format != FORMAT:
        raise ParameterError("backup_of_other_format", got=manifest.format[:40], expected=FORMAT)
    expected_names = [*manifest.files, MANIFEST, *([KEYS] if manifest.with_keys else [])]
    if sorted(names) != sorted(expected_names):
        raise SecurityError("backup_files_differ")
    inside = [*manifest.files, *manifest.keys]
    if not all(map(_is_inside, inside)) or len({name.casefold() for name in inside}) != len(inside):
        raise SecurityError("backup_names_unsafe")
    return manifest, sha256(text).hexdigest()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        bool(name)
        and not re.search(r"[\\:\x00-\x1f]", name)
        and not path.is_absolute()
        and ".." not in path.parts
        and path.as_posix() == name
        and not MADE_AGAIN.fullmatch(name)
    )


def _take(archive: zipfile.ZipFile, name: str, about: _File, folder: Path) -> None:
    """Write one file, unless it is another than the manifest says; no more of it than that is read."""
    path = folder / name
    digest = sha256()
    remaining = about.bytes
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (
        archive.open(name) as source,
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
    ):
        while remaining > 0 and (part := source.read(min(COPY_BYTES, remaining))):
            digest.update(part)
            file.write(part)
            remaining -= len(part)
        if remaining or source.read(1) or digest.hexdigest() != about.sha256:
            raise SecurityError("backup_file_changed", file=name)


def _keys(archive: zipfile.ZipFile, manifest: Manifest, digest: str, passphrase: str | None) -> dict[str, bytes]:
    about, body = unseal(archive.read(KEYS), passphrase or "")
    keys = {name: b64decode(text) for name, text in json.loads(body).items()}
    if about != digest or sorted(keys) != sorted(manifest.keys):
        raise SecurityError("backup_keys_of_another")
    return keys


def _sync(folder: Path, *, deep: bool = True) -> None:
    """Have the disk take what was written; elsewhere than on POSIX a folder cannot be asked for that."""
    for path in [path for path in folder.rglob("*") if path.is_file()] if deep else []:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)
