"""`backup` and `restore` from a shell: what comes back scores the same, says who it was, and a server's databases are not forgotten."""

import json
import secrets
import sqlite3
import zipfile
from hashlib import sha256
from pathlib import Path

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


def test_keys_of_many_rings_come_back(run, home, tmp_path, monkeypatch, passphrase):
    old = copied_home(home, tmp_path / "old")
    many = secrets.token_bytes(8_000_000)  # the README's commands leave 7 MB of keys
    (old / "parties" / "demo" / "bank" / "many.key").write_bytes(many)
    monkeypatch.setenv("GLASSLEAF_HOME", str(old))
    assert run("backup", tmp_path / "h.zip", "--with-keys", "--passphrase-file", passphrase)[0] == 0
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "new"))
    status, _, err = run("restore", tmp_path / "h.zip", "--passphrase-file", passphrase)
    assert status == 0, err
    assert (tmp_path / "new" / "parties" / "demo" / "bank" / "many.key").read_bytes() == many


def test_keys_that_stay_out_are_said(run, home, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(copied_home(home, tmp_path / "old")))
    scores(tmp_path / "old")
    status, _, err = run("backup", tmp_path / "h.zip")
    assert status == 0 and "--with-keys" in err


def test_a_home_that_cannot_be_written_is_backed_up(run, home, tmp_path, monkeypatch):
    old = copied_home(home, tmp_path / "old")
    monkeypatch.setenv("GLASSLEAF_HOME", str(old))
    connect = sqlite3.connect

    def connect_read_only(path, *arguments, **options):
        """Stand in for a read-only medium: root may write to files whose mode says that nobody may."""
        if str(path).startswith(str(old)):
            return connect(f"file:{path}?mode=ro", *arguments, **options, uri=True)
        return connect(path, *arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect_read_only)
    monkeypatch.setattr("os.access", lambda path, mode: not Path(path).is_relative_to(old))
    status, _, err = run("backup", tmp_path / "h.zip")
    assert status == 0 and "no entry in its log" in err
    monkeypatch.undo()
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "new"))
    with Glassleaf(home, pools=False) as glassleaf:
        entries = glassleaf.audit.entries("demo")
    assert run("restore", tmp_path / "h.zip")[0] == 0
    with Glassleaf(tmp_path / "new", pools=False) as glassleaf:
        assert glassleaf.audit.entries("demo")[: len(entries)] == entries


def test_a_backup_whose_database_is_none_leaves_the_home_as_it_was(run, home, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(copied_home(home, tmp_path / "old")))
    assert run("backup", tmp_path / "h.zip")[0] == 0
    with zipfile.ZipFile(tmp_path / "h.zip") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "parties/demo/telecom/store.db"
    manifest = json.loads(parts["manifest.json"])
    parts[name] = b"no database" * 100
    manifest["files"][name] = {"bytes": len(parts[name]), "sha256": sha256(parts[name]).hexdigest()}
    parts["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "new"))
    status, _, err = run("restore", tmp_path / "other.zip")
    assert status == 1 and name in err and "Nothing was restored" in err
    assert run("restore", tmp_path / "h.zip")[0] == 0  # the home is still empty


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_databases_on_a_server_are_saved_there(run, tmp_path, monkeypatch, command):
    file = tmp_path / "h.zip"
    if command == "restore":
        monkeypatch.setattr("backend.services.operation.is_sealed", lambda file: False)
    monkeypatch.setenv("GLASSLEAF_STORE", "postgresql+psycopg://glassleaf@db/{federation}_{party}")
    monkeypatch.setenv("GLASSLEAF_HOME", str(tmp_path / "empty"))
    status, _, err = run(command, file)
    assert status == 1 and "pg_dump" in err and not file.exists()
