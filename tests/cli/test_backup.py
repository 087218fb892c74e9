"""`backup` and `restore` from a shell: what comes back scores the same, says who it was, and a server's databases are not forgotten."""

import json

import pytest
from homes import copied_home

from backend.data.table import SampleSheet
from backend.services import Glassleaf
from backend.services.online import Person
from backend.services.scoring import ScoringRequest

pytestmark = pytest.mark.usefixtures("quick_scrypt")


@pytest.fixture
def passphrase(tmp_path):
    file = tmp_path / "passphrase"
    file.write_text("five words drawn at random\n")
    file.chmod(0o600)
    return file


def scores(home):
    with Glassleaf(home, pools=False) as glassleaf:
        record = glassleaf.models.get("latest")
        opened = glassleaf.online.open(record, "none")
        sheet: SampleSheet = opened.sheet([Person(one) for one in glassleaf.models.test_ids(record)[:20]])
        batch = glassleaf.scoring.start(ScoringRequest(record.id, sheet, cipher="none"), counted=False).get()
        assert glassleaf.audit.verify(record.federation).holds
        return {score.id: score.margin for score in batch.scores}


def test_what_comes_back_scores_the_same_and_its_log_holds(run, home, tmp_path, monkeypatch, passphrase):
    monkeypatch.setenv("GLASSLEAF_HOME", str(copied_home(home, tmp_path / "old")))
    before = scores(tmp_path / "old")
    status, out, _ = run("backup", tmp_path / "h.zip", "--with-keys", "--passphrase-file", passphrase, "--json")
    wrote = json.loads(out)
    assert status == 0 and wrote["keys"] >= 1 and wrote["keys_left"] == 0
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "new"))
    status, out, _ = run("restore", tmp_path / "h.zip", "--passphrase-file", passphrase, "--json")
    assert status == 0 and json.loads(out) == wrote
    assert scores(tmp_path / "new") == before
    with Glassleaf(tmp_path / "new", pools=False) as glassleaf:
        (entry,) = [e for e in glassleaf.audit.entries("demo") if e.action == "restore"]
    assert entry.body["manifest_sha256"] == wrote["sha256"]
    status, _, err = run("restore", tmp_path / "h.zip", "--passphrase-file", passphrase)
    assert status == 1 and "not empty" in err


def test_keys_that_stay_out_are_said(run, home, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(copied_home(home, tmp_path / "old")))
    scores(tmp_path / "old")
    status, _, err = run("backup", tmp_path / "h.zip")
    assert status == 0 and "--with-keys" in err


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_databases_on_a_server_are_saved_there(run, tmp_path, monkeypatch, command):
    file = tmp_path / "h.zip"
    if command == "restore":
        monkeypatch.setattr("backend.services.operation.is_sealed", lambda file: False)
    monkeypatch.setenv("GLASSLEAF_STORE", "postgresql+psycopg://glassleaf@db/{federation}_{party}")
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "empty"))
    status, _, err = run(command, file)
    assert status == 1 and "pg_dump" in err and not file.exists()
