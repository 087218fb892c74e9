"""What people decided about a model: reviews of its findings and sign-offs, with reason, person and time.

Nothing is changed or taken out: a later review of the same finding stands in place of the earlier one, and both stay. Knows findings by
rule and feature only; holds no label, score or value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar, get_args

from sqlalchemy import String, Text, create_engine, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from backend.errors import ModelError, ParameterError

ReviewVerdict = Literal["overridden", "confirmed"]
REASON_MIN = 10  # characters: a word is no reason
TEXT_MAX = 4_000  # characters
NAME_MAX = 120  # characters, as a feature's name
_HASH = re.compile(r"[0-9a-f]{64}")  # SHA-256 in hexadecimal


class _Base(DeclarativeBase):
    pass


class _ReviewRow(_Base):
    __tablename__ = "reviews"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    model: Mapped[str] = mapped_column(String(64), index=True)
    rule: Mapped[str] = mapped_column(String(NAME_MAX))
    feature: Mapped[str] = mapped_column(String(NAME_MAX))
    verdict: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str] = mapped_column(Text)
    person: Mapped[str] = mapped_column(String(NAME_MAX))
    time: Mapped[str] = mapped_column(String(40))


class _SignOffRow(_Base):
    __tablename__ = "signoffs"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    model: Mapped[str] = mapped_column(String(64), index=True)
    person: Mapped[str] = mapped_column(String(NAME_MAX))
    role: Mapped[str] = mapped_column(String(NAME_MAX))
    statement: Mapped[str] = mapped_column(Text)
    report_hash: Mapped[str] = mapped_column(String(64))
    time: Mapped[str] = mapped_column(String(40))


_Row = TypeVar("_Row", _ReviewRow, _SignOffRow)


@dataclass(frozen=True, slots=True)
class Review:
    """One person's verdict on one finding.

    Attributes
    ----------
    number : int
        Order of writing, over all models.
    model : str
        Content hash of the Guest's partial model, so that a retrained model starts without reviews.
    rule, feature : str
        The finding.
    verdict : {"overridden", "confirmed"}
        The finding does not stand, or it does.
    reason, person : str
    time : str
        UTC, ISO 8601.
    """

    number: int
    model: str
    rule: str
    feature: str
    verdict: ReviewVerdict
    reason: str
    person: str
    time: str


@dataclass(frozen=True, slots=True)
class SignOff:
    """One person's statement about a model.

    Attributes
    ----------
    number : int
        Order of writing, over all models.
    model : str
        Content hash of the Guest's partial model.
    person, role, statement : str
    report_hash : str
        SHA-256 of the report that was signed, so that a later one is not covered.
    time : str
        UTC, ISO 8601.
    """

    number: int
    model: str
    person: str
    role: str
    statement: str
    report_hash: str
    time: str


class Reviews:
    """One Guest's reviews and sign-offs; they are added and read, never changed.

    Parameters
    ----------
    where : Path or str
        A folder (SQLite in ``reviews.db``) or a database URL.

    Raises
    ------
    ModelError
        The database cannot be opened, here or in any method.
    """

    def __init__(self, where: Path | str) -> None:
        if isinstance(where, Path):
            where.mkdir(parents=True, exist_ok=True, mode=0o700)
            where = f"sqlite:///{where / 'reviews.db'}"
        pool = {"poolclass": NullPool} if where.startswith("sqlite") else {}
        self._engine = create_engine(where, **pool)
        try:
            _Base.metadata.create_all(self._engine)
        except SQLAlchemyError as error:
            raise ModelError(f"The reviews in {where!r} cannot be opened: {type(error).__name__}.") from error

    def review(self, model: str, rule: str, feature: str, verdict: ReviewVerdict, reason: str, person: str) -> Review:
        """Write a verdict on a finding; it stands in place of earlier ones on the same finding.

        Raises
        ------
        ParameterError
            The verdict is unknown, the reason is shorter than `REASON_MIN` characters, or a field is empty or too long.
        """
        if verdict not in get_args(ReviewVerdict):
            raise ParameterError(f"The verdict is {verdict!r}, expected one of {', '.join(get_args(ReviewVerdict))}.")
        row = _ReviewRow(
            model=_hash("model's content hash", model),
            rule=_words("rule", rule),
            feature=_words("feature", feature),
            verdict=verdict,
            reason=_words("reason", reason, REASON_MIN, TEXT_MAX),
            person=_words("person", person),
            time=_now(),
        )
        self._add(row)
        return _review(row)

    def sign_off(self, model: str, person: str, role: str, statement: str, report_hash: str) -> SignOff:
        """Write a person's statement about a model and the report that was read.

        Raises
        ------
        ParameterError
            The statement is shorter than `REASON_MIN` characters, or a field is empty, too long or no hash.
        """
        row = _SignOffRow(
            model=_hash("model's content hash", model),
            person=_words("person", person),
            role=_words("role", role),
            statement=_words("statement", statement, REASON_MIN, TEXT_MAX),
            report_hash=_hash("report's hash", report_hash),
            time=_now(),
        )
        self._add(row)
        return _sign_off(row)

    def history(self, model: str) -> tuple[Review, ...]:
        """Every review of a model's findings, oldest first."""
        return tuple(_review(row) for row in self._rows(_ReviewRow, model))

    def standing(self, model: str) -> dict[tuple[str, str], Review]:
        """(Rule, feature) → the last review of that finding."""
        return {(review.rule, review.feature): review for review in self.history(model)}

    def sign_offs(self, model: str) -> tuple[SignOff, ...]:
        """Every sign-off of a model, oldest first."""
        return tuple(_sign_off(row) for row in self._rows(_SignOffRow, model))

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()

    def _add(self, row: _Base) -> None:
        try:
            with Session(self._engine, expire_on_commit=False) as session, session.begin():
                session.add(row)
        except SQLAlchemyError as error:
            raise ModelError(
                f"Nothing was written to the reviews ({type(error).__name__}). Check the Guest's folder and try again."
            ) from error

    def _rows(self, table: type[_Row], model: str) -> Sequence[_Row]:
        try:
            with Session(self._engine) as session:
                return session.scalars(select(table).where(table.model == model).order_by(table.number)).all()
        except SQLAlchemyError as error:
            raise ModelError(
                f"The reviews cannot be read: {type(error).__name__}. Check the Guest's folder."
            ) from error


def _review(row: _ReviewRow) -> Review:
    verdict: ReviewVerdict = "overridden" if row.verdict == "overridden" else "confirmed"
    return Review(row.number, row.model, row.rule, row.feature, verdict, row.reason, row.person, row.time)


def _sign_off(row: _SignOffRow) -> SignOff:
    return SignOff(row.number, row.model, row.person, row.role, row.statement, row.report_hash, row.time)


def _words(what: str, text: str, least: int = 1, most: int = NAME_MAX) -> str:
    """`text` without space around it, if it is neither too short nor too long."""
    kept = text.strip()
    if not least <= len(kept) <= most:
        raise ParameterError(f"The {what} has {len(kept)} characters, expected {least} to {most:,}. Write it again.")
    return kept


def _hash(what: str, text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ParameterError(f"The {what} is {text[:80]!r}, expected 64 hexadecimal digits (SHA-256).")
    return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
