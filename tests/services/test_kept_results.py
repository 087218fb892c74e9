"""What jobs found that lies nowhere else is found again by a second process on the same home, whole, and by its own user alone."""

import json
import subprocess
import sys
from concurrent.futures import Future
from math import nan

import pytest

from backend.errors import Cancelled
from backend.jobs import Job, work
from backend.privacy.leakage import LeakPoint
from backend.privacy.tradeoff import TradeoffPoint
from backend.protocols.transport.simulated_latency import Link, simulate
from backend.protocols.transport.transcript import TranscriptEntry
from backend.remark import Remark
from backend.research.attacks.lab import ATTACKS, run_all
from backend.research.attacks.result import AttackOutcome, AttackResult, SuccessCount, count, followed
from backend.research.baselines.comparison import Comparison, ProtocolResult
from backend.research.baselines.disclosure import Learned
from backend.research.baselines.synthetic_model import Shape
from backend.services import attack_runs, kept_results
from backend.services.attack_runs import AttackRuns
from backend.services.forest_serving import ServedBatch, ServingRequest, ServingTrial
from backend.services.import_proof import Proof
from backend.services.job_registry import JobRegistry
from backend.services.kept_results import KINDS, read_result, write_result
from backend.services.model_import import Brought
from backend.services.protocol_comparison import Compared
from backend.services.reasons import CohortImportance
from backend.services.reports import ReportFile
from backend.services.workspace import Workspace
from backend.trees.metrics import Metrics

ANA, BEN = "https://id.example\nana", "https://id.example\nben"


def attacked(id_="A1", right=9):
    sides = SuccessCount(10, 10, 0.1), SuccessCount(right, 10, 0.2)
    return AttackResult(id_, "Crafted key", "critical", AttackOutcome(*sides, 0.5, {"bits": 7}, {"a": 1.0}, {"b": 2.5}))


def raced(people):
    transcript = (
        TranscriptEntry(1, "bank", "telecom", "DecisionVectors", 900, 0.1, "", "", ((0, 0.5),), b"\x80\xff", 800, 3),
        TranscriptEntry(2, "telecom", "bank", "EncryptedScores", 300, 0.2, "", "", ((1, 0.25),), b"\xfe", 200, 1),
    )
    learned = Learned("bank", ("EncryptedScores",), False, 1, None, 0.5, 3.5)
    row = ProtocolResult("fed-eini", simulate(transcript, Link()), (learned,), True, transcript)
    return Compared("m1", "warm", Comparison(people, "rlwe", 0, Link(), (row,)), Shape(3, 2, 6))


NOTES = (
    Remark("classes_are_numbered", {"last": 1, "classes": ("top", "low")}),
    Remark("missing_at_guest", {"columns": (Remark("missing_in_records", {"name": "age", "n": 3}),)}),
)
RESULTS = {
    "attacks": (attacked(), attacked("A2", 0)),
    "protocols": Compared(**{**vars(raced(1)), "batches": (raced(5),), "left_out": (100,)}),
    "serving": ServingTrial(
        ServingRequest("m1"), 5, 50, (ServedBatch(1, 0.1, (), 0.0), ServedBatch(2, 0.1, (3,), 0.2))
    ),
    "leak": (LeakPoint(16, 100, 2000, 0.5, 3.0, 2.0, 0.6, 1.0),),
    "frontier": (TradeoffPoint(10, 0.125, 100, 2000, 0.1, 4.0, Metrics(0.7, 0.3, 0.5, 0.8, 100, "test", 0.1, 0.2)),),
    "report": ReportFile("m1", "pdf", "en", "2026-11-24T10:00:00+00:00", "a" * 64, b"%PDF-1.7\x80\xff"),
    "import": Brought("demo", "mine.json", Proof(40, "XGBoost 3.2.0", 0.001, 0.01, 0.75, NOTES), "m1"),
    "shap": (CohortImportance("telecom", "calls", -0.25, 50, 0.01, "rlwe", 0),),
}


def restarted(home, kind, job, name=None):
    """The registry of a server that was started after one with a job of ANA's has gone."""
    before = JobRegistry(Workspace(home))
    before.of(ANA).start(name or f"{kind}:m1", lambda: job)
    before.close()
    return JobRegistry(Workspace(home))


def ended(result):
    return Job(lambda job: result, 1).start().wait(5)


def test_every_kept_kind_has_an_example_here():
    assert set(RESULTS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_restart_the_user_and_nobody_else_finds_the_result(tmp_path, kind):
    after = restarted(tmp_path, kind, ended(RESULTS[kind]))
    found = after.of(ANA).find(f"{kind}:m1")
    assert (found.state, found.failure) == ("done", None)
    assert found.result == (RESULTS[kind] if kind != "protocols" else kept_results._without_samples(RESULTS[kind]))
    assert after.of(ANA).find(f"{kind}:m1") is found and after.of(ANA).all()[0].job is found
    assert after.of(BEN).find(f"{kind}:m1") is None and after.of(ANA).find(f"{kind}:m2") is None
    after.close()


def test_a_race_is_drawn_again_for_every_network_after_a_restart(tmp_path):
    after = restarted(tmp_path, "protocols", ended(RESULTS["protocols"]), "protocols")
    found, far = after.of(ANA).find("protocols").result, Link(60.0, 1e9)
    for again, before in zip((found, *found.batches), (raced(1), raced(5)), strict=True):
        assert again.over(far).as_dict() == before.over(far).as_dict()
    assert all(entry.sample == b"" for row in found.runs.rows for entry in row.transcript)
    after.close()


def test_another_process_of_the_same_home_reads_what_this_one_found(tmp_path):
    registry = JobRegistry(Workspace(tmp_path))
    registry.of(ANA).start("leak:m1", lambda: ended(RESULTS["leak"]))
    ask = (
        "import sys; from pathlib import Path; from backend.services.job_registry import JobRegistry;"
        "from backend.services.workspace import Workspace;"
        f"found = JobRegistry(Workspace(Path(sys.argv[1]))).of({ANA!r}).find('leak:m1'); print(found.state, found.result)"
    )
    said = subprocess.run([sys.executable, "-c", ask, str(tmp_path)], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"done {RESULTS['leak']}"
    registry.close()


def test_a_number_that_does_not_apply_is_none_after_a_restart_either():
    metrics = Metrics(nan, nan, 0.5, nan, 100, "test", 12.5, 0.25)
    point = TradeoffPoint(10, 0.125, 100, 2000, 0.1, 4.0, metrics)
    (again,) = read_result("frontier", write_result("frontier", (point,)))
    assert repr(again) == repr(point)


def test_what_had_run_before_a_stop_is_found_again_as_stopped(tmp_path):
    def stop(job):
        job.result = RESULTS["attacks"][:1]
        raise Cancelled("Stopped.")

    after = restarted(tmp_path, "attacks", Job(stop, 1).start().wait(5), "attacks")
    found = after.of(ANA).find("attacks")
    assert (found.state, found.result) == ("cancelled", RESULTS["attacks"][:1])
    after.close()


def test_a_newer_run_without_a_result_hides_what_an_older_one_found(tmp_path):
    def fail(job):
        raise Cancelled("Stopped.")

    registry = restarted(tmp_path, "leak", ended(RESULTS["leak"]))
    registry.of(ANA).start("leak:m1", lambda: Job(fail, 1).start().wait(5))
    registry.close()
    assert JobRegistry(Workspace(tmp_path)).of(ANA).find("leak:m1") is None


def test_what_is_forgotten_is_gone_and_what_another_version_wrote_is_not_read(tmp_path, monkeypatch):
    after = restarted(tmp_path, "leak", ended(RESULTS["leak"]))
    after.of(ANA).forget("leak:m1")
    assert after.of(ANA).find("leak:m1") is None
    text = write_result("leak", RESULTS["leak"])
    monkeypatch.setattr(kept_results, "__version__", "0.0.1")
    assert read_result("leak", text) is None
    after.close()


def test_results_that_lie_elsewhere_or_are_about_people_are_not_kept(tmp_path):
    for kind in ("score", "reasons", "train", "evidence"):
        assert write_result(kind, object()) is None
    damaged = json.dumps({"version": kept_results.__version__, "result": [{"score_bits": "many"}]})
    assert read_result("leak", damaged) is None


def test_earlier_attacks_stay_beside_those_that_are_run_again(monkeypatch):
    monkeypatch.setattr("backend.services.attack_runs.run_all", lambda names, seed: (attacked(names[0], 3),))
    job = AttackRuns.start(["A2"], earlier_results=(attacked("A1"), attacked("A2"))).wait(5)
    assert [(one.id, one.outcome.on.right) for one in job.result] == [("A1", 9), ("A2", 3)]


def test_an_attack_at_work_says_which_of_its_measurements_it_is_at(monkeypatch):
    job, stages = Future(), []

    def measured():
        stages.append(job.result(60).stage)
        return 1, 2

    def run_all(names, seed):
        measured()  # while it is set up
        return [count(measured) for _ in range(2)][:0]

    monkeypatch.setattr(attack_runs, "run_all", run_all)
    job.set_result(AttackRuns.start(["A2-key"]))
    stages.append(job.result().wait(60).stage)
    assert stages == ["a2_key:0", "a2_key:1", "a2_key:2", "done"]


def test_what_scores_within_an_attack_counts_as_the_part_that_it_is_and_the_bar_moves_from_the_first_measurement_on(
    monkeypatch,
):
    job, shares = Future(), []

    def measured():
        work.reached(0.5)  # as a scoring would
        shares.append(job.result(60).eta.share)
        return 1, 2

    monkeypatch.setattr(attack_runs, "run_all", lambda names, seed: [count(measured) for _ in range(2)][:0])
    job.set_result(AttackRuns.start(["T1"]))
    job.result().wait(60)
    assert ATTACKS["T1"].measurements == 3  # its setup is the first
    assert shares == [pytest.approx(1.5 / 3), pytest.approx(2.5 / 3)]
    assert job.result().eta.share == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_measures_as_often_as_it_says(name):
    begun = []
    with followed(lambda: begun.append(name)):
        run_all([name])
    assert 1 + len(begun) == ATTACKS[name].measurements
