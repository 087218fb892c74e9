"""The validation suite on a model: run, judged, and kept until it is repeated."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from backend.errors import ParameterError
from backend.evaluation.validation.suite import (
    Again,
    Judged,
    OperatorConfig,
    Suite,
    Tested,
    Validation,
    Verdict,
    by_day,
    read_config,
    read_validation,
    standard,
    with_config,
)
from backend.evaluation.validation.words import (
    MOST_ROOM,
    about_in_words,
    headroom_used,
    limit_in_words,
    seen_in_words,
    value_in_words,
)
from backend.jobs import Job, work
from backend.results import SCORES, TRAINING, VALIDATION, ModelRecord
from backend.services.compliance import Compliance, MeasuredEvidence
from backend.services.measurement import Measurement, Sessions, asked_by
from backend.services.model_card import kept_scores
from backend.services.model_difference import ModelDifferences
from backend.services.policies import line_for
from backend.services.validation_run import ValidationRequest, ValidationRun

__all__ = [
    "MOST_ROOM",
    "Again",
    "Judged",
    "OperatorConfig",
    "Tested",
    "Validation",
    "ValidationRequest",
    "ValidationService",
    "Verdict",
    "about_in_words",
    "by_day",
    "headroom_used",
    "limit_in_words",
    "read_config",
    "seen_in_words",
    "value_in_words",
]


class ValidationService:
    """Validates models; the page and the report show the last validation of each."""

    def __init__(self, measurement: Measurement, compliance: Compliance, differences: ModelDifferences) -> None:
        self._measurement = measurement
        self._models = measurement.models
        self._compliance = compliance
        self._differences = differences

    def start(self, request: ValidationRequest) -> Job[Validation]:
        """Validate in the background; kept until it is repeated."""
        return Job[Validation](lambda job: self.run(request, job), 0).start()

    def run(self, request: ValidationRequest, job: Job[Any]) -> Validation:
        """Do the same within a job that is under way, and return the result.

        Raises
        ------
        ParameterError
            The operator's file loosens the suite, names no feature of the federation, or the challenger was not tested on the same people.
        Cancelled, SecurityError
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        suite = with_config(standard(), request.config)
        record = self._models.get(request.model_id)
        line = line_for(self._measurement.workspace, record, request.config.cutoff)
        suite = replace(suite, cutoff=line.cutoff, policy=line.version)
        run = ValidationRun(
            self._measurement.context(record),
            request,
            suite,
            Sessions(self._measurement.context(record).runtime, job, "validation"),
            job,
        )
        run.check_features()
        challenger = self._challenger(record, request)
        run.of_model()
        run.of_record()
        run.of_scores(
            {part: kept_scores(measurement) for part, measurement in self._models.measured(record, SCORES).items()}
        )
        run.of_evidence(self._protected(record, suite), MeasuredEvidence(self._models, record))
        with run.guarded("group_calibration", "weak_spots", "overfit_regions", "time", "disparity"):
            run.of_people(self._protected(record, suite), self._training_ids(record))
        with run.guarded("exactness"), work.part(0.92, 0.93):
            run.exactness()
        with run.guarded("reproducibility"), work.part(0.93, 0.94):
            run.again()
        with run.guarded("noise", "missing_feature", "host_out"):
            run.robustness()
        if challenger is not None:
            with run.guarded("swap_sets", "challenger"), work.part(0.98, 1.0):
                run.beside(self._measurement.context(challenger))
        validation = run.result(challenger.id if challenger else "")
        self._measurement.keep(record, VALIDATION, "", [asdict(validation)], {"n": validation.n})
        return validation

    def last(self, model_id: str) -> Validation | None:
        """Return a model's last validation; None if there was none."""
        return last_validation(self._measurement, self._models.get(model_id))

    def _challenger(self, record: ModelRecord, request: ValidationRequest) -> ModelRecord | None:
        if not request.challenger:
            return None
        challenger = self._models.get(request.challenger)
        if challenger.id == record.id or not self._differences.can_pair(record, challenger):
            raise ParameterError("challenger_not_comparable", challenger=challenger.id, model=record.id)
        return challenger

    def _protected(self, record: ModelRecord, suite: Suite) -> frozenset[str]:
        """Features that a rule or the operator calls protected, or that were kept out and measured for it."""
        kept_out = set()
        for row in self._compliance.kept_out(record.id):
            if row.proxies or row.disparities:
                kept_out.add(row.feature)
        return self._compliance.protected(record.id) | kept_out | frozenset(suite.attributes)

    def _training_ids(self, record: ModelRecord) -> list[str]:
        """Those training records about which a validation asks."""
        return [i for i, part in self._models.part_of(record).items() if part == TRAINING and asked_by(i) == VALIDATION]


def last_validation(measurement: Measurement, record: ModelRecord) -> Validation | None:
    """Return a model's last validation, as it is kept."""
    stored = measurement.models.measured(record, VALIDATION).get("")
    return read_validation(stored.rows[0]) if stored else None
