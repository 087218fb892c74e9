"""What the audit log says about a piece of work: hashes, counts and versions; never a value, a score, a label or an id.

Each body carries a random salt: a Host is told an entry's hash, and without a salt it could try values of one person until the hash fits.
"""

from __future__ import annotations

import getpass
import json
import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from backend.data.federation import Federation
from backend.data.table import PartyTable, SampleSheet
from backend.errors import GlassleafError
from backend.protocols.transport.channel import TranscriptEntry
from backend.results import ModelRecord, ScoreBatch
from backend.services.workspace import Workspace
from backend.store.audit_log import Entry, Verdict

OPERATOR, ANALYST, REGULATOR = ROLES = ("operator", "analyst", "regulator")
DONE = "done"
_log = logging.getLogger("glassleaf")


def system_user() -> str:
    """The name that the operating system knows this process's user by; ``unknown`` where it has none."""
    try:
        return getpass.getuser()
    except OSError:
        return "unknown"


@dataclass(frozen=True)
class Auditor:
    """Writes for one actor in one role.

    Attributes
    ----------
    catalogue : Workspace
    actor, role : str
    """

    catalogue: Workspace
    actor: str
    role: str

    def note(self, federation: str, action: str, body: Mapping[str, Any], *, tell: bool = True) -> Entry:
        """Write an entry; unless `tell` is False, tell every Host that is up where the log stands now.

        A Host that is down or busy stops nothing: it keeps an older head, which still witnesses all entries up to it.
        """
        log = self.catalogue.audit_log(federation)
        salted = {**body, "salt": secrets.token_hex(16)}
        entry = log.add(action, salted, self.actor, self.role)
        if tell:
            try:
                self.catalogue.runtime(federation).tell_audit_head(log.head())
            except GlassleafError as error:
                _log.warning("A Host has not confirmed entry %d of the audit log: %s", entry.number, error)
        return entry

    @contextmanager
    def noting_failure(self, federation: str, action: str, body: Mapping[str, Any]) -> Iterator[None]:
        """Write an entry for work that was stopped or failed, with the error's type; what succeeds writes its own."""
        try:
            yield
        except Exception as error:
            self.note(federation, action, {**body, "outcome": type(error).__name__})
            raise

    def verify(self, federation: str) -> Verdict:
        """Check the chain, against the heads that the Hosts keep too."""
        heads = self.catalogue.runtime(federation).audit_heads()
        return self.catalogue.audit_log(federation).verify({host: h for host, h in heads.items() if h.number})


def of_model(record: ModelRecord) -> dict[str, Any]:
    """Which model."""
    return {"model": record.id, "model_sha256": record.content_hash}


def of_training(
    record: ModelRecord, input_sha256: str, packs: Mapping[str, str], transcript: Iterable[TranscriptEntry] = ()
) -> dict[str, Any]:
    """A model that was grown or imported."""
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
        "outcome": DONE,
    }


def of_scoring(
    record: ModelRecord, batch: ScoreBatch, input_sha256: str, packs: Mapping[str, str], counted: bool
) -> dict[str, Any]:
    """Samples that were scored; `counted` = against the Hosts' budgets."""
    failed = sum(score.status == "failed" for score in batch.scores)
    return {
        **of_model(record),
        "rows": len(batch.scores),
        "failed": failed,
        "cipher": batch.cipher,
        "key_bits": batch.key_bits,
        "counted": counted,
        "traffic": traffic(batch.transcript),
        "input_sha256": input_sha256,
        "rule_packs": dict(packs),
        "outcome": DONE,
    }


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
    for name in sorted(table.columns):
        column = table.columns[name]
        add(json.dumps([table.party, name]).encode())
        if column.dtype == object:
            add(json.dumps(column.tolist()).encode())
        else:
            add(np.ascontiguousarray(column, dtype="<f8").tobytes())
