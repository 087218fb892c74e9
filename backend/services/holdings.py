"""What a party's database holds about a person: counts and days, never a value. A Host's side is shown to its own operator alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from backend.store.accountant import Accountant
from backend.store.request_log import RequestLog
from backend.store.retention import RETENTION

if TYPE_CHECKING:
    from backend.store.database import Database

DELETE = "deleted"
PSEUDONYM = "under a pseudonym"
KEEP = "kept"


@dataclass(frozen=True)
class Holding:
    """The entries of one table of a party about a person.

    Attributes
    ----------
    table : str
        Of the party's database; ``records file`` = the CSV table that the party brought.
    about : tuple of dict
        A row each: ids of models, days, counts; no ciphertext, no value.
    erasure : {"deleted", "under a pseudonym", "kept"}
        How it changes when the person is forgotten.
    note : str
        A note on what the rows do not show, and why they are kept.
    """

    party: str
    table: str
    about: tuple[dict[str, Any], ...]
    erasure: str
    note: str


def at_host(database: Database, party: str, person: str) -> list[Holding]:
    """Return what a Host's database holds about an id."""
    accountant = Accountant(database)
    days = RETENTION["answers"].days
    alone, others = accountant.questions(person)
    answers = tuple(asdict(answer) for answer in accountant.about(person))
    requests = tuple(
        {"number": number, "day": day, "kind": kind, "model": model, "bytes": size}
        for number, day, kind, model, size in RequestLog(database).about(person)
    )
    questions = tuple({"guest": guest, "request": request} for guest, request in alone)
    return [
        Holding(
            party,
            "answers",
            answers,
            PSEUDONYM,
            f"how often it answered: kept for {days} days, since a new count would let the Guest ask about the same record again",
        ),
        Holding(
            party,
            "questions",
            questions,
            DELETE,
            f"about this person alone; {others} others name those that they are about by one hash of all of them only, gone "
            f"within {days} days",
        ),
        Holding(
            party,
            "scored_records",
            tuple({"guest": guest, "day": day} for guest, day in accountant.scored(person)),
            DELETE,
            f"a hash of the record as it was scored, so that reasons are of the same one: {RETENTION['scored_records'].days} days",
        ),
        Holding(
            party,
            "requests",
            requests,
            DELETE,
            "for an auditor, encrypted under the Guest's key; of sums, whom they were about",
        ),
        Holding(party, "artefacts", (), KEEP, "rules of models, without ids"),
    ]
