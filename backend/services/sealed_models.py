"""Ways on for the maker of a sealed model: choose coarser scores, let trees go on growing, or have it measured again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from backend.errors import ParameterError
from backend.jobs import Job
from backend.protocols.training.parameters import SecureBoostParameters
from backend.results import ModelRecord
from backend.services.audit import Auditor, Note, recorded
from backend.services.leakage import finest
from backend.services.sealing import Candidate, Sealed, Sealing, candidate_of
from backend.services.training import TrainingRequest, forget, train
from backend.services.workspace import Workspace

LEAST_BITS = 4  # as a Host insists on: dither needs room


class SealedModels:
    """Changes sealed models and has them measured again; each is opened as soon as it keeps to the rule."""

    def __init__(self, workspace: Workspace, auditor: Auditor, sealing: Sealing) -> None:
        self._workspace = workspace
        self._auditor = auditor
        self._sealing = sealing

    def all(self, federation: str) -> tuple[Sealed, ...]:
        """Return the sealed models of a federation that the acting person has trained, newest first."""
        return self._sealing.of_maker(federation)

    def discard(self, federation: str, model_id: str) -> None:
        """Delete a sealed model of the acting person."""
        self._sealing.discard(federation, model_id)

    def start_coarser(self, federation: str, model_id: str, bits: int | None = None) -> Job[ModelRecord]:
        """Round the scores to fewer bits at the Guest alone, in the background; without `bits` to the finest that keep to the rule."""
        return self._started(partial(self._coarsen, federation, model_id, bits))

    def start_growing(self, federation: str, model_id: str, trees: int) -> Job[ModelRecord]:
        """Let trees go on growing, in the background, until there are `trees` rounds of them."""
        job = Job[ModelRecord](lambda job: self._grow_on(federation, model_id, trees, job), trees)
        return job.start()

    def start_measuring(self, federation: str, model_id: str) -> Job[ModelRecord]:
        """Measure again, in the background: the Hosts may add wider dither now."""
        return self._started(partial(self._measure_again, federation, model_id))

    @staticmethod
    def _started(work: Callable[[Job[ModelRecord]], ModelRecord]) -> Job[ModelRecord]:
        return Job[ModelRecord](work, 0).start()

    @recorded("train")
    def _coarsen(
        self, note: Note, federation: str, model_id: str, bits: int | None, job: Job[ModelRecord]
    ) -> ModelRecord:
        """Raise ParameterError if the bits are unknown or not fewer, ReleaseRefused if they are still too many."""
        note.federation = federation
        sealed = self._sealing.candidate(federation, model_id)
        release = sealed.record.release
        if bits is None and release is not None:
            bits = finest(release, sealed.asked_at)
        if bits is None:
            raise ParameterError("no_coarser_scores", model=model_id)
        finer = sealed.record.score_bits
        if not LEAST_BITS <= bits < finer:
            raise ParameterError("scores_not_coarser", bits=bits, least=LEAST_BITS, most=finer - 1)
        return self._settle(self._sealing.at_bits(sealed, bits), job, note)

    @recorded("train")
    def _measure_again(self, note: Note, federation: str, model_id: str, job: Job[ModelRecord]) -> ModelRecord:
        note.federation = federation
        sealed = self._sealing.candidate(federation, model_id)
        return self._settle(self._sealing.at_bits(sealed, sealed.record.score_bits), job, note)

    @recorded("train")
    def _grow_on(self, note: Note, federation: str, model_id: str, trees: int, job: Job[ModelRecord]) -> ModelRecord:
        """Raise ParameterError if this algorithm's trees cannot grow on, or more are wanted than were approved."""
        note.federation = federation
        by_id = {sealed_model.record.id: sealed_model for sealed_model in self.all(federation)}
        sealed = self._sealing.candidate(federation, model_id)
        parameters = sealed.approved
        if not isinstance(parameters, SecureBoostParameters):
            raise ParameterError("trees_cannot_grow_on", algorithm=parameters.ALGORITHM)
        min_trees = 1 + by_id[model_id].trees
        if not min_trees <= trees <= parameters.trees:
            raise ParameterError("trees_not_approved", trees=trees, least=min_trees, most=parameters.trees)
        # The trees are those that were approved; all that are wanted are kept, whatever early stopping would say.
        request = replace(
            _request(sealed),
            parameters=replace(parameters, trees=trees, early_stopping=0),
            approved_trees=parameters.trees,
        )
        runtime = self._workspace.runtime(federation)
        record, trained = train(runtime, request, job, sealed_at=sealed.asked_at)
        more = candidate_of(record, trained, request.approved, request.most_named)
        return self._sealing.settle(more, job, note, lambda: forget(runtime, request), instead_of=model_id)

    def _settle(self, candidate: Candidate, job: Job[ModelRecord], note: Note) -> ModelRecord:
        runtime = self._workspace.runtime(candidate.record.federation)
        return self._sealing.settle(candidate, job, note, lambda: forget(runtime, _request(candidate)))


def _request(sealed: Candidate) -> TrainingRequest:
    """Return the training that made a sealed model."""
    record = sealed.record
    return TrainingRequest(record.federation, sealed.approved, record.hosts, record.exclude, sealed.most_named)
