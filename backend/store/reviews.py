"""Decisions about a model: reviews of its findings and sign-offs, with reason, person and time.

Append-only: a later review of the same finding supersedes the earlier one, and both stay. Knows findings by rule and feature only; holds
no label, score or value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.errors import ParameterError
from backend.i18n import wide
from backend.remark import Remark
from backend.store.database import Database, column_values, timestamp
from backend.store.schema import ReviewRow, SignOff

ReviewVerdict = Literal["overridden", "confirmed"]
ABOUT = "about:"  # before a concept, in the place of a rule: an answer to a question
REASON_MIN = 10  # letters, of which a Chinese one counts for two: a word is no reason
TEXT_MAX = 4_000  # characters
NAME_MAX = 120  # characters, as a feature's name
_HASH = re.compile(r"[0-9a-f]{64}")  # SHA-256 in hexadecimal


# Not the mapped row itself: a report signs it, so it is frozen, which a mapped class cannot be.
@dataclass(frozen=True, slots=True)
class Review:
    """One person's verdict on one finding, or answer to a question.

    Attributes
    ----------
    number : int
        Order of writing, over all models.
    model : str
        Content hash of the Guest's partial model, so that a retrained model starts without reviews; of an answer the hash of the
        feature's description, so that it holds until that changes.
    rule, feature : str
        The finding; of an answer :data:`ABOUT` and what was asked about.
    verdict : {"overridden", "confirmed"}
        The finding does not stand, or it does; of an answer no or yes.
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


class Reviews:
    """One Guest's reviews and sign-offs, append-only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def review(self, model: str, rule: str, feature: str, verdict: ReviewVerdict, reason: str, person: str) -> Review:
        """Write a verdict on a finding; it supersedes earlier ones on the same finding.

        Raises
        ------
        ParameterError
            The verdict is unknown, the reason is shorter than `REASON_MIN` characters, or a field is empty or too long.
        """
        if verdict not in get_args(ReviewVerdict):
            raise ParameterError("unknown_verdict", got=verdict, known=get_args(ReviewVerdict))
        row = ReviewRow(
            model=_hash("model", model),
            rule=_text("rule", rule),
            feature=_text("feature", feature),
            verdict=verdict,
            reason=_text("reason", reason, REASON_MIN, TEXT_MAX),
            person=_text("person", person),
            time=timestamp(),
        )
        with self._database.write() as session:
            session.add(row)
            session.flush()
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
        signed = SignOff(
            model=_hash("model", model),
            person=_text("person", person),
            role=_text("role", role),
            statement=_text("statement", statement, REASON_MIN, TEXT_MAX),
            report_hash=_hash("report", report_hash),
            time=timestamp(),
            public_key=public_key,
        )
        fields = (signed.model, signed.person, signed.role, signed.statement, signed.report_hash, signed.time)
        signed.signature = sign(*fields)
        with self._database.write() as session:
            session.add(signed)
            session.flush()
        return signed

    def history(self, model: str) -> tuple[Review, ...]:
        """Return every review of a model's findings, oldest first."""
        query = select(ReviewRow).where(ReviewRow.model == model).order_by(ReviewRow.number)

        def read(session: Session) -> tuple[Review, ...]:
            return tuple(Review(**column_values(row)) for row in session.scalars(query))

        return self._database.kept(("reviews", model), read)

    def standing(self, model: str) -> dict[tuple[str, str], Review]:
        """(Rule, feature) → the last review of that finding."""
        return {(review.rule, review.feature): review for review in self.history(model)}

    def answers(self) -> dict[tuple[str, str, str], Review]:
        """(Hash of the description, :data:`ABOUT` and what was asked about, feature) → the last answer."""
        query = select(ReviewRow).where(ReviewRow.rule.startswith(ABOUT)).order_by(ReviewRow.number)

        def read(session: Session) -> dict[tuple[str, str, str], Review]:
            reviews = (Review(**column_values(row)) for row in session.scalars(query))
            return {(answer.model, answer.rule, answer.feature): answer for answer in reviews}

        return self._database.kept(("answers",), read)

    def sign_offs(self, model: str) -> tuple[SignOff, ...]:
        """Return every sign-off of a model, oldest first."""
        query = select(SignOff).where(SignOff.model == model).order_by(SignOff.number)

        def read(session: Session) -> tuple[SignOff, ...]:
            return tuple(session.scalars(query))

        return self._database.kept(("signoffs", model), read)


def _text(what: str, text: str, min_length: int = 1, max_length: int = NAME_MAX) -> str:
    """`text` without surrounding white space; raises ParameterError if it is too short (in letters that it is wide) or too long."""
    text = text.strip()
    if wide(text) < min_length or len(text) > max_length:
        field = Remark(f"review_field_{what}")
        raise ParameterError("review_text_length", field=field, least=min_length, limit=max_length, found=len(text))
    return text


def _hash(what: str, text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ParameterError("not_a_sha256", field=Remark(f"review_field_{what}"), got=text[:80])
    return text
