"""Upper bounds, in bits, of what answers tell about one person: what is booked before a question is answered.

A bound holds for a Guest that knows every other person's record and lies in its messages. It depends on what was approved and on how
many records there are, never on a value.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from math import log2

from backend.errors import SecurityError
from backend.protocols.approvals.messages import AskTraining
from backend.store.accountant import EVERYBODY, TABLE, Accountant, Question
from backend.store.schema import Approval

SCORE_BITS = 32.0  # of one honest score: 10 binary digits after the point, up to 22 before it
REASON_BITS = 64.0  # of one honest set of reasons: the four largest of some 300 features and their sides, ranked twice


def column_bits(records: int) -> float:
    """Return what the bins of one feature, of all records, can tell about one person's value.

    Bins are made of the order of values, and a cut is half-way between two of them. As one value moves over the whole line and the others
    stay, the bins of all records change only when it passes another value, or when half the way from another value to it passes a third:
    at most 2·n places (n records). Between and at these are 4·n + 1 outcomes, and a missing value is one more. A category is one of
    those of the others, or a new one: at most n + 2 outcomes.

    Examples
    --------
    >>> round(column_bits(3), 2)
    3.81
    """
    return log2(4 * max(records, 0) + 2)


def training_bits(features: int, records: int) -> float:
    """Return what a training can tell about one person: all of its messages follow from the bins of the features that it uses."""
    return features * column_bits(records)


@dataclass(frozen=True)
class TableFacts:
    """What a price depends on: no value of a record.

    Attributes
    ----------
    features : tuple of str
        Names of the Host's.
    records : int
        How many.
    ids : str
        SHA-256 of whose they are, in hexadecimal.
    """

    features: tuple[str, ...]
    records: int
    ids: str

    def used(self, exclude: Collection[str]) -> list[str]:
        """Return the features without those that are left out."""
        return [name for name in self.features if name not in exclude]


def facts_of_table(features: Collection[str], ids: Collection[str]) -> TableFacts:
    """Return what prices depend on."""
    return TableFacts(tuple(features), len(ids), sha256("\0".join(ids).encode(errors="surrogatepass")).hexdigest())


def approved_structure(guest: str, asked: AskTraining, facts: TableFacts) -> str:
    """Return what a training that was approved is booked under: all that its answers follow from, besides the records.

    The training rows are those that came first with the same bins and draw. Another algorithm, or more and deeper trees, tell nothing
    that the bins of all records do not tell.
    """
    noise = (asked.map, asked.mechanism, asked.epsilon, asked.theta, asked.alpha, asked.levels)
    parts = (guest, asked.draw, asked.bins, asked.hide_order, sorted(asked.exclude), noise, facts.ids)
    return sha256(repr(parts).encode()).hexdigest()


def approved_question(guest: str, request: str, structure: str, features: int, records: int) -> Question:
    """Return what is booked for a training that was approved."""
    bits = training_bits(features, records)
    return Question(guest, request, TABLE, structure, (EVERYBODY,), bits, bits)


def training_question(guest: str, request: str, features: int, records: int, *binned: bytes | str) -> Question:
    """Return what is booked for a training before its first answer.

    Parameters
    ----------
    features : int
        Of this Host, without those that are left out.
    binned : bytes or str
        All that the bins follow from besides the records. A training with the same bins tells nothing more, and costs nothing more.
    """
    digest = sha256()
    for part in binned:
        encoded = part if isinstance(part, bytes) else part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    bits = training_bits(features, records)
    return Question(guest, request, TABLE, digest.hexdigest(), (EVERYBODY,), bits, bits)


def usual_max_bits(features: int, records: int) -> float:
    """Return the bits a person and window that a Host allows by default: one approved training, one score and one set of reasons."""
    return training_bits(features, records) + SCORE_BITS + REASON_BITS


def book_approved(accountant: Accountant, approval: Approval) -> None:
    """Book a training at the moment when it is approved: everything that it can tell is allowed from now on.

    Raises
    ------
    SecurityError
        If it could tell more about somebody than is left of this window's bits.
    """
    about = approval.about
    question = approved_question(approval.guest, "", about["structure"], about["features"], about["rows"])
    if accountant.count(question, whole=True).any():
        limits = accountant.limits
        told = accountant.given_away((EVERYBODY,))[EVERYBODY]
        left = max(0.0, limits.bits - told)
        raise SecurityError("training_beyond_bits", bits=question.bits, left=left, most=limits.bits, days=limits.days)
