"""What people decided about a model: reviews of its findings and sign-offs, with reason, person and time.

Append-only: a later review of the same finding supersedes the earlier one, and both stay. Knows findings by rule and feature only; holds
no label, score or value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy import ForeignKey, String, Text, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from backend.errors import ModelError, ParameterError
from backend.store.database import column_values, open_database, timestamp

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


class _SignatureRow(_Base):
    """A sign-off's signature; those of before 0.3 have none."""

    __tablename__ = "signoff_signatures"
    number: Mapped[int] = mapped_column(ForeignKey("signoffs.number"), primary_key=True)
    model: Mapped[str] = mapped_column(String(64), index=True)
    public_key: Mapped[str] = mapped_column(String(64))
    signature: Mapped[str] = mapped_column(String(128))


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
    report_hash : str
        SHA-256 of the report that was signed, so that a later one is not covered.
    time : str
        UTC, ISO 8601.
    public_key, signature : str
        Of the Guest, in hexadecimal; empty where it was made before statements were signed.
    """

    number: int
    model: str
    person: str
    role: str
    statement: str
    report_hash: str
    time: str
    public_key: str = ""
    signature: str = ""


class Reviews:
    """One Guest's reviews and sign-offs, append-only.

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
        self._engine = open_database(where, "reviews.db", _Base)

    def review(self, model: str, rule: str, feature: str, verdict: ReviewVerdict, reason: str, person: str) -> Review:
        """Write a verdict on a finding; it supersedes earlier ones on the same finding.

        Raises
        ------
        ParameterError
            The verdict is unknown, the reason is shorter than `REASON_MIN` characters, or a field is empty or too long.
        """
        if verdict not in get_args(ReviewVerdict):
            raise ParameterError(f"The verdict is {verdict!r}, expected one of {', '.join(get_args(ReviewVerdict))}.")
        row = _ReviewRow(
            model=_hash("model's content hash", model),
            rule=_text("rule", rule),
            feature=_text("feature", feature),
            verdict=verdict,
            reason=_text("reason", reason, REASON_MIN, TEXT_MAX),
            person=_text("person", person),
            time=timestamp(),
        )
        with self._writing() as session:
            session.add(row)
        return Review(**column_values(row))

    def sign_off(
        self,
        model: str,
        person: str,
        role: str,
        statement: str,
        report_hash: str,
        public_key: str,
        sign: Callable[..., str],
    ) -> SignOff:
        """Write a person's statement about a model and the report that was read, signed by the Guest.

        Parameters
        ----------
        sign : callable
            Gets model, person, role, statement, report_hash and time as they are written; returns the signature.

        Raises
        ------
        ParameterError
            The statement is shorter than `REASON_MIN` characters, or a field is empty, too long or no hash.
        """
        row = _SignOffRow(
            model=_hash("model's content hash", model),
            person=_text("person", person),
            role=_text("role", role),
            statement=_text("statement", statement, REASON_MIN, TEXT_MAX),
            report_hash=_hash("report's hash", report_hash),
            time=timestamp(),
        )
        signature = sign(row.model, row.person, row.role, row.statement, row.report_hash, row.time)
        with self._writing() as session:
            session.add(row)
            session.flush()  # numbers the row
            session.add(_SignatureRow(number=row.number, model=row.model, public_key=public_key, signature=signature))
        return SignOff(**column_values(row), public_key=public_key, signature=signature)

    def history(self, model: str) -> tuple[Review, ...]:
        """Every review of a model's findings, oldest first."""
        return tuple(Review(**row) for row in self._rows(_ReviewRow, model))

    def standing(self, model: str) -> dict[tuple[str, str], Review]:
        """(Rule, feature) → the last review of that finding."""
        return {(review.rule, review.feature): review for review in self.history(model)}

    def sign_offs(self, model: str) -> tuple[SignOff, ...]:
        """Every sign-off of a model, oldest first."""
        signed = {row["number"]: row for row in self._rows(_SignatureRow, model)}
        return tuple(SignOff(**{**row, **signed.get(row["number"], {})}) for row in self._rows(_SignOffRow, model))

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """One transaction; raises ModelError where nothing can be written."""
        try:
            with Session(self._engine, expire_on_commit=False) as session, session.begin():
                yield session
        except SQLAlchemyError as error:
            raise ModelError(
                f"Nothing was written to the reviews ({type(error).__name__}). Check the Guest's folder and try again."
            ) from error

    def _rows(self, table: type[_ReviewRow | _SignOffRow | _SignatureRow], model: str) -> list[dict[str, Any]]:
        try:
            with Session(self._engine) as session:
                rows = session.scalars(select(table).where(table.model == model).order_by(table.number))
                return [column_values(row) for row in rows]
        except SQLAlchemyError as error:
            raise ModelError(
                f"The reviews cannot be read: {type(error).__name__}. Check the Guest's folder."
            ) from error


def _text(what: str, text: str, min_length: int = 1, max_length: int = NAME_MAX) -> str:
    """`text` without surrounding white space; raises ParameterError where its length is out of range."""
    text = text.strip()
    if not min_length <= len(text) <= max_length:
        raise ParameterError(
            f"The {what} has {len(text)} characters, expected {min_length} to {max_length:,}. Write it again."
        )
    return text


def _hash(what: str, text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ParameterError(f"The {what} is {text[:80]!r}, expected 64 hexadecimal digits (SHA-256).")
    return text
