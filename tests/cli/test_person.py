"""The commands for people's rights, retention and keys: what is printed, what is refused, and that no passphrase is an argument."""

import json

import pytest
import typer
from typer.testing import CliRunner

from backend.cli import app
from backend.store.retention import RETENTION

PASSPHRASE = "five words drawn at random"  # noqa: S105

pytestmark = pytest.mark.usefixtures("quick_scrypt")


@pytest.fixture
def someone(run):
    return run("samples", "latest")[1].splitlines()[1]


@pytest.fixture
def passphrase(tmp_path):
    file = tmp_path / "passphrase"
    file.touch(mode=0o600)
    file.write_text(f"{PASSPHRASE}\n")
    return file


def test_a_person_is_shown_previewed_and_forgotten(run, someone):
    status, text, _ = run("person", "show", "demo", someone, "--json")
    parts = [one["about"] for one in json.loads(text) if one["table"] == "artefacts" and one["party"] == "bank"]
    assert status == 0 and parts[0][0]["part"] == "test"
    why = "--because", "asked to be erased"
    status, text, _ = run("person", "forget", "demo", someone, "--dry-run", "--json")
    assert status == 0 and json.loads(text)["done"] is False
    assert someone in run("samples", "latest")[1].splitlines()
    status, text, _ = run("person", "forget", "demo", someone, *why, "--json")
    assert status == 0 and json.loads(text)["done"] is True
    assert someone not in run("samples", "latest")[1].splitlines()
    assert someone not in run("audit", "show", "demo", "--json")[1]


def test_one_party_is_shown_in_words(run, someone):
    status, text, _ = run("person", "show", "demo", someone, "--party", "bank")
    assert status == 0 and [line for line in text.splitlines() if not line.startswith(" ")] == ["bank:"]


def test_forgetting_needs_a_reason_and_an_id(run, someone):
    assert run("person", "forget", "demo", someone)[0] != 0
    assert run("person", "forget", "demo", someone, "--because", "short")[0] == 1
    assert run("person", "forget", "demo", " *", "--because", "asked to be erased")[0] == 1
    assert someone in run("samples", "latest")[1].splitlines()


def test_retention_is_shown_for_every_table_and_applied(run):
    status, text, _ = run("retention", "show", "--json")
    assert status == 0 and set(json.loads(text)) == set(RETENTION)
    assert all(table in run("retention", "show")[1] for table in RETENTION)
    status, text, _ = run("retention", "apply", "--json")
    assert status == 0 and json.loads(text) == {"demo": {}}


def test_keys_are_listed_backed_up_and_brought_back(run, home, passphrase, tmp_path):
    status, text, _ = run("keys", "list", "demo", "--json")
    keys = json.loads(text)
    assert status == 0 and [key["kind"] for key in keys] == ["ed25519"]
    out = tmp_path / "keys.backup"
    status, text, _ = run("keys", "backup", "demo", "--out", out, "--passphrase-file", passphrase, "--json")
    assert status == 0 and json.loads(text) == keys
    (home / "parties" / "demo" / "bank" / keys[0]["file"]).unlink()
    status, text, _ = run("keys", "restore", "demo", out, "--passphrase-file", passphrase, "--json")
    assert status == 0 and json.loads(text)[0]["fingerprint"] == keys[0]["fingerprint"]
    assert run("keys", "restore", "demo", out, "--passphrase-file", passphrase, "--json")[1].strip() == "[]"
    assert run("audit", "verify", "demo")[0] == 0
    assert run("keys", "rotate", "demo")[0] == 1  # there is none of a cipher yet


def test_a_passphrase_file_that_others_read_or_that_is_no_text_is_refused(run, passphrase, tmp_path):
    out = tmp_path / "keys.backup"
    for change in (
        lambda: passphrase.chmod(0o644),
        lambda: (passphrase.chmod(0o600), passphrase.write_bytes(b"\xff" * 40)),
        lambda: passphrase.write_bytes(b""),
    ):
        change()
        assert run("keys", "backup", "demo", "--out", out, "--passphrase-file", passphrase)[0] == 1
    assert not out.exists()


def test_no_passphrase_is_an_argument_or_an_option():
    keys = typer.main.get_command(app).get_command(None, "keys")
    names = {option for command in keys.commands.values() for given in command.params for option in given.opts}
    assert [name for name in names if "pass" in name] == ["--passphrase-file"]


def test_a_passphrase_is_asked_for_twice_and_never_echoed(home, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSLEAF_HOME", str(home))
    out, other = tmp_path / "keys.backup", "six words drawn at random today"
    for typed, status in ((f"{PASSPHRASE}\n{other}\n", 1), (f"{PASSPHRASE}\n{PASSPHRASE}\n", 0)):
        done = CliRunner().invoke(app, ["keys", "backup", "demo", "--out", str(out), "--json"], input=typed)
        assert done.exit_code == status and out.exists() is (status == 0) and PASSPHRASE not in done.output
    assert CliRunner().invoke(app, ["keys", "restore", "demo", str(out)], input=f"{PASSPHRASE}\n").exit_code == 0


def test_where_no_backup_can_be_written_no_passphrase_is_asked_for(run, passphrase, tmp_path):
    out = tmp_path / "no folder" / "keys.backup"
    assert run("keys", "backup", "demo", "--out", out, "--passphrase-file", passphrase)[0] == 1
    assert run("keys", "backup", "demo", "--out", out)[0] == 1 and not out.parent.exists()
