"""Which groups of people a Host adds contributions up for: those whose sums, all of them together, disclose nothing of few people.

Knows ids; no column, no contribution. All groups that were answered about cut people into *parts*: two people are in one part if every
group had both or neither. Each answer is a sum over whole parts, and so is whatever can be worked out from all answers by adding and
subtracting. A group is admitted if every part that it makes has :data:`MIN_PEOPLE` people or more.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import reduce
from hashlib import sha256
from pathlib import Path

from backend.atomic_file import write_whole
from backend.errors import SecurityError

MIN_PEOPLE = 50  # people in a part
FILE = "cohorts.json"


class Cohorts:
    """The groups that one Host has answered about.

    Parameters
    ----------
    folder : Path, optional
        Where ``cohorts.json`` lies; none = in memory, forgotten when the Host stops.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._parts: dict[str, list[set[str]]] | None = None

    def admit(self, model_id: str, ids: Sequence[str]) -> None:
        """Remember a group, or refuse it.

        Parameters
        ----------
        ids : sequence of str
            Everybody in it of whom a record is held, once.

        Raises
        ------
        SecurityError
            The group is too small, or it and the earlier ones differ by too few people; or the earlier ones cannot be read.
        """
        if len(ids) < MIN_PEOPLE:
            raise SecurityError(
                f"Contributions of {len(ids)} people with a record here were to be added up; {MIN_PEOPLE} or more are needed."
            )
        group = {_mark(model_id, i) for i in ids}
        with self._lock:
            known = self._read()
            earlier = known.get(model_id, [])
            parts = _cut(earlier, group)
            small = [len(part) for part in parts if len(part) < MIN_PEOPLE and part not in earlier]
            if small:
                raise SecurityError(
                    f"This group and those answered about before set {min(small)} people apart; with fewer than {MIN_PEOPLE} the sums "
                    "together would disclose single people. Ask about an earlier group again, about several of them together, or about "
                    "other people."
                )
            if len(parts) > len(earlier):
                self._write({**known, model_id: parts})

    def _read(self) -> dict[str, list[set[str]]]:
        if self._parts is None or self._folder is not None:  # another process of this Host may have answered since
            stored: dict[str, list[list[str]]] = {}
            if self._folder is not None and (self._folder / FILE).exists():
                try:
                    stored = json.loads((self._folder / FILE).read_text())
                except (OSError, ValueError) as error:
                    problem = f"This Host cannot read which groups it answered about; check {FILE}."
                    raise SecurityError(problem) from error
            nobody: list[set[str]] = []
            self._parts = {model: reduce(_cut, map(set, groups), nobody) for model, groups in stored.items()}
        return self._parts

    def _write(self, known: dict[str, list[set[str]]]) -> None:
        """In the file first: a group that could not be noted is not answered about."""
        if self._folder is not None:
            text = json.dumps({model: [sorted(part) for part in parts] for model, parts in known.items()})
            try:
                write_whole(self._folder / FILE, text.encode())
            except OSError as error:
                problem = f"This Host cannot note which groups it answers about, so it answers none; check {FILE}."
                raise SecurityError(problem) from error
        self._parts = known


def _cut(parts: list[set[str]], group: set[str]) -> list[set[str]]:
    """The parts that remain whole or are cut in two by a group, and those of it who were in none."""
    pieces = [piece for part in parts for piece in (part & group, part - group)]
    new = group.difference(*parts)
    return [piece for piece in (*pieces, new) if piece]


def _mark(model_id: str, subject: str) -> str:
    """Enough of a hash to tell people apart; the ids themselves stay in the Host's table."""
    return sha256(f"{model_id}\n{subject}".encode()).hexdigest()[:16]
