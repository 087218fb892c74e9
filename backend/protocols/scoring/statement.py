"""What the Guest states about scores for an auditor: its own values, and what it has made of the reply. Without ids, by place.

It is written before the scores are handed over, and deleted after :data:`backend.store.journal.STATED`.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import SecurityError
from backend.protocols.transport.packing import from_bitmap, to_bitmap
from backend.trees.ensemble import Columns

LEVEL = 1  # of compression: a tenth of a second a hundred thousand people


@dataclass(frozen=True, repr=False)
class ScoreStatement:
    """How the scores of one request came about at the Guest.

    Attributes
    ----------
    units : tuple of int
        ``(n,)``: what was decrypted, with the leaves that no Host decides, less canaries and offsets.
    refused : tuple of int
        Places without a score.
    dither : int
        Largest number by which the reply says that a Host has moved a score, units.
    canaries : bool
        Whether each entry carried a canary.
    offsets : ndarray of int64
        ``(n,)``: what bound each score to the request.
    columns : dict of str to ndarray
        Feature of the Guest's that the model uses → ``(n,)`` values.
    has_record : dict of str to ndarray of bool
        Host → ``(n,)``: whether it said that it holds a record.
    """

    model_id: str
    units: tuple[int, ...]
    refused: tuple[int, ...]
    dither: int
    canaries: bool
    offsets: NDArray[np.int64] = field(repr=False)
    columns: Columns = field(repr=False)
    has_record: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)

    def dump(self) -> str:
        """Return the statement as JSON."""
        columns = {name: packed_column(column) for name, column in self.columns.items()}
        body = {
            "model": self.model_id,
            "units": self.units,
            "refused": self.refused,
            "dither": self.dither,
            "canaries": self.canaries,
            "offsets": packed_column(self.offsets),
            "columns": columns,
            "held": {host: to_bitmap(flags).hex() for host, flags in self.has_record.items()},
        }
        return json.dumps(body)


def load_statement(text: str) -> ScoreStatement:
    """Read a statement that was dumped; raises SecurityError if `text` is not one."""
    try:
        body = json.loads(text)
        n = len(body["units"])
        columns = {str(name): unpacked_column(column, "<f8") for name, column in body["columns"].items()}
        has_record = {}
        for host, bitmap in body["held"].items():
            has_record[str(host)] = from_bitmap(bytes.fromhex(bitmap), n)
        statement = ScoreStatement(
            str(body["model"]),
            tuple(int(unit) for unit in body["units"]),
            tuple(int(place) for place in body["refused"]),
            int(body["dither"]),
            bool(body["canaries"]),
            unpacked_column(body["offsets"], "<i8"),
            columns,
            has_record,
        )
        sizes = {len(column) for column in [statement.offsets, *columns.values()]}
        if sizes != {n}:
            raise ValueError(sizes)
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise SecurityError("statement_unreadable") from error
    return statement


def packed_column(column: NDArray[Any]) -> str | Sequence[Any]:
    """Return numbers as compressed bytes, categories as a list."""
    if column.dtype == object:
        return [None if value is None else str(value) for value in column.tolist()]
    kind = "<i8" if column.dtype.kind == "i" else "<f8"
    return base64.b64encode(zlib.compress(np.ascontiguousarray(column, dtype=kind).tobytes(), LEVEL)).decode()


def unpacked_column(packed: str | list[Any], kind: str) -> NDArray[Any]:
    """Inverse of :func:`packed_column`; numbers are of that kind."""
    if isinstance(packed, str):
        return np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=kind)
    return np.array(packed, dtype=object)
