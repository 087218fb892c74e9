"""What the rule packs say of a model, with the evidence that was measured of it; and the packs themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from backend.compliance.assessment import (
    DISPARITY,
    ELDERLY,
    PROXIES,
    ComplianceReport,
    Examined,
    Finding,
    Question,
    assess,
    with_evidence,
    wording,
)
from backend.compliance.calendar import LawCalendar, LawDate, law_calendar
from backend.compliance.feature_list import read_feature_list
from backend.compliance.rule_pack import (
    RulePack,
    add_rule_pack,
    built_in_versions,
    load_packs,
    read_own_packs,
    read_rule_pack,
)
from backend.data.dictionary import MAX_MEANING, Feature
from backend.data.federation import PLACES, PRODUCTS, Place, Product
from backend.explain.importance import feature_importance
from backend.fairness.age_discrimination import read_check
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import Text
from backend.protocols.group_sums.grouping import features_of
from backend.remark import Remark
from backend.results import ModelRecord
from backend.services.audit import Auditor, is_maker
from backend.services.registry import Registry
from backend.services.workspace import Workspace
from backend.store.measurements import Kept
from backend.store.reviews import Review

if TYPE_CHECKING:
    from backend.compliance.recall import RecallTotals

__all__ = [
    "Compliance",
    "ComplianceReport",
    "Finding",
    "LawCalendar",
    "LawDate",
    "MeasuredEvidence",
    "Question",
    "read_rule_pack",
    "wording",
]

RULES = "rules"  # the folder of custom rule packs, below the home
PROTECTED = ("prohibited", "conditional")  # status of a rule that makes a feature a protected one


class MeasuredEvidence:
    """What was measured of a model: proxies, disparities and what each was measured on, by feature.

    Attributes
    ----------
    bases : dict of (claim, feature) to Basis
        Where it was kept; also of what was not measured because a Host has not agreed.
    """

    def __init__(self, models: Registry, record: ModelRecord) -> None:
        measurements = {claim: models.measured(record, claim) for claim in (PROXIES, DISPARITY, ELDERLY)}
        self.proxies = _rows(measurements[PROXIES])
        self.disparities = _rows(measurements[DISPARITY])
        self.ages = {
            name: read_check(measurement.rows[0])
            for name, measurement in measurements[ELDERLY].items()
            if measurement.rows
        }
        self.bases: dict[tuple[str, str], Basis] = {}
        for claim, by_feature in measurements.items():
            for feature, measurement in by_feature.items():
                if measurement.basis:
                    self.bases[claim, feature] = Basis(**measurement.basis)


def prepare() -> None:
    """Load the rule packs and compile their words, which a process does once and the first assessment would wait for."""
    assess((("guest", Feature(name="income", meaning=Text("Income"))),), {})


class Compliance:
    """Assesses models."""

    def __init__(self, workspace: Workspace, models: Registry, auditor: Auditor) -> None:
        self._workspace = workspace
        self._models = models
        self._auditor = auditor
        self._rules = workspace.home / RULES

    def assess(self, model_id: str) -> ComplianceReport:
        """Findings of the rule packs on the disclosed dictionary, with their evidence in the model."""
        record = self._models.get(model_id)
        evidence = MeasuredEvidence(self._models, record)
        return with_evidence(
            self._assessed(record), evidence.proxies, evidence.disparities, evidence.bases, evidence.ages
        )

    def _assessed(self, record: ModelRecord) -> ComplianceReport:
        """Return what the rules say of a model today, worked out once for a model, a day, a set of rules and what was answered."""
        custom_packs, problems = read_own_packs(self._rules)
        day = date.today()
        rules = tuple(pack.model_dump_json() for pack in custom_packs)
        answers = self._answers(record)
        places, product = self.law_of(record)

        def make() -> ComplianceReport:
            model = self._models.partial_model(record)
            usage = {row.feature: row for row in feature_importance(model)}
            packs = (*load_packs(), *custom_packs)
            return assess(
                model.dictionary,
                usage,
                packs,
                on=day,
                problems=problems,
                answers=answers,
                places=places,
                product=product,
            )

        answer_numbers = frozenset(answer.number for answer in answers.values())
        return self._models.derived(("findings", day, rules, problems, answer_numbers, places, product), record, make)

    def law_of(self, record: ModelRecord) -> tuple[tuple[Place, ...], Product | Literal[""]]:
        """Return where a model's people live and what it is for: the model's own, else its federation's."""
        federation = self._workspace.federation(record.federation)
        state = self._workspace.model_states(record.federation).of(record.id)
        place_names = state.places.split(",") if state.places else ()
        places = tuple(place for place in PLACES if place in place_names)
        product: Product | Literal[""] = next((candidate for candidate in PRODUCTS if candidate == state.product), "")
        return places or federation.places, product or federation.product

    def _answers(self, record: ModelRecord) -> dict[tuple[str, str, str], Review]:
        """Return the answers about features, of any model.

        A "no" of the person who made this model is left out: it would be its maker's own override.
        """
        maker = self._workspace.model_states(record.federation).of(record.id).maker
        answers = self._workspace.reviews(record.federation).answers()
        return {
            question: answer
            for question, answer in answers.items()
            if answer.verdict == "confirmed" or not is_maker(answer.person, maker)
        }

    def protected(self, model_id: str) -> frozenset[str]:
        """Return the names of the features that a rule calls protected."""
        findings = self._assessed(self._models.get(model_id)).findings
        return frozenset(finding.feature for finding in findings if finding.status in PROTECTED)

    def kept_out(self, model_id: str) -> tuple[Examined, ...]:
        """Features that were kept out of the model's training, with what was measured of them all the same."""
        record = self._models.get(model_id)
        evidence = MeasuredEvidence(self._models, record)
        return tuple(
            Examined(
                feature=name,
                proxies=evidence.proxies.get(name),
                disparities=evidence.disparities.get(name),
                proxies_on=evidence.bases.get((PROXIES, name)),
                disparities_on=evidence.bases.get((DISPARITY, name)),
            )
            for name in record.exclude
        )

    def together(self, model_id: str, feature: str) -> dict[str, tuple[tuple[Evidence, ...], Basis]]:
        """Return what was measured of a feature together with another one, by the name of the pair."""
        evidence = MeasuredEvidence(self._models, self._models.get(model_id))
        pairs = {}
        for name, rows in evidence.disparities.items():
            names = features_of(name)
            if len(names) > 1 and feature in names:
                pairs[name] = rows, evidence.bases[DISPARITY, name]
        return pairs

    def pack_versions(self) -> dict[str, str]:
        """Name → version of the packs that every model is assessed by."""
        custom_packs, _ = read_own_packs(self._rules)
        return {**built_in_versions(), **{pack.name: pack.version for pack in custom_packs}}

    def try_list(self, file: Path) -> tuple[ComplianceReport, tuple[Remark, ...]]:
        """Return what would be flagged or asked of a list of columns (name, meaning, meaning_zh, unit, codes); nothing is kept.

        Also a remark on each column of whose meaning the beginning alone was read.

        Raises
        ------
        RulePackError
            With every problem of the file, by line.
        """
        features = [row.feature for row in read_feature_list(file)]
        packs, problems = self.rule_packs()
        report = assess([("", feature) for feature in features], {}, packs, problems=problems)
        notes = []
        for feature in features:
            if feature.meaning_cut:
                notes.append(Remark("meaning_cut", {"limit": MAX_MEANING}, column=feature.name))
        return report, tuple(notes)

    def calendar(self, model_id: str = "") -> LawCalendar:
        """When rules begin and end to apply; with a model, also what changed since its last report was issued."""
        packs = self.rule_packs()[0]
        if not model_id:
            return law_calendar(packs, date.today())
        applied = []
        for pack in packs:
            if pack.is_law(*self.law_of(self._models.get(model_id))):
                applied.append(pack)
        return law_calendar(applied, date.today(), self._last_report(model_id))

    @staticmethod
    def recall() -> RecallTotals:
        """Return how much of the built-in list of columns is found: totals with intervals, no row."""
        from backend.compliance.recall import measure  # noqa: PLC0415 - one command needs it

        return measure()

    def _last_report(self, model_id: str) -> date | None:
        """Return the day on which a report of the model was last issued; None if none was."""
        record = self._models.get(model_id)
        last = self._workspace.audit_log(record.federation).last_time("report", record.id)
        return date.fromisoformat(last[:10]) if last else None

    def rule_packs(self) -> tuple[tuple[RulePack, ...], tuple[Text, ...]]:
        """Return the built-in and custom packs, and what is wrong with those that cannot be used."""
        custom_packs, problems = read_own_packs(self._rules)
        return (*load_packs(), *custom_packs), tuple(problems)

    def add_rule_pack(self, file: Path) -> RulePack:
        """Check a custom rule pack and apply it from now on; raises RulePackError with every problem found."""
        pack = add_rule_pack(file, self._rules)
        for federation in self._workspace.federations():
            self._auditor.note(federation.name, "rules", {"pack": pack.name, "version": pack.version})
        return pack


def _rows(measurements: Mapping[str, Kept]) -> dict[str, tuple[Evidence, ...]]:
    """Feature → what was measured of it."""
    rows = {}
    for feature, measurement in measurements.items():
        if not measurement.basis.get("refused"):
            rows[feature] = tuple(Evidence(**{**row, "about": Text(**row["about"])}) for row in measurement.rows)
    return rows
