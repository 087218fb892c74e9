"""Another process that makes the obfuscators of all keys of this one, so that another core does the work and no interpreter lock is held.

One serves every key, and for bulk a second one: the Guest's and, in a simulation, its Hosts', whose keys this process holds anyway; a
Host at its own company has processes of its own. Keys reach them through a pipe, never by command line or environment; they end when
their pipe is closed.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from gmpy2 import mpz

from backend.crypto.paillier.keys import byte_width, from_blob, to_blob
from backend.crypto.paillier.obfuscators import Obfuscation, OwnerMaker, PublicMaker
from backend.crypto.pool import Maker

ROOT = Path(__file__).resolve().parents[3]
NICE = 5  # pages and protocols have priority


class _Turns:
    """Whose request the process answers: one at a time, and what somebody waits for before what fills a store.

    Every key's store is filled by a thread of its own, so that a few of them always wait: whoever needs some now would come behind them.
    """

    def __init__(self) -> None:
        self._free, self._taken, self._needed = threading.Condition(), False, 0

    def take(self, timeout: float, *, is_urgent: bool) -> bool:
        """Wait for the turn, `timeout` seconds at most; return whether it came."""
        with self._free:
            self._needed += is_urgent
            try:
                if not self._free.wait_for(lambda: not self._taken and (is_urgent or not self._needed), timeout):
                    return False
                self._taken = True
                return True
            finally:
                self._needed -= is_urgent

    def end(self) -> None:
        """Give the turn back."""
        with self._free:
            self._taken = False
            self._free.notify_all()


class _Shared:
    """The process and the keys that it makes obfuscators of; started with the first request, ended with the last key.

    Attributes
    ----------
    turns : _Turns
        Taken from a request to its answer.
    process : Popen or None
        One that has died stays, so that nobody starts another again and again.
    """

    def __init__(self) -> None:
        self.turns = _Turns()
        self.process: subprocess.Popen[bytes] | None = None
        self._known: set[int] = set()
        self._dropped: deque[int] = deque()

    def ask(self, key: int, settings: dict[str, Any], count: int) -> None:
        """Send a request, with the key's numbers if it is the key's first. Raises OSError if the process has ended."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backend.crypto.paillier.obfuscator_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
            )
        request: dict[str, Any] = {"key": key, "count": count}
        if key not in self._known:
            request["settings"] = settings
        self._send(request)
        self._known.add(key)

    def read(self, size: int) -> bytes:
        """Bytes of the answer; fewer where the process has died."""
        if self.process is None or self.process.stdout is None:
            return b""
        return self.process.stdout.read(size)

    def release(self) -> None:
        """The request is answered."""
        self.turns.end()
        self._settle()

    def drop(self, key: int) -> None:
        """Drop a key's tables, and with the last key the process; where a request is under way, behind it.

        Never waits: garbage may be collected by the very thread that has a request under way.
        """
        self._dropped.append(key)
        self._settle()

    def _settle(self) -> None:
        while self._dropped and self.turns.take(0.0, is_urgent=True):
            try:
                while self._dropped:
                    self._forget(self._dropped.popleft())
            finally:
                self.turns.end()

    def _forget(self, key: int) -> None:
        if key not in self._known:
            return
        self._known.discard(key)
        if self._known:
            with suppress(OSError):
                self._send({"key": key})
        elif self.process is not None:
            process, self.process = self.process, None
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()

    def _send(self, request: dict[str, Any]) -> None:
        if self.process is None or self.process.stdin is None:
            raise BrokenPipeError
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()


_shared, _second, _keys = _Shared(), _Shared(), itertools.count()


def _forked() -> None:
    global _shared, _second  # the other process's pipes and locks are not ours
    _shared, _second = _Shared(), _Shared()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class ObfuscatorProcess:
    """One key's use of the process.

    Parameters
    ----------
    numbers : dict of str to int
        ``p`` and ``q`` at the key owner, ``n`` at anybody else.
    width : int
        Bytes of one obfuscator.
    obfuscation : {"full", "short"}
    tables : Path, optional
        Where tables are kept; both as for the maker in this process.
    second : bool
        The process for bulk.
    """

    def __init__(
        self,
        numbers: dict[str, int],
        width: int,
        obfuscation: Obfuscation = "full",
        tables: Path | None = None,
        *,
        second: bool = False,
    ) -> None:
        self._width, self._shared, self._key = width, _second if second else _shared, next(_keys)
        # Absolute: the process works in another folder than this one.
        self._settings = {"obfuscation": obfuscation, "tables": None if tables is None else str(tables.absolute())}
        self._numbers = numbers

    def __repr__(self) -> str:
        return "ObfuscatorProcess()"

    def ask(self, count: int, timeout: float = 0.0, *, is_urgent: bool = True) -> bool:
        """Begin making `count` obfuscators; return False if the process is still busy after `timeout` seconds, or has ended.

        After True, :meth:`collect` must follow.
        """
        if not self._shared.turns.take(timeout, is_urgent=is_urgent):
            return False
        try:
            self._shared.ask(self._key, self._settings | self._numbers, count)
        except OSError:
            self._shared.release()
            return False
        return True

    def collect(self, count: int) -> list[mpz] | None:
        """The obfuscators asked for; None where the process has died."""
        try:
            blob = self._shared.read(count * self._width)
        except OSError:
            blob = b""
        finally:
            self._shared.release()
        if len(blob) != count * self._width:
            return None
        return from_blob(blob, self._width)

    def close(self) -> None:
        """Have the process drop this key after the request in flight; with the last key it ends."""
        if self._shared in (_shared, _second):  # else this process was forked, and the pipe is the other one's
            self._shared.drop(self._key)

    def __del__(self) -> None:
        self.close()


def serve(requests: IO[bytes], out: IO[bytes]) -> None:
    """Answer requests with obfuscators until the pipe is closed."""
    makers: dict[int, tuple[Maker[mpz], int]] = {}
    for line in requests:
        request = json.loads(line)
        if "count" not in request:
            makers.pop(request["key"], None)
            continue
        if "settings" in request:
            makers[request["key"]] = _maker(request["settings"])
        maker, width = makers[request["key"]]
        out.write(to_blob(maker.make(request["count"]), width))
        out.flush()


def _maker(settings: dict[str, Any]) -> tuple[Maker[mpz], int]:
    """A maker with its tables, and the bytes of one obfuscator."""
    if settings["tables"]:
        tables = Path(settings["tables"])
    else:
        tables = None
    if "p" in settings:
        p, q = mpz(settings["p"]), mpz(settings["q"])
        maker: Maker[mpz] = OwnerMaker(p, q, settings["obfuscation"], tables)
        n = p * q
    else:
        n = mpz(settings["n"])
        maker = PublicMaker(n, tables)
    maker.prepare()
    return maker, byte_width(n * n)


if __name__ == "__main__":
    with suppress(AttributeError, OSError):
        os.nice(NICE)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin.buffer, sys.stdout.buffer)
