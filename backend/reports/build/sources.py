"""What a report is made of: what the Guest's registry, store and audit log know; no Host's table or partial model is among it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from backend.data.dictionary import Feature
from backend.evaluation.performance import Performance, Stability
from backend.evaluation.validation.monitoring import Monitored
from backend.evaluation.validation.suite import Validation
from backend.fairness.alternatives import Search
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import LANGUAGES, Text, brief
from backend.policy.bands import Policy
from backend.privacy.given_away import GivenAway
from backend.protocols.group_sums.grouping import PAIR, features_of
from backend.reports.model_comparison import SideBySide
from backend.reports.schema import DetailsSection, DossierSection
from backend.reports.verdict.facts import Verdict
from backend.results import ModelView
from backend.store.audit_log import Entry
from backend.store.model_states import Standing
from backend.store.policies import PolicyVersion
from backend.store.reviews import Review
from backend.store.schema import SignOff


@dataclass(frozen=True)
class Card:
    """What a report takes from the model card.

    Attributes
    ----------
    part : Performance
        On the part of the data to rely on.
    source : {"training", "scoring", "import"}
        When these scores were learned.
    """

    part: Performance
    source: str
    shifts: tuple[Stability, ...]


@dataclass(frozen=True)
class Sources(ModelView):
    """What a report is made of; two are equal where the reports are.

    Attributes
    ----------
    reviews : sequence of Review
        Oldest first.
    entries : sequence of Entry
        Of the federation's audit log.
    standing : Standing
        What the model is called and how far it has come.
    card : Card or None
        How good the model is, by the scores that are kept of it; None if none are.
    verdict : Verdict
        What is true of the model on the day of the report.
    disparities, proxies : mapping of str to tuple of Evidence, optional
        Feature → what was measured about it; by default what the findings carry.
    bases : mapping of (claim, feature) to Basis
        What that was measured on.
    retrained : tuple of SideBySide
        The model next to the one it replaces, and those that replace it.
    validation : Validation, optional
        The suite's last run.
    monitored : Monitored, optional
        The last monitoring run.
    given_away : tuple of GivenAway, optional
        What the Hosts' answers have given away; None = not known.
    details : DetailsSection, optional
        What the operator provided.
    challenger : SideBySide, optional
        The model next to the one that it names as challenger.
    dossiers : tuple of DossierSection
        What Hosts signed about their columns, as the Guest took it in.
    policy, policy_version : Policy, PolicyVersion or None
        The line that decides, and who set it; None = none was set.
    searches : tuple of Search
        For alternatives: from this model, and those that it was chosen from.
    """

    reviews: Sequence[Review]
    sign_offs: Sequence[SignOff]
    entries: Sequence[Entry]
    standing: Standing
    card: Card | None
    verdict: Verdict
    disparities: Mapping[str, tuple[Evidence, ...]] | None = None
    proxies: Mapping[str, tuple[Evidence, ...]] | None = None
    bases: Mapping[tuple[str, str], Basis] = field(default_factory=dict)
    retrained: tuple[SideBySide, ...] = ()
    given_away: tuple[GivenAway, ...] | None = None
    searches: tuple[Search, ...] = ()
    validation: Validation | None = None
    monitored: Monitored | None = None
    details: DetailsSection | None = None
    challenger: SideBySide | None = None
    dossiers: tuple[DossierSection, ...] = ()
    policy: Policy = field(default_factory=Policy)
    policy_version: PolicyVersion | None = None

    def feature(self, name: str) -> Feature:
        """Return a feature of the federation, or of the model where the federation no longer offers it; two together as one."""
        names = features_of(name, self._features)
        if len(names) == 1:
            return self._features.get(name) or Feature(name=name, meaning=name)
        meanings = [self.feature(part).meaning for part in names]
        both = Text(*(PAIR.join(brief(meaning.in_language(code)) for meaning in meanings) for code in LANGUAGES))
        return Feature(name=name, meaning=both)

    @cached_property
    def _features(self) -> dict[str, Feature]:
        return {f.name: f for _, f in (*self.model.dictionary, *self.federation.features())}
