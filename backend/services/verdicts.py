"""The verdict of a model and the comparison of two, as every page, report, notice and command reads them."""

from __future__ import annotations

from backend.evaluation.validation.monitoring import read_monitored
from backend.evaluation.validation.suite import read_validation
from backend.reports.model_comparison import quality_figures
from backend.reports.verdict.comparison import Change, Changes, Way, change_facts, changes
from backend.reports.verdict.facts import STATES, Fact, Figure, State, Verdict
from backend.reports.verdict.judge import judge
from backend.reports.verdict.known import Known, has_meaning
from backend.results import MONITORING, VALIDATION, ModelRecord
from backend.services.compliance import Compliance, MeasuredEvidence
from backend.services.explanation import Explanation
from backend.services.model_card import ModelCards
from backend.services.model_difference import ModelDifference
from backend.services.policies import policy_of
from backend.services.registry import Registry
from backend.services.workspace import Workspace

__all__ = [
    "STATES",
    "Change",
    "Changes",
    "Fact",
    "Figure",
    "State",
    "Verdict",
    "Verdicts",
    "Way",
    "has_meaning",
]


class Verdicts:
    """Judges the models of a home by what is stored about them; asks no Host."""

    def __init__(
        self,
        workspace: Workspace,
        models: Registry,
        compliance: Compliance,
        explanation: Explanation,
        cards: ModelCards,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._compliance = compliance
        self._explanation = explanation
        self._cards = cards

    def of(self, model_id: str) -> Verdict:
        """Return what is true of a model, the worst first, with what it changed against the model that it replaces."""
        record = self._models.get(model_id)
        known = self._known(record)
        before, _ = self._models.lineage(record.id)
        if before is None:
            return judge(known)
        found = self._changes(self._known(before), known)
        name = self._workspace.model_states(record.federation).of(before.id).name
        return judge(known, change_facts(found, name or before.id))

    def compare(self, first: str, second: str) -> Changes:
        """Return what is better and what is worse in the second of two models of one federation."""
        before = self._known(self._models.get(first))
        after = self._known(self._models.get(second))
        return self._changes(before, after)

    def _changes(self, before: Known, after: Known) -> Changes:
        paired = ModelDifference.of(self._models, before.record, after.record)
        estimates = paired.figures if paired else ()
        figures = quality_figures(
            before.record, after.record, (_intervals(before), _intervals(after)), {one.name: one for one in estimates}
        )
        return changes(before, after, figures, (judge(before), judge(after)))

    def _known(self, record: ModelRecord) -> Known:
        """Collect what is known about a model."""
        federation = self._workspace.federation(record.federation)
        model = self._models.partial_model(record)
        evidence = MeasuredEvidence(self._models, record)
        validation = self._models.measured(record, VALIDATION)
        monitored = self._models.measured(record, MONITORING)
        parts = self._cards.get(record.id).parts
        features = {feature.name: feature for _, feature in (*federation.features(), *model.dictionary)}
        splits = {row.feature: row.splits for row in self._explanation.importance(record.id)}
        return Known(
            record=record,
            features=features,
            offered=model.dictionary,
            splits=splits,
            titles={party.name: party.title for party in (federation.guest, *federation.hosts)},
            compliance=self._compliance.assess(record.id),
            reviews=self._workspace.reviews(record.federation).standing(record.content_hash),
            directions=self._explanation.directions(record.id),
            disparities=evidence.disparities,
            proxies=evidence.proxies,
            bases=evidence.bases,
            validation=read_validation(validation[""].rows[0]) if validation else None,
            monitored=read_monitored(monitored[""].rows[0]) if monitored else None,
            quality=parts[0] if parts else None,
            policy=policy_of(self._workspace, record),
        )


def _intervals(known: Known) -> dict[str, tuple[float, float]]:
    """Return the interval of each figure of quality on the records that the model's own figures are of."""
    if known.quality is None or known.quality.part != known.record.metrics.part:
        return {}
    return {figure.name: (figure.low, figure.high) for figure in known.quality.figures}
