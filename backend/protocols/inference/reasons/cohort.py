"""Which groups of people a Host adds contributions up for: large ones, and none that differs from an earlier one by a few people.

Knows ids; no column, no contribution. Two sums over groups that differ in one person differ by that person's values, so every group is
remembered and a new one is compared with all of them. Sums and differences of several groups are not followed: three groups can still
single a person out. That is said in docs/reasons.md, and it is why every group is an entry of the Guest's audit log.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from backend.errors import SecurityError

LEAST = 50  # people in a group, and between two groups
MOST_GROUPS = 1000  # remembered a model; then no new one is answered
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
        self._groups: dict[str, list[list[str]]] | None = None

    def admit(self, model_id: str, ids: Sequence[str]) -> None:
        """Remember a group, or refuse it.

        Parameters
        ----------
        ids : sequence of str
            Everybody in it of whom a record is held, once.

        Raises
        ------
        SecurityError
            The group is too small, too much like an earlier one, or one too many; or the earlier ones cannot be read.
        """
        if len(ids) < LEAST:
            raise SecurityError(
                f"Contributions of {len(ids)} people with a record here were to be added up; {LEAST} or more are needed."
            )
        marks = {_mark(model_id, i) for i in ids}
        with self._lock:
            known = self._read()
            earlier = known.setdefault(model_id, [])
            differences = [len(marks ^ set(group)) for group in earlier]
            if 0 in differences:
                return
            close = [count for count in differences if count < LEAST]
            if close:
                raise SecurityError(
                    f"This group differs from an earlier one by {min(close)} people; by fewer than {LEAST} the two sums would tell of "
                    "single people. Ask about the earlier group again, or about another one."
                )
            if len(earlier) >= MOST_GROUPS:
                raise SecurityError(f"{MOST_GROUPS:,} groups were answered for this model; no more are.")
            earlier.append(sorted(marks))
            self._write(known)

    def _read(self) -> dict[str, list[list[str]]]:
        if self._groups is None:
            self._groups = {}
            if self._folder is not None and (self._folder / FILE).exists():
                try:
                    self._groups = json.loads((self._folder / FILE).read_text())
                except (OSError, ValueError) as error:
                    raise SecurityError(
                        f"This Host cannot read which groups it answered about; check {FILE}."
                    ) from error
        return self._groups

    def _write(self, known: dict[str, list[list[str]]]) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._folder / f"{FILE}.new"
        try:
            fresh.write_text(json.dumps(known))
            fresh.replace(self._folder / FILE)
        except OSError as error:
            raise SecurityError(
                f"This Host cannot note which groups it answers about, so it answers none; check {FILE}."
            ) from error


def _mark(model_id: str, subject: str) -> str:
    """Enough of a hash to tell people apart; the ids themselves stay in the Host's table."""
    return sha256(f"{model_id}\n{subject}".encode()).hexdigest()[:16]
