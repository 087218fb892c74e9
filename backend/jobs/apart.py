"""Work in a process of its own that ends with it, for what leaves much memory behind: no allocator gives all of it back.

The process is this one's own, and nobody else's: what it is asked and what it found pass through its pipes, never by command line or
environment. How far it is comes back the same way. One works at a time, so that several users together take no more memory than one.
"""

from __future__ import annotations

import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
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
        raised, found = _answer(pickle.dumps((function, task), protocol=pickle.HIGHEST_PROTOCOL))
    finally:
        _one.release()
    if raised:
        raise found
    result: R = found
    return result


def _answer(asked: bytes) -> tuple[bool, Any]:
    """What came of it, as the process says last; it does not outlive this call."""
    command = [sys.executable, "-m", "backend.jobs.apart"]
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:  # noqa: S603 (ours)
        talk = threading.Thread(target=_talk, args=(process, asked, told.put), daemon=True)
        talk.start()
        try:
            while True:
                work.check()
                with suppress(queue.Empty):
                    said = told.get(timeout=POLL)
                    if not isinstance(said, float):
                        return said or (True, RuntimeError("the process died"))
                    work.reached(said)
        finally:
            process.kill()  # does nothing once it has ended
            talk.join()


def _talk(process: subprocess.Popen[bytes], asked: bytes, tell: Callable[[Any], None]) -> None:
    """Ask, and tell what the process says: shares of the work that are done, and the answer; None if it ends without one."""
    if process.stdin is None or process.stdout is None:
        return
    with suppress(OSError, EOFError, pickle.UnpicklingError):  # it has ended
        process.stdin.write(asked)
        process.stdin.close()
        while True:
            tell(pickle.load(process.stdout))  # noqa: S301 - written by our own process
    tell(None)


def serve() -> None:
    """In the process: do what is asked, and write how far it is and what came of it."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever is printed is no answer

    def say(said: object) -> None:
        out.write(pickle.dumps(said, protocol=pickle.HIGHEST_PROTOCOL))
        out.flush()

    try:
        function, task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that this one works for
        with work.watched(lambda: None, lambda share: say(float(share))):
            found = function(*task)
        say((False, found))
    except Exception as error:  # raised again by whoever asked
        say((True, error))


if __name__ == "__main__":
    serve()
