"""A home in one file and back: the same databases and files, keys under a passphrase alone, all of it or nothing."""

import json
import random
import sqlite3
import threading
import zipfile
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from backend.errors import ParameterError, SecurityError, StoreError
from backend.store import home_backup
from backend.store.home_backup import KEYS, MANIFEST, holds_keys, read_backup, write_backup

PASSPHRASE = "five words drawn at random"  # noqa: S105 - of tests

pytestmark = pytest.mark.usefixtures("quick_scrypt")


@pytest.fixture
def home(tmp_path):
    """Two databases, files and two keys."""
    home = tmp_path / "home"
    for party, rows in (("bank", 3), ("shop", 5)):
        folder = home / "parties" / "demo" / party
        folder.mkdir(parents=True)
        with closing(sqlite3.connect(folder / "store.db")) as database, database:
            database.execute("CREATE TABLE t (n INTEGER)")
            database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(rows)])
    (home / "parties" / "demo" / "bank" / "signing.key").write_text('{"seed": "secret-1"}')
    (home / "parties" / "demo" / "bank" / "leaf.pem").write_text("PRIVATE KEY secret-2")
    (home / "parties" / "demo" / "bank" / "paillier-3072.tables").write_bytes(b"made again")
    (home / "sign-in.toml").write_text("issuer = 'x'")
    return home


@pytest.fixture
def out(tmp_path):
    return tmp_path / "home.zip"


def rows(home, party):
    with closing(sqlite3.connect(home / "parties" / "demo" / party / "store.db")) as database:
        return [n for (n,) in database.execute("SELECT n FROM t ORDER BY n")]


def rewritten(out, change):
    """The file with `change` (name → bytes or None) applied, and its manifest as it was unless that is changed."""
    with zipfile.ZipFile(out) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts |= change
    with zipfile.ZipFile(out, "w") as archive:
        for name, blob in parts.items():
            if blob is not None:
                archive.writestr(name, blob)


def with_manifest(out, **change):
    with zipfile.ZipFile(out) as archive:
        return {MANIFEST: json.dumps(json.loads(archive.read(MANIFEST)) | change).encode()}


def nothing_restored(tmp_path, out, passphrase=None, error=SecurityError):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error) as raised:
        read_backup(out, tmp_path / "new", passphrase)
    assert sorted(tmp_path.iterdir()) == before
    return str(raised.value)


def test_a_home_comes_back_as_it_was(home, out, tmp_path):
    wrote = write_backup(home, out, PASSPHRASE)
    read = read_backup(out, tmp_path / "new", PASSPHRASE)
    assert wrote == read and (read.files, read.keys, read.keys_left) == (3, 2, 0) and holds_keys(out)
    assert rows(tmp_path / "new", "bank") == [0, 1, 2] and rows(tmp_path / "new", "shop") == [0, 1, 2, 3, 4]
    old = {f.relative_to(home) for f in home.rglob("*") if f.is_file() and f.suffix not in (".tables", ".db-journal")}
    new = {f.relative_to(tmp_path / "new") for f in (tmp_path / "new").rglob("*") if f.is_file()}
    assert old == new
    for name in ("parties/demo/bank/signing.key", "parties/demo/bank/leaf.pem", "sign-in.toml"):
        assert (tmp_path / "new" / name).read_bytes() == (home / name).read_bytes()
    private = (out, tmp_path / "new", *(f for f in (tmp_path / "new").rglob("*") if f.is_file()))
    assert all(f.stat().st_mode & 0o077 == 0 for f in private)


def test_without_a_passphrase_no_key_is_in_the_file_and_with_one_none_can_be_read(home, out, tmp_path):
    write_backup(home, out, PASSPHRASE)
    with zipfile.ZipFile(out) as archive:
        assert not any(b"secret-" in archive.read(name) for name in archive.namelist())
    out.unlink()
    done = write_backup(home, out, None)
    assert (done.keys, done.keys_left) == (0, 2) and not holds_keys(out)
    with zipfile.ZipFile(out) as archive:
        assert KEYS not in archive.namelist()
        assert not any(b"secret-" in archive.read(name) for name in archive.namelist())
    read_backup(out, tmp_path / "new", None)
    assert not list((tmp_path / "new").rglob("*.key")) and not list((tmp_path / "new").rglob("*.pem"))


def test_databases_are_of_one_moment_while_somebody_writes(home, out, tmp_path):
    """Whoever writes to the Guest's and then to the Host's is never found in the one and not in the other but between the two."""
    stop, began = threading.Event(), threading.Event()
    files = [home / "parties" / "demo" / party / "store.db" for party in ("bank", "shop")]

    def write():
        n = 100
        while not stop.is_set():
            for file in files:
                with closing(sqlite3.connect(file, timeout=60)) as database, database:
                    database.execute("INSERT INTO t VALUES (?)", (n,))
            n += 1
            began.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert began.wait(60)
        write_backup(home, out, None)
    finally:
        stop.set()
        thread.join()
    read_backup(out, tmp_path / "new", None)
    bank, shop = ([n for n in rows(tmp_path / "new", party) if n >= 100] for party in ("bank", "shop"))
    assert bank and (bank == shop or bank[:-1] == shop)


def test_nothing_is_overwritten(home, out, tmp_path):
    write_backup(home, out, None)
    before = out.read_bytes()
    with pytest.raises(ParameterError, match="exists already"):
        write_backup(home, out, None)
    assert out.read_bytes() == before
    with pytest.raises(ParameterError, match="not empty"):
        read_backup(out, home, None)
    assert rows(home, "bank") == [0, 1, 2]
    with pytest.raises(ParameterError, match="inside the home"):
        write_backup(home, home / "backup.zip", None)
    (tmp_path / "empty").mkdir()
    read_backup(out, tmp_path / "empty", None)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_whoever_is_stopped_in_the_middle_leaves_nothing_half(home, out, tmp_path, monkeypatch, at):
    write_backup(home, out, PASSPHRASE)
    take, calls = home_backup._take, []

    def stopped(*given):
        calls.append(given)
        if len(calls) > at:
            raise KeyboardInterrupt
        take(*given)

    monkeypatch.setattr(home_backup, "_take", stopped)
    nothing_restored(tmp_path, out, PASSPHRASE, KeyboardInterrupt)
    monkeypatch.undo()
    put, written = home_backup._put, []

    def cut(*given):
        written.append(given)
        if len(written) > at:
            raise KeyboardInterrupt
        return put(*given)

    monkeypatch.setattr(home_backup, "_put", cut)
    with pytest.raises(KeyboardInterrupt):
        write_backup(home, tmp_path / "second.zip", None)
    assert not list(tmp_path.glob("second*"))


def test_what_a_killed_process_left_is_in_nobodys_way(home, out, tmp_path):
    (tmp_path / "home.zip.new").write_bytes(b"half")
    write_backup(home, out, None)
    (tmp_path / ".new.restoring").mkdir()
    (tmp_path / ".new.restoring" / "half").write_bytes(b"half")
    read_backup(out, tmp_path / "new", None)
    assert not (tmp_path / "new" / "half").exists() and {f.name for f in tmp_path.iterdir()} == {
        "home",
        "home.zip",
        "new",
    }


@pytest.mark.parametrize("place", range(8))
def test_a_changed_byte_is_refused_wherever_it_is(home, out, tmp_path, place):
    """Of the file as it is, and of each part's own bytes under a new checksum of ZIP's."""
    write_backup(home, out, PASSPHRASE)
    with zipfile.ZipFile(out) as archive:
        name = archive.namelist()[place % len(archive.namelist())]
        blob = bytearray(archive.read(name))
    blob[len(blob) // 2] ^= 1
    rewritten(out, {name: bytes(blob)})
    nothing_restored(tmp_path, out, PASSPHRASE, (SecurityError, ParameterError))


def test_bytes_changed_anywhere_are_refused_in_words_or_change_nothing(home, out, tmp_path):
    """A damaged archive fails in many ways; none of them is a traceback."""
    write_backup(home, out, None)
    whole, draw = out.read_bytes(), random.Random(1)
    for number in range(400):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 2, 5])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        out.write_bytes(damaged)
        with suppress(SecurityError, ParameterError):
            read_backup(out, tmp_path / f"new{number}", None)


def test_another_passphrase_and_none_are_refused(home, out, tmp_path):
    write_backup(home, out, PASSPHRASE)
    assert "passphrase" in nothing_restored(tmp_path, out, PASSPHRASE + "!")
    assert "passphrase" in nothing_restored(tmp_path, out, None, ParameterError)
    with pytest.raises(ParameterError, match="passphrase"):
        write_backup(home, tmp_path / "short.zip", "short")


def test_keys_of_one_backup_do_not_fit_another(home, out, tmp_path):
    write_backup(home, out, PASSPHRASE)
    other = tmp_path / "other.zip"
    (home / "sign-in.toml").write_text("issuer = 'y'")
    write_backup(home, other, PASSPHRASE)
    with zipfile.ZipFile(other) as archive:
        keys = archive.read(KEYS)
    rewritten(out, {KEYS: keys})
    assert "belong to another" in nothing_restored(tmp_path, out, PASSPHRASE)


@pytest.mark.parametrize(
    "name", ["../out", "/etc/passwd", "a/../../out", "C:/out", "a\\b", "./a", "store.db-journal", "SIGN-IN.toml"]
)
def test_a_name_outside_of_the_home_or_twice_is_refused(home, out, tmp_path, name):
    write_backup(home, out, None)
    with zipfile.ZipFile(out) as archive:
        files = json.loads(archive.read(MANIFEST))["files"]
    files[name] = {"bytes": 1, "sha256": sha256(b"x").hexdigest()}
    rewritten(out, with_manifest(out, files=files) | {name: b"x"})
    nothing_restored(tmp_path, out)
    keys = ["parties/demo/bank/signing.key", name]
    rewritten(out, with_manifest(out, keys=keys))
    nothing_restored(tmp_path, out)


def test_more_or_less_than_the_manifest_names_is_refused(home, out, tmp_path):
    write_backup(home, out, None)
    whole = out.read_bytes()
    rewritten(out, {"more": b"x"})
    nothing_restored(tmp_path, out)
    out.write_bytes(whole)
    rewritten(out, {"sign-in.toml": None})
    nothing_restored(tmp_path, out)
    out.write_bytes(whole)
    rewritten(out, {"sign-in.toml": b"x" * 100_000_000})
    assert "not what its manifest says" in nothing_restored(tmp_path, out)
    out.write_bytes(whole[: len(whole) // 2])
    nothing_restored(tmp_path, out)
    out.write_bytes(whole)
    rewritten(out, with_manifest(out, format="glassleaf home 9"))
    nothing_restored(tmp_path, out, error=ParameterError)


def test_a_damaged_database_and_a_link_are_not_backed_up(home, out, tmp_path):
    file = home / "parties" / "demo" / "bank" / "store.db"
    whole = file.read_bytes()
    file.write_bytes(whole[:4200] + b"\xff" * (len(whole) - 4200))
    with pytest.raises(StoreError):
        write_backup(home, out, None)
    file.write_bytes(whole)
    (home / "link").symlink_to(Path("/etc/hostname"))
    with pytest.raises(StoreError, match="is a link"):
        write_backup(home, out, None)
    assert not out.exists() and not list(tmp_path.glob("home.zip*"))
