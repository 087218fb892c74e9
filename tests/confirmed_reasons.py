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
    items = [(party, feature.name) for party, feature in model.dictionary]
    group_of = dict(zip(items, form_groups(model, items), strict=True))
    sided = 0
    sideless = 0
    for reason in person.merged:
        if not reason[0].side:
            kinds = [model.feature(one.feature).kind for one in reason]
            assert all(one.blockers or kind == "categorical" for one, kind in zip(reason, kinds, strict=True)), reason
            sideless += 1
            continue
        there = row.copy()
        for one in reason:
            others = training[one.feature].dropna().to_numpy(dtype=float)
            value = float(row[one.feature].iloc[0])
            beyond = others < value if one.side == "above" else others > value
            assert 2 * beyond.sum() > len(others), one
        for party, name in items:
            if (party, group_of[party, name]) not in {(one.party, group_of[one.party, one.feature]) for one in reason}:
                continue
            others = np.sort(training[name].dropna().to_numpy(dtype=float))
            there[name] = there[name].clip(others[(len(others) - 1) // 2], others[len(others) // 2])
        assert margins(model, rules, there)[0] < margins(model, rules, row)[0], reason
        sided += 1
    return sided, sideless
