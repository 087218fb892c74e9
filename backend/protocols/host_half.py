"""A Host's half of a sample of its answers, for an auditor who recomputes them: what it holds of each person, and what it has added.

The Host makes it from its records and its secret. If the records are others by now, it says so, since they would give other scores.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

from backend.data.table import PartyTable
from backend.errors import SecurityError
from backend.protocols.explanations.messages import of_person
from backend.protocols.host_state import HostModels
from backend.protocols.scoring.dither import half_units
from backend.protocols.terms.noise import Noise
from backend.store.accountant import REASONS, SCORE, Accountant
from backend.store.request_log import SUMS, RequestLog, question_of
from backend.store.schema import LoggedRow
from backend.trees.serialization import dump_host

Value = float | str | None


@dataclass(frozen=True, repr=False)
class HostRow:
    """One person of the sample at one Host.

    Attributes
    ----------
    kind : str
        ``score`` or ``reasons``.
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
        Paillier: the Guest's key, and the entries or terms as they came to this Host; empty if they are not kept.
    shares : tuple of float, optional
        Of reasons: the shares of cover that came with them; None if they are not kept.
    """

    kind: str
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
    shares: tuple[float, ...] | None = None


@dataclass(frozen=True, repr=False)
class HostSums:
    """What one question about sums was about, at one Host.

    Attributes
    ----------
    kind : str
        ``cohort`` or ``groups``.
    model_id : str
        Empty of groups.
    request : str
        The Guest's name for a cohort's question; of groups that of the conversation.
    people : tuple of str
        In the question's order.
    held : tuple of bool
        Of whom the Host holds a record.
    values : dict of str to list
        Feature → value of each person; None if it is missing.
    about : dict
        Of a cohort ``shares``. Of groups ``features`` with their ``kinds``, the ``source`` of the marks (empty: this Host marked its
        groups), ``most`` groups, and how many records the smallest should have (``least``) and has (``smallest``).
    changed : bool
        Whether the Host's records are others by now.
    """

    kind: str
    model_id: str
    request: str
    people: tuple[str, ...]
    held: tuple[bool, ...]
    values: Mapping[str, list[Value]]
    about: Mapping[str, Any]
    changed: bool


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
    sums: tuple[HostSums, ...] = field(default=(), repr=False)

    def dump(self) -> str:
        """Return the half as JSON."""
        rows = []
        for row in self.rows:
            rows.append(
                {
                    **vars(row),
                    "values": dict(row.values),
                    "public_key": base64.b64encode(row.public_key).decode(),
                    "vector": base64.b64encode(row.vector).decode(),
                }
            )
        sums = []
        for entry in self.sums:
            sums.append({**vars(entry), "values": dict(entry.values), "about": dict(entry.about)})
        return json.dumps({"host": self.host, "models": dict(self.models), "rows": rows, "sums": sums})


def load_half(text: str) -> HostHalf:
    """Read a half that was dumped; raises SecurityError if `text` is not one."""
    try:
        body = json.loads(text)
        rows = tuple(_row(row) for row in body["rows"])
        sums = tuple(_sums(entry) for entry in body["sums"])
        models = {str(name): str(model) for name, model in body["models"].items()}
        return HostHalf(str(body["host"]), models, rows, sums)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SecurityError("half_unreadable") from error


def _row(body: dict[str, Any]) -> HostRow:
    blobs = {name: base64.b64decode(body[name]) for name in ("public_key", "vector")}
    if body["shares"] is None:
        shares = None
    else:
        shares = tuple(map(float, body["shares"]))
    return HostRow(**{**body, **blobs, "shares": shares})


def _sums(body: dict[str, Any]) -> HostSums:
    sums = HostSums(**{**body, "people": tuple(body["people"]), "held": tuple(body["held"])})
    sizes = {len(column) for column in [sums.held, *sums.values.values()]}
    if sizes != {len(sums.people)}:
        raise ValueError(sizes)
    return sums


def rows_of(half: HostHalf) -> list[LoggedRow]:
    """Return of whom another Host of the chain has to show its half, too; without what came to this one."""
    rows = []
    for row in half.rows:
        logged = LoggedRow(
            day="",
            kind=row.kind,
            model_id=row.model_id,
            subject=row.person,
            public_key=b"",
            vector=b"",
            request=row.request,
            place=row.place,
        )
        logged.number = 0  # it is in no log of this Host
        rows.append(logged)
    return rows


def sampled_rows(log: RequestLog, others: Sequence[LoggedRow]) -> list[LoggedRow]:
    """Return what is in a Host's own sample, and the people in `others`, as far as their questions have a name."""
    return [row for row in (*log.rows(), *others) if row.request]


def is_current(account: Accountant, models: HostModels, row: LoggedRow) -> bool:
    """Return whether the records are those that a question was answered from."""
    if row.kind in SUMS:
        return row.records == account.records
    guest = models.get(row.model_id).model.guest
    if row.kind == REASONS:
        request = of_person(row.request, row.place)
    else:
        request = row.request
    return account.is_current(guest, request)


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
        The Host's own sample, and people of other Hosts' samples, which have no ciphertexts here. Rows of models in which this Host owns
        no split, or that are no longer here, are left out.
    changed : callable
        Whether the records have changed since a question was answered.
    """
    half = []
    sums = []
    texts: dict[str, str] = {}
    for row in rows:
        if row.kind in SUMS:
            sums.append(_half_of_sums(row, models, texts, table, changed(row)))
            continue
        served = models.find(row.model_id)
        if served is None:
            continue
        if row.model_id not in texts:
            texts[row.model_id] = dump_host(served.model)
        index = table.row_of.get(row.subject)
        values: dict[str, Value] = {}
        if index is not None:
            own_columns = table.columns_of(np.array([index]), sorted(served.features))
            values = {name: _plain(column[0]) for name, column in own_columns.items()}
        layout = served.model.layout
        dither = 0
        vector = row.vector
        shares = None
        if row.kind == REASONS and row.vector:
            vector, shares, *_ = msgpack.unpackb(row.vector)
        if row.kind == SCORE and served.plan.last and layout is not None:
            width = max(row.dither, half_units(noise.width, layout.dither_bits))
            has_record = np.array([index is not None])
            if width:
                [dither] = noise.dithers(served.structure, layout, (row.subject,), has_record, width)
        half.append(
            HostRow(
                row.kind,
                row.number,
                row.model_id,
                row.request,
                row.place,
                row.subject,
                index is not None,
                values,
                dither,
                changed(row),
                row.public_key,
                vector,
                None if shares is None else tuple(shares),
            )
        )
    return HostHalf(host, texts, tuple(half), tuple(sums_of_row for sums_of_row in sums if sums_of_row is not None))


def _half_of_sums(
    row: LoggedRow, models: HostModels, texts: dict[str, str], table: PartyTable, changed: bool
) -> HostSums | None:
    """Return the Host's values of the people behind sums; None if the model is no longer here."""
    about = question_of(row)
    people = tuple(about.pop("people"))
    if row.model_id:
        served = models.find(row.model_id)
        if served is None:
            return None
        texts.setdefault(row.model_id, dump_host(served.model))
        features = sorted(served.features)
    else:
        features = sorted(about["kinds"])
    rows = table.row_of.of(people)
    has_record = (rows >= 0).tolist()
    values = {}
    for name, column in table.columns_of(rows[rows >= 0], features).items():
        values_found = iter(column)
        values[name] = [_plain(next(values_found)) if here else None for here in has_record]
    return HostSums(row.kind, row.model_id, row.request, people, tuple(has_record), values, about, changed)


def _plain(value: Any) -> Value:
    """Return a value of a table as JSON has it; None if it is missing."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return None if np.isnan(number) else number
