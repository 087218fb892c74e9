"""Reasons against plain arithmetic: every column and every rule in one hand, medians worked out from the records."""

import numpy as np
import pandas as pd

from backend.reports.adverse_action_notice import form_groups


def margins(model, rules, people):
    """Every tree walked."""
    total = np.full(len(people), model.base_scores[0])
    for t, tree in enumerate(model.trees):
        nodes = np.zeros(len(people), dtype=int)
        for i, split in tree.splits.items():  # parents come before their children
            column = people[split.feature].to_numpy()
            if rules[t, i].threshold is None:
                column = np.array([None if pd.isna(v) else code_of(v) for v in column], dtype=object)
            nodes = np.where(nodes == i, np.where(rules[t, i].goes_left(column), split.left, split.right), nodes)
        total += np.array([tree.nodes[i].weight for i in nodes])
    return total


def code_of(value):
    """A code as its party wrote it; joining tables may have made a number of it."""
    return str(int(value)) if isinstance(value, float) else str(value)


def check_reasons(model, rules, training, row, person):
    """Assert of each reason that has a side what it says; return how many have one, and how many have none and must not have one.

    Parameters
    ----------
    training : DataFrame
        Records of all parties with which the model was trained.
    row : DataFrame
        The person's record.
    """
    sided = 0
    sideless = 0
    for reason in person.merged:
        if not reason[0].side:
            kinds = [model.feature(one.feature).kind for one in reason]
            assert all(one.blockers or kind == "categorical" for one, kind in zip(reason, kinds, strict=True)), reason
            sideless += 1
            continue
        for one in reason:
            assert is_confirmed(model, rules, training, row, one.feature, one.side), one
        sided += 1
    return sided, sideless


def is_confirmed(model, rules, training, row, feature, side):
    """Whether a person's value is on a side of the median, and the score would be lower with the reason's features at their medians."""
    others = training[feature].dropna().to_numpy(dtype=float)
    value = float(row[feature].iloc[0])
    beyond = others < value if side == "above" else others > value
    if 2 * beyond.sum() <= len(others):
        return False
    items = [(party, known.name) for party, known in model.dictionary]
    groups = dict(zip(items, form_groups(model, items), strict=True))
    [own] = [item for item in items if item[1] == feature]
    there = row.copy()
    for party, name in items:
        if party == own[0] and groups[party, name] == groups[own]:
            others = np.sort(training[name].dropna().to_numpy(dtype=float))
            there[name] = there[name].clip(others[(len(others) - 1) // 2], others[len(others) // 2])
    return bool(margins(model, rules, there)[0] < margins(model, rules, row)[0])
