"""Stores: one database a party, hashes checked on the way out, the key file readable by its owner only."""

import json
import sqlite3
import subprocess
import sys

import pytest

from backend.errors import ModelError, SecurityError, StoreError
from backend.store.database import Database
from backend.store.key_file import kept_key, read_key
from backend.store.party_store import PartyStore


@pytest.fixture
def store(tmp_path):
    return PartyStore(Database(tmp_path / "bank"))


def test_an_artefact_comes_back_and_survives_a_restart(tmp_path, store):
    store.put_artefact("m1", "text")
    store.put_artefact("m1", "text")
    again = PartyStore(Database(tmp_path / "bank"))
    assert again.artefact("m1") == "text"


def test_an_unknown_model_is_named(store):
    with pytest.raises(ModelError, match="m9 is not in this party's store"):
        store.artefact("m9")


def test_an_artefact_that_was_changed_is_refused(tmp_path, store):
    store.put_artefact("m1", "text")
    database = sqlite3.connect(tmp_path / "bank" / "store.db")
    database.execute("update artefacts set text = 'other'")
    database.commit()
    database.close()
    with pytest.raises(ModelError, match="was changed"):
        store.artefact("m1")


def test_records_are_newest_first(store):
    for name, created in (("a", "2026-01-01"), ("b", "2026-02-01")):
        store.put_artefact(name, "x")
        store.put_record(name, {"id": name, "created": created})
    assert [json.loads(text)["id"] for text in store.records()] == ["b", "a"]


def test_a_store_that_cannot_be_opened_says_so():
    with pytest.raises(StoreError, match="cannot be opened"):
        PartyStore(Database("sqlite:////no/such/folder/store.db"))


def test_a_key_is_written_for_its_owner_only_and_comes_back(tmp_path):
    path = tmp_path / "bank" / "k.key"
    assert read_key(path) is None
    assert kept_key(path, lambda: {"p": "b", "q": "d"}) == ({"p": "b", "q": "d"}, True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path) == {"p": "b", "q": "d"}


def test_a_key_is_never_replaced(tmp_path):
    path = tmp_path / "k.key"

    def slow():  # another process makes its key while this one is still drawing primes
        kept_key(path, lambda: {"p": "first"})
        return {"p": "second"}

    assert kept_key(path, slow) == kept_key(path, slow) == ({"p": "first"}, False)
    assert [file.name for file in tmp_path.iterdir()] == ["k.key"]


_FIRST_USE = """
import secrets, sys
from pathlib import Path
from backend.store.key_file import kept_key
print("ready", flush=True)
sys.stdin.readline()
print(kept_key(Path(sys.argv[1]), lambda: {"p": secrets.token_hex(2000)})[0]["p"])
"""


def test_processes_that_need_a_key_for_the_first_time_at_once_get_the_same_one(tmp_path):
    command = [sys.executable, "-c", _FIRST_USE, tmp_path / "k.key"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, **pipes) for _ in range(4)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 4
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    assert len({racer.communicate(timeout=60)[0] for racer in racers}) == 1
    assert [racer.returncode for racer in racers] == [0] * 4


def test_a_key_that_cannot_be_written_is_refused_in_words(tmp_path):
    (tmp_path / "bank").write_text("a file where the folder should be")
    with pytest.raises(SecurityError, match="cannot be written"):
        kept_key(tmp_path / "bank" / "k.key", lambda: {"p": "b"})


def test_a_key_that_others_can_read_or_that_is_damaged_is_refused(tmp_path):
    path = tmp_path / "k.key"
    kept_key(path, lambda: {"p": "b"})
    path.chmod(0o644)
    with pytest.raises(SecurityError, match="can be read by others"):
        read_key(path)
    for text in ("", "[]", '{"p": 3}'):
        path.unlink()
        path.touch(mode=0o600)
        path.write_text(text)
        with pytest.raises(SecurityError, match="damaged"):
            read_key(path)


def test_a_long_term_secret_is_drawn_once_and_each_store_has_its_own(tmp_path, store):
    assert store.secret("dither") == PartyStore(Database(tmp_path / "bank")).secret("dither") != store.secret("other")
    assert PartyStore(Database(tmp_path / "shop")).secret("dither") != store.secret("dither")
