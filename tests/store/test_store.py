"""Stores: one database a party, hashes checked on the way out, the key file readable by its owner only."""

import json
import sqlite3

import pytest

from backend.errors import ModelError, SecurityError, StoreError
from backend.store.database import Database
from backend.store.key_file import read_key, write_key
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


def test_score_jobs_are_noted_per_model(store):
    store.put_score_job("m1", {"rows": 3})
    store.put_score_job("m2", {"rows": 4})
    assert [j["rows"] for j in store.score_jobs("m1")] == [3]


def test_a_store_that_cannot_be_opened_says_so():
    with pytest.raises(StoreError, match="cannot be opened"):
        PartyStore(Database("sqlite:////no/such/folder/store.db"))


def test_a_key_is_written_for_its_owner_only_and_comes_back(tmp_path):
    path = tmp_path / "bank" / "k.key"
    assert read_key(path) is None
    write_key(path, {"p": "b", "q": "d"})
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path) == {"p": "b", "q": "d"}


def test_a_key_that_others_can_read_or_that_is_damaged_is_refused(tmp_path):
    path = tmp_path / "k.key"
    write_key(path, {"p": "b"})
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
