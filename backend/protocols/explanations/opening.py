"""What the Guest shows an auditor of terms of reasons: numbers, their randomness, and values that give the same answers as its own.

Why a ciphertext opens in one way only: :mod:`backend.protocols.scoring.opening`. Terms under RLWE cannot be opened without the secret key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from backend.protocols.explanations.encryption import paillier_numbers
from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.explanations.paillier_layout import PaillierLayout
from backend.protocols.scoring.opening import Opening
from backend.trees.backgrounds import COVERS, Background
from backend.trees.ensemble import Columns, GuestModel, SplitRule

Value = float | str | None


@dataclass(frozen=True)
class TermsOpening:
    """One person's terms, opened.

    Attributes
    ----------
    sent : Opening
        Plaintexts and randomness of every ciphertext.
    values : mapping of str to float, str or None
        Feature of the Guest's that the model uses → the first value that goes the same way at all of the model's splits; None = missing.
        An auditor learns between which thresholds of the model a value lies, as the terms show.
    """

    sent: Opening
    values: Mapping[str, Value] = field(repr=False)


def values_alike(model: GuestModel, columns: Columns) -> dict[str, Value]:
    """What an opening states of one person, columns ``(1,)`` each."""
    return {name: _first_alike(rules, columns[name][0]) for name, rules in _rules_by_feature(model).items()}


def honest_numbers(
    model: GuestModel,
    values: Mapping[str, Value],
    key_bits: int,
    background: Background = COVERS,
    groups: tuple[int, ...] = (),
) -> tuple[list[int], list[int]]:
    """All that an honest Guest encrypts of a person with these values, in order: of a cohort contributions, for names drops behind them.

    Raises KeyError, TypeError or ValueError if the values are not one of the right kind for every feature that the model uses.
    """
    compiled = CompiledTerms(model, background)
    columns = {}
    for name, rules in _rules_by_feature(model).items():
        value = values[name]
        ordered = rules[0].threshold is not None
        number = (np.nan if value is None else float(value)) if ordered else value
        columns[name] = np.array([number], dtype=np.float64 if ordered else object)
    layout = PaillierLayout(compiled.shape(1), key_bits)
    return paillier_numbers(compiled, layout, columns), paillier_numbers(compiled.drops(groups), layout, columns)


def _rules_by_feature(model: GuestModel) -> dict[str, list[SplitRule]]:
    by_feature: dict[str, list[SplitRule]] = {}
    for _, rule in sorted(model.rules.items(), key=lambda item: item[0]):
        by_feature.setdefault(rule.feature, []).append(rule)
    return by_feature


def _first_alike(rules: Sequence[SplitRule], value: Value) -> Value:
    """Return the missing value, lowest threshold or first category to which every rule gives the same answer as to `value`."""
    thresholds = [rule.threshold for rule in rules if rule.threshold is not None]
    if thresholds:
        if value is None or np.isnan(float(value)):
            return None
        return max((t for t in thresholds if t <= float(value)), default=min(thresholds) - 1.0)
    categories = sorted({category for rule in rules for category in rule.left_categories | rule.right_categories})
    alike = []
    for c in (None, *categories):
        if all(_goes_left(rule, c) == _goes_left(rule, value) for rule in rules):
            alike.append(c)
    return alike[0]


def _goes_left(rule: SplitRule, category: Value) -> bool:
    if category not in rule.left_categories | rule.right_categories:
        return rule.default_left
    return category in rule.left_categories
