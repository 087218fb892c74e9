"""Run a function in a process that ends with it. This is for work that leaves much memory behind, which no allocator gives back in full.

The request, the share of the work that is done and the result pass through the process's pipes, never by command line or environment.
One process runs at a time, so that several users together take no more memory than one.
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
POLL_SECONDS = 0.1  # how often it is checked whether the work was stopped
_one_process = threading.Lock()


def apart(function: Callable[..., R], *task: Any) -> R:
    """Return ``function(*task)``, computed in a separate process; what it raises is raised here.

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
    request = pickle.dumps((function, task), protocol=pickle.HIGHEST_PROTOCOL)
    while not _one_process.acquire(timeout=POLL_SECONDS):
        work.check()
    try:
        is_error, answer = _answer(request)
    finally:
        _one_process.release()
    if is_error:
        raise answer
    result: R = answer
    return result


def _answer(request: bytes) -> tuple[bool, Any]:
    """Return whether the process failed, and its result or error. The process does not outlive this call."""
    command = [sys.executable, "-m", "backend.jobs.apart"]
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:  # noqa: S603 (ours)
        talk = threading.Thread(target=_talk, args=(process, request, messages.put), daemon=True)
        talk.start()
        try:
            while True:
                work.check()
                with suppress(queue.Empty):
                    message = messages.get(timeout=POLL_SECONDS)
                    if isinstance(message, float):
                        work.reached(message)
                    else:
                        return message or (True, RuntimeError("the process died"))
        finally:
            process.kill()  # does nothing once it has ended
            talk.join()


def _talk(process: subprocess.Popen[bytes], request: bytes, pass_on: Callable[[Any], None]) -> None:
    """Send the request and pass on the process's messages: shares of the work, then the answer, then None once it has ended."""
    if process.stdin is None or process.stdout is None:
        return
    with suppress(OSError, EOFError, pickle.UnpicklingError):  # it has ended
        process.stdin.write(request)
        process.stdin.close()
        while True:
            message = pickle.load(process.stdout)  # noqa: S301 - written by our own process
            pass_on(message)
    pass_on(None)


def serve() -> None:
    """In the process: read the request, run it, and write the share that is done and the answer."""
    pipe = sys.stdout.buffer
    sys.stdout = sys.stderr  # what is printed must not be taken for an answer

    def say(message: object) -> None:
        pipe.write(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
        pipe.flush()

    try:
        function, task = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that this one works for
        with work.watched(lambda: None, lambda share: say(float(share))):
            result = function(*task)
        say((False, result))
    except Exception as error:  # raised again in the process that sent the request
        say((True, error))


if __name__ == "__main__":
    serve()
