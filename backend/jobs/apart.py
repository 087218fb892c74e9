"""Work in a process of its own that ends with it, for what leaves much memory behind: no allocator gives all of it back.

The process is this one's own, and nobody else's: what it is asked and what it found pass through its pipes, never by command line or
environment. One works at a time, so that several users together take no more memory than one.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from backend.jobs import work

R = TypeVar("R")
ROOT = Path(__file__).resolve().parents[2]
POLL = 0.1  # seconds between two looks whether the work was stopped
_one = threading.Lock()


def apart(function: Callable[..., R], *task: Any) -> R:
    """``function(*task)`` in a process of its own; what it raises is raised here.

    Parameters
    ----------
    function : callable
        Of a module that the process can import.

    Raises
    ------
    Cancelled
        The work of this thread was stopped; the process is ended.
    RuntimeError
        The process died.
    """
    while not _one.acquire(timeout=POLL):
        work.check()
    try:
        answer = _answer(pickle.dumps((function, task), protocol=pickle.HIGHEST_PROTOCOL))
    finally:
        _one.release()
    if not answer:
        raise RuntimeError("the process died")
    raised, found = pickle.loads(answer)  # noqa: S301 - written by our own process
    if raised:
        raise found
    result: R = found
    return result


def _answer(asked: bytes) -> bytes:
    """What the process writes until it ends; it does not outlive this call."""
    command = [sys.executable, "-m", "backend.jobs.apart"]
    written: list[bytes] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:  # noqa: S603 (ours)
        # in a thread of its own: a second wait for an answer would no longer send what has not been read yet
        talk = threading.Thread(target=lambda: written.append(process.communicate(asked)[0]), daemon=True)
        talk.start()
        try:
            while talk.is_alive():
                talk.join(POLL)
                work.check()
        finally:
            process.kill()  # does nothing once it has ended
            talk.join()
    return written[0]


def serve() -> None:
    """In the process: do what is asked, and write what came of it."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever is printed is no answer
    try:
        function, task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that this one works for
        answer = pickle.dumps((False, function(*task)), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # raised again by whoever asked
        answer = pickle.dumps((True, error))
    out.write(answer)
    out.flush()


if __name__ == "__main__":
    serve()
