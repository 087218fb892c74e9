"""The glassleaf: demo, models, samples, scoring, errors, cancel; small keys, small data."""

import csv
import io
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import psutil
import pytest
from inside import runtime_of
from release_rule import EVERY_SCORE

from backend.data.demo import PLANTED, write_demo
from backend.data.split import Division
from backend.errors import Cancelled, FederationError, ModelError, ParameterError, PartyUnreachable, SampleError
from backend.jobs import Job
from backend.protocols.training.parameters import KEY_SIZES, SecureBoostParameters
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.services.training import TrainingRequest

KEY = 512  # bits: for arithmetic, not for secrets
GENDER = PLANTED.gender[1]


@pytest.fixture(scope="module")
def glassleaf(demo_home):
    glassleaf = Glassleaf(demo_home(), key_floor=KEY, pools=False)
    yield glassleaf
    glassleaf.close()


def model_of(glassleaf):
    return glassleaf.models.all("demo")[0].id  # "latest" never means the demo beside another federation


def sheet_of(glassleaf, *ids):
    federation = glassleaf.federations.get("demo")
    return glassleaf.samples.read(model_of(glassleaf), "\n".join([federation.guest.id, *ids]).encode())


def score(glassleaf, sheet, **kwargs):
    return glassleaf.scoring.start(ScoringRequest(model_of(glassleaf), sheet, key_bits=KEY, **kwargs)).get()


def test_the_demo_has_a_model_that_says_it_was_grown_on_plain_numbers(glassleaf):
    record = glassleaf.models.get("latest")
    assert record.cipher == "none" and record.key_bits == 0
    assert 0.75 < record.metrics.auc < 0.9 and record.metrics.part == "test"
    assert sum(record.parts.values()) < 6000 and record.n_trees == 20
    assert glassleaf.models.all("demo") == [record] and len(record.curve) == 20
    # a second time changes nothing
    assert glassleaf.training.prepare_demo() == "demo" and len(glassleaf.models.all()) == 1


def test_the_demo_checks_find_what_was_planted(glassleaf):
    findings = glassleaf.compliance.assess("latest").findings
    flagged = {f.feature: f.status for f in reversed(findings)}  # the worst, which come first
    assert flagged[GENDER] == "prohibited" and flagged[PLANTED.marital_status[1]] == "prohibited"
    assert flagged[PLANTED.age[1]] == "conditional"
    assert PLANTED.proxy_of_gender[1] not in flagged  # neutral by name and meaning; found by association only
    contradictions = {d.feature for d in glassleaf.explanation.directions("latest") if d.contradicts}
    assert contradictions == {PLANTED.contradiction[1]}
    used = {r.feature for r in glassleaf.explanation.importance("latest") if r.splits}
    assert {PLANTED.blacklist[1], GENDER} <= used


def test_a_model_is_found_by_id_beginning_and_latest(glassleaf):
    record = glassleaf.models.get("latest")
    assert glassleaf.models.get(record.id) == glassleaf.models.get(record.id[:5]) == record
    with pytest.raises(ModelError) as refused:
        glassleaf.models.get("x")
    assert (refused.value.code, refused.value.values["model"]) == ("unknown_model", "x")
    assert record.id in refused.value.values["known"]


def test_an_unknown_federation_says_what_to_do(glassleaf):
    with pytest.raises(FederationError, match="glassleaf init"):
        glassleaf.federations.get("nowhere")


def test_samples_are_the_guests_own_columns_only(glassleaf):
    frame = glassleaf.samples.table("latest")
    federation = glassleaf.federations.get("demo")
    assert set(frame.columns) == {f.name for f in federation.guest.features} | {"part"}
    assert set(frame["part"]) == {"training", "validation", "test", "not in training"}


def test_scores_under_encryption_equal_the_plain_models_and_add_up(glassleaf):
    ids = [*glassleaf.samples.table("latest").index[:3]]
    encrypted, plain = (
        score(glassleaf, sheet_of(glassleaf, *ids)),
        score(glassleaf, sheet_of(glassleaf, *ids), cipher="none"),
    )
    assert [s.units for s in encrypted.scores] == [s.units for s in plain.scores]
    assert encrypted.key_bits == KEY and encrypted.cipher == "paillier" and plain.cipher == "none"
    for s in encrypted.scores:
        assert s.margin == pytest.approx(s.base + s.guest_part + s.hosts_part)
        assert s.probability == pytest.approx(1 / (1 + np.exp(-s.margin)))
        assert s.decision == ("decline" if s.probability >= 0.5 else "accept")
    assert {stage.name for stage in encrypted.stages} == {"key", "encode", "encrypt", "mask", "decrypt"}
    assert 0 < encrypted.ciphertexts_per_sample < encrypted.leaves


def test_a_person_no_host_knows_is_scored_and_the_hosts_are_named(glassleaf):
    federation = glassleaf.federations.get("demo")
    values = {f.name: None for f in federation.guest.features}
    sheet = glassleaf.samples.typed_in("latest", "stranger", values)
    (result,) = score(glassleaf, sheet).scores
    assert result.status == "partial" and result.not_held_by == tuple(h.name for h in federation.hosts)


def test_a_bad_row_never_stops_the_others(glassleaf):
    known = glassleaf.samples.table("latest").index[0]
    batch = score(glassleaf, sheet_of(glassleaf, known, "nobody", known))
    assert [s.status for s in batch.scores] == ["ok", "failed", "failed"]
    assert "no record with the id 'nobody'" in batch.scores[1].problem


def test_of_a_sheet_of_bad_rows_only_nothing_is_sent(glassleaf):
    with pytest.raises(
        SampleError, match=r"(?s)1 row came, and none can be scored.*Row 2: .* no record with the id 'nobody'"
    ):
        score(glassleaf, sheet_of(glassleaf, "nobody"))


def test_an_unknown_id_and_a_wrong_cut_off_are_refused_in_words(glassleaf):
    with pytest.raises(SampleError, match="holds no record 'nobody'"):
        glassleaf.samples.of_person("latest", "nobody")
    with pytest.raises(ParameterError, match=r"cut-off is 1\.5"):
        score(glassleaf, sheet_of(glassleaf, "nobody"), what_if=1.5)


def test_host_columns_in_the_sheet_play_the_host(glassleaf):
    federation = glassleaf.federations.get("demo")
    known = glassleaf.samples.table("latest").index[1]
    host = federation.hosts[0]
    header = [federation.guest.id, *(f.name for f in host.features)]
    blank = ",".join([known, *("" for _ in host.features)])
    sheet = glassleaf.samples.read("latest", f"{','.join(header)}\n{blank}\n".encode())
    played, own = score(glassleaf, sheet).scores[0], score(glassleaf, sheet_of(glassleaf, known)).scores[0]
    assert played.not_held_by == () and any(note.code.startswith("host_") for note in sheet.notes)
    assert played.guest_part == own.guest_part


def test_candidate_leaves_of_the_guest_are_some_of_the_trees_leaves(glassleaf):
    sheet = sheet_of(glassleaf, glassleaf.samples.table("latest").index[0])
    model = glassleaf.models.guest_model("latest")
    for t, tree in enumerate(model.trees):
        kept = glassleaf.models.candidate_leaves("latest", t, sheet)
        assert kept and set(kept) <= set(tree.leaves)
    with pytest.raises(ModelError, match="trees 0 to 19"):
        glassleaf.models.candidate_leaves("latest", 20, sheet)


def test_the_template_can_be_uploaded_as_it_is(glassleaf):
    sheet = glassleaf.samples.read("latest", glassleaf.samples.template("latest"))
    assert len(sheet.ids) == 2 and not sheet.problems
    own = glassleaf.samples.of_person("latest", sheet.ids[0]).guest
    assert {name: column[0] for name, column in sheet.guest.columns.items()} == {
        n: c[0] for n, c in own.columns.items()
    }
    assert b".0," not in glassleaf.samples.template("latest")


def test_the_download_neutralises_formulas_and_keeps_numbers(glassleaf):
    federation = glassleaf.federations.get("demo")
    sheet = glassleaf.samples.typed_in("latest", "=HYPERLINK(1)", {f.name: None for f in federation.guest.features})
    rows = list(csv.DictReader(io.StringIO(glassleaf.scoring.csv(score(glassleaf, sheet)).decode())))
    assert rows[0]["id"] == "'=HYPERLINK(1)"
    assert float(rows[0]["score"]) and float(rows[0]["base"]) < 0


def test_training_is_registered_with_its_curve_and_can_leave_features_out(glassleaf):
    parameters = SecureBoostParameters(trees=2, depth=2, cipher="none")
    job = glassleaf.training.start(TrainingRequest("demo", parameters, exclude=(GENDER,), most_named=EVERY_SCORE))
    record = job.get()
    assert job.state == "done" and len(job.points) == 2 and record.exclude == (GENDER,)
    assert GENDER not in {f.feature for f in glassleaf.compliance.assess(record.id).findings}
    assert {e.kind for e in job.transcript} >= {"StartAlignment", "JointRecords", "BinSums", "KeepModel", "ModelKept"}


@pytest.mark.parametrize(
    ("request_changes", "text"),
    [
        ({"hosts": ("nobody",)}, "nobody: not a Host"),
        ({"exclude": ("nothing",)}, "nothing: not a feature"),
    ],
)
def test_a_training_request_that_does_not_fit_is_refused(glassleaf, request_changes, text):
    request = TrainingRequest("demo", SecureBoostParameters(trees=1, cipher="none"), **request_changes)
    with pytest.raises(ParameterError, match=text):
        glassleaf.training.start(request).get()


@pytest.mark.parametrize(
    "bad", [{"trees": 0}, {"depth": 99}, {"learning_rate": 0.0}, {"bins": 1}, {"cipher": "rot13"}, {"key_bits": 512}]
)
def test_parameters_outside_their_range_are_refused_with_the_range(bad):
    with pytest.raises(ParameterError, match="choose"):
        SecureBoostParameters(**bad)
    assert min(KEY_SIZES) == 2048


def test_a_scoring_can_be_cancelled(glassleaf):
    ids = [*glassleaf.samples.table("latest").index[:200]]
    job = glassleaf.scoring.start(ScoringRequest("latest", sheet_of(glassleaf, *ids), key_bits=KEY))
    while not job.transcript and job.state == "running":
        job.wait(0.01)
    job.cancel()
    with pytest.raises(Cancelled):
        job.get()
    assert job.state == "cancelled" and job.done < 200


def test_a_host_that_is_down_is_an_error_in_words_and_comes_back_with_a_new_door(glassleaf, tmp_path):
    write_demo(tmp_path / "d", rows=200)
    other = Glassleaf(tmp_path / "home", pools=False)
    name = other.federations.add(tmp_path / "d").name
    request = TrainingRequest(name, SecureBoostParameters(trees=1, cipher="none"))
    other.training.start(request).get()
    host = other.federations.get(name).hosts[0].name
    runtime_of(other, name).operator.stop(host)
    job = other.training.start(request).wait(60)
    assert (job.state, str(job.failure)) == ("failed", str(PartyUnreachable("host_not_running", host=host)))
    other.close()
    again = Glassleaf(tmp_path / "home", pools=False)
    assert again.training.start(request).get().n_trees == 1
    again.close()


@pytest.mark.slow
def test_a_host_that_is_killed_half_way_ends_the_batch_in_words_and_nothing_hangs(tmp_path):
    write_demo(tmp_path / "d", rows=400)
    glassleaf = Glassleaf(tmp_path / "home", key_floor=1024, pools=False)
    name = glassleaf.federations.add(tmp_path / "d").name
    glassleaf.training.start(TrainingRequest(name, SecureBoostParameters(trees=3, cipher="none"))).get()
    ids = [*glassleaf.samples.table("latest").index]
    # 1,024 bits: slow enough for a Host to be stopped between two messages.
    job = glassleaf.scoring.start(ScoringRequest("latest", sheet_of(glassleaf, *ids), key_bits=1024))
    while sum(e.kind == "EncryptedScores" for e in job.transcript) < 1 and job.state == "running":
        job.wait(0.01)
    host = glassleaf.federations.get(name).hosts[-1].name
    runtime_of(glassleaf, name).operator.stop(host)
    job.wait(30)
    assert job.state == "failed"
    assert job.failure.code in ("host_stopped", "host_not_running")
    glassleaf.close()


def test_a_fault_inside_shows_no_traceback_and_no_value(caplog):
    def work(job):
        raise RuntimeError(f"secret {12344 + 1}")

    job = Job(work, 1).start().wait(60)
    assert (
        job.state == "failed" and "RuntimeError" in str(job.failure) and "12345" not in str(job.failure) + caplog.text
    )


def test_a_federation_name_that_is_taken_is_refused(glassleaf, tmp_path):
    write_demo(tmp_path, rows=200)
    with pytest.raises(FederationError) as refused:
        glassleaf.federations.add(tmp_path)
    assert refused.value.code == "federation_name_taken"


def test_a_taken_name_is_refused_before_a_table_is_split_or_fetched(glassleaf, tmp_path):
    division = Division("y", ("a",), {"other": ("b",)}, id_column="id", name="demo")
    (tmp_path / "t.csv").write_text("id,a,b,y\n" + "".join(f"{i},{i},{i % 7},{i % 2}\n" for i in range(40)))
    with pytest.raises(FederationError) as refused:
        glassleaf.federations.init(tmp_path / "t.csv", division, tmp_path / "out")
    assert refused.value.code == "federation_name_taken"
    assert not (tmp_path / "out").exists()
    glassleaf.federations.init(tmp_path / "t.csv", replace(division, name="credit_card"), tmp_path / "free")
    with pytest.raises(FederationError) as refused:
        glassleaf.federations.fetch_credit_card(tmp_path / "out")
    assert refused.value.code == "federation_name_taken"
    assert not (tmp_path / "out").exists()


def test_the_same_data_under_two_names_gives_two_models_that_are_both_found(tmp_path):
    glassleaf = Glassleaf(tmp_path / "home", pools=False)
    for name in ("first", "second"):
        write_demo(tmp_path / name, rows=200)
        file = tmp_path / name / "federation.toml"
        text = file.read_text(encoding="utf-8")
        assert 'name = "demo"' in text
        file.write_text(text.replace('name = "demo"', f'name = "{name}"', 1), encoding="utf-8")
        glassleaf.federations.add(tmp_path / name)
        glassleaf.training.start(TrainingRequest(name, SecureBoostParameters(trees=1, cipher="none"))).get()
    records = glassleaf.models.all()
    assert {r.federation for r in records} == {"first", "second"}
    assert [glassleaf.models.get(r.id).federation for r in records] == [r.federation for r in records]
    glassleaf.close()


def test_evaluation_scores_a_sample_of_the_test_part_under_encryption(glassleaf):
    result = glassleaf.scoring.evaluate(model_of(glassleaf), 5, KEY)
    assert result.registered.n > 1000 and result.encrypted.n == 5
    assert glassleaf.scoring.evaluate(model_of(glassleaf), 0).encrypted is None
    with pytest.raises(ParameterError) as refused:
        glassleaf.scoring.evaluate(model_of(glassleaf), 10**6)
    assert refused.value.code == "test_records_missing"


@pytest.mark.slow
def test_the_key_and_pools_can_be_prepared_before_the_first_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("backend.protocols.guest_keys.GUEST_POOL", 32)
    monkeypatch.setattr("backend.protocols.simulation.simulator.HOST_POOL", 16)
    write_demo(tmp_path / "d", rows=200)
    glassleaf = Glassleaf(tmp_path / "home", key_floor=KEY)
    name = glassleaf.federations.add(tmp_path / "d").name
    glassleaf.federations.warm_up(name, KEY)
    waited = threading.Event()
    for _ in range(600):
        levels = {p.party: p.ready for p in glassleaf.federations.pools(name)}
        if levels["bank"] >= 32 and min(levels.values()) >= 16:
            break
        waited.wait(0.1)
    below = psutil.Process().children(recursive=True)
    makers = [one for one in below if "backend.crypto.paillier.obfuscator_process" in one.cmdline()]
    glassleaf.close()
    assert levels["bank"] >= 32 and min(levels.values()) >= 16
    assert len(levels) == 3 and len(makers) == 1  # one process for all parties


def test_nothing_of_a_host_is_in_what_the_glassleaf_hands_out(glassleaf):
    """Every result, as text, holds no threshold of a Host and no value of a Host's record of the scored person."""
    runtime = runtime_of(glassleaf)
    record = glassleaf.models.all()[-1]
    known = glassleaf.samples.table(record.id).index[2]
    batch = score(glassleaf, sheet_of(glassleaf, known))
    handed_out = " ".join(
        repr(thing)
        for thing in (
            record,
            glassleaf.models.guest_model(record.id),
            glassleaf.explanation.importance(record.id),
            glassleaf.explanation.directions(record.id),
            glassleaf.compliance.assess(record.id),
            batch,
            glassleaf.scoring.csv(batch),
        )
    )
    hosts = runtime._simulated.hosts.values()
    thresholds = {
        r.threshold
        for h in hosts
        for r in h._partial_models.get(record.id).model.rules.values()
        if r.threshold is not None
    }
    own = {r.threshold for r in glassleaf.models.guest_model(record.id).rules.values()}
    assert len(thresholds) > 10
    numbers = set(pd.Series(handed_out).str.findall(r"\d+\.\d+").iloc[0])
    telling = {f"{t:.10g}" for t in thresholds - own if len(f"{t:.10g}".replace(".", "")) >= 4}
    assert telling and not telling & numbers
