"""A whole OpBoost training: what is sent, what stays, and that scoring on true values gives the trees' own sums."""

import secrets
import struct
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from actors import tapped_parties

from backend.crypto.plain import PlainKeySide
from backend.data.demo import write_demo
from backend.data.dictionary import Feature, Kind
from backend.data.table import PartyTable
from backend.errors import Cancelled, ParameterError, SecurityError
from backend.jobs import work
from backend.protocols.scoring.fed_eini import CompiledGuest
from backend.protocols.simulation.simulator import FederationRuntime
from backend.protocols.training import algorithms
from backend.protocols.training.guest import draw_parts
from backend.protocols.training.joint import Joint
from backend.protocols.training.messages import Ranks, StartRanks
from backend.protocols.training.opboost import host_side
from backend.protocols.training.opboost.grow import grow
from backend.protocols.training.opboost.host_side import HostRanks, NoisyColumns
from backend.protocols.training.opboost.parameters import OpBoostParameters
from backend.protocols.transport.codec import decode
from backend.protocols.transport.packing import to_numbers
from backend.trees.ensemble import Split
from backend.trees.serialization import load_host

SMALL = OpBoostParameters(trees=4, depth=3, epsilon=1.0, levels=32)


@pytest.fixture
def quiet(monkeypatch):
    """Every word is the middle of its distribution, so that answers can be worked out by hand: at ε = 20 that is the true value."""
    middle = np.uint64(1 << 63)
    # patched: every word is the middle of its distribution, so that answers can be worked out by hand
    monkeypatch.setattr(host_side.SecretWords, "of_records", lambda words: np.full(len(words._ids), middle))
    monkeypatch.setattr(host_side.SecretWords, "stream", lambda words, count: np.full(count, middle))


@pytest.fixture
def runtime(tmp_path):
    runtime = FederationRuntime(write_demo(tmp_path, rows=400), tmp_path / "parties", key_floor=512, pools=False)
    yield runtime
    runtime.close()


def train(runtime, parameters=SMALL, **kwargs):
    session = runtime.open_session(runtime.hosts)
    try:
        return runtime.guest.train(runtime.labels(), parameters, None, session, **kwargs), session.transcript()
    finally:
        session.close()


def partial_models(served, model_id):
    return {name: load_host(host._partial_models._store.artefact(model_id)) for name, host in served.hosts.items()}


def test_a_model_of_ranks_is_kept_as_partial_models_and_scored_like_any_other(runtime):
    trained, _ = train(runtime)
    owners = {s.owner for tree in trained.model.trees for s in tree.splits.values()}
    assert owners > {"bank"}
    for name, partial_model in partial_models(runtime._simulated, trained.model_id).items():
        assert set(partial_model.rules) == {
            (t, i) for t, tree in enumerate(trained.model.trees) for i, s in tree.splits.items() if s.owner == name
        }
    assert trained.metrics.n == trained.parts["test"] and trained.metrics.auc > 0.5


def test_the_guest_holds_rules_of_its_own_splits_only(runtime):
    model = train(runtime)[0].model
    own = {(t, i) for t, tree in enumerate(model.trees) for i, s in tree.splits.items() if s.owner == "bank"}
    assert set(model.rules) == own
    assert all(model.trees[t].nodes[i].feature == rule.feature for (t, i), rule in model.rules.items())


def test_a_host_sends_ranks_and_nothing_else_about_its_values(tmp_path):
    tap = []
    runtime, simulated = tapped_parties(write_demo(tmp_path, rows=400), tmp_path / "parties", tap)
    trained, transcript = train(runtime)
    kept = partial_models(simulated.served, trained.model_id)
    runtime.close()
    assert {e.kind for e in transcript} >= {"StartRanks", "Ranks", "TakeRankSplits", "KeepModel"}
    sent = [(kind, decode(blob)) for sender, _, kind, blob in tap if sender != "bank"]
    assert {kind for kind, _ in sent} <= {
        "AlignmentStarted", "HiddenAnswer", "Ranks", "ModelKept", "HeldRecords", "DecisionVectors", "MoreVectors", "EncryptedScores",
    }  # fmt: skip
    assert all(max(message.counts) <= SMALL.levels for kind, message in sent if kind == "Ranks")
    thresholds = {r.threshold for partial_model in kept.values() for r in partial_model.rules.values() if r.threshold}
    # not that of a yes-or-no column, nor "all to one side"
    thresholds = {t for t in thresholds if 1e-9 < abs(t) < 1e300}
    assert thresholds
    assert not any(struct.pack(">d", t) in blob for t in thresholds for _, _, _, blob in tap)  # as msgpack writes it
    assert not thresholds & {r.threshold for r in trained.model.rules.values()}


def test_without_noise_the_released_scores_are_the_sums_of_the_leaves_of_the_ranks(runtime, quiet, monkeypatch):
    """So rank cuts, own rules and thresholds on the true scale all say the same, missing values included."""
    seen = []
    monkeypatch.setitem(algorithms._GROW, OpBoostParameters, lambda *asked: seen.append(grow(*asked)) or seen[0])
    trained, _ = train(runtime, replace(SMALL, epsilon=20.0, levels=256, score_bits=20))
    compiled = CompiledGuest(trained.model)
    rows = np.array([runtime.table.row_of[i] for i in trained.part_of])
    session = runtime.open_session(runtime.hosts)
    scored = runtime.guest.score(trained.model_id, compiled, runtime.table.take(rows), PlainKeySide(), session)
    session.close()
    assert compiled.margins(scored.units) == pytest.approx(seen[0].margins, abs=1e-5)


def test_early_stopping_keeps_the_best_trees_and_the_hosts_keep_no_more(runtime):
    seen = []
    many = replace(SMALL, trees=60, learning_rate=1.0, early_stopping=3)
    trained, _ = train(runtime, many, on_tree=seen.append)
    best = min(seen, key=lambda p: p.log_loss_validation).tree
    assert len(trained.model.trees) == best < len(seen) < 60 and len(seen) - best == 3
    assert all(
        t < best
        for partial_model in partial_models(runtime._simulated, trained.model_id).values()
        for t, _ in partial_model.rules
    )


def test_progress_is_reported_after_every_tree(runtime):
    seen = []
    train(runtime, on_tree=seen.append)
    assert [p.tree for p in seen] == [1, 2, 3, 4]
    assert all(a.log_loss_training > b.log_loss_training for a, b in pairwise(seen))


def test_a_training_can_be_stopped_between_two_trees(runtime):
    reported = []

    def stop_after_a_tree():
        if reported:
            raise Cancelled("stopped")

    session = runtime.open_session(runtime.hosts)
    with work.watched(stop_after_a_tree, lambda share: None), pytest.raises(Cancelled):
        runtime.guest.train(runtime.labels(), SMALL, None, session, on_tree=reported.append)
    session.close()
    assert len(reported) == 1 and train(runtime)[0].model_id


class Straight:
    """A conversation that calls one Host's side directly."""

    name, hosts = "c", ("h",)

    def __init__(self, table, features, answer=None):
        self.host = (table, features)
        self.answer = answer

    def send(self, host, message):
        if isinstance(message, StartRanks):
            self.ranks = HostRanks(
                NoisyColumns(*self.host, secrets.token_bytes(32)), np.arange(len(self.host[0].ids)), message
            )
        else:
            self.ranks.take_splits(message)

    def expect_each(self, kind, hosts):
        return {"h": self.answer or self.ranks.ranks("c")}

    def check(self):
        pass


def joint_of(task, answer=None, n=300):
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=n), draw.normal(size=n)
    code = np.array(["a", "b", "d"], dtype=object)[draw.integers(0, 3, n)]
    ids = tuple(f"i{i}" for i in range(n))
    own = (Feature(name="x", meaning="x"), Feature(name="code", meaning="c", kind=Kind.CATEGORICAL))
    theirs = (Feature(name="y", meaning="y"),)
    target = x + 2 * y + 3 * (code == "a")
    unknown = draw.random(n) < 0.2
    y[unknown], target[unknown] = np.nan, -3  # so that a missing value goes with the low ones
    labels = {
        "binary": (target > 0).astype(float),
        "classes": np.digitize(target, [-1, 1]).astype(float),
        "number": 1000 + 10 * target,
    }[task]
    session = Straight(PartyTable("h", ids, {"y": y}), theirs, answer)
    return Joint(
        session, None, "g", {"g": own, "h": theirs}, {"g": (), "h": ()}, PartyTable("g", ids, {"x": x, "code": code}),
        labels, task, ("low", "middle", "high") if task == "classes" else (), draw_parts(n, 1), lambda progress: None,
    )  # fmt: skip


def walked(joint, grown):
    """Margins node by node with all rules on true values."""
    rules = dict(grown.rules) | joint.conversation.ranks.rules
    columns = {**joint.table.columns, **joint.conversation.host[0].columns}
    margins = np.tile(grown.base_scores, (len(joint.labels), 1))
    for t, tree in enumerate(grown.trees):
        to = grown.outputs.of_tree[t] if grown.outputs.of_tree else 0
        for row in range(len(margins)):
            i = 0
            while isinstance(tree.nodes[i], Split):
                rule = rules[t, i]
                left = rule.goes_left(columns[rule.feature][row : row + 1])[0]
                i = tree.nodes[i].left if left else tree.nodes[i].right
            margins[row, to] += tree.nodes[i].weight
    return margins


@pytest.mark.parametrize(("task", "link"), [("binary", "logistic"), ("classes", "softmax"), ("number", "identity")])
def test_every_task_grows_and_its_trees_give_xgboosts_margins(quiet, task, link):
    joint = joint_of(task)
    grown = grow(joint, OpBoostParameters(trees=5, levels=256))
    k = 3 if task == "classes" else 1
    assert (len(grown.trees), grown.outputs.link, grown.margins.shape) == (5 * k, link, (300, k))
    assert grown.units is None
    assert grown.outputs.of_tree == ((0, 1, 2) * 5 if task == "classes" else ())
    assert walked(joint, grown) == pytest.approx(grown.margins, abs=2e-4 if task == "number" else 1e-5)
    assert {s.owner for tree in grown.trees for s in tree.splits.values()} == {"g", "h"}
    assert any(rule.right_categories for rule in grown.rules.values())
    assert any(s.default_left for tree in grown.trees for s in tree.splits.values() if s.owner == "h")


def test_the_start_of_the_sums_is_what_would_be_predicted_of_everybody(quiet):
    joint = joint_of("number")
    grown = grow(joint, OpBoostParameters(trees=1))
    assert grown.base_scores[0] == pytest.approx(joint.labels[joint.training].mean(), abs=2**-11)


@pytest.mark.parametrize(
    "answer",
    [
        Ranks("c", ("y",), (2,), (b"\0" * 299,)),
        Ranks("c", ("z",), (2,), (b"\0" * 300,)),
        Ranks("c", ("y",), (999,), (b"\0" * 600,)),
        Ranks("c", ("y",), (2,), (b"\x07" * 300,)),
        Ranks("c", ("y", "y"), (2,), (b"\0" * 300,)),
    ],
)
def test_ranks_that_do_not_fit_stop_the_training(answer):
    with pytest.raises(SecurityError):
        grow(joint_of("binary", answer), SMALL)


def test_what_a_lying_host_makes_of_ranks():
    """It ranks whom it likes the lowest, and nothing is said: they are judged as those whose values are. Only numbers are checked."""
    levels, favoured = SMALL.levels, 10
    values = joint_of("binary").conversation.host[0].columns["y"]
    true = np.digitize(values, np.nanquantile(values, np.linspace(0, 1, levels + 1)[1:-1]))
    false = np.where(np.isnan(values), levels, true)
    false[:favoured] = 0
    answer = Ranks("c", ("y",), (levels,), (to_numbers(false, levels + 1),))
    joint = joint_of("binary", answer)
    joint.conversation.send = lambda host, message: None  # it takes whatever cuts come back
    grown = grow(joint, SMALL)
    assert "h" in {s.owner for tree in grown.trees for s in tree.splits.values()}
    lowest = np.flatnonzero(false == 0)[favoured:]
    assert grown.margins[:favoured].mean() < np.median(grown.margins)
    assert np.isin(grown.margins[:favoured], grown.margins[np.r_[lowest, :favoured]]).all()


def test_a_host_whose_values_all_look_alike_gets_no_split():
    answer = Ranks("c", ("y",), (1,), (to_numbers(np.zeros(300, dtype=np.intp), 2),))
    grown = grow(joint_of("binary", answer), SMALL)
    assert {s.owner for tree in grown.trees for s in tree.splits.values()} == {"g"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trees": 0}, "trees is 0"),
        ({"alignment": "post"}, "one of dh, bloom"),
        ({"map": "adj", "theta": 5}, "divides the 128 levels"),
        ({"depth": 99, "epsilon": -1}, "(?s)depth is 99.*epsilon is -1"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        OpBoostParameters(**change)
