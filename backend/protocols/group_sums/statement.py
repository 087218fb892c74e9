"""What the Guest states about sums by group for an auditor: its marks, and the sums as it read them. Without ids, by place."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field

import numpy as np

from backend.errors import SecurityError
from backend.protocols.group_sums.grouping import WireGroup
from backend.protocols.group_sums.values import Counts
from backend.protocols.scoring.statement import packed_column, unpacked_column


@dataclass(frozen=True, repr=False)
class GroupStatement:
    """How the sums of one feature's groups came about at the Guest.

    Attributes
    ----------
    source : str
        Whose marks were added up.
    marked : str
        The feature whose groups a Host has marked; empty if the marks are the Guest's.
    marks : tuple of ndarray of int64
        ``(records,)`` each: the Guest's; empty if they are a Host's, which only that Host knows.
    groups : tuple of (str, str, int)
        Kind, name and records of each group.
    sums : ndarray of int64
        ``(marks, groups)``.
    """

    source: str
    marked: str
    marks: tuple[Counts, ...] = field(repr=False)
    groups: tuple[WireGroup, ...]
    sums: Counts = field(repr=False)

    def dump(self) -> str:
        """Return the statement as JSON."""
        body = {
            "source": self.source,
            "marked": self.marked,
            "marks": [packed_column(mark) for mark in self.marks],
            "groups": self.groups,
            "sums": self.sums.tolist(),
        }
        return json.dumps(body)


def load_groups(text: str) -> GroupStatement:
    """Return a statement that was dumped; raise SecurityError if it is none."""
    try:
        body = json.loads(text)
        marks = tuple(unpacked_column(mark, "<i8") for mark in body["marks"])
        groups = tuple((str(kind), str(name), int(n)) for kind, name, n in body["groups"])
        sums = np.array(body["sums"], dtype=np.int64).reshape(-1, len(groups))
        return GroupStatement(str(body["source"]), str(body["marked"]), marks, groups, sums)
    except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise SecurityError("statement_unreadable") from error


def name_of_sums(conversation: str, host: str, source: str, feature: str, max_groups: int, min_size: int) -> str:
    """Return the name by which both parties identify sums."""
    return json.dumps([conversation, host, source, feature, max_groups, min_size])
