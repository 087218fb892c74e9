"""Training a model again without the features that were flagged, and measuring both: same algorithm, same parameters, same records.

Nothing is mitigated by itself: a person ticks the features, and the first model stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from backend.crypto.paillier.keys import KEY_BITS
from backend.crypto.registry import Cipher
from backend.data.federation import Federation
from backend.errors import ApprovalPending, FewRecords, NotAgreed, ParameterError
from backend.fairness.marking import check_cutoff
from backend.jobs import Job, work
from backend.protocols.training.algorithms import ALGORITHMS
from backend.reports.model_comparison import SideBySide
from backend.results import ModelRecord
from backend.services.audit import Auditor, Note, recorded
from backend.services.fairness import DisparityRequest, Fairness
from backend.services.leakage import exception_of
from backend.services.model_difference import DifferenceRequest, ModelDifferences
from backend.services.policies import line_for
from backend.services.registry import Registry
from backend.services.reports import Reports
from backend.services.training import Training, TrainingRequest
from backend.services.workspace import Workspace
from backend.trees.ensemble import GuestModel

# what growing a model takes where a measurement of one takes 1, on the demo
GROWN = {"rlwe": 10.0, "paillier": 25.0, "paillier-short": 20.0}


@dataclass(frozen=True)
class RetrainingRequest:
    """A model to be retrained.

    Attributes
    ----------
    without : tuple of str
        Features to be left out, besides those that were left out already.
    by : tuple of str
        Features by whose groups decisions of both models are compared; may be left out of both, and of any party.
    cutoff : float
        ``decline`` at or above this probability of the positive label.
    cipher : {"paillier", "paillier-short", "none"}
        Of that comparison; training goes as it did.
    """

    model_id: str
    without: tuple[str, ...]
    by: tuple[str, ...] = ()
    cutoff: float | None = None
    cipher: Cipher = "paillier"
    key_bits: int = KEY_BITS

    def measured(self, model_id: str) -> tuple[DisparityRequest, ...]:
        """Return what is measured of one of the two models; records are drawn alike."""
        return tuple(
            DisparityRequest(model_id, feature, self.cutoff, cipher=self.cipher, key_bits=self.key_bits)
            for feature in self.by
        )


class Retraining:
    """Trains models again and compares."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        auditor: Auditor,
        training: Training,
        fairness: Fairness,
        differences: ModelDifferences,
        reports: Reports,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._training = training
        self._fairness = fairness
        self._differences = differences
        self._reports = reports

    def start(
        self,
        request: RetrainingRequest,
        on_wait: Callable[[str, str, ApprovalPending], None] = lambda old_model, new_model, waits: None,
    ) -> Job[SideBySide]:
        """Train a model again without some features and measure both, in the background; the first model stays.

        Once the new model is grown it is in the registry, even if the measuring after it is stopped. What a Host's operator has yet to
        allow is not measured: `on_wait` gets the two models and the Host that it waits for.
        """
        # Both models are measured at one line: the first one's.
        line = line_for(self._workspace, self._models.get(request.model_id), request.cutoff)
        request = replace(request, cutoff=line.cutoff)

        def run(job: Job[SideBySide]) -> SideBySide:
            growing = GROWN.get(self._models.get(request.model_id).cipher, 1.0)
            retrained = growing / (growing + 2 * len(request.by) + 1)
            with work.part(0.0, retrained):
                old_model, new_model = self._retrain(request, job)
            job.points = ()  # the curve is of the training, which has ended
            measures: list[Callable[[], object]] = []
            for model_id in (old_model.id, new_model.id):
                for disparity_request in request.measured(model_id):
                    measures.append(partial(self._fairness.disparity, disparity_request, job))
            if self._differences.can_pair(old_model, new_model):
                difference = DifferenceRequest(old_model.id, new_model.id, cipher=request.cipher)
                measures.append(partial(self._differences.measure, difference, job))
            share = (1 - retrained) / (len(measures) or 1)
            for i, measure in enumerate(measures):
                # the new model stays without the figure
                with work.part(retrained + i * share, retrained + (i + 1) * share), suppress(NotAgreed, FewRecords):
                    try:
                        measure()
                    except ApprovalPending as waits:
                        on_wait(old_model.id, new_model.id, waits)
            return self._reports.compare(old_model.id, new_model.id)

        return Job(run, self._models.get(request.model_id).n_trees).start()

    @recorded("retrain")
    def _retrain(self, note: Note, request: RetrainingRequest, job: Job[Any]) -> tuple[ModelRecord, ModelRecord]:
        record = self._models.get(request.model_id)
        federation = self._workspace.federation(record.federation)
        training_request = training_of(record, self._models.partial_model(record), request, federation)
        new_model = self._training.run(training_request, job, retrained_from=record.id)
        note.about(record, new_model=new_model.id, new_sha256=new_model.content_hash, without=list(request.without))
        return record, new_model


def training_of(
    record: ModelRecord, model: GuestModel, request: RetrainingRequest, federation: Federation
) -> TrainingRequest:
    """Return the training that made `record`, without some more features.

    Raises
    ------
    ParameterError
        The model was not trained here, no feature is named, or one is not the model's or the federation's.
    """
    if record.algorithm not in ALGORITHMS:
        raise ParameterError("not_trained_here", model=record.id, algorithm=record.algorithm)
    if request.by:
        check_cutoff(0.5 if request.cutoff is None else request.cutoff)
        if record.task != "binary":
            raise ParameterError("groups_need_two_outcomes", model=record.id, task=record.task)
    offered = [feature.name for _, feature in model.dictionary]
    unknown = _unknown(request.without, offered)
    if unknown:
        raise ParameterError("excluded_unknown", names=unknown, known=tuple(offered))
    if not request.without:
        raise ParameterError("exclude_one")
    in_federation = [feature.name for _, feature in federation.features()]
    unknown = _unknown(request.by, in_federation)
    if unknown:
        raise ParameterError("compared_unknown", names=unknown, known=tuple(in_federation))
    parameter_values: dict[str, Any] = dict(record.parameters)
    parameters = ALGORITHMS[record.algorithm](**parameter_values)
    exclude = tuple(dict.fromkeys((*record.exclude, *request.without)))
    return TrainingRequest(record.federation, parameters, record.hosts, exclude, exception_of(record))


def _unknown(names: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    """Return the names that are not among the known ones."""
    return tuple(name for name in names if name not in offered)
