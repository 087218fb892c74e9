"""What the audit log says about a piece of work: hashes, counts and versions; never a value, a score, a label or an id.

Each body carries a random salt: a Host is told an entry's hash, and without a salt it could try values of one person until the hash fits.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from backend.errors import GlassleafError, SecurityError
from backend.jobs import Job
from backend.jobs.work import unwatched
from backend.results import NOBODY
from backend.services.roles import ROLES, TITLES, WHOSE, titles_of

if TYPE_CHECKING:
    from pathlib import Path

    from backend.data.federation import Federation
    from backend.data.table import PartyTable, SampleSheet
    from backend.privacy.re_performance import RePerformed
    from backend.protocols.transport.transcript import TranscriptEntry
    from backend.results import ModelRecord, Score, ScoreBatch
    from backend.services.request_replay import HostReplay
    from backend.services.workspace import Workspace
    from backend.store.audit_log import Entry, Verdict

DONE = "done"
HEAD_WAIT_SECONDS = 1.0  # seconds to wait for a head that is being sent to Hosts, before they are asked
P = ParamSpec("P")
R = TypeVar("R")
_log = logging.getLogger("glassleaf")


def is_maker(person: str, maker: str) -> bool:
    """Return whether a name is that of a model's maker; an unknown maker matches no name."""
    return bool(maker) and person.strip().casefold() == maker.casefold()


@dataclass(frozen=True)
class Auditor:
    """Writes for one actor in one role.

    Attributes
    ----------
    signed_in : bool
        Whether an identity provider names the actor and grants the role; else both are as somebody said.
    """

    workspace: Workspace
    actor: str
    role: str
    signed_in: bool = False

    @property
    def person(self) -> str:
        """Return the person; empty if unknown."""
        return "" if self.actor == NOBODY else self.actor

    def require(self, action: str) -> None:
        """Raise SecurityError if an action is another role's."""
        whose = WHOSE.get(action, ROLES)
        if self.role not in whose:
            _log.warning("Refused: %s in the role %s.", action, self.role)
            raise SecurityError("action_of_other_role", action=action, roles=titles_of(whose), role=TITLES[self.role])

    def named(self, person: str) -> str:
        """Return the name to decide under. A user who is signed in decides under no other name; raise SecurityError if one is given."""
        if not self.signed_in:
            return person
        if person.strip() not in ("", self.actor):
            raise SecurityError("decides_under_other_name", name=self.actor)
        return self.actor

    def stand_apart(self, person: str, maker: str) -> None:
        """Raise SecurityError if the person who made a model would decide about it."""
        if is_maker(person, maker):
            raise SecurityError("maker_cannot_decide", name=maker)

    def note(self, federation: str, action: str, body: Mapping[str, Any], *, tell: bool = True) -> Entry:
        """Write an entry; unless `tell` is False, send the log's new head to every Host that is up.

        A Host that is down or busy stops nothing: it keeps an older head, which still witnesses all entries up to it. Nor does one
        that refuses, since the work is done; it is said aloud, and the next check of the log shows it.
        """
        salted = {**body, "salt": secrets.token_hex(16)}
        entry = self.workspace.audit_log(federation).add(action, salted, self.actor, self.role)
        if tell:
            self.tell(federation)
        return entry

    def tell(self, federation: str) -> None:
        """Send the log's head to every Host that is up."""
        self.workspace.run_errand(federation, partial(self._tell, federation))

    def _tell(self, federation: str) -> None:
        log = self.workspace.audit_log(federation)
        try:
            key = self.workspace.signing_key(federation)
            with unwatched():  # Hosts get the head of a stopped job's entry, too
                self.workspace.runtime(federation).tell_audit_head(log, key)
        except SecurityError as error:
            _log.error("The audit log of %s was refused: %s Run `glassleaf audit verify`.", federation, error)
        except GlassleafError as error:
            number = log.head().number
            _log.warning(
                "A Host has not confirmed entry %d of the audit log; the next entry tells it again. %s", number, error
            )


@dataclass
class Note:
    """What will be written of a piece of work that is under way; nothing until `federation` is known.

    Attributes
    ----------
    body : dict
        So far. Work that fails is logged with this and the error's type.
    keep : callable
        Stores the result in one transaction with the entry: both are stored or neither.
    undo : callable
        Puts back the files that the work changed, if the entry cannot be written.
    """

    federation: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    keep: Callable[[], None] = lambda: None
    undo: Callable[[], None] = lambda: None

    def about(self, record: ModelRecord, **more: Any) -> None:
        """Name the model, and what was asked for."""
        self.federation = record.federation
        self.body = {**of_model(record), **more}


class _Audited(Protocol):
    _auditor: Auditor


A = TypeVar("A", bound=_Audited)


def recorded(action: str) -> Callable[[Callable[Concatenate[A, Note, P], R]], Callable[Concatenate[A, P], R]]:
    """Log a service's method as `action`: its :class:`Note`, handed in as the first argument, and how it ended.

    Once the note names a federation, work that is stopped or fails is logged too, with the error's type as its outcome. What is another
    role's (:data:`WHOSE`) is refused before it begins.
    """

    def decorate(work: Callable[Concatenate[A, Note, P], R]) -> Callable[Concatenate[A, P], R]:
        @wraps(work)
        def run(self: A, /, *args: P.args, **options: P.kwargs) -> R:
            self._auditor.require(action)
            note = Note()
            try:
                result = work(self, note, *args, **options)
                try:
                    with self._auditor.workspace.database(note.federation).write():
                        note.keep()
                        self._auditor.note(note.federation, action, {**note.body, "outcome": DONE}, tell=False)
                except BaseException:
                    note.undo()
                    raise
            except Exception as error:
                if note.federation:
                    self._auditor.note(note.federation, action, {**note.body, "outcome": type(error).__name__})
                raise
            self._auditor.tell(note.federation)
            return result

        return run

    return decorate


class AuditTrail:
    """The log as its readers have it."""

    def __init__(self, workspace: Workspace, auditor: Auditor) -> None:
        self._workspace = workspace
        self._auditor = auditor

    def entries(self, federation: str) -> list[Entry]:
        """Everything that was logged about a federation, oldest first."""
        return self._workspace.audit_log(federation).entries()

    def verify(self, federation: str, *, ask_hosts: bool = True) -> Verdict:
        """Check the chain of the log and, with `ask_hosts` (it may take seconds), all heads that its Hosts keep."""
        from backend.protocols.audit_head.protocol import is_signed_head  # noqa: PLC0415 (as below)

        if ask_hosts:
            self._workspace.await_errands(HEAD_WAIT_SECONDS)
        if ask_hosts:
            heads_by_host = self._workspace.runtime(federation).audit_heads()
        else:
            heads_by_host = {}
        public = self.public_key(federation)
        return self._workspace.audit_log(federation).verify(
            {host: heads for host, heads in heads_by_host.items() if heads}, partial(is_signed_head, public)
        )

    def start_verify(self, federation: str) -> Job[Verdict]:
        """:meth:`verify` in the background: a Host that does not answer takes seconds."""
        job: Job[Verdict] = Job(lambda job: self.verify(federation), 0)
        return job.start()

    def public_key(self, federation: str) -> str:
        """Return what the Guest's signatures are checked with: an Ed25519 key in hexadecimal."""
        return self._workspace.signing_key(self._workspace.federation(federation).name).public

    def public_pem(self, federation: str) -> str:
        """Return the same as PEM."""
        from backend.crypto.signing import public_pem  # noqa: PLC0415 (as below)

        return public_pem(self.public_key(federation))

    @recorded("replay")
    def replay(self, note: Note, federation: str) -> tuple[HostReplay, ...]:
        """Have the Guest open the requests that Hosts have kept in secret, and check their weights (simulation)."""
        from backend.services.request_replay import replay_requests  # noqa: PLC0415 (needed here alone)

        replays = replay_requests(self._workspace.runtime(federation), self._workspace.guest_store(federation))
        note.federation = federation
        note.body = {
            "rows": sum(host_replay.found.rows for host_replay in replays),
            "problems": sum(len(host_replay.found.problems) for host_replay in replays),
        }
        return replays

    @recorded("re-perform")
    def re_perform(self, note: Note, federation: str) -> RePerformed:
        """Recompute the answers of the sample from all parties' halves of it (simulation)."""
        from backend.services.re_performance import re_perform_all  # noqa: PLC0415 (needed here alone)

        performed = re_perform_all(self._workspace.runtime(federation), self._workspace.guest_store(federation))
        note.federation = federation
        note.body = _of_re_performance(performed)
        return performed

    @recorded("half")
    def half(self, note: Note, federation: str, samples: Sequence[str]) -> str:
        """Return the Guest's half of samples that Hosts hand over, as text, for an auditor."""
        from backend.protocols.host_half import load_half  # noqa: PLC0415 (as above)
        from backend.services.re_performance import guest_half  # noqa: PLC0415 (as above)

        halves = [load_half(text) for text in samples]
        half = guest_half(self._workspace.runtime(federation), self._workspace.guest_store(federation), halves)
        note.federation = federation
        requests = len(half.statements) + len(half.names) + len(half.cohorts) + len(half.groups)
        note.body = {"rows": sum(len(host_half.rows) for host_half in halves), "requests": requests}
        return half.dump()

    def export(self, federation: str, *, receipts: bool = False) -> str:
        """Return the log as lines of JSON, a line an entry; exporting is logged too, as the last one. With `receipts` for a comparison."""
        self._auditor.note(federation, "export", {"what": "audit"})
        log = self._workspace.audit_log(federation).export()
        if not receipts:
            return log
        from backend.services.reconciliation import exported  # noqa: PLC0415 (as below)
        from backend.store.receipts import Receipts  # noqa: PLC0415 (as below)

        guest = self._workspace.federation(federation).guest.name
        return exported(guest, log, Receipts(self._workspace.database(federation)))

    def note_sign_in(self, way: str) -> None:
        """Log in every federation that the actor signed in, by `way` (the identity provider's name)."""
        for federation in self._workspace.federations():
            self._auditor.note(federation.name, "sign-in", {"way": way})


def _of_re_performance(performed: RePerformed) -> dict[str, Any]:
    """Counts alone: no person is named in the log."""
    return {
        "scores": performed.scores,
        "reasons": performed.reasons,
        "sums": performed.sums,
        "differences": len(performed.differences),
        "parties": sorted({party for difference in performed.differences for party in difference.parties}),
        "not_covered": sum(n for _, n in performed.not_covered),
    }


def of_model(record: ModelRecord) -> dict[str, Any]:
    """Return which model."""
    return {"model": record.id, "model_sha256": record.content_hash}


def of_training(
    record: ModelRecord, input_sha256: str, packs: Mapping[str, str], transcript: Iterable[TranscriptEntry] = ()
) -> dict[str, Any]:
    """Return a model that was grown or imported."""
    return {
        **of_model(record),
        "host_sha256": record.host_hashes,
        "algorithm": record.algorithm,
        "cipher": record.cipher,
        "key_bits": record.key_bits,
        "parts": record.parts,
        "excluded": len(record.exclude),
        "score_bits": record.score_bits,
        "score_bits_asked": (record.release and record.release.asked_bits) or record.score_bits,
        "input_sha256": input_sha256,
        "rule_packs": dict(packs),
        "traffic": traffic(transcript),
    }


def of_scoring(
    record: ModelRecord, batch: ScoreBatch, input_sha256: str, packs: Mapping[str, str], counted: bool
) -> dict[str, Any]:
    """Samples that were scored; `counted` = against the Hosts' budgets."""
    failed = sum(not score.scored for score in batch.scores)
    return {
        **of_model(record),
        "rows": len(batch.scores),
        "failed": failed,
        "partial": sum(score.status == "partial" for score in batch.scores),
        "refused": sum(score.status == "refused" for score in batch.scores),
        "decisions": decisions(batch.scores),
        "policy": batch.policy.version,
        "decline_at": batch.policy.decline_at,
        "refer_at": batch.policy.refer_at,
        "cipher": batch.cipher,
        "key_bits": batch.key_bits,
        "counted": counted,
        "traffic": traffic(batch.transcript),
        "input_sha256": input_sha256,
        "rule_packs": dict(packs),
    }


def decisions(scores: Iterable[Score]) -> dict[str, int]:
    """Return decision → number of people, of those who have one."""
    counts: dict[str, int] = {}
    for score in scores:
        if score.decision:
            counts[score.decision] = counts.get(score.decision, 0) + 1
    return counts


def traffic(transcript: Iterable[TranscriptEntry]) -> list[list[Any]]:
    """[class, sender, receiver, messages, bytes] in the order in which they first came."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    for entry in transcript:
        line = counts.setdefault((entry.kind, entry.sender, entry.receiver), [0, 0])
        line[0] += 1
        line[1] += entry.bytes
    return [[*way, *line] for way, line in counts.items()]


def sheet_hash(sheet: SampleSheet) -> str:
    """SHA-256 of samples: ids and values of every table that was brought, whatever file they came in."""
    digest = sha256(json.dumps(sheet.ids).encode())
    for table in (sheet.guest, *sheet.hosts.values()):
        _add_table(digest.update, table)
    return digest.hexdigest()


def file_hash(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    return sha256(file.read_bytes()).hexdigest()


def federation_hash(federation: Federation) -> str:
    """SHA-256 of what the Guest trains with: the federation file and its own table."""
    digest = sha256((federation.folder / "federation.toml").read_bytes())
    digest.update((federation.folder / federation.guest.file).read_bytes())
    return digest.hexdigest()


def _add_table(add: Callable[[bytes], None], table: PartyTable) -> None:
    import numpy as np  # noqa: PLC0415 (a list of models hashes no table)

    for name in sorted(table.columns):
        column = table.columns[name]
        add(json.dumps([table.party, name]).encode())
        if column.dtype == object:
            add(json.dumps(column.tolist()).encode())
        else:
            add(np.ascontiguousarray(column, dtype="<f8").tobytes())
