"""Questions of batches, on disk until their answers are delivered, so that a killed server sends the same batch again.

One file a batch, which its owner alone can read; it is forgotten after a day at the latest, as the Guest's journal forgets the batch.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from backend.services.online import Person

FOLDER = "online"  # in the home
DAY_SECONDS = 86_400.0  # seconds


@dataclass(frozen=True)
class AskedPeople:
    """One request's people, and whether their ids were said to be meant as written."""

    people: tuple[Person, ...]
    as_written: bool = False

    @property
    def name(self) -> str:
        """Return what is equal for equal requests alone."""
        return json.dumps(self.plain())

    def plain(self) -> list[object]:
        """Return it in the form of JSON."""
        return [
            [[person.id, None if person.values is None else dict(person.values)] for person in self.people],
            self.as_written,
        ]

    @classmethod
    def read(cls, plain: Sequence[object]) -> AskedPeople:
        """From what :meth:`plain` made; raises ValueError, TypeError if it did not."""
        people, as_written = plain
        if not isinstance(people, list):
            raise TypeError("people")
        return cls(tuple(Person(str(id_), values) for id_, values in people), bool(as_written))


class BatchFiles:
    """The batches of one caller about one model."""

    def __init__(self, home: Path, caller: str, model_id: str) -> None:
        self._folder = home / FOLDER / sha256(json.dumps([caller, model_id]).encode()).hexdigest()[:32]

    def keep(self, requests: Sequence[AskedPeople]) -> Path:
        """Write a batch; it need not outlast a power cut, only this process."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._folder / f"{secrets.token_hex(16)}.asked"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
            json.dump([request.plain() for request in requests], opened)
        return file

    def left(self) -> Iterator[tuple[Path, tuple[AskedPeople, ...]]]:
        """Batches whose answers were not given out; one that was cut off while it was written was not asked."""
        for file in sorted(self._folder.glob("*.asked")):
            try:
                yield file, tuple(AskedPeople.read(entry) for entry in json.loads(file.read_bytes()))
            except (OSError, ValueError, TypeError):
                drop(file)


def drop(file: Path | None) -> None:
    """Forget a batch."""
    if file is not None:
        with suppress(OSError):
            file.unlink()


def forget_old(home: Path) -> None:
    """Forget batches of more than a day ago."""
    for file in (home / FOLDER).glob("*/*.asked"):
        with suppress(OSError):
            if file.stat().st_mtime < time.time() - DAY_SECONDS:
                file.unlink()
