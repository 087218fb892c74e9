"""The Guest's keys: what may be known of them, a backup that comes back whole or not at all, a rotation that loses nothing."""

import json
import subprocess
import sys
import time
from functools import partial
from unittest.mock import Mock

import pytest
from homes import copied_home
from inside import runtime_of, workspace_of

from backend.crypto.paillier.keys import PaillierSecretKey
from backend.data.table import SampleSheet
from backend.errors import ParameterError, SecurityError, StoreError
from backend.protocols.simulation import simulator
from backend.services import Glassleaf
from backend.services.scoring import ScoringRequest
from backend.store.audit_log import AuditLog
from backend.store.key_backup import seal, unseal
from backend.store.key_file import read_key
from backend.store.request_log import RequestLog

PASSPHRASE = "five words drawn at random"  # noqa: S105
PAILLIER, SIGNING = "paillier-512.key", "signing.key"

pytestmark = pytest.mark.usefixtures("quick_scrypt")


@pytest.fixture(scope="module")
def template(home_template, tmp_path_factory):
    home = copied_home(home_template, tmp_path_factory.mktemp("template") / "home")
    with Glassleaf(home, pools=False, key_floor=512) as glassleaf:
        runtime_of(glassleaf).keys.pair("paillier", 512)
    return home


@pytest.fixture
def home(template, tmp_path):
    return copied_home(template, tmp_path / "home")


@pytest.fixture
def glassleaf(home, monkeypatch):
    monkeypatch.setattr(simulator, "RequestLog", partial(RequestLog, rate=1.0))
    monkeypatch.setenv("GLASSLEAF_BUDGET", "1")
    with Glassleaf(home, pools=False, key_floor=512) as glassleaf:
        yield glassleaf


@pytest.fixture
def folder(home):
    return home / "parties" / "demo" / "bank"


def sheet(glassleaf, first=0, count=2):
    record, table = glassleaf.models.get("latest"), runtime_of(glassleaf).table
    own = table.take([table.row_of[i] for i in glassleaf.models.test_ids(record)[first : first + count]])
    return SampleSheet(own.ids, own, {}, {}, ())


def score(glassleaf, first=0, cipher="paillier", count=2):
    request = ScoringRequest("latest", sheet(glassleaf, first, count), cipher=cipher, key_bits=512)
    return [one.status for one in glassleaf.scoring.start(request).get().scores]


def files(keys):
    return [key.file for key in keys]


def last(glassleaf):
    return glassleaf.audit.entries("demo")[-1]


def test_keys_are_listed_by_fingerprint_and_no_number_of_them_is(glassleaf, folder):
    score(glassleaf, cipher="rlwe")
    keys = {key.kind: key for key in glassleaf.keys.all("demo")}
    assert set(keys) == {"paillier", "ed25519", "rlwe"}
    assert (keys["paillier"].bits, keys["ed25519"].bits) == (512, 256) and keys["rlwe"].bits >= 8192
    shown = json.dumps([vars(key) for key in keys.values()])
    for key in keys.values():
        for name, number in read_key(folder / key.file).items():
            assert name == "parameters" or number not in shown
    assert len({key.fingerprint for key in keys.values()}) == 3
    assert not any(key.retired for key in keys.values())


def test_a_backup_brings_back_every_key_with_the_same_fingerprint(glassleaf, folder, tmp_path):
    before, out = glassleaf.keys.all("demo"), tmp_path / "keys.backup"
    assert glassleaf.keys.backup("demo", PASSPHRASE, out) == before
    assert out.stat().st_mode & 0o777 == 0o600
    secrets = [number.encode() for key in before for number in read_key(folder / key.file).values()]
    assert not [number for number in secrets if number in out.read_bytes()]
    for key in before:
        (folder / key.file).unlink()
    assert files(glassleaf.keys.restore("demo", PASSPHRASE, out)) == files(before)
    assert [key.fingerprint for key in glassleaf.keys.all("demo")] == [key.fingerprint for key in before]
    assert all((folder / key.file).stat().st_mode & 0o777 == 0o600 for key in before)
    assert (last(glassleaf).action, last(glassleaf).body["what"]) == ("keys", "restore")
    assert glassleaf.audit.verify("demo").holds  # signed by the same key as before
    assert glassleaf.keys.restore("demo", PASSPHRASE, out) == ()


def test_another_key_is_never_overwritten_and_then_none_is_written(glassleaf, folder, tmp_path):
    out = tmp_path / "keys.backup"
    glassleaf.keys.backup("demo", PASSPHRASE, out)
    other = json.dumps(PaillierSecretKey.generate(512, 512).to_numbers())
    (folder / PAILLIER).write_text(other)
    (folder / SIGNING).rename(tmp_path / SIGNING)
    with pytest.raises(SecurityError):
        glassleaf.keys.restore("demo", PASSPHRASE, out)
    assert (folder / PAILLIER).read_text() == other and not (folder / SIGNING).exists()


@pytest.mark.parametrize("remade", [False, True])
def test_an_older_backup_does_not_undo_a_rotation(glassleaf, folder, tmp_path, remade):
    out = tmp_path / "keys.backup"
    glassleaf.keys.backup("demo", PASSPHRASE, out)
    glassleaf.keys.rotate("demo")
    if remade:
        runtime_of(glassleaf).keys.pair("paillier", 512)
    before = glassleaf.keys.all("demo")
    assert glassleaf.keys.restore("demo", PASSPHRASE, out) == ()
    assert glassleaf.keys.all("demo") == before


def test_a_wrong_passphrase_or_a_cut_file_brings_nothing_back(glassleaf, folder, tmp_path):
    out = tmp_path / "keys.backup"
    glassleaf.keys.backup("demo", PASSPHRASE, out)
    whole = out.read_bytes()
    for key in (PAILLIER, SIGNING):
        (folder / key).rename(tmp_path / key)
    with pytest.raises(SecurityError):
        glassleaf.keys.restore("demo", "another passphrase", out)
    for cut in (0, 30, len(whole) - 1):
        out.write_bytes(whole[:cut])
        with pytest.raises(ParameterError):
            glassleaf.keys.restore("demo", PASSPHRASE, out)
    assert not (folder / PAILLIER).exists() and not (folder / SIGNING).exists()


def test_a_backup_of_another_federation_is_refused(glassleaf, folder, tmp_path):
    out = tmp_path / "keys.backup"
    out.write_bytes(seal(b"{}", PASSPHRASE, "bank in elsewhere"))
    with pytest.raises(ParameterError):
        glassleaf.keys.restore("demo", PASSPHRASE, out)


@pytest.mark.parametrize(
    "name",
    [
        "../../../owned.key",
        "/owned.key",
        "store.db",
        "paillier-512.key/x",
        "paillier-1024.key",
        "paillier-512.key\n",
    ],
)
def test_a_crafted_backup_writes_no_file_that_is_no_key(glassleaf, home, folder, tmp_path, name):
    out, before = tmp_path / "keys.backup", sorted(file.name for file in folder.iterdir())
    numbers = read_key(folder / PAILLIER)
    out.write_bytes(seal(json.dumps({name: numbers}).encode(), PASSPHRASE, "bank in demo"))
    with pytest.raises((ParameterError, SecurityError)):
        glassleaf.keys.restore("demo", PASSPHRASE, out)
    assert sorted(file.name for file in folder.iterdir()) == before and not list(tmp_path.rglob("owned*"))


def test_a_backup_overwrites_no_file_and_takes_no_short_passphrase(glassleaf, tmp_path):
    out = tmp_path / "keys.backup"
    with pytest.raises(ParameterError):
        glassleaf.keys.backup("demo", "short", out)
    assert not out.exists()
    out.write_text("keys that are nowhere else")
    with pytest.raises(ParameterError):
        glassleaf.keys.backup("demo", PASSPHRASE, out)
    assert out.read_text() == "keys that are nowhere else"


def test_a_rotated_key_is_kept_a_new_one_is_used_and_both_are_in_the_log(glassleaf, folder):
    assert score(glassleaf) == ["ok", "ok"]
    numbers, before = read_key(folder / PAILLIER), runtime_of(glassleaf)
    [gone] = glassleaf.keys.rotate("demo")
    assert gone.file == PAILLIER and not (folder / PAILLIER).exists() and not list(folder.glob("paillier*.tables"))
    assert last(glassleaf).body["what"] == "rotate" and last(glassleaf).body["keys"] == {PAILLIER: gone.fingerprint}
    assert runtime_of(glassleaf) is not before
    assert score(glassleaf, 2) == ["ok", "ok"]
    keys = {key.file: key for key in glassleaf.keys.all("demo")}
    assert keys[f"paillier-512.{gone.fingerprint}.retired"].retired and not keys[PAILLIER].retired
    assert keys[PAILLIER].fingerprint != gone.fingerprint
    assert read_key(folder / f"paillier-512.{gone.fingerprint}.retired") == numbers
    made = [entry for entry in glassleaf.audit.entries("demo") if entry.action == "key"]
    assert made[-1].body["key_bits"] == 512 and made[-1].number > last_rotation(glassleaf).number


@pytest.mark.parametrize("what", ["rotate", "backup", "restore"])
def test_keys_stay_as_they_were_if_the_log_cannot_be_written(glassleaf, folder, tmp_path, monkeypatch, run, what):
    """A full disk, as the shell meets it: nothing is changed, and a second try finds what the first one found."""
    old, new, words = tmp_path / "old.json", tmp_path / "new.json", tmp_path / "words"
    words.write_text(PASSPHRASE)
    words.chmod(0o600)
    glassleaf.keys.backup("demo", PASSPHRASE, old)
    if what == "restore":
        (folder / PAILLIER).unlink()
    before = sorted(folder.glob("*.*"))
    steps = {
        "rotate": ("rotate", "demo"),
        "backup": ("backup", "demo", "--out", new, "--passphrase-file", words),
        "restore": ("restore", "demo", old, "--passphrase-file", words),
    }
    command = ["keys", *map(str, steps[what])]
    with monkeypatch.context() as full:
        # patched: a disk that is full where the log is written
        full.setattr(AuditLog, "add", Mock(side_effect=StoreError("disk_full")))
        status, _, said = run(*command)
    assert status == 1 and "disk is full" in said
    assert sorted(folder.glob("*.*")) == before and not new.exists()
    assert run(*command)[0] == 0


def last_rotation(glassleaf):
    return [entry for entry in glassleaf.audit.entries("demo") if entry.body.get("what") == "rotate"][-1]


def test_requests_under_a_retired_key_can_still_be_opened(glassleaf):
    score(glassleaf)
    glassleaf.keys.rotate("demo")
    score(glassleaf, 2)
    glassleaf.keys.rotate("demo")
    found = glassleaf.audit.replay("demo")
    assert sum(one.found.rows for one in found) == 4 and not any(one.found.problems for one in found)


def test_another_process_that_holds_the_old_key_takes_the_new_one(glassleaf, home):
    with Glassleaf(home, pools=False, key_floor=512) as other:
        assert score(other) == ["ok", "ok"]
        old = runtime_of(other).keys.pair("paillier", 512).offer()
        glassleaf.keys.rotate("demo")
        assert runtime_of(other).keys.pair("paillier", 512).offer() != old


def test_a_runtime_from_before_a_rotation_makes_no_use_of_a_key_from_after_it(glassleaf, home):
    with Glassleaf(home, pools=False, key_floor=512) as other:
        before = runtime_of(other)  # set up, key not read yet
        glassleaf.keys.rotate("demo")
        with pytest.raises(SecurityError):
            before.keys.pair("paillier", 512)


def test_no_key_is_rotated_while_a_scoring_is_under_way_or_not_fetched(glassleaf, folder):
    journal = workspace_of(glassleaf).journal("demo")
    run = journal.run("0" * 64)
    run.batch(0)
    run.sending(0, 0, b"ciphertexts under the key")
    for step in (lambda: None, lambda: run.answered(0, b"scores")):
        step()
        with pytest.raises(SecurityError):
            glassleaf.keys.rotate("demo")
        assert (folder / PAILLIER).exists() and last(glassleaf).body["outcome"] == "SecurityError"
    journal.handed_over(run.name)
    assert files(glassleaf.keys.rotate("demo")) == [PAILLIER]


def test_a_run_from_before_a_rotation_is_not_resumed_under_another_key(glassleaf):
    """Its bytes were made for the old key: under the new one they would decrypt to anything."""
    samples = sheet(glassleaf)
    request = ScoringRequest("latest", samples, key_bits=512, hold=True)
    first = glassleaf.scoring.start(request).get()
    glassleaf.keys.rotate("demo", now=True)
    again = glassleaf.scoring.start(request).get()
    assert again.run != first.run and [one.status for one in again.scores] == ["failed", "failed"]


def test_the_signing_key_and_what_is_not_there_are_not_rotated(glassleaf, folder):
    for file in (SIGNING, "paillier-4096.key", "../x"):
        with pytest.raises(ParameterError):
            glassleaf.keys.rotate("demo", file)
    assert (folder / SIGNING).exists() and (folder / PAILLIER).exists()


def test_only_the_operator_handles_keys(glassleaf, tmp_path):
    other = glassleaf.acting("rita", "regulator")
    out = tmp_path / "keys.backup"
    out.write_bytes(b"")
    for work in (
        lambda: other.keys.backup("demo", PASSPHRASE, tmp_path / "new"),
        lambda: other.keys.restore("demo", PASSPHRASE, out),
        lambda: other.keys.rotate("demo"),
    ):
        with pytest.raises(SecurityError):
            work()
    assert not (tmp_path / "new").exists()


def test_a_key_file_that_holds_another_key_than_its_name_says_is_told(glassleaf, folder):
    (folder / PAILLIER).rename(folder / "paillier-1024.key")
    with pytest.raises(SecurityError):
        glassleaf.keys.all("demo")


_ROTATE = """
import sys, time
from pathlib import Path
from backend.errors import GlassleafError
from backend.services import Glassleaf
with Glassleaf(Path(sys.argv[1]), pools=False, key_floor=512) as glassleaf:
    glassleaf.keys.all("demo")
    while time.time() < float(sys.argv[2]): pass
    try:
        print(len(glassleaf.keys.rotate("demo")))
    except GlassleafError:
        print(0)
"""


@pytest.mark.slow
def test_of_processes_that_rotate_at_once_one_does_and_no_key_is_lost(home, folder):
    numbers = read_key(folder / PAILLIER)
    command = [sys.executable, "-c", _ROTATE, home, str(time.time() + 6)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sorted(racer.communicate(timeout=120)[0].strip() for racer in racers) == ["0", "0", "1"]
    [retired] = folder.glob("*.retired")
    assert read_key(retired) == numbers and not (folder / PAILLIER).exists()


def test_a_backup_holds_retired_keys_too(glassleaf, folder, tmp_path):
    glassleaf.keys.rotate("demo")
    out, kept = tmp_path / "keys.backup", {file.name for file in folder.glob("*.retired")}
    glassleaf.keys.backup("demo", PASSPHRASE, out)
    assert set(json.loads(unseal(out.read_bytes(), PASSPHRASE)[1])) == kept | {SIGNING}
