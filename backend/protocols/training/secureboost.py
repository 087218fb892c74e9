"""SecureBoost at the Guest (Fed-EINI §II-A, eq. 1): rounds of trees, each grown on the gradients of those before.

A round is one tree, or one tree a class. With ``complete`` the first round involves no Host: later gradients then disclose less about the
labels (Cheng et al., "Completely SecureBoost"; docs/attacks.md T4).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.crypto.fixedpoint import GRADIENT_BITS, quantise
from backend.errors import ParameterError
from backend.jobs import work
from backend.protocols.training.federated_trees import TreeGrower, start
from backend.protocols.training.growing import Flags, GrownTree, IntArray, TreeJob
from backend.protocols.training.joint import FeatureKey, Grown, GrownTrees, Joint
from backend.protocols.training.label_bound import COUNTS, BoundedSplits, LabelBound
from backend.protocols.training.label_trees import leaf_table
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.rounds import round_of
from backend.trees.growth import GrowthRules, gradients
from backend.trees.outputs import ONE_LOGIT, Floats

# A label's standard deviation must be STEPS·√trees steps of 2**-score_bits: rounding errors then add up to less than 2 % of it.
STEPS = 16


@dataclass(frozen=True, eq=False, repr=False)
class _Ensemble(GrownTrees):
    """The trees so far and the joint records: `margins` ``(n_joint, k)``, `units` the same as they would be released, `leaves` by tree."""

    units: IntArray
    leaves: tuple[NDArray[np.uint16], ...] = ()


def grow(joint: Joint, parameters: SecureBoostParameters) -> Grown:
    """Grow a SecureBoost model.

    Raises
    ------
    ParameterError
        A parameter does not fit the label.
    Cancelled, PartyUnreachable, SecurityError
        See :meth:`Session.expect`.
    """
    _check(joint, parameters)
    boosting = _Boosting(joint, parameters, start(joint, parameters.bins, min_node=parameters.min_node))
    began = time.perf_counter()
    best = ensemble = boosting.empty()
    best_loss = np.inf
    best_round = 0
    for number in range(1, parameters.trees + 1):
        with work.part((number - 1) / parameters.trees, number / parameters.trees):
            ensemble = boosting.add_round(ensemble, number - 1)
        seconds = time.perf_counter() - began
        loss = joint.report(number, parameters.trees, ensemble.margins, boosting.outputs, seconds).log_loss_validation
        if loss < best_loss:
            best_loss = loss
            best_round = number
            best = ensemble
        if parameters.early_stopping and number - best_round >= parameters.early_stopping:
            break
    return boosting.grown(best if parameters.early_stopping else ensemble)


def _check(joint: Joint, parameters: SecureBoostParameters) -> None:
    """Raise ParameterError if a parameter does not apply to the label."""
    joint.directions(parameters.constraints, expected=parameters.monotone)
    if parameters.label_bound and joint.task == "number":
        raise ParameterError("label_bound_on_number")
    if parameters.class_weight != "none" and joint.task == "number":
        raise ParameterError("class_weight_on_number")
    spread = float(np.std(joint.labels[joint.training]))
    steps = STEPS * np.sqrt(parameters.trees)
    if joint.task == "number" and spread * (1 << parameters.score_bits) < steps:
        raise ParameterError(
            "steps_too_coarse_to_boost",
            spread=spread,
            bits=parameters.score_bits,
            trees=parameters.trees,
            steps=round(steps),
        )


class _Boosting:
    """What all rounds share."""

    def __init__(self, joint: Joint, parameters: SecureBoostParameters, grower: TreeGrower) -> None:
        self._joint = joint
        self._parameters = parameters
        self._grower = grower
        self.outputs = joint.boosting_outputs()
        self._weights = joint.weight_of_each * _class_weights(joint, parameters.class_weight)
        self._base = joint.base_margins(self._weights, parameters.score_bits)
        self._rules = GrowthRules(
            parameters.learning_rate, parameters.reg_lambda, parameters.gamma, parameters.min_child_weight
        )
        self._directions = joint.directions(parameters.constraints, expected=parameters.monotone)

    def empty(self) -> _Ensemble:
        """No tree yet."""
        margins = np.tile(self._base, (len(self._joint.labels), 1))
        return _Ensemble((), margins, quantise(margins, self._parameters.score_bits))

    def add_round(self, ensemble: _Ensemble, index: int) -> _Ensemble:
        """One more tree, or one more of every class; round `index` counts from 0."""
        first = len(ensemble.trees)
        grown = round_of(self._joint, self._grower, index, first, lambda: self._grow_round(ensemble))
        values = np.stack([leaf_table(tree.tree, ONE_LOGIT)[tree.leaf, 0] for tree in grown], axis=1)
        return _Ensemble(
            (*ensemble.trees, *(tree.tree for tree in grown)),
            ensemble.margins + values,
            ensemble.units + quantise(values, self._parameters.score_bits),
            (*ensemble.leaves, *(tree.leaf.astype(np.uint16) for tree in grown)),
        )

    def _grow_round(self, ensemble: _Ensemble) -> list[GrownTree]:
        """Grow trees on the gradients of the earlier trees."""
        p = self._parameters
        k = self.outputs.count
        first = len(ensemble.trees)
        draw = np.random.default_rng((p.seed, first))
        # eq. 1: first and second derivatives of the loss at the margins so far
        g, h = gradients(self._joint.task, self._joint.labels, ensemble.margins)
        g = g * self._weights[:, None]
        h = h * self._weights[:, None]
        rows, factor = self._draw_rows(g, draw)
        features = self._draw_features(draw)
        alone = p.complete and first == 0
        counted, bound = self._label_counts(rows)
        batches = []
        criteria = []
        for c in range(k):
            g_of_output = np.where(rows, g[:, c] * factor, 0.0)
            h_of_output = np.where(rows, h[:, c] * factor, 0.0)
            units = (_unit(g_of_output), _unit(h_of_output))
            batches.append((quantise(g_of_output / units[0], 0), quantise(h_of_output / units[1], 0)))
            channels = COUNTS + (len(bound.total) if bound else 0)
            criteria.append(BoundedSplits(self._rules, units, channels, bound))
        encrypted = 0.0 if alone else self._grower.encrypted_share
        with work.part(0.0, encrypted):
            self._grower.send_pairs([*batches, *counted], tree=first, rows=rows, guest_only=alone)
        jobs = [
            TreeJob(
                first + c,
                replace(criteria[c], bound=None),
                rows,
                (c, *range(k, k + len(counted))),
                features,
                guest_only=alone,
                directions=self._directions,
                reported=criteria[c] if bound else None,
            )
            for c in range(k)
        ]
        with work.part(encrypted, 1.0):
            return self._grower.grow(jobs, p.depth)

    def _draw_rows(self, g: Floats, draw: np.random.Generator) -> tuple[Flags, Floats]:
        """Return the training rows that count in this round and their weight, ``(n_joint,)`` each."""
        p = self._parameters
        training = np.flatnonzero(self._joint.training)
        rows = np.zeros(len(g), dtype=bool)
        factor = np.ones(len(g))
        if not p.goss_other:
            if p.row_sample == 1:
                share = len(training)
            else:
                share = max(1, round(p.row_sample * len(training)))
            rows[training if share == len(training) else draw.choice(training, share, replace=False)] = True
            return rows, factor
        order = draw.permutation(training)  # random among equal gradients
        order = order[np.argsort(-np.abs(g[order]).sum(axis=1), kind="stable")]
        top = int(p.goss_top * len(order))
        n_other = int(p.goss_other * len(order))
        others = draw.choice(order[top:], max(1, n_other), replace=False)
        rows[order[:top]] = True
        rows[others] = True
        factor[others] = (len(order) - top) / len(others)
        return rows, factor

    def _label_counts(self, rows: Flags) -> tuple[list[tuple[IntArray, IntArray]], LabelBound | None]:
        """With a bound on what sets tell: the rows that count, by class and two classes a batch; else nothing."""
        if not self._parameters.label_bound:
            return [], None
        classes = len(self._joint.classes) or 2
        flags = []
        for c in range(classes + classes % 2):
            flags.append(((self._joint.labels == c) & rows).astype(np.int64))
        total = np.array([f.sum() for f in flags[:classes]])
        return list(zip(flags[::2], flags[1::2], strict=True)), LabelBound(self._parameters.label_bound, total)

    def _draw_features(self, draw: np.random.Generator) -> frozenset[FeatureKey] | None:
        """Return the features of all parties that may split in this round; None = all."""
        share = self._parameters.column_sample
        features = self._grower.features
        if share == 1:
            return None
        numbers = draw.choice(len(features), max(1, round(share * len(features))), replace=False)
        return frozenset(features[i] for i in numbers)

    def grown(self, ensemble: _Ensemble) -> Grown:
        """Return the finished model."""
        count = len(ensemble.trees)
        rules = {key: rule for key, rule in self._grower.rules.items() if key[0] < count}
        return Grown(
            trees=ensemble.trees,
            rules=rules,
            base_scores=tuple(float(b) for b in self._base),
            outputs=self._joint.boosting_outputs(count),
            margins=ensemble.margins,
            units=ensemble.units,
            label_bits=self._grower.label_bits,
            choice_bits=max(self._grower.choice_bits.values(), default=0.0),
            leaves=ensemble.leaves,
        )


def _class_weights(joint: Joint, how: str) -> Floats:
    """``(n_joint,)``: 1, or for "balanced" n / (k·n_class), so that all classes have the same total weight.

    With sample weights n and n_class are sums of them.
    """
    if how == "none":
        return np.ones(len(joint.labels))
    labels = joint.labels.astype(np.intp)
    training = joint.training
    counts = np.bincount(labels[training], joint.weight_of_each[training], minlength=len(joint.classes) or 2)
    factors: Floats = counts.sum() / (len(counts) * np.where(counts > 0, counts, 1.0))
    return factors[labels]


def _unit(values: Floats) -> float:
    """The value of one unit on the wire, such that the largest value fits GRADIENT_BITS; only the Guest needs it."""
    return float(2.0 ** (np.ceil(np.log2(max(1.0, float(np.abs(values).max())))) - GRADIENT_BITS))
