"""Nobody else on the machine can read what a home stores, also in a folder that was there before and from before."""

import os
import stat

import pytest

from backend.store.database import Database

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")


def test_the_databases_of_a_home_are_read_by_its_owner_alone(run, home, tmp_path, monkeypatch):
    before = os.umask(0o022)
    try:
        known = sorted(home.rglob("store.db"))
        assert len(known) >= 4
        for file in known:
            file.chmod(0o644)
        assert run("models")[0] == 0
        assert run("audit", "show", "demo")[0] == 0
        there = tmp_path / "home"
        there.mkdir(mode=0o755)
        monkeypatch.setenv("GLASSLEAF_HOME", str(there))
        assert run("models")[0] == 0
    finally:
        os.umask(before)
    opened = [home / "store.db", home / "parties" / "demo" / "bank" / "store.db", there / "store.db"]
    for folder in {file.parent for file in opened}:
        for file in folder.glob("store.db*"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_the_database_of_a_host_is_read_by_its_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        for url in (f"sqlite:///{tmp_path / 'telecom.db'}", f"sqlite:///{tmp_path / 'older.db'}"):
            (tmp_path / "older.db").touch(mode=0o644)
            Database(url).close()
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
