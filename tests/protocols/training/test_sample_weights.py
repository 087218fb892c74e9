"""Sample weights: the same trees encrypted and in plaintext, XGBoost's and scikit-learn's, and no weight at a Host."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xgboost
from joints import joined
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from worlds import GUEST

from backend.crypto.fixedpoint import GRADIENT_BITS, MAX_ROWS, quantise_weights
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.rlwe.scheme import RlweKeySide, RlweSecretKey
from backend.crypto.rlwe.sum_key import RlweSumKey
from backend.crypto.rlwe.sum_parameters import sum_parameters
from backend.data.binning import make_bins
from backend.protocols.training.algorithms import grow
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters
from backend.trees.criteria import ClassCounts, Stops
from backend.trees.ensemble import Leaf
from backend.trees.growth import FREE, Histogram

SMALL = {"bins": 6, "cipher": "none"}
KINDS = {
    "secureboost": SecureBoostParameters(trees=3, depth=3, **SMALL),
    "forest": ForestParameters(trees=3, depth=4, score_bits=16, **SMALL),
    "fl-dt": DecisionTreeParameters(depth=4, min_gain=0.0, **SMALL),
}
TASKS = [
    (kind, task) for kind in KINDS for task in ("binary", "classes", "number") if (kind, task) != ("fl-dt", "number")
]


@cache
def lattice_key():
    return RlweSumKey(RlweKeySide(RlweSecretKey.generate(sum_parameters(60))))


def weighed(parties, weights):
    """The joint records with these weights."""
    return replace(parties.joint, weights=weights)


def drawn(n, seed=5):
    """Weights from 1/7 to 7, so that no power of two holds them."""
    return 7.0 ** np.random.default_rng(seed).uniform(-1, 1, n)


def model(parties, grown):
    return grown.trees, parties.rules(grown.rules), grown.units.tolist(), grown.base_scores


def matrix_of(parties):
    """``(n_joint, 6)``: bins of all parties' ordered features, and their names."""
    joint = parties.joint
    columns = []
    for offered in joint.features.values():
        for feature in offered:
            values = parties.columns[feature.name]
            columns.append(make_bins(feature, values[joint.training], 256).index(values))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(("kind", "task"), TASKS)
def test_weights_of_1_give_the_model_without_weights_to_the_bit(kind, task):
    models = []
    for weights in (None, np.ones(120)):
        with joined(3, n=120, task=task) as parties:
            models.append(model(parties, grow(weighed(parties, weights), KINDS[kind])))
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("kind", "task", "scheme"),
    [(*one, "paillier") for one in TASKS] + [("secureboost", "binary", "rlwe"), ("forest", "classes", "rlwe")],
)
def test_under_encryption_weights_grow_the_plaintext_trees(kind, task, scheme, secret_key):
    side = PaillierKeySide(secret_key) if scheme == "paillier" else lattice_key()
    models = []
    for key in (None, side):
        with joined(4, n=60, task=task, key=key) as parties:
            models.append(model(parties, grow(weighed(parties, drawn(60)), KINDS[kind])))
    assert models[0] == models[1]
    assert {s.owner for tree in models[0][0] for s in tree.splits.values()} > {GUEST}


@pytest.mark.parametrize(("kind", "task"), TASKS)
def test_weights_change_the_model(kind, task):
    with joined(4, n=120, task=task) as parties:
        plain = grow(parties.joint, KINDS[kind])
    with joined(4, n=120, task=task) as parties:
        weighted = grow(weighed(parties, drawn(120)), KINDS[kind])
    assert plain.trees != weighted.trees


@pytest.mark.parametrize("task", ["binary", "number"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boosted_trees_are_xgboosts_under_the_same_weights(task, seed):
    with joined(seed, n=300, task=task, gaps=0.0, coded=False) as parties:
        joint, p = weighed(parties, drawn(300, seed)), replace(KINDS["secureboost"], bins=256, score_bits=20)
        grown, rows = grow(joint, p), joint.training
        begin = np.full((len(rows), 1), grown.base_scores)
        asked = {"objective": "binary:logistic" if task == "binary" else "reg:squarederror", "base_score": 0.5}
        asked |= {"tree_method": "exact", "max_depth": p.depth, "eta": p.learning_rate, "nthread": 1}
        asked |= {"lambda": p.reg_lambda, "min_child_weight": p.min_child_weight}
        train = xgboost.DMatrix(
            matrix_of(parties)[rows], joint.labels[rows], weight=joint.weights[rows], base_margin=begin[rows]
        )
        theirs = xgboost.train(asked, train, p.trees).predict(train, output_margin=True)
    assert grown.margins[rows, 0] == pytest.approx(theirs, abs=2e-3 if task == "number" else 2e-5)
    average = np.average(joint.labels[rows], weights=joint.weights[rows])
    assert grown.base_scores[0] == pytest.approx(
        average if task == "number" else np.log(average / (1 - average)), abs=1e-5
    )


@pytest.mark.parametrize("least", [1, 20])
def test_a_weighted_tree_is_scikit_learns_and_least_records_are_people(least):
    with joined(2, n=1000, gaps=0.0, coded=False) as parties:
        joint = weighed(parties, drawn(1000))
        grown = grow(joint, replace(KINDS["fl-dt"], bins=256, min_samples_leaf=least))
        rows, matrix = joint.training, matrix_of(parties)
        peer = DecisionTreeClassifier(max_depth=4, min_samples_leaf=least, random_state=0)
        peer.fit(matrix[rows], joint.labels[rows], sample_weight=joint.weights[rows])
        ours, theirs = grown.margins[rows, 0], peer.predict_proba(matrix[rows])[:, 1]
        impurity = [(joint.weights[rows] * p * (1 - p)).sum() for p in (ours, theirs)]
        assert impurity[0] == pytest.approx(impurity[1], rel=1e-6)
        people = np.bincount(grown.leaves[0][rows])
        assert people[people > 0].min() >= least
    covers = {i: n.cover for i, n in enumerate(grown.trees[0].nodes) if isinstance(n, Leaf)}
    weights = np.bincount(grown.leaves[0][rows], joint.weights[rows], minlength=max(covers) + 1)
    assert [weights[i] for i in covers] == pytest.approx(list(covers.values()), rel=1e-6)


def test_a_weighted_tree_of_a_forest_for_numbers_is_scikit_learns():
    one = ForestParameters(trees=1, depth=3, bins=256, row_sample=1.0, column_sample=1.0, score_bits=20, cipher="none")
    with joined(6, n=600, task="number", gaps=0.0, coded=False) as parties:
        joint = weighed(parties, drawn(600))
        grown, rows = grow(joint, one), joint.training
        peer = DecisionTreeRegressor(max_depth=3, min_samples_leaf=one.min_samples_leaf, random_state=0)
        matrix = matrix_of(parties)[rows]
        peer.fit(matrix, joint.labels[rows], sample_weight=joint.weights[rows])
        assert grown.margins[rows, 0] == pytest.approx(peer.predict(matrix), abs=1e-6)


def test_a_weight_of_three_is_a_record_three_times():
    """Impurities and leaves see no difference: the sums of a node are those of the copies."""
    once = np.array([[4, 1, 0], [1, 6, 0]])
    thrice = Histogram(3 * once, categorical=False)
    numbers, unit = quantise_weights(np.full(1, 3.0))
    weighted = Histogram(once * numbers[0], categorical=False)
    copies = ClassCounts(2, "entropy", Stops(), binary=True).best_split(thrice, 0, FREE)
    found = ClassCounts(2, "entropy", Stops(), binary=True, unit=unit).best_split(weighted, 0, FREE)
    assert (found.gain, found.left_bins) == (copies.gain, copies.left_bins)


def test_hosts_get_the_kinds_of_messages_that_they_get_without_weights(secret_key):
    kinds = []
    for weights in (None, drawn(60)):
        with joined(4, n=60, key=PaillierKeySide(secret_key)) as parties:
            grow(weighed(parties, weights), KINDS["secureboost"])
            kinds.append({(sender == GUEST, kind) for sender, _, kind, _ in parties.sent})
            largest = b"" if weights is None else np.float64(weights.max()).tobytes()
            assert weights is None or not any(largest in blob for *_, blob in parties.sent)
    assert kinds[0] == kinds[1]


def test_sums_of_the_heaviest_records_stay_exact():
    """Sums of so many largest numbers as may be added up are below 2**53, and whole weights have no rounding error."""
    numbers, unit = quantise_weights(np.array([1.0, 1000.0, 3.0]))
    assert (numbers * unit).tolist() == [1.0, 1000.0, 3.0]
    assert int(numbers.max()) * MAX_ROWS <= 1 << 52
    assert int(quantise_weights(np.array([1e9]))[0][0]) <= 1 << GRADIENT_BITS
    small, unit = quantise_weights(np.array([1.0, 2.0**20 / 1.5]))
    assert small[0] * unit == pytest.approx(1.0, rel=1e-3)
