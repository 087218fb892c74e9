"""The parties' data about a person, shown and erased (GDPR Art. 15 and 17): ids, counts and days; never a value, a label or a score.

A Guest never learns what a Host keeps: in a simulation only the operator runs all parties and may ask each of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backend.data.csv_file import shown
from backend.data.table import read_table
from backend.errors import NotAvailable, ParameterError, SecurityError
from backend.i18n import wide
from backend.remark import Remark
from backend.services.audit import Note, recorded
from backend.services.holdings import DELETE, KEEP, Holding, at_host
from backend.services.registry import parts_of
from backend.services.roles import OPERATOR
from backend.store.accountant import Accountant
from backend.store.journal import Journal
from backend.store.request_log import RequestLog
from backend.store.retention import RETENTION
from backend.store.reviews import REASON_MIN, TEXT_MAX

if TYPE_CHECKING:
    from backend.services.audit import Auditor
    from backend.services.registry import Registry
    from backend.services.workspace import Workspace
    from backend.store.database import Database

__all__ = ["RETENTION", "Holding", "People"]


class People:
    """The rights of a person to what is kept about them."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor

    @recorded("person")
    def show(self, note: Note, federation: str, person: str, party: str = "") -> tuple[Holding, ...]:
        """Everything that the parties' databases hold about an id.

        Parameters
        ----------
        party : str
            One party; empty = the Guest and, for the operator of the simulation, every Host.

        Raises
        ------
        SecurityError
            A Host was asked for, and the actor is not the operator.
        ParameterError
            The party does not exist, or the text is not an id.
        """
        parties = self._allowed(federation, party)
        holdings = self._held(federation, _checked(person), parties)
        note.federation = federation
        note.body = {"what": "show", "parties": list(parties), **self._named(federation, person)}
        return holdings

    def preview(self, federation: str, person: str) -> tuple[Holding, ...]:
        """Return what :meth:`forget` would do; changes nothing. The operator's, as that is."""
        self._only_operator()
        return self._held(federation, _checked(person), self._allowed(federation, ""))

    @recorded("person")
    def forget(self, note: Note, federation: str, person: str, because: str) -> tuple[Holding, ...]:
        """Erase a person from every party's database, except what protects them; returns what was held before.

        Answers keep counting under a pseudonym, since a new budget would allow more questions about the same record.

        Parameters
        ----------
        because : str
            Goes into the audit log for good, so it may not name the id.

        Raises
        ------
        SecurityError
            The actor is not the operator.
        ParameterError
            There is no reason, or it names the id.
        """
        self._only_operator()
        because = _reason(because, _checked(person))
        holdings = self._held(federation, person, self._allowed(federation, ""))
        note.federation = federation
        note.body = {"what": "forget", "because": because, **self._named(federation, person)}
        # said before anything goes: what a sudden end leaves half-done is in the log, and doing it again ends it
        self._auditor.note(federation, "person", {**note.body, "outcome": "begun"}, tell=False)
        databases = self._workspace.databases(federation)
        guest = self._workspace.federation(federation).guest.name
        # the Hosts first: what the Guest forgets is in one transaction with the entry that says that all did
        note.body["changed"] = {host: _forget(db, person) for host, db in databases.items() if host != guest}
        held_in = []
        for holding in holdings:
            if holding.party == guest and holding.table == "artefacts":
                held_in += [entry["model"] for entry in holding.about]
        decisions = self._workspace.decisions(federation)
        note.body["changed"][guest] = {"artefacts": len(held_in), "decisions": len(decisions.about(person))}

        def keep() -> None:
            decisions.forget(person)
            for record in self._models.with_sealed(federation):
                if record.id in held_in:
                    self._models.forget(record, person)

        note.keep = keep
        return holdings

    def expire(self, federation: str) -> dict[str, dict[str, int]]:
        """Delete at every party what is older than its table's period; party → table → rows. The operator's."""
        self._only_operator()
        return self._workspace.expire(federation)

    def _only_operator(self) -> None:
        if self._auditor.role != OPERATOR:
            raise SecurityError("only_operator_of_all_parties", role=self._auditor.role)

    def _allowed(self, federation: str, party: str) -> tuple[str, ...]:
        """Return the parties to ask; raises if the actor may not."""
        about = self._workspace.federation(federation)
        names = tuple(member.name for member in about.here)
        if party in {member.name for member in about.parties} - set(names):
            raise NotAvailable(party, Remark("its_database"))
        if party and party not in names:
            raise ParameterError("unknown_party", federation=federation, party=shown(party), parties=names)
        if self._auditor.role == OPERATOR:
            return (party,) if party else names
        if party not in ("", about.guest.name):
            raise SecurityError("only_operator_sees_holdings", host=party, role=self._auditor.role)
        return (about.guest.name,)

    def _named(self, federation: str, person: str) -> dict[str, str]:
        """Return a person in the log: a hash under the Guest's secret, so that who reads the log cannot try ids until one fits."""
        return {"person": self._workspace.guest_store(federation).pseudonym(person).strip()}

    def _held(self, federation: str, person: str, parties: tuple[str, ...]) -> tuple[Holding, ...]:
        about = self._workspace.federation(federation)
        databases = self._workspace.databases(federation)
        out: list[Holding] = []
        for party in parties:
            has_record = person in read_table(about, party).row_of
            file = about.party(party).file
            if has_record:
                note = f"{party}'s own file: delete the record there"
            else:
                note = f"no record in {file}"
            out.append(Holding(party, "records file", ({"file": file},) if has_record else (), KEEP, note))
            guest = party == about.guest.name
            out += self._at_guest(federation, party, person) if guest else at_host(databases[party], party, person)
        return tuple(out)

    def _at_guest(self, federation: str, party: str, person: str) -> list[Holding]:
        store = self._workspace.guest_store(federation)
        parts = tuple(
            {"model": record.id, "part": self._models.part_of(record)[person]}
            for record in self._models.with_sealed(federation)
            if store.content_hash(parts_of(record)) and person in self._models.part_of(record)
        )
        runs, sent, answered = Journal(self._workspace.database(federation)).kept()
        return [
            Holding(
                party,
                "artefacts",
                parts,
                DELETE,
                "part that the record had in the training of each model; the operator's texts on models and Hosts' dossiers are about "
                "nobody who is scored: they are kept, and not searched",
            ),
            Holding(
                party,
                "decisions",
                tuple(
                    {"model": model, "policy": version, "created": created}
                    for model, version, created in self._workspace.decisions(federation).about(person)
                ),
                DELETE,
                f"the last score by each model, so that reasons can be given: {RETENTION['decisions'].days} days",
            ),
            Holding(
                party,
                "runs",
                ({"runs": runs, "messages": sent, "answered batches": answered},) if runs else (),
                KEEP,
                "scorings under way, of anybody: by position, without ids, so that nobody can be found in them; gone within a day",
            ),
            Holding(
                party,
                "stated",
                (),
                KEEP,
                "values with which scores and reasons were asked for, what came of them, and numbers that Hosts added up, of anybody: by a "
                f"hash of the request, without ids, so that nobody can be found in them; gone within {RETENTION['stated'].days} days",
            ),
            Holding(party, "measurements", (), KEEP, "figures of groups, without ids"),
            Holding(party, "audit", (), KEEP, "hashes and counts, without ids"),
        ]


def _forget(database: Database, person: str) -> dict[str, int]:
    """Erase a person from a Host's database, in one transaction."""
    log = RequestLog(database)
    with database.write():
        requests = [row[0] for row in log.about(person)]
        log.forget(requests)
        answers, questions = Accountant(database).forget(person)
    return {"answers": answers, "questions": questions, "requests": len(requests)}


def _checked(person: str) -> str:
    """Return an id as files hold it; raises ParameterError if it can be none."""
    if not person or person != person.strip() or not _is_text(person):
        raise ParameterError("text_is_no_id", id=shown(person))
    return person


def _is_text(person: str) -> bool:
    try:
        person.encode()
    except UnicodeEncodeError:  # bytes of a shell that are no UTF-8
        return False
    return True


def _reason(because: str, person: str) -> str:
    because = because.strip()
    if wide(because) < REASON_MIN or len(because) > TEXT_MAX:
        raise ParameterError("reason_to_forget_length", least=REASON_MIN, limit=TEXT_MAX, found=len(because))
    if re.search(rf"(?<!\w){re.escape(person)}(?!\w)", because, re.IGNORECASE):
        raise ParameterError("reason_names_the_id")
    return because
