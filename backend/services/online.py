"""People scored as they come, for a program that waits: a model that is kept ready, with its conversation open, and their sheets."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backend.crypto.registry import Cipher
from backend.crypto.workers import Workers
from backend.data.bounded_text import RepeatedNameError, json_values
from backend.data.csv_file import EXACT_FLOAT, Fault, TableText, shown
from backend.data.id_forms import AS_WRITTEN
from backend.data.table import PartyTable, SampleSheet, sheet_of
from backend.data.table_file import AS_IT_IS, Reading
from backend.errors import ModelError, SampleError
from backend.remark import Remark
from backend.results import ModelRecord, Score, ScoreBatch
from backend.services.audit import Auditor
from backend.services.compliance import Compliance
from backend.services.registry import Registry
from backend.services.samples import Known, table_notes, understood
from backend.services.score_marks import few_held, with_what_if
from backend.services.scoring import KEY_BITS, Conversation, Scoring, ScoringRequest
from backend.services.workspace import Workspace
from backend.store.journal import Journal
from backend.store.model_states import APPROVED, IN_USE
from backend.store.schema import ModelState

__all__ = ["Online", "OpenModel", "Person", "RepeatedNameError", "Value", "json_values", "with_what_if"]

LOOKED_UP = 1.0  # seconds for which a model's record, state and people are taken as they were
TELLING = 1.0  # seconds between two reports of the audit log's head
EXPECTED_PEOPLE = 1 << 20  # people: the cipher for as many as there will be
Value = str | float | int | bool | None


@dataclass(frozen=True)
class Person:
    """Who is to be scored.

    Attributes
    ----------
    values : mapping of str to Value, optional
        The Guest's features by name, absent ones are missing; None = the Guest's own record of this id.
    """

    id: str = field(repr=False)
    values: Mapping[str, Value] | None = field(default=None, repr=False)


class Online:
    """Models that programs may ask."""

    def __init__(
        self, workspace: Workspace, models: Registry, auditor: Auditor, compliance: Compliance, workers: Workers
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        silent = SilentAuditor(workspace, auditor.actor, auditor.role, auditor.signed_in)
        self._scoring = Scoring(workspace, models, silent, compliance, workers)
        self._found: tuple[float, dict[str, tuple[ModelRecord, ModelState]]] = 0.0, {}

    def offered(self) -> dict[str, tuple[ModelRecord, ModelState]]:
        """Id → every model that is not retired, newest first."""
        _, models = self._found
        if not self.fresh():
            states = self._models.states()
            models = {}
            for r in self._models.all():
                if states[r.id].state != "retired":
                    models[r.id] = (r, states[r.id])
            self._found = time.monotonic(), models
        return models

    def fresh(self) -> bool:
        """Return whether :meth:`find` has no store to read."""
        looked_up, models = self._found
        return bool(models) and time.monotonic() - looked_up <= LOOKED_UP

    def find(self, model_id: str) -> tuple[ModelRecord, bool]:
        """Return a model by its whole id, and whether it is approved; raises ModelError if none is offered under it."""
        if model_id not in self.offered():
            raise ModelError("model_not_offered", model=shown(model_id))
        record, state = self.offered()[model_id]
        return record, state.state in (APPROVED, IN_USE)

    def open(self, record: ModelRecord, cipher: Cipher | None = None, key_bits: int = KEY_BITS) -> OpenModel:
        """Keep a model ready; `cipher` None = RLWE if it holds the model's scores, else Paillier."""
        model_cipher = cipher or self._scoring.suited(record.id, EXPECTED_PEOPLE)
        return OpenModel(self._workspace, self._models, self._auditor, self._scoring, record, model_cipher, key_bits)


class OpenModel:
    """One model with its conversation; but for :meth:`tell` for one thread at a time."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        auditor: Auditor,
        scoring: Scoring,
        record: ModelRecord,
        cipher: Cipher,
        key_bits: int,
    ) -> None:
        self.record = record
        self.cipher = cipher
        self.key_bits = key_bits
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._scoring = scoring
        self._conversation = Conversation()
        self._reported = 0.0
        self._known_at: tuple[float, Known] | None = None

    def check(self, people: Sequence[Person]) -> None:
        """Raise SampleError if a person has no id, is named twice, or has a value of another feature than the Guest's."""
        guest = self._workspace.federation(self.record.federation).guest
        names = [feature.name for feature in guest.features]
        strangers = sorted({name for person in people for name in person.values or ()} - set(names))
        if strangers:
            raise SampleError(
                "not_guest_features",
                names=tuple(shown(name) for name in strangers),
                party=guest.title,
                known=tuple(names),
            )
        ids = [person.id.strip() for person in people]
        if not all(ids) or len(set(ids)) < len(ids):
            raise SampleError("ids_missing_or_repeated")

    def sheet(self, people: Sequence[Person]) -> SampleSheet:
        """Samples of people who were checked, in their order; a value that cannot be read is a problem of its row."""
        federation = self._workspace.federation(self.record.federation)
        guest = federation.guest
        names = [feature.name for feature in guest.features]
        runtime = self._workspace.runtime(self.record.federation)
        typed = [row for row, person in enumerate(people) if person.values is not None]
        known_rows = [row for row, person in enumerate(people) if person.values is None]
        parts = []
        for rows, header in ((typed, (guest.id, *names)), (known_rows, (guest.id,))):
            cells = [[people[row].id.strip(), *_cells(people[row], header[1:])] for row in rows]
            faults = {place: _beyond_float(people[row]) for place, row in enumerate(rows)}
            text = TableText("people", header, cells, [row + 1 for row in rows], {}, faults)
            if rows:
                parts.append((rows, sheet_of(federation, text, {}, hosts_allowed=False, records=lambda: runtime.table)))
        return understood(_joined(people, parts), self._known())

    def check_ids(self, people: Sequence[Person], *, as_written: bool = False) -> None:
        """Refuse one request's people if the Hosts cannot have half of them; see :meth:`backend.services.samples.Known.stop`."""
        how = Reading(ids=AS_WRITTEN) if as_written else AS_IT_IS
        self._known().stop([person.id.strip() for person in people], "people", how)

    def notes(self, scores: Sequence[Score]) -> tuple[Remark, ...]:
        """Return what is said about one request as a whole; other requests may have been asked with it."""
        ids = [score.id for score in scores]
        marks = {}
        for row, score in enumerate(scores):
            remarks = tuple(remark for remark in score.remarks if remark.code != "not_held")
            if remarks:
                marks[row] = remarks
        n_hosts = len(self._models.compiled(self.record).guest.folding.steps)
        return (*table_notes(ids, marks, (), self._known()), *few_held(scores, n_hosts))

    def _known(self) -> Known:
        now = time.monotonic()
        if self._known_at is None or now - self._known_at[0] > LOOKED_UP:
            self._known_at = now, Known.of(self._workspace, self._models, self.record)
        return self._known_at[1]

    def score(self, sheet: SampleSheet) -> ScoreBatch:
        """Score them as one question, held in the Guest's journal until :meth:`handed_over`."""
        # a program is told when to ask again, and does not wait meanwhile
        request = ScoringRequest(self.record.id, sheet, None, self.cipher, self.key_bits, hold=True, timeout=0.0)
        return self._scoring.start(request, conversation=self._conversation).get()

    def handed_over(self, batch: ScoreBatch) -> None:
        """Note that the caller has the scores: with the next question the journal forgets them, and the Host its answer."""
        self._journal().handed_over_soon(batch.run)
        self._conversation.handed_over(batch.run)

    def tell(self) -> None:
        """Once a second, send Hosts the audit log's head, in another thread while the next question is under way."""
        if time.monotonic() - self._reported > TELLING:
            self._tell()

    def settle(self) -> None:
        """No question comes now: the journal forgets what was handed over."""
        self._journal().settle()

    def _journal(self) -> Journal:
        runtime = self._workspace.runtime(self.record.federation)
        return runtime.journal or self._workspace.journal(self.record.federation)

    def close(self) -> None:
        """End the conversation."""
        self.settle()
        self._conversation.close()
        self._tell()

    def _tell(self) -> None:
        self._auditor.tell(self.record.federation)
        self._reported = time.monotonic()


@dataclass(frozen=True)
class SilentAuditor(Auditor):
    """An auditor that writes entries, and leaves it to others to send the Hosts the log's head: it covers every entry before it."""

    def tell(self, federation: str) -> None:
        """Not now."""


def _beyond_float(person: Person) -> tuple[Fault, ...]:
    """Return the numbers with decimals or exponents that may have been several whole numbers; a code among them is refused."""
    values = (person.values or {}).items()
    return tuple(Fault(name, "float", str(v)) for name, v in values if isinstance(v, float) and abs(v) >= EXACT_FLOAT)


def _cells(person: Person, names: Sequence[str]) -> list[str]:
    values = person.values or {}
    return ["" if (value := values.get(name)) is None else str(value).strip() for name in names]


def _joined(people: Sequence[Person], parts: Sequence[tuple[list[int], SampleSheet]]) -> SampleSheet:
    """One sheet of parts that have the Guest's columns, each row in its place."""
    order: NDArray[np.intp] = np.argsort(np.concatenate([np.array(rows, dtype=np.intp) for rows, _ in parts]))
    first = parts[0][1].guest
    columns = {}
    for name in first.columns:
        columns[name] = np.concatenate([s.guest.columns[name] for _, s in parts])[order]
    ids = tuple(person.id.strip() for person in people)
    problems = {rows[i]: remarks for rows, sheet in parts for i, remarks in sheet.problems.items()}
    return SampleSheet(ids, PartyTable(first.party, ids, columns), {}, dict(sorted(problems.items())), ())
