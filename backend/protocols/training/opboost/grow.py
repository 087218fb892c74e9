"""OpBoost at the Guest: noisy ranks arrive once, XGBoost boosts on them, rank cuts go back. Knows no Host value and no threshold.

The paper's Guest also gets the desensitised values of its cuts, so that it can predict alone. Here each Host turns the cuts into rules on
its true scale and keeps them, and the model is scored by Fed-EINI like any other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.data.dictionary import Feature, Kind
from backend.data.label import Task
from backend.errors import SecurityError
from backend.jobs import work
from backend.protocols.training.joint import Grown, Joint
from backend.protocols.training.messages import Ranks, StartRanks, TakeRankSplits
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.transport.packing import from_numbers
from backend.trees.ensemble import GuestTree, Leaf, NodeKey, Split, SplitRule
from backend.trees.importers.whole import WholeSplit, WholeTree
from backend.trees.importers.xgboost_file import read_xgboost
from backend.trees.outputs import Floats

OBJECTIVES: dict[Task, str] = {"binary": "binary:logistic", "classes": "multi:softprob", "number": "reg:squarederror"}
THREADS = 1  # so that the same ranks give the same trees on every machine


@dataclass(frozen=True, eq=False, repr=False)
class _Column:
    """A column that XGBoost sees.

    Attributes
    ----------
    values : ndarray of float64
        ``(n_joint,)`` own values, own category codes, or a Host's ranks; NaN if missing.
    number, ranks : int
        A Host's column: its index in the Host's answer, and its number of ranks.
    texts : tuple of str
        An own categorical column: text of each code.
    """

    owner: str
    feature: str
    values: Floats
    number: int = -1
    ranks: int = 0
    texts: tuple[str, ...] = ()


def grow(joint: Joint, parameters: OpBoostParameters) -> Grown:
    """Grow an OpBoost model.

    Returns
    -------
    Grown
        Its `margins` are those of the noisy ranks, and `units` is None: the Hosts' rules apply to true values, which the Guest does not
        have, so released scores are known only after scoring.

    Raises
    ------
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Session.expect`; or a Host's answer does not fit its dictionary.
    """
    # 1. every Host pre-processes, desensitises and sends ranks
    columns = [_own(joint, feature) for feature in joint.features[joint.guest]]
    columns += _ask_ranks(joint, parameters)
    # 2. splits are found on ranks alone: gains of XGBoost depend on the order of values only
    base = joint.base_margins(joint.weight_of_each, parameters.score_bits)
    boosting = _Boosting(joint, parameters, columns, base)
    whole_trees = boosting.run()
    # 3. each Host gets the ranks of its cuts; the paper has their desensitised values sent back (docs/opboost.md says why not here)
    rules, cuts = _divide(whole_trees, columns, joint)
    for host, splits in cuts.items():
        joint.conversation.send(host, splits)
    trees = tuple(_guest_tree(tree, columns) for tree in whole_trees)
    outputs = joint.boosting_outputs(len(whole_trees))
    base_scores = tuple(float(b) for b in base)
    return Grown(trees, boosting.margins, rules, base_scores, outputs, units=None)


def _own(joint: Joint, feature: Feature) -> _Column:
    values = joint.table.columns[feature.name]
    if feature.kind is not Kind.CATEGORICAL:
        return _Column(joint.guest, feature.name, values.astype(np.float64))
    texts = tuple(sorted({str(v) for v in values if v is not None}))
    code = {text: float(i) for i, text in enumerate(texts)}
    codes = np.array([np.nan if v is None else code[str(v)] for v in values], dtype=np.float64)
    return _Column(joint.guest, feature.name, codes, texts=texts)


def _ask_ranks(joint: Joint, parameters: OpBoostParameters) -> list[_Column]:
    """Step 1: every Host desensitises its features and sends ranks."""
    session = joint.conversation
    noise = parameters.noise
    noise_terms = noise.map, noise.mechanism, float(noise.epsilon), noise.theta, float(noise.alpha), noise.levels
    for host in session.hosts:
        session.send(host, StartRanks(session.name, *noise_terms, exclude=joint.excluded[host]))
    answers = session.expect_each(Ranks, session.hosts)
    return [column for host in session.hosts for column in _read_ranks(host, answers[host], joint, noise.levels)]


def _read_ranks(host: str, answer: Ranks, joint: Joint, levels: int) -> list[_Column]:
    names = {feature.name for feature in joint.features[host]}
    columns = []
    if not len(answer.features) == len(answer.counts) == len(answer.ranks):
        raise SecurityError("ranks_do_not_fit", host=host)
    for number, (name, count, blob) in enumerate(zip(answer.features, answer.counts, answer.ranks, strict=True)):
        if name not in names or not 0 <= count <= levels:
            raise SecurityError("ranks_of_other_feature", host=host)
        ranks = from_numbers(blob, count + 1)
        if len(ranks) != len(joint.parts):
            raise SecurityError("ranks_of_other_records", host=host, got=len(ranks), expected=len(joint.parts))
        columns.append(_Column(host, name, np.where(ranks == count, np.nan, ranks.astype(np.float64)), number, count))
    return columns


class _Boosting:
    """Step 2: XGBoost on own columns and ranks."""

    def __init__(self, joint: Joint, parameters: OpBoostParameters, columns: list[_Column], base: Floats) -> None:
        import xgboost  # noqa: PLC0415 - half a second, and needed here alone

        self._joint = joint
        self._parameters = parameters
        self._outputs = joint.boosting_outputs()
        values = np.column_stack([column.values for column in columns])
        kinds = ["c" if column.texts else "q" for column in columns]

        def matrix(rows: NDArray[np.bool_]) -> Any:
            return xgboost.DMatrix(
                values[rows],
                joint.labels[rows],
                weight=None if joint.weights is None else joint.weights[rows],
                base_margin=np.tile(base, (int(rows.sum()), 1)),
                feature_types=kinds,
                enable_categorical=True,
                nthread=THREADS,
            )

        self._training = matrix(joint.training)
        self._everybody = matrix(np.ones(len(values), dtype=bool))
        self._booster = xgboost.Booster(self._settings(), [self._training, self._everybody])
        self.margins = np.tile(base, (len(values), 1))

    def _settings(self) -> dict[str, object]:
        p = self._parameters
        return {
            "objective": OBJECTIVES[self._joint.task],
            "tree_method": "hist",
            "max_depth": p.depth,
            "eta": p.learning_rate,
            "lambda": p.reg_lambda,
            "min_child_weight": p.min_child_weight,
            "max_cat_to_onehot": 1,
            "base_score": 0.5 if self._joint.task == "binary" else 0.0,  # a margin of 0, replaced by the base margins
            "nthread": THREADS,
            "seed": p.seed,
            **({"num_class": self._outputs.count} if self._joint.task == "classes" else {}),
        }

    def run(self) -> tuple[WholeTree, ...]:
        """Grow all rounds, or until early stopping; `margins` then holds those of the returned trees."""
        began = time.perf_counter()
        best_loss = np.inf
        best_number = 0
        margins = self.margins
        for number in range(1, self._parameters.trees + 1):
            work.reached((number - 1) / self._parameters.trees)
            self._booster.update(self._training, number - 1)
            prediction = self._booster.predict(self._everybody, output_margin=True)
            margins = prediction.astype(np.float64).reshape(self.margins.shape)
            seconds = time.perf_counter() - began
            progress = self._joint.report(number, self._parameters.trees, margins, self._outputs, seconds)
            if progress.log_loss_validation < best_loss or not self._parameters.early_stopping:
                best_loss = progress.log_loss_validation
                best_number = number
                self.margins = margins
            if self._parameters.early_stopping and number - best_number >= self._parameters.early_stopping:
                break
        document = json.loads(self._booster[:best_number].save_raw("json"))
        return read_xgboost("the booster", document).trees


def _divide(
    trees: tuple[WholeTree, ...], columns: list[_Column], joint: Joint
) -> tuple[dict[NodeKey, SplitRule], Mapping[str, TakeRankSplits]]:
    """Step 3: the Guest's own rules, and for each Host the rank cuts of its splits."""
    rules: dict[NodeKey, SplitRule] = {}
    cuts_of: dict[str, list[tuple[int, int, int, int, bool]]] = {host: [] for host in joint.conversation.hosts}
    for t, tree in enumerate(trees):
        for i, node in enumerate(tree):
            if isinstance(node, Leaf):
                continue
            column = columns[node.feature]
            if column.owner == joint.guest:
                rules[t, i] = _rule(column, node)
            else:
                cut = min(max(ceil(node.threshold or 0.0), 0), column.ranks)
                cuts_of[column.owner].append((t, i, column.number, cut, node.default_left))
    name = joint.conversation.name
    return rules, {
        host: TakeRankSplits(name, *(tuple(part) for part in zip(*splits, strict=True)))
        for host, splits in cuts_of.items()
        if splits
    }


def _rule(column: _Column, split: WholeSplit) -> SplitRule:
    if split.threshold is not None:
        return SplitRule(column.feature, split.default_left, split.threshold)
    right = frozenset(column.texts[code] for code in split.codes)
    return SplitRule(column.feature, split.default_left, None, frozenset(column.texts) - right, right)


def _guest_tree(tree: WholeTree, columns: list[_Column]) -> GuestTree:
    nodes: list[Split | Leaf] = []
    for node in tree:
        if isinstance(node, Leaf):
            nodes.append(node)
            continue
        column = columns[node.feature]
        nodes.append(
            Split(column.owner, column.feature, node.left, node.right, node.default_left, node.gain, node.cover)
        )
    return GuestTree(tuple(nodes))
