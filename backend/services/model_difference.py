"""How sure the difference between two models is: both score the same test records, and the interval is of the difference.

Scores that are kept carry no ids (docs/decisions/scores.md), so that two models' cannot be paired: they are made again, under encryption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from backend.crypto.registry import Cipher
from backend.errors import ApprovalPending, ParameterError
from backend.evaluation.difference import paired_difference
from backend.evaluation.performance import Estimate
from backend.jobs import Job
from backend.results import ModelRecord
from backend.services.audit import DONE, of_model
from backend.services.measurement import Measurement, MeasurementContext, Sessions, drawn
from backend.services.registry import Registry
from backend.store.measurements import Kept

DIFFERENCE = "difference"  # kind of measurement, kept with the second model under the first one's id


@dataclass(frozen=True)
class DifferenceRequest:
    """Request to score some test records with two models.

    Attributes
    ----------
    before, after : str
        Ids of models that were tested on the same people.
    """

    before: str
    after: str
    samples: int = 2000
    cipher: Cipher = "paillier"
    seed: int = 7


@dataclass(frozen=True)
class ModelDifference:
    """Every figure of the second model less the first's, on `n` people whom both scored."""

    n: int
    figures: tuple[Estimate, ...]

    @classmethod
    def of(cls, models: Registry, old_model: ModelRecord, new_model: ModelRecord) -> ModelDifference | None:
        """Return what was measured of two models in either order; None if it was not."""
        measurement = models.measured(new_model, DIFFERENCE).get(old_model.id)
        sign = 1
        if measurement is None:
            measurement = models.measured(old_model, DIFFERENCE).get(new_model.id)
            sign = -1
        if measurement is None:
            return None
        estimates = [Estimate(**row) for row in measurement.rows]
        if sign < 0:
            estimates = [Estimate(f.name, -f.value, -f.high, -f.low) for f in estimates]
        return cls(int(measurement.basis["n"]), tuple(estimates))


class ModelDifferences:
    """Measures differences between models of a home."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._models = measurement.models

    def start(self, request: DifferenceRequest) -> Job[ModelDifference]:
        """Measure in the background; comparisons of the two models rest on it from then on."""
        return Job[ModelDifference](lambda job: self.measure(request, job), 1).start()

    def measure(self, request: DifferenceRequest, job: Job[Any]) -> ModelDifference:
        """Do the same within a job that is under way, and return the result.

        Raises
        ------
        ParameterError
            The two are of different federations or tasks, or were not tested on the same people.
        Cancelled, PartyUnreachable, SecurityError
            See :meth:`backend.protocols.transport.channel.Session.expect`.
        """
        old_model = self._models.get(request.before)
        new_model = self._models.get(request.after)
        if not self.can_pair(old_model, new_model):
            raise ParameterError("not_paired", before=old_model.id, after=new_model.id)
        contexts = [self._measurement.context(record) for record in (old_model, new_model)]
        rows = drawn(contexts[0], min(request.samples, len(contexts[0].test_ids)), request.seed)
        runtime = contexts[0].runtime
        sessions = Sessions(contexts[0].runtime, job, "comparisons")
        scored = []
        self._allowed(sessions, contexts, len(rows))
        for index, context in enumerate(contexts):
            at = (index * len(rows), 2 * len(rows))
            scored.append(sessions.score(context, runtime.table.take(rows), request.cipher, at=at))
        both, first, second = np.intersect1d(scored[0][0], scored[1][0], return_indices=True)
        figures = paired_difference(
            runtime.labels()[rows[both]],
            scored[0][1][first],
            scored[1][1][second],
            (contexts[0].compiled.outputs, contexts[1].compiled.outputs),
            request.seed,
        )
        measurement = Kept([asdict(figure) for figure in figures], {"n": len(both)})
        self._measurement.workspace.measurements(new_model.federation).put(
            new_model.content_hash, DIFFERENCE, old_model.id, measurement
        )
        body = {**of_model(new_model), "other": old_model.id, "numbers": len(both), "outcome": DONE}
        self._measurement.auditor.note(new_model.federation, DIFFERENCE, body)
        return ModelDifference(len(both), figures)

    @staticmethod
    def _allowed(sessions: Sessions, contexts: Sequence[MeasurementContext], people: int) -> None:
        """Have operators decide about both models at once, before anybody is counted; raises as :meth:`Sessions.allowed`."""
        waits: ApprovalPending | None = None
        for context in contexts:
            try:
                sessions.allowed(context, people)
            except ApprovalPending as pending:
                waits = waits or pending
        if waits is not None:
            raise waits

    def can_pair(self, old_model: ModelRecord, new_model: ModelRecord) -> bool:
        """Return whether both can score the same test records for the same task."""
        tested = self._models.test_ids(old_model)
        alike = (old_model.federation, old_model.task) == (new_model.federation, new_model.task)
        return alike and bool(tested) and set(tested) == set(self._models.test_ids(new_model))
