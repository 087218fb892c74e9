"""SecureBoost: the same trees on plaintext and on ciphertexts, the same growth as an all-in-one-place oracle, as good as XGBoost."""

import numpy as np
import pandas as pd
import pytest
import xgboost

from backend.crypto.paillier.scheme import PaillierKeySide
from backend.crypto.plain import PlainKeySide
from backend.data.binning import make_bins
from backend.data.credit_card import split_credit_card
from backend.data.demo import write_demo
from backend.data.dictionary import Kind
from backend.data.federation import load_federation
from backend.errors import Cancelled, FederationError
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training.guest import draw_parts
from backend.protocols.training.parameters import SecureBoostParameters
from backend.trees.ensemble import Split
from backend.trees.metrics import measure
from backend.trees.serialization import dump_guest, load_host


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    runtime = FederationRuntime(write_demo(folder, rows=400), folder / "parties", key_floor=512, pools=False)
    yield runtime
    runtime.close()


def train(runtime, parameters, key, hosts=None, **kwargs):
    session = runtime.open_session(runtime.hosts if hosts is None else hosts)
    try:
        return runtime.guest.train(runtime.labels(), parameters, key, session, **kwargs)
    finally:
        session.close()


def host_rules(runtime, model_id):
    """Rules of every Host's stored partial model, read by the test alone."""
    return {
        name: load_host(host._partial_models._store.artefact(model_id)).rules
        for name, host in runtime._simulated.hosts.items()
    }


SMALL = SecureBoostParameters(trees=3, depth=3, bins=8, cipher="none")


def test_ciphertexts_and_plaintext_grow_identical_trees_and_identical_partial_models(runtime, secret_key):
    plain = train(runtime, SMALL, PlainKeySide())
    plain_partial_models = host_rules(runtime, plain.model_id)
    encrypted = train(runtime, SMALL, PaillierKeySide(secret_key))
    assert dump_guest(plain.model) == dump_guest(encrypted.model)
    assert plain.model_id == encrypted.model_id
    assert plain_partial_models == host_rules(runtime, encrypted.model_id) and all(plain_partial_models.values())
    assert plain.host_hashes.keys() == encrypted.host_hashes.keys() == set(runtime.hosts)
    assert plain.host_hashes != encrypted.host_hashes  # salted: a hash confirms no guessed threshold
    assert {s.owner for tree in plain.model.trees for s in tree.splits.values()} > {"bank"}


def test_the_guests_result_has_rules_of_its_own_splits_only(runtime):
    model = train(runtime, SMALL, PlainKeySide()).model
    for (t, i), rule in model.rules.items():
        node = model.trees[t].nodes[i]
        assert isinstance(node, Split) and node.owner == "bank" and node.feature == rule.feature
    owned = {(t, i) for t, tree in enumerate(model.trees) for i, s in tree.splits.items() if s.owner == "bank"}
    assert owned == set(model.rules)


def test_a_feature_that_is_left_out_is_in_no_split_and_no_dictionary(runtime):
    used = {s.feature for tree in train(runtime, SMALL, PlainKeySide()).model.trees for s in tree.splits.values()}
    left_out = sorted(used)[0]
    model = train(runtime, SMALL, PlainKeySide(), exclude=(left_out,)).model
    assert left_out not in {s.feature for tree in model.trees for s in tree.splits.values()}
    assert left_out not in {f.name for _, f in model.dictionary}


def test_a_training_without_hosts_uses_the_guests_features_alone(runtime):
    trained = train(runtime, SMALL, PlainKeySide(), hosts=())
    assert {s.owner for tree in trained.model.trees for s in tree.splits.values()} == {"bank"}
    assert trained.parts["training"] == 240


def test_early_stopping_keeps_the_best_trees_and_the_hosts_keep_no_more(runtime):
    many = SecureBoostParameters(trees=60, depth=4, learning_rate=1.0, early_stopping=3, cipher="none")
    seen = []
    trained = train(runtime, many, PlainKeySide(), on_tree=seen.append)
    best = min(seen, key=lambda p: p.log_loss_validation).tree
    assert len(trained.model.trees) == best < len(seen) < 60
    assert len(seen) - best == 3


def test_parts_are_sixty_twenty_twenty_and_follow_the_seed():
    parts = draw_parts(1000, seed=1)
    assert [int((parts == p).sum()) for p in range(3)] == [600, 200, 200]
    assert (parts == draw_parts(1000, seed=1)).all() and (parts != draw_parts(1000, seed=2)).any()


def test_a_cancelled_training_leaves_nothing_behind(runtime):
    session = runtime.open_session(runtime.hosts, cancelled=iter([False] * 8 + [True] * 999).__next__)
    with pytest.raises(Cancelled):
        runtime.guest.train(runtime.labels(), SMALL, PlainKeySide(), session)
    session.close()
    assert train(runtime, SMALL, PlainKeySide()).model_id  # the Hosts go on


def test_labels_of_one_class_are_refused(runtime):
    session = runtime.open_session(runtime.hosts)
    with pytest.raises(FederationError, match="one class only"):
        runtime.guest.train(np.zeros_like(runtime.labels()), SMALL, PlainKeySide(), session)
    session.close()


def test_without_a_common_id_training_is_refused(tmp_path):
    federation = write_demo(tmp_path, rows=200)
    file = tmp_path / federation.hosts[0].file
    lines = file.read_text(encoding="utf-8").splitlines()
    column = lines[0].split(",").index(federation.hosts[0].id)
    for i, line in enumerate(lines[1:], 1):
        cells = line.split(",")
        cells[column] = f"other{i}"
        lines[i] = ",".join(cells)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    runtime = FederationRuntime(federation, tmp_path / "parties", pools=False)
    try:
        with pytest.raises(FederationError, match="holds none of the 200 ids of bank"):
            train(runtime, SMALL, PlainKeySide())
    finally:
        runtime.close()


PARAMETERS = SecureBoostParameters(trees=20, depth=4, bins=32, cipher="none")


def compare_with_xgboost(folder, csv, *, ordered):
    """Train ours on the credit-card federation and XGBoost's `hist` on the same rows and bins; returns (AUC, KS) of each."""
    federation = split_credit_card(csv, folder)
    if ordered:  # codes read as numbers, as XGBoost does unless it is told otherwise
        file = folder / "federation.toml"
        file.write_text(file.read_text(encoding="utf-8").replace('"categorical"', '"numeric"'), encoding="utf-8")
        federation = load_federation(folder)
    runtime = FederationRuntime(federation, folder / "parties", pools=False)
    trained = train(runtime, PARAMETERS, PlainKeySide())
    runtime.close()
    frame = pd.read_csv(csv, dtype=str).sort_values("ID", kind="stable")  # the common order of an alignment
    labels = frame[federation.label.column].to_numpy().astype(int)
    parts = draw_parts(len(frame), PARAMETERS.seed)
    features = [f for _, f in trained.model.dictionary]
    binned = np.empty((len(frame), len(features)))
    for j, f in enumerate(features):
        column = frame[f.name].to_numpy(dtype=object)
        column = column if f.kind is Kind.CATEGORICAL else column.astype(float)
        binned[:, j] = make_bins(f, column[parts == 0], PARAMETERS.bins).index(column)
    types = ["c" if f.kind is Kind.CATEGORICAL else "q" for f in features]

    def matrix(part):
        return xgboost.DMatrix(
            binned[parts == part], labels[parts == part], feature_types=types, enable_categorical=True
        )

    settings = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": PARAMETERS.depth,
        "eta": PARAMETERS.learning_rate,
        "lambda": PARAMETERS.reg_lambda,
        "min_child_weight": PARAMETERS.min_child_weight,
        "max_bin": 64,  # more than there are distinct bins, so that XGBoost keeps ours
        "max_cat_to_onehot": 1,
        "base_score": float(labels[parts == 0].mean()),
        "nthread": 1,
    }
    peer = xgboost.train(settings, matrix(0), PARAMETERS.trees).predict(matrix(2))
    theirs = measure(labels[parts == 2], np.log(peer / (1 - peer)), "test")
    assert trained.metrics.n == theirs.n == 6000
    return (trained.metrics.auc, trained.metrics.ks), (theirs.auc, theirs.ks)


@pytest.mark.slow
def test_credit_card_auc_and_ks_are_within_three_thousandths_of_xgboost(tmp_path, credit_card_csv):
    ours, theirs = compare_with_xgboost(tmp_path, credit_card_csv, ordered=True)
    assert ours == pytest.approx(theirs, abs=0.003)


@pytest.mark.slow
def test_with_categories_the_credit_card_auc_is_within_three_thousandths_of_xgboost(tmp_path, credit_card_csv):
    """A few rare codes go another way at XGBoost's splits, and KS, a maximum over 6,000 rows, moves more than AUC."""
    ours, theirs = compare_with_xgboost(tmp_path, credit_card_csv, ordered=False)
    assert ours[0] == pytest.approx(theirs[0], abs=0.003)
    assert ours[1] == pytest.approx(theirs[1], abs=0.01)
