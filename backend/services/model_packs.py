"""A model moves: one party's half, with its policy, approvals and signatures, into one file and into another home of the same party.

Nothing of another party is in it: the Guest's holds no threshold of a Host, a Host's no label and no leaf weight.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from backend import __version__
from backend.data.federation import Federation
from backend.data.table import records_version
from backend.errors import SecurityError
from backend.results import ModelRecord, read_record
from backend.services.audit import Auditor, Note, recorded
from backend.services.pack_files import HomeKeys, Label, Passphrase, home_keys, packed, unpacked
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.store.guest_rows import guest_rows, write_guest_rows
from backend.store.model_rows import Rows
from backend.trees.serialization import load_guest

if TYPE_CHECKING:
    from backend.trees.ensemble import GuestModel

__all__ = ["ModelPacks", "Unpacked"]


@dataclass(frozen=True)
class Unpacked:
    """A model that was registered from a pack.

    Attributes
    ----------
    hosts : tuple of str
        Hosts that own a split: they answer about the model if it is known to them, and their approvals are theirs.
    simulated : bool
        Whether they are simulated in this home, so that their halves move, too.
    """

    record: ModelRecord
    hosts: tuple[str, ...]
    simulated: bool


class ModelPacks:
    """The Guest's halves of models, packed and unpacked."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor

    def keys(self, federation: str) -> HomeKeys:
        """Return the public keys of the Guest's home, for one who packs a model for it, or unpacks one of it."""
        return home_keys(self._workspace.guest_folder(federation), self._workspace.signing_key(federation))

    @recorded("pack")
    def pack(self, note: Note, model_id: str, key: Passphrase | str) -> bytes:
        """Return a pack of the Guest's half of a model; the model stays.

        Parameters
        ----------
        key : Passphrase or str
            Or the public key of the home that is to open it, in hexadecimal.

        Raises
        ------
        ParameterError
            If the model does not exist, the passphrase is too short, or the key is not a public key.
        """
        record = self._models.get(model_id)
        name = record.federation
        note.about(record)
        with self._workspace.database(name).read() as session:
            rows = guest_rows(session, record.id, record.content_hash)
        label = self._label(name, record.id)
        file = packed(label, self._records(name), rows, self._workspace.signing_key(name), key)
        note.body["pack_sha256"] = sha256(file).hexdigest()
        return file

    @recorded("unpack")
    def unpack(
        self, note: Note, federation: str, file: bytes, passphrase: Passphrase | None = None, sender: str = ""
    ) -> Unpacked:
        """Register a model from a pack of the same Guest; nothing is written unless all of it is.

        Parameters
        ----------
        sender : str
            Public signing key of the home that packed, if it is another than this home's, in hexadecimal.

        Raises
        ------
        ParameterError, SecurityError
            See :func:`backend.services.pack_files.unpacked`; or the model is here already, or is not one of this federation.
        """
        about = self._workspace.federation(federation)
        name = about.name
        note.federation = name
        note.body = {"pack_sha256": sha256(file).hexdigest()}
        folder = self._workspace.guest_folder(name)
        label, rows = unpacked(file, self._label(name, ""), folder, passphrase, sender, partial(self._records, name))
        record, model = _checked(label, rows, about)
        note.about(record, pack_sha256=sha256(file).hexdigest(), sender=label.sender)

        def keep() -> None:
            with self._workspace.database(name).write() as session:
                write_guest_rows(session, rows, record.id, record.content_hash)

        note.keep = keep
        owners = {split.owner for tree in model.trees for split in tree.splits.values()}
        hosts = tuple(host for host in model.hosts if host in owners)
        return Unpacked(record, hosts, about.link is None)

    def _label(self, federation: str, model_id: str) -> Label:
        return Label(
            version=__version__,
            role="guest",
            federation=federation,
            party=self._workspace.federation(federation).guest.name,
            model=model_id,
            sender=self._workspace.signing_key(federation).public,
        )

    def _records(self, federation: str) -> str:
        """Return the version of the Guest's records."""
        about = self._workspace.federation(federation)
        content = sha256((about.folder / about.guest.file).read_bytes()).hexdigest()
        return records_version(content, about.guest.features)


def _checked(label: Label, rows: Rows, federation: Federation) -> tuple[ModelRecord, GuestModel]:
    """Return record and partial model of a pack, which have to fit each other and the federation.

    Raises
    ------
    SecurityError
        If they do not.
    """
    try:
        texts = {row["model_id"]: row["text"] for row in rows["artefacts"]}
        record = read_record(json.loads(rows["records"][0]["body"]))
        model = load_guest(texts[label.model])
        fits = record.id == label.model and sha256(texts[label.model].encode()).hexdigest() == record.content_hash
        fits = fits and len(rows["records"]) == len(rows["model_states"]) == 1
    except (KeyError, IndexError, TypeError, ValueError):
        raise SecurityError("pack_not_opened") from None
    known_features = {(party, feature.name) for party, feature in federation.features()}
    used_features = {(party, feature.name) for party, feature in model.dictionary}
    if not fits or record.federation != federation.name:
        raise SecurityError("pack_not_opened")
    if not used_features <= known_features:
        names = tuple(sorted(name for _, name in used_features - known_features))
        raise SecurityError("pack_of_other_federation", federation=federation.name, names=names)
    return record, model
