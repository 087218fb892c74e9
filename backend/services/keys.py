"""The Guest's keys: listed by fingerprint, backed up under a passphrase, brought back, rotated. Never shows a number of a key."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.crypto.rlwe.scheme import RlweSecretKey
from backend.crypto.signing import SigningKey
from backend.errors import ParameterError, SecurityError
from backend.ops.atomic_file import write_whole
from backend.services.audit import Note, recorded
from backend.services.roles import OPERATOR, TITLES
from backend.store.key_backup import MAX_BYTES, seal, unseal
from backend.store.key_file import RETIRED, fingerprint, kept_key, read_key, retired

if TYPE_CHECKING:
    from backend.services.audit import Auditor
    from backend.services.workspace import Workspace

FLOOR = 2  # bits: how long a key must be is said where it is used
SIGNING = "signing.key"
_FILE = re.compile(r"(signing|paillier-\d{1,5}|rlwe-[\w-]{1,40})(\.[0-9a-f]{32}\.retired|\.key)", re.ASCII)
_BODY = TypeAdapter(dict[str, dict[str, str]])


@dataclass(frozen=True)
class Key:
    """The public facts about a key of the Guest.

    Attributes
    ----------
    file : str
        In the Guest's folder.
    kind : {"paillier", "rlwe", "ed25519"}
    bits : int
        Of Paillier's modulus or Ed25519's field; RLWE: degree of the ring.
    made : str
        UTC, ISO 8601, as the file system has it.
    fingerprint : str
        First half of the SHA-256 of the public key, in hexadecimal.
    retired : bool
        Whether it was rotated, and only opens what was encrypted before.
    """

    file: str
    kind: str
    bits: int
    made: str
    fingerprint: str
    retired: bool


class Keys:
    """The key files of one Guest."""

    def __init__(self, workspace: Workspace, auditor: Auditor) -> None:
        self._workspace = workspace
        self._auditor = auditor

    def all(self, federation: str) -> tuple[Key, ...]:
        """Return every key, by file name; raises SecurityError if a file is damaged or others can read it."""
        return tuple(_described(file, _read(file)) for file in self._files(federation))

    @recorded("keys")
    def backup(self, note: Note, federation: str, passphrase: str, out: Path) -> tuple[Key, ...]:
        """Write every key into one new file, encrypted; returns what is in it.

        Raises
        ------
        ParameterError
            The passphrase is too short, there is no key, or the file is there already.
        """
        self._only_operator()
        numbers = {file.name: _read(file) for file in self._files(federation)}
        if not numbers:
            raise ParameterError("no_key_to_back_up", federation=federation)
        if out.exists():
            raise ParameterError("backup_would_overwrite", file=out)
        body = seal(json.dumps(numbers).encode(), passphrase, self._about(federation))
        write_whole(out, body)
        keys = self.all(federation)
        note.federation = federation
        note.body = {"what": "backup", **_of(keys)}
        note.undo = out.unlink
        return keys

    @recorded("keys")
    def restore(self, note: Note, federation: str, passphrase: str, file: Path) -> tuple[Key, ...]:
        """Bring back the keys of a backup that are not here, current or retired; returns those.

        Raises
        ------
        ParameterError
            The file is no backup, or one of another federation.
        SecurityError
            The passphrase is wrong, or another key of the same name is here: nothing is changed then.
        """
        self._only_operator()
        with file.open("rb") as opened:
            about, body = unseal(opened.read(MAX_BYTES + 1), passphrase)
        if about != self._about(federation):
            raise ParameterError("backup_of_other_federation", found=about, expected=self._about(federation))
        numbers = _checked(body)
        folder = self._workspace.guest_folder(federation)
        with self._workspace.database(federation).write():  # no rotation in between
            # a key that was rotated since is here as a retired one, and stays that
            key_names = [
                name for name, of in numbers.items() if not retired(folder / name, _public(name, of)[2]).exists()
            ]
            here = {name: read_key(folder / name) for name in key_names}
            others = [name for name, stored_key in here.items() if stored_key not in (None, numbers[name])]
            if others:
                raise SecurityError("other_key_here", files=tuple(others))
            back = [name for name, stored_key in here.items() if stored_key is None]
            for name in back:
                if kept_key(folder / name, partial(numbers.__getitem__, name))[0] != numbers[name]:
                    raise SecurityError("key_made_meanwhile", file=name)
        keys = tuple(_described(folder / name, numbers[name]) for name in back)
        note.federation = federation
        note.body = {"what": "restore", **_of(keys)}

        def take_away() -> None:
            for name in back:
                (folder / name).unlink()

        note.undo = take_away
        return keys

    @recorded("keys")
    def rotate(self, note: Note, federation: str, file: str = "", *, now: bool = False) -> tuple[Key, ...]:
        """Retire keys of ciphers; the next scoring makes new ones. Returns those that were retired.

        A retired key stays, so that an auditor's sample of requests can still be opened (90 days at most, see ``RETENTION``).

        Parameters
        ----------
        file : str
            One key file; empty = every key of a cipher. The signing key is not rotated: Hosts know its first public half alone.
        now : bool
            Also while a scoring or a measurement is under way or what it came to was not fetched: that is lost, and counted at the Hosts.

        Raises
        ------
        ParameterError
            The key does not exist, or it is the signing key.
        SecurityError
            A scoring or a measurement is under way or not fetched, or another process is rotating the key.
        """
        self._only_operator()
        keys = [
            key for key in self.all(federation) if not key.retired and key.kind != "ed25519" and file in ("", key.file)
        ]
        if file == SIGNING:
            raise ParameterError("signing_key_not_rotated")
        if not keys:
            raise ParameterError("no_key_to_rotate", file=file, federation=federation)
        folder = self._workspace.guest_folder(federation)
        note.federation = federation
        note.body = {"what": "rotate", "now": now, **_of(keys)}
        moved: list[Key] = []

        def retire() -> None:  # in the transaction of the entry, so one process at a time
            if self._workspace.journal(federation).kept()[0] and not now:
                raise SecurityError("keys_in_use")
            for key in keys:
                if _fingerprint_in(folder / key.file) != key.fingerprint:
                    raise SecurityError("rotated_by_other", file=key.file)
            for key in keys:
                path = folder / key.file
                path.rename(retired(path, key.fingerprint))
                moved.append(key)
                for tables in (".tables", ".short.tables"):
                    path.with_suffix(tables).unlink(missing_ok=True)

        def put_back() -> None:
            for key in moved:
                path = folder / key.file
                retired(path, key.fingerprint).rename(path)

        note.keep = retire
        note.undo = put_back
        return tuple(keys)

    def _only_operator(self) -> None:
        if self._auditor.role != OPERATOR:
            raise SecurityError("keys_for_operator", role=TITLES[self._auditor.role])

    def _files(self, federation: str) -> list[Path]:
        folder = self._workspace.guest_folder(federation)
        return sorted(file for file in folder.glob("*") if _FILE.fullmatch(file.name))

    def _about(self, federation: str) -> str:
        about = self._workspace.federation(federation)
        return f"{about.guest.name} in {about.name}"


def _of(keys: tuple[Key, ...] | list[Key]) -> dict[str, Any]:
    return {"keys": {key.file: key.fingerprint for key in keys}}


def _read(file: Path) -> dict[str, str]:
    numbers = read_key(file)
    if numbers is None:
        raise SecurityError("key_file_gone", file=file)
    return numbers


def _fingerprint_in(file: Path) -> str:
    numbers = read_key(file)
    if numbers is None:
        return ""
    return _public(file.name, numbers)[2]


def _described(file: Path, numbers: dict[str, str]) -> Key:
    created = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
    kind, bits, mark = _public(file.name, numbers)
    return Key(file.name, kind, bits, created, mark, file.name.endswith(RETIRED))


def _public(name: str, numbers: dict[str, str]) -> tuple[str, int, str]:
    """Kind, bits and fingerprint; raises SecurityError if the numbers are no key, or not the one that the name says."""
    if name.startswith("signing"):
        public = SigningKey.from_numbers(numbers).public
        kind = "ed25519"
        bits = 256
        stem = "signing"
        mark = fingerprint(bytes.fromhex(public))
    elif name.startswith("paillier"):
        modulus = PaillierSecretKey.from_numbers(numbers, FLOOR).public
        kind = "paillier"
        bits = modulus.bits
        stem = f"paillier-{modulus.bits}"
        mark = fingerprint(modulus.to_bytes())
    else:
        lattice = RlweSecretKey.from_numbers(numbers)
        kind = "rlwe"
        bits = lattice.parameters.degree
        mark = fingerprint(lattice.public)
        stem = f"rlwe-{lattice.parameters.name}"
    if name not in (f"{stem}.key", f"{stem}.{mark}{RETIRED}"):
        raise SecurityError("key_file_renamed", file=name)
    return kind, bits, mark


def _checked(body: bytes) -> dict[str, dict[str, str]]:
    """Numbers by file name; every one a usable key under its own name, so that no other file can be written."""
    try:
        numbers = _BODY.validate_json(body)
    except ValidationError:
        raise ParameterError("backup_without_keys") from None
    for name, of_key in numbers.items():
        if not _FILE.fullmatch(name):
            raise ParameterError("backup_with_other_file", file=name[:80])
        _public(name, of_key)
    return numbers
