"""Whom reasons compare with: how far shares at the splits are from comparing with the group's records one by one, and what a Host learns.

An operator's view: it holds all partial models and records. *One by one* is interventional SHAP over records of the group; the protocol's
values are path-dependent with that group's shares. The Host of the last columns guesses which training records are only just approved,
by naive Bayes over its own splits: from the shares that it is told, from exact ones, and from covers; 0.5 is chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.protocols.explanations.guest_terms import CompiledTerms
from backend.protocols.training.parameters import SecureBoostParameters
from backend.reports.adverse_action_notice import MAX_REASONS, form_groups
from backend.services import Glassleaf
from backend.trees.backgrounds import ALL, COVERS, Background, left_shares, methods
from backend.trees.ensemble import Columns, GuestModel, NodeKey, SplitRule
from backend.trees.metrics import auc
from backend.trees.shap import Factors, factors_of, leaf_weights, paths, shap_values
from bench.cases import DEPTH, TREES, Case, case_of
from bench.setting import ABSENT, add_credit_card, fresh_glassleaf, progress, run, train
from bench.tables import backgrounds as describe

PEOPLE = 200  # test records of the highest scores, whose reasons are compared
RECORDS = 1000  # of a group, drawn for the comparison one by one
CUTOFF = 0.5
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Records:
    """Some records of all parties: their columns, which nodes they pass, and their scores in units."""

    case: Case
    ids: tuple[str, ...]
    columns: dict[str, NDArray[Any]]
    nodes: dict[NodeKey, Flags]
    units: NDArray[np.float64]

    @classmethod
    def of(cls, case: Case, ids: tuple[str, ...]) -> Records:
        """Walk every tree with all parties' rules."""
        rules, columns = case.together(ids)
        nodes = {}
        units = np.full(len(ids), np.rint(case.model.base_scores[0] * 2**case.model.score_bits))
        for t, tree in enumerate(case.model.trees):
            at = np.zeros(len(ids), dtype=np.intp)
            nodes[t, 0] = at == 0
            for i, split in tree.splits.items():
                left = rules[t, i].goes_left(columns[split.feature])
                nodes[t, split.left], nodes[t, split.right] = nodes[t, i] & left, nodes[t, i] & ~left
            for i in tree.leaves:
                units += nodes[t, i] * np.rint(getattr(tree.nodes[i], "weight", 0.0) * 2**case.model.score_bits)
        return cls(case, ids, columns, nodes, units)

    def only(self, rows: NDArray[np.intp]) -> tuple[dict[str, NDArray[Any]], int]:
        """Columns of some of them, and how many."""
        return {name: column[rows] for name, column in self.columns.items()}, len(rows)


def measure(people: int = PEOPLE, records: int = RECORDS) -> dict[str, Any]:
    """Both models, the second where its data is there."""
    rows = []
    with fresh_glassleaf() as glassleaf:
        progress("growing the demo's model")
        name = glassleaf.training.prepare_demo()
        rows += rows_of(glassleaf, glassleaf.models.all(name)[0].id, "demo", people, records)
        cards = add_credit_card(glassleaf)
        if cards is not None:
            progress("growing the credit-card model")
            parameters = SecureBoostParameters(trees=TREES, depth=DEPTH, learning_rate=0.1, cipher="none")
            rows += rows_of(glassleaf, train(glassleaf, cards, parameters).id, "credit card", people, records)
    return {"rows": rows, "cutoff": CUTOFF} | ({} if cards is not None else {"skipped": ABSENT})


def rows_of(glassleaf: Glassleaf, model_id: str, title: str, people: int, records: int) -> list[dict[str, Any]]:
    """One model, a row a group."""
    record = glassleaf.models.get(model_id)
    case = case_of(glassleaf, record, title)
    parts = glassleaf.models.part_of(record)
    trained, tested = (
        Records.of(case, tuple(i for i, part in parts.items() if part == wanted)) for wanted in ("training", "test")
    )
    highest = np.argsort(-tested.units, kind="stable")[:people]
    return [
        {
            "model": case.title,
            **row_of(trained, tested.only(highest), Background.of(case.model, against, CUTOFF), records),
        }
        for against in methods(case.model)
        if against != "covers"
    ]


def interventional_values(
    model: GuestModel, rules: Mapping[NodeKey, SplitRule], people: tuple[Columns, int], background: tuple[Columns, int]
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """SHAP values against records one by one, not shares at the splits: the mean over them of what each known value changes.

    Per leaf and record, A are the path's features whose conditions only the person fulfils, B those that only the record does. Where
    each is fulfilled by one of them, a feature of A has w (|A|-1)! |B|! / (|A|+|B|)!, one of B has -w |A|! (|B|-1)! / (|A|+|B|)!
    (Lundberg et al. 2020, Algorithm 3). A yardstick for :func:`backend.trees.shap.shap_values`.

    Parameters
    ----------
    people, background : (mapping of str to ndarray, int)
        All parties' columns, ``(n,)`` each, and n.

    Returns
    -------
    features, values
        As of it.
    """
    names = {(t, i): split.feature for t, tree in enumerate(model.trees) for i, split in tree.splits.items()}
    factors = Factors(rules, [factors_of(path, names, left_shares(model)) for path in paths(model.trees)])
    features = tuple(sorted(set(names.values())))
    theirs = np.concatenate([kept.copy() for _, kept in factors.blocks(*background)], axis=1)
    mine = np.concatenate([kept.copy() for _, kept in factors.blocks(*people)], axis=1)
    out = np.zeros((len(features), people[1]))
    share = _shares_by_size(int(np.bincount(factors.row).max(initial=0)) + 1)
    for leaf, weight in enumerate(leaf_weights(model).tolist()):
        lines = np.flatnonzero(factors.row == leaf)
        a = mine[lines][:, :, None]
        b = theirs[lines][:, None, :]
        only_a = (a & ~b).sum(axis=0)
        only_b = (b & ~a).sum(axis=0)
        met = (a | b).all(axis=0)
        gain = met * share[only_a, only_b]
        loss = met * share[only_b, only_a]
        for line, kept, other in zip(lines.tolist(), a, b, strict=True):
            part = np.where(kept & ~other, gain, np.where(other & ~kept, -loss, 0.0))
            out[features.index(factors.features[line])] += weight * part.mean(axis=1)
    return features, out.T


def _shares_by_size(size: int) -> NDArray[np.float64]:
    """``(size, size)``: (a-1)! b! / (a+b)!, for a > 0."""
    table = [
        [factorial(a - 1) * factorial(b) / factorial(a + b) if a else 0.0 for b in range(size)] for a in range(size)
    ]
    return np.array(table)


def row_of(
    trained: Records, people: tuple[Mapping[str, NDArray[Any]], int], background: Background, records: int
) -> dict[str, Any]:
    """One group: how alike both kinds of values are for `people`, and how well a Host guesses who is in it."""
    case = trained.case
    model = trained.case.model
    group = in_group(trained, background)
    draw = np.random.default_rng(7)
    chosen = np.sort(draw.permutation(np.flatnonzero(group))[:records])
    rules, _ = case.together(())
    features, dependent = shap_values(model, rules, *people, background)
    _, one_by_one = interventional_values(model, rules, people, trained.only(chosen))
    groups = form_groups(model, [(model.owner_of(name), name) for name in features])
    both = [named(values, groups) for values in (dependent, one_by_one)]
    told, exact, covers = host_guesses(trained, background, group)
    return {
        "against": background.against,
        "records": int(group.sum()),
        "one_by_one": len(chosen),
        "people": people[1],
        "features": len(features),
        "same_reasons": float(np.mean([a == b for a, b in zip(*both, strict=True)])),
        "overlap": float(np.mean([len(a & b) / max(len(a | b), 1) for a, b in zip(*both, strict=True)])),
        "difference": float(np.abs(dependent - one_by_one).mean() / np.abs(one_by_one).mean()),
        "told_auc": told,
        "exact_auc": exact,
        "covers_auc": covers,
    }


def in_group(trained: Records, background: Background) -> Flags:
    """``(n,)``: which training records the group is."""
    bands = trained.case.model.bands
    if bands is None or background is ALL:
        return np.ones(len(trained.ids), dtype=bool)
    flags: Flags = np.searchsorted(bands.uppers, trained.units, side="right") == background.band
    return flags


def named(values: NDArray[np.float64], groups: tuple[int, ...]) -> list[frozenset[int]]:
    """Reasons of the largest values above 0, per person; features that a notice states in the same words are one."""
    found = []
    for row in values:
        ranked = dict.fromkeys(groups[k] for k in np.argsort(-row, kind="stable").tolist() if row[k] > 0)
        found.append(frozenset(list(ranked)[:MAX_REASONS]))
    return found


def host_guesses(trained: Records, background: Background, group: Flags) -> tuple[float | None, ...]:
    """AUC of the best Host's guess from the shares that it is told, from exact ones, and from covers; None if the group is everybody."""
    if group.all():
        return None, None, None
    model = trained.case.model
    found = []
    told, everybody, covers = (left_shares(model, b) for b in (background, ALL, COVERS))
    ones = np.ones((1, len(group)))
    for host in CompiledTerms(model).chain:
        scores = np.zeros((3, len(trained.ids)))
        for t, tree in enumerate(model.trees):
            for i, split in tree.splits.items():
                if split.owner != host:
                    continue
                here = trained.nodes[t, i]
                left = trained.nodes[t, split.left]
                usual = everybody[t, i]
                came = int((here & group).sum())
                exact = float((left & group).sum() / came) if came else usual
                for k, share in enumerate((told[t, i], exact, covers[t, i])):
                    scores[k] += here * np.where(left, _odds(share, usual), _odds(1 - share, 1 - usual))
        areas = [float(auc(group.astype(float), s, ones)[0]) for s in scores]
        # from covers a Host sees how sure the model is, and knows not on which side: either guess
        found.append((*areas[:2], max(areas[2], 1 - areas[2])))
    return tuple(max(one[k] for one in found) for k in range(3))


def _odds(share: float, usual: float) -> float:
    return float(np.log((share + 0.01) / (usual + 0.01)))


if __name__ == "__main__":
    run(__doc__, measure, describe)
