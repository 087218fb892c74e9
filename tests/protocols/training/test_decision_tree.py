"""FL-DT grows the tree that CART grows in one place: against an oracle that tries everything, scikit-learn, and ciphertexts."""

import numpy as np
import pytest
from joints import joined
from sklearn.tree import DecisionTreeClassifier
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.binning import make_bins
from backend.data.dictionary import Kind
from backend.errors import ParameterError
from backend.protocols.training.decision_tree import DecisionTreeParameters, grow
from backend.protocols.training.messages import AskBinSums, BinSums
from backend.protocols.transport.codec import decode
from backend.trees.ensemble import Leaf

PLAIN = DecisionTreeParameters(cipher="none", bins=6, depth=3)


def parameters(**changes):
    return DecisionTreeParameters(**(PLAIN.as_dict() | changes))


def gini(labels):
    return 1 - sum(np.mean(labels == k) ** 2 for k in np.unique(labels))


def cart(parties, p):
    """Leaves of CART on everybody's bins in one place, every cut tried: a set of (joint rows, share of each class)."""
    joint, classes = parties.joint, range(len(parties.joint.classes) or 2)
    bins = {
        f.name: make_bins(f, parties.columns[f.name][joint.training], p.bins)
        for offered in joint.features.values()
        for f in offered
    }
    place = {name: b.index(parties.columns[name]) for name, b in bins.items()}

    def sides(name, counted):
        count, index = bins[name].count, place[name]
        order = list(range(count))
        if bins[name].feature.kind is Kind.CATEGORICAL:
            held = joint.labels[counted & (index < count)]
            first = 1 if len(classes) == 2 else max(classes, key=lambda k: ((held == k).sum(), -k))
            order = [b for b in order if (counted & (index == b)).any()]
            order.sort(key=lambda b: np.mean(joint.labels[counted & (index == b)] == first))
        for missing_left in (False, True):
            for cut in range(1, len(order)):
                yield np.isin(index, order[:cut]) | (missing_left & (index == count))

    def below(inside, level):
        counted = inside & joint.training
        best, chosen = p.min_gain * counted.sum(), None
        for name in bins if level < p.depth else ():
            for left in sides(name, counted):
                a, b = counted & left, counted & ~left
                if min(a.sum(), b.sum()) < p.min_samples_leaf:
                    continue
                fall = sum(s.sum() * gini(joint.labels[s]) * sign for s, sign in ((counted, 1), (a, -1), (b, -1)))
                if fall > best + 1e-9:
                    best, chosen = fall, (name, left)
        if chosen is None:
            shares = tuple(round(float(np.mean(joint.labels[counted] == k)), 9) for k in classes)
            return {(tuple(np.flatnonzero(inside)), shares)}
        name, left = chosen
        missing = place[name] == bins[name].count
        if not (counted & missing).any():
            left = np.where(missing, 2 * (counted & left).sum() >= counted.sum(), left)
        return below(inside & left, level + 1) | below(inside & ~left, level + 1)

    return below(np.ones(len(joint.labels), dtype=bool), 0)


def leaves(parties, grown):
    """The same of a tree that was grown together, walked by all parties' rules."""
    [tree] = grown.trees
    where = parties.leaves(0, tree, parties.rules(grown.rules))
    leaf = {i: n for i, n in enumerate(tree.nodes) if isinstance(n, Leaf)}
    shares = {i: n.weights or (1 - n.weight, n.weight) for i, n in leaf.items()}
    return {(tuple(np.flatnonzero(where == i)), tuple(round(w, 9) for w in shares[i])) for i in leaf}


@pytest.mark.parametrize("task", ["binary", "classes"])
@pytest.mark.parametrize("seed", range(4))
def test_the_tree_is_the_one_that_trying_everything_in_one_place_gives(seed, task):
    with joined(seed, n=80, task=task) as parties:
        grown = grow(parties.joint, PLAIN)
        assert len(grown.trees[0].leaves) > 4
        assert leaves(parties, grown) == cart(parties, PLAIN)


@pytest.mark.parametrize("changes", [{"min_gain": 0.1}, {"min_samples_leaf": 6}, {"depth": 1}])
def test_a_tree_that_stops_earlier_is_the_one_that_the_oracle_grows(changes):
    with joined(2, n=80) as parties:
        grown = grow(parties.joint, parameters(**changes))
        assert leaves(parties, grown) == cart(parties, parameters(**changes))
        assert len(grown.trees[0].leaves) < len(grow(parties.joint, PLAIN).trees[0].leaves)


@pytest.mark.parametrize("seed", range(4))
def test_the_leaves_are_as_pure_as_scikit_learns_on_the_same_bins(seed):
    """Without gaps and categories, which it does not split; of two cuts that are as good it may take the other one."""
    p = parameters(bins=256, min_samples_leaf=20, min_gain=0.0, depth=4)
    with joined(seed, n=1000, gaps=0.0, coded=False) as parties:
        joint = parties.joint
        grown = grow(joint, p)
        names = [f.name for offered in joint.features.values() for f in offered]
        bins = {
            f.name: make_bins(f, parties.columns[f.name][joint.training], 256)
            for o in joint.features.values()
            for f in o
        }
        matrix = np.stack([bins[name].index(parties.columns[name]) for name in names], axis=1)
        peer = DecisionTreeClassifier(max_depth=4, min_samples_leaf=20, random_state=0)
        peer.fit(matrix[joint.training], joint.labels[joint.training])
        ours, theirs = grown.margins[joint.training, 0], peer.predict_proba(matrix)[joint.training, 1]
        assert len(grown.trees[0].leaves) == peer.get_n_leaves() > 8
        assert (ours * (1 - ours)).sum() == pytest.approx((theirs * (1 - theirs)).sum(), rel=1e-12)


@pytest.mark.parametrize("task", ["binary", "classes"])
def test_ciphertexts_and_plaintext_grow_the_same_tree(task, secret_key):
    seen = []
    for key in (None, PaillierKeySide(secret_key)):
        with joined(1, key=key, task=task) as parties:
            grown = grow(parties.joint, PLAIN)
            seen.append((repr(grown.trees), repr(parties.rules(grown.rules)), grown.units.tolist()))
    assert seen[0] == seen[1]


def test_a_prediction_is_the_share_of_the_leaf_rounded_when_released():
    with joined(4, task="classes") as parties:
        grown = grow(parties.joint, parameters(score_bits=8))
        [tree] = grown.trees
        shares = np.array([tree.nodes[i].weights for i in parties.leaves(0, tree, parties.rules(grown.rules))])
    assert grown.outputs.classes == ("low", "middle", "high") and grown.base_scores == (0.0, 0.0, 0.0)
    np.testing.assert_allclose(grown.margins, shares, atol=1e-12)
    np.testing.assert_allclose(grown.margins.sum(axis=1), 1.0)
    assert grown.units.tolist() == np.rint(shares * 256).astype(int).tolist()


def test_a_host_is_asked_for_one_child_of_two_and_never_learns_a_bin(secret_key):
    """Eq. 14; and of what T2 fears, each sample's bin, nothing but sums and sides of chosen splits leave a Host."""
    with joined(3, key=PaillierKeySide(secret_key)) as parties:
        parties.sent.clear()
        [tree] = grow(parties.joint, PLAIN).trees
        asked = [decode(b) for _, to, kind, b in parties.sent if kind == AskBinSums.__name__ and to == "host0"]
        reported = {kind for _, to, kind, _ in parties.sent if to == GUEST}
    parents = {child for i, s in tree.splits.items() for child in (s.left, s.right)}
    children = [node for message in asked for node in message.nodes if node in parents]
    siblings = {s.left: s.right for s in tree.splits.values()}
    assert children and not any(siblings.get(node) in children for node in children)
    assert reported == {"FeatureBins", BinSums.__name__, "SplitRows"}


def test_progress_is_reported_once_with_the_trees_figures():
    reported = []
    with joined(0, n=200, on_tree=reported.append) as parties:
        grown = grow(parties.joint, PLAIN)
        training = parties.joint.training
        error = np.where(parties.joint.labels == 1, grown.margins[:, 0], 1 - grown.margins[:, 0])[training]
    [progress] = reported
    assert (progress.tree, progress.trees) == (1, 1)
    assert progress.log_loss_training == pytest.approx(-np.log(np.maximum(error, 1e-15)).mean())
    assert 0.5 < progress.auc_validation < progress.auc_training


def test_a_label_that_is_a_number_is_refused():
    with joined(0, task="number") as parties, pytest.raises(ParameterError, match="choose forest or secureboost"):
        grow(parties.joint, PLAIN)


def test_the_defaults_are_the_papers():
    """Guo et al. §4.2: depth 5, 256 bins, a least gain of 0.001, and a garbled Bloom filter."""
    defaults = DecisionTreeParameters()
    assert (defaults.depth, defaults.bins, defaults.min_gain, defaults.alignment) == (5, 256, 1e-3, "bloom")
    assert DecisionTreeParameters.ALGORITHM == "fl-dt" and defaults.as_dict()["cipher"] == "rlwe"


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 0},
        {"bins": 1},
        {"min_gain": -1.0},
        {"min_samples_split": 1},
        {"min_samples_leaf": 0},
        {"score_bits": 3},
        {"cipher": "riac"},
        {"alignment": "none"},
        {"key_bits": 512},
    ],
)
def test_a_parameter_out_of_range_is_named(wrong):
    with pytest.raises(ParameterError, match=f"^{next(iter(wrong))} is .*choose"):
        parameters(**wrong)
