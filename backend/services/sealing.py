"""Trained models whose scores tell too much: kept sealed at every party, changed within their approval, measured again, then opened or not.

Only a simulation measures before a model is used, since it takes what all Hosts hold; models of Hosts at their own companies are not
sealed, and are said not to be measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from backend.crypto.plain import PlainKeySide
from backend.errors import GlassleafError, ModelError, ReleaseRefused
from backend.jobs import Job
from backend.protocols.approvals.messages import NOT_MEASURED
from backend.protocols.guest_runtime import GuestRuntime
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.sealing.guest import at_bits
from backend.protocols.training.algorithms import ALGORITHMS, Parameters
from backend.protocols.training.guest import Scores, Trained, model_name
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import TRAINING, ModelRecord, read_record
from backend.services import audit
from backend.services.audit import Auditor, Note
from backend.services.compliance import Compliance
from backend.services.leakage import MAX_IDENTIFYING, finest, kept_to_the_rule, released
from backend.services.model_card import ModelCards, without_ids
from backend.services.registry import Registry, parts_of
from backend.services.workspace import Workspace
from backend.store.database import timestamp
from backend.store.sealed_models import SealedModel
from backend.trees.ensemble import GuestModel
from backend.trees.metrics import measure
from backend.trees.serialization import content_hash, dump_guest, load_guest


@dataclass(frozen=True)
class Sealed:
    """A sealed model as its maker sees it.

    Attributes
    ----------
    record : ModelRecord
        As it will be registered, with what its scores tell.
    allowed : float
        Share of scores that may fit one path.
    bits : int or None
        The finest resolution at which no larger share does; None if the coarsest does, too.
    trees : int
        Rounds that have grown.
    approved_trees : int
        That may grow within the approval; no more than `trees` if this algorithm's trees cannot grow on.
    approved : Parameters
        What Hosts have allowed.
    """

    record: ModelRecord
    allowed: float
    bits: int | None
    trees: int
    approved_trees: int
    approved: Parameters


@dataclass(frozen=True, repr=False)
class Candidate:
    """A model that was trained, before anybody may use it.

    Attributes
    ----------
    sealed_as : str
        Its name at the Hosts.
    part_of : mapping of str to str
        Id of a joint record → its part.
    approved : Parameters
        What Hosts were asked to allow.
    most_named : float or None
        Share of scores that may fit one path; None = the usual bound.
    scores : Scores
        Of some parts, for its card.
    asked_bits : int or None
        Resolution that was trained for, if a coarser one was chosen since.
    """

    record: ModelRecord
    model: GuestModel
    sealed_as: str
    part_of: Mapping[str, str]
    approved: Parameters
    most_named: float | None
    scores: Scores
    asked_bits: int | None = None

    @property
    def asked_at(self) -> float:
        """Share that Hosts were told before they approved."""
        if self.most_named is None:
            return MAX_IDENTIFYING
        return self.most_named


def candidate_of(record: ModelRecord, trained: Trained, approved: Parameters, most_named: float | None) -> Candidate:
    """Return what a training has made, which Hosts keep sealed under its own name."""
    return Candidate(record, trained.model, record.id, trained.part_of, approved, most_named, trained.scores)


class Sealing:
    """Opens models, or keeps them sealed."""

    def __init__(
        self, workspace: Workspace, models: Registry, auditor: Auditor, cards: ModelCards, compliance: Compliance
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._cards = cards
        self._compliance = compliance

    def of_maker(self, federation: str) -> tuple[Sealed, ...]:
        """Return the sealed models of a federation that the acting person has trained, newest first."""
        sealed_models = self._workspace.sealed_models(federation).of(self._auditor.person)
        return tuple(self._shown(sealed) for sealed in sealed_models)

    def _shown(self, sealed: SealedModel) -> Sealed:
        record = read_record(json.loads(json.dumps(sealed.body)))
        if record.release is None:
            bits = None
        else:
            bits = finest(record.release, sealed.allowed)
        parameter_values: dict[str, Any] = dict(record.parameters)
        approved = ALGORITHMS[record.algorithm](**parameter_values)
        # Early stopping may have kept fewer than were grown.
        trees = record.n_trees // max(1, len(self._workspace.federation(record.federation).label.classes))
        if isinstance(approved, SecureBoostParameters):
            approved = replace(approved, trees=sealed.approved_trees)
            return Sealed(record, sealed.allowed, bits, trees, sealed.approved_trees, approved)
        return Sealed(record, sealed.allowed, bits, trees, trees, approved)

    def settle(
        self,
        candidate: Candidate,
        job: Job[Any],
        note: Note,
        on_registered: Callable[[], None] = lambda: None,
        instead_of: str = "",
    ) -> ModelRecord:
        """Open a model that keeps to the rule, and register it once the note is written; keep another one sealed.

        Parameters
        ----------
        on_registered : callable
            Called when the model is registered.
        instead_of : str
            The sealed model that it has grown from, which is forgotten.

        Raises
        ------
        ReleaseRefused
            If too many of its scores fit one path: it is kept sealed.
        GlassleafError
            If a Host does not open its half: it is kept sealed, too.
        """
        runtime = self._workspace.runtime(candidate.record.federation)
        # Asked of the Hosts by the name under which they keep it.
        sealed_record = replace(candidate.record, id=candidate.sealed_as)
        measured = replace(
            released(runtime, sealed_record, candidate.model, candidate.part_of, "validation", job),
            id=candidate.record.id,
        )
        if measured.release is not None:
            measured = replace(measured, release=replace(measured.release, asked_bits=candidate.asked_bits))
        try:
            record = kept_to_the_rule(measured, candidate.most_named)
            record = self._opened(runtime, replace(candidate, record=record))
        except GlassleafError as error:
            if runtime.simulated and measured.release is not None:
                self._keep_sealed(replace(candidate, record=measured), instead_of)
                if isinstance(error, ReleaseRefused):
                    error.sealed_as = candidate.sealed_as
            raise
        opened = replace(candidate, record=record)

        def keep() -> None:
            self._register(opened, job, note)
            self._workspace.sealed_models(record.federation).drop(instead_of)
            on_registered()

        note.keep = keep
        return record

    @staticmethod
    def _opened(runtime: GuestRuntime, candidate: Candidate) -> ModelRecord:
        """Have every Host open its half; return the record with their hashes."""
        record = candidate.record
        if not runtime.simulated or not record.hosts:
            return record
        naming_share = NOT_MEASURED[0]
        if record.release is not None and record.release.measurable:
            naming_share = record.release.named
        terms = candidate.approved, record.exclude, candidate.asked_at
        hashes = runtime.open_model(record.hosts, terms, candidate.sealed_as, record.id, candidate.model, naming_share)
        return replace(record, host_hashes=hashes)

    def _keep_sealed(self, candidate: Candidate, instead_of: str) -> None:
        """Keep what opening it later needs, unless the same model is registered already."""
        record = candidate.record
        if record.id != candidate.sealed_as:
            return  # coarser bits that did not do: what is sealed stays as it is
        if record.id in {model.id for model in self._models.all(record.federation)}:
            return
        store = self._workspace.guest_store(record.federation)
        trees = int(str(candidate.approved.as_dict().get("trees", 1)))
        sealed = SealedModel(record.id, self._auditor.person, timestamp(), asdict(record), trees, candidate.asked_at)
        with self._workspace.database(record.federation).write():
            store.put_artefact(parts_of(record), json.dumps(dict(candidate.part_of)))
            store.put_artefact(record.id, dump_guest(candidate.model))
            self._workspace.sealed_models(record.federation).put(sealed)
            self._workspace.sealed_models(record.federation).drop(instead_of)

    def _register(self, candidate: Candidate, job: Job[Any], note: Note) -> None:
        record = candidate.record
        sealed = self._workspace.sealed_models(record.federation)
        self._models.register(record, candidate.model, candidate.part_of, self._auditor.person)
        for name in {record.id, candidate.sealed_as}:
            sealed.drop(name)
        scores = {}
        for part, part_scores in candidate.scores.items():
            scores[part] = without_ids(*part_scores, TRAINING)
        self._cards.keep_scores(record, scores)
        digest = audit.federation_hash(self._workspace.federation(record.federation))
        note.body = audit.of_training(record, digest, self._compliance.pack_versions(), job.transcript)

    def candidate(self, federation: str, model_id: str) -> Candidate:
        """Return a sealed model of the acting person, to be changed or measured again.

        Raises
        ------
        ModelError
            If no such model is sealed, or another person has trained it.
        """
        own_models = self._workspace.sealed_models(federation).of(self._auditor.person)
        sealed_models = {sealed_model.model_id: sealed_model for sealed_model in own_models}
        if model_id not in sealed_models:
            raise ModelError("unknown_sealed_model", model=model_id, known=tuple(sealed_models))
        sealed = self._shown(sealed_models[model_id])
        record = sealed.record
        store = self._workspace.guest_store(federation)
        model = load_guest(store.artefact(model_id))
        part_of = json.loads(store.artefact(parts_of(record)))
        if record.release is None:
            asked_bits = None
        else:
            asked_bits = record.release.asked_bits
        return Candidate(record, model, model_id, part_of, sealed.approved, sealed.allowed, {}, asked_bits)

    def discard(self, federation: str, model_id: str) -> None:
        """Delete a sealed model of the acting person; the Hosts' halves stay sealed. Raises as :meth:`candidate`."""
        self.candidate(federation, model_id)
        with self._workspace.database(federation).write():
            self._workspace.sealed_models(federation).drop(model_id)
            self._workspace.guest_store(federation).drop(model_id)

    def at_bits(self, candidate: Candidate, bits: int) -> Candidate:
        """Return the same trees with scores of `bits` bits; test records are scored again, in the clear as a simulation measures."""
        old_record = candidate.record
        runtime = self._workspace.runtime(old_record.federation)
        model = at_bits(candidate.model, bits)
        row_of = runtime.table.row_of
        test = []
        for i, part in candidate.part_of.items():
            if part == "test" and i in row_of:
                test.append(row_of[i])
        rows = np.array(test, dtype=np.intp)
        compiled = CompiledGuest(model)
        session = runtime.open_session(old_record.hosts, counted=False)
        try:
            test_table = runtime.table.take(rows)
            scored = runtime.guest.score(candidate.sealed_as, compiled, test_table, PlainKeySide(), session)
        finally:
            session.close()
        labels = runtime.labels()[rows]
        margins = compiled.margins(scored.units)
        counts = runtime.weights(candidate.approved.weights, old_record.exclude)
        weights = None if counts is None else counts[rows]
        record = replace(
            old_record,
            id=model_name(old_record.federation, model),
            content_hash=content_hash(dump_guest(model)),
            score_bits=bits,
            parameters={**old_record.parameters, "score_bits": bits},
            metrics=measure(labels, margins, "test", model.outputs, weights),
        )
        asked_bits = candidate.asked_bits
        if bits < old_record.score_bits and asked_bits is None:
            asked_bits = old_record.score_bits
        scores: Scores = {"test": (labels, margins, weights)}
        return replace(candidate, record=record, model=model, scores=scores, asked_bits=asked_bits)
