"""Trainings that may go on after a break: at the Guest the trees that are finished, at a Host what it was asked for and what it kept.

A Host keeps no tree: its splits are named to it again, and give the same rules as long as its records are the same. Nothing here names a
person, and no row says which record goes which way (docs/decisions/faults.md).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, cast

from sqlalchemy import Table, delete, exists, func, insert, select, update
from sqlalchemy.orm import Session, aliased

from backend.errors import QuestionRefused, SecurityError
from backend.store.database import Database, timestamp
from backend.store.schema import TrainingRow

SPENT = "noise "  # begins the names of rows that hold what noise was spent


@dataclass(frozen=True)
class KeptModel:
    """The one model that a training has given a Host.

    Attributes
    ----------
    digest : str
        SHA-256 of the message that had it kept, in hexadecimal.
    content_hash : str
        That was answered.
    model_id : str
        The Guest's name for it.
    sealed : bool
        Whether it is kept sealed: more trees may still be added to it.
    """

    digest: str
    content_hash: str
    model_id: str
    sealed: bool


@dataclass(frozen=True)
class Note:
    """The terms of a training: under the same name they are the same, or it is refused.

    Attributes
    ----------
    name : str
        Among all of a Guest's.
    digest : str
        SHA-256 of what is asked, in hexadecimal.
    code : str
        Of the error if it was asked for in another way.
    max_times : int
        How often it may be asked for; 0 = any number of times.
    """

    name: str
    digest: str
    code: str
    max_times: int = 0
    error: type[SecurityError] = QuestionRefused


@dataclass(frozen=True)
class Spending:
    """Noise that ranks are sent with.

    Attributes
    ----------
    setting : str
        Equal settings give equal noise.
    epsilon : float
        Cost a record, for a step of distance.
    max_epsilon : float
        Largest cost of all settings together, if there are several.
    """

    setting: str
    epsilon: float
    max_epsilon: float


class HostTrainings:
    """One Host's data about trainings, by Guest and the Guest's name for each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def together(self) -> AbstractContextManager[object]:
        """Context in which all notes are stored together, or none if an error is raised."""
        return self._database.write()

    def note(self, guest: str, notes: Sequence[Note]) -> None:
        """Store what a training is asked for.

        Raises
        ------
        SecurityError
            If it was asked for in another way before, or too often; of the note's own class.
        """
        table = cast(Table, TrainingRow.__table__)
        query = select(table.c.request, table.c.question, table.c.body).where(
            table.c.guest == guest, table.c.request.in_({note.name for note in notes})
        )
        with self._database.write() as session:
            connection = session.connection()
            stored = {name: (digest, body) for name, digest, body in connection.execute(query)}
            created = timestamp()
            new: list[dict[str, str]] = []
            for note in notes:
                digest, body = stored.get(note.name, ("", ""))
                if not digest:
                    body = "1" if note.max_times else "{}"
                    row = {
                        "guest": guest,
                        "request": note.name,
                        "question": note.digest,
                        "created": created,
                        "body": body,
                    }
                    new.append(row)
                elif digest != note.digest or (note.max_times and int(body) >= note.max_times):
                    raise note.error(note.code)
                elif note.max_times:
                    body = str(int(body) + 1)
                    row_of = table.c.guest == guest, table.c.request == note.name
                    connection.execute(update(table).where(*row_of).values(body=body))
                stored[note.name] = (note.digest, body)
            if new:
                connection.execute(insert(table), new)

    def noted(self, guest: str, name: str) -> str:
        """Return the digest that was noted under a name; empty if none was."""
        query = select(TrainingRow.question).where(TrainingRow.guest == guest, TrainingRow.request == name)
        with self._database.read() as session:
            return session.scalar(query) or ""

    def spend(self, guest: str, spending: Spending) -> None:
        """Note that ranks with some noise are sent, which is the same whenever they are sent again.

        Raises
        ------
        SecurityError
            If this setting is another one, and all together would cost more.
        """
        name = f"{SPENT}{sha256(spending.setting.encode()).hexdigest()[:48]}"
        with self._database.write() as session:
            is_spending = TrainingRow.request.startswith(SPENT, autoescape=True)
            rows = session.scalars(select(TrainingRow).where(is_spending)).all()
            # Of all Guests: two of them could put their ranks together.
            spent = {row.request: float(row.body) for row in rows}
            if name in spent:
                return
            total = sum(spent.values()) + spending.epsilon
            if spent and total > spending.max_epsilon:
                raise SecurityError("noise_spent", epsilon=total, most=spending.max_epsilon)
            session.add(
                TrainingRow(
                    guest=guest, request=name, question="", created=timestamp(), body=repr(float(spending.epsilon))
                )
            )

    def kept(self, guest: str, request: str) -> KeptModel | None:
        """Return the model that a training has given, if it has given one."""
        with self._database.read() as session:
            row = session.get(TrainingRow, (guest, request))
        fields = {} if row is None else json.loads(row.body)
        return KeptModel(**fields) if fields else None

    def keep(self, guest: str, request: str, model: KeptModel) -> None:
        """Note the model that a training has given; raises SecurityError if it has given one that is open."""
        with self._database.write() as session:
            row = session.get(TrainingRow, (guest, request))
            if row is None or (row.body != "{}" and not json.loads(row.body)["sealed"]):
                raise SecurityError("training_not_open")
            row.body = json.dumps(asdict(model))
            self._forget_nodes(session, guest, request)

    def close(self, guest: str, sealed_as: str, released_as: str) -> None:
        """Note that the model of a training is open from now on: no more trees are added to it."""
        with self._database.write() as session:
            rows = session.scalars(
                select(TrainingRow).where(TrainingRow.guest == guest, TrainingRow.body.contains(sealed_as))
            )
            for row in rows.all():
                fields = json.loads(row.body)
                row.body = json.dumps(fields | {"model_id": released_as, "sealed": False})

    @staticmethod
    def _forget_nodes(session: Session, guest: str, request: str) -> None:
        """Forget the nodes of a Guest's earlier trainings whose models are open.

        Those of `request` stay: if the answer about its model is lost, the Guest names its splits again.
        """
        earlier = aliased(TrainingRow)
        begins = func.substr(TrainingRow.request, 1, func.length(earlier.request) + 1)
        is_open = earlier.guest == guest, earlier.body.contains('"sealed": false'), earlier.request != request
        of_earlier = exists().where(*is_open, begins == earlier.request + ".")
        session.execute(delete(TrainingRow).where(TrainingRow.guest == guest, of_earlier))


class GuestTraining:
    """One training of the Guest, as far as it has come.

    Attributes
    ----------
    rounds : list
        What each finished round came to, as JSON has it.
    """

    def __init__(self, database: Database, guest: str, request: str, rounds: Sequence[Any]) -> None:
        self._database = database
        self._guest = guest
        self.request = request
        self.rounds = list(rounds)
        self._encoded = [json.dumps(finished) for finished in self.rounds]

    def add(self, finished: Any) -> None:
        """Keep one round more."""
        self.rounds.append(finished)
        self._encoded.append(json.dumps(finished))
        body = f"[{', '.join(self._encoded)}]"
        table = cast(Table, TrainingRow.__table__)
        this = table.c.guest == self._guest, table.c.request == self.request
        with self._database.write() as session:
            session.connection().execute(update(table).where(*this).values(body=body, created=timestamp()))

    def forget(self) -> None:
        """It is through, or will not go on."""
        with self._database.write() as session:
            key = TrainingRow.guest == self._guest, TrainingRow.request == self.request
            session.execute(delete(TrainingRow).where(*key))


def guest_training(database: Database, guest: str, question: str) -> GuestTraining:
    """Return the Guest's last unfinished training of these terms and records, or a new one.

    Parameters
    ----------
    question : str
        SHA-256 of all that the trees follow from, in hexadecimal.
    """
    with database.write() as session:
        terms = TrainingRow.guest == guest, TrainingRow.question == question
        row = session.scalars(select(TrainingRow).where(*terms).order_by(TrainingRow.created.desc())).first()
        if row is None:
            request = secrets.token_hex(16)
            row = TrainingRow(guest=guest, request=request, question=question, created=timestamp(), body="[]")
            session.add(row)
        return GuestTraining(database, guest, row.request, json.loads(row.body))
