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
        model_facts = self._known(record)
        predecessor, _ = self._models.lineage(record.id)
        if predecessor is None:
            return judge(model_facts)
        differences = self._changes(self._known(predecessor), model_facts)
        name = self._workspace.model_states(record.federation).of(predecessor.id).name
        return judge(model_facts, change_facts(differences, name or predecessor.id))

    def compare(self, first: str, second: str) -> Changes:
        """Return what is better and what is worse in the second of two models of one federation."""
        first_facts = self._known(self._models.get(first))
        second_facts = self._known(self._models.get(second))
        return self._changes(first_facts, second_facts)

    def _changes(self, old_facts: Known, new_facts: Known) -> Changes:
        paired = ModelDifference.of(self._models, old_facts.record, new_facts.record)
        estimates = paired.figures if paired else ()
        by_name = {estimate.name: estimate for estimate in estimates}
        intervals = (_intervals(old_facts), _intervals(new_facts))
        figures = quality_figures(old_facts.record, new_facts.record, intervals, by_name)
        return changes(old_facts, new_facts, figures, (judge(old_facts), judge(new_facts)))

    def _known(self, record: ModelRecord) -> Known:
        """Collect what is known about a model."""
        federation = self._workspace.federation(record.federation)
        model = self._models.partial_model(record)
        evidence = MeasuredEvidence(self._models, record)
        validation = self._models.measured(record, VALIDATION)
        monitored = self._models.measured(record, MONITORING)
        parts = self._cards.get(record.id).parts
        features = {}
        for _, feature in (*federation.features(), *model.dictionary):
            features[feature.name] = feature
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


def _intervals(model_facts: Known) -> dict[str, tuple[float, float]]:
    """Return the interval of each figure of quality on the records that the model's own figures are of."""
    if model_facts.quality is None or model_facts.quality.part != model_facts.record.metrics.part:
        return {}
    return {figure.name: (figure.low, figure.high) for figure in model_facts.quality.figures}
