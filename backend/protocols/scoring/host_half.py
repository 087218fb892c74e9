"""A Host's half of a sample of scores, for an auditor who recomputes them: what it holds of each person, and what it has added.

The Host makes it from its records and its secret. If the records are others by now, it says so, since they would give other scores.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.host_state import HostModels
from backend.protocols.scoring.dither import half_units
from backend.protocols.terms.noise import Noise
from backend.store.accountant import SCORE
from backend.store.request_log import LoggedRow, RequestLog
from backend.trees.serialization import dump_host

Value = float | str | None


@dataclass(frozen=True, repr=False)
class HostRow:
    """One person of the sample at one Host.

    Attributes
    ----------
    number : int
        In the Host's log of requests.
    request, place : str, int
        The Guest's name for the question, and the person's position in it.
    held : bool
        Whether the Host holds a record.
    values : dict of str to float, str or None
        Feature that the model uses → value; empty if it holds none.
    added : int
        What the last Host adds to the packed sum, dither; 0 at the others.
    changed : bool
        Whether the Host's records are others by now.
    public_key, vector : bytes
        Paillier: the Guest's key, and the entries as they came to this Host; empty if they are not kept.
    """

    number: int
    model_id: str
    request: str
    place: int
    person: str
    held: bool
    values: Mapping[str, Value]
    added: int
    changed: bool
    public_key: bytes = b""
    vector: bytes = b""


@dataclass(frozen=True, repr=False)
class HostHalf:
    """A Host's half.

    Attributes
    ----------
    models : dict of str to str
        Model → the Host's partial model.
    """

    host: str
    models: Mapping[str, str]
    rows: tuple[HostRow, ...] = field(repr=False)

    def dump(self) -> str:
        """Return the half as JSON."""
        rows = [
            {
                **vars(row),
                "values": dict(row.values),
                "public_key": base64.b64encode(row.public_key).decode(),
                "vector": base64.b64encode(row.vector).decode(),
            }
            for row in self.rows
        ]
        return json.dumps({"host": self.host, "models": dict(self.models), "rows": rows})


def load_half(text: str) -> HostHalf:
    """Return a half that was dumped; raise SecurityError if it is none."""
    try:
        body = json.loads(text)
        rows = tuple(_row(row) for row in body["rows"])
        models = {str(name): str(model) for name, model in body["models"].items()}
        return HostHalf(str(body["host"]), models, rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SecurityError("half_unreadable") from error


def _row(body: dict[str, Any]) -> HostRow:
    blobs = {name: base64.b64decode(body[name]) for name in ("public_key", "vector")}
    return HostRow(**{**body, **blobs})


def rows_of(half: HostHalf) -> list[LoggedRow]:
    """Return of whom another Host of the chain has to show its half, too; without what came to this one."""
    rows = []
    for row in half.rows:
        rows.append(LoggedRow(0, "", SCORE, row.model_id, row.person, b"", b"", row.request, row.place))
    return rows


def sampled_rows(log: RequestLog, others: Sequence[LoggedRow]) -> list[LoggedRow]:
    """Return the scores in a Host's own sample and those in `others`, as far as their questions have a name."""
    own = [row for row in log.rows() if row.kind == SCORE]
    return [row for row in (*own, *others) if row.request]


def host_half(
    host: str,
    rows: Sequence[LoggedRow],
    models: HostModels,
    table: PartyTable,
    noise: Noise,
    changed: Callable[[LoggedRow], bool],
) -> HostHalf:
    """Return a Host's half.

    Parameters
    ----------
    rows : sequence of LoggedRow
        Scores of the Host's own sample, and of other Hosts' samples, which have no ciphertexts here. Those of models in which this Host
        owns no split, or that are not here any more, are left out.
    changed : callable
        Whether the records have changed since a question was answered.
    """
    half = []
    texts: dict[str, str] = {}
    for row in rows:
        served = models.find(row.model_id)
        if served is None:
            continue
        if row.model_id not in texts:
            texts[row.model_id] = dump_host(served.model)
        index = table.row_of.get(row.subject)
        values: dict[str, Value] = {}
        if index is not None:
            values = {name: _plain(table.columns[name][index]) for name in sorted(served.features)}
        layout = served.model.layout
        added = 0
        if served.plan.last and layout is not None:
            width = max(row.dither, half_units(noise.width, layout.dither_bits))
            held = np.array([index is not None])
            if width:
                [added] = noise.dithers(served.structure, layout, (row.subject,), held, width)
        half.append(
            HostRow(
                row.number,
                row.model_id,
                row.request,
                row.place,
                row.subject,
                index is not None,
                values,
                added,
                changed(row),
                row.public_key,
                row.vector,
            )
        )
    return HostHalf(host, texts, tuple(half))


def _plain(value: Any) -> Value:
    """Return a value of a table as JSON has it; None if it is missing."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return None if np.isnan(number) else number
