"""Comparing protocols through the service and the command line: equal scores, figures as JSON, cancelling, mistakes."""

import json

import pytest
from homes import copied_home
from inside import runtime_of
from light_obfuscators import light_obfuscators
from short_keys import SHORTER, shorter_keys

from backend.data.demo import write_demo
from backend.errors import Cancelled, ParameterError
from backend.jobs import work
from backend.protocols.training.parameters import SecureBoostParameters
from backend.protocols.transport.simulated_latency import Link
from backend.research.baselines.comparison import PROTOCOLS
from backend.research.baselines.synthetic_model import Shape
from backend.services import Glassleaf
from backend.services.protocol_comparison import ComparisonRequest, usual_protocols
from backend.services.training import TrainingRequest

KEY = 512
SMALL = Shape(trees=3, depth=2, features=6)
GROWN = SecureBoostParameters(trees=4, depth=3, cipher="none")
FIGURES = {
    "protocol", "rounds", "hops", "messages", "bytes", "compute_seconds", "network_seconds", "total_seconds",
    "work_seconds", "equal", "learned",
}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A demo of three parties with one model."""
    home = tmp_path_factory.mktemp("compare") / "home"
    write_demo(home / "demo", rows=400)
    glassleaf = Glassleaf(home, key_floor=KEY, pools=False)
    glassleaf.training.start(TrainingRequest(glassleaf.federations.add(home / "demo").name, GROWN)).get()
    glassleaf.close()
    return home


@pytest.fixture
def small_pools(monkeypatch):
    """Pools that are soon full, and waited for on a slow machine too."""
    monkeypatch.setattr("backend.protocols.guest_keys.GUEST_POOL", 256)
    for module in ("protocols.simulation.simulator", "research.baselines.synthetic_model"):
        monkeypatch.setattr(f"backend.{module}.HOST_POOL", 256)
    monkeypatch.setattr("backend.research.baselines.race.POOLS_WAIT", 120.0)


@pytest.fixture
def glassleaf(home):
    with light_obfuscators(), Glassleaf(home, key_floor=KEY, pools=False) as glassleaf:
        yield glassleaf


def ask(glassleaf, **wanted):
    return glassleaf.protocol_comparison.start(ComparisonRequest("latest", **{"samples": 2, "key_bits": KEY, **wanted}))


def test_every_protocol_gives_the_same_scores_and_only_fed_eini_hides_the_path(glassleaf):
    job = ask(glassleaf)
    done = job.get()
    assert (job.done, job.total) == (7, 7)
    assert [row.protocol for row in done.runs.rows] == list(PROTOCOLS)
    assert all(row.equal for row in done.runs.rows)
    assert [row.protocol for row in done.runs.rows if not row.learned[0].directions] == ["fed-eini"]
    assert (done.pools, done.runs.cipher, done.runs.key_bits) == ("cold", "paillier", KEY)


def test_another_network_changes_the_times_and_nothing_else(glassleaf):
    done = ask(glassleaf, cipher="none", names=("fed-eini", "multi-interactive-level")).get()
    far = done.over(Link(2.0, 300_000))
    for near, later in zip(done.runs.rows, far.runs.rows, strict=True):
        assert later.exchange.network > near.exchange.network + near.exchange.rounds
        assert (later.exchange.bytes, later.exchange.rounds) == (near.exchange.bytes, near.exchange.rounds)
        assert later.exchange.compute == near.exchange.compute
        assert later.learned == near.learned
    assert (far.model_id, far.pools) == (done.model_id, "none")


def test_samples_are_test_records_and_the_same_for_the_same_seed(glassleaf):
    record = glassleaf.models.get("latest")
    rows = [glassleaf.models.test_rows(record, 5, seed).tolist() for seed in (1, 1, 2)]
    assert rows[0] == rows[1] != rows[2]
    parts = glassleaf.samples.table("latest")["part"]
    assert {parts.iloc[row] for row in rows[0]} == {"test"}


@pytest.mark.usefixtures("small_pools")
def test_pools_are_warm_once_they_hold_what_a_run_takes(home):
    glassleaf = Glassleaf(home, key_floor=KEY)
    try:
        assert ask(glassleaf, samples=1, names=("fed-eini",)).get().pools == "warm"
    finally:
        glassleaf.close()


def test_pools_that_can_never_hold_a_run_are_not_waited_for(home, monkeypatch):
    monkeypatch.setattr("backend.protocols.guest_keys.GUEST_POOL", 1)
    glassleaf = Glassleaf(home, key_floor=KEY)
    try:
        assert ask(glassleaf, samples=1, names=("fed-eini",)).get().pools == "cold"
    finally:
        glassleaf.close()


def test_a_comparison_can_be_stopped(glassleaf):
    request = ComparisonRequest("latest", 5, key_bits=KEY)
    seen = []

    class Stopping:
        """A job that is asked to stop when the second protocol begins."""

        def at(self, stage, party="", done=None):
            seen.append(stage)

        def cancelled(self):
            return PROTOCOLS[1] in seen

    with pytest.raises(Cancelled):
        glassleaf.protocol_comparison.compare(request, Stopping())
    assert seen == ["key", *PROTOCOLS[:2]]


def test_each_protocol_and_each_batch_has_its_part_of_what_is_done(glassleaf):
    shares = {}

    class Watched:
        """A job that notes how much was done when its stages begin."""

        result = None

        def at(self, stage, party="", done=None):
            shares.setdefault((stage, done), told[-1] if told else 0.0)

        def cancelled(self):
            return False

    told, request = [], ComparisonRequest("latest", 2, cipher="rlwe", batches=(1, 3))
    with work.watched(lambda: None, told.append):
        glassleaf.protocol_comparison.compare(request, Watched())
    whole = len(PROTOCOLS) + len(request.batches)
    begun = [*((name, number) for number, name in enumerate(PROTOCOLS)), ("batches", whole - 2), ("batches", whole - 1)]
    assert [shares[each] for each in begun] == pytest.approx([number / whole for number in range(whole)])


def test_a_race_is_there_while_batches_are_still_run(glassleaf):
    """And stays when the job is stopped among them."""
    seen = []

    class Stopping:
        """A job that is asked to stop when the second batch begins."""

        result = None

        def at(self, stage, party="", done=None):
            seen.append((stage, self.result and len(self.result.batches)))

        def cancelled(self):
            return seen[-1] == ("batches", 1)

    job = Stopping()
    with pytest.raises(Cancelled):
        glassleaf.protocol_comparison.compare(
            ComparisonRequest("latest", 2, cipher="none", names=("fed-eini",), batches=(1, 3)), job
        )
    assert seen == [("key", None), ("fed-eini", None), ("batches", 0), ("batches", 1)]
    assert [batch.runs.samples for batch in job.result.batches] == [1]
    assert len(job.result.runs.rows) == 1


def test_batches_are_measured_once_each_and_drawn_again_for_every_network(glassleaf):
    job = ask(glassleaf, cipher="none", batches=(1, 2, 5))
    done = job.get()
    assert (job.done, job.total) == (9, 9)
    assert [point.samples for point in done.points] == [1, 2, 5]
    far = done.over(Link(2.0, 300_000)).points
    assert all(later.by_level > near.by_level + 4 for near, later in zip(done.points, far, strict=True))
    assert done.left_out == ()


def test_a_batch_that_would_take_too_long_or_has_no_people_is_not_run(glassleaf, monkeypatch):
    monkeypatch.setattr("backend.research.baselines.race.MAX_BATCH_SECONDS", 0.0)
    job = ask(glassleaf, cipher="none", batches=(1, 5, 10**6))
    done = job.get()
    assert [point.samples for point in done.points] == [1, 2]
    assert done.left_out == (5,)
    assert (job.done, job.total) == (9, 9)


@pytest.mark.parametrize("cipher", ["paillier", "rlwe"])
def test_a_made_up_model_runs_through_every_protocol_under_the_guests_key(glassleaf, cipher):
    done = ask(glassleaf, cipher=cipher, shape=SMALL).get()
    assert (done.model_id, done.shape) == ("synthetic", SMALL)
    assert [row.protocol for row in done.runs.rows] == list(PROTOCOLS)
    assert all(row.equal for row in done.runs.rows)
    assert [learned.party for learned in done.runs.rows[0].learned] == ["guest", "host1"]
    assert done.runs.cipher == cipher
    assert (
        runtime_of(glassleaf).keys.scoring(cipher, KEY, glassleaf.models.compiled(glassleaf.models.get("latest")).guest)
        is not None
    )


def test_a_made_up_model_touches_no_file_but_the_guests_key(home, tmp_path):
    glassleaf = Glassleaf(copied_home(home, tmp_path / "home"), key_floor=KEY, pools=False)
    assert glassleaf.models.guest_model("latest") and (tmp_path / "home" / "demo" / "bank.csv").is_file()

    def files():
        return {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}

    before = files()
    ask(glassleaf, shape=SMALL, batches=(1, 3)).get()
    changed = {file for file, when in files().items() if before.get(file) != when and file.suffix != ".db-journal"}
    glassleaf.close()
    told = {file for file in changed if file.parent.name != "bank"}  # the Hosts keep the audit log's head
    assert {file.name for file in told} == {"store.db"}
    assert {file.name for file in changed - told} <= {f"paillier-{KEY}.key", f"paillier-{KEY}.tables", "store.db"}


@pytest.mark.usefixtures("small_pools")
def test_a_made_up_models_pools_are_filled_like_any_others(home):
    glassleaf = Glassleaf(home, key_floor=KEY)
    try:
        assert ask(glassleaf, samples=1, names=("fed-eini",), shape=SMALL).get().pools == "warm"
    finally:
        glassleaf.close()


def test_more_trees_cost_bytes_or_round_trips(glassleaf):
    few, many = (ask(glassleaf, cipher="none", shape=Shape(trees, 3, 8)).get().runs.rows for trees in (2, 20))
    ours, by_tree, by_level = (
        PROTOCOLS.index(f) for f in ("fed-eini", *(f"multi-interactive-{w}" for w in ("tree", "level")))
    )
    assert many[ours].exchange.bytes > 3 * few[ours].exchange.bytes
    assert many[ours].exchange.rounds == few[ours].exchange.rounds == 1
    assert many[by_tree].exchange.rounds > 3 * few[by_tree].exchange.rounds
    assert many[by_level].exchange.rounds <= 3


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"samples": 0, "shape": SMALL}, "Choose 1 or more"),
        ({"samples": 0}, "Choose 1 or more"),
        ({"samples": 10**6}, "1,000,000 were requested"),
        ({"names": ("quick",)}, "Asked for the protocols .quick."),
        ({"names": ()}, "Asked for the protocols ..;"),
    ],
)
def test_a_mistake_is_told(glassleaf, wanted, words):
    with pytest.raises(ParameterError, match=words):
        ask(glassleaf, **wanted).get()


def test_node_by_node_is_left_out_for_many_samples():
    assert usual_protocols(20) == PROTOCOLS
    assert [p for p in PROTOCOLS if p not in usual_protocols(21)] == ["multi-interactive-node"]


def test_the_command_prints_every_figure_as_json(run):
    words = ("--samples", 2, "--latency", 10, "--bandwidth", 500, "--bits", 2048, "--json")
    with shorter_keys():
        status, text, progress = run("compare", "latest", *words)
    found = json.loads(text)
    assert status == 0
    assert found["latency_seconds"] == 0.01
    assert found["bandwidth_bytes_per_second"] == 500_000
    assert (found["samples"], found["cipher"], found["key_bits"]) == (2, "paillier", 2048 // SHORTER)
    assert (found["pools"], found["left_out"], found["shape"]) == ("cold", [], None)
    assert [p["protocol"] for p in found["protocols"]] == list(PROTOCOLS)
    for protocol in found["protocols"]:
        assert set(protocol) == FIGURES
        assert protocol["equal"] is True
        assert [learned["party"] for learned in protocol["learned"]] == ["bank", "telecom", "platform"]
    assert "Left out" not in progress


def test_the_command_prints_a_table_and_says_what_it_left_out(run):
    status, text, _ = run("compare", "latest", "--samples", 21, "--cipher", "none")
    assert status == 0
    assert "Left out for more than 20 samples: multi-interactive-node; --all runs it too." in text
    lines = [line for line in text.splitlines() if line.split()[0] in PROTOCOLS]
    assert len(lines) == 6
    assert all(line.endswith("yes") for line in lines)
    assert "not counted" in lines[0]


def test_the_command_runs_all_where_asked(run):
    found = json.loads(run("compare", "latest", "--samples", 21, "--cipher", "none", "--all", "--json")[1])
    assert len(found["protocols"]) == 7
    assert found["left_out"] == []


def test_the_command_compares_on_a_made_up_model(run):
    shape = ("--trees", 3, "--depth", 2, "--features", 6)
    found = json.loads(run("compare", "synthetic", *shape, "--cipher", "none", "--json")[1])
    assert found["model"] == "synthetic"
    assert found["shape"] == {"trees": 3, "depth": 2, "features": 6, "hosts": 1}
    assert all(protocol["equal"] for protocol in found["protocols"])
    text = run("compare", "synthetic", *shape, "--cipher", "none")[1]
    assert text.startswith("synthetic, 3 trees of depth 2, 6 features: 1 sample, ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("latest", "--depth", 3), "--depth describes a synthetic model"),
        (("synthetic", "--trees", 0), "trees of the synthetic model is 0"),
    ],
)
def test_a_shape_that_cannot_be_is_one_sentence(run, words, said):
    status, _, error = run("compare", *words)
    assert status == 1
    assert said in error.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--latency", -1), "latency"),
        (("--bandwidth", 0), "bandwidth"),
        (("--cipher", "rot13"), "rot13"),
        (("--samples", 0), "Choose 1 or more"),
    ],
)
def test_a_mistake_at_the_shell_is_one_sentence(run, words, said):
    status, _, error = run("compare", "latest", *words)
    assert status == 1
    assert error.splitlines()[-1].startswith("Error: ")
    assert said in error
