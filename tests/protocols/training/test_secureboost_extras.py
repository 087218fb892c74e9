"""What SecureBoost has beyond its defaults: each beside XGBoost or the paper's own words, each the same under encryption."""

import numpy as np
import pytest
import xgboost
from joints import joined
from worlds import GUEST

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.data.binning import make_bins
from backend.errors import ParameterError
from backend.protocols.training.federated_trees import TreeGrower
from backend.protocols.training.joint import TRAINING, VALIDATION
from backend.protocols.training.messages import AskBinSums, Gradients, TakeSplit
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.training.row_sets import unpack_rows
from backend.protocols.training.secureboost import grow
from backend.protocols.transport.codec import decode as read
from backend.trees.ensemble import Leaf
from backend.trees.metrics import measure

SMALL = {"trees": 4, "depth": 3, "bins": 12, "cipher": "none"}
OBJECTIVES = {"binary": "binary:logistic", "classes": "multi:softprob", "number": "reg:squarederror"}


def parameters(**kwargs):
    return SecureBoostParameters(**(SMALL | kwargs))


def peer(parties, p, begin, rows, *, weight=None, names=None, rounds=None, **settings):
    """XGBoost's margins ``(n_joint, k)`` after some rounds on the same bins, from the margins `begin`."""
    joint = parties.joint
    features = [f for offered in joint.features.values() for f in offered if names is None or f.name in names]
    binned = np.stack(
        [
            make_bins(f, parties.columns[f.name][joint.training], p.bins).index(parties.columns[f.name])
            for f in features
        ],
        axis=1,
    )
    options = {
        "objective": OBJECTIVES[joint.task],
        "tree_method": "hist",
        "max_depth": p.depth,
        "eta": p.learning_rate,
        "lambda": p.reg_lambda,
        "min_child_weight": p.min_child_weight,
        "max_bin": 64,  # more than there are bins, so that XGBoost keeps ours
        "base_score": 0.5,
        "nthread": 1,
    } | settings
    if joint.task == "classes":
        options["num_class"] = len(joint.classes)
    train = xgboost.DMatrix(
        binned[rows], joint.labels[rows], base_margin=begin[rows], weight=None if weight is None else weight[rows]
    )
    model = xgboost.train(options, train, p.trees if rounds is None else rounds)
    return model.predict(xgboost.DMatrix(binned, base_margin=begin), output_margin=True).reshape(begin.shape)


def before(grown):
    """Margins before any tree."""
    return np.tile(grown.base_scores, (len(grown.margins), 1))


@pytest.mark.parametrize("task", ["binary", "classes", "number"])
@pytest.mark.parametrize("seed", range(3))
def test_margins_are_xgboosts_for_every_kind_of_label(task, seed):
    with joined(seed, n=200, task=task, gaps=0.0, coded=False) as parties:
        p = parameters(score_bits=16)
        grown = grow(parties.joint, p)
        theirs = peer(parties, p, before(grown), parties.joint.training)
    assert grown.margins == pytest.approx(theirs, abs=2e-3 if task == "number" else 2e-5)
    per_round = 3 if task == "classes" else 1
    assert len(grown.trees) == 4 * per_round and grown.margins.shape == (200, per_round)
    assert {s.owner for tree in grown.trees for s in tree.splits.values()} == {GUEST, "host0", "host1"}
    assert grown.outputs.of_tree == ((0, 1, 2) * 4 if task == "classes" else ())


@pytest.mark.parametrize("task", ["binary", "classes", "number"])
def test_margins_and_units_are_the_sums_of_the_leaves_to_which_the_rules_lead(task):
    with joined(1, n=120, task=task) as parties:
        grown = grow(parties.joint, parameters())
        rules = parties.rules(grown.rules)
        sums = before(grown)
        units = np.rint(sums * 1024)
        for number, tree in enumerate(grown.trees):
            k = grown.outputs.of_tree[number] if task == "classes" else 0
            weights = np.array([n.weight if isinstance(n, Leaf) else np.nan for n in tree.nodes])
            values = weights[parties.leaves(number, tree, rules)]
            sums[:, k] += values
            units[:, k] += np.rint(values * 1024)
    assert grown.margins == pytest.approx(sums) and (grown.units == units).all()


def test_before_any_tree_everybody_is_predicted_the_training_rows_average():
    for task, expected in (
        ("binary", lambda y: [np.log(y.mean() / (1 - y.mean()))]),
        ("classes", lambda y: [np.log((y == k).mean()) for k in range(3)]),
        ("number", lambda y: [y.mean()]),
    ):
        with joined(2, n=120, hosts=0, task=task) as parties:
            grown = grow(parties.joint, parameters(trees=1, score_bits=16))
            y = parties.joint.labels[parties.joint.training]
        assert grown.base_scores == pytest.approx(expected(y), abs=2**-16)


EXTRAS = [
    ("binary", {"complete": True}),
    ("binary", {"label_bound": 0.1}),
    ("classes", {"label_bound": 0.2, "row_sample": 0.7}),
    ("binary", {"row_sample": 0.6, "column_sample": 0.5}),
    ("binary", {"goss_top": 0.3, "goss_other": 0.2}),
    ("binary", {"monotone": True}),
    ("binary", {"class_weight": "balanced"}),
    ("binary", {"early_stopping": 1, "learning_rate": 1.0}),
    ("classes", {"class_weight": "balanced", "goss_top": 0.3, "goss_other": 0.1}),
    ("classes", {"complete": True}),
    ("number", {"monotone": True, "row_sample": 0.7}),
    ("number", {"goss_top": 0.1, "goss_other": 0.1}),
]


@pytest.mark.parametrize(("task", "extra"), EXTRAS)
def test_under_encryption_every_extra_grows_the_same_model(task, extra, secret_key):
    models = []
    for key in (None, PaillierKeySide(secret_key)):
        with joined(4, n=60, task=task, key=key, directions=True) as parties:
            grown = grow(parties.joint, parameters(trees=2, bins=5, **extra))
            models.append((grown.trees, parties.rules(grown.rules), grown.units.tolist(), grown.base_scores))
    assert models[0] == models[1] and models[0][0]


@pytest.fixture
def jobs(monkeypatch):
    """Jobs and pairs of every round, written down."""
    seen = []
    grow_, send = TreeGrower.grow, TreeGrower.send_pairs

    def note(self, batches, **kwargs):
        seen.append([batches, kwargs])
        send(self, batches, **kwargs)

    def watch(self, work, depth):
        seen[-1].append(work)
        return grow_(self, work, depth)

    # patched: boosting makes its grower itself, and of a round's sample nothing but ciphertexts crosses a boundary
    monkeypatch.setattr(TreeGrower, "send_pairs", note)
    monkeypatch.setattr(TreeGrower, "grow", watch)
    return seen


def rounds(parties, p, jobs):
    """(margins before, margins after, jobs) of each round: every one drawn and grown as in the whole training."""
    grown = [grow(parties.joint, parameters(**{**p, "trees": t + 1})) for t in range(3)]
    last = jobs[-3:]
    starts = [before(grown[0]), grown[0].margins, grown[1].margins]
    return zip(starts, (g.margins for g in grown), last, strict=True)


@pytest.mark.parametrize("task", ["binary", "classes", "number"])
def test_a_round_with_sampled_rows_and_columns_is_xgboosts_on_that_sample(task, jobs):
    p = {"row_sample": 0.5, "column_sample": 0.5, "score_bits": 16}
    with joined(5, n=240, task=task, gaps=0.0, coded=False) as parties:
        drawn = []
        for begin, after, (_, kwargs, work) in rounds(parties, p, jobs):
            rows, features = work[0].rows, work[0].features
            assert rows.sum() == 72 and not (rows & ~parties.joint.training).any() and len(features) == 3
            assert all(job.rows is rows and job.features == features for job in work) and kwargs["rows"] is rows
            theirs = peer(parties, parameters(**p), begin, rows, names={f for _, f in features}, rounds=1)
            assert after == pytest.approx(theirs, abs=2e-3 if task == "number" else 2e-5)
            drawn.append((rows.tobytes(), features))
    assert len({rows for rows, _ in drawn}) == 3 and len({features for _, features in drawn}) > 1


@pytest.mark.parametrize("task", ["binary", "classes", "number"])
def test_goss_keeps_the_largest_gradients_and_makes_up_for_the_others(task, jobs):
    """Ke et al. 2017, Alg. 2: the top a·n by |g|, b·n of the rest, which then weigh (1-a)/b; trees as XGBoost's on that sample."""
    p = {"goss_top": 0.2, "goss_other": 0.1, "score_bits": 16}
    with joined(6, n=250, task=task, gaps=0.0, coded=False) as parties:
        joint = parties.joint
        for begin, after, (batches, _, [job, *_]) in rounds(parties, p, jobs):
            probabilities = np.zeros_like(begin)
            if task == "binary":
                probabilities = 1 / (1 + np.exp(-begin))
            elif task == "classes":
                probabilities = np.exp(begin) / np.exp(begin).sum(axis=1, keepdims=True)
            y = np.eye(3)[joint.labels.astype(int)] if task == "classes" else joint.labels[:, None]
            gradients = (begin if task == "number" else probabilities) - y
            size = np.abs(gradients).sum(axis=1)
            weight = (batches[0][0] * job.criterion.units[0] / gradients[:, 0]).round(3)
            top, others = np.flatnonzero(weight == 1), np.flatnonzero(weight == (150 - 30) / 15)
            assert len(top) == 30 and len(others) == 15 and sorted([*top, *others]) == list(np.flatnonzero(job.rows))
            assert joint.training[job.rows].all()
            assert np.sort(size[top]) == pytest.approx(np.sort(size[joint.training])[-30:])
            theirs = peer(parties, parameters(**p), begin, job.rows, weight=weight, rounds=1)
            assert after == pytest.approx(theirs, abs=5e-3 if task == "number" else 2e-5)


def test_equal_gradients_are_kept_by_lot_and_not_by_their_place(jobs):
    """In a first round without base score every positive has one gradient and every negative another."""
    with joined(7, n=200, hosts=0) as parties:
        grow(parties.joint, parameters(trees=1, goss_top=0.1, goss_other=0.1))
        rows = np.flatnonzero(jobs[0][2][0].rows)
        labels, training = parties.joint.labels, np.flatnonzero(parties.joint.training)
        rarer = float(labels[training].mean() < 0.5)  # their gradients are the larger ones
        first = [i for i in training if labels[i] == rarer][:12]
        assert (labels[rows] == rarer).sum() >= 12 and not set(first) <= set(rows)


def test_rows_outside_a_sample_get_no_ciphertext_and_the_hosts_learn_which_do(secret_key):
    with joined(8, n=100, key=PaillierKeySide(secret_key)) as parties:
        grow(parties.joint, parameters(trees=2, goss_top=0.2, goss_other=0.2))
        width = secret_key.public.width
        sent = [read(blob) for _, to, kind, blob in parties.sent if kind == "Gradients" and to == "host1"]
    assert [m.tree for m in sent] == [0, 1] and all(isinstance(m, Gradients) for m in sent)
    for message in sent:
        assert unpack_rows(message.rows, 100).sum() == 24
        assert len(message.pairs) == 1 and len(message.pairs[0]) == 24 * width


def directions_hold(parties, grown, name):
    """Whether predictions of all joint records rise with one feature from its lowest to its highest value."""
    rules = parties.rules(grown.rules)
    kept = parties.columns[name]
    last = None
    for value in np.sort(kept[~np.isnan(kept)])[::8]:  # some in every bin
        parties.columns[name] = np.full(len(kept), value)
        margins = np.zeros(len(kept))
        for number, tree in enumerate(grown.trees):
            weights = np.array([n.weight if isinstance(n, Leaf) else np.nan for n in tree.nodes])
            margins += weights[parties.leaves(number, tree, rules)]
        if last is not None and (margins < last - 1e-12).any():
            parties.columns[name] = kept
            return False
        last = margins
    parties.columns[name] = kept
    return True


@pytest.mark.parametrize("task", ["binary", "number"])
def test_monotone_predictions_never_fall_where_a_higher_value_should_mean_more(task):
    names = (f"{GUEST}_x", "host0_x", "host1_x")
    holds = {}
    for monotone in (False, True):
        with joined(9, n=300, task=task, directions=True, gaps=0.05) as parties:
            grown = grow(parties.joint, parameters(monotone=monotone, depth=5, trees=4))
            holds[monotone] = [directions_hold(parties, grown, name) for name in names]
            assert set(names) <= {s.feature for tree in grown.trees for s in tree.splits.values()}
    assert holds[True] == [True] * 3 and not all(holds[False])


@pytest.mark.parametrize("task", ["binary", "number"])
@pytest.mark.parametrize("seed", range(3))
def test_monotone_trees_are_xgboosts(task, seed):
    with joined(seed, n=200, task=task, directions=True, gaps=0.0, coded=False) as parties:
        p = parameters(monotone=True, depth=4, score_bits=16)
        free, held = grow(parties.joint, parameters(depth=4, score_bits=16)), grow(parties.joint, p)
        theirs = peer(parties, p, before(held), parties.joint.training, monotone_constraints=(1, 0) * 3)
    assert held.margins == pytest.approx(theirs, abs=2e-3 if task == "number" else 2e-5)
    assert held.trees != free.trees


@pytest.mark.parametrize("task", ["binary", "classes"])
def test_balanced_classes_weigh_as_xgboosts_weights_do(task):
    with joined(10, n=200, task=task, gaps=0.0, coded=False) as parties:
        p = parameters(class_weight="balanced", score_bits=16)
        grown = grow(parties.joint, p)
        labels = parties.joint.labels.astype(int)
        counts = np.bincount(labels[parties.joint.training])
        weight = (counts.sum() / (len(counts) * counts))[labels]
        theirs = peer(parties, p, before(grown), parties.joint.training, weight=weight)
        assert grown.margins == pytest.approx(theirs, abs=2e-5)
        one = np.log(1 / len(counts)) if task == "classes" else 0.0
        assert grown.base_scores == pytest.approx([one] * grown.outputs.count, abs=2**-16)
        # the same as scale_pos_weight but for the common factor, which λ and the least weight share
        if task == "binary":
            scaled = parameters(score_bits=16, class_weight="balanced", reg_lambda=0.0, min_child_weight=0.0, trees=1)
            ours = grow(parties.joint, scaled)
            theirs = peer(parties, scaled, before(ours), parties.joint.training, scale_pos_weight=counts[0] / counts[1])
            assert ours.margins == pytest.approx(theirs, abs=2e-5)


def test_the_first_round_of_a_complete_model_is_the_guests_alone():
    with joined(11, n=100, task="classes") as parties:
        grown = grow(parties.joint, parameters(complete=True, trees=2))
        first = next(i for i, (_, _, kind, _) in enumerate(parties.sent) if kind == "Gradients")
        asked = [read(blob) for _, _, kind, blob in parties.sent if kind in ("AskBinSums", "TakeSplit")]
        assert not any(kind in ("AskBinSums", "TakeSplit") for _, _, kind, _ in parties.sent[:first])
    numbers = {t for m in asked if isinstance(m, AskBinSums) for t in m.trees}
    numbers |= {m.tree for m in asked if isinstance(m, TakeSplit)}
    assert numbers == {3, 4, 5}
    owners = [{s.owner for s in tree.splits.values()} for tree in grown.trees]
    assert owners[:3] == [{GUEST}] * 3 and any({"host0", "host1"} & each for each in owners[3:])


@pytest.mark.parametrize("task", ["binary", "classes", "number"])
def test_early_stopping_keeps_the_round_of_the_smallest_validation_loss(task):
    seen = []
    with joined(12, n=150, task=task, on_tree=seen.append) as parties:
        grown = grow(parties.joint, parameters(trees=60, learning_rate=1.0, early_stopping=3))
        best = min(seen, key=lambda p: p.log_loss_validation)
        per_round = 3 if task == "classes" else 1
        assert len(grown.trees) == best.tree * per_round < len(seen) * per_round and len(seen) == best.tree + 3
        assert {t for t, _ in grown.rules} <= set(range(len(grown.trees)))
        for part, loss, auc in (
            (TRAINING, best.log_loss_training, best.auc_training),
            (VALIDATION, best.log_loss_validation, best.auc_validation),
        ):
            inside = parties.joint.parts == part
            metrics = measure(parties.joint.labels[inside], grown.margins[inside], "", grown.outputs)
            assert (loss, auc) == pytest.approx((metrics.loss, metrics.auc), nan_ok=True)
        assert np.isnan(best.auc_validation) == (task == "number")


@pytest.mark.parametrize(
    ("task", "extra", "match"),
    [
        ("classes", {"monotone": True}, "several classes, so predictions have no direction"),
        ("number", {"class_weight": "balanced"}, "the label is a number"),
        ("number", {"score_bits": 4}, r"steps of 2\^-4.*Choose more score_bits"),
    ],
)
def test_what_means_nothing_for_the_label_is_refused(task, extra, match):
    with joined(0, hosts=0, task=task) as parties:
        if "score_bits" in extra:
            parties.joint.labels[:] /= 1000
        with pytest.raises(ParameterError, match=match):
            grow(parties.joint, parameters(**extra))


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"row_sample": 0.05}, "row_sample is 0.05; choose a value from 0.1 to 1"),
        ({"column_sample": 1.5}, "column_sample is 1.5"),
        ({"goss_top": 0.2}, "choose both above 0"),
        ({"goss_other": 0.2}, "choose both above 0"),
        ({"goss_top": 0.7, "goss_other": 0.5}, "together at most 1"),
        ({"goss_top": 0.2, "goss_other": 0.1, "row_sample": 0.5}, "both choose rows"),
        ({"class_weight": "heavy"}, "choose one of none, balanced"),
    ],
)
def test_extras_outside_their_range_are_refused(values, match):
    with pytest.raises(ParameterError, match=match):
        SecureBoostParameters(**values)


@pytest.mark.parametrize("factor", [1e-5, 1e-3, 1e6])
def test_predicted_numbers_do_not_depend_on_the_unit_of_the_label(factor):
    """Gradients of any size fit: large ones are divided by a power of two before they travel."""
    with joined(13, n=150, task="number") as parties:
        reference = grow(parties.joint, parameters(score_bits=24, gamma=0.0))
    with joined(13, n=150, task="number") as parties:
        parties.joint.labels[:] *= factor
        grown = grow(parties.joint, parameters(score_bits=24, gamma=0.0))
    assert grown.margins / factor == pytest.approx(reference.margins, abs=1e-3)
