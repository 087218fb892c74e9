"""A cipher's tables on disk, so that the next run need not build them: replaced atomically, readable by their owner only."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgpack

from backend.ops.atomic_file import write_whole

HASH = 32  # bytes of SHA-256 at the beginning of the file


def write_table(path: Path, name: str, rows: list[bytes]) -> None:
    """Store `rows` under a secret `name` that identifies the key they belong to."""
    body: bytes = msgpack.packb([_digest(name.encode()), rows], use_bin_type=True)
    write_whole(path, _digest(body), body)


def read_table(path: Path | None, name: str) -> list[bytes] | None:
    """The rows stored under `name`; None if they are absent, of another name or damaged (they are then rebuilt)."""
    try:
        blob = path.read_bytes() if path is not None else b""
    except OSError:
        return None
    body = memoryview(blob)[HASH:]
    if not body or _digest(body) != blob[:HASH]:
        return None
    kept_name, rows = msgpack.unpackb(body, raw=False)
    return rows if kept_name == _digest(name.encode()) else None


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()
