"""What a verdict is made from: everything that the Guest knows about one model. Knows no Host's value and no person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.compliance.assessment import ComplianceReport
from backend.data.dictionary import Feature
from backend.evaluation.performance import Performance
from backend.evaluation.validation.monitoring import Monitored
from backend.evaluation.validation.suite import Validation
from backend.explain.direction import LearnedDirection
from backend.fairness.evidence import Basis, Evidence
from backend.i18n import LANGUAGES, Text, brief
from backend.policy.bands import Policy
from backend.protocols.group_sums.grouping import PAIR, features_of
from backend.results import ModelRecord
from backend.store.reviews import Review


@dataclass(frozen=True)
class Known:
    """What is known about one model.

    Attributes
    ----------
    features : mapping of str to Feature
        Every feature of the federation and of the model's dictionary.
    offered : tuple of (party, Feature)
        The model's dictionary.
    splits : mapping of str to int
        Feature → the number of the model's splits on it.
    titles : mapping of str to Text
        Party → its title.
    reviews : mapping of (rule, feature) to Review
        The last decision about each finding.
    disparities, proxies : mapping of str to tuple of Evidence
        Feature → what was measured.
    bases : mapping of (claim, feature) to Basis
        What that was measured on.
    quality : Performance or None
        On the part of the records to rely on; None if no scores are stored.
    """

    record: ModelRecord
    features: Mapping[str, Feature]
    offered: tuple[tuple[str, Feature], ...]
    splits: Mapping[str, int]
    titles: Mapping[str, Text]
    compliance: ComplianceReport
    reviews: Mapping[tuple[str, str], Review]
    directions: Sequence[LearnedDirection]
    disparities: Mapping[str, tuple[Evidence, ...]]
    proxies: Mapping[str, tuple[Evidence, ...]]
    bases: Mapping[tuple[str, str], Basis]
    validation: Validation | None
    monitored: Monitored | None
    quality: Performance | None
    policy: Policy

    def name(self, feature: str) -> Text:
        """Return the meaning of a feature in short, or its name if there is none; of two features together both."""
        names = features_of(feature, self.features)
        if len(names) > 1:
            words = [self.name(name) for name in names]
            return Text(*(PAIR.join(text.in_language(language) for text in words) for language in LANGUAGES))
        entry = self.features.get(feature)
        if entry is None:
            return Text(feature)
        if entry.described:
            english = brief(entry.meaning.en)
        else:
            english = feature
        return Text(english, brief(entry.meaning.zh))

    def title(self, party: str) -> Text:
        """Return the title of a party."""
        return self.titles.get(party, Text(party))


def has_meaning(feature: Feature) -> bool:
    """Return whether the owner gave a meaning, in either language; a text made of the column's name does not count."""
    return feature.described or bool(feature.meaning.zh)
