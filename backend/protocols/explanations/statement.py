"""What the Guest states about reasons for an auditor: its own values, and what it was told. Without ids, by place.

As :mod:`backend.protocols.scoring.statement` does about scores.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.errors import SecurityError
from backend.protocols.scoring.statement import packed_column, unpacked_column
from backend.trees.backgrounds import COVERS, Background
from backend.trees.ensemble import Columns


@dataclass(frozen=True, repr=False)
class NamesStatement:
    """How the names of one request came about at the Guest.

    Attributes
    ----------
    count : int
        Reasons that were asked for.
    groups : tuple of int
        The reason of each item, where several are one; empty = each is one.
    below, sideless : tuple of str
        Features of which was asked whether the value is below its median, and of which no side was asked about; of the others, whether it
        is above.
    columns : dict of str to ndarray
        Feature of the Guest's that the model uses → ``(n,)`` values.
    named : tuple of (tuple of int, or None)
        ``(n,)``: numbers of the items that were named; None if a Host refused.
    """

    model_id: str
    background: Background
    count: int
    groups: tuple[int, ...]
    below: tuple[str, ...]
    sideless: tuple[str, ...]
    columns: Columns = field(repr=False)
    named: tuple[tuple[int, ...] | None, ...] = field(repr=False)

    def dump(self) -> str:
        """Return the statement as JSON."""
        body = {
            "model": self.model_id,
            "background": [self.background.against, self.background.band],
            "count": self.count,
            "groups": self.groups,
            "below": self.below,
            "sideless": self.sideless,
            "columns": _packed(self.columns),
            "named": self.named,
        }
        return json.dumps(body)


@dataclass(frozen=True, repr=False)
class CohortStatement:
    """How sums of contributions came about at the Guest.

    Attributes
    ----------
    columns : dict of str to ndarray
        Feature of the Guest's that the model uses → ``(n,)`` values.
    sums : tuple of int
        One an item, at the last scale, as they were decrypted.
    """

    model_id: str
    columns: Columns = field(repr=False)
    sums: tuple[int, ...]
    background: Background = COVERS

    def dump(self) -> str:
        """Return the statement as JSON."""
        body = {
            "model": self.model_id,
            "background": [self.background.against, self.background.band],
            "columns": _packed(self.columns),
            "sums": [str(total) for total in self.sums],
        }
        return json.dumps(body)


def load_names(text: str) -> NamesStatement:
    """Return a statement that was dumped; raise SecurityError if it is none."""
    try:
        body = json.loads(text)
        columns = _unpacked(body["columns"])
        names: list[tuple[int, ...] | None] = []
        for numbers in body["named"]:
            names.append(None if numbers is None else tuple(map(int, numbers)))
        _check_lengths(columns, names)
        return NamesStatement(
            str(body["model"]),
            _background(body),
            int(body["count"]),
            tuple(map(int, body["groups"])),
            tuple(map(str, body["below"])),
            tuple(map(str, body["sideless"])),
            columns,
            tuple(names),
        )
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise SecurityError("statement_unreadable") from error


def load_cohort(text: str) -> CohortStatement:
    """Return a statement that was dumped; raise SecurityError if it is none."""
    try:
        body = json.loads(text)
        columns = _unpacked(body["columns"])
        _check_lengths(columns)
        sums = tuple(map(int, body["sums"]))
        return CohortStatement(str(body["model"]), columns, sums, _background(body))
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise SecurityError("statement_unreadable") from error


def _packed(columns: Columns) -> dict[str, Any]:
    return {name: packed_column(column) for name, column in columns.items()}


def _unpacked(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): unpacked_column(column, "<f8") for name, column in columns.items()}


def _background(body: Mapping[str, Any]) -> Background:
    against, band = body["background"]
    return Background(against, int(band))


def _check_lengths(columns: Columns, *others: Sequence[Any]) -> None:
    """Raise ValueError unless all are about as many people."""
    sizes = {len(column) for column in [*columns.values(), *others]}
    if len(sizes) > 1:
        raise ValueError(sizes)
