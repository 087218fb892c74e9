"""A model that another library trained becomes a federated one: read, divided between the parties, measured, registered."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from backend.crypto.plain import PlainKeySide
from backend.data.csv_file import shown
from backend.data.federation import Federation
from backend.errors import ParameterError
from backend.jobs import Job, work
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.scoring.packing import Packing
from backend.protocols.training.parameters import SCORE_BITS, SecureBoostParameters
from backend.results import IMPORT, JOINT, ModelRecord
from backend.services import audit
from backend.services.audit import Auditor, Note, recorded
from backend.services.compliance import Compliance
from backend.services.import_proof import MAX_ROWS, Proof, label_texts, prove
from backend.services.leakage import kept_to_the_rule, released
from backend.services.model_card import ModelCards, without_ids
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.trees.ensemble import GuestModel
from backend.trees.importers import read_categories, read_model
from backend.trees.importers.partition import PartialModels, split_between_parties
from backend.trees.metrics import measure
from backend.trees.serialization import content_hash, dump_guest

__all__ = ["Brought", "ModelImport", "Proof"]

# What a row of the proof takes, in rows of the scoring that measures the model; and the share of all before the scores' paths are counted.
# Measured: 1.4 and 0.9 with 30 trees and 4,000 records, 0.7 and 0.94 with 300 trees and 20,000
PROVING = 0.9
SCORED = 0.92


class Meanings(TypedDict, total=False):
    """The meanings that a model file does not state."""

    features: Sequence[str] | None  # names for the model's columns, in their order
    categories: Path | None  # JSON: feature → text of each category code
    score_bits: int
    # the label's text that a higher score speaks for; scores are turned round where it is not the positive one
    label_is: str | None


@dataclass(frozen=True)
class Brought:
    """A model file that was handed in, and what was proved of it.

    Attributes
    ----------
    federation, file : str
        Names.
    model_id : str
        Empty if it was checked only.
    """

    federation: str
    file: str
    proof: Proof
    model_id: str


class ModelImport:
    """Registers models that other libraries trained (docs/import.md)."""

    def __init__(
        self, workspace: Workspace, models: Registry, auditor: Auditor, cards: ModelCards, compliance: Compliance
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._cards = cards
        self._compliance = compliance

    @recorded("import")
    def import_file(
        self,
        note: Note,
        federation: str,
        file: Path,
        *,
        job: Job[Any] | None = None,
        most_named: float | None = None,
        **meanings: Unpack[Meanings],
    ) -> tuple[ModelRecord, Proof]:
        """Divide the model in `file` between a federation's parties; returns its record and what was proved of it.

        Parameters
        ----------
        job : Job, optional
            That is under way and does this.
        most_named : float, optional
            The largest share of scores that may identify a path; default the usual bound.

        Raises
        ------
        ModelError, ParameterError, FederationError
            See :func:`import_model`.
        ReleaseRefused
            Too many scores would identify their path.
        """
        runtime = self._workspace.runtime(federation)
        job = job or Job[None](lambda _: None, 0)
        proved = PROVING * min(MAX_ROWS, len(runtime.table.ids))
        with work.part(0.0, SCORED * proved / (proved + len(runtime.table.ids))):
            divided = divide(runtime, file, partial(_note_rows, job, len(runtime.table.ids)), **meanings)
        with work.part(SCORED * proved / (proved + len(runtime.table.ids)), SCORED):
            imported = import_model(runtime, file, divided, job)
        with work.part(SCORED, 1.0):
            measured = released(runtime, imported.record, imported.model, imported.part_of, JOINT, job)
        record = kept_to_the_rule(measured, most_named)

        def keep() -> None:
            self._models.register(record, imported.model, imported.part_of, self._auditor.person)
            self._cards.keep_scores(record, {JOINT: without_ids(imported.labels, imported.margins, None, IMPORT)})
            note.body = audit.of_training(record, audit.file_hash(file), self._compliance.pack_versions())

        note.federation = federation
        note.keep = keep
        return record, divided.proof

    def start_upload(
        self,
        federation: str,
        name: str,
        data: bytes,
        *,
        keep: bool,
        features: Sequence[str] | None = None,
        categories: bytes | None = None,
        score_bits: int = SecureBoostParameters.score_bits,
        label_is: str | None = None,
        most_named: float | None = None,
    ) -> Job[Brought]:
        """:meth:`import_file`, or :meth:`check` if nothing is to be kept, of what was handed in; in the background."""

        def run(job: Job[Brought]) -> Brought:
            with tempfile.TemporaryDirectory(prefix="glassleaf") as folder:
                file = Path(folder) / (Path(name).name or "model")
                texts = Path(folder) / "categories" / "categories.json"
                file.write_bytes(data)
                if categories is not None:
                    texts.parent.mkdir()
                    texts.write_bytes(categories)
                meanings: Meanings = {"features": features, "score_bits": score_bits, "label_is": label_is}
                meanings["categories"] = None if categories is None else texts
                if not keep:
                    return Brought(federation, file.name, self.check(federation, file, job=job, **meanings), "")
                record, proof = self.import_file(federation, file, job=job, most_named=most_named, **meanings)
                return Brought(federation, file.name, proof, record.id)

        return Job[Brought](run, 0, size=federation).start()

    def outcomes(self, federation: str) -> list[str]:
        """Return the label's texts, of which a model's higher score may speak for either; binary only."""
        return sorted(label_texts(self._workspace.federation(federation)))

    def check(self, federation: str, file: Path, *, job: Job[Any] | None = None, **meanings: Unpack[Meanings]) -> Proof:
        """Prove the model in `file` as :meth:`import_file` does, and keep nothing of it."""
        on_rows = partial(_note_rows, job or Job[None](lambda _: None, 0), 0)
        return divide(self._workspace.runtime(federation), file, on_rows, **meanings).proof


def _note_rows(job: Job[Any], more: int, n_proved: int, rows: int) -> None:
    """Note how many rows are proved; `more` are to be scored afterwards."""
    job.total = rows + more
    job.at("prove", "", n_proved)


@dataclass(frozen=True)
class Divided:
    """A model's partial models before any party has them, and what was proved of them."""

    made_by: str
    parts: PartialModels
    proof: Proof


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    Attributes
    ----------
    part_of : dict of str to str
        Id → :data:`JOINT`.
    labels, margins : ndarray of float64
        ``(n,)`` and ``(n, outputs.count)`` of the joint records.
    """

    record: ModelRecord
    model: GuestModel
    part_of: dict[str, str]
    labels: NDArray[np.float64]
    margins: NDArray[np.float64]


def divide(
    runtime: GuestRuntime, file: Path, on_rows: Callable[[int, int], None], **meanings: Unpack[Meanings]
) -> Divided:
    """Divide the model in `file` between the parties of a simulated federation, and prove it on their records.

    Raises
    ------
    ModelError
        The file or its features do not fit, or its scores are not the library's (see :func:`prove`).
    ParameterError
        `score_bits` is out of range, or `label_is` is not one of the label's two texts.
    FederationError
        Too few records are held by every party to prove and measure the model.
    """
    score_bits = meanings.get("score_bits", SecureBoostParameters.score_bits)
    label_is = meanings.get("label_is")
    categories = meanings.get("categories")
    if not SCORE_BITS[0] <= score_bits <= SCORE_BITS[1]:
        raise ParameterError("score_bits_out_of_range", bits=score_bits, least=SCORE_BITS[0], limit=SCORE_BITS[1])
    federation = runtime.federation
    whole_model = read_model(file, meanings.get("features"))
    if categories is not None:
        texts = read_categories(categories)
    else:
        texts = {}
    _check_label_is(federation, label_is)
    parts = split_between_parties(
        whole_model,
        federation.features(),
        federation.label,
        federation.guest.name,
        runtime.hosts,
        score_bits,
        texts,
        label_is,
    )
    proof = prove(
        federation,
        file,
        whole_model,
        parts,
        runtime.labels(),
        user_categories=texts.keys(),
        label_is=label_is,
        on_rows=on_rows,
    )
    return Divided(whole_model.made_by, parts, proof)


def _check_label_is(federation: Federation, label_is: str | None) -> None:
    """Raise ParameterError if the text is not one of two outcomes."""
    if label_is is None:
        return
    if federation.label.task != "binary":
        raise ParameterError("label_is_without_outcomes", found=shown(label_is), label=shown(federation.label.column))
    texts = label_texts(federation)
    if label_is not in texts:
        choices = tuple(shown(text) for text in sorted(texts))
        raise ParameterError("label_is_unknown", found=shown(label_is), choices=choices)


def import_model(runtime: GuestRuntime, file: Path, divided: Divided, job: Job[Any]) -> Imported:
    """Keep the partial models, each Host's in that Host's store, and measure the model on all joint records."""
    work.check()
    began = time.perf_counter()
    federation = runtime.federation
    partial_models = divided.parts
    score_bits = partial_models.guest.score_bits
    model = replace(partial_models.guest, outputs=partial_models.guest.outputs.for_labels(runtime.labels()))
    text = dump_guest(model)
    digest = sha256(file.read_bytes()).hexdigest()  # two files may differ in a Host's thresholds only
    model_id = f"m{content_hash(federation.name + digest + text)[:10]}"
    layout = Packing(model).layout
    hashed = content_hash(text)
    host_parts = {}
    for host, partial_model in partial_models.hosts.items():
        host_parts[host] = replace(partial_model, layout=layout, guest_hash=hashed)
    host_hashes = runtime.keep_partial_models(model_id, host_parts)
    session = runtime.open_session(runtime.hosts, job.cancelled, counted=False)
    proved = divided.proof.rows

    def on_stage(stage: str, party: str, n_done: int) -> None:
        job.at("measure", party, proved + n_done)

    try:
        compiled = CompiledGuest(model)
        scored = runtime.guest.score(model_id, compiled, runtime.table, PlainKeySide(), session, on_stage=on_stage)
    finally:
        session.close()
    held_by_all = np.logical_and.reduce([np.ones(len(runtime.table.ids), dtype=bool), *scored.has_record.values()])
    labels = runtime.labels()[held_by_all]
    margins = compiled.margins(scored.units)[held_by_all]
    metrics = measure(labels, margins, JOINT, model.outputs)
    ids = [i for i, h in zip(runtime.table.ids, held_by_all, strict=True) if h]
    record = ModelRecord(
        id=model_id,
        federation=federation.name,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        algorithm=f"imported: {divided.made_by}",
        cipher="none",
        key_bits=0,
        content_hash=content_hash(text),
        guest=federation.guest.name,
        hosts=runtime.hosts,
        n_trees=len(model.trees),
        n_leaves=model.n_leaves,
        depth=max(t.depth for t in model.trees),
        score_bits=score_bits,
        metrics=metrics,
        parameters={"file": file.name, "sha256": digest, "score_bits": score_bits},
        seconds=time.perf_counter() - began,
        parts={JOINT: len(ids)},
        curve=(),
        host_hashes=host_hashes,
        positive_rate=float(labels.mean()) if model.outputs.task == "binary" else float("nan"),
        exclude=(),
        task=model.outputs.task,
    )
    return Imported(record, model, dict.fromkeys(ids, JOINT), labels, margins)
