"""A model's card: how good it is and on whom that was measured, from labels and released scores that the Guest keeps without ids.

The Guest learned these scores in training (docs/decisions/scores.md). If none are kept, test records are scored again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.evaluation.performance import Performance, Stability, performance, stability
from backend.jobs import Job
from backend.reports.parameters import parameters_in_words
from backend.results import JOINT, PARTS, SCORES, SCORING, TRAINING, ModelRecord
from backend.services.audit import DONE, of_model
from backend.services.cache import Cache
from backend.services.measurement import Measurement, MeasurementContext, ModelRequest, Sessions, drawn
from backend.store.measurements import Kept
from backend.trees.outputs import Outputs

__all__ = ["CardRequest", "ModelCard", "ModelCards", "Performance", "parameters_in_words"]

REFERENCE = TRAINING  # the part that others are held against

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CardRequest(ModelRequest):
    """Request to score some test records again, under encryption, for a card."""

    samples: int = 2000


@dataclass(frozen=True)
class ModelCard:
    """What is known of a model's quality.

    Attributes
    ----------
    parts : tuple of Performance
        By :data:`PARTS`; the first is the one to believe. Empty if no scores are kept.
    shifts : tuple of Stability
        Other parts' predictions against those of the training rows, which the model has seen.
    sources : dict of str to str
        Part → "training" (learned while it was grown), "scoring" (scored again) or "import".
    """

    record: ModelRecord
    parts: tuple[Performance, ...]
    shifts: tuple[Stability, ...]
    sources: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the record without its curve, and every figure."""
        record = {name: value for name, value in asdict(self.record).items() if name != "curve"}
        parts = [{**asdict(part), "source": self.sources[part.part]} for part in self.parts]
        return {"model": record, "parts": parts, "shifts": [{**asdict(s), "moved": s.moved} for s in self.shifts]}


def without_ids(labels: Floats, margins: Floats, weights: Floats | None, source: str) -> Kept:
    """Labels, margins and sample weights of one part as they are kept: in the order of their values, so that no place names a person."""
    columns = [labels, margins.reshape(len(labels), -1)]
    if weights is not None:
        columns.append(weights)
    table = np.column_stack(columns)
    table = table[np.lexsort(table.T[::-1])]
    row = {"labels": table[:, 0].tolist()}
    if weights is None:
        row["margins"] = table[:, 1:].tolist()
    else:
        row["margins"] = table[:, 1:-1].tolist()
        row["weights"] = table[:, -1].tolist()
    return Kept([row], {"source": source})


def kept_scores(measurement: Kept) -> tuple[Floats, Floats, Floats | None]:
    """Return labels ``(n,)``, margins ``(n, outputs.count)`` and, if there are any, sample weights ``(n,)`` of one part."""
    row = measurement.rows[0]
    labels = np.array(row["labels"], dtype=np.float64)
    margins = np.array(row["margins"], dtype=np.float64)
    if "weights" in row:
        weights = np.array(row["weights"], dtype=np.float64)
    else:
        weights = None
    return labels, margins, weights


def make_card(record: ModelRecord, outputs: Outputs, measurements: Mapping[str, Kept]) -> ModelCard:
    """Return the card of a model from what is kept of it, part by part."""
    scores = {part: kept_scores(measurements[part]) for part in PARTS if part in measurements}
    shifts: list[Stability | None] = []
    if REFERENCE in scores:
        shifts = [
            stability(REFERENCE, scores[REFERENCE][1], part, margins, outputs)
            for part, (_, margins, _) in scores.items()
            if part != REFERENCE
        ]
    performances = []
    sources = {}
    for part, (labels, margins, weights) in scores.items():
        performances.append(performance(labels, margins, outputs, part, weights=weights))
        sources[part] = str(measurements[part].basis["source"])
    known_shifts = tuple(shift for shift in shifts if shift is not None)
    return ModelCard(record, tuple(performances), known_shifts, sources)


def measure_card(context: MeasurementContext, request: CardRequest, job: Job[Any]) -> dict[str, Kept]:
    """Score test records (any joint ones of an imported model) again; part → what is kept of it.

    Raises
    ------
    ParameterError
        There is no test record.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`backend.protocols.transport.channel.Session.expect`.
    """
    rows = drawn(context, min(request.samples, len(context.test_ids)), request.seed)
    sessions = Sessions(context.runtime, job, "card")
    scored, margins = sessions.score(context, context.runtime.table.take(rows), request.cipher)
    part = "test" if "test" in context.record.parts else JOINT
    scored_rows = rows[scored]
    weights = context.runtime.weights(context.record.weights, context.record.exclude)
    if weights is None:
        own_weights = None
    else:
        own_weights = weights[scored_rows]
    return {part: without_ids(context.runtime.labels()[scored_rows], margins, own_weights, SCORING)}


class ModelCards:
    """Cards of a home's models, each made once of the scores that are kept."""

    def __init__(self, measurement: Measurement, cards: Cache[ModelCard]) -> None:
        self._measurement = measurement
        self._models = measurement.models
        self._cards = cards

    def get(self, model_id: str) -> ModelCard:
        """Return how good a model is and on whom that was measured; without parts if no scores of it are kept."""
        record = self._models.get(model_id)
        return self._cards.get(
            record.id,
            lambda: make_card(
                record, self._models.partial_model(record).outputs, self._models.measured(record, SCORES)
            ),
        )

    def start(self, request: CardRequest) -> Job[ModelCard]:
        """Score test records again in the background; the card is made of these from then on."""

        def work(job: Job[ModelCard]) -> ModelCard:
            record = self._models.get(request.model_id)
            self.keep_scores(record, measure_card(self._measurement.context(record), request, job))
            self._measurement.auditor.note(record.federation, SCORES, {**of_model(record), "outcome": DONE})
            return self.get(record.id)

        return Job(work, 0).start()

    def keep_scores(self, record: ModelRecord, scores: Mapping[str, Kept]) -> None:
        """Keep the scores of some parts; the card is made of them from then on."""
        for part, part_scores in scores.items():
            self._measurement.workspace.measurements(record.federation).put(
                record.content_hash, SCORES, part, part_scores
            )
        self._cards.drop(record.id)  # last, so that none is made again of the scores that were there before
