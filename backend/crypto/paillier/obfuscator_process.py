"""A second process of the same party that makes obfuscators, so that another core does the work and no interpreter lock is held.

The key's numbers reach it through a pipe, never by command line or environment; it ends when its pipe is closed.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from gmpy2 import mpz

from backend.crypto.paillier.keys import byte_width, from_blob, to_blob
from backend.crypto.paillier.obfuscators import Obfuscation, OwnerMaker, PublicMaker
from backend.crypto.pool import Maker

ROOT = Path(__file__).resolve().parents[3]
COUNT = struct.Struct(">I")
NICE = 5  # pages and protocols have priority


class ObfuscatorProcess:
    """The party's own end of the pipe.

    Parameters
    ----------
    numbers : dict of str to int
        ``p`` and ``q`` at the key owner, ``n`` at anybody else.
    width : int
        Bytes of one obfuscator.
    obfuscation : {"full", "short"}
    tables : Path, optional
        Where tables are kept; both as for the maker in this process.
    """

    def __init__(
        self, numbers: dict[str, int], width: int, obfuscation: Obfuscation = "full", tables: Path | None = None
    ) -> None:
        self._width = width
        self._settings = {"obfuscation": obfuscation, "tables": None if tables is None else str(tables)}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = numbers

    def __repr__(self) -> str:
        return "ObfuscatorProcess()"

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "backend.crypto.paillier.obfuscator_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
            )
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(self._settings | self._numbers).encode() + b"\n")
        if self._process.stdin is None or self._process.stdout is None:
            raise BrokenPipeError
        return self._process.stdin, self._process.stdout

    def ask(self, count: int) -> bool:
        """Begin making `count` obfuscators; False where the process is busy or gone. After True, :meth:`collect` must follow."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            into, _ = self._pipes()
            into.write(COUNT.pack(count))
            into.flush()
        except OSError:
            self._lock.release()
            return False
        return True

    def collect(self, count: int) -> list[mpz] | None:
        """The obfuscators asked for; None where the process has died."""
        try:
            _, out = self._pipes()
            blob = out.read(count * self._width)
        except OSError:
            blob = b""
        finally:
            self._lock.release()
        if len(blob) != count * self._width:
            return None
        return from_blob(blob, self._width)

    def close(self) -> None:
        """End the process after the request in flight."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()

    def __del__(self) -> None:
        self.close()


def serve(numbers: IO[bytes], out: IO[bytes]) -> None:
    """Answer counts with obfuscators until the pipe is closed."""
    line = numbers.readline()
    if not line:
        return
    settings = json.loads(line)
    tables = Path(settings.pop("tables")) if settings["tables"] else None
    obfuscation: Obfuscation = settings.pop("obfuscation")
    key = {name: mpz(value) for name, value in settings.items() if value is not None}
    n = key["n"] if "n" in key else key["p"] * key["q"]
    width = byte_width(n * n)
    owner = "p" in key
    maker: Maker[mpz] = OwnerMaker(key["p"], key["q"], obfuscation, tables) if owner else PublicMaker(key["n"], tables)
    maker.prepare()
    while len(request := numbers.read(COUNT.size)) == COUNT.size:
        out.write(to_blob(maker.make(COUNT.unpack(request)[0]), width))
        out.flush()


if __name__ == "__main__":
    with suppress(AttributeError, OSError):
        os.nice(NICE)
    with suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin.buffer, sys.stdout.buffer)
