"""Monotone constraints: XGBoost's trees, the same under encryption, and predictions that never turn, tried out by brute force."""

import numpy as np
import pytest
import xgboost
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joints import joined
from sklearn.tree import DecisionTreeClassifier
from worlds import GUEST

from backend.cli.options import choose
from backend.crypto.fixedpoint import quantise
from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.binning import make_bins
from backend.errors import ParameterError
from backend.protocols.training.algorithms import grow
from backend.protocols.training.decision_tree import DecisionTreeParameters
from backend.protocols.training.forest import ForestParameters
from backend.protocols.training.parameters import SecureBoostParameters, read_constraints, write_constraints
from backend.trees.ensemble import Leaf

NAMES = tuple(f"{party}_{column}" for party in (GUEST, "host0", "host1") for column in "xy")
SIGNS = {f"{GUEST}_x": 1, f"{GUEST}_y": -1, "host0_x": -1, "host0_y": 1, "host1_x": 1, "host1_y": 0}
ALL = write_constraints(SIGNS)
SMALL = {"bins": 10, "cipher": "none"}
KINDS = {
    "secureboost": lambda **more: SecureBoostParameters(**({"trees": 3, "depth": 3} | SMALL | more)),
    "forest": lambda **more: ForestParameters(**({"trees": 3, "depth": 4, "score_bits": 16} | SMALL | more)),
    "fl-dt": lambda **more: DecisionTreeParameters(**({"depth": 4, "min_gain": 0.0} | SMALL | more)),
}
TASKS = [("secureboost", "binary"), ("secureboost", "number"), ("forest", "binary"), ("forest", "number")]
TASKS += [("fl-dt", "binary")]


def binned(parties, bins):
    """``(n_joint, 6)``: bins of the ordered features of all parties, NaN where a value is missing."""
    joint, columns = parties.joint, []
    features = {f.name: f for offered in joint.features.values() for f in offered}
    for name in NAMES:
        made = make_bins(features[name], parties.columns[name][joint.training], bins)
        index = made.index(parties.columns[name]).astype(float)
        columns.append(np.where(index == made.count, np.nan, index))
    return np.stack(columns, axis=1)


def predictions(parties, grown, rules, bits):
    """Margins of all joint records by the rules, from leaves as they are released."""
    total = np.zeros(len(parties.joint.parts))
    for number, tree in enumerate(grown.trees):
        weights = np.array([n.weight if isinstance(n, Leaf) else np.nan for n in tree.nodes])
        total += quantise(np.nan_to_num(weights), bits)[parties.leaves(number, tree, rules)]
    return total


def turns(parties, grown, name, sign, bits):
    """Whether any record's prediction goes the wrong way while one feature takes every value that anybody has, in order."""
    rules, kept, last = parties.rules(grown.rules), parties.columns[name], None
    try:
        for value in np.unique(kept[~np.isnan(kept)]):
            parties.columns[name] = np.full(len(kept), value)
            now = predictions(parties, grown, rules, bits)
            if last is not None and (sign * (now - last) < 0).any():
                return True
            last = now
    finally:
        parties.columns[name] = kept
    return False


@pytest.mark.parametrize(("kind", "task"), TASKS)
def test_under_encryption_constraints_grow_the_same_trees(kind, task, secret_key):
    models = []
    for key in (None, PaillierKeySide(secret_key)):
        with joined(4, n=60, task=task, key=key) as parties:
            grown = grow(parties.joint, KINDS[kind](bins=5, constraints=ALL))
            models.append((grown.trees, parties.rules(grown.rules), grown.units.tolist(), grown.base_scores))
    assert models[0] == models[1]
    assert {s.owner for tree in models[0][0] for s in tree.splits.values()} > {GUEST}


@pytest.mark.parametrize("task", ["binary", "number"])
@pytest.mark.parametrize(("seed", "gaps"), [(0, 0.0), (1, 0.0), (2, 0.05), (7, 0.1)])
def test_boosted_trees_are_xgboosts_under_the_same_constraints_with_and_without_missing_values(task, seed, gaps):
    """On training rows: where a node saw no missing value, XGBoost's default side is another. It may also part missing values from all
    others, which ours does not; these data give it no reason to."""
    with joined(seed, n=220, task=task, gaps=gaps, coded=False) as parties:
        joint, p = parties.joint, KINDS["secureboost"](score_bits=16, constraints=ALL)
        grown, free = grow(joint, p), grow(joint, KINDS["secureboost"](score_bits=16))
        values, rows = binned(parties, p.bins), joint.training
        begin = np.full((len(rows), 1), grown.base_scores)
        settings_ = {"objective": "binary:logistic" if task == "binary" else "reg:squarederror"}
        settings_ |= {"tree_method": "exact", "max_depth": p.depth, "eta": p.learning_rate, "base_score": 0.5}
        settings_ |= {"lambda": p.reg_lambda, "min_child_weight": p.min_child_weight, "nthread": 1}
        settings_ |= {"monotone_constraints": tuple(SIGNS[name] for name in NAMES)}
        train = xgboost.DMatrix(values[rows], joint.labels[rows], base_margin=begin[rows])
        booster = xgboost.train(settings_, train, p.trees)
        theirs, nodes = booster.predict(train, output_margin=True), booster.trees_to_dataframe()
    splits = nodes[nodes.Feature != "Leaf"].Split
    assert ((splits > 0) & (splits < p.bins)).all() and (gaps == 0.0 or np.isnan(values[rows]).any())
    assert grown.margins[rows, 0] == pytest.approx(theirs, abs=2e-3 if task == "number" else 2e-5)
    assert grown.trees != free.trees


def test_a_constrained_tree_is_scikit_learns():
    with joined(2, n=1000, gaps=0.0, coded=False) as parties:
        grown = grow(parties.joint, KINDS["fl-dt"](constraints=ALL))
        values, rows = binned(parties, 10), parties.joint.training
        peer = DecisionTreeClassifier(max_depth=4, monotonic_cst=[SIGNS[name] for name in NAMES], random_state=0)
        peer.fit(values[rows], parties.joint.labels[rows])
    assert grown.margins[rows, 0] == pytest.approx(peer.predict_proba(values[rows])[:, 1])


@pytest.mark.parametrize(("kind", "task"), TASKS)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000), signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=6, max_size=6))
def test_no_prediction_ever_goes_against_a_constraint(kind, task, seed, signs):
    asked = dict(zip(NAMES, signs, strict=True))
    with joined(seed, n=80, task=task, gaps=0.1) as parties:
        grown = grow(parties.joint, KINDS[kind](constraints=write_constraints(asked)))
        bits = KINDS[kind]().score_bits
        assert not [n for n, sign in asked.items() if sign and turns(parties, grown, n, sign, bits)]


@pytest.mark.parametrize(("kind", "task"), TASKS)
def test_without_constraints_predictions_do_turn(kind, task):
    with joined(9, n=200, task=task, gaps=0.05) as parties:
        grown = grow(parties.joint, KINDS[kind]())
        bits = KINDS[kind]().score_bits
        assert any(turns(parties, grown, name, sign, bits) for name, sign in SIGNS.items() if sign)


def test_constraints_stand_over_the_dictionarys_expectations_and_zero_frees_a_feature():
    with joined(0, directions=True) as parties:
        expected = {(party, f"{party}_x"): 1 for party in (GUEST, "host0", "host1")}
        assert parties.joint.directions("", expected=True) == expected
        found = parties.joint.directions("host0_x=-1, host1_x=0, host1_y=+1", expected=True)
        assert found == expected | {("host0", "host0_x"): -1, ("host1", "host1_x"): 0, ("host1", "host1_y"): 1}
        assert parties.joint.directions("") == {}


def test_hosts_are_sent_and_answer_nothing_else_than_without_constraints():
    kinds = []
    for constraints in ("", ALL):
        with joined(1, n=60) as parties:
            grow(parties.joint, KINDS["secureboost"](constraints=constraints))
            kinds.append({(receiver == GUEST, kind) for _, receiver, kind, _ in parties.sent})
    assert kinds[0] == kinds[1]


def test_constraints_are_read_as_they_are_written():
    assert read_constraints(" b=-1,a=+1 , c=0,d=1,") == {"a": 1, "b": -1, "c": 0, "d": 1}
    assert write_constraints({"b": -1, "a": 1, "c": 0}) == "a=+1, b=-1, c=0"
    assert read_constraints("") == {} and write_constraints({}) == ""


@pytest.mark.parametrize(
    ("algorithm", "given_", "match"),
    [
        ("secureboost", {"constraints": "x"}, "holds x; write a feature with"),
        ("forest", {"constraints": "x=2"}, "holds x=2; write a feature with"),
        ("fl-dt", {"constraints": "x=+1,x=-1"}, "names x twice"),
        ("forest", {"constraints": "x=+1", "shuffle_sides": True}, "the order of a feature's bins.*Hosts hide it"),
        ("opboost", {"constraints": "x=+1"}, "moves its values by noise.*Choose secureboost"),
    ],
)
def test_constraints_that_cannot_be_read_or_kept_are_refused(algorithm, given_, match):
    with pytest.raises(ParameterError, match=match):
        choose(algorithm, given_)


@pytest.mark.parametrize(
    ("task", "text", "match"),
    [
        ("classes", f"{GUEST}_x=+1", "several classes, so predictions have no direction"),
        ("binary", "nobody=+1", "names nobody, which this training is not offered"),
        ("binary", f"{GUEST}_c=+1", "categories without an order"),
    ],
)
def test_constraints_that_mean_nothing_for_the_data_are_refused(task, text, match):
    with joined(0, hosts=0, task=task) as parties, pytest.raises(ParameterError, match=match):
        grow(parties.joint, KINDS["secureboost"](constraints=text))
