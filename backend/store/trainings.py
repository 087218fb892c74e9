"""Trainings that may go on after a break: at the Guest the trees that are finished, at a Host what it was asked for and what it kept.

A Host keeps no tree: its splits are named to it again, and give the same rules as long as its records are the same. Nothing here names a
person, and no row says which record goes which way (docs/decisions/0031-faults.md).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, select

from backend.errors import QuestionRefused, SecurityError
from backend.store.database import Database, timestamp
from backend.store.schema import TrainingRow

SPENT = "noise "  # begins the names of rows that hold what noise was spent


@dataclass(frozen=True)
class KeptModel:
    """The one model that a training has given a Host: digest of what was to be kept, and the hash that was answered."""

    digest: str
    content_hash: str


class HostTrainings:
    """What one Host knows of trainings, by Guest and the Guest's name for each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, guest: str, request: str, digest: str) -> None:
        """A training begins, or goes on.

        Parameters
        ----------
        digest : str
            SHA-256 of what was asked for and of the records that it is about, in hexadecimal.

        Raises
        ------
        QuestionRefused
            Under this name it was another one, or about other records.
        """
        with self._database.write() as session:
            row = session.get(TrainingRow, (guest, request))
            if row is None:
                row = TrainingRow(guest=guest, request=request, question=digest, created=timestamp(), body="{}")
                session.add(row)
            if row.question != digest:
                raise QuestionRefused("training_changed")

    def node(self, guest: str, request: str, name: str) -> str:
        """Return the digest under which a node was answered in this training; empty if it was not."""
        with self._database.read() as session:
            row = session.get(TrainingRow, (guest, f"{request}.{name}"))
            return "" if row is None else row.question

    def note_nodes(self, guest: str, request: str, digests: Mapping[str, str], max_answers: int) -> None:
        """Note that nodes are answered.

        Parameters
        ----------
        digests : mapping of str to str
            Name of the node and of the question → SHA-256 of its rows, in hexadecimal.
        max_answers : int
            How often the same may be asked: after a break a tree is grown again.

        Raises
        ------
        QuestionRefused
            If a node came with other rows before, or too often.
        """
        with self._database.write() as session:
            for name, digest in digests.items():
                key = guest, f"{request}.{name}"
                row = session.get(TrainingRow, key)
                if row is None:
                    session.add(
                        TrainingRow(guest=guest, request=key[1], question=digest, created=timestamp(), body="1")
                    )
                    continue
                answers = int(row.body)
                if row.question != digest or answers >= max_answers:
                    raise QuestionRefused("node_answered_otherwise")
                row.body = str(answers + 1)

    def spend(self, guest: str, setting: object, epsilon: float, most: float) -> None:
        """Note that ranks with some noise are sent, which is the same whenever they are sent again.

        Parameters
        ----------
        epsilon : float
            What this setting costs a record, a step of distance.
        most : float
            What all settings may cost together, if there are several.

        Raises
        ------
        SecurityError
            If this setting is another one, and all together would cost more.
        """
        name = f"{SPENT}{sha256(repr(setting).encode()).hexdigest()[:48]}"
        with self._database.write() as session:
            found = TrainingRow.request.startswith(SPENT, autoescape=True)
            rows = session.scalars(select(TrainingRow).where(found)).all()
            # Whoever asks: two Guests could put their ranks together.
            spent = {row.request: float(row.body) for row in rows}
            if name in spent:
                return
            total = sum(spent.values()) + epsilon
            if spent and total > most:
                raise SecurityError("noise_spent", epsilon=total, most=most)
            session.add(
                TrainingRow(guest=guest, request=name, question="", created=timestamp(), body=repr(float(epsilon)))
            )

    def kept(self, guest: str, request: str) -> KeptModel | None:
        """The model that a training has given, if it has given one."""
        with self._database.read() as session:
            row = session.get(TrainingRow, (guest, request))
        found = {} if row is None else json.loads(row.body)
        return KeptModel(**found) if found else None

    def keep(self, guest: str, request: str, model: KeptModel) -> None:
        """Note the model that a training has given; raises SecurityError where it has given one."""
        with self._database.write() as session:
            row = session.get(TrainingRow, (guest, request))
            if row is None or row.body != "{}":
                raise SecurityError("training_not_open")
            row.body = json.dumps({"digest": model.digest, "content_hash": model.content_hash})
            nodes = TrainingRow.guest == guest, TrainingRow.request.startswith(f"{request}.", autoescape=True)
            session.execute(delete(TrainingRow).where(*nodes))


class GuestTraining:
    """One training of the Guest, as far as it has come.

    Attributes
    ----------
    rounds : list
        What each finished round came to, as JSON has it.
    """

    def __init__(self, database: Database, guest: str, request: str, rounds: Sequence[Any]) -> None:
        self._database, self._guest, self.request, self.rounds = database, guest, request, list(rounds)

    def add(self, finished: Any) -> None:
        """Keep one round more."""
        self.rounds.append(finished)
        with self._database.write() as session:
            row = session.get(TrainingRow, (self._guest, self.request))
            if row is not None:
                row.body, row.created = json.dumps(self.rounds), timestamp()

    def forget(self) -> None:
        """It is through, or will not go on."""
        with self._database.write() as session:
            key = TrainingRow.guest == self._guest, TrainingRow.request == self.request
            session.execute(delete(TrainingRow).where(*key))


def guest_training(database: Database, guest: str, question: str) -> GuestTraining:
    """The Guest's training of these terms and records that was broken off last; a new one where there is none.

    Parameters
    ----------
    question : str
        SHA-256 of all that the trees follow from, in hexadecimal.
    """
    with database.write() as session:
        asked = TrainingRow.guest == guest, TrainingRow.question == question
        row = session.scalars(select(TrainingRow).where(*asked).order_by(TrainingRow.created.desc())).first()
        if row is None:
            request = secrets.token_hex(16)
            row = TrainingRow(guest=guest, request=request, question=question, created=timestamp(), body="[]")
            session.add(row)
        return GuestTraining(database, guest, row.request, json.loads(row.body))
