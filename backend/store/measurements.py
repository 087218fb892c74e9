"""Measured evidence about models, kept until it is measured again: figures of groups with their intervals, never of a person."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from backend.store.database import Database, timestamp
from backend.store.schema import MeasurementRow


@dataclass(frozen=True)
class Kept:
    """One measurement: its rows, and the data it was made on (empty if that was not recorded)."""

    rows: list[dict[str, Any]]
    basis: dict[str, Any]


class Measurements:
    """One party's measurements."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, model: str, kind: str, feature: str, measurement: Kept) -> None:
        """Store a measurement in place of an older one of the same kind.

        Parameters
        ----------
        model : str
            Content hash of the Guest's partial model.
        kind : str
            E.g. ``disparity``, ``proxies``.
        """
        body = json.dumps(vars(measurement))
        row = MeasurementRow(model=model, kind=kind, feature=feature, created=timestamp(), body=body)
        with self._database.write() as session:
            session.merge(row)

    def of(self, model: str, kind: str) -> dict[str, Kept]:
        """Feature → measurement."""
        query = (
            select(MeasurementRow.feature, MeasurementRow.body)
            .where(MeasurementRow.model == model, MeasurementRow.kind == kind)
            .order_by(MeasurementRow.feature)
        )
        rows = self._database.kept(("measured", model, kind), lambda session: session.execute(query).all())
        return {feature: Kept(**json.loads(body)) for feature, body in rows}
