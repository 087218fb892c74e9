"""A file is there whole or as it was before, whoever else writes it."""

import errno
import fcntl
import stat
import threading
from pathlib import Path

import pytest

from backend.errors import StoreError
from backend.ops.atomic_file import held_alone, write_first, write_whole


def test_parts_are_joined_in_a_file_for_its_owner_only(tmp_path):
    file = tmp_path / "new folder" / "a.key"
    write_whole(file, b"ab", b"c")
    assert file.read_bytes() == b"abc" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [found.name for found in file.parent.iterdir()] == ["a.key"]


def test_what_cannot_be_written_leaves_the_old_file_and_no_draft(tmp_path):
    file = tmp_path / "a.key"
    write_whole(file, b"old")
    with pytest.raises(TypeError):
        write_whole(file, b"new", "text")
    assert file.read_bytes() == b"old" and [found.name for found in tmp_path.iterdir()] == ["a.key"]


def test_several_that_write_at_once_never_leave_a_mixture(tmp_path):
    file, seen = tmp_path / "a.key", set()
    bodies = [bytes([65 + i]) * 100_000 for i in range(4)]

    def write(body):
        for _ in range(20):
            write_whole(file, body)
            seen.add(file.read_bytes())

    threads = [threading.Thread(target=write, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= set(bodies) and [found.name for found in tmp_path.iterdir()] == ["a.key"]


@pytest.mark.parametrize("links", [True, False])
def test_the_first_to_write_a_file_wins_and_no_draft_stays(tmp_path, monkeypatch, links):
    def refuse(self, target):
        raise OSError(errno.EPERM, "no hard links")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = tmp_path / "folder" / "message"
    assert write_first(file, b"first") and not write_first(file, b"second")
    assert file.read_bytes() == b"first" and file.stat().st_mode & 0o077 == 0
    assert list(file.parent.iterdir()) == [file]


def test_a_lock_whose_file_was_removed_between_opening_and_locking_still_holds_others_off(tmp_path, monkeypatch):
    path, flock = tmp_path / "one.lock", fcntl.flock

    def late(handle, how):  # whoever held it ends in this moment
        monkeypatch.undo()
        path.unlink()
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with held_alone(path), pytest.raises(StoreError, match="held by another"), held_alone(path):
        pass
