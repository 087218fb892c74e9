"""The forest: what each tree may use, what the trees say together, the same under encryption, and as good as scikit-learn's."""

import numpy as np
import pytest
from joints import joined
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import log_loss, roc_auc_score
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.binning import make_bins
from backend.errors import Cancelled, ParameterError
from backend.protocols.scoring.packing import Packing
from backend.protocols.training import forest
from backend.protocols.training.forest import ForestParameters, grow
from backend.protocols.training.messages import AskBinSums, Gradients, StartTraining, TakeSplit
from backend.protocols.transport.codec import decode
from backend.trees.ensemble import GuestModel

PLAIN = ForestParameters(trees=5, depth=3, bins=6, min_samples_leaf=1, cipher="none", shuffle_sides=False)
TASKS = ("binary", "classes", "number")


def parameters(**changes):
    return ForestParameters(**(PLAIN.as_dict() | changes))


def seen(parties, grown):
    """Everything that a forest is, at all parties."""
    return repr((grown.trees, sorted(parties.rules(grown.rules).items()), grown.margins.tolist(), grown.units.tolist()))


def votes(parties, grown):
    """``(trees, n_joint, k)``: every tree walked by all parties' rules in one place."""
    rules = parties.rules(grown.rules)
    ends = [[tree.nodes[i] for i in parties.leaves(t, tree, rules)] for t, tree in enumerate(grown.trees)]
    return np.array([[leaf.weights or (leaf.weight,) for leaf in leaves] for leaves in ends])


def sent(parties, kind, receiver):
    return [decode(b) for _, to, name, b in parties.sent if name == kind.__name__ and to == receiver]


@pytest.mark.parametrize("task", TASKS)
def test_ciphertexts_and_plaintext_grow_the_same_forest_byte_for_byte(task, secret_key):
    grown = []
    for key in (None, PaillierKeySide(secret_key)):
        with joined(1, key=key, task=task) as parties:
            grown.append(seen(parties, grow(parties.joint, PLAIN)))
    assert grown[0] == grown[1]


@pytest.mark.parametrize("task", TASKS)
def test_a_forest_grown_in_lockstep_is_the_forest_grown_tree_by_tree(task, monkeypatch):
    grown = []
    for together in (8, 1):
        monkeypatch.setattr(forest, "TREES_A_ROUND", together)
        with joined(2, task=task) as parties:
            grown.append(seen(parties, grow(parties.joint, PLAIN)))
    assert grown[0] == grown[1]


@pytest.mark.parametrize("task", TASKS)
def test_the_prediction_is_the_mean_of_the_trees(task):
    """Leaves are divided by the number of trees, so that they add up to it; shares of classes add up to 1."""
    with joined(3, task=task) as parties:
        grown = grow(parties.joint, parameters(score_bits=12))
        walked = votes(parties, grown)
        labels = parties.joint.labels
    np.testing.assert_allclose(grown.margins, walked.sum(axis=0), atol=1e-9)
    assert grown.units.tolist() == np.rint(walked * 4096).sum(axis=0).astype(int).tolist()
    assert grown.base_scores == (0.0,) * grown.outputs.count
    assert (grown.outputs.link, grown.outputs.aggregation) == ("identity", "sum")
    if task == "number":
        assert labels.min() <= grown.margins.min() < grown.margins.max() <= labels.max()
    else:
        assert (grown.margins >= 0).all() and (grown.margins.sum(axis=1) <= 1 + 1e-9).all()


@pytest.mark.parametrize("task", TASKS)
def test_the_median_is_that_of_undivided_leaves_and_what_packed_scores_decode_to(task):
    with joined(3, task=task) as parties:
        grown = grow(parties.joint, parameters(aggregation="median"))
        walked = votes(parties, grown)
    assert grown.outputs.aggregation == "median"
    np.testing.assert_allclose(grown.margins, np.median(walked, axis=0), atol=1e-12)
    assert grown.units.tolist() == np.median(np.rint(walked * 1024), axis=0).astype(int).tolist()
    model = GuestModel(GUEST, (), grown.trees, grown.base_scores, 10, (), grown.rules, grown.outputs)
    packing = Packing(model)
    of_leaves, first = packing.of_leaves(), np.cumsum([0, *(len(tree.leaves) for tree in grown.trees)])[:-1]
    packed = packing.base + sum(int(of_leaves[i]) for i in first)
    leaves = [tree.nodes[tree.leaves[0]] for tree in grown.trees]
    expected = np.median([np.rint(np.array(n.weights or (n.weight,)) * 1024) for n in leaves], axis=0) / 1024
    np.testing.assert_allclose(packing.margins([packed])[0], expected)


def test_the_labels_are_encrypted_and_sent_once_for_all_trees():
    with joined(4, task="classes") as parties:
        grow(parties.joint, parameters(trees=20, column_sample=1.0))
        [labels] = sent(parties, Gradients, "host0")
        asked = sent(parties, AskBinSums, "host0")
    assert len(labels.pairs) == 2  # three classes, two to a batch
    assert {t for message in asked for t in message.trees} == set(range(20))
    assert {batches for message in asked for batches in message.batches} == {(0, 1)}


@pytest.mark.parametrize(("column_sample", "count"), [(0.33, 3), (0.6, 5), (1.0, 9), (0.01, 1), (0.0, 3)])
def test_a_tree_uses_its_share_of_the_rows_and_a_split_its_share_of_the_features(column_sample, count, monkeypatch):
    jobs = []
    draw_job = forest.draw_job
    monkeypatch.setattr(forest, "draw_job", lambda *args: (jobs.append(draw_job(*args)), jobs[-1])[1])
    with joined(5, n=100) as parties:
        grown = grow(parties.joint, parameters(column_sample=column_sample, row_sample=0.4, trees=6))
        training = parties.joint.training
    assert [int(job.rows.sum()) for job in jobs] == [24] * 6  # of 60 training rows
    assert all((job.rows <= training).all() for job in jobs)
    assert len({job.rows.tobytes() for job in jobs}) == 6
    drawn = [job.drawn(node, 9) for job in jobs for node in range(4)]
    assert {len(first) for first, _ in drawn} == {count}
    assert all(sorted([*first, *others]) == list(range(9)) for first, others in drawn)
    assert (len({tuple(first) for first, _ in drawn}) > 1) == (count < 9)
    assert all(tree.nodes[0].cover == 24.0 for tree in grown.trees)


def test_a_split_is_by_the_feature_that_was_drawn_for_it(monkeypatch):
    jobs, features = [], []
    draw_job = forest.draw_job

    def drawn(joint, parameters, grower, *more):
        features[:] = grower.features
        jobs.append(draw_job(joint, parameters, grower, *more))
        return jobs[-1]

    monkeypatch.setattr(forest, "draw_job", drawn)
    with joined(5, n=100) as parties:
        grown = grow(parties.joint, parameters(column_sample=0.01, trees=12, depth=1, min_samples_leaf=1))
    for job, tree in zip(jobs, grown.trees, strict=True):
        first, _ = job.drawn(0, len(features))
        assert [(split.owner, split.feature) for split in tree.splits.values()] == [features[first[0]]]
    assert len({split.feature for tree in grown.trees for split in tree.splits.values()}) > 3


@pytest.mark.parametrize("aggregation", ["mean", "median"])
def test_progress_tells_how_well_trees_predict_rows_that_they_have_not_seen(aggregation, monkeypatch):
    jobs, reported = [], []
    draw_job = forest.draw_job
    monkeypatch.setattr(forest, "draw_job", lambda *args: (jobs.append(draw_job(*args)), jobs[-1])[1])
    monkeypatch.setattr(forest, "TREES_A_ROUND", 4)
    monkeypatch.setattr(forest, "ROWS_AT_ONCE", 7)
    with joined(6, n=150, on_tree=reported.append) as parties:
        grown = grow(parties.joint, parameters(trees=6, aggregation=aggregation))
        walked = votes(parties, grown)[:, :, 0] * (6 if aggregation == "mean" else 1)
        labels, training = parties.joint.labels, parties.joint.training
        validation = parties.joint.parts == 1
    how = np.mean if aggregation == "mean" else np.median
    bags = np.array([job.rows for job in jobs])
    for progress, trees in zip(reported, (4, 6), strict=True):
        rows = [i for i in np.flatnonzero(training) if not bags[:trees, i].all()]
        free = [how(walked[:trees, i][~bags[:trees, i]]) for i in rows]
        assert 0 < len(rows) < training.sum()
        assert (progress.tree, progress.trees) == (trees, 6)
        assert progress.auc_training == pytest.approx(roc_auc_score(labels[rows], free))
        seen = how(walked[:trees, validation], axis=0)
        assert progress.auc_validation == pytest.approx(roc_auc_score(labels[validation], seen))
        assert progress.log_loss_validation == pytest.approx(log_loss(labels[validation], seen))


def test_where_every_tree_sees_every_row_progress_is_that_of_training():
    reported = []
    with joined(6, n=150, on_tree=reported.append) as parties:
        grown = grow(parties.joint, parameters(row_sample=1.0))
        rows = parties.joint.training
        expected = roc_auc_score(parties.joint.labels[rows], grown.margins[rows, 0])
    assert reported[-1].auc_training == pytest.approx(expected)


def test_a_stop_is_heard_between_two_groups_of_trees(monkeypatch):
    monkeypatch.setattr(forest, "TREES_A_ROUND", 2)
    reported = []
    with joined(0, on_tree=reported.append) as parties:
        parties.joint.conversation._cancelled = lambda: len(reported) == 1
        with pytest.raises(Cancelled):
            grow(parties.joint, PLAIN)
    assert [p.tree for p in reported] == [2]


def test_of_a_complete_forest_the_first_tree_asks_no_host():
    with joined(7) as parties:
        grown = grow(parties.joint, parameters(complete=True, column_sample=1.0))
        asked = sent(parties, AskBinSums, "host0") + sent(parties, AskBinSums, "host1")
        taken = sent(parties, TakeSplit, "host0") + sent(parties, TakeSplit, "host1")
    assert {s.owner for s in grown.trees[0].splits.values()} == {GUEST}
    assert {t for message in asked for t in message.trees} == {1, 2, 3, 4} == {message.tree for message in taken}


@pytest.mark.parametrize("shuffle", [True, False])
def test_hosts_hide_the_upper_side_if_asked_to(shuffle):
    with joined(8) as parties:
        grown = grow(parties.joint, parameters(shuffle_sides=shuffle, trees=12, column_sample=1.0))
        [opening] = sent(parties, StartTraining, "host0")
        assert opening.hide_order is shuffle
        np.testing.assert_allclose(grown.margins, votes(parties, grown).sum(axis=0), atol=1e-9)


def binned(parties, bins=100):
    """Everybody's bins in one place, ``(n_joint, features)``; missing values in a bin of their own."""
    joint, columns = parties.joint, parties.columns
    every = [f for offered in joint.features.values() for f in offered]
    return np.stack([make_bins(f, columns[f.name][joint.training], bins).index(columns[f.name]) for f in every], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_auc_is_near_that_of_scikit_learns_forest_on_the_same_bins(criterion):
    p = parameters(
        trees=40, depth=6, bins=100, min_samples_leaf=5, column_sample=1.0, criterion=criterion, score_bits=12
    )
    with joined(9, n=2000, gaps=0.0, coded=False) as parties:
        joint, matrix = parties.joint, binned(parties)
        grown = grow(joint, p)
        peer = RandomForestClassifier(
            40, criterion=criterion, max_depth=6, min_samples_leaf=5, max_features=None, random_state=0
        )
        peer.fit(matrix[joint.training], joint.labels[joint.training])
        test = joint.parts == 2
        theirs = roc_auc_score(joint.labels[test], peer.predict_proba(matrix[test])[:, 1])
        ours = roc_auc_score(joint.labels[test], grown.margins[test, 0])
        released = roc_auc_score(joint.labels[test], grown.units[test, 0])
    assert theirs > 0.75
    assert ours == pytest.approx(theirs, abs=0.01)
    assert released == pytest.approx(ours, abs=0.002)


@pytest.mark.slow
def test_the_error_is_near_that_of_scikit_learns_forest_for_numbers():
    p = parameters(trees=40, depth=6, bins=100, min_samples_leaf=5, column_sample=1.0)
    with joined(9, n=2000, gaps=0.0, coded=False, task="number") as parties:
        joint, matrix = parties.joint, binned(parties)
        grown = grow(joint, p)
        peer = RandomForestRegressor(40, max_depth=6, min_samples_leaf=5, random_state=0)
        peer.fit(matrix[joint.training], joint.labels[joint.training])
        test = joint.parts == 2
        theirs = np.sqrt(np.mean((joint.labels[test] - peer.predict(matrix[test])) ** 2))
        ours = np.sqrt(np.mean((joint.labels[test] - grown.margins[test, 0]) ** 2))
        spread = joint.labels[test].std()
    assert theirs < 0.8 * spread
    assert ours == pytest.approx(theirs, rel=0.03)


def test_steps_too_coarse_for_so_many_trees_are_refused():
    """A label with a standard deviation of about 1/2: 200 trees want 16·√200 = 226 steps in it, so 2^-9 or finer."""
    with joined(0, n=200) as parties:
        grow(parties.joint, parameters(trees=200, depth=1, score_bits=9))
        with pytest.raises(ParameterError, match="at least 9 score_bits, or fewer trees"):
            grow(parties.joint, parameters(trees=200, depth=1, score_bits=8))
        grow(parties.joint, parameters(trees=200, depth=1, score_bits=8, aggregation="median"))


def test_a_number_in_too_large_a_unit_is_refused():
    with joined(0, task="number") as parties:
        parties.joint.labels[:] *= 1e-4
        with pytest.raises(ParameterError, match="smaller unit"):
            grow(parties.joint, PLAIN)


def test_a_number_that_never_changes_grows_leaves_only():
    with joined(0, task="number") as parties:
        parties.joint.labels[:] = 7.5
        grown = grow(parties.joint, PLAIN)
    np.testing.assert_allclose(grown.margins, 7.5)
    assert {len(tree.nodes) for tree in grown.trees} == {1}


def test_validation_and_test_labels_never_reach_the_sums():
    """Wild labels of rows that are not trained on change nothing."""
    grown = []
    for wild in (1.0, 1e6):
        with joined(0, task="number") as parties:
            parties.joint.labels[~parties.joint.training] *= wild
            grown.append(seen(parties, grow(parties.joint, PLAIN)))
    assert grown[0] == grown[1]


def test_the_defaults_are_the_papers_where_it_names_them():
    defaults = ForestParameters()
    assert (defaults.bins, defaults.shuffle_sides, ForestParameters.ALGORITHM) == (100, False, "forest")


@pytest.mark.parametrize(
    "wrong",
    [
        {"trees": 0},
        {"depth": 11},
        {"bins": 257},
        {"row_sample": 0.0},
        {"column_sample": 1.5},
        {"criterion": "variance"},
        {"aggregation": "sum"},
        {"cipher": "riac"},
    ],
)
def test_a_parameter_out_of_range_is_named(wrong):
    with pytest.raises(ParameterError, match=f"^{next(iter(wrong))} is .*choose"):
        parameters(**wrong)
