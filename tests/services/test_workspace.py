"""What a home has done in the background: nobody waits for it, and nothing is done twice."""

import threading

from backend.data.demo import write_demo
from backend.errors import PartyUnreachable
from backend.services.workspace import Workspace


def test_nobody_waits_for_an_errand_and_those_of_one_name_that_wait_are_one(tmp_path):
    workspace, asked, silent, done = Workspace(tmp_path), threading.Event(), threading.Event(), []

    def ask():
        asked.set()
        silent.wait(10)
        done.append("first")

    workspace.run_errand("bank", ask)
    assert asked.wait(10)
    workspace.run_errand("bank", lambda: done.append("second"))
    workspace.run_errand("bank", lambda: done.append("third"))
    workspace.run_errand("shop", lambda: done.append("shop"))
    assert not done
    silent.set()
    workspace.await_errands(10)
    assert done == ["first", "third", "shop"]
    workspace.close()


def test_an_errand_that_fails_stops_no_other(tmp_path):
    workspace, done = Workspace(tmp_path), []

    def fail():
        raise PartyUnreachable("link_closed")

    workspace.run_errand("bank", fail)
    workspace.run_errand("shop", lambda: done.append("shop"))
    workspace.await_errands(10)
    assert done == ["shop"]


def test_without_a_background_an_errand_is_done_at_once(tmp_path):
    done = []
    Workspace(tmp_path, pools=False).run_errand("bank", lambda: done.append(threading.current_thread()))
    assert done == [threading.current_thread()]


def test_a_key_that_waits_to_be_noted_holds_up_nobody_who_writes_and_opens_what_it_writes_to(tmp_path):
    """The first key of a home is made while its first work is written down, each in a thread of its own."""
    noting, noted = threading.Event(), []

    def note(federation, cipher, bits):
        noting.set()
        with workspace.database(federation).write():
            noted.append((cipher, bits))

    workspace = Workspace(tmp_path, pools=False, on_key=note)
    workspace.add(write_demo(tmp_path / "demo", rows=400).folder)
    key = threading.Thread(target=workspace.signing_key, args=("demo",), daemon=True)
    with workspace.database("demo").write():
        key.start()
        assert noting.wait(10)
        opened = threading.Thread(target=workspace.audit_log, args=("demo",), daemon=True)
        opened.start()
        opened.join(10)
        assert not opened.is_alive() and not noted
    key.join(10)
    assert noted == [("ed25519", 256)]
    workspace.close()
