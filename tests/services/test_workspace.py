"""What a home has done in the background: nobody waits for it, and nothing is done twice."""

import threading

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
        raise PartyUnreachable("It is down.")

    workspace.run_errand("bank", fail)
    workspace.run_errand("shop", lambda: done.append("shop"))
    workspace.await_errands(10)
    assert done == ["shop"]


def test_without_a_background_an_errand_is_done_at_once(tmp_path):
    done = []
    Workspace(tmp_path, pools=False).run_errand("bank", lambda: done.append(threading.current_thread()))
    assert done == [threading.current_thread()]
