"""The Guest's sealed models: trained, measured, and not released. Only the maker of one can see it."""

from __future__ import annotations

from sqlalchemy import delete, select

from backend.store.database import Database
from backend.store.schema import SealedModel

__all__ = ["SealedModel", "SealedModels"]


class SealedModels:
    """Sealed models by who trained them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, maker: str) -> tuple[SealedModel, ...]:
        """Return one person's sealed models, newest first."""
        with self._database.read() as session:
            query = select(SealedModel).where(SealedModel.maker == maker).order_by(SealedModel.created.desc())
            return tuple(session.scalars(query))

    def all(self) -> tuple[SealedModel, ...]:
        """Return all sealed models: for erasing a person."""
        with self._database.read() as session:
            return tuple(session.scalars(select(SealedModel)))

    def put(self, sealed: SealedModel) -> None:
        """Keep a model sealed; the same one is kept once."""
        with self._database.write() as session:
            session.merge(sealed)

    def drop(self, model_id: str) -> None:
        """Forget that a model is sealed."""
        with self._database.write() as session:
            session.execute(delete(SealedModel).where(SealedModel.model_id == model_id))
